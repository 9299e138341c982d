#!/bin/bash
# run: smoke
x=1
( x=2; echo "in $x $BASH_SUBSHELL"; ( echo "deeper $BASH_SUBSHELL"; exit 7 ); echo "$?"; exit 5 )
echo "out $x status $?"
y=$(x=3; echo "$x"; exit 9); echo "$y $? $x"
echo "$(echo "$(echo "$(echo nested)")")"
{ echo a; echo b >&2; } 2>&1 | sort
f() { local v=$1; (( v > 0 )) && echo "$v $(f $(( v - 1 )))"; }
f 5
cd / && (cd /usr && pwd) && pwd
(exec sh -c 'echo replaced; exit 11'); echo $?
