//! Target `channel`: a guest of the platform `stub` that writes what it likes into its channels, whenever it likes.
//!
//! The kernel's side is the real one: a context that waits, takes calls, copies, gives orders, makes processes and threads
//! as its operations say. The guest's side is a script ([`hostile`]); its host process is real too, and does some of what
//! it is ordered. Nothing may panic or go on without end; no process but the guest's own may end; and the kernel keeps
//! neither descriptors nor what the guest has not got.

mod hostile;

use std::cell::RefCell;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use abi::{Futex2Flags, FutexWaitv, GUEST_TOP, PAGE_SIZE, UserAddr};
use platform::{
    AddressSpace, Context, Counters, DelegatedFile, FutexCall, GuestRange, HostCall, Identity, MapFile,
    NewContext, NewProcess, Platform, Reach, Trap,
};
use stubs::{Options, Stubs, adversary};

use self::hostile::{Hostile, Spaces};
use crate::Input;

/// Where the guest's page of code and data lies.
pub(crate) const CODE: u64 = 0x10_0000;
const CODE_LEN: u64 = 4 * PAGE_SIZE;
/// A page that the kernel has no reason to write, where no script knows of it.
const CANARY: u64 = 0x3a7c_9d51_2000;
const CANARY_BYTES: [u8; 8] = *b"untoched";
/// Bytes of one operation, and how many there are at most.
const OPERATION: usize = 8;
const MOST_OPERATIONS: usize = 16;
/// How long what a run has used may take to be given back.
const END: Duration = Duration::from_secs(30);

/// What all runs share.
struct Host {
    stubs: Stubs,
    /// A guest process that has nothing to do with any of it.
    bystander: NewProcess,
    file: OwnedFd,
    /// Descriptors of ours before the first run.
    descriptors: usize,
}

// The bystander is never bound: its thread is looked at by nobody.
impl Host {
    fn new() -> Host {
        let options = Options {
            shapes: kernel::syscall::shape,
            placement: false,
            spin: false,
            namespace: false,
            ..Options::default()
        };
        let stubs = Stubs::new(options).expect("the platform starts");
        let bystander = stubs.spawn().expect("guest processes can be made");
        // With the second the zygote gets its heir.
        drop(stubs.spawn().expect("guest processes can be made"));
        let file = rustix::fs::memfd_create(c"fuzzed", rustix::fs::MemfdFlags::CLOEXEC);
        let file = file.expect("memory files can be made");
        rustix::fs::ftruncate(&file, CODE_LEN).expect("memory files have a length");
        let descriptors = crate::machine::entries("/proc/self/fd");
        Host { stubs, bystander, file, descriptors }
    }
}

/// The platform, once.
fn host() -> &'static std::sync::Mutex<Host> {
    static HOST: OnceLock<std::sync::Mutex<Host>> = OnceLock::new();
    HOST.get_or_init(|| std::sync::Mutex::new(Host::new()))
}

/// How many operations, the operations, and the guest's script.
///
/// # Panics
/// If something does not hold.
pub fn run(bytes: &[u8]) {
    if let Some(reason) = stubs::host_lacks() {
        eprintln!("skipped: {reason}");
        return;
    }
    let host = host().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut input = Input::new(bytes);
    let count = 1 + usize::from(input.byte()) % MOST_OPERATIONS;
    let operations = input.bytes(count * OPERATION);
    let made = host.stubs.spawn().expect("guest processes can be made");
    let spaces: Spaces = Rc::new(RefCell::new(vec![made.space]));
    let mut context = made.thread.bind().expect("guest threads can be bound");
    prepare(&mut *context);
    let space = Arc::clone(context.space());
    let own = i32::try_from(std::process::id()).unwrap_or(1);
    let pids = [1, own, space.host_pid(), host.bystander.space.host_pid()];
    let playing = adversary::play(Box::new(Hostile::new(input.rest(), &spaces, pids)));
    let mut driver = Driver { host: &host, context, spaces, counters: Counters::Off, others: Vec::new() };
    for operation in operations.chunks(OPERATION) {
        if std::env::var_os("UMLAUT_FUZZ_TRACE").is_some() {
            eprintln!("operation {operation:?}");
        }
        driver.step(&mut Input::new(operation));
    }
    drop(driver);
    drop(playing);
    check(&host, &space);
    drop(space);
    let deadline = Instant::now() + END;
    let mut descriptors = crate::machine::entries("/proc/self/fd");
    while descriptors > host.descriptors && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
        descriptors = crate::machine::entries("/proc/self/fd");
    }
    let open = || std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let names: Vec<_> = open().filter_map(|file| std::fs::read_link(file.path()).ok()).collect();
    assert!(descriptors <= host.descriptors, "more than {} descriptors: {names:?}", host.descriptors);
}

