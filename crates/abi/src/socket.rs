//! Sockets: families, types, addresses, messages (`linux/socket.h`, `linux/un.h`, `linux/in.h`). Options
//! are in `sockopt.rs`.

use crate::macros::{flags, layout, names, write_flags};
use crate::sockopt::SockoptLevel;

names! {
    /// An address family.
    AddressFamily: u16, "AF_" {
        UNSPEC = 0;
        UNIX = 1;
        INET = 2;
        AX25 = 3;
        IPX = 4;
        APPLETALK = 5;
        NETROM = 6;
        BRIDGE = 7;
        ATMPVC = 8;
        X25 = 9;
        INET6 = 10;
        ROSE = 11;
        DECNET = 12, "AF_DECnet";
        NETBEUI = 13;
        SECURITY = 14;
        KEY = 15;
        NETLINK = 16;
        PACKET = 17;
        ASH = 18;
        ECONET = 19;
        ATMSVC = 20;
        RDS = 21;
        SNA = 22;
        IRDA = 23;
        PPPOX = 24;
        WANPIPE = 25;
        LLC = 26;
        IB = 27;
        MPLS = 28;
        CAN = 29;
        TIPC = 30;
        BLUETOOTH = 31;
        IUCV = 32;
        RXRPC = 33;
        ISDN = 34;
        PHONET = 35;
        IEEE802154 = 36;
        CAIF = 37;
        ALG = 38;
        NFC = 39;
        VSOCK = 40;
        KCM = 41;
        QIPCRTR = 42;
        SMC = 43;
        XDP = 44;
        MCTP = 45;
    }

    /// A socket's type, without the flags of [`SocketFlags`].
    SocketKind: u32, "SOCK_" {
        STREAM = 1;
        DGRAM = 2;
        RAW = 3;
        RDM = 4;
        SEQPACKET = 5;
        DCCP = 6;
        PACKET = 10;
    }

    /// How `shutdown` shuts.
    ShutdownHow: i32, "SHUT_" {
        RD = 0;
        WR = 1;
        RDWR = 2;
    }

    /// A protocol of `AF_INET` and `AF_INET6`.
    IpProtocol: i32, "IPPROTO_" {
        IP = 0;
        ICMP = 1;
        IGMP = 2;
        IPIP = 4;
        TCP = 6;
        EGP = 8;
        PUP = 12;
        UDP = 17;
        IDP = 22;
        TP = 29;
        DCCP = 33;
        IPV6 = 41;
        RSVP = 46;
        GRE = 47;
        ESP = 50;
        AH = 51;
        ICMPV6 = 58;
        MTP = 92;
        BEETPH = 94;
        ENCAP = 98;
        PIM = 103;
        COMP = 108;
        L2TP = 115;
        SCTP = 132;
        UDPLITE = 136;
        MPLS = 137;
        RAW = 255;
        SMC = 256;
        MPTCP = 262;
    }

    /// A protocol of `AF_NETLINK`.
    NetlinkProtocol: i32, "NETLINK_" {
        ROUTE = 0;
        USERSOCK = 2;
        SOCK_DIAG = 4;
        NFLOG = 5;
        XFRM = 6;
        SELINUX = 7;
        ISCSI = 8;
        AUDIT = 9;
        FIB_LOOKUP = 10;
        CONNECTOR = 11;
        NETFILTER = 12;
        IP6_FW = 13;
        DNRTMSG = 14;
        KOBJECT_UEVENT = 15;
        GENERIC = 16;
        SCSITRANSPORT = 18;
        ECRYPTFS = 19;
        RDMA = 20;
        CRYPTO = 21;
        SMC = 22;
    }

    /// What a control message of level `SOL_SOCKET` carries.
    ScmType: i32, "SCM_" {
        RIGHTS = 1;
        CREDENTIALS = 2;
        SECURITY = 3;
        PIDFD = 4;
        TIMESTAMP = 29;
        TIMESTAMPNS = 35;
        TIMESTAMPING = 37;
        WIFI_STATUS = 41;
        TIMESTAMPING_OPT_STATS = 54;
        TIMESTAMPING_PKTINFO = 58;
        TXTIME = 61;
        DEVMEM_LINEAR = 78;
        DEVMEM_DMABUF = 79;
        TS_OPT_ID = 81;
        INQ = 84;
    }
}

/// The type argument of `socket`: a kind and flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SocketType(pub u32);

