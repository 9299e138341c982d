//! What a guest process may do on the host: nothing.

mod common;

use common::{CODE, DATA, Guest};
use platform::code::{Code, Reg};
use platform::{Registers, Trap};
use ptrace::{Mode, Options, Ptrace};

const MODES: [Mode; 2] = [Mode::Sysemu, Mode::Syscall];

fn platform(mode: Mode) -> Ptrace {
    Ptrace::new(Options::new(mode)).expect("the platform starts")
}

fn proc(pid: i32, file: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap()
}

fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
    line.trim_start_matches(name).trim().to_owned()
}

fn set_up() {
    let platform = platform(Mode::Sysemu);
    let guest = Guest::new(&platform, Code::new());
    let pid = guest.space.host_pid();
    let status = proc(pid, "status");
    assert_eq!(field(&status, "Seccomp:"), "2", "a filter");
    assert_eq!(field(&status, "NoNewPrivs:"), "1");
    assert_eq!(field(&status, "PPid:"), std::process::id().to_string());
    assert_eq!(field(&status, "Name:"), "umlaut-guest");
    let own: i32 = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap().trim().parse().unwrap();
    let score: i32 = proc(pid, "oom_score_adj").trim().parse().unwrap();
    assert!(score > own || own == 1000);
    assert_eq!(proc(pid, "environ"), "");
    assert_eq!(proc(pid, "personality").trim(), "00040000", "ADDR_NO_RANDOMIZE");
    let limits = proc(pid, "limits");
    let core: Vec<&str> =
        limits.lines().find(|line| line.contains("core")).unwrap().split_whitespace().collect();
    assert_eq!(core[4..6], ["1", "1"], "no core, no core pipe");
    // From stat: getsid gives 0 for a session that began outside our pid namespace, which rustix refuses.
    let session = |pid: i32| {
        let stat = proc(pid, "stat");
        stat.rsplit(')').next().unwrap().split_whitespace().nth(3).unwrap().to_owned()
    };
    let own = std::process::id().try_into().unwrap();
    assert_ne!(session(pid), session(own), "a session of its own");
    let descriptors: Vec<_> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(descriptors, ["0"], "the control socket only");
    for line in proc(pid, "maps").lines() {
        let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        let ours = start >= abi::GUEST_TOP || [CODE, DATA].contains(&start);
        assert!(ours && !line.contains("[stack]") && !line.contains("[heap]"), "{line}");
    }
}

#[test]
fn a_guest_process_is_set_up() {
    common::also_as_nobody("a_guest_process_is_set_up", set_up);
}

/// Where the stub's text is, from the host's own account.
fn stub_text(pid: i32) -> u64 {
    let maps = proc(pid, "maps");
    let line = maps.lines().find(|line| line.contains("umlaut-stub")).unwrap();
    assert!(line.contains("r-xp"), "{line}");
    u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap()
}

#[test]
fn the_stub_lies_elsewhere_at_each_start() {
    let mut bases: Vec<u64> = (0..8)
        .map(|_| {
            let platform = platform(Mode::Sysemu);
            stub_text(Guest::new(&platform, Code::new()).space.host_pid())
        })
        .collect();
    bases.sort_unstable();
    bases.dedup();
    assert!(bases.len() > 6);
}

/// A hostile guest enters the stub at every byte, with registers that would make host calls; run, and stepped.
#[test]
fn no_byte_of_the_stub_is_a_way_out() {
    let canary = std::env::temp_dir().join(format!("umlaut-canary-{}", std::process::id()));
    let path = format!("{}\0", canary.display());
    for mode in MODES {
        let platform = platform(mode);
        let mut guest = Guest::new(&platform, Code::new());
        let text = stub_text(guest.space.host_pid());
        let range = [platform::GuestRange { start: abi::UserAddr(DATA), len: path.len() }];
        guest.space.write(path.as_bytes(), &range, platform::Reach::Mapped);
        // Number and first argument in every place where the stub looks for them: mkdir of the canary.
        let mut record = 83u64.to_le_bytes().to_vec();
        record.extend_from_slice(&DATA.to_le_bytes());
        record.resize(64, 0);
        let range = [platform::GuestRange { start: abi::UserAddr(DATA + 0x1000), len: record.len() }];
        guest.space.write(&record, &range, platform::Reach::Mapped);
        let mut calls = 0;
        for (offset, stepped) in (0..1024).flat_map(|offset| [(offset, false), (offset, true)]) {
            *guest.context.registers_mut() = Registers {
                rax: 83,
                rdi: DATA,
                rsi: 0o777,
                rbx: DATA + 0x1000,
                rbp: DATA + 0x1040,
                r12: offset % 2,
                r13: DATA + 0x2000,
                ..Registers::for_new_image(text + offset, DATA + 0x8000)
            };
            for _ in 0..if stepped { 36 } else { 12 } {
                match if stepped { guest.step() } else { guest.trap() } {
                    Trap::Syscall(_) => {
                        calls += 1;
                        guest.context.set_result(0);
                    }
                    Trap::Exception(_) => break,
                    Trap::Stepped => {}
                    other => panic!("at {offset:#x}: {other:?}"),
                }
            }
            assert!(!canary.exists(), "a host call was made from {offset:#x}");
        }
        assert!(calls > 100, "the stub's calls trap as the guest's");
    }
}

