//! System calls, registers and extended state.

use abi::Errno;

use super::*;
use crate::code::Reg;

pub(super) const CASES: &[Case] = &[
    ("a call traps with its number and arguments", call_traps),
    ("int 0x80 is told apart", int80),
    ("all general registers round-trip", registers_round_trip),
    ("a result alone leaves the other registers", result_alone),
    ("an unanswered call is ENOSYS", unanswered),
    ("restart numbers as results are not restarted by the host", restart_numbers),
    ("fs base is the guest's", fs_base),
    ("registers that user code cannot have are a fault", impossible_registers),
    ("extended state is the guest's", fp_is_the_guests),
    ("extended state can be reset, and refuses nonsense", fp_reset),
    ("calls by the thousand", many_calls),
];

fn call_traps(platform: &dyn Platform) {
    let code = Code::new().call(7777, &[1, 2, 3, 4, 5, u64::MAX]);
    let end = code.here() as u64;
    let mut guest = Guest::new(platform, code.set(Reg::Rdi, DATA).store().call(60, &[0]));
    let entry = guest.syscall();
    assert_eq!(entry, SyscallEntry { number: 7777, args: [1, 2, 3, 4, 5, u64::MAX], native: true });
    assert_eq!(guest.context.registers().rip, CODE + end, "behind the instruction");
    assert_eq!(guest.context.registers().rcx, CODE + end, "rcx as the instruction leaves it");
    guest.context.set_result(0x1234_5678_9abc_def0);
    guest.expect_call(60, 0);
    assert_eq!(guest.word(DATA), 0x1234_5678_9abc_def0);
}

fn int80(platform: &dyn Platform) {
    // 39 is mkdir there, and must not become a host call.
    let code = Code::new().set(Reg::Rbx, DATA).set(Reg::Rax, 39).int80().call(60, &[]);
    let mut guest = Guest::new(platform, code);
    let entry = guest.syscall();
    assert_eq!((entry.number, entry.native), (39, false));
    guest.context.set_result(Errno::ENOSYS.as_result());
    guest.expect_call(60, 0);
}

fn registers_round_trip(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().syscall());
    let set = Registers {
        r15: 0xf1,
        r14: 0xf2,
        r13: 0xf3,
        r12: 0xf4,
        rbp: 0xf5,
        rbx: 0xf6,
        r11: 0,
        r10: 0xf8,
        r9: 0xf9,
        r8: 0xfa,
        rax: 123,
        rcx: 0,
        rdx: 0xfb,
        rsi: 0xfc,
        rdi: 0xfd,
        rsp: 0xfe,
        fs_base: 0x1000,
        gs_base: 0x2000,
        ..*guest.context.registers()
    };
    *guest.context.registers_mut() = set;
    assert_eq!(guest.syscall().args, [0xfd, 0xfc, 0xfb, 0xf8, 0xfa, 0xf9]);
    let got = *guest.context.registers();
    let expected = Registers {
        rax: Errno::ENOSYS.as_result(),
        rip: CODE + 2,
        rcx: CODE + 2,
        r11: got.r11,
        orig_rax: got.orig_rax,
        rflags: got.rflags,
        ..set
    };
    assert_eq!(got, expected);
}

fn result_alone(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rbx, 77).set(Reg::R15, 88).call(1, &[5]).syscall();
    let mut guest = Guest::new(platform, code);
    guest.expect_call(1, 2);
    guest.syscall();
    let regs = guest.context.registers();
    assert_eq!((regs.rbx, regs.r15, regs.rdi), (77, 88, 5));
    // Set after the registers were looked at, and before they are changed.
    guest.load(CODE, Code::new().call(1, &[]).syscall());
    guest.syscall();
    assert_eq!(guest.context.registers().rdi, 0);
    guest.context.set_result(9);
    guest.context.registers_mut().rdi = 4;
    let entry = guest.syscall();
    assert_eq!((entry.number, entry.args[0]), (9, 4));
}

fn unanswered(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().call(39, &[]).set(Reg::Rdi, DATA).store().call(1, &[]));
    guest.syscall();
    guest.syscall();
    assert_eq!(guest.word(DATA), Errno::ENOSYS.as_result());
}

