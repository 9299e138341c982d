#!/usr/bin/python3
# needs: /usr/bin/python3
import asyncio, os, signal, socket, tempfile, select, selectors
async def main():
    loop = asyncio.get_running_loop(); print(await asyncio.gather(*(asyncio.sleep(0.01 * (5 - i), i) for i in range(5))))
    p = await asyncio.create_subprocess_exec("sort", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE); print(await p.communicate(b"b\na\n"), p.returncode)
    p = await asyncio.create_subprocess_shell("echo err >&2; exit 3", stderr=asyncio.subprocess.PIPE); print(await p.communicate(), p.returncode)
    got = asyncio.Event(); loop.add_signal_handler(signal.SIGUSR1, got.set); os.kill(os.getpid(), signal.SIGUSR1); await asyncio.wait_for(got.wait(), 10); print("signal")
    try: await asyncio.wait_for(asyncio.sleep(10), 0.05)
    except asyncio.TimeoutError: print("timeout")
    async def serve(r, w): w.write((await r.readline()).upper()); await w.drain(); w.close()
    server = await asyncio.start_unix_server(serve, "sock"); 
    async def client(i): r, w = await asyncio.open_unix_connection("sock"); w.write(f"client {i}\n".encode()); x = await r.read(); w.close(); return x
    print(await asyncio.gather(*(client(i) for i in range(20)))); server.close()
    print(await asyncio.to_thread(lambda: 5), await loop.run_in_executor(None, os.getpid) == os.getpid()); q = asyncio.Queue(); t = asyncio.create_task(q.get()); await q.put("q"); print(await t)
    r, w = os.pipe(); loop.add_reader(r, lambda: (print(os.read(r, 9)), loop.remove_reader(r))); os.write(w, b"readable"); await asyncio.sleep(0.05)
    t = asyncio.create_task(asyncio.sleep(10)); await asyncio.sleep(0); t.cancel()
    try: await t
    except asyncio.CancelledError: print("cancelled")
asyncio.run(main())
a, b = socket.socketpair(); print(select.select([a], [b], [], 0) == ([], [b], [])); b.send(b"x"); print(select.select([a], [], [], 5)[0] == [a]); p = select.poll(); p.register(a, select.POLLIN | select.POLLOUT); print(p.poll(0)[0][1]); b.close(); print(p.poll(0)[0][1] & select.POLLHUP != 0)
e = select.epoll(); a, b = socket.socketpair(); e.register(a.fileno(), select.EPOLLIN | select.EPOLLET); print(e.poll(0)); b.send(b"1"); print(len(e.poll(1)), len(e.poll(0))); s = selectors.DefaultSelector(); s.register(a, selectors.EVENT_READ, "data"); print(s.select(1)[0][0].data)
