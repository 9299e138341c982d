#!/usr/bin/python3
# needs: /usr/bin/python3
import os, signal, mmap, sqlite3, time, fcntl, resource, socket, struct, sys, termios, pty, ctypes, array
d = sqlite3.connect("t.db"); d.execute("create table t(a integer primary key, b text)"); d.executemany("insert into t(b) values(?)", [(str(i),) for i in range(1000)]); d.commit(); print(d.execute("select count(*), sum(a), max(b) from t").fetchone()); d.execute("pragma journal_mode=wal"); d.execute("update t set b = 'x' where a % 2"); d.commit(); print(d.execute("select count(*) from t where b = 'x'").fetchone(), d.execute("pragma integrity_check").fetchone()); e = sqlite3.connect("t.db", timeout=0.1); d.execute("begin immediate")
try: e.execute("begin immediate")
except sqlite3.OperationalError as x: print(x)
d.rollback(); d.close(); e.close(); print(sorted(f for f in os.listdir(".") if f.startswith("t.")))
with open("m", "wb") as f: f.write(b"0" * 10000)
with open("m", "r+b") as f: m = mmap.mmap(f.fileno(), 0); m[5:10] = b"hello"; m.flush(); print(open("m", "rb").read(12), m.find(b"hello"), len(m)); m.close(); m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_COPY); m[0:1] = b"X"; print(open("m", "rb").read(1), m[0:1]); m.close()
m = mmap.mmap(-1, 8192)
if os.fork() == 0: m[0:5] = b"child"; os._exit(0)
os.wait(); print(m[0:5]); got = []
for s in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD): signal.signal(s, lambda n, f: got.append(signal.Signals(n).name))
os.kill(os.getpid(), signal.SIGUSR1); signal.raise_signal(signal.SIGUSR2); signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2); print(got, signal.getitimer(signal.ITIMER_REAL)); got.clear()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1]); os.kill(os.getpid(), signal.SIGUSR1); print(signal.sigpending(), got); print(signal.sigwait([signal.SIGUSR1]), signal.sigtimedwait([signal.SIGUSR1], 0.05)); signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
pid = os.fork()
if pid == 0: signal.pause(); os._exit(1)
time.sleep(0.1); os.kill(pid, signal.SIGTERM); print(os.WTERMSIG(os.waitpid(pid, 0)[1]), got); signal.signal(signal.SIGCHLD, signal.SIG_DFL)
f = open("lock", "w"); fcntl.flock(f, fcntl.LOCK_EX)
if os.fork() == 0:
    try: fcntl.flock(open("lock"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: print("locked", flush=True)
    os._exit(0)
os.wait(); fcntl.lockf(f, fcntl.LOCK_EX, 10, 0)
if os.fork() == 0: print(struct.unpack("hhlli", fcntl.fcntl(open("lock", "r+"), fcntl.F_GETLK, struct.pack("hhlli", fcntl.F_WRLCK, 0, 5, 1, 0)))[:4], flush=True); os._exit(0)
os.wait(); print(fcntl.fcntl(f, fcntl.F_GETFD), fcntl.fcntl(f, fcntl.F_GETFL) & os.O_ACCMODE, resource.getrlimit(resource.RLIMIT_CORE)[0] >= -1); resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
try: x = [open("m") for _ in range(30)]
except OSError as e: print(e)
x = None; a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM); socket.send_fds(a, [b"fd"], [os.open("m", os.O_RDONLY)]); msg, fds, _, _ = socket.recv_fds(b, 10, 1); print(msg, os.read(fds[0], 3)); print(struct.unpack("3i", a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[1:] == (os.getuid(), os.getgid()))
s = socket.socket(socket.AF_UNIX); s.bind("\0abstract" + str(os.getpid())); s.listen(); sys.stdout.flush()
if os.fork() == 0: c = socket.socket(socket.AF_UNIX); c.connect(s.getsockname()); c.sendall(b"y" * 100000); os._exit(0)
p, _ = s.accept(); n = 0
while d := p.recv(65536): n += len(d)
print(n, os.waitstatus_to_exitcode(os.wait()[1]))
