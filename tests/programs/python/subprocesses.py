#!/usr/bin/python3
# needs: /usr/bin/python3
# run: smoke
import subprocess as sp, os, sys, signal, time, shlex
print(sp.run(["echo", "hi"], capture_output=True, text=True))
print(sp.run("exit 5", shell=True).returncode, sp.call(["sh", "-c", "kill -9 $$"]), sp.run(["cat"], input=b"x" * 300000, stdout=sp.PIPE).stdout == b"x" * 300000)
try: sp.check_output(["false"])
except sp.CalledProcessError as e: print(e)
for bad in (["nosuchprogram"], ["/etc/passwd"], ["/"]):
    try: sp.run(bad)
    except OSError as e: print(type(e).__name__, e.errno)
try: sp.run(["sleep", "10"], timeout=0.2)
except sp.TimeoutExpired as e: print("timeout", e.cmd)
a = sp.Popen(["seq", "1", "1000"], stdout=sp.PIPE); b = sp.Popen(["wc", "-l"], stdin=a.stdout, stdout=sp.PIPE); a.stdout.close(); print(b.communicate()[0], a.wait())
p = sp.Popen(["sleep", "30"]); print(p.poll()); p.terminate(); print(p.wait()); p = sp.Popen(["sh", "-c", "trap 'echo caught; exit 9' INT; echo ready; while :; do sleep 0.1; done"], stdout=sp.PIPE, text=True); print(p.stdout.readline(), end=""); p.send_signal(signal.SIGINT); print(p.communicate()[0], p.returncode)
print(sp.run(["sh", "-c", "echo out; echo err >&2"], stdout=sp.PIPE, stderr=sp.STDOUT).stdout, sp.run(["env"], env={"A": "1"}, capture_output=True).stdout, sp.run(["pwd"], cwd="/usr", capture_output=True).stdout)
print(sp.run(["sh", "-c", "ps -o sid= -p $$ | tr -d ' \\n'; echo; echo $$"], capture_output=True, start_new_session=True, text=True).stdout.split("\n")[0] != "", sp.getstatusoutput("echo x; exit 2"))
r, w = os.pipe(); p = sp.Popen(["sh", "-c", f"echo through >&{w}"], pass_fds=[w]); os.close(w); print(os.read(r, 100), p.wait())
ps = [sp.Popen(["sh", "-c", f"sleep 0.0{i}; exit {i}"]) for i in range(9)]; print([p.wait() for p in ps]); print(os.system("exit 3") >> 8, os.popen("echo popen").read(), os.waitstatus_to_exitcode(os.spawnlp(os.P_WAIT, "sh", "sh", "-c", "exit 4") << 8))
pid = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 6"], os.environ); print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])); pid = os.fork()
if pid == 0: os.execlp("sh", "sh", "-c", "exit 8")
print(os.waitid(os.P_PID, pid, os.WEXITED).si_status, sp.run([sys.executable, "-c", "import sys; print(sys.argv)", "a b", ""], capture_output=True, text=True).stdout)
for i in range(60): sp.run(["true"])
