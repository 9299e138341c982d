//! The mount table as text: /proc/PID/{mounts,mountinfo}.
//!
//! Neighbours: `mount` has the table; `fs-proc` serves the texts.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::path::{path_below, path_in_tree};
use crate::{Mount, MountFlags, MountTable, Path};

impl MountTable {
    /// `/proc/PID/mountinfo` as seen from `root`: mounts that do not lie below it are left out.
    pub fn mountinfo(&self, root: &Path) -> Vec<u8> {
        let mut text = Vec::new();
        for mount in self.list() {
            let Some(place) = place_below(&mount, root) else { continue };
            let dev = mount.fs.dev();
            let parent = mount.at().map_or(mount.id, |at| at.mount.id);
            let mut line =
                format!("{} {parent} {}:{} ", mount.id, abi::major(dev), abi::minor(dev)).into_bytes();
            escape(&mut line, &path_in_tree(&mount.root), PATH_ESCAPES);
            line.push(b' ');
            escape(&mut line, &place, PATH_ESCAPES);
            let mut rest = String::new();
            // Writing to a string cannot fail.
            let _ = write!(rest, " {} - {} ", mount_options(&mount), mount.fs.kind());
            line.extend_from_slice(rest.as_bytes());
            escape(&mut line, shown_source(&mount), NAME_ESCAPES);
            line.extend_from_slice(format!(" {}\n", fs_options(&mount)).as_bytes());
            text.append(&mut line);
        }
        text
    }

    /// `/proc/PID/mounts`, likewise.
    pub fn mounts(&self, root: &Path) -> Vec<u8> {
        let mut text = Vec::new();
        for mount in self.list() {
            let Some(place) = place_below(&mount, root) else { continue };
            escape(&mut text, shown_source(&mount), NAME_ESCAPES);
            text.push(b' ');
            escape(&mut text, &place, PATH_ESCAPES);
            let own = mount.fs.options();
            let comma = if own.is_empty() { "" } else { "," };
            let line = format!(" {} {}{comma}{own} 0 0\n", mount.fs.kind(), mount_options(&mount));
            text.extend_from_slice(line.as_bytes());
        }
        text
    }
}

fn place_below(mount: &Arc<Mount>, root: &Path) -> Option<Vec<u8>> {
    path_below(&Path { mount: mount.clone(), dentry: mount.root.clone() }, root)
}

fn shown_source(mount: &Mount) -> &[u8] {
    if mount.source.is_empty() { b"none" } else { mount.source.as_bytes() }
}

/// The options of the mount, as Linux orders them (`show_mnt_opts`).
fn mount_options(mount: &Mount) -> String {
    let flags = mount.flags();
    let mut text = String::from(if flags.contains(MountFlags::RDONLY) { "ro" } else { "rw" });
    for (flag, name) in [
        (MountFlags::NOSUID, ",nosuid"),
        (MountFlags::NODEV, ",nodev"),
        (MountFlags::NOEXEC, ",noexec"),
        (MountFlags::NOATIME, ",noatime"),
        (MountFlags::NODIRATIME, ",nodiratime"),
        (MountFlags::RELATIME, ",relatime"),
        (MountFlags::NOSYMFOLLOW, ",nosymfollow"),
    ] {
        if flags.contains(flag) {
            text.push_str(name);
        }
    }
    text
}

/// The options of the file system: `rw` and its own.
fn fs_options(mount: &Mount) -> String {
    let own = mount.fs.options();
    let access = if mount.fs_readonly.load(Ordering::Relaxed) { "ro" } else { "rw" };
    if own.is_empty() { access.to_owned() } else { format!("{access},{own}") }
}

/// What Linux escapes in paths (`seq_path`) and in names of devices (`mangle`).
const PATH_ESCAPES: &[u8] = b" \t\n\\";
const NAME_ESCAPES: &[u8] = b" \t\n\\#";

fn escape(to: &mut Vec<u8>, from: &[u8], which: &[u8]) {
    for byte in from {
        if which.contains(byte) {
            to.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        } else {
            to.push(*byte);
        }
    }
}
