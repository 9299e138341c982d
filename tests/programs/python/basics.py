#!/usr/bin/python3
# needs: /usr/bin/python3
# run: smoke
import os, sys, json, re, hashlib, zlib, struct, math, itertools, collections, datetime, decimal, random, string, textwrap, uuid, base64, pathlib, tempfile, shutil, glob, fnmatch, time, platform, errno, stat
print(sys.version_info[0], sys.argv, sys.stdin.read() == "", sys.byteorder, sys.maxsize)
print(json.dumps({"a": [1, 2.5, None], "b": "ü"}), re.sub(r"(\w)(\d)", r"\2\1", "a1 b2"))
print(hashlib.sha256(b"x" * 100000).hexdigest(), zlib.crc32(b"abc"), len(zlib.compress(bytes(100000))))
print(struct.pack("<IHb", 1, 2, -3), math.pi, 2 ** 200, decimal.Decimal(1) / 7)
random.seed(7); print(random.random(), random.sample(range(100), 5)); print(len(os.urandom(32)))
print(datetime.datetime.fromtimestamp(0, datetime.timezone.utc).isoformat(), time.tzname)
p = pathlib.Path("dir/sub"); p.mkdir(parents=True); (p / "f.txt").write_text("text\n"); print(sorted(map(str, pathlib.Path("dir").rglob("*"))), (p / "f.txt").stat().st_size)
shutil.copytree("dir", "copy"); print(sorted(glob.glob("copy/**", recursive=True))); shutil.rmtree("copy"); os.rename("dir/sub/f.txt", "g"); os.symlink("g", "l"); print(os.readlink("l"), os.path.realpath("l").endswith("/here/g"), os.lstat("l").st_size)
for f in (lambda: open("nosuch"), lambda: os.mkdir("dir"), lambda: os.rmdir("/usr"), lambda: os.listdir("g"), lambda: os.kill(99999999, 0), lambda: os.read(99, 1), lambda: os.execv("g", ["g"]), lambda: os.open("g", os.O_DIRECTORY)):
    try: f(); print("no error")
    except OSError as e: print(type(e).__name__, errno.errorcode[e.errno])
with tempfile.TemporaryDirectory(dir=".") as d, tempfile.NamedTemporaryFile(dir=d) as f: f.write(b"abc"); f.flush(); print(os.path.getsize(f.name), oct(os.stat(f.name).st_mode))
with tempfile.TemporaryFile(dir=".") as f: f.write(b"anonymous"); f.seek(0); print(f.read(), os.fstat(f.fileno()).st_nlink)
print(sorted(e.name + ("/" if e.is_dir() else "") for e in os.scandir(".")))
os.chmod("g", 0o4711); print(stat.filemode(os.stat("g").st_mode)); os.utime("g", ns=(10**9 + 1, 2 * 10**9 + 3)); s = os.stat("g"); print(s.st_atime_ns, s.st_mtime_ns, s.st_nlink)
fd = os.open("g", os.O_RDWR | os.O_APPEND); os.write(fd, b"more"); print(os.pread(fd, 4, 5), os.lseek(fd, 0, os.SEEK_CUR)); os.ftruncate(fd, 3); os.close(fd); print(open("g").read())
r, w = os.pipe(); os.write(w, b"pipe"); print(os.read(r, 10), os.get_inheritable(r)); os.close(r); os.close(w)
print(os.path.exists("/proc/self"), os.readlink("/proc/self/exe").startswith("/usr/bin/python3"), os.getcwd().endswith("/here"), os.umask(0o22), os.get_terminal_size.__name__, os.cpu_count() >= 1, len(os.sched_getaffinity(0)) >= 1, os.nice(0), os.getpgid(0) > 0, os.getloadavg()[0] >= 0)
print(os.posix_fallocate.__name__, os.statvfs(".").f_namemax, platform.system(), platform.machine(), os.uname().sysname, os.access("/usr", os.R_OK), os.getlogin.__name__, sum(1 for _ in itertools.permutations(range(6))), collections.Counter("banana").most_common(2))
sys.exit(3)
