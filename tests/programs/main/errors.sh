#!/bin/bash
# run: outside check smoke
# What is wrong is said on standard error, with a status as a shell gives it, and without a panic.
bad=0
try() { # status, pattern, command…
    local status=$1 pattern=$2; shift 2
    "$@" > out 2> err < /dev/null; local got=$?
    if [ $got != "$status" ] || ! grep -qiE -- "$pattern" err || grep -qE 'panicked|RUST_BACKTRACE' err; then
        bad=1; echo "$*: status $got, wanted $status and /$pattern/:"; cat err
    fi
}
try 127 'nosuchprogram.*not found|no such' $RUN nosuchprogram
try 127 'no such file|not found' $RUN /nonexistent/program
echo text > plain; try 126 'permission|not executable' $RUN ./plain
chmod +x plain; printf '\x7fELF\x02\x01\x01garbage' > elf; chmod +x elf; try 126 'exec format|not.*(executable|elf)|format' $RUN ./elf
mkdir dir; try 126 'directory|permission' $RUN ./dir
printf '#!/nonexistent/interpreter\n' > script; chmod +x script; try 127 'interpreter|no such' $RUN ./script
cp /bin/true arm; printf '\xb7' | dd of=arm bs=1 seek=18 conv=notrunc status=none; try 126 'architecture|aarch64|format|machine' $RUN ./arm
try 125 'usage|try|--help' $UMLAUT run --nosuchoption
try 125 'platform|possible values' $UMLAUT run --platform nosuch -- true
$UMLAUT --help > out 2>&1 || { bad=1; echo "--help failed"; }; grep -q run out || { bad=1; echo "--help does not teach run"; cat out; }
$UMLAUT run --help > out 2>&1 || { bad=1; echo "run --help failed"; }; grep -q -- --root out || { bad=1; echo "run --help does not tell of --root"; }
$UMLAUT check > out 2>&1; grep -qi sysemu out || { bad=1; echo "check does not tell of sysemu"; cat out; }
$UMLAUT --version | grep -qi umlaut || { bad=1; echo "--version"; }
$UMLAUT run --platform $PLATFORM --root /nonexistent -- true > out 2> err; [ $? != 0 ] && grep -qi '/nonexistent' err || { bad=1; echo "--root /nonexistent:"; cat err; }
exit $bad
