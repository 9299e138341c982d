#!/bin/bash
# run: outside check
# umlaut stat and umlaut ps: a running kernel seen from outside, by its own user only, and nothing left of it.
bad=0
fail() { bad=1; echo "$*"; }
socket() { grep -o "@umlaut/$(id -u)/$(cat /proc/$run/task/$run/children 2> /dev/null | tr -d ' ')\$" /proc/net/unix; }
mkfifo hold; exec 9<> hold
$UMLAUT run --platform $PLATFORM -- sh -c 'echo up; read line; exit 3' < hold > out & run=$!
until grep -q up out; do kill -0 $run || exit 1; sleep 0.1; done
$UMLAUT ps | grep -qE "^ *$run +[0-9]+ +[0-9]+ +1 $PLATFORM +sh\$" || fail "ps: $($UMLAUT ps)"
$UMLAUT ps $run | grep -qE '^ +2 +1 +1 [RS] sh$' || fail "ps $run: $($UMLAUT ps $run)"
$UMLAUT stat $run --all > all
[ "$(awk '$1 == "call.read.kernel" { print $2 }' all)" -ge 1 ] && [ "$(tail -1 all)" = end ] || fail "stat --all"
$UMLAUT stat $run | tail -1 | grep -qE '^ +1( +[0-9]+k?){3} ' || fail "stat: $($UMLAUT stat $run)"
[ "$($UMLAUT stat $run --interval 0.05 --count 3 | wc -l)" = 5 ] || fail "stat --interval: not three lines below a head"
$UMLAUT stat 1 2> message; [ $? = 125 ] && grep -q 'umlaut ps' message || fail "stat of no kernel: $(cat message)"
name=$(socket); [ -n "$name" ] || fail "no socket"
if [ "$(id -u)" = 0 ] && [ -x /usr/bin/perl ]; then
    # (The name follows a zero byte, and is as long as it is.)
    cat > ask.pl <<'PERL'
use Socket;
socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
connect($s, pack('S', AF_UNIX) . "\0" . $ARGV[0]) or die "connect: $!";
local $/; my $text = <$s>; print length($text // '');
PERL
    [ "$(perl ask.pl ${name#@})" -gt 500 ] || fail "root is told nothing"
    got=$(setpriv --reuid 65534 --regid 65534 --clear-groups perl - ${name#@} < ask.pl); [ "$got" = 0 ] || fail "another user is told $got bytes"
fi
echo >&9; exec 9>&-
wait $run; [ $? = 3 ] || fail "its status"
grep -q "${name:-none}\$" /proc/net/unix && fail "the socket is left"
exit $bad
