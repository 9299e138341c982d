//! A guest code page runs to its system calls, its memory is read and written.
use abi::UserAddr;
use platform::{GuestRange, HostCall, Platform, Reach, Registers, Trap};
use ptrace::{Mode, Options, Ptrace};

#[test]
fn runs_to_a_system_call() {
    for mode in [Mode::Sysemu, Mode::Syscall] {
        let platform = Ptrace::new(Options::new(mode)).unwrap();
        let new = platform.spawn().unwrap();
        let space = new.space;
        let mut context = new.thread.bind().unwrap();
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as u32;
        let page = UserAddr(0x10000);
        context
            .host_calls(&[
                HostCall::Map { addr: page, len: 4096, prot: 7, flags, file: None },
                HostCall::Map { addr: UserAddr(0x20000), len: 4096, prot: 3, flags, file: None },
            ])
            .unwrap();
        // mov $7777,%eax; mov $5,%edi; syscall; jmp -2 (the syscall again)
        let code = [0xb8, 0x61, 0x1e, 0, 0, 0xbf, 5, 0, 0, 0, 0x0f, 0x05, 0xeb, 0xfc];
        let range = [GuestRange { start: page, len: code.len() }];
        assert_eq!(space.write(&code, &range, Reach::Mapped), code.len());
        let mut back = vec![0; code.len()];
        assert_eq!(space.read(&range, &mut back, Reach::Mapped), code.len());
        assert_eq!(back, code);
        *context.registers_mut() = Registers::for_new_image(page.0, 0x21000);
        let Trap::Syscall(entry) = context.run() else { panic!() };
        assert_eq!((entry.number, entry.args[0], entry.native), (7777, 5, true));
        for i in 0..1000 {
            context.set_result(i);
            let Trap::Syscall(entry) = context.run() else { panic!() };
            assert_eq!(entry.number, i);
        }
        assert_eq!(context.registers().rip, page.0 + 12);
    }
}
