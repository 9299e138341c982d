#!/bin/bash
# run: smoke
a=(one two "three four" [7]=seven)
declare -p a
echo "${#a[@]} ${!a[*]} ${a[-1]}"
a+=(eight); unset 'a[1]'
printf '<%s>' "${a[@]}"; echo
declare -A m=([red]=1 [green]=2)
m[blue]=3
for k in "${!m[@]}"; do echo "$k=${m[$k]}"; done | sort
mapfile -t lines < <(printf 'x\ny\nz\n')
echo "${lines[@]: -2}" "${lines[@]/y/Y}"
echo "${a[@]:1:2}"
read -ra words <<< "a b  c"
echo "${#words[@]}"
