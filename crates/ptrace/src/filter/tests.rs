//! The filter against a plain statement of what it should do, by an interpreter; and each comparison in it
//! is needed: changing any makes some verdict wrong.

use abi::PAGE_SIZE;
use guest_process::bpf::interpreter::{Data, verdict};

use super::*;

const TEXT: u64 = 0x7fff_e123_4000;

/// What should be allowed.
fn allowed(data: &Data) -> bool {
    let [a, b, c, d, e, _] = data.args;
    let below = |start: u64, len: u64| {
        start < 1 << 47 && len < 1 << 47 && start.checked_add(len).is_some_and(|end| end <= GUEST_TOP)
    };
    let page = |start: u64| (start..start + PAGE_SIZE).contains(&data.ip);
    match data.arch {
        AUDIT_ARCH_X86_64 => {}
        AUDIT_ARCH_I386 => return data.nr == 20,
        _ => return false,
    }
    if !page(TEXT) {
        return data.nr == 39 || page(0xffff_ffff_ff60_0000) && matches!(data.nr, 96 | 201 | 309);
    }
    match data.nr {
        // pause, getpid, exit, getppid, restart_syscall, exit_group
        34 | 39 | 60 | 110 | 219 | 231 => true,
        // mmap, fixed, neither huge nor locked
        9 => below(a, b) && d & 0x10_0010 != 0 && d & 0x4_2000 == 0,
        // mprotect, munmap
        10 | 11 => below(a, b),
        // madvise: NORMAL RANDOM SEQUENTIAL WILLNEED DONTNEED FREE HUGEPAGE NOHUGEPAGE COLD POPULATE_READ POPULATE_WRITE
        28 => below(a, b) && matches!(c, 0..=4 | 8 | 14 | 15 | 20 | 22 | 23),
        // mremap
        25 => below(a, b) && below(e, c),
        // futex: WAIT WAKE REQUEUE CMP_REQUEUE WAKE_OP WAIT_BITSET WAKE_BITSET
        202 => a < 1 << 47 && matches!(b as u32 & !0x180, 0 | 1 | 3 | 4 | 5 | 9 | 10),
        // futex_waitv without flags, membarrier of the process's own
        449 => c == 0,
        324 => matches!(a, 4 | 8 | 16 | 32 | 64) && b == 0,
        // recvmsg, close_range, dup2, write, prctl(PR_SET_PDEATHSIG, SIGKILL)
        47 => a == 0,
        436 => a == 1,
        33 => a == 1 && b == 0,
        1 => a == 0 && c == 1,
        157 => a == 1 && b == 9,
        // clone: fork, sharing memory, thread
        56 => matches!(a, 0x80_8000 | 0x80_8100 | 0x85_0f00),
        _ => false,
    }
}

/// Values at every border.
fn values() -> Vec<u64> {
    let mut values = vec![0, 1, 2, 3, 4, 8, 9, 10, 11, 0x100, 0x180, 0xf00];
    let borders = [1 << 32, GUEST_TOP, 1 << 47, 0x7fff << 32, GUEST_TOP - (1 << 32), 0xe000_0000, 1 << 63];
    for border in borders {
        values.extend([border - 1, border, border + 1]);
    }
    values.extend([u64::MAX, u64::MAX - 1, 0xffff_ffff_8000_0000, GUEST_TOP - 4096, 0x7ffe_ffff_ffff]);
    values
}