/// A page of system calls, and the canary.
fn prepare(context: &mut dyn Context) {
    let map = |addr, len| HostCall::Map { addr: UserAddr(addr), len, prot: 7, flags: 0x32, file: None };
    let mapped = context.host_calls(&[map(CODE, CODE_LEN), map(CANARY, PAGE_SIZE)]);
    mapped.expect("guest memory can be mapped");
    let write = |at, bytes: &[u8]| {
        let to = [GuestRange { start: UserAddr(at), len: bytes.len() }];
        assert_eq!(
            context.space().write(bytes, &to, Reach::Mapped),
            bytes.len(),
            "guest memory can be written"
        );
    };
    write(CODE, &[0x0f, 0x05].repeat(64));
    write(CANARY, &CANARY_BYTES);
    let registers = context.registers_mut();
    (registers.rip, registers.rsp) = (CODE, CODE + CODE_LEN);
}

/// What no guest can have changed.
fn check(host: &Host, space: &Arc<dyn AddressSpace>) {
    assert!(host.bystander.space.resident_pages().0 > 0, "another guest's process has ended");
    // By a thread that serves no guest, and so looks into no channel.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = CANARY_BYTES;
            let range = [GuestRange { start: UserAddr(CANARY), len: bytes.len() }];
            // Nothing can be read of one that has died.
            let _ = space.read(&range, &mut bytes, Reach::Mapped);
            assert_eq!(bytes, CANARY_BYTES, "memory was written that nobody asked for");
        });
    });
}

/// The kernel's thread of a hostile guest.
struct Driver<'a> {
    host: &'a Host,
    context: Box<dyn Context>,
    spaces: Spaces,
    counters: Counters,
    /// Threads that it has made and not looked at.
    others: Vec<Box<dyn NewContext>>,
}

