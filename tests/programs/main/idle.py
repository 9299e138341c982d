#!/usr/bin/python3
# needs: /usr/bin/python3 ps
# run: outside check alone
# An idle guest uses no CPU.
import os, subprocess as sp, sys, time
p = sp.Popen(os.environ["RUN"].split() + ["sh", "-c", "echo ready; sleep 100 | sleep 100"], stdout=sp.PIPE); p.stdout.readline(); time.sleep(1)
pids = [p.pid]
for x in pids: pids += [int(c) for c in sp.run(["ps", "-o", "pid=", "--ppid", str(x)], capture_output=True, text=True).stdout.split()]
def ticks(): return sum(sum(map(int, open(f"/proc/{x}/stat").read().rsplit(")", 1)[1].split()[11:13])) for x in pids)
a = ticks(); time.sleep(3); b = ticks(); p.kill(); p.wait(); print(f"{b - a} ticks in 3 s over {len(pids)} processes"); sys.exit(b - a > 3)
