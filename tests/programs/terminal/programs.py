#!/usr/bin/python3
# needs: /usr/bin/python3 bash
# run: outside
# Programs that make terminals of their own, and sessions.
from terminal import Terminal, Shell
def show(*argv):
    t = Terminal(list(argv)); print(argv, t.wait(), t.restored()); print(t.all.replace("\r\n", "\n"))
show("python3", "-c", "import pty; print(pty.spawn(['sh', '-c', 'tty > /dev/null && stty size; stty -a | grep -o echo | head -n 1; exit 3']) >> 8)")
show("python3", "-c", "import os, pty; m, s = pty.openpty(); print(os.ttyname(s)[:9]); os.write(s, b'x\\n'); print(os.read(m, 10)); os.write(m, b'typed\\n'); print(os.read(s, 10)); print(os.read(m, 10))")
show("sh", "-c", "setsid sh -c 'echo x > /dev/tty' 2>&1 | sed 's/.*: //'; echo $?")
show("sh", "-c", "echo direct > /dev/tty; ls -l /proc/self/fd/0 | grep -c pts; exec 3<> /dev/tty; echo three >&3")
show("script", "-qec", "echo in script; stty size", "/dev/null")
show("python3", "-c", "import getpass, sys; sys.stdout.write('no input\\n')")
show("clear"); show("tput", "cols"); show("reset", "-q"); show("bash", "-c", "echo -n partial; exec 1>&-; exit 9")
t = Terminal(["python3", "-q", "-c", "import readline\nwhile True:\n  try: l = input('> ')\n  except EOFError: break\n  print(l[::-1])"]); t.expect("> $"); t.send("abc\n"); t.expect("cba"); t.expect("> $"); t.send("\x1b[A\n"); t.expect("cba"); t.expect("> $"); t.send("\x04"); print(t.wait(), t.restored()); print(t.screen())
t = Terminal(["sh", "-i"]); t.expect("[$#] $"); t.send("echo $((6 * 7))\n"); t.expect("42"); t.expect("[$#] $"); t.send("exit 3\n"); print(t.wait(), t.restored())
t = Shell(); t.command("bash --norc -i -c 'echo nested; exit 3'; echo $?"); t.command("(exec < /dev/null; cat; echo none)"); t.send("su nosuchuser\n"); t.prompt(); t.send("exit\n"); print(t.wait(), t.restored())
