//! Numbers of `ioctl` requests (`asm-generic/ioctls.h`, `linux/fs.h` and others).

use crate::macros::names;

/// A request number of the `_IOC` form.
pub const fn ioc(direction: u32, kind: u8, number: u8, size: u32) -> u32 {
    (direction << 30) | ((size & 0x3fff) << 16) | ((kind as u32) << 8) | number as u32
}

const fn io(kind: u8, number: u8) -> u32 {
    ioc(0, kind, number, 0)
}

const fn iow(kind: u8, number: u8, size: u32) -> u32 {
    ioc(1, kind, number, size)
}

const fn ior(kind: u8, number: u8, size: u32) -> u32 {
    ioc(2, kind, number, size)
}

const fn iowr(kind: u8, number: u8, size: u32) -> u32 {
    ioc(3, kind, number, size)
}

names! {
    /// A request of `ioctl`.
    custom Ioctl: u32, "" {
        TCGETS = 0x5401;
        TCSETS = 0x5402;
        TCSETSW = 0x5403;
        TCSETSF = 0x5404;
        TCGETA = 0x5405;
        TCSETA = 0x5406;
        TCSETAW = 0x5407;
        TCSETAF = 0x5408;
        TCSBRK = 0x5409;
        TCXONC = 0x540a;
        TCFLSH = 0x540b;
        TIOCEXCL = 0x540c;
        TIOCNXCL = 0x540d;
        TIOCSCTTY = 0x540e;
        TIOCGPGRP = 0x540f;
        TIOCSPGRP = 0x5410;
        TIOCOUTQ = 0x5411;
        TIOCSTI = 0x5412;
        TIOCGWINSZ = 0x5413;
        TIOCSWINSZ = 0x5414;
        TIOCMGET = 0x5415;
        TIOCMBIS = 0x5416;
        TIOCMBIC = 0x5417;
        TIOCMSET = 0x5418;
        TIOCGSOFTCAR = 0x5419;
        TIOCSSOFTCAR = 0x541a;
        /// `TIOCINQ` too.
        FIONREAD = 0x541b;
        TIOCLINUX = 0x541c;
        TIOCCONS = 0x541d;
        TIOCGSERIAL = 0x541e;
        TIOCSSERIAL = 0x541f;
        TIOCPKT = 0x5420;
        FIONBIO = 0x5421;
        TIOCNOTTY = 0x5422;
        TIOCSETD = 0x5423;
        TIOCGETD = 0x5424;
        TCSBRKP = 0x5425;
        TIOCSBRK = 0x5427;
        TIOCCBRK = 0x5428;
        TIOCGSID = 0x5429;
        TCGETS2 = ior(b'T', 0x2a, 44);
        TCSETS2 = iow(b'T', 0x2b, 44);
        TCSETSW2 = iow(b'T', 0x2c, 44);
        TCSETSF2 = iow(b'T', 0x2d, 44);
        TIOCGRS485 = 0x542e;
        TIOCSRS485 = 0x542f;
        TIOCGPTN = ior(b'T', 0x30, 4);
        TIOCSPTLCK = iow(b'T', 0x31, 4);
        TIOCGDEV = ior(b'T', 0x32, 4);
        TCGETX = 0x5432;
        TCSETX = 0x5433;
        TCSETXF = 0x5434;
        TCSETXW = 0x5435;
        TIOCSIG = iow(b'T', 0x36, 4);
        TIOCVHANGUP = 0x5437;
        TIOCGPKT = ior(b'T', 0x38, 4);
        TIOCGPTLCK = ior(b'T', 0x39, 4);
        TIOCGEXCL = ior(b'T', 0x40, 4);
        TIOCGPTPEER = io(b'T', 0x41);
        FIONCLEX = 0x5450;
        FIOCLEX = 0x5451;
        FIOASYNC = 0x5452;
        TIOCGLCKTRMIOS = 0x5456;
        TIOCSLCKTRMIOS = 0x5457;
        TIOCSERGETLSR = 0x5459;
        TIOCMIWAIT = 0x545c;
        TIOCGICOUNT = 0x545d;
        FIOQSIZE = 0x5460;
        FIOSETOWN = 0x8901;
        SIOCSPGRP = 0x8902;
        FIOGETOWN = 0x8903;
        SIOCGPGRP = 0x8904;
        SIOCATMARK = 0x8905;
        SIOCGSTAMP = 0x8906, "SIOCGSTAMP_OLD";
        SIOCGSTAMPNS = 0x8907, "SIOCGSTAMPNS_OLD";
        SIOCADDRT = 0x890b;
        SIOCDELRT = 0x890c;
        SIOCGIFNAME = 0x8910;
        SIOCSIFLINK = 0x8911;
        SIOCGIFCONF = 0x8912;
        SIOCGIFFLAGS = 0x8913;
        SIOCSIFFLAGS = 0x8914;
        SIOCGIFADDR = 0x8915;
        SIOCSIFADDR = 0x8916;
        SIOCGIFDSTADDR = 0x8917;
        SIOCSIFDSTADDR = 0x8918;
        SIOCGIFBRDADDR = 0x8919;
        SIOCSIFBRDADDR = 0x891a;
        SIOCGIFNETMASK = 0x891b;
        SIOCSIFNETMASK = 0x891c;
        SIOCGIFMETRIC = 0x891d;
        SIOCSIFMETRIC = 0x891e;
        SIOCGIFMTU = 0x8921;
        SIOCSIFMTU = 0x8922;
        SIOCSIFNAME = 0x8923;
        SIOCSIFHWADDR = 0x8924;
        SIOCGIFHWADDR = 0x8927;
        SIOCADDMULTI = 0x8931;
        SIOCDELMULTI = 0x8932;
        SIOCGIFINDEX = 0x8933;
        SIOCGIFTXQLEN = 0x8942;
        SIOCSIFTXQLEN = 0x8943;
        SIOCETHTOOL = 0x8946;
        SIOCGSKNS = 0x894c;
        SIOCDARP = 0x8953;
        SIOCGARP = 0x8954;
        SIOCSARP = 0x8955;
        SIOCGIFMAP = 0x8970;
        SIOCUNIXFILE = 0x89e0;
        FIBMAP = io(0, 1);
        FIGETBSZ = io(0, 2);
        FIFREEZE = iowr(b'X', 119, 4);
        FITHAW = iowr(b'X', 120, 4);
        FITRIM = iowr(b'X', 121, 24);
        FICLONE = iow(0x94, 9, 4);
        FICLONERANGE = iow(0x94, 13, 32);
        FIDEDUPERANGE = iowr(0x94, 54, 24);
        FS_IOC_GETFLAGS = ior(b'f', 1, 8);
        FS_IOC_SETFLAGS = iow(b'f', 2, 8);
        FS_IOC_GETVERSION = ior(b'v', 1, 8);
        FS_IOC_SETVERSION = iow(b'v', 2, 8);
        FS_IOC_FIEMAP = iowr(b'f', 11, 32);
        FS_IOC_FSGETXATTR = ior(b'X', 31, 28);
        FS_IOC_FSSETXATTR = iow(b'X', 32, 28);
        FS_IOC_GETFSLABEL = ior(0x94, 49, 256);
        FS_IOC_SETFSLABEL = iow(0x94, 50, 256);
        FS_IOC_GETFSUUID = ior(0x15, 0, 17);
        FS_IOC_GETFSSYSFSPATH = ior(0x15, 1, 129);
        FS_IOC_GETLBMD_CAP = iowr(0x15, 2, 16);
        FS_IOC_SET_ENCRYPTION_POLICY = ior(b'f', 19, 12);
        FS_IOC_GET_ENCRYPTION_POLICY = iow(b'f', 21, 12);
        FS_IOC_ENABLE_VERITY = iow(b'f', 133, 128);
        FS_IOC_MEASURE_VERITY = iowr(b'f', 134, 4);
        PAGEMAP_SCAN = iowr(b'f', 16, 96);
        PROCMAP_QUERY = iowr(b'f', 17, 104);
        BLKROSET = io(0x12, 93);
        BLKROGET = io(0x12, 94);
        BLKRRPART = io(0x12, 95);
        BLKGETSIZE = io(0x12, 96);
        BLKFLSBUF = io(0x12, 97);
        BLKRASET = io(0x12, 98);
        BLKRAGET = io(0x12, 99);
        BLKFRASET = io(0x12, 100);
        BLKFRAGET = io(0x12, 101);
        BLKSECTGET = io(0x12, 103);
        BLKSSZGET = io(0x12, 104);
        BLKPG = io(0x12, 105);
        BLKBSZGET = ior(0x12, 112, 8);
        BLKBSZSET = iow(0x12, 113, 8);
        BLKGETSIZE64 = ior(0x12, 114, 8);
        BLKDISCARD = io(0x12, 119);
        BLKIOMIN = io(0x12, 120);
        BLKIOOPT = io(0x12, 121);
        BLKALIGNOFF = io(0x12, 122);
        BLKPBSZGET = io(0x12, 123);
        BLKDISCARDZEROES = io(0x12, 124);
        BLKSECDISCARD = io(0x12, 125);
        BLKROTATIONAL = io(0x12, 126);
        BLKZEROOUT = io(0x12, 127);
        BLKGETDISKSEQ = ior(0x12, 128, 8);
        LOOP_SET_FD = 0x4c00;
        LOOP_CLR_FD = 0x4c01;
        LOOP_SET_STATUS64 = 0x4c04;
        LOOP_GET_STATUS64 = 0x4c05;
        LOOP_CONFIGURE = 0x4c0a;
        LOOP_CTL_ADD = 0x4c80;
        LOOP_CTL_REMOVE = 0x4c81;
        LOOP_CTL_GET_FREE = 0x4c82;
        RNDGETENTCNT = ior(b'R', 0, 4);
        RNDADDTOENTCNT = iow(b'R', 1, 4);
        RNDADDENTROPY = iow(b'R', 3, 8);
        RNDZAPENTCNT = io(b'R', 4);
        RNDCLEARPOOL = io(b'R', 6);
        RNDRESEEDCRNG = io(b'R', 7);
        TUNSETNOCSUM = iow(b'T', 200, 4);
        TUNSETIFF = iow(b'T', 202, 4);
        TUNSETPERSIST = iow(b'T', 203, 4);
        TUNSETOWNER = iow(b'T', 204, 4);
        TUNGETFEATURES = ior(b'T', 207, 4);
        TUNGETIFF = ior(b'T', 210, 4);
        NS_GET_USERNS = io(0xb7, 1);
        NS_GET_PARENT = io(0xb7, 2);
        NS_GET_NSTYPE = io(0xb7, 3);
        NS_GET_OWNER_UID = io(0xb7, 4);
        NS_GET_MNTNS_ID = ior(0xb7, 5, 8);
        NS_GET_PID_FROM_PIDNS = ior(0xb7, 6, 4);
        NS_GET_TGID_FROM_PIDNS = ior(0xb7, 7, 4);
        NS_GET_PID_IN_PIDNS = ior(0xb7, 8, 4);
        NS_GET_TGID_IN_PIDNS = ior(0xb7, 9, 4);
        NS_MNT_GET_INFO = ior(0xb7, 10, 16);
        NS_MNT_GET_NEXT = ior(0xb7, 11, 16);
        NS_MNT_GET_PREV = ior(0xb7, 12, 16);
        NS_GET_ID = ior(0xb7, 13, 8);
        PIDFD_GET_CGROUP_NAMESPACE = io(0xff, 1);
        PIDFD_GET_IPC_NAMESPACE = io(0xff, 2);
        PIDFD_GET_MNT_NAMESPACE = io(0xff, 3);
        PIDFD_GET_NET_NAMESPACE = io(0xff, 4);
        PIDFD_GET_PID_NAMESPACE = io(0xff, 5);
        PIDFD_GET_PID_FOR_CHILDREN_NAMESPACE = io(0xff, 6);
        PIDFD_GET_TIME_NAMESPACE = io(0xff, 7);
        PIDFD_GET_TIME_FOR_CHILDREN_NAMESPACE = io(0xff, 8);
        PIDFD_GET_USER_NAMESPACE = io(0xff, 9);
        PIDFD_GET_UTS_NAMESPACE = io(0xff, 10);
        /// With the size that 6.18 has; Linux takes 64 bytes and more.
        PIDFD_GET_INFO = iowr(0xff, 11, 72);
        EPIOCSPARAMS = iow(0x8a, 1, 8);
        EPIOCGPARAMS = ior(0x8a, 2, 8);
        TFD_IOC_SET_TICKS = iow(b'T', 0, 8);
        SECCOMP_IOCTL_NOTIF_RECV = iowr(b'!', 0, 80);
        SECCOMP_IOCTL_NOTIF_SEND = iowr(b'!', 1, 24);
        SECCOMP_IOCTL_NOTIF_ID_VALID = iow(b'!', 2, 8);
        SECCOMP_IOCTL_NOTIF_ADDFD = iow(b'!', 3, 24);
        SECCOMP_IOCTL_NOTIF_SET_FLAGS = iow(b'!', 4, 8);
        UFFDIO_API = iowr(0xaa, 0x3f, 24);
        UFFDIO_REGISTER = iowr(0xaa, 0, 32);
        UFFDIO_UNREGISTER = ior(0xaa, 1, 16);
        UFFDIO_WAKE = ior(0xaa, 2, 16);
        UFFDIO_COPY = iowr(0xaa, 3, 40);
        UFFDIO_ZEROPAGE = iowr(0xaa, 4, 32);
        UFFDIO_MOVE = iowr(0xaa, 5, 40);
        UFFDIO_WRITEPROTECT = iowr(0xaa, 6, 24);
        UFFDIO_CONTINUE = iowr(0xaa, 7, 32);
        UFFDIO_POISON = iowr(0xaa, 8, 32);
        PERF_EVENT_IOC_ENABLE = io(b'$', 0);
        PERF_EVENT_IOC_DISABLE = io(b'$', 1);
        PERF_EVENT_IOC_REFRESH = io(b'$', 2);
        PERF_EVENT_IOC_RESET = io(b'$', 3);
        PERF_EVENT_IOC_PERIOD = iow(b'$', 4, 8);
        PERF_EVENT_IOC_SET_OUTPUT = io(b'$', 5);
        PERF_EVENT_IOC_SET_FILTER = iow(b'$', 6, 8);
        PERF_EVENT_IOC_ID = ior(b'$', 7, 8);
        PERF_EVENT_IOC_SET_BPF = iow(b'$', 8, 4);
        PERF_EVENT_IOC_PAUSE_OUTPUT = iow(b'$', 9, 4);
        KDGKBTYPE = 0x4b33;
        KDSETMODE = 0x4b3a;
        KDGETMODE = 0x4b3b;
        KDGKBMODE = 0x4b44;
        KDSKBMODE = 0x4b45;
        VT_OPENQRY = 0x5600;
        VT_GETMODE = 0x5601;
        VT_SETMODE = 0x5602;
        VT_GETSTATE = 0x5603;
        VT_ACTIVATE = 0x5606;
        VT_WAITACTIVE = 0x5607;
    }
}

impl Ioctl {
    /// How many bytes its argument has by the `_IOC` form; 0 where the number does not say.
    pub const fn size(self) -> u32 {
        if self.direction() == 0 { 0 } else { (self.0 >> 16) & 0x3fff }
    }

    /// By the `_IOC` form: bit 0 is set where the program writes its argument for the kernel, bit 1 where
    /// the kernel fills it in.
    pub const fn direction(self) -> u32 {
        self.0 >> 30
    }

    /// The byte that names the driver.
    pub const fn kind(self) -> u8 {
        ((self.0 >> 8) & 0xff) as u8
    }

    /// The number within the driver.
    pub const fn number(self) -> u8 {
        (self.0 & 0xff) as u8
    }
}

impl core::fmt::Display for Ioctl {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if let Some(name) = self.name() {
            return f.write_str(name);
        }
        let direction = match self.direction() {
            0 => "_IOC_NONE",
            1 => "_IOC_WRITE",
            2 => "_IOC_READ",
            _ => "_IOC_READ|_IOC_WRITE",
        };
        write!(
            f,
            "_IOC({direction}, {:#x}, {:#x}, {:#x})",
            self.kind(),
            self.number(),
            (self.0 >> 16) & 0x3fff
        )
    }
}
