#!/bin/bash
# tail -f by inotify or by polling: the same either way.
echo one > log
timeout 5 tail -n +1 -s 0.1 -f ---disable-inotify log > seen & p=$!
sleep 0.3; echo two >> log; sleep 0.5; echo three >> log; sleep 0.5
kill $p; wait $p 2> /dev/null; cat seen
(sleep 0.5) & tail -f -s 0.1 ---disable-inotify --pid=$! -n 1 log
