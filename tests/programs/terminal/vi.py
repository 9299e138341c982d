#!/usr/bin/python3
# needs: /usr/bin/python3 vi
# run: outside
from terminal import Terminal
open("text", "w").write("".join(f"line {n}\n" for n in range(1, 61)))
t = Terminal(["vi", "-u", "NONE", "-N", "-i", "NONE", "text"]); t.expect("line 20", True); t.quiet(0.5); print(t.screen()); print("=" * 20)
for keys in ("ihello \x1b", "dd", "p", "G", "oappended\x1b", "gg", "/line 33\n", "cwLINE\x1b", ":silent undo\n", ":%s/line 4/LINE IV/g\n", ":set number\n", "\x06", "\x02", ":split\n", ":q\n", "yyP", "3x", "~~", "Jrz", ":r !echo from a command\n"):
    t.send(keys); t.quiet(); print(t.screen()); print("=" * 20)
t.send(":!echo shell\n"); t.expect("shell", True); t.quiet(); t.send("\n"); t.quiet(); t.send(":w! out\n"); t.expect("written", True); t.send(":q!\n"); print(t.wait(), t.restored())
t = Terminal(["sh", "-c", "vi -u NONE -N -i NONE new && cat new"]); t.quiet(0.7); t.send("ifirst\nsecond\x1b:wq\n"); print(t.wait(), t.restored()); print(t.screen().split("\n")[-3:])
