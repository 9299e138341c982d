//! Guest memory: copies, and the host calls that change it.

use std::os::fd::AsFd;

use abi::{Errno, GUEST_TOP};

use super::*;
use crate::MapFile;
use crate::code::Reg;

pub(super) const CASES: &[Case] = &[
    ("copies are vectored and stop at the first fault", copies),
    ("copies obey protections", protections),
    ("nothing outside the guest's range is copied", outside),
    ("stacks grow where asked to", stack_growth),
    ("a batch stops at the first failure", batch_failure),
    ("long batches", long_batch),
    ("what the list of host calls does not allow is refused", refused),
    ("map, protect, remap, advise, unmap", changes),
    ("files are mapped, several in one batch", files),
    ("the word exchange is exact and safe", exchange),
    ("everything can be unmapped at once", unmap_all),
    ("memory use is counted", resident),
];

fn copies(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let space = Arc::clone(&guest.space);
    let bytes: Vec<u8> = (0..=255).collect();
    let to = [range(DATA + 10, 100), range(DATA + 4090, 100), range(DATA, 6), range(DATA + 500, 50)];
    assert_eq!(space.write(&bytes, &to, Reach::Mapped), 256);
    let mut back = vec![0; 256];
    assert_eq!(space.read(&to, &mut back, Reach::Mapped), 256);
    assert_eq!(back, bytes);
    // More ranges than the host takes at once.
    let many: Vec<GuestRange> = (0..1500).map(|i| range(DATA + i, 1)).collect();
    let mut back = vec![0; 1500];
    assert_eq!(space.read(&many, &mut back, Reach::Mapped), 1500);
    assert_eq!(back[10..110], bytes[..100]);
    guest.call(HostCall::Unmap { addr: UserAddr(DATA + PAGE), len: PAGE }).unwrap();
    let across = [range(DATA, 8), range(DATA + PAGE - 10, 20), range(DATA, 8)];
    assert_eq!(space.read(&across, &mut [0; 36], Reach::Mapped), 18, "up to the hole");
    assert_eq!(space.write(&[0; 36], &across, Reach::Mapped), 18, "up to the hole");
    assert_eq!(space.read(&[range(DATA + PAGE, 1)], &mut [0], Reach::Mapped), 0);
    assert_eq!(space.read(&[], &mut [], Reach::Mapped), 0);
    assert_eq!(space.read(&[range(DATA, 0), range(DATA, 1)], &mut [0], Reach::Mapped), 1);
}

fn protections(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    assert!(guest.put(DATA, b"text"));
    let protect =
        |prot: i32| HostCall::Protect { addr: UserAddr(DATA), len: PAGE, prot: prot.cast_unsigned() };
    guest.call(protect(libc::PROT_READ)).unwrap();
    assert!(!guest.put(DATA, b"x"), "read-only");
    let mut back = [0; 4];
    assert_eq!(guest.space.read(&[range(DATA, 4)], &mut back, Reach::Mapped), 4);
    assert_eq!(&back, b"text");
    guest.call(protect(libc::PROT_NONE)).unwrap();
    assert_eq!(guest.space.read(&[range(DATA, 4)], &mut back, Reach::Mapped), 0, "no access");
    assert!(guest.put(DATA + PAGE, b"x"));
}

fn outside(platform: &dyn Platform) {
    let guest = Guest::new(platform, Code::new());
    for reach in [Reach::Mapped, Reach::Growing] {
        for start in [GUEST_TOP, GUEST_TOP - 4, u64::MAX - 3, 0xffff_ffff_ff60_0000, 0x7fff_f7ff_d000] {
            let mut back = [0; 8];
            assert_eq!(guest.space.read(&[range(start, 8)], &mut back, reach), 0, "{start:#x}");
            assert_eq!(guest.space.write(&back, &[range(start, 8)], reach), 0, "{start:#x}");
        }
    }
}

fn stack_growth(platform: &dyn Platform) {
    let stack = 0x4000_0000;
    let code = Code::new().set(Reg::Rdi, stack - 0x8000).set(Reg::Rax, 9).store().call(1, &[]);
    let mut guest = Guest::new(platform, code);
    let flags = PRIVATE | libc::MAP_GROWSDOWN.cast_unsigned();
    guest.call(HostCall::Map { addr: UserAddr(stack), len: PAGE, prot: RW, flags, file: None }).unwrap();
    assert_eq!(guest.space.write(b"12345678", &[range(stack - 4, 8)], Reach::Mapped), 0, "not grown");
    assert_eq!(guest.space.write(b"12345678", &[range(stack - 4, 8)], Reach::Growing), 8);
    let mut back = [0; 8];
    assert_eq!(guest.space.read(&[range(stack - 4, 8)], &mut back, Reach::Mapped), 8);
    assert_eq!(&back, b"12345678");
    guest.expect_call(1, 0);
    assert_eq!(guest.word(stack - 0x8000), 9, "the guest's own access grows it");
}

