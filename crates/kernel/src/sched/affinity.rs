//! The CPUs that a thread may use.

use std::sync::Arc;

use abi::{Errno, UserAddr};
use rustix::thread::CpuSet;
use sync::SysResult;
use vfs::Capability;
use zerocopy::IntoBytes;

use super::is_same_owner;
use crate::syscall::{InCpuMask, Out, OutCpuMask, Pid};
use crate::task::{CurrentTask, Task};

/// A set of CPUs: as many as the host's calls know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuMask([u64; CpuMask::WORDS]);

impl CpuMask {
    const WORDS: usize = CpuSet::MAX_CPU / 64;

    /// The CPUs that umlaut may use.
    pub fn of_host() -> CpuMask {
        let mut mask = CpuMask([0; CpuMask::WORDS]);
        let set = rustix::thread::sched_getaffinity(None).unwrap_or_default();
        for cpu in (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)) {
            if let Some(word) = mask.0.get_mut(cpu / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
        mask
    }

    fn to_host(self) -> CpuSet {
        let mut set = CpuSet::new();
        for (index, word) in self.0.iter().enumerate() {
            for bit in (0..64).filter(|bit| word >> bit & 1 != 0) {
                set.set(index * 64 + bit);
            }
        }
        set
    }

    /// Words up to the last CPU in it.
    pub fn words(&self) -> &[u64] {
        let used = self.0.iter().rposition(|word| *word != 0).map_or(1, |last| last + 1);
        self.0.get(..used).unwrap_or(&self.0)
    }

    fn intersection(self, other: CpuMask) -> CpuMask {
        let mut both = self;
        both.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word &= other);
        both
    }

    fn is_empty(self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }
}

/// A task. `EPERM`: another user's.
fn target_to_change(task: &CurrentTask, pid: Pid) -> SysResult<Arc<Task>> {
    let target = task.task_by_id(pid).ok_or(Errno::ESRCH)?;
    if !is_same_owner(&task.cred, &target.cred()) && !task.cred.capable(Capability::SYS_NICE) {
        return Err(Errno::EPERM.into());
    }
    Ok(target)
}

pub fn sys_sched_setaffinity(task: &mut CurrentTask, pid: Pid, mask: InCpuMask) -> SysResult<()> {
    let all = task.kernel().cpus;
    let size = size_of_val(all.words());
    let len = usize::try_from(mask.len).unwrap_or(usize::MAX).min(size);
    let mut wanted = CpuMask([0; CpuMask::WORDS]);
    let bytes = wanted.0.as_mut_bytes().get_mut(..len).unwrap_or(&mut []);
    task.mm.read_bytes(mask.addr, bytes)?;
    let target = target_to_change(task, pid)?;
    let allowed = wanted.intersection(all);
    if allowed.is_empty() {
        return Err(Errno::EINVAL.into());
    }
    target.scheduling.lock().cpus = (allowed != all).then_some(allowed);
    task.apply_scheduling_of(&target);
    Ok(())
}

pub fn sys_sched_getaffinity(task: &mut CurrentTask, pid: Pid, mask: OutCpuMask) -> SysResult<usize> {
    let all = task.kernel().cpus;
    let len = usize::try_from(mask.len).unwrap_or(usize::MAX);
    let size = size_of_val(all.words());
    if len < size || len % size_of::<u64>() != 0 {
        return Err(Errno::EINVAL.into());
    }
    let target = task.task_by_id(pid).ok_or(Errno::ESRCH)?;
    let cpus = target.scheduling.lock().cpus.unwrap_or(all);
    task.mm.write_bytes(mask.addr, cpus.0.as_bytes().get(..size).unwrap_or(&[]))?;
    Ok(size)
}

impl Task {
    /// Where its host threads may run.
    pub(crate) fn cpus(&self) -> CpuSet {
        self.scheduling.lock().cpus.unwrap_or(self.kernel.cpus).to_host()
    }
}

impl CurrentTask {
    /// Puts the host threads of this task where it may run.
    pub(super) fn apply_affinity(&mut self) {
        let cpus = self.task.scheduling.lock().cpus.unwrap_or(self.kernel().cpus);
        // Best effort: the host may have taken CPUs away since.
        if let Err(error) = rustix::thread::sched_setaffinity(None, &cpus.to_host()) {
            tracing::debug!(%error, "the kernel thread stays where it may run");
        }
        self.context.set_cpus(&cpus.0);
    }
}

pub fn sys_getcpu(task: &mut CurrentTask, cpu: Out<u32>, node: Out<u32>, _cache: UserAddr) -> SysResult<()> {
    // The guest's thread is kept where its kernel thread is.
    let here = u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0);
    let tell = |place: Out<u32>, value: u32| match place.is_null() {
        true => Ok(()),
        false => task.mm.write(place.0, &value),
    };
    // Both are tried, whatever became of the first.
    let told = tell(cpu, here);
    tell(node, 0).and(told)
}

pub fn sys_sched_yield(task: &mut CurrentTask) -> SysResult<()> {
    let _ = task;
    std::thread::yield_now();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_go_to_the_host_and_back() {
        let host = CpuMask::of_host();
        assert!(!host.is_empty());
        let set = host.to_host();
        let count: u32 = host.words().iter().map(|word| word.count_ones()).sum();
        assert_eq!(set.count(), count);
    }
}
