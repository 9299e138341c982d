#!/bin/bash
# run: smoke
# Job control without a terminal.
exec 2> /dev/null  # when the shell says that a job ended is up to the scheduler
set -m
sleep 0.2 & wait $!; echo "waited $?"
(exit 3) & wait $!; echo "three $?"
sleep 30 &
p=$!
jobs -r | sed 's/ *&$//'
kill -STOP %1
for i in {1..50}; do [ "$(jobs -s)" ] && break; sleep 0.05; done
jobs -s | tr -s ' '
[ "$(ps -o stat= -p $p | cut -c1)" = T ] && echo stopped
bg %1 > /dev/null; jobs -r | tr -s ' '
kill %1; wait %1 2> /dev/null; echo "killed $?"
a=$(ps -o pgid= -p $BASHPID); sleep 5 & b=$(ps -o pgid= -p $!)
[ "$a" != "$b" ] && echo own group
kill %%; wait 2> /dev/null
sleep 0.1 | sleep 0.1 & wait; echo "pipeline $?"
disown -a; jobs
set +m; (kill -STOP $BASHPID; exit 9) &
q=$!
for i in {1..50}; do [ "$(ps -o stat= -p $q | cut -c1)" = T ] && break; sleep 0.05; done
kill -CONT $q; wait $q; echo "resumed $?"
