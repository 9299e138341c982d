//! What the guest's own instructions raise.

use super::*;
use crate::Exception;
use crate::code::Reg;

pub(super) const CASES: &[Case] = &[
    ("a page fault tells address and kind, and can be repaired", page_fault),
    ("division by zero, illegal instruction, breakpoint", raised),
    ("a guest that steps itself", self_stepping),
];

fn exception(guest: &mut Guest) -> Exception {
    match guest.trap() {
        // Trap number and error code are exact where the platform can tell; here all agree.
        Trap::Exception(it) => Exception::of_signal(it.signal, it.code, it.addr),
        other => panic!("expected an exception, found {other:?}"),
    }
}

fn page_fault(platform: &dyn Platform) {
    let at = 0x3000_0010;
    let code = Code::new().set(Reg::Rdi, at).set(Reg::Rax, 9);
    let store = CODE + code.here() as u64;
    let mut guest = Guest::new(platform, code.store().call(1, &[]));
    let expected = |code| Exception::of_signal(libc::SIGSEGV, code, UserAddr(at));
    assert_eq!(exception(&mut guest), expected(1), "SEGV_MAPERR");
    assert_eq!(guest.context.registers().rip, store, "at the instruction");
    guest.call(map(0x3000_0000, PAGE, libc::PROT_READ.cast_unsigned())).unwrap();
    assert_eq!(exception(&mut guest), expected(2), "SEGV_ACCERR");
    guest.call(HostCall::Protect { addr: UserAddr(0x3000_0000), len: PAGE, prot: RW }).unwrap();
    guest.expect_call(1, 0);
    assert_eq!(guest.word(at), 9);
    // The stub is out of reach.
    guest.load(CODE, Code::new().set(Reg::Rdi, abi::GUEST_TOP + PAGE).store());
    let exception = exception(&mut guest);
    assert_eq!(exception.signal, libc::SIGSEGV);
}

fn raised(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().set(Reg::Rcx, 0).divide_by_ecx());
    assert_eq!(
        exception(&mut guest),
        Exception::of_signal(libc::SIGFPE, 1, UserAddr(CODE + 10)),
        "FPE_INTDIV"
    );
    guest.load(CODE, Code::new().ud2());
    assert_eq!(exception(&mut guest), Exception::of_signal(libc::SIGILL, 2, UserAddr(CODE)), "ILL_ILLOPN");
    guest.load(CODE, Code::new().nop().int3().call(1, &[]));
    let Exception { signal, code, .. } = exception(&mut guest);
    assert_eq!((signal, code), (libc::SIGTRAP, 0x80), "SI_KERNEL");
    assert_eq!(guest.context.registers().rip, CODE + 2, "behind the breakpoint");
    guest.expect_call(1, 0);
    // Jumps to nowhere.
    guest.load(CODE, Code::new().jump(0x3000_0000 - CODE as usize));
    assert_eq!(exception(&mut guest), Exception::of_signal(libc::SIGSEGV, 1, UserAddr(0x3000_0000)));
}

fn self_stepping(platform: &dyn Platform) {
    const TRAP_FLAG: u64 = 0x100;
    let code = Code::new().nop().nop().set(Reg::Rax, 1);
    let syscall = CODE + code.here() as u64;
    let mut guest = Guest::new(platform, code.syscall().nop().nop().call(2, &[]));
    guest.context.registers_mut().rflags |= TRAP_FLAG;
    for rip in [CODE + 1, CODE + 2, syscall] {
        let Exception { signal, code, addr, .. } = exception(&mut guest);
        assert_eq!((signal, code, addr), (libc::SIGTRAP, 2, UserAddr(rip)), "TRAP_TRACE");
        assert_eq!(guest.context.registers().rip, rip);
    }
    guest.expect_call(1, 0);
    // Natively, the first trap behind a system call comes after the instruction that follows it.
    let Exception { code, addr, .. } = exception(&mut guest);
    assert_eq!((code, addr), (2, UserAddr(syscall + 3)), "TRAP_TRACE");
    guest.context.registers_mut().rflags &= !TRAP_FLAG;
    guest.expect_call(2, 0);
}
