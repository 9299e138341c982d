#!/bin/bash
# run: smoke
seq 1 12 > n; printf 'delta 4\nalpha 1\ncharlie 3\nbravo 2\n' > t; printf 'alpha x\nbravo y\n' > j
cat -A t; cat -n t; tac t; nl t; head -n 2 t; head -c 5 t; echo; tail -n 2 t; tail -c 4 t; head -n -1 t; tail -n +3 t
sort t; sort -r t; sort -k2n t; sort -R --random-source=/dev/zero t | sort -c; echo $?; sort -u t t; sort -m n n | wc -l; sort -t' ' -k2,2nr t
seq 100000 -1 1 | sort -n -S 1M --parallel=2 | md5sum
sort t > s; uniq -c s; uniq -d <(sort t t); comm s <(sort j) ; join s j; paste t n; paste -sd, n
cut -d' ' -f2 t; cut -c1-3 t; tr -d aeiou < t; tr -s ' ' '_' < t; tr '[:lower:]' '[:upper:]' < t; fold -w 4 t; fmt -w 10 t; pr -t -2 n; expand -t 4 <<< $'a\tb'; unexpand -a <<< 'a        b'
wc t; wc -lwc n t; wc -L t
split -l 5 n part-; ls part-*; cat part-ab; split -n 3 -d n p; cat p00 p01 p02 | cmp - n && echo same; csplit -s n 4 8; ls xx*
od -c t | head -n 2; od -An -tx4 -N16 n; od -Ad -td1 -w8 -N8 n; base64 <<< hello; base32 <<< hello; basenc --base16 <<< hello; base64 -d <<< aGVsbG8K
md5sum t; sha1sum t; sha224sum t; sha256sum t; sha384sum t; sha512sum t; b2sum t; cksum t; sum t; md5sum t > sums; md5sum -c sums
shuf -n 3 --random-source=/dev/zero n; tsort <<< 'a b b c a c'; factor 1234567890 97; numfmt --to=iec 123456789; seq -w 8 11; seq -s, 5; seq 0 .5 2
printf '%s|%d|%5.2f|%x|%o|%e|%c|%b|%q\n' a 1 2.5 255 8 12345.678 z 'a\tb' 'x y'; printf '%(%F)T\n' 0
expr 3 + 4; expr length abc; expr substr abcdef 2 3; expr abc : 'a\(.*\)'; echo -e 'a\tb'; echo -n x; echo
ptx <<< 'one two' | tr -s ' '; dircolors -b | wc -l; yes no | head -n 2; tee a b < t | wc -l; cmp a b && echo equal
