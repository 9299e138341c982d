//! Epolls that watch epolls: no circles, no deep or wide towers (Linux: `ep_loop_check`, `reverse_path_check`).

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use abi::Errno;
use sync::SysResult;
use vfs::FileDescription;

use super::{Epoll, EpollFile};

/// Links from the outermost epoll to the innermost (Linux: `EP_MAX_NESTS`).
const MAX_LINKS: usize = 4;
/// How many ways may lead up from an epoll, by their length less one: each wake-up goes all of them.
const MAX_WAYS: [usize; MAX_LINKS] = [500, 100, 50, 10];

impl Epoll {
    /// Whether this epoll may watch `inner`: `ELOOP` if that leads back here or too deep, `EINVAL` if too many would
    /// be woken.
    pub(super) fn check_nesting(self: &Arc<Self>, inner: &Arc<Epoll>) -> SysResult<()> {
        let below = inner.depth_below(self, 0, &mut HashMap::new()).ok_or(Errno::ELOOP)?;
        if below + 1 + self.depth_above(0) > MAX_LINKS {
            return Err(Errno::ELOOP.into());
        }
        let mut ways = [0; MAX_LINKS];
        if let Some(direct) = ways.first_mut() {
            *direct = 1 + inner.parents.lock().len();
        }
        let fits = self.count_ways(1, &mut ways)
            && inner.parents().iter().all(|parent| parent.count_ways(1, &mut ways))
            && ways.iter().zip(MAX_WAYS).all(|(ways, most)| *ways <= most);
        if fits { Ok(()) } else { Err(Errno::EINVAL.into()) }
    }

    /// Links below this epoll; `None`: `outer` is among them, or they are too many. `known` keeps what was found.
    fn depth_below(
        self: &Arc<Self>,
        outer: &Arc<Epoll>,
        level: usize,
        known: &mut HashMap<*const Epoll, usize>,
    ) -> Option<usize> {
        if Arc::ptr_eq(self, outer) || level > MAX_LINKS {
            return None;
        }
        if let Some(depth) = known.get(&Arc::as_ptr(self)) {
            return Some(*depth);
        }
        let mut depth = 0;
        for file in self.nested_files() {
            if let Some(inner) = file.downcast::<EpollFile>() {
                depth = depth.max(1 + inner.epoll.depth_below(outer, level + 1, known)?);
            }
        }
        known.insert(Arc::as_ptr(self), depth);
        Some(depth)
    }

    fn depth_above(&self, level: usize) -> usize {
        if level > MAX_LINKS {
            return level;
        }
        self.parents().iter().map(|parent| 1 + parent.depth_above(level + 1)).max().unwrap_or(0)
    }

    /// Counts the ways up from here, which is `length` links up already; `false` as soon as they are too many.
    fn count_ways(&self, length: usize, ways: &mut [usize; MAX_LINKS]) -> bool {
        let parents = self.parents();
        let (Some(count), Some(most)) = (ways.get_mut(length), MAX_WAYS.get(length)) else {
            return parents.is_empty();
        };
        *count += parents.len();
        *count <= *most && parents.iter().all(|parent| parent.count_ways(length + 1, ways))
    }

    fn parents(&self) -> Vec<Arc<Epoll>> {
        self.parents.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// The open files of the epolls that it watches.
    fn nested_files(&self) -> Vec<Arc<FileDescription>> {
        let nested: Vec<_> =
            self.items.lock().values().filter(|item| item.nested).map(|item| item.file.clone()).collect();
        // Not under the lock: the last reference may be ours, and its end takes items out.
        nested.iter().filter_map(Weak::upgrade).collect()
    }
}