impl Driver<'_> {
    /// One operation. What it gives is the guest's doing; that it comes back is all that is asked.
    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 24 {
            0..=4 => self.go(input, false),
            5 => self.go(input, true),
            6 => self.map(input),
            7 => self.change_memory(input),
            8 => self.block(input),
            9 => {
                let at = address(input);
                let _ = self.context.compare_exchange(at, input.byte().into(), input.byte().into());
            }
            10 => {
                if let Ok(image) = self.context.fp_state() {
                    let _ = self.context.set_fp_state(&image);
                }
            }
            11 => {
                let _ = self.context.reset_fp_state();
            }
            12 => {
                let made = self.context.fork();
                self.take_over(made, input.byte());
            }
            13 => {
                let made = self.context.fork_sharing_memory();
                self.take_over(made, input.byte());
            }
            14 => {
                let made = self.context.new_thread();
                self.take_over_thread(made, input.byte());
            }
            15 | 16 => self.delegate(input),
            17 => self.withdraw(input),
            18 => self.context.interrupter().interrupt(),
            19 => self.context.interrupter().interrupt_to_end(),
            20 => {
                let (which, value) = (input.byte(), address(input).0);
                let registers = self.context.registers_mut();
                match which % 5 {
                    0 => registers.rip = value,
                    1 => registers.gs_base = value,
                    2 => registers.fs_base = value,
                    3 => registers.rflags = value,
                    _ => (registers.rax, registers.rsp) = (value, value),
                }
            }
            21 => self.context.set_identity(&Identity {
                pid: 2,
                tid: input.byte().into(),
                ..Identity::default()
            }),
            22 => {
                self.counters = Counters::PerThread(Arc::default());
                self.context.set_counters(self.counters.clone());
            }
            _ => self.others.clear(),
        }
    }

    /// Lets the guest run, and serves what call it makes: looks at memory, answers.
    fn go(&mut self, input: &mut Input<'_>, steps: bool) {
        let trap = if steps { self.context.step() } else { self.context.run() };
        let Trap::Syscall(call) = trap else { return };
        let space = Arc::clone(self.context.space());
        for argument in call.args.into_iter().take(usize::from(input.byte()) % 7) {
            let how = input.byte();
            let range = GuestRange { start: UserAddr(argument), len: usize::from(how) * 2 };
            // As the kernel's own copies do.
            if range.start.0 == CANARY || !range.start.in_guest_range(range.len as u64) {
                continue;
            }
            let mut bytes = vec![how; range.len];
            let _ = match how % 4 {
                0 | 1 => space.read(&[range], &mut bytes, Reach::Mapped),
                2 => space.write(&bytes, &[range], Reach::Mapped),
                _ => usize::from(space.write_later(&bytes, range, &|| true)),
            };
        }
        self.context.set_result(u64::from(input.byte()));
        if input.byte().is_multiple_of(2) {
            self.context.registers_mut().rip = CODE;
        }
    }

    fn map(&mut self, input: &mut Input<'_>) {
        let file = MapFile { fd: self.host.file.as_fd(), offset: 0 };
        let one = HostCall::Map {
            addr: UserAddr(CODE + u64::from(input.byte() % 4) * PAGE_SIZE),
            len: PAGE_SIZE,
            prot: 7,
            flags: 0x12,
            file: (!input.byte().is_multiple_of(4)).then_some(file),
        };
        let _ = self.context.host_calls(&vec![one; 1 + usize::from(input.byte()) % 40]);
    }

    fn change_memory(&mut self, input: &mut Input<'_>) {
        let addr = UserAddr(CODE + u64::from(input.byte() % 4) * PAGE_SIZE);
        let len = PAGE_SIZE;
        let to = input.byte().is_multiple_of(2).then_some(UserAddr(CODE + CODE_LEN));
        let calls = [
            HostCall::Protect { addr, len, prot: 3 },
            HostCall::Advise { addr, len, advice: 4 },
            HostCall::Remap { addr, old_len: len, new_len: len * 2, to, keep_old: false },
            HostCall::Unmap { addr, len },
            HostCall::Membarrier(abi::MembarrierCmd::REGISTER_PRIVATE_EXPEDITED),
            HostCall::UnmapAll,
        ];
        let from = usize::from(input.byte()) % calls.len();
        let _ = self.context.host_calls(calls.get(from..).unwrap_or(&[]));
    }

    /// A wait that is over at once for a guest that does what it is ordered.
    fn block(&mut self, input: &mut Input<'_>) {
        let timeout = Some((0, 1));
        let uaddr = UserAddr(CODE + u64::from(input.byte()) * 4);
        let word = FutexWaitv { val: 0, uaddr: uaddr.0, flags: Futex2Flags::SIZE_U32, reserved: 0 };
        let words = vec![word; 1 + usize::from(input.byte()) % platform::FUTEX_WAITV_MAX];
        let call = match input.byte() % 3 {
            0 => HostCall::FutexWaitv { waiters: &words, timeout, realtime: false },
            operation => HostCall::Futex(FutexCall {
                uaddr,
                // WAIT_BITSET, WAKE
                op: if operation == 1 { 9 } else { 1 },
                val: 0,
                timeout,
                val2: 0,
                uaddr2: UserAddr(0),
                val3: u32::MAX,
            }),
        };
        let _ = self.context.host_calls(&[call]);
    }

    fn take_over(&mut self, made: Result<NewProcess, platform::PlatformError>, how: u8) {
        if let Ok(made) = made {
            self.spaces.borrow_mut().push(made.space);
            self.take_over_thread(Ok(made.thread), how);
        }
    }

    fn take_over_thread(&mut self, made: Result<Box<dyn NewContext>, platform::PlatformError>, how: u8) {
        let Ok(made) = made else { return };
        match how % 4 {
            0 => drop(made),
            1 => self.others.push(made),
            rest => {
                let Ok(mut context) = made.bind() else { return };
                let _ = context.run();
                let _ = context.fp_state();
                if rest == 3 {
                    std::mem::swap(&mut context, &mut self.context);
                }
            }
        }
    }

    fn delegate(&mut self, input: &mut Input<'_>) {
        let flags = input.byte();
        let file = DelegatedFile {
            descriptor: u32::from(input.byte()) * 5,
            file: self.host.file.as_fd(),
            read: flags & 1 != 0,
            write: flags & 2 != 0,
            budget: (flags & 4 != 0).then_some(u64::from(flags)),
        };
        let _ = self.context.delegate(&file);
    }

    fn withdraw(&mut self, input: &mut Input<'_>) {
        let Some(held) = self.context.delegations() else { return };
        match input.byte() % 3 {
            0 => drop(held.withdraw(u32::from(input.byte()) * 5)),
            1 => drop(held.withdraw_all()),
            _ => drop(held.take_io()),
        }
    }
}

/// A guest's address: in its page, across its end, anywhere but at the canary.
fn address(input: &mut Input<'_>) -> UserAddr {
    let (kind, detail) = (input.byte(), u64::from(input.byte()));
    UserAddr(match kind % 8 {
        0..=4 => CODE + detail * 4,
        5 => CODE + CODE_LEN - detail % 16,
        6 => GUEST_TOP - detail % 16,
        _ => detail.wrapping_sub(128) << 40,
    })
}
