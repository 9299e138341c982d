//! RLIMIT_CPU: SIGXCPU each second beyond the soft limit, SIGKILL at the hard one.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use abi::{SiCode, Siginfo, Signal};
use sync::{Mutex, order};

use super::cpu::{Counts, CpuTimer, Poll};
use super::queue::{Armed, Expire};
use crate::kernel::Kernel;
use crate::resource::{CPU, INFINITY};
use crate::task::{GroupExit, ThreadGroup};

/// Looks at a process's CPU time while that is limited.
pub(super) struct CpuLimit {
    own: Weak<CpuLimit>,
    kernel: Weak<Kernel>,
    group: Weak<ThreadGroup>,
    clock: CpuTimer,
    state: Mutex<order::GroupTimers, (Poll, Option<Armed>)>,
}

impl ThreadGroup {
    /// The limit has been set or inherited.
    pub(crate) fn watch_cpu_limit(self: &Arc<Self>, kernel: &Arc<Kernel>) {
        let limit = self.limits.lock().get(CPU);
        if limit == Some((INFINITY, INFINITY)) && self.timers.cpu_limit.get().is_none() {
            return;
        }
        let make = || {
            Arc::new_cyclic(|own| CpuLimit {
                own: own.clone(),
                kernel: Arc::downgrade(kernel),
                group: Arc::downgrade(self),
                clock: CpuTimer::of_process(self, Counts::All),
                state: Mutex::default(),
            })
        };
        self.timers.cpu_limit.get_or_init(make).look(kernel, self);
    }
}

impl CpuLimit {
    fn look(&self, kernel: &Arc<Kernel>, group: &ThreadGroup) {
        let used = self.clock.now(kernel);
        let (mut soft, hard) = group.limits.lock().get(CPU).unwrap_or((INFINITY, INFINITY));
        let reached = |seconds: u64| seconds != INFINITY && used >= Duration::from_secs(seconds);
        let send = |info: Siginfo| {
            // It may be ending.
            let _ = kernel.tasks.lock().send_to_group(group.pid, info);
        };
        if reached(hard) {
            kernel.tasks.begin_exit(group, GroupExit::Signal { signal: Signal::KILL, core: false });
            return;
        }
        if reached(soft) {
            // Linux: the limit itself moves on, so that the signal comes again a second later.
            soft = used.as_secs().saturating_add(1);
            group.limits.lock().set(CPU, (soft, hard));
            send(Siginfo::kill(Signal::XCPU, SiCode::KERNEL, 0, 0));
        }
        let threads = self.clock.threads(kernel);
        let mut state = self.state.lock();
        state.1 = None;
        let next = soft.min(hard);
        if next != INFINITY {
            let left = Duration::from_secs(next).saturating_sub(used);
            let delay = state.0.delay(left, used, threads);
            let own: Weak<dyn Expire> = self.own.clone();
            state.1 = Instant::now().checked_add(delay).map(|at| kernel.timers.arm(at, own));
        }
    }
}

impl Expire for CpuLimit {
    fn expire(self: Arc<Self>) {
        if let (Some(kernel), Some(group)) = (self.kernel.upgrade(), self.group.upgrade()) {
            self.look(&kernel, &group);
        }
    }
}
