#!/usr/bin/python3
# needs: /usr/bin/python3
# run: outside check
# umlaut run --profile: the file parses, each task has its named track, and events on it nest and do not overlap.

import json
import os
import subprocess
import sys

WORK = """
import os, threading, time
def wait(): time.sleep(0.05)
threads = [threading.Thread(target=wait) for _ in range(3)]
[t.start() for t in threads]; [t.join() for t in threads]
os.system("trap : USR1; kill -USR1 $$; /bin/true")
"""
run = [os.environ["UMLAUT"], "run", "--platform", os.environ["PLATFORM"], "--profile", "profile.json"]
ran = subprocess.run(run + ["--", "/usr/bin/python3", "-c", WORK], stderr=subprocess.PIPE, text=True)
bad = []
if ran.returncode != 0 or ran.stderr:
    bad.append(f"status {ran.returncode}: {ran.stderr}")
with open("profile.json") as file:
    events = json.load(file)

named = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
processes = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
tracks = {}
for event in events:
    if event["ph"] != "M":
        tracks.setdefault((event["pid"], event["tid"]), []).append(event)
for track in tracks:
    if track not in named or track[0] not in processes:
        bad.append(f"track {track} has no name")
if not any(name.startswith("python3") for name in processes.values()) or "sh" not in processes.values():
    bad.append(f"processes: {processes}")
if sum(1 for pid, tid in tracks if pid != tid) != 3:
    bad.append(f"threads: {sorted(tracks)}")


def nanoseconds(text):
    return round(text * 1000)


for track, events_of_it in tracks.items():
    spans = [(nanoseconds(e["ts"]), nanoseconds(e["ts"]) + nanoseconds(e["dur"]), e) for e in events_of_it if e["ph"] == "X"]
    spans.sort(key=lambda span: (span[0], -span[1]))
    around = []
    for begin, end, event in spans:
        while around and around[-1][1] <= begin:
            around.pop()
        if around and end > around[-1][1]:
            bad.append(f"{track}: {event} overlaps {around[-1][2]}")
        if event["cat"] == "call" and around:
            bad.append(f"{track}: {event} is inside {around[-1][2]}")
        around.append((begin, end, event))
    for earlier, later in zip(spans, spans[1:]):
        if earlier[2]["cat"] == later[2]["cat"] == "call" and later[0] < earlier[1]:
            bad.append(f"{track}: two calls at once")

calls = [e for e in events if e.get("cat") == "call"]
names = {e["name"] for e in calls}
# What the stub serves by itself is no event: nobody else sees it.
wanted = {"mmap", "read", "execve", "exit_group", "kill"} | ({"futex"} if os.environ["PLATFORM"] != "stub" else set())
if not wanted <= names or any(e["args"]["place"] != "kernel" for e in calls):
    bad.append(f"calls: {names}")
for cat, name in (("hand-over", "guest"), ("hand-over", "host call"), ("wait", "wait"), ("signal", "SIGUSR1")):
    if not any(e.get("cat") == cat and e["name"] == name for e in events):
        bad.append(f"no {cat} {name}")
longest = max((e["dur"] for e in events if e.get("cat") == "wait"), default=0)
if longest < 40_000:
    bad.append(f"no wait lasts as long as the threads' sleep: {longest}")
print("\n".join(bad))
sys.exit(bool(bad))
