//! Network interfaces and netlink (`linux/if.h`, `linux/netlink.h`, `linux/rtnetlink.h`): headers and
//! names.

use crate::macros::{flags, layout, names};
use crate::socket::AddressFamily;

flags! {
    /// Flags of an interface.
    IfFlags: u32, "IFF_" {
        UP = 0x1;
        BROADCAST = 0x2;
        DEBUG = 0x4;
        LOOPBACK = 0x8;
        POINTOPOINT = 0x10;
        NOTRAILERS = 0x20;
        RUNNING = 0x40;
        NOARP = 0x80;
        PROMISC = 0x100;
        ALLMULTI = 0x200;
        MASTER = 0x400;
        SLAVE = 0x800;
        MULTICAST = 0x1000;
        PORTSEL = 0x2000;
        AUTOMEDIA = 0x4000;
        DYNAMIC = 0x8000;
        LOWER_UP = 0x1_0000;
        DORMANT = 0x2_0000;
        ECHO = 0x4_0000;
    }

    /// Flags of a netlink message; a few more depend on its kind.
    NlmFlags: u16, "NLM_F_" {
        DUMP = 0x300;
        REQUEST = 0x1;
        MULTI = 0x2;
        ACK = 0x4;
        ECHO = 0x8;
        DUMP_INTR = 0x10;
        DUMP_FILTERED = 0x20;
        ROOT = 0x100;
        MATCH = 0x200;
        ATOMIC = 0x400;
        APPEND = 0x800;
    }
}

names! {
    /// The type of a netlink message, of `NETLINK_ROUTE` from 16 up.
    NlmsgType: u16, "" {
        NLMSG_NOOP = 1;
        NLMSG_ERROR = 2;
        NLMSG_DONE = 3;
        NLMSG_OVERRUN = 4;
        RTM_NEWLINK = 16;
        RTM_DELLINK = 17;
        RTM_GETLINK = 18;
        RTM_SETLINK = 19;
        RTM_NEWADDR = 20;
        RTM_DELADDR = 21;
        RTM_GETADDR = 22;
        RTM_NEWROUTE = 24;
        RTM_DELROUTE = 25;
        RTM_GETROUTE = 26;
        RTM_NEWNEIGH = 28;
        RTM_DELNEIGH = 29;
        RTM_GETNEIGH = 30;
        RTM_NEWRULE = 32;
        RTM_DELRULE = 33;
        RTM_GETRULE = 34;
    }
}

layout! {
    /// `struct ifreq`: a name and a union of 24 bytes.
    struct Ifreq: 40 {
        0 name: [u8; 16],
        16 data: [u8; 24],
    }

    /// `struct ifconf`.
    struct Ifconf: 16 {
        0 len: i32,
        4 pad: u32,
        8 buf: u64,
    }

    /// `struct nlmsghdr`.
    struct Nlmsghdr: 16 {
        0 len: u32,
        4 kind: NlmsgType,
        6 flags: NlmFlags,
        8 seq: u32,
        12 pid: u32,
    }

    /// `struct ifinfomsg`.
    struct Ifinfomsg: 16 {
        0 family: u8,
        1 pad: u8,
        2 kind: u16,
        4 index: i32,
        8 flags: IfFlags,
        12 change: u32,
    }

    /// `struct ifaddrmsg`.
    struct Ifaddrmsg: 8 {
        0 family: u8,
        1 prefixlen: u8,
        2 flags: u8,
        3 scope: u8,
        4 index: u32,
    }

    /// `struct sockaddr_ll`.
    struct SockaddrLl: 20 {
        0 family: AddressFamily,
        /// In network order.
        2 protocol: [u8; 2],
        4 ifindex: i32,
        8 hatype: u16,
        10 pkttype: u8,
        11 halen: u8,
        12 addr: [u8; 8],
    }
}
