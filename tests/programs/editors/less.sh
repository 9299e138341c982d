#!/bin/bash
# needs: less
seq 1 100 | less | tail -n 1; less /etc/passwd | cmp - /etc/passwd && echo same; seq 5 | less -N -F -X; less nosuch 2>&1; echo $?; printf 'a\033[1mb\n' | less -R; echo x | more; head -c 100000 /dev/zero | tr '\0' 'x' | less -S | wc -c; LESS=-E less <(seq 3)
