#!/bin/bash
# run: outside check
# The options of `umlaut run`.
bad=0
U="$UMLAUT run --platform $PLATFORM"
is() { local want=$1; shift; local got; got=$("$@" 2>&1 < /dev/null); [ "$got" = "$want" ] || { bad=1; echo "$*:"; echo "  got    $got"; echo "  wanted $want"; }; }
mkdir -p src root/bin root/tmp; echo data > src/f; printf 'int main(void) { return 0; }' > /dev/null
is hello $U --env WORD=hello -- sh -c 'echo $WORD'; is there $U --hostname there -- hostname; is /usr $U --workdir /usr -- pwd; is 1234:99 $U --user 1234:99 -- sh -c 'echo $(id -u):$(id -g)'; is data $U --bind $PWD/src:/mnt/src -- cat /mnt/src/f; is data $U --bind $PWD/src:/mnt/src:ro -- cat /mnt/src/f
$U --bind $PWD/src:/mnt/src:ro -- sh -c 'echo x > /mnt/src/f' 2> /dev/null && { bad=1; echo ":ro can be written"; }
$U --bind $PWD/src:/mnt/src -- sh -c 'echo new > /mnt/src/g'; [ "$(cat src/g)" = new ] || { bad=1; echo "a bind is not written through"; }
is tmpfs $U --tmpfs /mnt -- stat -f -c %T /mnt; is visible env SEEN=visible $U --env-host -- sh -c 'echo $SEEN'
if command -v busybox > /dev/null; then
    b=$(command -v busybox); if ! ldd $b > /dev/null 2>&1; then
        cp $b root/bin/busybox; ln -s busybox root/bin/sh
        is "$(printf 'bin\ntmp')" $U --root $PWD/root -- sh -c 'busybox ls / | busybox grep -vxE "dev|proc|sys|etc|run|home|root|var"'; $U --root $PWD/root -- sh -c 'echo x > /tmp/throwaway'; [ ! -e root/tmp/throwaway ] || { bad=1; echo "--root writes"; }
        $U --root $PWD/root --rw -- sh -c 'echo kept > /tmp/kept'; [ "$(cat root/tmp/kept)" = kept ] || { bad=1; echo "--rw does not write"; }
        $U --root $PWD/root --ro -- sh -c 'echo x > /tmp/y' 2> /dev/null && { bad=1; echo "--ro writes"; }
    fi
fi
$U --trace -- true 2> trace; grep -q 'openat(' trace && grep -q 'exit_group(0' trace || { bad=1; echo "--trace:"; head trace; }
$U --trace=openat -- cat /etc/hostname > /dev/null 2> trace; grep -q 'openat(AT_FDCWD, "/etc/hostname", O_RDONLY' trace && ! grep -q 'mmap(' trace || { bad=1; echo "--trace=openat:"; head trace; }
$U --trace --trace-file tf -- true 2> trace; grep -q 'openat(' tf && ! grep -q 'openat(' trace || { bad=1; echo "--trace-file"; }
$U --stats -- true 2> stats; [ -s stats ] || { bad=1; echo "--stats says nothing"; }
for o in --eager-registers --no-batch --no-placement; do is ok $U $o -- sh -c 'echo ok'; done
is ok $UMLAUT run -- sh -c 'echo ok'; is ok $UMLAUT run sh -c 'echo ok'; is ok $UMLAUT run --platform auto sh -c 'echo ok'
exit $bad
