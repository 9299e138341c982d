#!/usr/bin/python3
# needs: /usr/bin/python3
# run: smoke timeout=120
import multiprocessing as mp, os, time, signal
def square(x): return x * x
def child(q, name): q.put((name, os.getppid() == parent))
def add(v, n):
    for _ in range(n):
        with v.get_lock(): v.value += 1
def die(): os.kill(os.getpid(), signal.SIGKILL)
if __name__ == "__main__":
    parent = os.getpid()
    with mp.get_context("fork").Pool(4) as p: print(p.map(square, range(20)), p.apply_async(square, (9,)).get(10), sum(p.imap_unordered(square, range(100))))
    q = mp.Queue(); ps = [mp.Process(target=child, args=(q, i)) for i in range(4)]; [p.start() for p in ps]; print(sorted(q.get(timeout=10) for _ in ps)); [p.join() for p in ps]; print([p.exitcode for p in ps])
    v = mp.Value("i", 0); ps = [mp.Process(target=add, args=(v, 500)) for _ in range(4)]; [p.start() for p in ps]; [p.join() for p in ps]; print(v.value)
    a, b = mp.Pipe(); p = mp.Process(target=lambda c: c.send([c.recv(), "back"]), args=(b,)); p.start(); a.send({"k": bytes(100000)}); print(len(a.recv()[0]["k"])); p.join()
    p = mp.Process(target=die); p.start(); p.join(); print(p.exitcode); arr = mp.Array("d", range(5)); print(sum(arr)); e = mp.Event(); p = mp.Process(target=e.set); p.start(); print(e.wait(10)); p.join()
    from multiprocessing import shared_memory; m = shared_memory.SharedMemory(create=True, size=1000); m.buf[0] = 7; n = shared_memory.SharedMemory(name=m.name); print(n.buf[0], len(n.buf) >= 1000); n.close(); m.close(); m.unlink()
    s = mp.Semaphore(0); p = mp.Process(target=s.release); p.start(); print(s.acquire(timeout=10), s.acquire(timeout=0.05)); p.join(); mgr = mp.Manager(); d = mgr.dict(); d["x"] = 1; print(dict(d)); mgr.shutdown()
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(3) as ex: print(list(ex.map(square, range(5)))) 
    with mp.get_context("spawn").Pool(1) as p: print(p.map(square, [5])) 
