#!/bin/bash
# run: smoke
diff <(printf '1\n2\n3\n') <(printf '1\n3\n'); echo $?
cat <(echo a) <(echo b) <(cat <(echo c))
tee >(tr a-z A-Z > upper) >(wc -c > count) < <(echo hello) > /dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do [ -s upper ] && [ -s count ] && break; sleep 0.1; done
cat upper count
comm -12 <(seq 1 10) <(seq 5 15) 2> /dev/null
paste <(seq 3) <(seq 4 6) <(seq 7 9)
while read -r line; do echo "got $line"; done < <(seq 3)
[ -p <(true) ] && echo a pipe
exec 7< <(echo kept); read -r k <&7; echo "$k"
