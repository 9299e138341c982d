//! Arguments that only others give a meaning: what an `ioctl` points to, the mode of an `open`.

use abi::{FromRegister, IoprioClass, OpenFlags, QuotaCmd, QuotaType, Timespec, UserAddr};

use super::{RegisterWords, SyscallArg};
use crate::syscall::show::{self, Phase, Printer};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident($type:ty), $show:expr;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $type);

        impl SyscallArg for $name {
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name(<$type>::decode(words))
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                let show: fn(&mut Printer<'_>, $type) = $show;
                show(printer, self.0);
            }
        }
    )*};
}

words! {
    /// The mode of a file to be made; shown only where the flags before it make one.
    CreateMode(u32), |printer, mode| {
        let flags = OpenFlags::from_register(printer.register_before(1));
        if flags.contains(OpenFlags::CREAT) || flags.contains(OpenFlags::TMPFILE) {
            printer.text(format_args!("0{mode:02o}"));
        }
    };
    /// What an `ioctl`'s request makes of it.
    IoctlArg(u64), show::ioctl::argument;
    /// What the command of `fcntl` makes of it.
    FcntlArg(u64), show::fcntl::argument;
    /// What the operation of `prctl` makes of it.
    PrctlArg(u64), show::prctl::argument;
    /// What the code of `arch_prctl` makes of it.
    ArchPrctlArg(u64), show::prctl::arch_argument;
    /// The operation of `futex`.
    FutexOperation(abi::FutexOp), |printer, op| {
        let text = show::futex::operation(op);
        printer.out.push_str(&text);
    };
    /// The time-out of a futex operation, or a count.
    FutexTimeout(UserAddr), |printer, addr| show::futex::timeout(printer, addr.0);
    /// The second futex of an operation.
    FutexSecond(UserAddr), |printer, addr| show::futex::second(printer, addr.0);
    /// A bit set, a value to compare with, or an operation.
    FutexThird(u32), |printer, value| show::futex::third(printer, u64::from(value));
    /// A user or group id; -1 often means: as it is.
    Id(u32), |printer, id| match id {
        u32::MAX => printer.out.push_str("-1"),
        id => printer.text(format_args!("{id}")),
    };
    /// A device number; with `mknod` shown only for a mode that makes a device.
    Device(u64), |printer, number| {
        let kind = abi::FileMode::from_register(printer.register_before(1)).file_type();
        if matches!(kind, abi::FileType::CHR | abi::FileType::BLK) || printer.start == 0 {
            show::device(printer, number);
        }
    };
    /// The key of a System V object.
    IpcKey(i32), |printer, key| match key {
        0 => printer.out.push_str("IPC_PRIVATE"),
        key => printer.text(format_args!("{key:#x}")),
    };
    /// Command and type of `quotactl`.
    QuotactlCmd(u32), |printer, word| {
        printer.text(format_args!("QCMD({}, {})", QuotaCmd(word >> 8), QuotaType(word & 0xff)));
    };
    /// Class and data of an I/O priority.
    Ioprio(i32), |printer, priority| {
        let class = IoprioClass((priority >> 13) & 7);
        printer.text(format_args!("IOPRIO_PRIO_VALUE({class}, {})", priority & 0x1fff));
    };
    /// The option's number, named by its level.
    SockoptName(i32), |printer, option| {
        let name = show::socket_option_name(printer.register_before(1), option);
        printer.out.push_str(&name);
    };
    /// A `fd_set` for as many descriptors as the first argument says; null for none.
    FdSet(UserAddr), show::fd_set;
    /// Group ids, as many as the argument before says.
    InGroups(UserAddr), |printer, addr| {
        let count = usize::try_from(printer.register_before(1)).unwrap_or(0);
        printer.array::<u32>(addr, count);
    };
    /// Room for group ids.
    OutGroups(UserAddr), |printer, addr| {
        printer.after(addr, |printer, count| printer.array::<u32>(addr, count));
    };
    /// Capability sets, in the version that the header before names.
    InCapData(UserAddr), |printer, addr| {
        let header = UserAddr(printer.register_before(1));
        show::capabilities(printer, header, addr);
    };
    /// Room for capability sets, in the version that the header before names.
    OutCapData(UserAddr), |printer, addr| {
        let header = UserAddr(printer.register_before(1));
        printer.after(addr, |printer, _| show::capabilities(printer, header, addr));
    };
    /// Two `timespec`s, which may mean now or as it is; null means now.
    UtimeTimes(UserAddr), |printer, addr| match printer.value::<[Timespec; 2]>(addr) {
        None => printer.address(addr),
        Some(times) => printer.list(times.into_iter(), |printer, time| match time.nsec {
            Timespec::UTIME_NOW => printer.out.push_str("UTIME_NOW"),
            Timespec::UTIME_OMIT => printer.out.push_str("UTIME_OMIT"),
            _ => show::Show::show(&time, printer),
        }),
    };
}
