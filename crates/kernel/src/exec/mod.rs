//! `execve`: a new image in a process.
//!
//! `program.rs` finds what is to run (scripts and their interpreters, credentials), `elf.rs` reads
//! its headers, `image.rs` lays it out, `stack.rs` writes arguments, environment and auxiliary vector,
//! `replace.rs` makes the change: in place where INVARIANTS 3.1 allows it, else in a fresh host process.

mod elf;
mod image;
mod program;
mod replace;
mod stack;
pub mod syscalls;

use abi::Errno;
use sync::SysResult;

pub use program::ExecArguments;

use crate::task::CurrentTask;

impl CurrentTask {
    /// Executes a program by its name as shells find it: one without a slash is looked for in the directories of the
    /// environment's PATH (like `execvp`).
    pub(crate) fn exec_by_path(&mut self, mut exec: ExecArguments) -> SysResult<()> {
        if exec.path.contains(&b'/') {
            return self.first_exec(&exec);
        }
        let name = std::mem::take(&mut exec.path);
        let path = exec
            .environment
            .iter()
            .find_map(|entry| entry.strip_prefix(b"PATH="))
            .unwrap_or(b"/usr/bin:/bin");
        let mut failure = Errno::ENOENT;
        for dir in path.split(|byte| *byte == b':').map(<[u8]>::to_vec).collect::<Vec<_>>() {
            exec.path = dir;
            if !exec.path.is_empty() {
                exec.path.push(b'/');
            }
            exec.path.extend(&name);
            match self.first_exec(&exec) {
                Ok(()) => return Ok(()),
                Err(error) => match error.errno() {
                    Some(Errno::ENOENT | Errno::ENOTDIR) => {}
                    Some(Errno::EACCES) => failure = Errno::EACCES,
                    _ => return Err(error),
                },
            }
        }
        Err(failure.into())
    }

    fn first_exec(&mut self, exec: &ExecArguments) -> SysResult<()> {
        self.exec(exec)?;
        self.trace_first_exec(exec);
        Ok(())
    }

    /// Makes `path` the current directory.
    pub(crate) fn enter_directory(&mut self, path: &[u8]) -> SysResult<()> {
        let dir = vfs::ops::chdir(&self.fs_context(), path)?;
        self.fs.update(|fs| fs.cwd = dir);
        Ok(())
    }
}
