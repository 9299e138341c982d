#!/bin/bash
# run: smoke
echo one two three | tr ' ' '\n' | sort | while read -r w; do echo "[$w]"; done
true | false | true; echo "${PIPESTATUS[@]}"
set -o pipefail; true | exit 3 | true; echo $?; set +o pipefail
seq 1 100000 | wc -l
yes | head -n 3
seq 1 50000 | (head -n 1; echo rest >&2) 2>&1
seq 1 200000 | tail -n 1
cat /dev/zero | head -c 3000000 | wc -c
(exec 3>&1; echo to three >&3 | cat) 
shopt -s lastpipe; echo last | read -r v; echo "v=$v"
for i in 1 2 3 4 5; do echo $i; done | (read -r a; read -r b; echo "$a$b"; cat)
bash -c 'yes >/dev/full' 2>&1 | sed 's/^.*: //' ; echo "${PIPESTATUS[0]}"
bash -c 'trap "" PIPE; seq 1 100000' 2>&1 | true; echo "${PIPESTATUS[1]}"
{ sleep 0.1; echo late; } | cat