impl SocketType {
    /// The bits of the kind (`SOCK_TYPE_MASK`).
    pub const KIND_MASK: u32 = 0xf;

    /// The kind.
    pub const fn kind(self) -> SocketKind {
        SocketKind(self.0 & Self::KIND_MASK)
    }

    /// The flags.
    pub const fn flags(self) -> SocketFlags {
        SocketFlags::from_bits_retain(self.0 & !Self::KIND_MASK)
    }
}

impl core::fmt::Display for SocketType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.kind().fmt(f)?;
        let names = SocketFlags::NAMES.iter().map(|&(bits, name)| (u64::from(bits), name));
        write_flags(f, u64::from(self.0 & !Self::KIND_MASK), names, true)
    }
}

impl core::fmt::Debug for SocketType {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

flags! {
    /// Flags in [`SocketType`], and of `accept4`.
    SocketFlags: u32, "SOCK_" {
        NONBLOCK = 0o4000;
        CLOEXEC = 0o2000000;
    }

    /// Flags of `send` and `recv`.
    MsgFlags: u32, "MSG_" {
        OOB = 0x1;
        PEEK = 0x2;
        DONTROUTE = 0x4;
        CTRUNC = 0x8;
        PROBE = 0x10;
        TRUNC = 0x20;
        DONTWAIT = 0x40;
        EOR = 0x80;
        WAITALL = 0x100;
        FIN = 0x200;
        SYN = 0x400;
        CONFIRM = 0x800;
        RST = 0x1000;
        ERRQUEUE = 0x2000;
        NOSIGNAL = 0x4000;
        MORE = 0x8000;
        WAITFORONE = 0x1_0000;
        BATCH = 0x4_0000;
        SOCK_DEVMEM = 0x200_0000;
        ZEROCOPY = 0x400_0000;
        FASTOPEN = 0x2000_0000;
        CMSG_CLOEXEC = 0x4000_0000;
        CMSG_COMPAT = 0x8000_0000;
    }
}

layout! {
    /// `struct sockaddr_un`. The path may lack its zero, and with a zero in front it is an abstract name of
    /// the length that the address length says.
    struct SockaddrUn: 110 {
        0 family: AddressFamily,
        2 path: [u8; 108],
    }

    /// `struct sockaddr_in`; port and address lie in network order.
    struct SockaddrIn: 16 {
        0 family: AddressFamily,
        2 port: [u8; 2],
        4 addr: [u8; 4],
        8 zero: [u8; 8],
    }

    /// `struct sockaddr_in6`; port and address lie in network order.
    struct SockaddrIn6: 28 {
        0 family: AddressFamily,
        2 port: [u8; 2],
        4 flowinfo: u32,
        8 addr: [u8; 16],
        24 scope_id: u32,
    }

    /// `struct sockaddr_nl`.
    struct SockaddrNl: 12 {
        0 family: AddressFamily,
        2 pad: u16,
        4 pid: u32,
        8 groups: u32,
    }

    /// `struct user_msghdr`, of `sendmsg` and `recvmsg`.
    struct Msghdr: 56 {
        0 name: u64,
        8 namelen: i32,
        12 pad0: u32,
        16 iov: u64,
        24 iovlen: u64,
        32 control: u64,
        40 controllen: u64,
        48 flags: MsgFlags,
        52 pad1: u32,
    }

    /// `struct mmsghdr`.
    struct Mmsghdr: 64 {
        0 hdr: Msghdr,
        56 len: u32,
        60 pad: u32,
    }

    /// `struct cmsghdr`; data follow, and the next one lies at the next multiple of 8.
    struct Cmsghdr: 16 {
        /// With this header, in bytes.
        0 len: u64,
        8 level: SockoptLevel,
        12 kind: ScmType,
    }

    /// `struct ucred`.
    struct Ucred: 12 {
        0 pid: i32,
        4 uid: u32,
        8 gid: u32,
    }

    /// `struct linger`.
    struct Linger: 8 {
        0 onoff: i32,
        /// Seconds.
        4 linger: i32,
    }
}

/// Most bytes of an address (`struct __kernel_sockaddr_storage`).
pub const SOCKADDR_STORAGE_SIZE: usize = 128;
/// Most descriptors in one message (`SCM_MAX_FD`).
pub const SCM_MAX_FD: usize = 253;
/// The default bound of `listen`'s backlog (`SOMAXCONN`).
pub const SOMAXCONN: u32 = 4096;
