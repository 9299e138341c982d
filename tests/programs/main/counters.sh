#!/bin/bash
# run: outside check
# The kernel's counters: exact at the end, seen inside, with every way of counting.
bad=0
U="$UMLAUT run --platform $PLATFORM"
fail() { bad=1; echo "$*"; }
work='i=0; while [ $i -lt 10 ]; do /bin/true; i=$((i+1)); done; (exit 0) & wait; head -c 3000 /dev/zero | dd bs=1 2> /dev/null | cat > /dev/null'
for how in per-thread shared; do
    $U --counters $how --stats --trace --trace-file calls -- sh -c "$work" 2> stats
    for call in read write openat mmap; do
        traced=$(grep -cE "^(\[pid +[0-9]+\] )?$call\(" calls)
        counted=$(awk -v call=$call '$1 == call { print $2 }' stats)
        [ "$traced" = "$counted" ] || fail "$how: $call: $counted counted, $traced traced"
    done
    moved=$(awk '$1 == "bytes_in" { print $2 }' stats)
    [ "$moved" -ge 6000 ] || fail "$how: $moved bytes copied in"
    for name in tasks_made hand_overs host_calls copies_out kernel_switches_voluntary guests_switches_voluntary; do
        [ "$(awk -v name=$name '$1 == name { print $2 }' stats)" -gt 0 ] || fail "$how: $name is 0"
    done
    [ "$(awk '$1 == "tasks" { print $2 }' stats)" = 0 ] || fail "$how: tasks are left"
done
$U --counters off --stats -- sh -c "$work" 2> stats
[ "$(awk '$1 == "all" { print $2 }' stats)" = 0 ] || fail "off counts"
$U -- sh -c 'cat /proc/umlaut/stat /proc/umlaut/calls /proc/umlaut/platform > before; dd if=/dev/zero of=/dev/null bs=1 count=1000 2> /dev/null
    cat /proc/umlaut/stat /proc/umlaut/calls > after; get() { while read name value; do [ "$name" = "$1" ] && echo $value; done < $2; }
    [ $(($(get read.kernel after) - $(get read.kernel before))) -ge 1000 ] || echo "reads are not seen inside"
    [ $(($(get hand_overs after) - $(get hand_overs before))) -ge 2000 ] || echo "hand-overs are not seen inside"
    [ "$(get platform before)" = '$PLATFORM' ] && [ "$(get counters before)" = per-thread ] || echo "/proc/umlaut/platform"' > out 2>&1
[ -s out ] && { bad=1; cat out; }
exit $bad
