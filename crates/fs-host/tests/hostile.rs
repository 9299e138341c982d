//! A hostile guest, or host process, that changes the tree below hostfs while it is served.
//!
//! Each test runs as the calling user and, started by root, a second time as nobody. `UMLAUT_RACE_SECONDS` (2) says how
//! long the races go on.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use abi::OpenFlags;
use fs_host::{HostFs, HostFsOptions, OwnerMap};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use support::*;
use vfs::{AttributeChange, FileSystem, NewNodeKind, RenameMode, XattrMode};

const CANARY: &[u8] = b"the canary lives outside";
/// A name that is in no directory inside.
const ONLY_OUTSIDE: &str = "only-outside";
const INNER: &str = "UMLAUT_TEST_INNER";

/// Runs `test` here, and again in a process of its own as nobody where that can be.
fn as_both_users(name: &str, test: impl FnOnce()) {
    test();
    if std::env::var_os(INNER).is_some() || !rustix::process::geteuid().is_root() {
        return;
    }
    // The build's directory may be closed to others.
    let dir = tempfile::tempdir().expect("a directory");
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
    let copy = dir.path().join("test");
    // By another process: a descriptor of ours open for writing would be in a child that a test beside this one forks,
    // and the file not to be executed meanwhile.
    let copied = Command::new("cp").arg(std::env::current_exe().expect("this program")).arg(&copy).status();
    assert!(copied.expect("cp").success());
    let output = Command::new(&copy)
        .args(["--exact", name, "--nocapture"])
        .env(INNER, "1")
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .expect("started as nobody");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "as nobody: {text}");
}

fn race_time() -> Duration {
    let seconds = std::env::var("UMLAUT_RACE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(2.0))
}

struct Ground {
    inside: tempfile::TempDir,
    outside: tempfile::TempDir,
}

impl Ground {
    fn new() -> Ground {
        let ground = Ground {
            inside: tempfile::tempdir().expect("a directory"),
            outside: tempfile::tempdir().expect("a directory"),
        };
        fs::write(ground.outside.path().join("file"), CANARY).expect("write");
        fs::write(ground.outside.path().join(ONLY_OUTSIDE), b"").expect("write");
        fs::create_dir(ground.outside.path().join("sub")).expect("mkdir");
        fs::create_dir_all(ground.inside.path().join("dir/sub")).expect("mkdir");
        fs::write(ground.inside.path().join("dir/file"), b"inside").expect("write");
        ground
    }

    fn serve(&self) -> Arc<HostFs> {
        HostFs::open(self.inside.path(), HostFsOptions::named(true, OwnerMap::own_as_root())).expect("served")
    }

    /// Nothing outside was changed.
    fn check(&self) {
        let file = self.outside.path().join("file");
        assert_eq!(fs::read(&file).expect("read"), CANARY);
        assert_eq!(fs::metadata(&file).expect("stat").permissions().mode() & 0o7777, 0o644);
        let mut names: Vec<_> = fs::read_dir(self.outside.path())
            .expect("listed")
            .map(|entry| entry.expect("entry").file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["file", ONLY_OUTSIDE, "sub"]);
        assert_eq!(fs::read_dir(self.outside.path().join("sub")).expect("listed").count(), 0);
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(&file, "user.mark", &mut value[..]), Err(rustix::io::Errno::NODATA));
    }
}

fn exchange(a: &Path, b: &Path) {
    // Either may be gone for a moment, by the guest's own doing.
    let _ = renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
}

