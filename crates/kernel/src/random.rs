//! Random bytes from the host.

/// `N` random bytes.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill(&mut bytes);
    bytes
}

/// Fills `into` with random bytes.
pub(crate) fn fill(into: &mut [u8]) {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::rand::getrandom(rest, rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => done += count,
            // Interrupted: the host has no other failure for an initialised pool.
            Err(_) => continue,
        }
    }
}

/// Fills a guest's buffer. `EFAULT` if not even its first byte is there; ends early for a kill.
pub(crate) fn fill_user(
    to: &mut dyn vfs::UserWrite,
    task: &crate::task::CurrentTask,
) -> sync::SysResult<usize> {
    let mut chunk = [0; 4096];
    let mut done = 0;
    while to.room() > 0 {
        let count = to.room().min(chunk.len());
        let Some(part) = chunk.get_mut(..count) else { break };
        fill(part);
        let put = to.put(part);
        done += put;
        if put < count {
            break;
        }
        if done >= 1 << 16 && task.has_signal() {
            break;
        }
    }
    if done == 0 && to.room() > 0 { Err(abi::Errno::EFAULT.into()) } else { Ok(done) }
}
