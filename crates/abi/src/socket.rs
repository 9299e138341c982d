//! Sockets: families, types, addresses, messages, options (`linux/socket.h`, `asm-generic/socket.h`,
//! `linux/un.h`, `linux/in.h`).

use crate::macros::{flags, layout, names, write_flags};

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

    /// At which level a socket option is.
    SockoptLevel: i32, "SOL_" {
        IP = 0;
        SOCKET = 1;
        TCP = 6;
        UDP = 17;
        IPV6 = 41;
        ICMPV6 = 58;
        SCTP = 132;
        UDPLITE = 136;
        RAW = 255;
        PACKET = 263;
        NETLINK = 270;
        ALG = 279;
        KCM = 281;
        TLS = 282;
        XDP = 283;
        MPTCP = 284;
        MCTP = 285;
        SMC = 286;
        VSOCK = 287;
    }

    /// An option of level `SOL_SOCKET`.
    SocketOption: i32, "SO_" {
        DEBUG = 1;
        REUSEADDR = 2;
        TYPE = 3;
        ERROR = 4;
        DONTROUTE = 5;
        BROADCAST = 6;
        SNDBUF = 7;
        RCVBUF = 8;
        KEEPALIVE = 9;
        OOBINLINE = 10;
        NO_CHECK = 11;
        PRIORITY = 12;
        LINGER = 13;
        BSDCOMPAT = 14;
        REUSEPORT = 15;
        PASSCRED = 16;
        PEERCRED = 17;
        RCVLOWAT = 18;
        SNDLOWAT = 19;
        RCVTIMEO = 20, "SO_RCVTIMEO_OLD";
        SNDTIMEO = 21, "SO_SNDTIMEO_OLD";
        SECURITY_AUTHENTICATION = 22;
        SECURITY_ENCRYPTION_TRANSPORT = 23;
        SECURITY_ENCRYPTION_NETWORK = 24;
        BINDTODEVICE = 25;
        ATTACH_FILTER = 26;
        DETACH_FILTER = 27;
        PEERNAME = 28;
        TIMESTAMP = 29, "SO_TIMESTAMP_OLD";
        ACCEPTCONN = 30;
        PEERSEC = 31;
        SNDBUFFORCE = 32;
        RCVBUFFORCE = 33;
        PASSSEC = 34;
        TIMESTAMPNS = 35, "SO_TIMESTAMPNS_OLD";
        MARK = 36;
        TIMESTAMPING = 37, "SO_TIMESTAMPING_OLD";
        PROTOCOL = 38;
        DOMAIN = 39;
        RXQ_OVFL = 40;
        WIFI_STATUS = 41;
        PEEK_OFF = 42;
        NOFCS = 43;
        LOCK_FILTER = 44;
        SELECT_ERR_QUEUE = 45;
        BUSY_POLL = 46;
        MAX_PACING_RATE = 47;
        BPF_EXTENSIONS = 48;
        INCOMING_CPU = 49;
        ATTACH_BPF = 50;
        ATTACH_REUSEPORT_CBPF = 51;
        ATTACH_REUSEPORT_EBPF = 52;
        CNX_ADVICE = 53;
        MEMINFO = 55;
        INCOMING_NAPI_ID = 56;
        COOKIE = 57;
        PEERGROUPS = 59;
        ZEROCOPY = 60;
        TXTIME = 61;
        BINDTOIFINDEX = 62;
        TIMESTAMP_NEW = 63;
        TIMESTAMPNS_NEW = 64;
        TIMESTAMPING_NEW = 65;
        RCVTIMEO_NEW = 66;
        SNDTIMEO_NEW = 67;
        DETACH_REUSEPORT_BPF = 68;
        PREFER_BUSY_POLL = 69;
        BUSY_POLL_BUDGET = 70;
        NETNS_COOKIE = 71;
        BUF_LOCK = 72;
        RESERVE_MEM = 73;
        TXREHASH = 74;
        RCVMARK = 75;
        PASSPIDFD = 76;
        PEERPIDFD = 77;
        DEVMEM_LINEAR = 78;
        DEVMEM_DMABUF = 79;
        DEVMEM_DONTNEED = 80;
        RCVPRIORITY = 82;
        PASSRIGHTS = 83;
        INQ = 84;
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

    /// An option of level `SOL_TCP`.
    TcpOption: i32, "TCP_" {
        NODELAY = 1;
        MAXSEG = 2;
        CORK = 3;
        KEEPIDLE = 4;
        KEEPINTVL = 5;
        KEEPCNT = 6;
        SYNCNT = 7;
        LINGER2 = 8;
        DEFER_ACCEPT = 9;
        WINDOW_CLAMP = 10;
        INFO = 11;
        QUICKACK = 12;
        CONGESTION = 13;
        MD5SIG = 14;
        THIN_LINEAR_TIMEOUTS = 16;
        THIN_DUPACK = 17;
        USER_TIMEOUT = 18;
        REPAIR = 19;
        REPAIR_QUEUE = 20;
        QUEUE_SEQ = 21;
        REPAIR_OPTIONS = 22;
        FASTOPEN = 23;
        TIMESTAMP = 24;
        NOTSENT_LOWAT = 25;
        CC_INFO = 26;
        SAVE_SYN = 27;
        SAVED_SYN = 28;
        REPAIR_WINDOW = 29;
        FASTOPEN_CONNECT = 30;
        ULP = 31;
        MD5SIG_EXT = 32;
        FASTOPEN_KEY = 33;
        FASTOPEN_NO_COOKIE = 34;
        ZEROCOPY_RECEIVE = 35;
        INQ = 36;
        TX_DELAY = 37;
        AO_ADD_KEY = 38;
        AO_DEL_KEY = 39;
        AO_INFO = 40;
        AO_GET_KEYS = 41;
        AO_REPAIR = 42;
        IS_MPTCP = 43;
        RTO_MAX_MS = 44;
        RTO_MIN_US = 45;
        DELACK_MAX_US = 46;
    }

    /// An option of level `SOL_IP`.
    IpOption: i32, "IP_" {
        TOS = 1;
        TTL = 2;
        HDRINCL = 3;
        OPTIONS = 4;
        ROUTER_ALERT = 5;
        RECVOPTS = 6;
        RETOPTS = 7;
        PKTINFO = 8;
        PKTOPTIONS = 9;
        MTU_DISCOVER = 10;
        RECVERR = 11;
        RECVTTL = 12;
        RECVTOS = 13;
        MTU = 14;
        FREEBIND = 15;
        IPSEC_POLICY = 16;
        XFRM_POLICY = 17;
        PASSSEC = 18;
        TRANSPARENT = 19;
        ORIGDSTADDR = 20;
        MINTTL = 21;
        NODEFRAG = 22;
        CHECKSUM = 23;
        BIND_ADDRESS_NO_PORT = 24;
        RECVFRAGSIZE = 25;
        RECVERR_RFC4884 = 26;
        MULTICAST_IF = 32;
        MULTICAST_TTL = 33;
        MULTICAST_LOOP = 34;
        ADD_MEMBERSHIP = 35;
        DROP_MEMBERSHIP = 36;
        UNBLOCK_SOURCE = 37;
        BLOCK_SOURCE = 38;
        ADD_SOURCE_MEMBERSHIP = 39;
        DROP_SOURCE_MEMBERSHIP = 40;
        MSFILTER = 41;
        MULTICAST_ALL = 49;
        UNICAST_IF = 50;
        LOCAL_PORT_RANGE = 51;
        PROTOCOL = 52;
    }

    /// An option of level `SOL_IPV6`.
    Ipv6Option: i32, "IPV6_" {
        ADDRFORM = 1;
        PKTINFO_2292 = 2, "IPV6_2292PKTINFO";
        HOPOPTS_2292 = 3, "IPV6_2292HOPOPTS";
        DSTOPTS_2292 = 4, "IPV6_2292DSTOPTS";
        RTHDR_2292 = 5, "IPV6_2292RTHDR";
        PKTOPTIONS_2292 = 6, "IPV6_2292PKTOPTIONS";
        CHECKSUM = 7;
        HOPLIMIT_2292 = 8, "IPV6_2292HOPLIMIT";
        NEXTHOP = 9;
        AUTHHDR = 10;
        FLOWINFO = 11;
        UNICAST_HOPS = 16;
        MULTICAST_IF = 17;
        MULTICAST_HOPS = 18;
        MULTICAST_LOOP = 19;
        ADD_MEMBERSHIP = 20;
        DROP_MEMBERSHIP = 21;
        ROUTER_ALERT = 22;
        MTU_DISCOVER = 23;
        MTU = 24;
        RECVERR = 25;
        V6ONLY = 26;
        JOIN_ANYCAST = 27;
        LEAVE_ANYCAST = 28;
        MULTICAST_ALL = 29;
        ROUTER_ALERT_ISOLATE = 30;
        RECVERR_RFC4884 = 31;
        FLOWLABEL_MGR = 32;
        FLOWINFO_SEND = 33;
        IPSEC_POLICY = 34;
        XFRM_POLICY = 35;
        HDRINCL = 36;
        RECVPKTINFO = 49;
        PKTINFO = 50;
        RECVHOPLIMIT = 51;
        HOPLIMIT = 52;
        RECVHOPOPTS = 53;
        HOPOPTS = 54;
        RTHDRDSTOPTS = 55;
        RECVRTHDR = 56;
        RTHDR = 57;
        RECVDSTOPTS = 58;
        DSTOPTS = 59;
        RECVPATHMTU = 60;
        PATHMTU = 61;
        DONTFRAG = 62;
        RECVTCLASS = 66;
        TCLASS = 67;
        AUTOFLOWLABEL = 70;
        ADDR_PREFERENCES = 72;
        MINHOPCOUNT = 73;
        ORIGDSTADDR = 74;
        TRANSPARENT = 75;
        UNICAST_IF = 76;
        RECVFRAGSIZE = 77;
        FREEBIND = 78;
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
