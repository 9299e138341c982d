//! What a file is ready for.

bitflags::bitflags! {
    /// Readiness, in the bits of `poll` and `epoll`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Ready: u32 {
        const IN = 0x001;
        const PRI = 0x002;
        const OUT = 0x004;
        const ERR = 0x008;
        const HUP = 0x010;
        const NVAL = 0x020;
        const RDNORM = 0x040;
        const RDBAND = 0x080;
        const WRNORM = 0x100;
        const WRBAND = 0x200;
        const RDHUP = 0x2000;
        /// `IN | RDNORM`: what readers wait for.
        const READABLE = 0x041;
        /// `OUT | WRNORM`: what writers wait for.
        const WRITABLE = 0x104;
    }
}