fn batch_failure(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let at = 0x3000_0000;
    let failure = guest
        .calls(&[
            map(at, PAGE, RW),
            map(at + PAGE, PAGE, RW),
            map(at, PAGE, RW),
            map(at + 2 * PAGE, PAGE, RW),
        ])
        .unwrap_err();
    assert_eq!(failure, HostCallFailure { index: 2, error: HostCallError::Failed(Errno::EEXIST) });
    assert!(guest.put(at, b"x") && guest.put(at + PAGE, b"x"), "those before it are done");
    assert!(!guest.put(at + 2 * PAGE, b"x"), "those behind it are not");
    assert_eq!(guest.calls(&[]), Ok(0));
    // A refused one in the middle.
    let failure = guest.calls(&[map(at + 3 * PAGE, PAGE, RW), map(GUEST_TOP, PAGE, RW)]).unwrap_err();
    assert_eq!(failure, HostCallFailure { index: 1, error: HostCallError::Failed(Errno::EINVAL) });
    assert!(guest.put(at + 3 * PAGE, b"x"), "those before it are done");
}

fn long_batch(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let at = 0x3000_0000;
    let calls: Vec<HostCall<'_>> = (0..200).map(|i| map(at + 2 * i * PAGE, PAGE, RW)).collect();
    assert_eq!(guest.calls(&calls), Ok(at + 398 * PAGE));
    assert!(guest.put(at + 398 * PAGE, b"x") && !guest.put(at + PAGE, b"x"));
    let mut calls: Vec<HostCall<'_>> = (200..400).map(|i| map(at + 2 * i * PAGE, PAGE, RW)).collect();
    calls[150] = map(at, PAGE, RW);
    assert_eq!(guest.calls(&calls).unwrap_err().index, 150);
}

fn refused(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let invalid = Err(HostCallError::Failed(Errno::EINVAL));
    let at = UserAddr(0x3000_0000);
    let above = UserAddr(GUEST_TOP);
    for addr in [above, UserAddr(GUEST_TOP - PAGE), UserAddr(u64::MAX - PAGE + 1)] {
        let len = 2 * PAGE;
        assert_eq!(guest.call(map(addr.0, len, RW)), invalid);
        assert_eq!(guest.call(HostCall::Unmap { addr, len }), invalid);
        assert_eq!(guest.call(HostCall::Protect { addr, len, prot: RWX }), invalid);
        assert_eq!(guest.call(HostCall::Advise { addr, len, advice: libc::MADV_DONTNEED }), invalid);
        let from = HostCall::Remap { addr, old_len: len, new_len: len, to: Some(at), keep_old: false };
        assert_eq!(guest.call(from), invalid);
        let data = UserAddr(DATA);
        let to = HostCall::Remap { addr: data, old_len: PAGE, new_len: len, to: Some(addr), keep_old: false };
        assert_eq!(guest.call(to), invalid);
    }
    for flags in [libc::MAP_HUGETLB, libc::MAP_LOCKED] {
        let flags = PRIVATE | flags.cast_unsigned();
        assert_eq!(guest.call(HostCall::Map { addr: at, len: PAGE, prot: RW, flags, file: None }), invalid);
    }
    let unfixed = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS).cast_unsigned();
    assert_eq!(
        guest.call(HostCall::Map { addr: at, len: PAGE, prot: RW, flags: unfixed, file: None }),
        invalid
    );
    for advice in [libc::MADV_REMOVE, libc::MADV_HWPOISON, libc::MADV_MERGEABLE] {
        assert_eq!(guest.call(HostCall::Advise { addr: UserAddr(DATA), len: PAGE, advice }), invalid);
    }
    let huge = HostCall::Unmap { addr: UserAddr(0), len: u64::MAX };
    assert_eq!(guest.call(huge), invalid);
    // The process is as well as before.
    guest.load(CODE, Code::new().call(1, &[]));
    guest.expect_call(1, 0);
}

fn changes(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let (a, b) = (0x3000_0000, 0x5000_0000);
    guest.call(map(a, 4 * PAGE, RW)).unwrap();
    assert!(guest.put(a, b"first") && guest.put(a + 3 * PAGE, b"last"));
    let moved = HostCall::Remap {
        addr: UserAddr(a),
        old_len: 4 * PAGE,
        new_len: 6 * PAGE,
        to: Some(UserAddr(b)),
        keep_old: false,
    };
    assert_eq!(guest.call(moved), Ok(b));
    assert!(!guest.put(a, b"x"), "moved away");
    let mut back = [0; 5];
    assert_eq!(guest.space.read(&[range(b, 5)], &mut back, Reach::Mapped), 5);
    assert_eq!(&back, b"first");
    assert!(guest.put(b + 5 * PAGE, b"x"), "grown");
    let shrink =
        HostCall::Remap { addr: UserAddr(b), old_len: 6 * PAGE, new_len: PAGE, to: None, keep_old: false };
    assert_eq!(guest.call(shrink), Ok(b));
    assert!(!guest.put(b + PAGE, b"x"), "shrunk in place");
    guest.call(HostCall::Advise { addr: UserAddr(b), len: PAGE, advice: libc::MADV_DONTNEED }).unwrap();
    assert_eq!(guest.word(b), 0, "given back");
    guest.call(HostCall::Unmap { addr: UserAddr(b), len: PAGE }).unwrap();
    assert!(!guest.put(b, b"x"));
    let none = HostCall::Protect { addr: UserAddr(b), len: PAGE, prot: RW };
    assert_eq!(guest.call(none), Err(HostCallError::Failed(Errno::ENOMEM)));
}

