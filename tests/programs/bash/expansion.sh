#!/bin/bash
v=Hello.World.txt
echo ${v%.*} ${v%%.*} ${v#*.} ${v##*.} ${v/World/There} ${v^^} ${v,,} ${v:2:3} ${#v} ${none:-default}
echo {a..e} {1..10..3} x{1,2,{3,4}}y
mkdir d; touch d/{a,b,c}.txt d/.hidden d/Ω
echo d/*; shopt -s dotglob nullglob; echo d/* d/*.none; shopt -u dotglob
shopt -s extglob globstar
echo d/!(a*) ; mkdir -p d/x/y; touch d/x/y/deep; echo **/deep
echo $((2**40 % 1000)) $((0x1f)) $((16#ff)) $(( 7 / 2 )) $(( -7 % 3 ))
printf '%05d|%-5s|%x|%q\n' 42 ab 255 "a b'c"
[[ abc123 =~ ^([a-z]+)([0-9]+)$ ]] && echo "${BASH_REMATCH[@]}"
IFS=: read -r a b c <<< "x:y:z"; echo "$c$b$a"
set -- "a b" c; for x; do echo "<$x>"; done; echo "$*" $#
echo ~root ~nosuchuser
echo "${!v@}" "${v@Q}"
case $v in *.txt) echo text ;;& Hello*) echo greeting ;; esac
select_=$(printf '%s\n' "${PIPESTATUS[@]}"); echo $select_
