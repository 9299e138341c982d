#!/bin/bash
# needs: bc
coproc UP { while read -r line; do echo "${line^^}"; done; }
echo hello >&"${UP[1]}"; read -r answer <&"${UP[0]}"; echo "$answer"
echo again >&"${UP[1]}"; read -r answer <&"${UP[0]}"; echo "$answer"
p=$UP_PID
eval "exec ${UP[1]}>&-"
wait "$p"; echo "ended $?"
coproc bc 2> /dev/null
echo '2^10' >&"${COPROC[1]}"; read -r n <&"${COPROC[0]}"; echo "$n"
kill $COPROC_PID; wait $COPROC_PID 2> /dev/null; echo $?
