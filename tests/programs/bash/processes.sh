#!/bin/bash
# run: smoke timeout=120
for i in {1..200}; do /bin/true || echo failed; done; echo 200 programs
for i in {1..300}; do :| :; done; echo 300 pipelines
n=0; for i in {1..200}; do n=$((n + $(echo 1))); done; echo $n
for i in {1..50}; do (exit $((i % 256))) & done; wait; echo all gone
ulimit -s; ulimit -c 0
{ bash -c 'kill -SEGV $$'; } 2> /dev/null; echo $?
{ bash -c 'kill -9 $$'; } 2> /dev/null; echo $?
timeout 0.2 sleep 10; echo $?
{ timeout -s KILL 0.2 sleep 10; } 2> /dev/null; echo $?
exec bash -c 'echo "exec $0"; exit 42' zero