/// Every way into the host kernel, with a call that would leave a trace.
#[test]
fn no_entry_makes_a_host_call() {
    let canary = std::env::temp_dir().join(format!("umlaut-entry-{}", std::process::id()));
    let path = format!("{}\0", canary.display());
    // Also below 4 GiB, for 32-bit entries.
    let entries: [(&str, u64, &[u8]); 5] = [
        ("syscall", 83, &[0x0f, 0x05]),
        ("x32", 83 | 0x4000_0000, &[0x0f, 0x05]),
        ("upper half", 83 | 1 << 32, &[0x0f, 0x05]),
        ("int 0x80", 39, &[0xcd, 0x80]),
        ("sysenter", 39, &[0x0f, 0x34]),
    ];
    for mode in MODES {
        let platform = platform(mode);
        for ((name, number, instruction), stepped) in
            entries.into_iter().flat_map(|entry| [(entry, false), (entry, true)])
        {
            let code = Code::new()
                .set(Reg::Rdi, DATA)
                .set(Reg::Rbx, DATA)
                .set(Reg::Rsi, 0o777)
                .set(Reg::Rcx, 0o777)
                .set(Reg::Rax, number);
            let mut bytes = code.bytes().to_vec();
            bytes.extend_from_slice(instruction);
            bytes.extend_from_slice(&[0x0f, 0x0b]);
            let mut guest = Guest::new(&platform, Code::new());
            let range = [platform::GuestRange { start: abi::UserAddr(DATA), len: path.len() }];
            guest.space.write(path.as_bytes(), &range, platform::Reach::Mapped);
            guest.load(&bytes);
            for _ in 0..10 {
                match if stepped { guest.step() } else { guest.trap() } {
                    Trap::Syscall(_) => guest.context.set_result(7),
                    Trap::Exception(_) | Trap::Died(_) => break,
                    Trap::Interrupted | Trap::Stepped => {}
                }
            }
            assert!(!canary.exists(), "{name} made a host call on {}, stepped: {stepped}", mode.name());
        }
    }
}

#[test]
fn vsyscalls_tell_the_time() {
    if !std::fs::read_to_string("/proc/self/maps").unwrap().contains("[vsyscall]") {
        println!("skipped: this host has no vsyscall page");
        return;
    }
    for mode in MODES {
        let platform = platform(mode);
        // mov rax, vtime; xor edi, edi; call rax; mov rdi, DATA; mov [rdi], rax; syscall
        let mut code = Code::new().set(Reg::Rax, 0xffff_ffff_ff60_0400).set(Reg::Rdi, 0).bytes().to_vec();
        code.extend_from_slice(&[0xff, 0xd0]);
        code.extend_from_slice(Code::new().set(Reg::Rdi, DATA).store().syscall().bytes());
        let mut guest = Guest::new(&platform, Code::new());
        guest.load(&code);
        assert!(matches!(guest.trap(), Trap::Syscall(_)));
        assert!(guest.word(DATA) > 1_700_000_000);
    }
}

/// `popf` with the trap flag, as a debugger inside a guest or a hostile guest may: each step traps once.
#[test]
fn a_guest_that_sets_its_trap_flag_steps() {
    for mode in MODES {
        let platform = platform(mode);
        // pushf; or dword [rsp], 0x100; popf; nop; nop; mov eax, 39; syscall; nop; ud2
        let code = [
            0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0x90, 0x90, 0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0x90, 0x0f,
            0x0b,
        ];
        let mut guest = Guest::new(&platform, Code::new());
        guest.load(&code);
        for offset in [10, 11, 16] {
            let trap = guest.trap();
            assert!(
                matches!(trap, Trap::Exception(it) if (it.signal, it.code) == (libc::SIGTRAP, 2)),
                "{trap:?}"
            );
            assert_eq!(guest.context.registers().rip, CODE + offset);
        }
        assert!(matches!(guest.trap(), Trap::Syscall(entry) if entry.number == 39));
        // A host call in between does not step.
        guest.context.host_calls(&[common::map(0x3000_0000, 3)]).unwrap();
        assert!(matches!(guest.trap(), Trap::Exception(it) if it.code == 2 && it.addr.0 == CODE + 19));
    }
}
