#!/bin/bash
# run: outside smoke
# The exit status is the program's, 128 + n for a signal; arguments and streams pass unchanged.
exec 2> /dev/null
for n in 0 1 2 77 126 127 128 255; do $RUN sh -c "exit $n"; echo "exit $?"; done
for s in HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM RTMIN RTMAX; do $RUN sh -c "ulimit -c 0; kill -$s \$\$; sleep 5"; echo "$s $?"; done
$RUN true; echo $?; $RUN false; echo $?; $RUN printf '<%s>' a 'b c' '' '-x' '--' '*' $'new\nline' 'ü'; echo
$RUN env -i sh -c 'echo $#; echo "$0"' zero; $RUN sh -c 'echo "$@"' -- --help --version; $RUN -- 2> /dev/null > /dev/null; echo $(( $? != 0 ))
$RUN sh -c 'sleep 0.3; exit 4' & wait $!; echo "in the background $?"
$RUN bash -c 'exec -a other sh -c "echo \$0; exit 9"'; echo $?
