//! Workloads: several processes that call at once, and what each loses by the others.
//!
//! Those of `contention` call whatever kernel there is. Those of `tracers` are traced by us, as bare as can be, and those of
//! `pairs` wake another process and wait for its answer: what the host itself makes kernels like ours cost each other.

use std::time::{Duration, Instant};

use crate::{figure, sys};

/// How long each calls.
const CALLING: Duration = Duration::from_millis(200);

/// `contention`, by these calls.
pub(crate) fn contention(name: &str, call: fn()) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let calling = || while_told(|| (0..256).for_each(|_| call()), 256, sys::process_cpu_ns);
    let alone = processes(1, calling);
    alone.tell(name, "1");
    let mut counts = vec![2, cpus];
    counts.dedup();
    for count in counts {
        processes(count, calling).tell_beside(name, &count.to_string(), &alone);
    }
}

/// Tracers that are threads of one process, as umlaut's are, and tracers that are processes.
pub(crate) fn tracers(name: &str) {
    let alone = threads(1, trace);
    alone.tell(name, "1");
    threads(2, trace).tell_beside(name, "2-threads", &alone);
    let alone = processes(1, trace);
    processes(2, trace).tell_beside(name, "2-processes", &alone);
}

/// Processes that pass a byte to another one and back, both on one CPU.
pub(crate) fn pairs(name: &str) {
    let alone = processes(1, pass_to_and_fro);
    alone.tell(name, "1");
    processes(2, pass_to_and_fro).tell_beside(name, "2", &alone);
}

/// What a call costs, on average.
#[derive(Clone, Copy, Default)]
struct CallCost {
    /// Time that passes, in nanoseconds.
    ns: f64,
    /// Processor time, in the guest and in whatever serves it, in nanoseconds. What others do on the machine hardly shows
    /// in it; what processes cost each other by shared locks and cache lines does.
    cpu_ns: f64,
}

impl CallCost {
    fn tell(&self, name: &str, count: &str) {
        figure(&format!("{name}/{count}"), self.ns, "ns", 1);
        figure(&format!("{name}/{count}-cpu"), self.cpu_ns, "ns", 1);
    }

    fn tell_beside(&self, name: &str, count: &str, alone: &CallCost) {
        let loss = |alone: f64, beside: f64| (1.0 - alone / beside) * 100.0;
        self.tell(name, count);
        figure(&format!("{name}/{count}-loss"), loss(alone.ns, self.ns), "%", 1);
        figure(&format!("{name}/{count}-cpu-loss"), loss(alone.cpu_ns, self.cpu_ns), "%", 1);
    }
}

/// Repeats some calls for as long as it is told to, by a clock of processor time.
fn while_told(mut some_calls: impl FnMut(), each: u64, cpu_clock: impl Fn() -> u64) -> CallCost {
    let (start, cpu) = (Instant::now(), cpu_clock());
    let mut calls: u64 = 0;
    // The clock is read rarely.
    while start.elapsed() < CALLING {
        some_calls();
        calls += each;
    }
    let ns = start.elapsed().as_nanos() as f64 / calls as f64;
    let cpu_ns = cpu_clock().saturating_sub(cpu) as f64 / calls as f64;
    // Nobody measures the end of his time alone.
    while start.elapsed() < CALLING + CALLING / 10 {
        some_calls();
    }
    CallCost { ns, cpu_ns }
}

/// So many processes, each on a CPU of its own as far as there are as many, that begin together.
fn processes(count: usize, work: impl Fn() -> CallCost) -> CallCost {
    let ((read, write), (gate, open)) = (sys::pipe(), sys::pipe());
    let child = |index| {
        sys::fork(|| {
            sys::pin_to_one_of_its_cpus(index);
            sys::read(gate, &mut [0]);
            let cost = work();
            let bytes = [cost.ns, cost.cpu_ns].map(f64::to_ne_bytes);
            sys::write(write, bytes.as_flattened());
        })
    };
    let children: Vec<usize> = (0..count).map(child).collect();
    sys::write(open, &vec![0; count]);
    let costs = (0..count).map(|_| {
        let mut cost = [[0; 8]; 2];
        sys::read(read, cost.as_flattened_mut());
        let [ns, cpu_ns] = cost.map(f64::from_ne_bytes);
        CallCost { ns, cpu_ns }
    });
    let mean = mean(costs.collect());
    children.into_iter().for_each(sys::wait_for);
    mean
}

/// The same with threads.
fn threads(count: usize, work: fn() -> CallCost) -> CallCost {
    let (gate, open) = sys::pipe();
    let thread = |index| {
        std::thread::spawn(move || {
            sys::pin_to_one_of_its_cpus(index);
            sys::read(gate, &mut [0]);
            work()
        })
    };
    let threads: Vec<_> = (0..count).map(thread).collect();
    sys::write(open, &vec![0; count]);
    mean(threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect())
}

fn mean(costs: Vec<CallCost>) -> CallCost {
    let of = |field: fn(&CallCost) -> f64| costs.iter().map(field).sum::<f64>() / costs.len() as f64;
    CallCost { ns: of(|cost| cost.ns), cpu_ns: of(|cost| cost.cpu_ns) }
}

/// To a child and back.
fn pass_to_and_fro() -> CallCost {
    let (there, back) = (sys::pipe(), sys::pipe());
    let child = sys::fork(|| {
        while sys::read(there.0, &mut [0]) == 1 {
            sys::write(back.1, &[1]);
        }
    });
    let pass = || {
        sys::write(there.1, &[1]);
        sys::read(back.0, &mut [0]);
    };
    let cpu_clock = || sys::process_cpu_ns() + sys::cpu_ns_of(child);
    let cost = while_told(|| (0..64).for_each(|_| pass()), 64, cpu_clock);
    sys::kill(child);
    sys::wait_for(child);
    cost
}

/// A child that calls, and is stopped at each call.
fn trace() -> CallCost {
    let child = sys::fork(|| {
        sys::be_traced();
        loop {
            sys::getpid();
        }
    });
    sys::wait_for_stop(child);
    let cpu_clock = || sys::thread_cpu_ns() + sys::cpu_ns_of(child);
    let cost = while_told(|| (0..64).for_each(|_| sys::run_to_next_call(child)), 64, cpu_clock);
    sys::kill(child);
    sys::wait_for_stop(child);
    cost
}
