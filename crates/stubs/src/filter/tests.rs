//! The filter against a plain statement of what it should do, by an interpreter.

use guest_process::bpf::interpreter::{Data, action};

use super::*;

const VSYSCALL: u64 = 0xffff_ffff_ff60_0000;
const VSYSCALL_CALLS: [u32; 3] = [96, 201, 309];

/// Whether the program lets it pass, and not without the kernel's consent if that is to be asked for.
fn verdict(program: &[Instruction], clones: Clones, data: &Data) -> Option<bool> {
    match action(program, &data.words())? {
        libc::SECCOMP_RET_TRAP => Some(false),
        libc::SECCOMP_RET_ALLOW if clones == Clones::Made || data.nr != 56 => Some(true),
        libc::SECCOMP_RET_USER_NOTIF if clones == Clones::Asked && data.nr == 56 => Some(true),
        _ => None,
    }
}

/// What should be allowed from the instruction of `slot`.
fn allowed(layout: Layout, slot: &Slot, data: &Data) -> bool {
    let [a, b, c, d, e, f] = data.args;
    let below = |start: u64, len: u64| {
        start < 1 << 47 && len < 1 << 47 && start.checked_add(len).is_some_and(|end| end <= GUEST_TOP)
    };
    let waits = [libc::SYS_futex, libc::SYS_futex_waitv].contains(&slot.number);
    if data.nr == 219 && waits {
        return true;
    }
    if i64::from(data.nr) != slot.number {
        return false;
    }
    match slot.label {
        Label::umlaut_wake_call | Label::umlaut_sleep_call => b <= 1,
        Label::umlaut_futex_call
        | Label::umlaut_block_call
        | Label::umlaut_futex_wait_call
        | Label::umlaut_futex_wake_call => {
            let operation = b as u32 & !0x180;
            a < GUEST_TOP && e < GUEST_TOP && [0, 1, 3, 4, 5, 9, 10].contains(&operation)
        }
        Label::umlaut_block_waitv_call => c == 0,
        Label::umlaut_membarrier_call => [4, 8, 16, 32, 64].contains(&a) && b == 0,
        Label::umlaut_mmap_call => below(a, b) && d & 0x10_0010 != 0 && d & 0x4_2000 == 0,
        Label::umlaut_munmap_call | Label::umlaut_mprotect_call => below(a, b),
        Label::umlaut_mremap_call => below(a, b) && below(e, c) && b != 0,
        Label::umlaut_madvise_call => {
            let harmless = (0..=4).chain([8, 14, 15, 20, 22, 23]).any(|one| one == c);
            below(a, b) && harmless
        }
        Label::umlaut_advise_call => below(a, b) && [0, 1, 2, 3, 4, 8, 20].contains(&c),
        Label::umlaut_receive_call => a == 0,
        Label::umlaut_read_call
        | Label::umlaut_write_call
        | Label::umlaut_pread_call
        | Label::umlaut_pwrite_call
        | Label::umlaut_lseek_call
        | Label::umlaut_readv_call
        | Label::umlaut_writev_call
        | Label::umlaut_preadv_call
        | Label::umlaut_pwritev_call => a as u32 != 0,
        Label::umlaut_close_range_call => c == 0,
        Label::umlaut_fork_call => [0x8000, 0x8100].contains(&a),
        Label::umlaut_thread_call => a == 0x25_0f00 && c == 0 && e == 0,
        Label::umlaut_remap_call => {
            a == layout.channels() && b == crate::layout::CHANNELS_SIZE && (c, d, f) == (3, 0x11, 0)
        }
        Label::umlaut_dup_call => b == 0,
        Label::umlaut_shut_call => a as u32 != 0 && b as u32 != 0,
        Label::umlaut_pdeathsig_call => (a, b) == (1, 9),
        Label::umlaut_check_in_call => a == 0 && c == 1,
        // sigreturn, sched_yield, close, getppid, exit, exit_group
        _ => true,
    }
}

/// Arguments with which the slot's call passes.
fn good(layout: Layout, slot: &Slot) -> [u64; 6] {
    match slot.label {
        _ if matches!(slot.check, Check::Handed) => [1, 0, 0, 0, 0, 0],
        Label::umlaut_shut_call => [1, 2, 0, 0, 0, 0],
        Label::umlaut_mmap_call => [0x1000, 0x1000, 3, 0x32, 0, 0],
        Label::umlaut_mremap_call => [0x1000, 0x1000, 0x1000, 0, 0, 0],
        Label::umlaut_membarrier_call => [8, 0, 0, 0, 0, 0],
        Label::umlaut_fork_call => [0x8000, 0, 0, 0, 0, 0],
        Label::umlaut_thread_call => [0x25_0f00, 0, 0, 0, 0, 0],
        Label::umlaut_remap_call => [layout.channels(), crate::layout::CHANNELS_SIZE, 3, 0x11, 2, 0],
        Label::umlaut_pdeathsig_call => [1, 9, 0, 0, 0, 0],
        Label::umlaut_check_in_call => [0, 0, 1, 0, 0, 0],
        _ => [0; 6],
    }
}

