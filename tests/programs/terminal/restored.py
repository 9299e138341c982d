#!/usr/bin/python3
# needs: /usr/bin/python3
# run: outside check smoke
# umlaut puts the user's terminal into raw mode; it must be as before however the program, or umlaut itself, ends.
import os, re, signal, subprocess, sys, time
from terminal import Terminal
bad = []
for end in ("exit 3", "stty raw -echo; exit 0", "kill -9 $$", "kill -SEGV $$", "stty raw; exec true"):
    t = Terminal(["sh", "-c", end]); t.wait()
    if not t.restored(): bad.append(end)
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGQUIT, signal.SIGINT):
    t = Terminal(["sh", "-c", "stty raw -echo; echo ready; exec sleep 100"]); t.expect("ready"); os.kill(t.pid, number); time.sleep(0.3)
    try: os.kill(t.pid, number)
    except ProcessLookupError: pass
    t.wait()
    # After SIGKILL nobody is left to restore; the user's shell does that for itself.
    if number != signal.SIGKILL and not t.restored(): bad.append(number.name)
t = Terminal(["sh", "-c", "stty raw -echo; echo ready; exec sleep 100"]); t.expect("ready")
children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(t.pid)], capture_output=True, text=True).stdout.split()
for child in children: os.kill(int(child), signal.SIGKILL)
t.wait()
if not t.restored(): bad.append("kill -9 of the kernel")
print("not restored after:", bad); sys.exit(bool(bad))
