#!/usr/bin/python3
# needs: /usr/bin/python3 less
# run: outside
from terminal import Terminal
open("text", "w").write("".join(f"line {n}\n" for n in range(1, 201)))
t = Terminal(["less", "text"]); t.expect("line 23", True); t.quiet(); print(t.screen()); print("=" * 20)
for keys, wanted in ((" ", "line 46"), ("b", "line 1$"), ("G", "line 200"), ("g", "line 1$"), ("/line 77\n", "line 77"), ("n", "line 77"), ("50%", "line 107$"), ("j", "line 108$"), ("=", "text"), ("-N\n", "line"), ("h", "SUMMARY"), ("q", "line"), ("!echo from a shell\n", "from a shell"), ("\n", "line"), ("v", None)):
    if wanted is None: continue
    t.send(keys); t.quiet(); t.expect(wanted, True); print(t.screen()); print("=" * 20)
t.resize(12, 60); t.quiet(0.5); t.send("r"); t.quiet(); print(t.screen()); t.send("q"); print(t.wait(), t.restored())
t = Terminal(["sh", "-c", "seq 1 1000 | less"]); t.expect("^23$", True); t.quiet(); t.send("G"); t.expect("^1000$", True); t.quiet(); print(t.screen()); t.send("q"); print(t.wait(), t.restored())
t = Terminal(["sh", "-c", "(seq 1 10; sleep 100) | less"]); t.expect("^10$", True); t.send("F"); t.quiet(); t.send("\x03"); t.quiet(); t.send("q"); t.quiet(); print(t.screen()); t.send("\x03"); print(t.wait() in (0, 130, 2), t.restored())
