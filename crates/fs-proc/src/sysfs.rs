//! `/sys`: the little of sysfs that programs look at (processors), and the directories they expect.

use sync::SysResult;

use crate::entry::{Entry, Kind};

const fn text(name: &'static str, render: crate::entry::Render) -> Entry {
    Entry { name, mode: 0o444, kind: Kind::File(render) }
}

const fn dir(name: &'static str, below: &'static [Entry]) -> Entry {
    Entry { name, mode: 0o555, kind: Kind::Directory(below) }
}

pub(crate) static ENTRIES: &[Entry] = &[
    dir("block", &[]),
    dir("bus", &[]),
    dir("class", &[]),
    dir("dev", &[dir("block", &[]), dir("char", &[])]),
    dir("devices", &[dir("system", &[dir("cpu", CPU)])]),
    dir("fs", &[]),
    dir("kernel", &[]),
    dir("module", &[]),
    dir("power", &[]),
];

/// The processors are the host's.
static CPU: &[Entry] = &[
    text("kernel_max", |_| host("kernel_max")),
    text("offline", |_| host("offline")),
    text("online", |_| host("online")),
    text("possible", |_| host("possible")),
    text("present", |_| host("present")),
];

fn host(name: &str) -> SysResult<Vec<u8>> {
    let text = std::fs::read(format!("/sys/devices/system/cpu/{name}"));
    // Where the host hides it, the processors that this process may use are all that there are.
    Ok(text.unwrap_or_else(|_| {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        match name {
            "offline" => b"\n".to_vec(),
            "kernel_max" => format!("{}\n", count - 1).into_bytes(),
            _ => format!("0-{}\n", count - 1).into_bytes(),
        }
    }))
}
