#!/bin/bash
v=value
cat <<A
v is $v, $(echo command), $((6 * 7))
A
cat <<'B'
v is $v, $(echo command)
B
cat <<-C
	tabs go
		all of them
	C
cat <<< "here string $v"
cat <<X; cat <<Y
first
X
second
Y
f() { cat; }; f <<Z | tr a-z A-Z
through a function
Z
while read -r a b; do echo "$b $a"; done <<L
1 2
3 4
L
big=$(head -c 200000 /dev/zero | tr '\0' x)
wc -c <<< "$big"
exec 5<<F
from descriptor five
F
cat <&5
