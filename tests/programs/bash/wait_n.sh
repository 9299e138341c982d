#!/bin/bash
(sleep 0.1; exit 1) & (sleep 0.4; exit 2) & (sleep 0.7; exit 3) &
wait -n; echo $?
wait -n; echo $?
wait -n; echo $?
wait -n; echo "none left: $?"
(exit 7) & p=$!; sleep 0.2; wait $p; echo "already gone: $?"
sleep 10 & p=$!; (sleep 0.2; kill $p) & wait $p 2> /dev/null; echo "terminated: $?"
trap 'echo interrupted' USR1
(sleep 0.2; kill -USR1 $$) & sleep 1 & wait $!; echo "by a trap: $?"
wait
wait 99999999 2>&1 | sed 's/.*: line/line/'
for i in 1 2 3 4 5 6 7 8; do (exit $i) & pids+=($!); done
for p in "${pids[@]}"; do wait "$p"; printf '%s ' $?; done; echo
wait -n -p who "${pids[@]}" 2> /dev/null; echo "$? ${who:-nobody}"