fn restart_numbers(platform: &dyn Platform) {
    let code = Code::new().call(39, &[]).set(Reg::Rdi, DATA).store().call(1, &[]);
    for number in [512u64, 513, 514, 516] {
        for through_registers in [false, true] {
            let mut guest = Guest::new(platform, code.clone());
            guest.expect_call(39, number.wrapping_neg());
            if through_registers {
                guest.context.registers_mut().rbx = 1;
            }
            // The kick has the host look for calls to restart.
            guest.context.interrupter().interrupt();
            guest.expect_call(1, 0);
            assert_eq!(guest.word(DATA), number.wrapping_neg());
        }
    }
}

fn fs_base(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new().load_from_fs().set(Reg::Rdi, DATA).store().call(1, &[]));
    assert!(guest.put(DATA + 64, &42u64.to_le_bytes()));
    guest.context.registers_mut().fs_base = DATA + 64;
    guest.expect_call(1, 0);
    assert_eq!(guest.word(DATA), 42);
}

fn impossible_registers(platform: &dyn Platform) {
    if platform.capabilities().name == "mock" {
        println!("  skipped: the mock has no segments");
        return;
    }
    let mut guest = Guest::new(platform, Code::new().call(1, &[]));
    guest.context.registers_mut().cs = 0x10;
    assert!(matches!(guest.trap(), Trap::Exception(exception) if exception.signal == libc::SIGSEGV));
    guest.context.registers_mut().cs = Registers::USER_CS;
    guest.context.registers_mut().fs_base = 1 << 63;
    assert!(matches!(guest.trap(), Trap::Exception(exception) if exception.signal == libc::SIGSEGV));
    guest.context.registers_mut().fs_base = 0;
    guest.context.registers_mut().rip = 1 << 63;
    assert!(matches!(guest.trap(), Trap::Exception(exception) if exception.signal == libc::SIGSEGV));
    guest.load(CODE, Code::new().call(1, &[]));
    guest.expect_call(1, 0);
}

const XMM0: usize = 160;

fn fp_is_the_guests(platform: &dyn Platform) {
    let code = Code::new()
        .set(Reg::Rax, 0x1122_3344)
        .to_xmm0()
        .call(1, &[])
        .from_xmm0()
        .set(Reg::Rdi, DATA)
        .store()
        .call(2, &[]);
    let mut guest = Guest::new(platform, code);
    guest.expect_call(1, 0);
    let mut fp = guest.context.fp_state().expect("fp_state");
    assert_eq!(fp.len(), platform.capabilities().xsave_size);
    assert_eq!(fp[XMM0..XMM0 + 8], 0x1122_3344u64.to_le_bytes());
    fp[XMM0..XMM0 + 8].copy_from_slice(&0x5566u64.to_le_bytes());
    guest.context.set_fp_state(&fp).expect("set_fp_state");
    guest.expect_call(2, 0);
    assert_eq!(guest.word(DATA), 0x5566);
}

fn fp_reset(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rax, 7).to_xmm0().call(1, &[]).from_xmm0().set(Reg::Rdi, DATA).store();
    let mut guest = Guest::new(platform, code.call(2, &[]));
    let fresh = guest.context.fp_state().expect("fp_state");
    guest.expect_call(1, 0);
    let mut fp = guest.context.fp_state().expect("fp_state");
    // A reserved bit of MXCSR.
    fp[27] = 0x80;
    assert_eq!(guest.context.set_fp_state(&fp), Err(Errno::EINVAL));
    guest.context.reset_fp_state().expect("reset_fp_state");
    let reset = guest.context.fp_state().expect("fp_state");
    assert_eq!(reset[..2], [0x7f, 0x03], "the control word");
    assert_eq!(reset[24..28], 0x1f80u32.to_le_bytes(), "MXCSR");
    assert_eq!(reset[XMM0..XMM0 + 16], fresh[XMM0..XMM0 + 16]);
    guest.expect_call(2, 0);
    assert_eq!(guest.word(DATA), 0);
}

fn many_calls(platform: &dyn Platform) {
    let code = Code::new().set(Reg::Rax, 0).syscall();
    let mut guest = Guest::new(platform, code.clone().jump(code.here() - 2));
    // Below 335: Linux serves uretprobe and uprobe past any filter, by SIGILL for who may not call them.
    for round in 0..2000 {
        guest.expect_call(round % 300, (round + 1) % 300);
    }
}
