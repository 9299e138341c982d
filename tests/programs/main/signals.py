#!/usr/bin/python3
# needs: /usr/bin/python3
# run: outside smoke
# SIGTERM and SIGHUP to umlaut reach the program; its end is umlaut's.
import os, shlex, signal, subprocess as sp, time
run = shlex.split(os.environ["RUN"])
def start(script):
    p = sp.Popen(run + ["sh", "-c", script], stdout=sp.PIPE, text=True); assert p.stdout.readline() == "ready\n"; return p
def end(p):
    try: out = p.communicate(timeout=20)[0]
    except sp.TimeoutExpired: p.kill(); return "still running"
    return p.returncode if p.returncode >= 0 else 128 - p.returncode, out
for s in (signal.SIGTERM, signal.SIGHUP):
    p = start("trap 'echo got it; exit 5' TERM HUP; echo ready; while :; do sleep 0.1; done"); p.send_signal(s); print(s.name, "caught", end(p))
    p = start("echo ready; exec sleep 100"); p.send_signal(s); print(s.name, "default", end(p))
p = start("trap 'echo again' TERM; echo ready; n=0; while [ $n -lt 15 ]; do sleep 0.1; n=$((n+1)); done; exit 3"); p.send_signal(signal.SIGTERM); print("goes on", end(p))
p = start("echo ready; exec sleep 100"); p.kill(); p.wait(); print("killed", p.returncode)
