#!/usr/bin/python3
# needs: /usr/bin/python3 bash
# run: outside smoke
from terminal import Shell
t = Shell(rows=24, columns=80)
t.command("stty size")
t.resize(40, 120); t.quiet(); t.command("stty size")
t.command("trap 'echo winch; stty size' WINCH")
t.resize(30, 100); t.quiet(0.5); t.command(":"); t.command("echo $LINES $COLUMNS")
t.send("sh -c 'trap \"echo inner\" WINCH; echo ready; sleep 0.2; while ! read x; do :; done; stty size'\n"); t.ready(); t.resize(25, 90); t.quiet(1); t.send("\n"); t.prompt()
t.command("python3 -c 'import os; print(os.get_terminal_size())'"); t.command("stty rows 10 columns 20; stty size"); t.send("exit\n"); print(t.wait()); print("restored", t.restored()); print(t.transcript())
