//! Socket addresses, messages and options.

use abi::{
    AddressFamily, Cmsghdr, FromRegister, IpOption, Ipv6Option, Linger, Msghdr, ScmType, SockaddrIn,
    SockaddrIn6, SockaddrNl, SocketOption, SockoptLevel, TcpOption, Timeval, Ucred, UserAddr,
};

use super::{Phase, Printer, Show, Updated, shown};

shown! {
    Ucred { pid: n pid, uid: n uid, gid: n gid }
    Linger { l_onoff: n onoff, l_linger: n linger }
}

/// Bytes of an address that are looked at: the longest that there are.
const MAX_ADDRESS: usize = 128;

/// A socket's address of `len` bytes.
pub(crate) fn address(printer: &mut Printer<'_>, addr: UserAddr, len: usize) {
    let len = len.min(MAX_ADDRESS);
    let mut bytes = vec![0; len];
    if addr.is_null() || len < 2 || printer.memory.read(addr, &mut bytes) < len {
        return printer.address(addr);
    }
    let family = bytes.first_chunk::<2>().map_or(0, |family| u16::from_le_bytes(*family));
    let rest = bytes.get(2..).unwrap_or(&[]);
    printer.text(format_args!("{{sa_family={}", AddressFamily(family)));
    match AddressFamily(family) {
        AddressFamily::UNIX => unix_path(printer, rest),
        AddressFamily::INET if len >= size_of::<SockaddrIn>() => {
            if let Some(SockaddrIn { port, addr: [a, b, c, d], .. }) = printer.value(addr) {
                let port = u16::from_be_bytes(port);
                printer
                    .text(format_args!(", sin_port=htons({port}), sin_addr=inet_addr(\"{a}.{b}.{c}.{d}\")"));
            }
        }
        AddressFamily::INET6 if len >= size_of::<SockaddrIn6>() => {
            if let Some(SockaddrIn6 { port, flowinfo, addr, scope_id, .. }) = printer.value(addr) {
                printer.text(format_args!(
                    ", sin6_port=htons({}), sin6_flowinfo=htonl({}), \
                     inet_pton(AF_INET6, \"{}\", &sin6_addr), sin6_scope_id={scope_id}",
                    u16::from_be_bytes(port),
                    u32::from_be(flowinfo),
                    std::net::Ipv6Addr::from(addr)
                ));
            }
        }
        AddressFamily::NETLINK if len >= size_of::<SockaddrNl>() => {
            if let Some(SockaddrNl { pid, groups, .. }) = printer.value(addr) {
                printer.text(format_args!(", nl_pid={pid}, nl_groups={groups:08x}"));
            }
        }
        _ => {
            printer.out.push_str(", sa_data=");
            printer.quoted(rest, false);
        }
    }
    printer.out.push('}');
}

/// A path up to its zero; behind `@` an abstract name; nothing for none.
fn unix_path(printer: &mut Printer<'_>, path: &[u8]) {
    match path.split_first() {
        None => {}
        Some((0, name)) => {
            printer.out.push_str(", sun_path=@");
            printer.quoted_up_to(name, name.len(), false);
        }
        Some(_) => {
            printer.out.push_str(", sun_path=");
            let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            printer.quoted_up_to(path.get(..end).unwrap_or(path), end, false);
        }
    }
}

/// An address that the call gives: where it goes, and where its length is read and written.
pub(crate) fn address_out(printer: &mut Printer<'_>, addr: UserAddr, len: UserAddr) {
    let now: Option<i32> = printer.value(len);
    match (printer.phase, now) {
        (Phase::Before, _) => {
            printer.deferred = true;
            // For the second look: how much room there was.
            printer.text(format_args!("{}", now.unwrap_or(0)));
        }
        (Phase::After(Ok(_)), Some(now)) if !addr.is_null() => {
            let room: i32 = printer.before.parse().unwrap_or(0);
            address(printer, addr, usize::try_from(now.min(room)).unwrap_or(0));
            printer.text(format_args!(", {}", length(printer.before, now)));
        }
        _ => {
            printer.address(addr);
            printer.out.push_str(", ");
            printer.structure::<i32>(len);
        }
    }
}

fn length(before: &str, now: i32) -> String {
    let now = now.to_string();
    if before == now { format!("[{now}]") } else { format!("[{before} => {now}]") }
}