fn files(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let memfd = |content: &[u8]| {
        let fd = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, 3 * PAGE).unwrap();
        rustix::io::pwrite(&fd, content, PAGE).unwrap();
        fd
    };
    let (one, two) = (memfd(b"one"), memfd(b"two"));
    let at = 0x3000_0000;
    let flags = |kind: i32| (kind | libc::MAP_FIXED_NOREPLACE).cast_unsigned();
    for round in 0..50 {
        let at = at + round * 0x10_0000;
        let file = |fd, offset| Some(MapFile { fd, offset });
        let mapping = |place: u64, kind, file| HostCall::Map {
            addr: UserAddr(at + place * PAGE),
            len: PAGE,
            prot: RW,
            flags: flags(kind),
            file,
        };
        let result = guest.calls(&[
            mapping(0, libc::MAP_SHARED, file(one.as_fd(), PAGE)),
            mapping(1, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, None),
            mapping(2, libc::MAP_PRIVATE, file(two.as_fd(), PAGE)),
        ]);
        assert_eq!(result, Ok(at + 2 * PAGE));
        // A failing batch leaves no descriptor behind that would shift the next ones.
        let again = guest.calls(&[mapping(0, libc::MAP_SHARED, file(two.as_fd(), 0))]);
        assert_eq!(again.unwrap_err().error, HostCallError::Failed(Errno::EEXIST));
    }
    let mut text = [0; 3];
    for (place, content) in [(0, b"one"), (2, b"two")] {
        assert_eq!(guest.space.read(&[range(at + place * PAGE, 3)], &mut text, Reach::Mapped), 3);
        assert_eq!(&text, content);
    }
    assert!(guest.put(at, b"ONE") && guest.put(at + 2 * PAGE, b"TWO"));
    rustix::io::pread(&one, &mut text, PAGE).unwrap();
    assert_eq!(&text, b"ONE", "shared");
    rustix::io::pread(&two, &mut text, PAGE).unwrap();
    assert_eq!(&text, b"two", "private");
}

fn exchange(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    assert!(guest.put(DATA, &5u64.to_le_bytes()));
    let at = UserAddr(DATA);
    assert_eq!(guest.context.compare_exchange(at, 4, 9), Ok(5));
    assert_eq!(guest.word(DATA), 5);
    assert_eq!(guest.context.compare_exchange(at, 5, 9), Ok(5));
    assert_eq!(guest.word(DATA), 9);
    for bad in [0x3000_0000, GUEST_TOP, GUEST_TOP + PAGE, u64::MAX - 3, DATA + 2] {
        assert_eq!(guest.context.compare_exchange(UserAddr(bad), 0, 1), Err(Errno::EFAULT), "{bad:#x}");
    }
    let prot = libc::PROT_READ.cast_unsigned();
    guest.call(HostCall::Protect { addr: at, len: PAGE, prot }).unwrap();
    assert_eq!(guest.context.compare_exchange(at, 9, 1), Err(Errno::EFAULT));
    assert_eq!(guest.word(DATA), 9);
    // Registers are the guest's again.
    guest.load(CODE, Code::new().call(1, &[2]));
    assert_eq!(guest.expect_call(1, 0).args[0], 2);
}

fn unmap_all(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    let low = 0x1_0000;
    let high = GUEST_TOP - PAGE;
    guest.calls(&[map(low, PAGE, RW), map(high, PAGE, RW)]).unwrap();
    guest.call(HostCall::UnmapAll).unwrap();
    for at in [low, CODE, DATA, high] {
        assert!(!guest.put(at, b"x"), "{at:#x}");
    }
    guest.call(map(CODE, PAGE, RWX)).unwrap();
    guest.load(CODE, Code::new().call(1, &[2]));
    assert_eq!(guest.expect_call(1, 0).args[0], 2);
}

fn resident(platform: &dyn Platform) {
    let mut guest = Guest::new(platform, Code::new());
    guest.call(map(0x3000_0000, 256 * PAGE, RW)).unwrap();
    let before = guest.space.resident_pages().0;
    assert!(guest.put(0x3000_0000, &vec![1; 256 * PAGE as usize]));
    assert!(guest.space.resident_pages().0 >= before + 256);
}
