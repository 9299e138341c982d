#!/usr/bin/python3
# needs: /usr/bin/python3 ps
# run: outside check
# A second SIGTERM ends umlaut though the program ignores it; nothing stays behind.
import os, signal, subprocess as sp, sys, time
run = os.environ["RUN"].split()
def tree(pid):
    found = [pid]
    for parent in found: found += [int(x) for x in sp.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True).stdout.split()]
    return found
def alive(pids):
    left = []
    for pid in pids:
        try:
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            # PF_EXITING: the init of a pid namespace is gone when all in it are reaped, by whoever inherits them.
            if state[0] not in "ZX" and not int(state[6]) & 4: left.append(pid)
        except OSError: pass
    return left
def start(script):
    p = sp.Popen(run + ["sh", "-c", script], stdout=sp.PIPE, text=True); assert p.stdout.readline() == "ready\n"; return p, tree(p.pid)
def gone(p, pids, what):
    try: p.wait(20)
    except sp.TimeoutExpired: print(what, "umlaut still runs"); sys.exit(1)
    for _ in range(50):
        if not alive(pids): return
        time.sleep(0.1)
    print(what, "left behind:", sp.run(["ps", "-fp", ",".join(map(str, alive(pids)))], capture_output=True, text=True).stdout); sys.exit(1)
family = "trap '' TERM HUP; (trap '' TERM HUP; sleep 1000; sleep 1000) & setsid sleep 1000 & echo ready; while :; do sleep 1; done"
p, pids = start(family); p.terminate(); time.sleep(0.5); p.terminate(); gone(p, pids, "second SIGTERM:")
for victim in ("supervisor", "kernel", "both"):
    p, pids = start(family)
    if len(pids) < 4: print("too few processes:", pids); sys.exit(1)
    for pid in {"supervisor": pids[:1], "kernel": pids[1:2], "both": pids[:2]}[victim]: os.kill(pid, signal.SIGKILL)
    gone(p, pids, f"kill -9 of {victim}:")
