#!/usr/bin/python3
# needs: /usr/bin/python3
# run: outside smoke
# What the kernel's terminal does by itself: erase, kill, reprint, literal next, end of file, flow control.
from terminal import Terminal
t = Terminal(["sh", "-c", "echo ready; cat; echo end"])
t.expect("ready\r\n")
for keys in ("plain\n", "rub\x7f\x7f\x7fout\n", "kill this\x15kept\n", "two words\x17one\n", "a\x16\x03b\n", "tab\there\n", "re\x12print\n", "no newline\x04", "\n", "\x1b[A\n", "umlaut ü\x7fu\n", "x" * 300 + "\n"):
    t.send(keys); t.quiet(0.4)
t.send("\x13stopped\n"); t.quiet(0.5); before = len(t.all); t.send("\x11"); t.quiet(0.5); print(before < len(t.all)); t.send("\x04"); print(t.wait(), t.restored()); print(repr(t.all))
t = Terminal(["sh", "-c", "stty -echo; echo ready; read x; echo \"<$x>\"; stty echo -icanon min 1 time 0; head -c 3 | od -c; stty icanon; stty -icrnl; echo again; read y; echo \"<$y>\" | od -c; stty sane; stty -opost; printf 'a\\nb\\n'; stty opost olcuc; echo upper; stty -olcuc"])
t.expect("ready\r\n"); t.send("hidden\n"); t.expect("<hidden>"); t.quiet(); t.send("abc"); t.expect("again\r\n"); t.send("x\ry\n"); t.expect("UPPER\r\n"); print(t.wait()); print(repr(t.all))
t = Terminal(["sh", "-c", "stty -icanon min 0 time 3; echo ready; dd bs=10 count=1 2>/dev/null | wc -c; stty min 3 time 0; echo three; dd bs=10 count=1 2>/dev/null | wc -c; stty sane"])
t.expect("ready\r\n"); t.expect("0\r\nthree\r\n"); t.send("a"); t.quiet(); t.send("b"); t.quiet(); t.send("c"); print(t.wait()); print(repr(t.all))
