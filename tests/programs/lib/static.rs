//! A static Rust program for `static/rust.sh`: threads, channels, files, processes, time, panics.
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

fn main() {
    println!("{:?}", env::args().skip(1).collect::<Vec<_>>());
    let (send, receive) = mpsc::channel();
    let threads: Vec<_> = (0..16_u64)
        .map(|n| {
            let send = send.clone();
            thread::Builder::new().name(format!("worker {n}")).spawn(move || {
                for i in 0..1000 {
                    send.send(n * i).unwrap();
                }
                thread::current().name().map(str::len)
            })
        })
        .collect();
    drop(send);
    println!("{}", receive.iter().sum::<u64>());
    println!("{:?}", threads.into_iter().map(|t| t.unwrap().join().unwrap()).collect::<Vec<_>>());

    let (count, barrier) = (Arc::new(Mutex::new(0)), Arc::new(Barrier::new(8)));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5000 {
                    *count.lock().unwrap() += 1;
                }
                barrier.wait();
            });
        }
    });
    println!("{}", count.lock().unwrap());
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let waker = thread::spawn(move || {
        *other.0.lock().unwrap() = true;
        other.1.notify_all();
    });
    drop(pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready).unwrap());
    waker.join().unwrap();
    println!("{}", RwLock::new(5).read().unwrap());

    let mut file = fs::File::options().read(true).write(true).create(true).truncate(true).open("data").unwrap();
    for n in 0..1000 {
        writeln!(file, "line {n}").unwrap();
    }
    file.seek(SeekFrom::Start(7)).unwrap();
    let mut line = String::new();
    BufReader::new(&file).read_line(&mut line).unwrap();
    print!("{line}");
    fs::create_dir_all("a/b").unwrap();
    fs::copy("data", "a/b/copy").unwrap();
    println!("{} {:?}", fs::metadata("a/b/copy").unwrap().len(), fs::read("nosuch").unwrap_err().kind());
    println!("{:?}", fs::read_dir(".").unwrap().filter(|entry| entry.is_ok()).count());

    let output = Command::new("sh").args(["-c", "cat; echo err >&2; exit 3"]).stdin(Stdio::null()).output().unwrap();
    println!("{:?}", output);
    let mut child = Command::new("sort").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"b\na\n").unwrap();
    println!("{:?}", String::from_utf8(child.wait_with_output().unwrap().stdout));
    println!("{:?}", Command::new("nosuch").spawn().unwrap_err().kind());

    let listener = UnixListener::bind("socket").unwrap();
    let client = thread::spawn(|| {
        let mut stream = UnixStream::connect("socket").unwrap();
        stream.write_all(b"ping").unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    });
    let (mut stream, _) = listener.accept().unwrap();
    let mut question = String::new();
    stream.read_to_string(&mut question).unwrap();
    stream.write_all(b"pong").unwrap();
    drop(stream);
    println!("{question} {}", client.join().unwrap());

    let start = Instant::now();
    thread::sleep(Duration::from_millis(20));
    println!("{}", start.elapsed() >= Duration::from_millis(20));
    let map: HashMap<u32, u32> = (0..10_000).map(|n| (n, n * n % 7)).collect();
    println!("{}", map.values().sum::<u32>());
    println!("{}", thread::available_parallelism().is_ok());
    println!("{:?}", thread::spawn(|| panic!("in a thread")).join().is_err());
    let deep = thread::Builder::new().stack_size(64 << 20).spawn(|| depth(100_000)).unwrap();
    println!("{}", deep.join().unwrap());
    std::process::exit(9);
}

fn depth(n: u64) -> u64 {
    if n == 0 { 0 } else { std::hint::black_box(depth(n - 1)) + 1 }
}
