#!/bin/bash
# run: outside check smoke
# Core files by core_pattern and core_uses_pid, which root inside may set; gdb reads one, where there is gdb.
U="$UMLAUT run --platform $PLATFORM --bind $PWD:/here --workdir /here"
bad=0; fail() { bad=1; echo "$*"; }
crash='ulimit -c unlimited; sh -c '\''kill -QUIT $$'\'' 2> /dev/null; echo $?'
$U -- sh -c "echo 'made.%e.%s.%p' > /proc/sys/kernel/core_pattern; cat /proc/sys/kernel/core_pattern; $crash" > out 2>&1
[ "$(head -1 out)" = made.%e.%s.%p ] || fail "core_pattern: $(cat out)"
ls made.sh.3.* > /dev/null || fail "no core by the pattern: $(ls) $(cat out)"
$U -- sh -c "echo 1 > /proc/sys/kernel/core_uses_pid; $crash" > out 2>&1; ls core.[0-9]* > /dev/null || fail "core_uses_pid: $(ls)"
$U -- sh -c "mkdir /tmp/c; echo /tmp/c/%u > /proc/sys/kernel/core_pattern; $crash; stat -c '%a %s' /tmp/c/0" > out 2>&1; grep -q '^600 [1-9]' out || fail "absolute: $(cat out)"
$U -- sh -c "echo '|/bin/cat' > /proc/sys/kernel/core_pattern" 2> /dev/null && fail "a program is accepted"
$U --user 1000 -- sh -c "echo x > /proc/sys/kernel/core_pattern" 2> /dev/null && fail "a user may set it"
if command -v gdb > /dev/null && command -v gcc > /dev/null; then
    printf 'int sum; __attribute__((noinline)) void inner(int *p) { *p = 1; sum++; }\n__attribute__((noinline)) void outer(void) { sum = 41; inner((int *)16); sum++; }\nint main(void) { outer(); return sum; }\n' > crash.c
    gcc -g -O0 crash.c -o crash && $U -- sh -c 'ulimit -c unlimited; ./crash' > out 2>&1
    gdb -q -batch -ex bt -ex 'print sum' crash core > out 2>&1
    for want in 'inner (p=0x10)' 'outer ()' 'main ()' ' = 41' 'SIGSEGV'; do grep -qF "$want" out || fail "gdb: no $want in $(cat out)"; done
fi
exit $bad
