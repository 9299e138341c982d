//! Steps: one instruction at a time, and nothing of it left behind.

use super::*;
use crate::Exception;
use crate::code::Reg;
use crate::step::FLAG;

pub(super) const CASES: &[Case] = &[
    ("a step is one instruction", one_instruction),
    ("a step at a system call is the call", over_calls),
    ("a step that fails is the exception", exceptions),
    ("steps leave the guest's trap flag to it", trap_flag),
    ("a guest that steps itself is stepped by its own traps", own_traps),
    ("steps of string instructions and of loads of SS", long_and_short),
    ("a kick comes before a step, not in it", kicked),
    ("children and threads of a stepped thread run free", free_children),
    ("host calls and extended state between steps", between_steps),
    ("one thread is stepped, another runs", beside_a_running_thread),
];

/// Steps over one instruction to `rip`.
#[track_caller]
fn steps_to(guest: &mut Guest, rip: u64) {
    assert_eq!(guest.step(), Trap::Stepped);
    let regs = guest.context.registers();
    assert_eq!((regs.rip, regs.rflags & FLAG), (rip, 0));
}

#[track_caller]
fn steps_into_call(guest: &mut Guest, number: u64, result: u64) {
    match guest.step() {
        Trap::Syscall(entry) => assert_eq!(entry.number, number),
        other => panic!("expected a system call, found {other:?}"),
    }
    guest.context.set_result(result);
}

/// The code and where each of its instructions begins.
fn listed(instructions: &[fn(Code) -> Code]) -> (Code, Vec<u64>) {
    let (mut code, mut places) = (Code::new(), Vec::new());
    for add in instructions {
        places.push(CODE + code.here() as u64);
        code = add(code);
    }
    places.push(CODE + code.here() as u64);
    (code, places)
}

fn one_instruction(platform: &dyn Platform) {
    let (code, places) = listed(&[
        Code::nop,
        |code| code.set(Reg::Rax, 7),
        |code| code.set(Reg::Rdi, DATA),
        Code::store,
        Code::increment,
        |code| code.jump(0),
    ]);
    let mut guest = Guest::new(platform, code);
    for round in 0..3 {
        for (index, place) in places.iter().enumerate().take(places.len() - 1).skip(1) {
            steps_to(&mut guest, *place);
            let stored = if index < 4 { if round == 0 { 0 } else { 8 } } else { 7 + u64::from(index == 5) };
            assert_eq!(guest.word(DATA), stored, "at instruction {index}");
        }
        steps_to(&mut guest, CODE);
    }
    assert_eq!(guest.context.registers().rax, 7);
}

fn over_calls(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rax, 1);
    let call = CODE + code.here() as u64;
    let code = code.syscall().store().int80().nop().call(3, &[]).call(4, &[]);
    let mut guest = Guest::new(platform, code);
    guest.context.registers_mut().rdi = DATA;
    steps_to(&mut guest, call);
    steps_into_call(&mut guest, 1, 41);
    let regs = guest.context.registers();
    assert_eq!((regs.rip, regs.rcx, regs.rflags & FLAG), (call + 2, call + 2, 0), "behind the call");
    // The result is there for the next instruction.
    steps_to(&mut guest, call + 5);
    assert_eq!(guest.word(DATA), 41);
    match guest.step() {
        Trap::Syscall(entry) => assert!(!entry.native && entry.number == 41, "int 0x80"),
        other => panic!("expected a system call, found {other:?}"),
    }
    guest.context.set_result(6);
    steps_to(&mut guest, call + 8);
    assert_eq!(guest.context.registers().rax, 6);
    // Runs and steps in turns.
    guest.expect_call(3, 0);
    steps_to(&mut guest, call + 8 + 12 + 10);
    steps_into_call(&mut guest, 4, 0);
    guest.load(CODE, Code::new().syscall().nop().jump(0));
    for round in 0..50 {
        guest.context.registers_mut().rax = round;
        if round % 2 == 0 {
            steps_into_call(&mut guest, round, 0);
        } else {
            guest.expect_call(round, 0);
        }
        steps_to(&mut guest, CODE + 3);
        steps_to(&mut guest, CODE);
    }
}

#[track_caller]
fn expect_exception(guest: &mut Guest, signal: i32, code: i32) -> Exception {
    match guest.step() {
        Trap::Exception(it) => {
            assert_eq!((it.signal, it.code), (signal, code));
            assert_eq!(guest.context.registers().rflags & FLAG, 0);
            it
        }
        other => panic!("expected an exception, found {other:?}"),
    }
}

