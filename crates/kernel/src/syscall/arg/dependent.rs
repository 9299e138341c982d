//! Arguments that only others give a meaning: what an `ioctl` points to, the mode of an `open`.

use abi::UserAddr;

use super::{RegisterWords, SyscallArg};
use crate::syscall::show::{Phase, Printer};

macro_rules! words {
    ($($(#[$meta:meta])* $name:ident($type:ty);)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $type);

        impl SyscallArg for $name {
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name(<$type>::decode(words))
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                printer.text(format_args!("{:#x}", self.0));
            }
        }
    )*};
}

macro_rules! addresses {
    ($($(#[$meta:meta])* $name:ident;)*) => {$(
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub UserAddr);

        impl SyscallArg for $name {
            fn decode(words: &mut RegisterWords<'_>) -> Self {
                $name(UserAddr::decode(words))
            }
            fn show(&self, printer: &mut Printer<'_>, _: Phase) {
                printer.address(self.0);
            }
        }
    )*};
}

words! {
    /// The mode of a file to be made; shown only where the flags before it make one.
    CreateMode(u32);
    /// What an `ioctl`'s request makes of it.
    IoctlArg(u64);
    /// What the command of `fcntl` makes of it.
    FcntlArg(u64);
    /// What the operation of `prctl` makes of it.
    PrctlArg(u64);
    /// What the code of `arch_prctl` makes of it.
    ArchPrctlArg(u64);
    /// A user or group id; -1 often means: as it is.
    Id(u32);
    /// A device number.
    Device(u64);
    /// The key of a System V object.
    IpcKey(i32);
    /// Command and type of `quotactl`.
    QuotactlCmd(u32);
    /// Class and data of an I/O priority.
    Ioprio(i32);
    /// The option's number, named by its level.
    SockoptName(i32);
}

addresses! {
    /// A `fd_set` for as many descriptors as the first argument says; null for none.
    FdSet;
    /// Group ids, as many as the argument before says.
    InGroups;
    /// Room for group ids.
    OutGroups;
    /// Capability sets, in the version that the header before names.
    InCapData;
    /// Room for capability sets, in the version that the header before names.
    OutCapData;
    /// Two `timespec`s, which may mean now or as it is; null means now.
    UtimeTimes;
}
