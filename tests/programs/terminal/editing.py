#!/usr/bin/python3
# needs: /usr/bin/python3 bash
# run: outside full
# readline on a raw terminal: arrows, kill and yank, history, search, completion.
from terminal import Shell
t = Shell()
t.send("echo world\x01\x1b[C\x1b[C\x1b[C\x1b[C\x1b[Chello \x05!\n"); t.prompt()
t.send("echo one two three\x17\x17four\n"); t.prompt()
t.send("\x1b[A\n"); t.prompt(); t.send("\x12world\r"); t.prompt(); t.send("xyz\x15echo cut\x19\n"); t.prompt()
t.send("echo abc\x7f\x7fd\n"); t.prompt(); t.send("ech\t tab\n"); t.prompt(); t.send("ls -d /us\t\n"); t.prompt(); t.send("history | wc -l\n"); t.prompt()
t.send("printf '%s' no-newline\n"); t.expect("no-newline\r\n"); t.expect(r"no-newline(\x1b\[\?2004.)*\r?\$ $"); t.send("echo " + "long " * 40 + "\n"); t.prompt(); t.send("read -s -p 'secret: ' s; echo; echo ${#s}\n"); t.expect("secret: "); t.send("hidden\n"); t.prompt(); t.send("read -n 1 k; echo; echo got $k\n"); t.expect(r"\r\n"); t.quiet(); t.send("x"); t.prompt(); t.send("read -t 0.2 x; echo $?\n"); t.prompt(); t.send("cd /usr; pwd\n"); t.prompt(); t.send("\x04"); print(t.wait(), t.restored()); print(t.screen())
