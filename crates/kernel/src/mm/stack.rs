//! Mappings that grow down: the host grows them without telling, within the limit that it was given.

use std::sync::atomic::Ordering;

use abi::{PAGE_SIZE, UserAddr};

use crate::mm::{Mm, Vma, VmaFlags};
use crate::resource::{self, Limits};

impl Mm {
    /// Takes the true starts of mappings that grow down from the host.
    pub fn refresh_stack(&self) {
        self.refresh_growing(0, u64::MAX);
    }

    /// The same for those that may have grown into `[start, end)`.
    pub(super) fn refresh_growing(&self, start: u64, end: u64) {
        let growing: Vec<Vma> = {
            let record = self.record();
            let mut below = 0;
            let mut growing = Vec::new();
            for vma in record.vmas.iter() {
                let may_hold = vma.start > start && below < end;
                if vma.flags.contains(VmaFlags::GROWSDOWN) && below < vma.start && may_hold {
                    growing.push(vma.clone());
                }
                below = vma.end;
            }
            growing
        };
        for vma in growing {
            let Some(start) = self.space.mapping_start(UserAddr(vma.start)) else { continue };
            let mut record = self.record();
            // It may have gone meanwhile.
            let is_there = record.vmas.find(vma.start).is_some_and(|now| now.start == vma.start);
            if start.0 < vma.start && is_there && record.vmas.is_free(start.0, vma.start) {
                record.vmas.insert(Vma { start: start.0, ..vma });
            }
        }
    }

    /// Refreshes if `[start, end)` seems to have a hole that a stack may have grown into.
    pub(super) fn refresh_holes(&self, start: u64, end: u64) {
        if self.record().vmas.mapped_until(start, end) < end {
            self.refresh_growing(start, end);
        }
    }

    /// Tells the host how far stacks may grow, from a process's limits: `RLIMIT_STACK`, and what `RLIMIT_AS` leaves.
    pub(crate) fn apply_stack_limit(&self, limits: &Limits) {
        let mut limit = limits.soft(resource::STACK);
        let total_limit = limits.soft(resource::AS);
        if total_limit != resource::INFINITY {
            self.refresh_stack();
            let record = self.record();
            let stack =
                record.vmas.iter().find(|vma| vma.flags.contains(VmaFlags::STACK)).map_or(0, Vma::len);
            let room = total_limit.saturating_sub(record.vmas.pages() * PAGE_SIZE);
            limit = limit.min(stack.saturating_add(room));
        }
        if self.stack_limit.swap(limit, Ordering::Relaxed) != limit {
            self.space.set_stack_limit(limit);
        }
    }

    /// How far a mapping that grows down may reach, in bytes.
    pub(super) fn stack_limit(&self) -> u64 {
        self.stack_limit.load(Ordering::Relaxed)
    }
}
