#!/bin/bash
# run: smoke
true; echo $?; false; echo $?; id -u; id -g; id -G; id -un; groups; whoami; logname > /dev/null 2>&1; echo $?; uname -s; uname -m; uname -o; nproc > /dev/null; echo $?; arch
env -i A=1 B=2 env | sort; env -u HOME sh -c 'echo ${HOME-unset}'; printenv LANG TZ TERM; printenv NOSUCH; echo $?; env -C / pwd; env -S 'printf %s-%s a b'; echo
nice -n 3 nice; nice; timeout 5 echo in time; timeout 0.1 sleep 5; echo $?; timeout --preserve-status -s INT 0.1 sleep 5; echo $?; sleep 0.01 0.01; nohup echo hup 2> /dev/null; stdbuf -oL echo buffered; chroot 2>&1 | head -n 1
date -u -d '2024-02-29 12:00 + 1 year' +%F; date -u -d @1700000000 +'%a %b %e %T %Y %j %U'; TZ=Asia/Tokyo date -d @0 +%c; date -u -d 'next monday' +%A; date --iso-8601 -u -d @0; date -d nonsense 2>&1; date -u -r /dev/null > /dev/null; echo $?
tty; stty 2>&1; test -t 0; echo $?; users | wc -w; who | wc -l; hostid > /dev/null; echo $?; uptime > /dev/null 2>&1; runcon 2>&1 | head -n 1; 
kill -l 9; kill -l TERM; sleep 30 & kill $!; wait $!; echo $?; kill -0 1 2>&1 > /dev/null | wc -l | tr 01 xx; mkdir -p q; cd q; pwd -P | sed 's|.*/||'; cd ..; factor 18446744073709551557
[ "$(hostname)" = "$(uname -n)" ] && echo hostname; [ "$(cat /proc/sys/kernel/hostname)" = "$(hostname)" ] && echo the same in proc; getconf PAGESIZE; getconf ARG_MAX > /dev/null && echo arg_max; getconf _NPROCESSORS_ONLN > /dev/null && echo online
ls /proc/self/fd | wc -l; cat /proc/self/comm; tr '\0' ' ' < /proc/self/cmdline; echo; head -c 0 /dev/zero; wc -c < /dev/null; head -c 10 /dev/zero | od -An -tx1; echo x > /dev/full; echo $?; cat /dev/null; head -c 16 /dev/urandom | wc -c; [ -c /dev/tty ] && echo tty; ls -l /dev/fd /dev/stdin | sed 's/.*\/dev/\/dev/'
