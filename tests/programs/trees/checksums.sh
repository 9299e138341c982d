#!/bin/bash
# run: timeout=300
# File contents and metadata of system trees agree with the host's.
cd /usr/lib/x86_64-linux-gnu/gconv 2> /dev/null || cd /usr/share
find . -type f -exec cat {} + 2> /dev/null | sha256sum
for d in /usr/include /usr/share/perl5 /usr/share/zoneinfo /etc/default /bin/ /opt; do
    [ -d $d ] || continue
    echo "$d $(find $d -type f -perm -o+r 2> /dev/null | wc -l)"
    find $d -type f -perm -o+r -print0 2> /dev/null | sort -z | head -z -n 400 | xargs -0 cat 2> /dev/null | sha256sum
    find $d -perm -o+r -printf '%P %y %m %s %T@ %l %n %U %G\n' 2> /dev/null | LC_ALL=C sort | awk '$2 != "d"' | sha256sum
done
ls -f /usr/bin | sort | sha256sum; stat -c '%n %s %Y %a' /usr/bin/* | sha256sum; md5sum /etc/passwd /etc/group /etc/os-release; cat /etc/ld.so.cache | sha256sum; ls -la /lib /lib64 /sbin | sed 's/ \+/ /g' | cut -d' ' -f1,5- | sha256sum
