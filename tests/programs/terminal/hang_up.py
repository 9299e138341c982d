#!/usr/bin/python3
# needs: /usr/bin/python3 bash
# run: outside
# The terminal goes away: SIGHUP to the session, end of file for those who stay.
import os, time
from terminal import Terminal, Shell
t = Terminal(["sh", "-c", "trap 'echo hup > seen; exit 4' HUP; echo ready; while :; do sleep 0.1; done"]); t.expect("ready"); os.close(t.master)
def ended(pid):
    for _ in range(300):
        p, s = os.waitpid(pid, os.WNOHANG)
        if p: return os.waitstatus_to_exitcode(s)
        time.sleep(0.1)
    os.kill(pid, 9)
    return "still running"
print(ended(t.pid))
t = Terminal(["sh", "-c", "trap '' HUP; echo ready; cat; sleep 0.2; exit 6"]); t.expect("ready"); os.close(t.master); print(ended(t.pid))
t = Shell(); t.send("sleep 1000 &\n"); t.prompt(); os.close(t.master); print(ended(t.pid) != "still running")
