#!/bin/bash
# needs: ps
# run: check smoke
# The processes shown are ours and no others, and what the tools read of /proc holds together.
set -u
fail() { echo "FAILED: $*"; ps aux; exit 1; }
sleep 20 & p=$!
ps aux > list || fail "ps aux"
[ "$(wc -l < list)" -le 8 ] || fail "more processes than ours"
[ "$(head -n 1 list | awk '{ print $1, $2, $11 }')" = "USER PID COMMAND" ] || fail "head"
grep -q "sleep 20" list || fail "sleep not shown"
grep -q "inside.sh" list || fail "the script not shown"
grep -qi umlaut list && fail "umlaut shows"
[ "$(ps -o comm= -p $p)" = sleep ] || fail "comm"
[ "$(ps -o ppid= -p $p | tr -d ' ')" = $$ ] || fail "ppid"
[ "$(ps -o args= -p $p)" = "sleep 20" ] || fail "args"
[ "$(ps -o uid= -p $p | tr -d ' ')" = "$(id -u)" ] || fail "uid"
[ "$(ps -o stat= -p $p | cut -c1)" = S ] || fail "state"
ps -ef | awk '$3 == 0' | wc -l | grep -qx 1 || fail "one process without a parent"
ps axjf > /dev/null || fail "ps axjf"
ps -eLo pid,tid,comm > /dev/null || fail "ps -eL"
[ "$(pgrep -x sleep)" = $p ] || fail "pgrep"
[ "$(pidof sleep)" = $p ] || fail "pidof"
top -b -n 1 > top.out || fail "top: $(cat top.out)"
grep -q "^ *$p .*sleep" top.out || fail "top does not show sleep: $(cat top.out)"
grep -q '^Tasks: *[0-9]* total' top.out || fail "top head"
free > free.out || fail free; awk '/^Mem:/ { exit !($2 > 0 && $2 >= $3) }' free.out || fail "free: $(cat free.out)"
uptime > /dev/null || fail uptime; vmstat > /dev/null || fail vmstat; w > /dev/null || fail w; pmap $$ > /dev/null || fail pmap; pstree > /dev/null 2>&1 || ! command -v pstree > /dev/null || fail pstree
kill -STOP $p; for i in {1..50}; do [ "$(ps -o stat= -p $p | cut -c1)" = T ] && break; sleep 0.05; done; [ "$(ps -o stat= -p $p | cut -c1)" = T ] || fail "not stopped"
kill -CONT $p; pkill -x sleep; wait $p; [ $? = 143 ] || fail "pkill"
ps -p $p > /dev/null && fail "still there"
[ "$(sed -n 's/^PPid:\t//p' /proc/self/status)" = $$ ] || fail "/proc/self/status"
uname -a | grep -q '^Linux ' || fail uname
[ "$(cat /proc/1/comm)" ] || fail "/proc/1"
exit 0
