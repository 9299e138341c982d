#!/bin/bash
# needs: ps
# run: outside check smoke
# The first thing that anybody tries.
out=$($RUN sh -c 'uname -a; ps aux') || { echo "status $?"; exit 1; }
echo "$out"
echo "$out" | head -n 1 | grep -q '^Linux .*x86_64' || exit 1
[ "$(echo "$out" | wc -l)" -le 5 ] && echo "$out" | grep -q 'ps aux' || exit 1