/// Everything that a guest can do with a directory and a file in it; what fails fails.
fn poke(host: &Arc<HostFs>, round: u64) {
    let paths = Paths::new(host);
    for flags in [OpenFlags::RDONLY, OpenFlags::RDWR, OpenFlags::RDONLY] {
        let content = paths.open("/dir/file", flags).and_then(|file| read_file(&file));
        assert!(content.is_err() || content.is_ok_and(|content| content != CANARY), "the canary was read");
    }
    let root = host.root();
    let Ok(dir) = root.ops.lookup(&root, b"dir") else { return };
    if let Ok(file) = dir.ops.lookup(&dir, b"file") {
        if let Ok(content) = read(&file) {
            assert_ne!(content, CANARY, "the canary was read");
        }
        let _ = write(&file, b"inside");
        let change =
            AttributeChange { permissions: Some(0o4600), uid: Some(7), size: Some(6), ..Default::default() };
        let _ = file.ops.set_attributes(&file, &change);
        let _ = file.ops.set_xattr(&file, b"user.mark", b"1", XattrMode::Any);
        let name = format!("link-{}", round % 3);
        let _ = dir.ops.link(&dir, name.as_bytes(), &file);
        let _ = dir.ops.unlink(&dir, name.as_bytes(), &file);
        if round.is_multiple_of(5) {
            let _ = dir.ops.unlink(&dir, b"file", &file);
        }
    }
    if let Ok(file) = create(&dir, "file", NewNodeKind::File, 0o644) {
        let _ = write(&file, b"inside");
    }
    for kind in [NewNodeKind::Directory, NewNodeKind::Fifo, NewNodeKind::Symlink(b"/"), NewNodeKind::File] {
        if let Ok(made) = create(&dir, "made", kind, 0o4755) {
            if let Ok(sub) = dir.ops.lookup(&dir, b"sub") {
                let _ = dir.ops.rename(&dir, b"made", &sub, b"moved", RenameMode::Replace);
                let _ = sub.ops.rename(&sub, b"moved", &dir, b"made", RenameMode::Replace);
                let _ = sub.ops.unlink(&sub, b"moved", &made);
            }
            let _ = if made.is_dir() {
                dir.ops.rmdir(&dir, b"made", &made)
            } else {
                dir.ops.unlink(&dir, b"made", &made)
            };
        }
    }
    if let Ok(listed) = names(&dir) {
        for name in listed {
            assert_ne!(name, ONLY_OUTSIDE, "what is outside was listed");
            let _ = dir.ops.lookup(&dir, name.as_bytes()).and_then(|child| child.ops.attributes(&child));
        }
    }
}

/// `swap` goes on and on while two guest threads poke.
fn race(ground: &Ground, swap: impl Fn() + Sync) {
    let host = ground.serve();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                swap();
            }
        });
        let pokers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (start, mut round) = (Instant::now(), 0);
                    while start.elapsed() < race_time() {
                        poke(&host, round);
                        round += 1;
                    }
                    round
                })
            })
            .collect();
        let rounds: Vec<_> = pokers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        done.store(true, Ordering::Relaxed);
        for rounds in rounds {
            assert!(rounds.expect("no canary was seen") > 10);
        }
    });
    ground.check();
}

#[test]
fn a_directory_swapped_with_a_symlink_leads_nowhere() {
    as_both_users("a_directory_swapped_with_a_symlink_leads_nowhere", || {
        let ground = Ground::new();
        let (dir, link) = (ground.inside.path().join("dir"), ground.inside.path().join("link"));
        symlink(ground.outside.path(), &link).expect("symlink");
        race(&ground, || exchange(&dir, &link));
    });
}

#[test]
fn a_file_swapped_with_a_symlink_leads_nowhere() {
    as_both_users("a_file_swapped_with_a_symlink_leads_nowhere", || {
        let ground = Ground::new();
        let (file, link) = (ground.inside.path().join("dir/file"), ground.inside.path().join("link"));
        symlink(ground.outside.path().join("file"), &link).expect("symlink");
        race(&ground, || exchange(&file, &link));
    });
}

/// The directory itself moves out of the root and back, while `sub` of it is swapped with a link.
#[test]
fn a_directory_that_wanders_is_not_followed() {
    as_both_users("a_directory_that_wanders_is_not_followed", || {
        let ground = Ground::new();
        let away = tempfile::tempdir().expect("a directory");
        let dir = ground.inside.path().join("dir");
        let link = ground.inside.path().join("link");
        symlink(ground.outside.path(), &link).expect("symlink");
        race(&ground, || {
            let _ = fs::rename(&dir, away.path().join("dir"));
            exchange(&link, &dir);
            let _ = fs::rename(away.path().join("dir"), &dir);
            exchange(&dir.join("sub"), &link);
        });
    });
}