impl Show for Msghdr {
    const UPDATED: Updated = Updated::AfterOnly;
    fn show(&self, printer: &mut Printer<'_>) {
        printer.out.push_str("{msg_name=");
        address(printer, UserAddr(self.name), usize::try_from(self.namelen).unwrap_or(0));
        printer.text(format_args!(", msg_namelen={}, msg_iov=", self.namelen));
        let limit = printer.succeeded().unwrap_or(usize::MAX);
        let count = usize::try_from(self.iovlen).unwrap_or(usize::MAX);
        printer.io_vec(UserAddr(self.iov), count, limit);
        printer.text(format_args!(", msg_iovlen={}", self.iovlen));
        if self.controllen > 0 {
            printer.out.push_str(", msg_control=");
            control(printer, UserAddr(self.control), self.controllen);
        }
        printer.text(format_args!(", msg_controllen={}, msg_flags={}}}", self.controllen, self.flags));
    }
}

/// Control messages.
fn control(printer: &mut Printer<'_>, start: UserAddr, len: u64) {
    const HEADER: u64 = size_of::<Cmsghdr>() as u64;
    let mut at = 0u64;
    let mut messages = Vec::new();
    while at.checked_add(HEADER).is_some_and(|end| end <= len) && messages.len() < printer.max_string {
        let Some(addr) = start.checked_add(at) else { break };
        let Some(header) = printer.value::<Cmsghdr>(addr) else { break };
        if header.len < HEADER || header.len > len - at {
            break;
        }
        messages.push((addr, header));
        let Some(next) = header.len.checked_next_multiple_of(8).and_then(|size| at.checked_add(size)) else {
            break;
        };
        at = next;
    }
    if messages.is_empty() {
        return printer.address(start);
    }
    printer.list(messages.into_iter(), |printer, (addr, header)| {
        printer.text(format_args!(
            "{{cmsg_len={}, cmsg_level={}, cmsg_type={}, cmsg_data=",
            header.len, header.level, header.kind
        ));
        let Some(data) = addr.checked_add(HEADER) else { return };
        let size = usize::try_from(header.len - HEADER).unwrap_or(0);
        match (header.level, header.kind) {
            (SockoptLevel::SOCKET, ScmType::RIGHTS) => printer.array::<i32>(data, size / 4),
            (SockoptLevel::SOCKET, ScmType::CREDENTIALS) => printer.structure::<Ucred>(data),
            _ => printer.bytes(data, size),
        }
        printer.out.push('}');
    });
}

fn level(register: u64) -> SockoptLevel {
    SockoptLevel::from_register(register)
}

/// The name of an option of the level in a register.
pub(crate) fn option_name(register: u64, option: i32) -> String {
    match level(register) {
        SockoptLevel::SOCKET => SocketOption(option).to_string(),
        SockoptLevel::TCP => TcpOption(option).to_string(),
        SockoptLevel::IP => IpOption(option).to_string(),
        SockoptLevel::IPV6 => Ipv6Option(option).to_string(),
        _ => format!("{option:#x}"),
    }
}

/// The value, of `len` bytes, of the option whose level and number are in registers.
pub(crate) fn option(printer: &mut Printer<'_>, register: u64, number: u64, addr: UserAddr, len: usize) {
    let is_socket = level(register) == SockoptLevel::SOCKET;
    match SocketOption::from_register(number) {
        SocketOption::LINGER if is_socket && len >= 8 => printer.structure::<Linger>(addr),
        SocketOption::PEERCRED if is_socket && len >= 12 => printer.structure::<Ucred>(addr),
        SocketOption::RCVTIMEO | SocketOption::SNDTIMEO if is_socket && len >= 16 => {
            printer.structure::<Timeval>(addr);
        }
        _ if len == 4 => printer.structure::<i32>(addr),
        _ => printer.bytes(addr, len),
    }
}

/// An option that the call gives: where it goes, and where its length is read and written.
pub(crate) fn option_out(printer: &mut Printer<'_>, addr: UserAddr, len: UserAddr) {
    let now: Option<i32> = printer.value(len);
    let (register, number) = (printer.register_before(2), printer.register_before(1));
    match (printer.phase, now) {
        (Phase::Before, _) => {
            printer.deferred = true;
            printer.text(format_args!("{}", now.unwrap_or(0)));
        }
        (Phase::After(Ok(_)), Some(now)) if !addr.is_null() => {
            option(printer, register, number, addr, usize::try_from(now).unwrap_or(0));
            printer.text(format_args!(", {}", length(printer.before, now)));
        }
        _ => {
            printer.address(addr);
            printer.out.push_str(", ");
            printer.structure::<i32>(len);
        }
    }
}
