//! The default root on this host, put together as the command line does it.

#[path = "../../fs-host/tests/support/mod.rs"]
mod support;

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use abi::{Errno, FileType, OpenFlags};
use fs_host::HostFs;
use fs_host::default_root::{Environment, Reach, RootPlan};
use fs_overlay::Overlay;
use fs_tmpfs::{SelfFds, TmpFs, TmpFsOptions};
use support::*;
use vfs::{FileSystem, Inode, NewNodeKind};

fn root() -> (Arc<Overlay>, RootPlan) {
    let environment = Environment {
        cwd: "/".into(),
        home: Some("/root".into()),
        homes: Vec::new(),
        lost_cwd: None,
        owner: (0, 0),
    };
    let plan = RootPlan::new(&environment, Reach::System);
    let layer = plan.layers.first().expect("a root");
    let lower = HostFs::open(&layer.host, layer.options.clone()).expect("served");
    let upper = TmpFs::new(vfs::anonymous_dev(), TmpFsOptions::default(), SelfFds::open().expect("/proc"));
    let overlay = Overlay::new(&[lower.root()], Some(upper), String::new()).expect("an overlay");
    plan.furnish(&overlay.root()).expect("furnished");
    (overlay, plan)
}

#[test]
fn programs_and_configuration_show_and_homes_do_not() {
    let (overlay, _) = root();
    for path in ["usr/bin", "bin", "etc/passwd", "lib", "tmp", "var/tmp", "run", "proc", "sys", "dev", "home"]
    {
        assert!(walk(&overlay, path).is_ok(), "{path}");
    }
    for empty in ["home", "root", "tmp", "run", "mnt", "srv", "boot", "proc", "sys", "dev", "var/log"] {
        let listed = names(&walk(&overlay, empty).expect(empty)).expect(empty);
        assert!(listed.is_empty() || (empty == "run" && listed == ["lock"]), "{empty}: {listed:?}");
    }
    for secret in ["etc/shadow", "etc/gshadow", "etc/sudoers", "etc/ssl/private", "etc/ssh/ssh_host_rsa_key"]
    {
        assert_eq!(errno(walk(&overlay, secret)), Some(Errno::ENOENT), "{secret}");
    }
    let tmp = walk(&overlay, "tmp").expect("found");
    assert_eq!(tmp.ops.attributes(&tmp).expect("attributes").mode.bits(), 0o041777);
    let program = walk(&overlay, "usr/bin/env").expect("found");
    let on_host = std::fs::read("/usr/bin/env").expect("read");
    assert_eq!(read(&program).expect("read"), on_host);
}

#[test]
fn nothing_shows_that_not_everybody_can_read() {
    fn check(dir: &Arc<Inode>, path: &Path, seen: &mut u32) {
        let Ok(file) = open(dir, OpenFlags::RDONLY) else { return };
        for (name, _, file_type, _) in list_some(&file, 1000).expect("listed").found {
            let name = String::from_utf8_lossy(&name).into_owned();
            let path = path.join(&name);
            if name == "." || name == ".." || path == Path::new("/etc/machine-id") {
                continue;
            }
            let on_host = std::fs::symlink_metadata(&path).expect("on the host");
            assert!(!on_host.file_type().is_socket() || file_type == FileType::SOCK, "{path:?}");
            *seen += 1;
            match file_type {
                FileType::DIR => {
                    assert_ne!(on_host.mode() & 0o001, 0, "{path:?}");
                    check(&dir.ops.lookup(dir, name.as_bytes()).expect("found"), &path, seen);
                }
                FileType::LNK => {}
                _ => assert_ne!(on_host.mode() & 0o004, 0, "{path:?}"),
            }
        }
    }
    use std::os::unix::fs::FileTypeExt;
    let (overlay, _) = root();
    let mut seen = 0;
    for path in ["etc", "var/lib/dpkg", "opt"] {
        if let Ok(dir) = walk(&overlay, path) {
            check(&dir, &Path::new("/").join(path), &mut seen);
        }
    }
    assert!(seen > 100, "{seen} files");
}

#[test]
fn the_machine_is_a_fresh_one_and_the_host_stays_as_it_is() {
    let (overlay, _) = root();
    let id = read(&walk(&overlay, "etc/machine-id").expect("made")).expect("read");
    assert_eq!(id.len(), 33);
    if let Ok(host_id) = std::fs::read("/etc/machine-id") {
        assert_ne!(id, host_id);
    }
    let (other, _) = root();
    assert_ne!(read(&walk(&other, "etc/machine-id").expect("made")).expect("read"), id);
    let etc = walk(&overlay, "etc").expect("found");
    create(&etc, "umlaut-was-here", NewNodeKind::File, 0o644).expect("created");
    let passwd = walk(&overlay, "etc/passwd").expect("found");
    let before = std::fs::read("/etc/passwd").expect("read");
    write(&passwd, b"changed").expect("written");
    etc.ops.unlink(&etc, b"passwd", &passwd).expect("unlinked");
    assert!(!Path::new("/etc/umlaut-was-here").exists());
    assert_eq!(std::fs::read("/etc/passwd").expect("read"), before);
}
