#!/bin/bash
# run: outside smoke
# Pipes and files pass through, binary-clean, both ways, with their ends.
head -c 3000000 /dev/urandom > in; $RUN cat < in > out; cmp in out && echo file; cat in | $RUN cat | cmp - in && echo pipe; $RUN cat in | cmp - in && echo argument
for b in '\0' '\xff' '\x03' '\x04' '\x1a' '\r\n' '\x13\x11'; do printf "a${b}b" | $RUN od -An -c; done
printf 'no newline' | $RUN cat; echo; : | $RUN wc -c; $RUN wc -c < /dev/null; $RUN sh -c 'echo out; echo err >&2' 2> e > o; cat o e; $RUN sh -c 'echo out; echo err >&2' 2>&1 | sort
$RUN yes | head -n 2; echo "${PIPESTATUS[@]}" ; $RUN sh -c 'echo x' > /dev/full 2> /dev/null; echo $?; seq 1 5 | (read a; $RUN cat; echo "$a"); printf '1\n2\n3\n' > l; { head -n 1 > /dev/null; $RUN cat; } < l | wc -l; exec 3< l; $RUN sh -c 'read x; echo $x' <&3; read y <&3; echo "$y"; echo start > app; $RUN sh -c 'echo more; echo end' >> app; cat app; { $RUN echo one; echo two; $RUN echo three; } > seq; cat seq; $RUN sh -c 'echo a; echo b >&2; echo c' > both 2>&1; cat both
$RUN sh -c 'test -t 0; echo $?; test -t 1; echo $?; test -p /dev/stdin; echo $?; stat -L -c %F /dev/stdin /dev/stdout' < /dev/null | cat; mkfifo p; (echo through a fifo > p) & $RUN cat < p; (sleep 0.3; echo late) | $RUN cat; (echo early; sleep 0.5; echo later) | $RUN head -n 1; for i in 1 2 3 4 5; do echo $i | $RUN cat; done | $RUN sort -r | tr '\n' ' '; echo
$RUN dd bs=1M count=20 if=/dev/zero status=none | wc -c; head -c 20000000 /dev/zero | $RUN wc -c; $RUN sh -c 'exec 1>&-; sleep 0.5' | cat; echo closed early; read -t 5 x < <($RUN sh -c 'echo now; sleep 1'); echo $x