fn exceptions(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().store().nop().int3().nop().ud2());
    guest.context.registers_mut().rdi = 0x3000_0000;
    for _ in 0..2 {
        assert_eq!(expect_exception(&mut guest, libc::SIGSEGV, 1).addr, UserAddr(0x3000_0000));
        assert_eq!(guest.context.registers().rip, CODE, "at the instruction");
    }
    guest.call(map(0x3000_0000, PAGE, RW)).unwrap();
    steps_to(&mut guest, CODE + 3);
    steps_to(&mut guest, CODE + 4);
    expect_exception(&mut guest, libc::SIGTRAP, 0x80);
    assert_eq!(guest.context.registers().rip, CODE + 5, "behind the breakpoint, and no other trap");
    steps_to(&mut guest, CODE + 6);
    expect_exception(&mut guest, libc::SIGILL, 2);
    // What loads the flags and fails has not loaded them.
    guest.load(CODE, Code::new().pop_flags().nop().call(1, &[]));
    guest.context.registers_mut().rsp = 0x4000_0000;
    for _ in 0..2 {
        expect_exception(&mut guest, libc::SIGSEGV, 1);
        assert_eq!(guest.context.registers().rip, CODE);
    }
    guest.context.registers_mut().rip = CODE + 1;
    guest.expect_call(1, 0);
    // Nowhere.
    guest.context.registers_mut().rip = 0x5000_0000;
    expect_exception(&mut guest, libc::SIGSEGV, 1);
}

fn trap_flag(platform: &dyn Platform) {
    // Stepped over, then run: no trap comes.
    let mut guest = Guest::new(platform, Code::new().push_flags().nop().pop_flags().nop().call(1, &[]));
    steps_to(&mut guest, CODE + 1);
    let stored = guest.word(DATA + 16 * PAGE - 8);
    assert_eq!(stored & FLAG, FLAG, "Linux does not hide it from pushf either");
    let stored = (stored & !FLAG).to_le_bytes();
    assert!(guest.put(DATA + 16 * PAGE - 8, &stored));
    for rip in [CODE + 2, CODE + 3, CODE + 4] {
        steps_to(&mut guest, rip);
    }
    guest.expect_call(1, 0);
    // What the guest sets itself stays: the step is over before its first trap.
    let code = Code::new().push(0x302).pop_flags().nop().nop().push(0x202).pop_flags().nop().call(2, &[]);
    guest.load(CODE, code);
    steps_to(&mut guest, CODE + 5);
    assert_eq!(guest.step(), Trap::Stepped);
    let regs = guest.context.registers();
    assert_eq!((regs.rip, regs.rflags & FLAG), (CODE + 6, FLAG));
    for (rip, flag) in [(CODE + 7, FLAG), (CODE + 8, FLAG), (CODE + 13, FLAG), (CODE + 14, 0)] {
        own_trap(&mut guest, rip, flag);
    }
    steps_to(&mut guest, CODE + 15);
    guest.expect_call(2, 0);
}

/// A step that ends as the guest's own trap.
#[track_caller]
fn own_trap(guest: &mut Guest, rip: u64, flag: u64) {
    match guest.step() {
        Trap::Exception(it) => {
            assert_eq!((it.signal, it.code, it.addr), (libc::SIGTRAP, 2, UserAddr(rip)), "TRAP_TRACE");
        }
        other => panic!("expected the guest's own trap, found {other:?}"),
    }
    let regs = guest.context.registers();
    assert_eq!((regs.rip, regs.rflags & FLAG), (rip, flag));
}

fn own_traps(platform: &dyn Platform) {
    let code = Code::new().nop().set(Reg::Rax, 1).syscall().nop().nop().call(2, &[]);
    let mut guest = Guest::new(platform, code);
    guest.context.registers_mut().rflags |= FLAG;
    own_trap(&mut guest, CODE + 1, FLAG);
    own_trap(&mut guest, CODE + 11, FLAG);
    steps_into_call(&mut guest, 1, 0);
    own_trap(&mut guest, CODE + 14, FLAG);
    guest.context.registers_mut().rflags &= !FLAG;
    steps_to(&mut guest, CODE + 15);
    guest.expect_call(2, 0);
}

fn long_and_short(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().repeat_store().nop().call(1, &[]));
    let regs = guest.context.registers_mut();
    (regs.rax, regs.rcx, regs.rdi) = (0x5a, 3, DATA);
    for left in [2, 1] {
        steps_to(&mut guest, CODE);
        assert_eq!(guest.context.registers().rcx, left);
    }
    steps_to(&mut guest, CODE + 2);
    assert_eq!(guest.word(DATA), 0x5a_5a5a);
    steps_to(&mut guest, CODE + 3);
    // Loading SS holds traps off until the next instruction has run, whatever that is.
    guest.load(CODE, Code::new().load_stack_segment().nop().load_stack_segment().syscall().nop());
    guest.context.registers_mut().rax = Registers::USER_SS;
    steps_to(&mut guest, CODE + 3);
    steps_into_call(&mut guest, Registers::USER_SS, 0);
    assert_eq!(guest.context.registers().rip, CODE + 7);
    steps_to(&mut guest, CODE + 8);
}

