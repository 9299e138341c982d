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
p = sp.Popen(run + ["cat"], stdin=sp.PIPE, stdout=sp.PIPE); p.stdin.write(b"x"); p.stdin.flush(); print(p.stdout.read(1)); p.send_signal(signal.SIGTERM); time.sleep(0.5); print("reader", end(p))
p = sp.Popen(run + ["cat", "/dev/zero"], stdout=sp.PIPE); p.stdout.read(100000); time.sleep(0.2); p.send_signal(signal.SIGTERM); p.stdout.read(); print("writer", end(p)[0])
p = sp.Popen(run + ["timeout", "0.3", "cat"], stdin=sp.PIPE, stdout=sp.PIPE); print("timed", end(p))
p = sp.Popen(run + ["python3", "-c", "import select; print(select.select([0], [], [], 0.1), flush=True); print(select.select([0], [1], [], 5)); print(select.select([0], [], [], 5)); print(input())"], stdin=sp.PIPE, stdout=sp.PIPE); print(p.stdout.readline()); time.sleep(0.5); p.stdin.write(b"late\n"); p.stdin.flush(); print(p.communicate())
a, b = __import__("socket").socketpair(); p = sp.Popen(run + ["sh", "-c", "read x; echo got $x"], stdin=a, stdout=a); time.sleep(0.3); b.send(b"by a socket\n"); print(b.recv(100), p.wait())
