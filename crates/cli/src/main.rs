//! The command `umlaut`.
use std::os::fd::AsFd;
use std::sync::Arc;

use abi::OpenFlags;
use kernel::fs::Fs;
use kernel::fs::host_file::HostFile;
use kernel::kernel::{Kernel, KernelOptions, MainEvent, MainProgramSpec};
use vfs::{Cred, FdTable, MountFlags, MountTable, NoSpecialFiles};

fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_writer(std::io::stderr)
        .init();
    let arguments: Vec<Vec<u8>> = std::env::args().skip(2).map(String::into_bytes).collect();
    let platform = ptrace::Ptrace::new(ptrace::Options::new(ptrace::Mode::Sysemu))?;
    let fs = fs_host::HostFs::open(
        std::path::Path::new("/"),
        fs_host::HostFsOptions::named(false, fs_host::OwnerMap::Same),
    )
    .map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let fs: Arc<dyn vfs::FileSystem> = fs;
    let mounts = MountTable::new(&fs, "host", MountFlags::empty());
    let root = mounts.root().ok_or_else(|| anyhow::anyhow!("no root"))?;
    let files = FdTable::new();
    let stdio = [
        std::io::stdin().as_fd().try_clone_to_owned()?,
        std::io::stdout().as_fd().try_clone_to_owned()?,
        std::io::stderr().as_fd().try_clone_to_owned()?,
    ];
    for fd in stdio {
        let file = vfs::FileDescription::new(Box::new(HostFile::new(fd)), None, OpenFlags::RDWR);
        files.install(file, 1024, false).map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    let trace = std::env::var_os("TRACE")
        .map(|_| kernel::syscall::trace::Trace::new(Box::new(std::io::stderr()), vec![]));
    let kernel =
        Kernel::new(Box::new(platform), KernelOptions::default(), mounts, Box::new(NoSpecialFiles), trace);
    let spec = MainProgramSpec {
        exec: kernel::exec::ExecArguments {
            dirfd: -100,
            path: arguments[0].clone(),
            empty_path: false,
            no_follow: false,
            arguments,
            environment: vec![b"PATH=/usr/bin:/bin".to_vec()],
        },
        cred: Cred::root(),
        files,
        fs: Fs::new(root.clone(), root, 0o22),
        limits: kernel::resource::Limits::default(),
        as_init: false,
    };
    kernel.start(spec).map_err(|error| anyhow::anyhow!("{error}"))?;
    let waiter = sync::Waiter::new();
    let end = kernel.wait_for_main(&waiter);
    kernel.shut_down();
    match end {
        Some(MainEvent::Ended(kernel::task::GroupExit::Code(code))) => std::process::exit(code),
        other => anyhow::bail!("{other:?}"),
    }
}
