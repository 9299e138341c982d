#!/bin/dash
sh -c 'echo $0 $1' name arg
echo 'cd /; pwd; exit 6' | sh; echo $?
sh -c 'kill -HUP $$'; echo $?
sh -c 'trap "echo int" INT; kill -INT $$; echo after'
# Only the status: dash says "Terminated" if the child dies within the wait, not if before it.
sh -c 'sleep 5 & kill $!; wait $! 2> /dev/null'; echo $?
sh -c 'set -m; sleep 5 & kill -STOP $!; sleep 0.2; kill -CONT $!; kill $!; wait $! 2> /dev/null'; echo $?
echo a:b:c | (IFS=:; read x y z; echo $z $y $x)
sh -x -c 'y=1; echo $y' 2>&1
sh -c 'exec nosuch' 2> /dev/null; echo $?
printf 'a\\b\tc\n'; echo 'tab\there'
sh -c 'read x; echo $x; cat' <<E2
first
second
third
E2
true | false; echo $?
command -v sh > /dev/null && echo found
alias ll='ls -l'; alias