/// A guest thread makes names move through hostfs itself.
#[test]
fn a_guest_that_renames_links_over_directories_gets_nowhere() {
    as_both_users("a_guest_that_renames_links_over_directories_gets_nowhere", || {
        let ground = Ground::new();
        let host = ground.serve();
        let outside = ground.outside.path().to_str().expect("a path").to_owned();
        create(&host.root(), "link", NewNodeKind::Symlink(outside.as_bytes()), 0o777).expect("created");
        race(&ground, || {
            let root = host.root();
            let _ = root.ops.rename(&root, b"link", &root, b"dir", RenameMode::Exchange);
        });
    });
}

/// A FIFO in place of a file: nobody ever opens it, so a writer that does not wait never finds a reader.
#[test]
fn a_file_swapped_with_a_fifo_is_not_opened() {
    as_both_users("a_file_swapped_with_a_fifo_is_not_opened", || {
        let ground = Ground::new();
        let (file, fifo) = (ground.inside.path().join("dir/file"), ground.inside.path().join("fifo"));
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(CWD, &fifo, mode).expect("mkfifo");
        let path =
            rustix::fs::open(&fifo, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).expect("open");
        let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&path));
        race(&ground, || {
            exchange(&file, &fifo);
            let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK;
            let writer = rustix::fs::open(link.as_str(), flags, rustix::fs::Mode::empty());
            assert_eq!(writer.err(), Some(rustix::io::Errno::NXIO), "somebody opened the FIFO");
        });
    });
}

/// Nothing that a guest does gives it what only the host's root may: here with all the rights that root has.
#[test]
fn nothing_privileged_comes_into_being_on_the_host() {
    as_both_users("nothing_privileged_comes_into_being_on_the_host", || {
        let dir = tempfile::tempdir().expect("a directory");
        let host =
            HostFs::open(dir.path(), HostFsOptions::named(true, OwnerMap::own_as_root())).expect("served");
        let root = host.root();
        let kinds = [
            NewNodeKind::File,
            NewNodeKind::Directory,
            NewNodeKind::Fifo,
            NewNodeKind::Socket,
            NewNodeKind::CharDevice(abi::makedev(1, 1)),
            NewNodeKind::BlockDevice(abi::makedev(8, 0)),
            NewNodeKind::Symlink(b"/etc/shadow"),
        ];
        for (index, kind) in kinds.into_iter().enumerate() {
            let made = create(&root, &format!("made-{index}"), kind, 0o7777).expect("created");
            let change = AttributeChange { uid: Some(12345), gid: Some(54321), ..Default::default() };
            made.ops.set_attributes(&made, &change).expect("changed");
            for name in [b"security.capability".as_slice(), b"trusted.x"] {
                let _ =
                    made.ops.set_xattr(&made, name, &[1, 0, 0, 2, 0xff, 0xff, 0xff, 0xff], XattrMode::Any);
            }
        }
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        for entry in fs::read_dir(dir.path()).expect("listed") {
            let path: PathBuf = entry.expect("entry").path();
            let stat = fs::symlink_metadata(&path).expect("stat");
            assert_eq!(
                (std::os::unix::fs::MetadataExt::uid(&stat), std::os::unix::fs::MetadataExt::gid(&stat)),
                own
            );
            assert_eq!(stat.permissions().mode() & 0o7000, 0, "{path:?}");
            assert!(stat.is_file() || stat.is_dir() || stat.is_symlink(), "{path:?}");
            let mut names = [0; 4096];
            let len = rustix::fs::llistxattr(&path, &mut names[..]).expect("listed");
            for name in names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
                assert!(name.starts_with(b"user."), "{path:?}: {}", String::from_utf8_lossy(name));
            }
        }
    });
}

