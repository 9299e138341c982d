//! The name of a core file, from core_pattern (Linux: `format_corename`).

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use abi::Signal;

use crate::task::CurrentTask;

/// What a pattern can ask for.
struct Facts {
    pid: i32,
    tid: i32,
    uid: u32,
    gid: u32,
    signal: i32,
    seconds: u64,
    limit: u64,
    cpu: usize,
    host: Vec<u8>,
    comm: Vec<u8>,
    exe: Vec<u8>,
}

impl CurrentTask {
    pub(super) fn core_name(&self, signal: Signal, limit: u64) -> Vec<u8> {
        let exe = self.mm.record().exe.clone();
        let root = self.fs.get().root.clone();
        // One lock after the other.
        let host = self.kernel().hostname.lock().clone();
        let comm = self.task.shared.lock().name.clone();
        let facts = Facts {
            pid: self.pid(),
            tid: self.tid(),
            uid: self.cred.uid,
            gid: self.cred.gid,
            signal: signal.0,
            seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            limit,
            cpu: rustix::thread::sched_getcpu(),
            host,
            comm,
            exe: exe.map(|path| vfs::d_path(&path, &root)).unwrap_or_default(),
        };
        let core = &self.kernel().core;
        expand(&core.pattern(), core.uses_pid.load(Ordering::Relaxed), &facts)
    }
}

fn expand(pattern: &[u8], uses_pid: bool, facts: &Facts) -> Vec<u8> {
    let mut name = Vec::new();
    let mut has_pid = false;
    let mut bytes = pattern.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            name.push(*byte);
            continue;
        }
        let text = match bytes.next() {
            Some(b'%') => b"%".to_vec(),
            Some(b'p' | b'P') => {
                has_pid = true;
                number(facts.pid)
            }
            Some(b'i' | b'I') => number(facts.tid),
            Some(b'u') => number(facts.uid),
            Some(b'g') => number(facts.gid),
            // Only processes that are dumpable in the ordinary way get here.
            Some(b'd') => number(1),
            Some(b's') => number(facts.signal),
            Some(b't') => number(facts.seconds),
            Some(b'c') => number(facts.limit),
            Some(b'C') => number(facts.cpu),
            Some(b'h') => component(&facts.host),
            Some(b'e') => component(&facts.comm),
            Some(b'f') => component(facts.exe.rsplit(|byte| *byte == b'/').next().unwrap_or(&[])),
            Some(b'E') => component(&facts.exe),
            // Unknown ones, and a lone one at the end, are dropped.
            _ => Vec::new(),
        };
        name.extend(text);
    }
    if !has_pid && uses_pid {
        name.push(b'.');
        name.extend(number(facts.pid));
    }
    name
}

fn number(value: impl std::fmt::Display) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// A text that must not lead elsewhere (Linux: `cn_esc_printf`).
fn component(text: &[u8]) -> Vec<u8> {
    let mut text: Vec<u8> = text.iter().map(|byte| if *byte == b'/' { b'!' } else { *byte }).collect();
    match text.as_slice() {
        b"" => text.push(b'!'),
        b"." | b".." => text.splice(..1, *b"!").for_each(drop),
        _ => {}
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            pid: 12,
            tid: 13,
            uid: 1000,
            gid: 100,
            signal: 11,
            seconds: 1_700_000_000,
            limit: 4096,
            cpu: 1,
            host: b"box".to_vec(),
            comm: b"a/b".to_vec(),
            exe: b"/usr/bin/prog".to_vec(),
        }
    }

    fn name(pattern: &str, uses_pid: bool) -> String {
        String::from_utf8(expand(pattern.as_bytes(), uses_pid, &facts())).unwrap()
    }

    #[test]
    fn patterns_are_expanded_as_linux_does() {
        assert_eq!(name("core", false), "core");
        assert_eq!(name("core", true), "core.12");
        assert_eq!(name("/tmp/%e.%p", true), "/tmp/a!b.12");
        assert_eq!(name("%h-%u-%g-%s-%t-%c-%i-%d-%C", false), "box-1000-100-11-1700000000-4096-13-1-1");
        assert_eq!(name("%f%%%E", false), "prog%!usr!bin!prog");
        assert_eq!(name("a%zb%", false), "ab");
        let mut odd = facts();
        odd.comm = b"..".to_vec();
        odd.host = Vec::new();
        assert_eq!(expand(b"%e/%h", false, &odd), b"!./!");
    }
}
