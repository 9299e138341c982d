#!/bin/bash
# needs: xz bzip2
# run: smoke
seq 1 200000 > s; cp s o; ref=$(sha256sum < s)
for z in gzip bzip2 xz; do $z -k s; f=$(ls s.*); $z -t $f && echo $z ok; $z -dc $f | sha256sum; $z -l $f 2> /dev/null | wc -l; rm s; $z -d $f; cmp s o && echo restored; done
[ "$ref" = "$(gzip -9c s | gunzip -c | sha256sum)" ] && echo piped; gzip -c s > c.gz; gzip -c s >> c.gz; zcat c.gz | wc -l; zcmp c.gz c.gz; zdiff c.gz c.gz; echo $?; zcat < c.gz | head -n 1; gzip -n -c s | sha256sum; xz -T2 -c s | xz -dc | sha256sum; xz -0 -c s | xzcat | wc -c; bzip2 -1 < s | bzcat | wc -c; echo garbage > g.gz; gunzip g.gz 2>&1; echo $?; xz -d < g.gz 2>&1; echo $?; head -c 1000 c.gz > cut.gz; gzip -t cut.gz 2>&1; echo $?; gzip -r -k /nonexistent 2>&1; echo $?; touch -d @1000 s; gzip s; gzip -dN s.gz; stat -c %Y s; xzgrep -c 99 <(xz -c s); lzma -c s | xz -dc --format=lzma | wc -l
