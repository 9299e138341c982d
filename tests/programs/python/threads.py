#!/usr/bin/python3
# needs: /usr/bin/python3
# run: smoke
import threading, queue, concurrent.futures, time, sys, os
n, lock = 0, threading.Lock()
def work(k):
    global n
    for _ in range(k):
        with lock: n += 1
ts = [threading.Thread(target=work, args=(2000,)) for _ in range(8)]
[t.start() for t in ts]; [t.join() for t in ts]; print(n)
q, out = queue.Queue(4), []
def consumer():
    while (x := q.get()) is not None: out.append(x * x)
t = threading.Thread(target=consumer); t.start(); [q.put(i) for i in range(50)]; q.put(None); t.join(); print(sum(out))
with concurrent.futures.ThreadPoolExecutor(5) as ex: print(list(ex.map(lambda x: x ** 2, range(10))), ex.submit(os.getpid).result() == os.getpid())
e = threading.Event(); threading.Timer(0.1, e.set).start(); print(e.wait(10), e.wait(0)); print(threading.Event().wait(0.05))
b = threading.Barrier(3); r = []; ts = [threading.Thread(target=lambda: r.append(b.wait())) for _ in range(3)]; [t.start() for t in ts]; [t.join() for t in ts]; print(sorted(r))
c = threading.Condition(); items = []
def producer():
    for i in range(5):
        with c: items.append(i); c.notify_all()
def taker():
    with c: c.wait_for(lambda: len(items) == 5, 10); print(items)
t = threading.Thread(target=taker); t.start(); producer(); t.join()
l = threading.local(); l.x = 1; threading.Thread(target=lambda: print(hasattr(l, "x"))).start(); time.sleep(0.1)
s = threading.Semaphore(2); print(s.acquire(), s.acquire(), s.acquire(timeout=0.05))
for _ in range(200): t = threading.Thread(target=lambda: None); t.start(); t.join()
print(threading.active_count(), threading.get_native_id() == os.getpid())
threading.Thread(target=lambda: (time.sleep(0.2), print("last"), sys.stdout.flush())).start()
