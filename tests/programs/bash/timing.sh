#!/bin/bash
SECONDS=0; sleep 1.1; (( SECONDS >= 1 && SECONDS < 30 )) && echo seconds
a=$EPOCHREALTIME; sleep 0.1; b=$EPOCHREALTIME; [ "${b/./}" -gt "${a/./}" ] && echo later
TIMEFORMAT='%R %U %S'; t=$( { time sleep 0.2; } 2>&1 ); set -- $t
awk -v r=$1 -v u=$2 -v s=$3 'BEGIN { print (r >= 0.2), (u < 1), (s < 1) }'
read -t 0.1 x < <(sleep 1); echo $(( $? > 128 ))
times | wc -l
printf '%(%Y)T\n' 86400
[ "$(date +%s)" -ge 1700000000 ] && echo today
TZ=America/New_York date -d @0 +%F_%H:%M
