//! A guest thread's registers as they lie in its channel, in the order of `user_regs_struct`.

use platform::Registers;

use crate::channel::Channel;
use crate::layout::REGS;

/// What the guest's registers are. `own`: the channel's address, which is GS base unless the guest has set one.
pub(crate) fn read(channel: &Channel, own: u64) -> Registers {
    let word = |index: u64| channel.get(REGS + index * 8);
    Registers {
        r15: word(0),
        r14: word(1),
        r13: word(2),
        r12: word(3),
        rbp: word(4),
        rbx: word(5),
        r11: word(6),
        r10: word(7),
        r9: word(8),
        r8: word(9),
        rax: word(10),
        rcx: word(11),
        rdx: word(12),
        rsi: word(13),
        rdi: word(14),
        orig_rax: u64::MAX,
        rip: word(16),
        cs: word(17),
        rflags: word(18),
        rsp: word(19),
        ss: word(20),
        fs_base: word(21),
        gs_base: if word(22) == own { 0 } else { word(22) },
        ..Registers::default()
    }
}

/// Makes them these. `false`: user code cannot have them.
pub(crate) fn write(channel: &Channel, r: &Registers) -> bool {
    const LIMIT: u64 = 1 << 47;
    let possible = r.cs == Registers::USER_CS
        && r.ss == Registers::USER_SS
        && [r.rip, r.fs_base, r.gs_base].iter().all(|address| *address < LIMIT);
    if !possible {
        return false;
    }
    let flags = r.rflags & (Registers::USER_FLAGS | 1 << 21) | 0x202;
    let words = [
        r.r15,
        r.r14,
        r.r13,
        r.r12,
        r.rbp,
        r.rbx,
        r.r11,
        r.r10,
        r.r9,
        r.r8,
        r.rax,
        r.rcx,
        r.rdx,
        r.rsi,
        r.rdi,
        u64::MAX,
        r.rip,
        r.cs,
        flags,
        r.rsp,
        r.ss,
        r.fs_base,
        r.gs_base,
    ];
    for (index, word) in (0u64..).zip(words) {
        channel.set(REGS + index * 8, word);
    }
    true
}
