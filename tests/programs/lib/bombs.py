"""Bombs inside umlaut (lib/bombs.c), watched from outside: the kernel stays small and leaves nothing behind.

A test calls bombs() with (name, size, options) of each. umlaut runs with few descriptors, so that its own limits are
near and a run is quick; with FULL in the environment sizes are multiplied.
"""
import os, resource, shlex, subprocess, sys, time

FULL = bool(os.environ.get("FULL"))
PATIENCE = 240 * int(os.environ.get("PATIENCE", 1))  # seconds
PROGRAM = os.path.abspath("bombs")


def build():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bombs.c")
    subprocess.run(["gcc", "-O1", "-pthread", "-static", source, "-o", PROGRAM], check=True)
    os.chmod(PROGRAM, 0o755)


def stat_of(pid):
    """Parent, start time and name, or None."""
    try:
        text = open(f"/proc/{pid}/stat").read()
    except OSError:
        return None
    head, tail = text.rsplit(")", 1)
    fields = tail.split()
    return (int(fields[1]), fields[19], head.split("(", 1)[1]) if fields[0] not in "ZX" else None


def children(pid):
    try:
        return [int(child) for task in os.listdir(f"/proc/{pid}/task")
                for child in open(f"/proc/{pid}/task/{task}/children").read().split()]
    except OSError:
        return []


def rss(pid):
    """KiB of memory of its own."""
    try:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def run(name, size, options, most_mib, descriptors, uid):
    argv = [os.environ["UMLAUT"], "run", "--platform", os.environ["PLATFORM"]] + shlex.split(options)
    argv += ["--", PROGRAM, name, str(size)] + ([str(uid)] if uid else [])
    limits = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    umlaut = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=limits)
    seen, most, deadline = {}, 0, time.monotonic() + PATIENCE
    while umlaut.poll() is None and time.monotonic() < deadline:
        # A guest process whose kernel is gone is umlaut's child too, until it is dead.
        for kernel in (child for child in children(umlaut.pid) if (stat_of(child) or (0, 0, ""))[2] == "umlaut"):
            most = max(most, rss(kernel))
            for guest in [kernel] + children(kernel):
                stat = stat_of(guest)
                if stat:
                    seen[guest] = stat[1]
        time.sleep(0.05)
    wrong = []
    if umlaut.poll() is None:
        umlaut.kill()
        wrong.append("still running")
    out = umlaut.communicate()[0]
    if umlaut.returncode != 0:
        wrong.append(f"status {umlaut.returncode}")
    if most > most_mib << 10:
        wrong.append(f"the kernel grew to {most} KiB")
    time.sleep(0.1)
    left = [pid for pid, start in seen.items() if (stat_of(pid) or (0, 0))[1] == start]
    if left:
        wrong.append(f"left behind: {left}")
    print(f"{out.rstrip()}  [kernel {most} KiB, {len(seen)} processes seen]" + "".join(f"\n  WRONG: {w}" for w in wrong), flush=True)
    return not wrong


def bombs(*list_of):
    """Each (name, size, how) with how: options, most (MiB of the kernel), descriptors, full (size with FULL), uid."""
    build()
    wanted = sys.argv[1:]
    good = True
    for name, size, how in list_of:
        if wanted and name not in wanted:
            continue
        size = how.get("full", size) if FULL else size
        good &= run(name, size, how.get("options", ""), how.get("most", 48), how.get("descriptors", 2000), how.get("uid"))
    sys.exit(0 if good else 1)
