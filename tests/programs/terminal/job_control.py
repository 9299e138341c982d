#!/usr/bin/python3
# needs: /usr/bin/python3 bash
# run: outside smoke
# bash with job control: ^C, ^Z, fg, bg, jobs, background reads, ^\, ^D.
from terminal import Shell
t = Shell()
t.command("ulimit -c 0; tty > /dev/null && echo a terminal")
t.send("sh -c 'echo ready; cat'\n"); t.ready(); t.send("hello\n"); t.expect(r"hello\r\nhello\r\n"); t.send("\x04"); t.prompt()
t.send("sh -c 'echo ready; sleep 100'\n"); t.ready(); t.send("\x03"); t.prompt(); t.command("echo status $?")
t.send("sh -c 'echo ready; sleep 100; echo woken'\n"); t.ready(); t.send("\x1a"); t.prompt(); t.command("echo status $?")
t.command("jobs"); t.command("bg"); t.command("jobs"); t.send("fg\n"); t.expect("sleep 100; echo woken'\r\n"); t.quiet(); t.send("\x1a"); t.prompt(); t.command("kill -9 %1; sleep 0.5"); t.command("jobs")
t.send("sh -c 'echo ready; sleep 100' | cat\n"); t.ready(); t.send("\x1a"); t.prompt(); t.command("jobs"); t.send("fg\n"); t.expect("\r\n"); t.quiet(); t.send("\x03"); t.prompt(); t.command("echo status $?")
t.send("sh -c 'echo ready; sleep 100'\n"); t.ready(); t.send("\x1c"); t.prompt(); t.command("echo status $?")
t.send("sh -c 'trap \"echo caught; exit 5\" INT; echo ready; while :; do sleep 0.1; done'\n"); t.ready(); t.send("\x03"); t.expect("caught"); t.prompt(); t.command("echo status $?")
t.send("sh -c 'trap \"\" INT; echo ready; read x; echo got $x'\n"); t.ready(); t.send("\x03"); t.expect(r"\^C"); t.send("line\n"); t.expect("got line"); t.prompt()
t.command("cat & sleep 0.7"); t.command("jobs"); t.send("fg\n"); t.expect("cat\r\n"); t.send("to cat\n"); t.expect("to cat\r\nto cat\r\n"); t.send("\x04"); t.prompt()
t.command("set -b; (sleep 0.3) & wait"); t.quiet(0.5)
t.command("stty tostop; (sleep 0.2; echo from behind) & sleep 0.7; jobs | grep -c output; stty -tostop; kill -CONT %1; sleep 0.5")
t.command("echo after")
t.send("exit 7\n"); print("exit", t.wait()); print("restored", t.restored()); print(t.transcript())
