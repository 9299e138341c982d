#!/usr/bin/python3
# needs: /usr/bin/python3 bash
# run: outside smoke
# umlaut as a job of the user's bash: &, fg, bg, ^Z, redirected output, pipelines, nohup.
import os, re, signal, termios, time
from terminal import Shell
RUN = os.environ.get("RUN", "").strip()
COOKED = termios.ICANON | termios.ECHO | termios.ISIG
class Jobs(Shell):
    def __init__(self): super().__init__(run=[]); self.command("set +H; RUN=" + repr(RUN)); self.command("stty -tostop")
    def state(self, job=1):
        """What bash says of a job, once it says something else than Running or is patient no more."""
        return self.until(f"jobs %{job} 2>&1", r"(Running|Stopped|Done|Exit \d+|Killed|Hangup|no such job)")
    def until(self, command, pattern):
        self.send(command + "\n"); self.expect(r"\r\n"); found = self.expect(pattern); self.prompt(); return found.group(1)
    def becomes(self, what, job=1):
        for _ in range(300):
            now = self.state(job)
            # bash forgets a job once it has said Done at a prompt.
            if now == what or (what, now) == ("Done", "no such job"): return what
            time.sleep(0.1)
        return f"{now}, not {what}"
    def cooked(self): return bool(termios.tcgetattr(self.master)[3] & termios.ICANON)
    def taken(self):
        """Waits until the job has the terminal: inside umlaut it is raw then, natively bash's line editing is off."""
        for _ in range(300):
            mode = termios.tcgetattr(self.master)[3]
            if (not mode & COOKED) if RUN else mode & termios.ICANON and mode & termios.ECHO: return
            time.sleep(0.1)
        self.give_up("the job did not take the terminal")
    def fg(self, job=1): self.send(f"fg %{job}\n"); self.expect(r"\r\n"); self.expect(r"\r\n"); self.taken()
    def left(self): self.send("exit\n"); self.wait(); return self.restored()

t = Jobs()
t.command("$RUN cat &"); print("cat &:", t.becomes("Stopped"))
t.fg(); t.send("xyz\n"); t.expect(r"xyz\r\nxyz\r\n"); t.send("abc\n"); t.expect("abc\r\n"); t.expect("abc\r\n")
print("cat says it twice:", t.all.count("xyz")); t.send("\x04"); t.prompt(); print("cat ends:", t.until("echo status $?", r"(status \d+)"))

t.command("$RUN sh -c 'sleep 1; echo out' > o 2>&1 &"); print("redirected:", t.becomes("Done"), open("o").read())
t.command("$RUN sh -c 'echo one; read x; echo got $x' > o 2>&1 &"); print("reads:", t.becomes("Stopped"), open("o").read())
t.command("bg"); print("reads on:", t.becomes("Stopped")); t.fg(); t.send("a line\n"); t.prompt(); print(open("o").read())
t.command("$RUN sh -c 'stty -echo; stty echo; echo done' > o 2>&1 &"); print("stty:", t.becomes("Stopped")); t.send("fg\n"); t.expect("\r\n"); t.prompt(); print(open("o").read())
t.command("$RUN sh -c 'while ! test -e go; do sleep 0.1; done; read x; echo got $x' &"); print("runs:", t.state())
t.send("fg\n"); t.expect(r"\r\n"); t.expect(r"\r\n"); open("go", "w").close(); t.taken(); t.send("late\n"); t.expect("got late"); t.prompt()

t.send("$RUN sh -c 'echo ready; while ! test -e goes; do sleep 0.1; done; echo over'\n"); t.ready(); t.send("\x1a"); t.prompt(); print("^Z:", t.state(), "echo is", "line editing" if not t.cooked() else "cooked")
t.command("bg"); open("goes", "w").close(); t.expect("over\r\n"); print("bg:", t.becomes("Done"))
t.send("$RUN cat\n"); t.expect("\r\n"); t.taken(); t.send("first\n"); t.expect("first\r\nfirst\r\n"); t.send("\x1a"); t.prompt(); print("^Z cat:", t.state())
t.fg(); t.send("second\n"); t.expect("second\r\nsecond\r\n"); t.send("\x1a"); t.prompt(); t.command("bg"); print("bg cat:", t.becomes("Stopped"))
t.fg(); t.send("\x03"); t.prompt(); print("^C:", t.until("echo status $?", r"(status \d+)"))
t.send("$RUN sh -c 'trap \"\" TSTP; echo ready; read x; echo got $x'\n"); t.ready(); t.taken(); t.send("\x1a"); t.expect(r"\^Z"); t.send("on\n"); t.expect("got on"); t.prompt()
t.send("$RUN sh -c 'kill -STOP $$; echo woken'\n"); t.expect("\r\n"); t.prompt(); print("kill -STOP:", t.state()); t.send("fg\n"); t.expect("woken\r\n"); t.prompt()
t.send("$RUN sh -c 'echo ready >&2; sleep 100' > o\n"); t.ready(); t.send("\x1a"); t.prompt(); print("^Z redirected:", t.state()); t.send("fg\n"); t.expect("\r\n"); t.quiet(); t.send("\x03"); t.prompt(); print(t.until("echo status $?", r"(status \d+)"))
t.send("$RUN printf 'a\\nb\\n' | { cat; read x < /dev/tty; echo $x; }\n"); t.expect(r"a\r\nb\r\n"); t.quiet(); t.send("typed\n"); t.expect(r"typed\r\ntyped\r\n"); t.prompt()
print("the same terminal:", t.left())

t = Jobs()
t.command("trap '' INT QUIT USR1; $RUN grep SigIgn /proc/self/status"); print(re.findall(r"SigIgn:\s*\w+", t.all)); t.command("trap - INT QUIT USR1")
t.command("nohup $RUN sh -c 'echo ready; while ! test -e goon; do sleep 0.1; done; echo survived' > n 2>&1 < /dev/null &")
for _ in range(300):
    if os.path.exists("n") and "ready" in open("n").read(): break
    time.sleep(0.1)
t.command("kill -HUP $!"); t.command("kill -HUP $!"); time.sleep(0.5); print("nohup:", t.state()); open("goon", "w").close(); print(t.becomes("Done"), open("n").read())
print("the same terminal:", t.left())
