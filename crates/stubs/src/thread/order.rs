//! Orders: what the kernel has a guest thread do, and the wait until it posts again.

use platform::{AddressSpace, Event, ExitStatus};

use super::Guest;
use crate::hand_over::{self, Bell, Waited};
use crate::layout::*;
use crate::spin::Next;

/// A guest thread that does not do what it is ordered, or does not answer a kick, for so long is killed.
pub(crate) const PATIENCE: i64 = 20;
/// The same when its process ends anyway.
const LAST_PATIENCE: i64 = 2;

/// The guest did not come back as ordered.
pub(crate) enum Gone {
    Died(ExitStatus),
    Kicked,
}

impl Guest {
    /// Gives an order and waits until the guest posts; returns why it did. `kicks`: a kick may come meanwhile.
    pub(crate) fn order(&mut self, order: Order, kicks: bool) -> Result<u32, Gone> {
        if let Some(status) = self.dead {
            return Err(Gone::Died(status));
        }
        self.counters.add(Event::HandOver, 1);
        let answers = if order.resumes() {
            self.window.leave()
        } else {
            self.window.settle();
            0
        };
        let apart = self.pin.as_ref().is_some_and(|pin| {
            self.shared.guests.placement.before_run(pin);
            pin.is_apart()
        });
        // The exchanged line is written at once, behind all barriers: the other side may be looking at it.
        if order.answers_call() {
            self.channel.set(CALL, self.value);
        }
        self.channel.set32(ORDER, order as u32 | answers << ORDER_BITS);
        let slept = hand_over::post(&self.channel);
        let seen = apart && hand_over::watch(&self.channel, &self.bell, self.spin.span());
        if apart && !seen {
            self.shared.guests.placement.sleeps();
        }
        let reason = self.wait(kicks);
        self.place(apart, seen && !slept);
        reason
    }

    /// The guest has posted: decides whether the pair is to be on two CPUs. `awake`: neither of the two has slept
    /// since its last post.
    fn place(&mut self, apart: bool, awake: bool) {
        let Guest { shared, channel, spin, doubled, pin: Some(pin), .. } = self else { return };
        let (spinning, placement) = (&shared.spinning, &shared.guests.placement);
        placement.after_run(pin);
        let next = if apart && pin.is_apart() {
            spin.watched(spinning, awake)
        } else if apart {
            Next::Join
        } else {
            spin.met(spinning)
        };
        match next {
            Next::Stay => {}
            Next::Watch(ticks) => channel.set32(SPIN, ticks),
            Next::Part(ticks) if placement.part(pin) => {
                doubled.begin();
                channel.set32(SPIN, ticks);
            }
            Next::Part(_) | Next::Join => {
                pin.join();
                doubled.end();
                channel.set32(SPIN, 0);
                spin.joined();
            }
        }
    }

    fn wait(&mut self, kicks: bool) -> Result<u32, Gone> {
        // What the kernel orders ends soon; the guest's own code need not, until it is kicked.
        let mut limit = (!kicks).then(|| in_seconds(PATIENCE));
        let mut ending = false;
        loop {
            let seen = self.bell.value();
            if seen & Bell::DEAD != 0 {
                return Err(Gone::Died(self.died()));
            }
            if !ending && self.kick.is_ending() {
                ending = true;
                limit = Some(in_seconds(LAST_PATIENCE));
            }
            match hand_over::wait(&self.channel, &self.bell, seen, limit) {
                Waited::Posted => return Ok(self.channel.get32(REASON)),
                Waited::Bell => limit = limit.or_else(|| Some(in_seconds(PATIENCE))),
                Waited::TimedOut if kicks && !ending && !self.kick.is_pending() => limit = None,
                Waited::TimedOut => {
                    tracing::warn!(tid = self.tid, "guest thread does not answer; killed its process");
                    self.inside.process.kill();
                    limit = None;
                }
            }
        }
    }

    /// Runs what the kernel ordered, which does not end by a kick.
    pub(crate) fn done(&mut self, order: Order) -> Result<(), ExitStatus> {
        match self.order(order, false) {
            Ok(reason::DONE) => Ok(()),
            Ok(_) => Err(self.escaped()),
            Err(Gone::Died(status)) => Err(status),
            Err(Gone::Kicked) => Err(self.escaped()),
        }
    }

    /// Any signal of a kick's that is to come has come: what is ordered now, none breaks off late.
    pub(crate) fn settle_kicks(&self) {
        self.kick.settle();
    }

    /// Runs a host call that may block: a kick ends it.
    pub(crate) fn block(&mut self) -> Result<(), Gone> {
        if !self.kick.begin() {
            return Err(Gone::Kicked);
        }
        let reason = self.order(Order::Block, true);
        self.kick.end();
        match reason? {
            reason::DONE => Ok(()),
            reason::KICKED => {
                self.kick.reported();
                Err(Gone::Kicked)
            }
            _ => Err(Gone::Died(self.escaped())),
        }
    }
}

/// A time of CLOCK_MONOTONIC.
pub(crate) fn in_seconds(seconds: i64) -> libc::timespec {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    libc::timespec { tv_sec: now.tv_sec + seconds, tv_nsec: now.tv_nsec }
}
