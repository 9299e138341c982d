#!/bin/bash
# Amounts: big files, many files, deep trees, long names.
head -c 20000000 /dev/zero | tr '\0' '\1' > big; cp big big2; cmp big big2 && echo equal; sha256sum big; rm big big2
mkdir many; cd many; seq 1 2000 | xargs touch; ls | wc -l; ls -f | wc -l; ls | sort -n | tail -n 1; find . -type f | wc -l; rm -f 1*; ls | wc -l; cd ..; rm -r many
p=deep; for i in {1..60}; do p=$p/directory$i; done; mkdir -p $p; echo bottom > $p/f; cat $p/f; find deep | wc -l; rm -r deep
n=$(printf 'x%.0s' {1..255}); touch $n; ls | wc -L; touch ${n}y 2>&1 | grep -o 'File name too long'; rm $n
truncate -s 8T sparse; stat -c '%s' sparse; echo end | dd of=sparse bs=1 seek=8796093022203 conv=notrunc status=none; tail -c 4 sparse; [ $(stat -c %b sparse) -lt 1000 ] && echo sparse
seq 1 300000 > s; wc s; tail -n 1 s; tac s | head -n 1; split -n 4 s x.; cat x.?? | cmp - s && echo joined; sort -rn s | head -n 1; shuf s | sort -n | cmp - s && echo shuffled
/bin/echo $(seq 1 30000) | wc -w; /bin/echo "$(head -c 131000 /dev/zero | tr '\0' a)" | wc -c; /bin/echo "$(head -c 140000 /dev/zero | tr '\0' a)" 2>&1 | sed 's/.*: //'