fn kicked(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().push(0x302).pop_flags().nop().call(1, &[]));
    let kick = guest.context.interrupter();
    for rip in [CODE, CODE + 5] {
        for _ in 0..2 {
            kick.interrupt();
            assert_eq!(guest.context.step(), Trap::Interrupted);
            let regs = guest.context.registers();
            assert_eq!((regs.rip, regs.rflags & FLAG), (rip, 0), "nothing has run");
        }
        if rip == CODE {
            steps_to(&mut guest, CODE + 5);
        }
    }
    // And a run after it is free.
    guest.load(CODE, Code::new().nop().nop().call(1, &[]));
    kick.interrupt();
    assert_eq!(guest.context.step(), Trap::Interrupted);
    guest.expect_call(1, 0);
    // From elsewhere, all the time: each step is one all the same.
    guest.load(CODE, Code::new().increment().jump(0));
    guest.context.registers_mut().rdi = DATA;
    let work = || {
        for round in 0..300 {
            assert_eq!(guest.word(DATA), round);
            steps_to(&mut guest, CODE + 3);
            steps_to(&mut guest, CODE);
        }
    };
    beside(|| kick.interrupt(), work);
}

fn free_children(platform: &dyn Platform) {
    let code = Code::new().nop().set(Reg::Rax, 56).syscall().nop().nop().call(1, &[]);
    let mut guest = Guest::new(platform, code);
    steps_to(&mut guest, CODE + 1);
    steps_to(&mut guest, CODE + 11);
    steps_into_call(&mut guest, 56, 0);
    for share_memory in [false, true] {
        let new = if share_memory { guest.context.fork_sharing_memory() } else { guest.context.fork() };
        let mut child = Guest::start(new.expect("a child"));
        child.expect_call(1, 0);
    }
    let mut child = Guest::start(guest.context.fork().expect("a child"));
    steps_to(&mut child, CODE + 14);
    child.expect_call(1, 0);
    let new = guest.context.new_thread().expect("new_thread");
    let mut thread = Guest::bind(&guest.space, new);
    thread.expect_call(1, 0);
    // The parent is where it was.
    steps_to(&mut guest, CODE + 14);
    steps_to(&mut guest, CODE + 15);
    // With a flag of its own, the child has it too.
    guest.load(CODE, Code::new().nop().nop().call(1, &[]));
    guest.context.registers_mut().rflags |= FLAG;
    own_trap(&mut guest, CODE + 1, FLAG);
    let mut child = Guest::start(guest.context.fork().expect("a child"));
    own_trap(&mut child, CODE + 2, FLAG);
}

fn between_steps(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rax, 5).to_xmm0().set(Reg::Rax, 0).from_xmm0().store().call(1, &[]);
    let mut guest = Guest::new(platform, code);
    guest.context.registers_mut().rdi = 0x3000_0000;
    for rip in [CODE + 10, CODE + 15, CODE + 25, CODE + 30] {
        steps_to(&mut guest, rip);
        let state = guest.context.fp_state().expect("extended state");
        guest.context.set_fp_state(&state).expect("extended state");
        assert_eq!(guest.call(HostCall::Unmap { addr: UserAddr(0x6000_0000), len: PAGE }), Ok(0));
        guest.context.compare_exchange(UserAddr(DATA), 0, 1).unwrap();
    }
    guest.call(map(0x3000_0000, PAGE, RW)).unwrap();
    steps_to(&mut guest, CODE + 33);
    assert_eq!(guest.word(0x3000_0000), 5);
    guest.context.registers_mut().rbx = 3;
    steps_to(&mut guest, CODE + 43);
    assert_eq!(guest.context.registers().rbx, 3);
    steps_into_call(&mut guest, 1, 0);
}

fn beside_a_running_thread(platform: &dyn Platform) {
    let code = Code::new().nop().jump(0);
    let spin = CODE + code.here() as u64;
    let mut guest = Guest::new(platform, code.increment().jump(6));
    let new = guest.context.new_thread().expect("new_thread");
    let space = Arc::clone(&guest.space);
    let (tell, kick) = std::sync::mpsc::channel();
    let end_if_failed = EndIfFailed(Arc::clone(&guest.space));
    std::thread::scope(|scope| {
        let _end = end_if_failed;
        scope.spawn(move || {
            let mut thread = Guest::bind(&space, new);
            tell.send(thread.context.interrupter()).unwrap();
            let regs = thread.context.registers_mut();
            (regs.rip, regs.rdi) = (spin, DATA);
            assert_eq!(thread.context.run(), Trap::Interrupted, "it is not stepped");
        });
        let kick = kick.recv().unwrap();
        let start = std::time::Instant::now();
        for round in 0.. {
            steps_to(&mut guest, CODE + 1);
            steps_to(&mut guest, CODE);
            assert!(start.elapsed().as_secs() < 60, "the other thread does not run");
            if round >= 50 && guest.word(DATA) > 0 {
                break;
            }
        }
        kick.interrupt();
    });
}