/// Values at every border.
fn values(layout: Layout) -> Vec<u64> {
    let mut values: Vec<u64> = (0..26).chain([32, 64, 100, 101, 0x100, 0x180, 0xf00]).collect();
    let borders = [1 << 32, GUEST_TOP, 1 << 47, 0x7fff << 32, GUEST_TOP - (1 << 32), 0xe000_0000, 1 << 63];
    let ours = [
        layout.channels(),
        crate::layout::CHANNELS_SIZE,
        0x8000,
        0x8100,
        0x25_0f00,
        0x10_0010,
        0x4_0032,
        0x2032,
    ];
    for border in borders.into_iter().chain(ours) {
        values.extend([border - 1, border, border + 1]);
    }
    values.extend([u64::MAX, u64::MAX - 1, 0xffff_ffff_8000_0000, 1 << 32 | 8]);
    values
}

#[test]
fn each_slot_allows_its_call_with_its_arguments_only() {
    [Clones::Asked, Clones::Made].into_iter().for_each(each_slot_allows_its_call);
}

fn each_slot_allows_its_call(clones: Clones) {
    let layout = Layout::random().unwrap();
    let program = filter(layout, clones);
    assert!(program.len() < 4096, "BPF_MAXINSNS");
    let values = values(layout);
    for slot in SLOTS_OF_CALLS {
        let base = Data {
            nr: slot.number as u32,
            arch: AUDIT_ARCH_X86_64,
            ip: layout.at(slot.label) + 2,
            args: good(layout, slot),
        };
        assert!(allowed(layout, slot, &base), "{slot:?}");
        let check = |data: Data| {
            assert_eq!(
                verdict(&program, clones, &data),
                Some(allowed(layout, slot, &data)),
                "{slot:?} {data:x?}"
            );
        };
        for nr in (0..600).chain([0x4000_0000 + 39, u32::MAX]) {
            check(Data { nr, ..base });
        }
        for (first, second) in [(0, 1), (4, 2), (0, 2), (1, 2), (0, 4), (3, 5)] {
            for a in &values {
                for b in &values {
                    let mut data = base;
                    data.args[first] = *a;
                    data.args[second] = *b;
                    check(data);
                }
            }
        }
    }
}

/// From nowhere else, and by no other entry, does anything pass but the time calls of the vsyscall page.
#[test]
fn nothing_passes_from_elsewhere() {
    [Clones::Asked, Clones::Made].into_iter().for_each(nothing_else_passes);
}

fn nothing_else_passes(clones: Clones) {
    let layout = Layout::random().unwrap();
    let program = filter(layout, clones);
    let slots: Vec<u64> = SLOTS_OF_CALLS.iter().map(|slot| layout.at(slot.label) + 2).collect();
    let text = layout.text()..layout.text() + crate::layout::TEXT_SIZE;
    let elsewhere = [0, 0x40_0000, VSYSCALL - 1, VSYSCALL + 4096, layout.channels(), u64::MAX];
    for ip in text.chain(elsewhere).filter(|ip| !slots.contains(ip)) {
        for slot in SLOTS_OF_CALLS {
            let args = good(layout, slot);
            let data = Data { nr: slot.number as u32, arch: AUDIT_ARCH_X86_64, ip, args };
            assert_eq!(verdict(&program, clones, &data), Some(false), "{data:x?}");
        }
    }
    for nr in 0..600 {
        let data = Data { nr, arch: AUDIT_ARCH_X86_64, ip: VSYSCALL, args: [0; 6] };
        assert_eq!(verdict(&program, clones, &data), Some(VSYSCALL_CALLS.contains(&nr)), "{data:x?}");
        for slot in SLOTS_OF_CALLS {
            for arch in [0, 0x4000_0003, AUDIT_ARCH_X86_64 ^ 1] {
                let data = Data { nr, arch, ip: layout.at(slot.label) + 2, args: good(layout, slot) };
                assert_eq!(verdict(&program, clones, &data), Some(false), "{data:x?}");
            }
        }
    }
}

/// The one beside it asks about what the other makes, and about nothing else; of the two answers the host takes the stricter.
#[test]
fn two_filters_ask_as_one() {
    let layout = Layout::random().unwrap();
    let (beside, made, asked) =
        (asking_filter(layout), filter(layout, Clones::Made), filter(layout, Clones::Asked));
    for slot in SLOTS_OF_CALLS {
        for ip in [layout.at(slot.label) + 1, layout.at(slot.label) + 2, layout.at(slot.label) + (1 << 32)] {
            for nr in (0..600).chain([0x4000_0000 + 56, u32::MAX]) {
                let data = Data { nr, arch: AUDIT_ARCH_X86_64, ip, args: good(layout, slot) };
                let of = |program: &[Instruction]| action(program, &data.words()).unwrap();
                assert_eq!(of(&beside).min(of(&made)), of(&asked), "{data:x?}");
            }
        }
    }
}
