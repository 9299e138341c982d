#!/bin/dash
# run: smoke
set -eu
x=$(printf 'a\nb\n' | while read -r l; do echo "<$l>"; done)
echo "$x"
f() { local y=1; echo "f $# $y"; return 4; }
f a b || echo "status $?"
for i in 1 2 3; do case $i in 2) continue ;; *) echo $i ;; esac; done
trap 'echo bye' EXIT
(trap 'echo term; exit 5' TERM; kill -TERM $(exec sh -c 'echo $PPID'); sleep 1) || echo "sub $?"
i=0; while [ $i -lt 1000 ]; do i=$((i + 1)); done; echo $i
cat <<EOF | sort -r
here $i
doc
EOF
sleep 0.1 & wait $!; echo "wait $?"
( exit 200 ) & wait $! || echo "two hundred $?"
printf '%s %d %x\n' str 10 255
set -- a b c; shift; echo "$@"
getopts ab: o -b arg && echo "$o $OPTARG"
unset zz; echo "${zz:-unset}"
test -d / -a ! -e /nonexistent && echo tested
ulimit -n >/dev/null; umask 027; umask
exec 3>out; echo three >&3; exec 3>&-; cat out
