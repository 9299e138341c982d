#!/bin/busybox ash
# needs: busybox
set -e
i=0; while [ $i -lt 100 ]; do i=$((i+1)); done; echo $i
f() { local a="$1"; echo "f:$a"; }; f x
echo abc | while read l; do echo "$l"; done
trap 'echo exit' EXIT
x=$(busybox seq 3 | busybox tr '\n' ' '); echo "$x"
sleep 0.1 & wait; echo waited
(exit 3) || echo $?
case abc in a*) echo match;; esac
echo "${x#1}" "${x%% *}" "${#x}"
kill -0 $$ && echo alive
printf '%s\n' "$(busybox yes | busybox head -n 2)"
