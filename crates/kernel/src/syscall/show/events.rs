//! What is waited for: descriptors by poll, select and epoll, futexes.

use abi::{EpollEvent, FutexWaitv, Pollfd, UserAddr};

use super::{Phase, Printer, Show, shown};

impl Show for Pollfd {
    fn show(&self, printer: &mut Printer<'_>) {
        match self.fd {
            // Left out of the poll.
            ..0 => printer.text(format_args!("{{fd={}}}", self.fd)),
            fd => printer.text(format_args!("{{fd={fd}, events={}}}", self.events)),
        }
    }
}

impl Show for EpollEvent {
    fn show(&self, printer: &mut Printer<'_>) {
        let (events, data) = (self.events, self.data);
        printer.text(format_args!("{{events={events}, data={{u32={}, u64={data}}}}}", data & 0xffff_ffff));
    }
}

shown! {
    FutexWaitv { val: x val, uaddr: p uaddr, flags: n flags }
}

/// The descriptors of a poll; behind the result those that are ready.
pub(crate) fn poll_fds(printer: &mut Printer<'_>, addr: UserAddr, count: u32) {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    match printer.phase {
        Phase::Before => {
            printer.again = true;
            printer.array::<Pollfd>(addr, count);
            printer.text(format_args!(", {count}"));
        }
        Phase::After(Ok(0)) => printer.result = Some("0 (Timeout)".into()),
        Phase::After(Ok(ready)) => {
            let each = (0..count.min(1 << 16)).filter_map(|index| {
                let at = addr.checked_add(index as u64 * size_of::<Pollfd>() as u64)?;
                printer.value::<Pollfd>(at)
            });
            let ready: Vec<_> = each
                .filter(|fd| !fd.revents.is_empty())
                .take(ready.min(printer.max_string))
                .map(|fd| format!("{{fd={}, revents={}}}", fd.fd, fd.revents))
                .collect();
            printer.notes.push(format!("[{}]", ready.join(", ")));
        }
        Phase::After(Err(_)) => {}
    }
}

/// The descriptors of a set of `select`; behind the result those that are ready.
pub(crate) fn fd_set(printer: &mut Printer<'_>, addr: UserAddr) {
    let count = i32::from_ne_bytes(
        u32::try_from(printer.words.first().copied().unwrap_or(0) & 0xffff_ffff).unwrap_or(0).to_ne_bytes(),
    );
    let bytes = usize::try_from(count).unwrap_or(0).min(1 << 20).div_ceil(64) * 8;
    let mut set = vec![0; bytes];
    if addr.is_null() || printer.memory.read(addr, &mut set) < bytes {
        if printer.phase == Phase::Before {
            printer.address(addr);
        }
        return;
    }
    let bits = set.iter().enumerate().flat_map(|(index, byte)| {
        (0..8usize).filter(move |bit| byte >> bit & 1 != 0).map(move |bit| index * 8 + bit)
    });
    let names: Vec<_> = bits
        .take_while(|fd| i32::try_from(*fd).is_ok_and(|fd| fd < count))
        .take(printer.max_string * 4)
        .map(|fd| fd.to_string())
        .collect();
    let text = format!("[{}]", names.join(" "));
    match printer.phase {
        Phase::Before => {
            printer.again = true;
            printer.out.push_str(&text);
        }
        Phase::After(Ok(0)) => printer.result = Some("0 (Timeout)".into()),
        Phase::After(Ok(_)) if !names.is_empty() => {
            let which = ["in", "out", "except"].get(printer.start.saturating_sub(1)).unwrap_or(&"");
            printer.notes.push(format!("{which} {text}"));
        }
        Phase::After(_) => {}
    }
}
