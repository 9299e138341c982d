#!/bin/bash
# run: smoke
trap 'echo exit $?' EXIT
trap 'echo err at $LINENO' ERR
trap 'echo got usr1' USR1
trap 'echo got term' TERM
kill -USR1 $$
false
kill -TERM $$
trap '' INT
kill -INT $$
echo survived
( trap 'echo sub exit' EXIT; kill -USR1 $BASHPID; exit 4 )
echo "sub: $?"
trap - USR1
{ ( kill -USR1 $BASHPID ); } 2> /dev/null; echo "killed: $?"
trap 'echo chld' CHLD
/bin/true
trap - CHLD
f() { trap 'echo return' RETURN; echo in f; }
f
trap
exit 3
