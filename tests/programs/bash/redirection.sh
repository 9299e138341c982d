#!/bin/bash
# run: smoke
echo one > f; echo two >> f; cat f
exec 3<> f; read -r -u 3 l; echo "$l"; echo XXX >&3; exec 3>&-; cat f
echo err >&2 2> /dev/null
ls /nonexistent 2>&1 | sed 's/.*: //'
set -C; echo x > f 2> /dev/null || echo noclobber; echo y >| f; set +C; cat f
{ echo out; echo err >&2; } > both 2>&1; cat both
{ echo out; echo err >&2; } &> both; wc -l < both
exec 9> nine; echo nine >&9; exec 9>&-; cat nine
exec {fd}> named; echo "n $((fd >= 10))" >&$fd; exec {fd}>&-; cat named
cat < /nonexistent 2>&1 | sed 's/.*: //'
: > empty; wc -c < empty
echo swapped 3>&1 1>&2 2>&3 2> /dev/null
(echo closed >&-) 2>&1 | sed 's/.*: //'
read -r x < <(printf 'no newline'); echo "$? $x"
dd if=/dev/zero bs=1k count=4 2> /dev/null | od -An -tx1 | sort -u | head -n 2
umask 077; : > private; stat -c %a private; umask
ulimit -n 64; ulimit -n; bash -c 'ulimit -n'
head -c 5 < /dev/urandom | wc -c
