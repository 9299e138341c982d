#!/bin/bash
# run: smoke
printf 'alpha\nbeta\ngamma alpha\nDelta\n\n' > t; mkdir -p r/s; cp t r/s/u; printf 'bin\0ary alpha\n' > r/b
grep alpha t; grep -n a t; grep -c a t; grep -v a t; grep -i DELTA t; grep -w alpha t; grep -x alpha t; grep -o 'a.' t; grep -E '^(al|be)' t; grep -F a. t; echo $?; grep -P '\bal\w+' t
grep -r alpha r | sort; grep -rl alpha r | sort; grep -L alpha t r/b; grep -A1 beta t; grep -B1 beta t; grep -C1 gamma t; grep -m1 a t; grep -q alpha t; echo $?; grep nope t; echo $?; grep x nosuch 2>&1; echo $?
grep -e alpha -e beta t; grep -f <(echo beta) t; grep -H a t; grep -h a t r/s/u; grep -s a nosuch; grep --color=always alpha t; grep -z alpha r/b | tr '\0' '@'; grep -a alpha r/b | od -c | head -n 2; grep -b a t; seq 1 100000 | grep -c 7; seq 1 100000 | grep -E '(9)\1\1\1'; zgrep -c a <(gzip -c t); egrep b t 2> /dev/null; fgrep b t 2> /dev/null
