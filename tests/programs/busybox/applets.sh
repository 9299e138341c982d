#!/bin/sh
# needs: busybox
# run: smoke
b=busybox
$b echo hello
$b seq 1 5 | $b tac
$b printf '%03d\n' 7
echo 'a b c' | $b awk '{ print $3, $1, NF }'
echo foo | $b sed 's/o/0/g'
printf 'x\ny\nx\n' | $b sort | $b uniq -c
printf 'x\ny\n' | $b grep -n y
$b expr 6 \* 7
$b basename /a/b.c .c; $b dirname /a/b.c
mkdir -p d/e; echo data > d/e/f; $b cp -r d d2; $b ls -1R d2; $b cat d2/e/f
$b ln -s f d2/e/l; $b readlink d2/e/l; $b stat -c '%F %a %s' d2/e/f
$b mv d2/e/f d2/g; $b rm -r d2/e; $b find d2 | $b sort
$b tar -cf t.tar d; $b tar -tf t.tar; $b gzip t.tar; $b zcat t.tar.gz | $b tar -xOf - d/e/f
printf 'hello' | $b md5sum; printf 'hello' | $b sha1sum; printf 'hello' | $b sha256sum
printf 'hello' | $b od -c; printf 'hello' | $b xxd; printf hello | $b hexdump -C
$b dd if=/dev/zero of=z bs=4k count=3 2> /dev/null; $b wc -c z
$b truncate -s 100 z; $b wc -c < z
$b test -f z && echo file; $b true; echo $?; $b false; echo $?
$b head -n 1 d/e/f; $b tail -n 1 d/e/f; $b cut -c2-3 d/e/f; echo abc | $b rev; echo abc | $b tr a-c A-C
$b env -i A=1 $b env; $b date -u -d @0 +%F; $b cal 1 2000 | $b head -n 1
$b timeout 1 $b sleep 0.1; echo $?; $b timeout 1 $b sleep 5; echo $?
$b xargs -n 2 echo < /dev/null; $b seq 5 | $b xargs -n 2 echo
$b diff d/e/f d2/g && echo same; $b cmp d/e/f z; echo $?
$b nosuchapplet 2>&1; echo $?
$b id -u > /dev/null && echo id; $b whoami > /dev/null && echo whoami; $b uname -s; $b nproc > /dev/null && echo nproc
$b mkfifo p; ($b echo through > p &) ; $b cat p
$b chmod 600 z; $b stat -c %a z; $b touch -d '2001-02-03 04:05:06' z; $b stat -c %y z | $b cut -c1-19
$b du -s d > /dev/null && echo du; $b df / > /dev/null && echo df
$b which sh; $b mktemp -d ./tXXXXXX > /dev/null && echo mktemp; $b rmdir t[A-Za-z0-9]*[!z]
