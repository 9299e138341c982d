#!/usr/bin/python3
# needs: /usr/bin/python3 top
# run: outside
# What top shows differs; that it shows it, obeys keys and leaves the terminal well does not.
from terminal import Terminal
t = Terminal(["sh", "-c", "export HOME=/nonexistent; exec top -d 1 -p $$"]); t.expect(r"^top - \d\d:\d\d:\d\d", True); t.expect(r"^Tasks: +1 total", True); t.expect(r"^ +PID USER", True); t.expect(r"\btop$", True); print("shown")
first = t.view.lines()[0]
t.send("h"); t.expect("Help for Interactive Commands", True); print("help"); t.send("\x1b"); t.expect("PID USER", True); t.send("1"); t.expect("%Cpu0", True); print("cpus"); t.send("c"); t.expect("top -d 1", True); print("command lines")
for _ in range(40):
    if t.view.lines()[0] != first: print("goes on"); break
    t.read(0.1)
t.resize(30, 100); t.expect("PID USER", True); t.send("q"); print(t.wait(), t.restored())
