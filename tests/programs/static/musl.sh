#!/bin/bash
# needs: turbo
# A static-pie of Rust on musl.
export HOME=$PWD/home TURBO_TELEMETRY_DISABLED=1 DO_NOT_TRACK=1; mkdir home
./turbo --version; echo $?; ./turbo --help | head -n 5; ./turbo nosuchcommand --cwd /nonexistent > /dev/null 2>&1; echo $?; ./turbo completion bash | wc -l