fn cases() -> Vec<Data> {
    let arches = [0, AUDIT_ARCH_I386, AUDIT_ARCH_I386 + 1, AUDIT_ARCH_X86_64, AUDIT_ARCH_X86_64 + 1];
    let vsyscall = 0xffff_ffff_ff60_0000u64;
    let mut ips = vec![0, 0x40_0000, TEXT ^ 1 << 32, TEXT ^ 1 << 63, vsyscall ^ 1 << 32];
    for page in [TEXT, vsyscall] {
        ips.extend([page - 1, page, page + 1, page + PAGE_SIZE - 1, page + PAGE_SIZE]);
    }
    let good = |nr: u32| match nr {
        9 => [0x1000, 0x1000, 3, 0x32, 0, 0],
        33 | 436 => [1, 0, 0, 0, 0, 0],
        1 => [0, 0, 1, 0, 0, 0],
        157 => [1, 9, 0, 0, 0, 0],
        324 => [8, 0, 0, 0, 0, 0],
        56 => [0x80_8000, 0, 0, 0, 0, 0],
        _ => [0; 6],
    };
    let mut cases = Vec::new();
    // Every number, from everywhere, by every entry, with arguments that are good.
    for nr in (0..600).chain([0x4000_0000 + 39, u32::MAX]) {
        for arch in arches {
            cases.extend(ips.iter().map(|ip| Data { nr, arch, ip: *ip, args: good(nr) }));
        }
    }
    // From the stub: every pair of arguments at its borders.
    let values = values();
    let special: [(u32, usize, &[u64]); 6] = [
        (
            9,
            3,
            &[0x10, 0x10_0000, 0x10_0010, 0x22, 0x4_0032, 0x2032, 0x10_2022, 0x14_0022, 0x30, 0, 0x21, 0x11],
        ),
        (56, 0, &[0x80_8001, 0x80_8000, 0x80_8100, 0x85_0f00, 0x85_0f01, 0x80_8000 | 1 << 32]),
        (202, 1, &[2, 5, 6, 7, 8, 9, 12, 13, 128, 257, 384, 393, 0x400, 1 << 32]),
        (28, 2, &[5, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 20, 21, 22, 23, 24, 25, 100, 101, 1 << 32]),
        (157, 1, &[8, 9, 15]),
        (324, 0, &[15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 256, 512]),
    ];
    for nr in FROM_STUB.iter().map(|(nr, _)| *nr as u32) {
        let base = Data { nr, arch: AUDIT_ARCH_X86_64, ip: TEXT + 100, args: good(nr) };
        for (first, second) in [(0, 1), (4, 2), (0, 2), (1, 2)] {
            for a in &values {
                for b in &values {
                    let mut data = base;
                    data.args[first] = *a;
                    data.args[second] = *b;
                    cases.push(data);
                }
            }
        }
        for (_, argument, values) in special.iter().filter(|(number, ..)| *number == nr) {
            for value in *values {
                let mut data = base;
                data.args[*argument] = *value;
                cases.push(data);
            }
        }
    }
    cases
}

#[test]
fn allows_exactly_what_it_should() {
    let program = filter(TEXT);
    assert!(program.len() < 4096, "BPF_MAXINSNS");
    for data in cases() {
        assert_eq!(verdict(&program, &data.words()), Some(allowed(&data)), "{data:x?}");
    }
}

#[test]
fn every_comparison_is_needed() {
    let program = filter(TEXT);
    let cases: Vec<_> = cases().into_iter().map(|data| (data.words(), allowed(&data))).collect();
    let unnoticed = |program: &[Instruction]| {
        cases.iter().all(|(data, allowed)| verdict(program, data) == Some(*allowed))
    };
    let mut survivors = Vec::new();
    for at in 0..program.len() {
        let (code, jt, jf, k) = program[at];
        let class = u32::from(code) & 0x07;
        let absolute = u32::from(code) & 0xe0 == libc::BPF_ABS;
        let with_x = u32::from(code) & 0x08 == libc::BPF_X;
        // Each group stands for one thing that could be wrong; some ways of being wrong make no difference.
        let groups: Vec<Vec<Instruction>> = match class {
            libc::BPF_JMP if u32::from(code) & 0xf0 == libc::BPF_JA => vec![],
            libc::BPF_JMP if with_x => vec![vec![(code, jf, jt, k)]],
            libc::BPF_JMP => vec![
                vec![(code, jf, jt, k)],
                vec![(code, jt, jf, k.wrapping_add(1)), (code, jt, jf, u32::MAX)],
            ],
            libc::BPF_LD if absolute => vec![vec![(code, jt, jf, k ^ 4)]],
            libc::BPF_ALU if !with_x => vec![vec![(code, jt, jf, k.wrapping_add(1))]],
            _ => vec![],
        };
        for group in groups {
            let survives = group.iter().all(|mutant| {
                let mut changed = program.clone();
                changed[at] = *mutant;
                unnoticed(&changed)
            });
            if survives {
                survivors.push((at, group));
            }
        }
    }
    assert!(survivors.is_empty(), "no case notices these: {survivors:x?}");
}
