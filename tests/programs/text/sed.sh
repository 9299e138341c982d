#!/bin/bash
# run: smoke
seq 1 10 > n
sed -n 3p n; sed '2,9d' n; sed 's/1/X/;s/X0/Y/' n; sed -n '/5/,/7/p' n; sed '$!d' n; sed -e '1i\first' -e '$a\last' n; sed 'y/123/abc/' n; sed -n '2{p;q}' n; sed '3q5' n; echo $?
sed -E 's/([0-9])([0-9])/\2\1/' n; sed 's/./&&/g;s/1/<&>/2' n; sed -n '$=' n; sed 'N;s/\n/+/' n; sed -n 'H;${x;s/\n/,/g;p}' n; sed 'n;d' n; sed '/5/r n' n | wc -l; sed -n '/3/w out' n; cat out
sed -i.bak 's/1/one/' n; cat n n.bak; sed -i 's/one/1/' n; cmp n n.bak; echo $?; sed -s -n '1p' n n.bak; sed -n 'l' <<< $'a\tb\001'; sed ':a;s/^\(x*\)y/\1x/;ta' <<< yyyz; sed 's/a/b/I;s/B/\U&c/' <<< A; sed --posix -n '1~3p' n; sed '0~2d' n; sed 's/x' n 2>&1; echo $?; sed -z 's/\n/;/g' n; echo; sed = n | sed 'N;s/\n/ /' | head -n 2; sed 's#/usr#&/local#' <<< /usr/bin; sed -f <(echo 's/1/Z/') n | head -n 1; sed -n '/1/!p' n; sed 'c\changed' <<< x; sed -u p <<< y; sed '1e echo executed' <<< z
