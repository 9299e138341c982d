#!/bin/sh
# needs: busybox
b=busybox
mkdir tree; for i in 1 2 3; do mkdir tree/$i; echo $i > tree/$i/file; done
$b find tree -name file -exec $b cat {} \; | $b sort
$b find tree -type d | $b sort | $b cpio -o -H newc 2> /dev/null | $b cpio -t 2> /dev/null
$b tar czf x.tgz tree && $b tar tzf x.tgz | $b sort | $b wc -l
echo 'some text to pack, some text to pack' > t; $b bzip2 -k t; $b bunzip2 -c t.bz2; $b gzip -c t | $b gunzip
printf '3\n1\n2\n' | $b sort -n; printf 'b 2\na 1\n' | $b sort -k2n
$b vi -c ':q!' t < /dev/null > /dev/null 2>&1; echo vi
printf 'a,b,c\n' | $b awk -F, 'BEGIN { OFS="-" } { $1=$1; print; n=split($0, p, "-"); print n, toupper(p[2]) }'
$b sed -n '/some/{s/some/any/gp}' t
echo 'int' | $b tee copy > /dev/null; $b cat copy
$b split -l 1 - part < t; $b ls part*
$b fold -w 10 t; $b nl t; $b expand t > /dev/null && echo expand; $b comm t t | $b wc -l
echo 2 3 + p | $b dc 2> /dev/null; echo '2^64' | $b bc 2> /dev/null
$b realpath tree/../t | $b sed 's|.*/||'; $b pwd | $b sed 's|.*/||'
$b flock t echo locked; $b usleep 1000; $b nice -n 5 $b nice; $b setsid echo session; $b nohup echo hup 2> /dev/null
$b ps > /dev/null && echo ps; $b free > /dev/null && echo free; $b uptime > /dev/null && echo uptime
$b hostname > /dev/null && echo hostname; $b mount > /dev/null && echo mount; $b stty < /dev/null 2> /dev/null; echo $?
$b ln t hard; $b stat -c %h t; $b unlink hard; $b stat -c %h t; $b sync && echo synced
