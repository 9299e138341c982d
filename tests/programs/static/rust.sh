#!/bin/bash
# needs: rust-static
# run: smoke
./rust-static one "two words" 2> err; echo $?; grep -c panicked err