/// proc mounted below the root, bound there, and unmounted while it is in use.
#[test]
fn mounts_that_come_and_go_show_nothing_of_the_host_kernel() {
    let name = "mounts_that_come_and_go_show_nothing_of_the_host_kernel";
    if std::env::var_os(INNER).is_none() {
        let output = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .arg(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env(INNER, "1")
            .output();
        match output {
            Ok(output) if String::from_utf8_lossy(&output.stdout).contains("1 passed") => {}
            Ok(output) if !rustix::process::geteuid().is_root() => {
                eprintln!("SKIPPED {name}: no mount namespaces: {}", String::from_utf8_lossy(&output.stderr));
            }
            other => panic!("{other:?}"),
        }
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    for name in ["p", "q", "disk"] {
        fs::create_dir(dir.path().join(name)).expect("mkdir");
    }
    fs::write(dir.path().join("file"), b"").expect("write");
    let mount = |args: &[&str]| {
        let status = Command::new("mount").args(args).current_dir(dir.path()).status().expect("mount");
        assert!(status.success(), "mount {args:?}");
    };
    for submounts in [fs_host::Submounts::Hidden, fs_host::Submounts::Shown] {
        let options = HostFsOptions { submounts, ..HostFsOptions::named(true, OwnerMap::own_as_root()) };
        let host = HostFs::open(dir.path(), options).expect("served");
        let before = walk(&host, "p").expect("a directory");
        create(&before, "mine", NewNodeKind::File, 0o644).expect("created");
        let paths = Paths::new(&host);
        paths.hold("/file");
        mount(&["-t", "proc", "proc", "p"]);
        mount(&["--bind", "/proc/self", "q"]);
        mount(&["--bind", "/proc/version", "file"]);
        mount(&["-t", "tmpfs", "tmpfs", "disk"]);
        fs::write(dir.path().join("disk/inside"), b"").expect("write");
        let root = host.root();
        assert!(!root.ops.revalidate(&root, b"p", &before));
        for name in ["p", "q"] {
            let stand_in = walk(&host, name).expect("a stand-in");
            assert_eq!(names(&stand_in).expect("listed"), Vec::<String>::new());
            assert!(
                walk(&host, &format!("{name}/self/mem")).is_err()
                    && walk(&host, &format!("{name}/mem")).is_err()
            );
            assert!(create(&stand_in, "x", NewNodeKind::File, 0o644).is_err());
            assert!(
                root.ops.rename(&root, name.as_bytes(), &root, b"elsewhere", RenameMode::Replace).is_err()
            );
        }
        assert_eq!(read(&walk(&host, "file").expect("a stand-in")).expect("read"), b"");
        assert!(open(&walk(&host, "file").expect("a stand-in"), OpenFlags::WRONLY).is_err());
        let by_path = paths.open("/file", OpenFlags::RDONLY).expect("a stand-in");
        assert_eq!(read_file(&by_path).expect("read"), b"");
        assert!(paths.open("/file", OpenFlags::WRONLY).is_err());
        let shown = submounts == fs_host::Submounts::Shown;
        assert_eq!(
            names(&walk(&host, "disk").expect("found")).expect("listed"),
            if shown { vec!["inside"] } else { vec![] }
        );
        let on_disk = walk(&host, "disk").expect("found");
        let stat = on_disk.ops.attributes(&on_disk).expect("attributes");
        assert_eq!(stat.dev != host.dev(), shown, "another file system has another st_dev");
        for name in ["p", "q", "file", "disk"] {
            let status =
                Command::new("umount").args(["-l", name]).current_dir(dir.path()).status().expect("umount");
            assert!(status.success());
        }
        let after = walk(&host, "p").expect("found");
        assert!(Arc::ptr_eq(&after, &before));
        assert_eq!(names(&after).expect("listed"), ["mine"]);
        let mine = walk(&host, "p/mine").expect("found");
        after.ops.unlink(&after, b"mine", &mine).expect("unlinked");
    }
}
