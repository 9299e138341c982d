//! The cache of directory descriptors: a bounded number of `O_PATH` descriptors, so that a look-up is one host
//! call. Each is kept in its own node; here is only the order in which they are given up.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use rustix::fd::OwnedFd;
use sync::Mutex;
use sync::order::FileSystem as FileSystemLevel;
use vfs::Inode;

use crate::node::HostNode;
use crate::stat::FileId;

/// Most descriptors kept for one file system.
const MOST: usize = 512;

/// An open host directory (`O_PATH`), its identity checked.
pub(crate) struct DirFd {
    pub(crate) fd: OwnedFd,
    /// The mount it lies in.
    pub(crate) mount: u64,
    pub(crate) id: FileId,
}

/// Which nodes hold a descriptor, in the order in which they are asked to give it up (second chance).
#[derive(Default)]
pub(crate) struct Descriptors {
    holders: Mutex<FileSystemLevel, VecDeque<Weak<Inode>>>,
}

impl Descriptors {
    /// Notes that `inode` now holds a descriptor; others give theirs up if there are too many.
    pub(crate) fn note(&self, inode: &Arc<Inode>) {
        // What is looked at is let go after the lock, since that may close files.
        let mut looked_at: Vec<Arc<Inode>> = Vec::new();
        let mut given_up = Vec::new();
        let mut holders = self.holders.lock();
        holders.push_back(Arc::downgrade(inode));
        // Each is passed over once at most, so this ends.
        let mut chances = holders.len();
        while holders.len() > MOST {
            let Some(oldest) = holders.pop_front() else { break };
            let Some(inode) = oldest.upgrade() else { continue };
            if let Some(node) = inode.downcast::<HostNode>() {
                if chances > 0 && node.was_used() {
                    chances -= 1;
                    holders.push_back(oldest);
                } else {
                    given_up.push(node.give_up_dir_fd());
                }
            }
            looked_at.push(inode);
        }
        drop(holders);
    }

    /// Closes half of them: the host has no descriptors left.
    pub(crate) fn shrink(&self) {
        let half: Vec<_> = {
            let mut holders = self.holders.lock();
            let count = holders.len().div_ceil(2);
            holders.drain(..count).collect()
        };
        for inode in half.iter().filter_map(Weak::upgrade) {
            if let Some(node) = inode.downcast::<HostNode>() {
                drop(node.give_up_dir_fd());
            }
        }
    }
}
