//! A pipe's bytes: pages in the order they were written, as many as the pipe has slots.
//!
//! Linux's rules, which programs can see: each page takes a slot however little is in it; a write first adds the odd
//! bytes beyond whole pages to the last page if they fit there, then takes new pages; packets never share a page. Pages
//! that were written together are kept as one [`Segment`], so that they are copied out together.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a slot, and the most that is written as a whole (PIPE_BUF).
pub(super) const PAGE: usize = 4096;

/// Pages written together; page boundaries are at multiples of [`PAGE`] in `data`.
struct Segment {
    /// Shared with a reader that copies it out.
    data: Arc<Vec<u8>>,
    /// Bytes read already; less than there are.
    start: usize,
    packet: bool,
}

impl Segment {
    fn slots(&self) -> usize {
        self.data.len().div_ceil(PAGE) - self.start / PAGE
    }
}

/// The bytes of a pipe.
pub(super) struct Ring {
    segments: VecDeque<Segment>,
    slots: usize,
    used: usize,
    bytes: usize,
}

/// What a reader copies out before it takes it away.
pub(super) struct Piece {
    data: Arc<Vec<u8>>,
    range: Range<usize>,
    /// The rest of a packet goes with it.
    pub packet: bool,
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        self.data.get(self.range.clone()).unwrap_or(&[])
    }

    /// Of `copied` bytes, those up to the last end of a page: Linux takes a page whose copy faulted not at all.
    pub(super) fn whole_pages(&self, copied: usize) -> usize {
        if copied >= self.range.len() {
            return self.range.len();
        }
        let end = (self.range.start + copied) / PAGE * PAGE;
        end.saturating_sub(self.range.start)
    }
}

impl Ring {
    pub(super) fn new(slots: usize) -> Ring {
        Ring { segments: VecDeque::new(), slots, used: 0, bytes: 0 }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Bytes to read.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.used >= self.slots
    }

    pub(super) fn free_slots(&self) -> usize {
        self.slots.saturating_sub(self.used)
    }

    /// Changes the number of slots. `false`: more are in use.
    pub(super) fn resize(&mut self, slots: usize) -> bool {
        let fits = self.used <= slots;
        if fits {
            self.slots = slots;
        }
        fits
    }

    /// Whether a write of `total` bytes would begin by adding to the last page.
    pub(super) fn can_merge(&self, total: usize) -> bool {
        let odd = total % PAGE;
        let fits = |last: &Segment| !last.packet && (last.data.len() - 1) % PAGE + 1 + odd <= PAGE;
        odd > 0 && self.segments.back().is_some_and(fits)
    }

    /// Adds as many of `bytes` as there is room for; returns how many. `merge`: of how many bytes in all this is the
    /// beginning of the write, if it is. `more`: the write goes on behind `bytes`, so no page is left partly filled.
    pub(super) fn push(&mut self, bytes: Vec<u8>, merge: Option<usize>, more: bool, packet: bool) -> usize {
        let mut done = 0;
        if let Some(total) = merge.filter(|total| !packet && self.can_merge(*total)) {
            let odd = bytes.get(..total % PAGE);
            if let (Some(last), Some(odd)) = (self.segments.back_mut(), odd) {
                Arc::make_mut(&mut last.data).extend_from_slice(odd);
                done = odd.len();
            }
        }
        let rest = bytes.len() - done;
        let wanted = if more { rest / PAGE * PAGE } else { rest };
        let taken = wanted.min(self.free_slots() * PAGE);
        if packet {
            let packets = bytes.get(done..done + taken).unwrap_or(&[]).chunks(PAGE);
            self.segments.extend(packets.map(|packet| Segment {
                data: Arc::new(packet.to_vec()),
                start: 0,
                packet: true,
            }));
        } else if taken == bytes.len() && taken > 0 {
            self.segments.push_back(Segment { data: Arc::new(bytes), start: 0, packet });
        } else if let Some(part) = bytes.get(done..done + taken).filter(|part| !part.is_empty()) {
            self.segments.push_back(Segment { data: Arc::new(part.to_vec()), start: 0, packet });
        }
        self.used += taken.div_ceil(PAGE);
        self.bytes += done + taken;
        done + taken
    }

    /// The next bytes, at most `room`.
    pub(super) fn peek(&self, room: usize) -> Option<Piece> {
        let first = self.segments.front()?;
        let end = first.data.len().min(first.start.saturating_add(room));
        Some(Piece { data: first.data.clone(), range: first.start..end, packet: first.packet })
    }

    /// Takes `count` bytes away, which [`Ring::peek`] has shown; of a packet all.
    pub(super) fn consume(&mut self, count: usize) {
        let Some(first) = self.segments.front_mut() else { return };
        let before = first.slots();
        let count = if first.packet { first.data.len() - first.start } else { count };
        first.start += count;
        self.bytes -= count;
        if first.start >= first.data.len() {
            self.used -= before;
            self.segments.pop_front();
        } else {
            self.used -= before - first.slots();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(ring: &mut Ring, count: usize) -> usize {
        ring.push(vec![b'x'; count], Some(count), false, false)
    }

    fn take(ring: &mut Ring, room: usize) -> usize {
        let Some(piece) = ring.peek(room) else { return 0 };
        let count = piece.bytes().len();
        ring.consume(count);
        count
    }

    #[test]
    fn pages_fill_as_on_linux() {
        let mut ring = Ring::new(16);
        // 3000 bytes do not fit behind 3000: a page each.
        let writes = std::iter::repeat_with(|| push(&mut ring, 3000)).take_while(|n| *n == 3000).count();
        assert_eq!(writes, 16);
        // But small ones fit, even into a full ring.
        assert!(ring.is_full() && push(&mut ring, 1000) == 1000 && push(&mut ring, 97) == 0);
        assert_eq!(ring.len(), 16 * 3000 + 1000);
    }

    #[test]
    fn a_large_write_merges_its_odd_bytes_first() {
        let mut ring = Ring::new(3);
        assert_eq!(push(&mut ring, 100), 100);
        assert_eq!(push(&mut ring, 2 * PAGE + 10), 2 * PAGE + 10);
        assert_eq!(ring.free_slots(), 0);
        let mut ring = Ring::new(3);
        assert_eq!(push(&mut ring, PAGE - 5), PAGE - 5);
        // Ten do not fit: whole pages as far as there is room.
        assert_eq!(push(&mut ring, 2 * PAGE + 10), 2 * PAGE);
    }

    #[test]
    fn reading_frees_slots_page_by_page() {
        let mut ring = Ring::new(4);
        assert_eq!(push(&mut ring, 4 * PAGE), 4 * PAGE);
        assert_eq!(take(&mut ring, PAGE - 1), PAGE - 1);
        assert!(ring.is_full());
        assert_eq!(take(&mut ring, 1), 1);
        assert_eq!(ring.free_slots(), 1);
        assert_eq!(take(&mut ring, 100_000), 3 * PAGE);
        assert!(ring.is_empty() && (ring.used, ring.len()) == (0, 0));
    }

    #[test]
    fn a_faulting_copy_takes_whole_pages_only() {
        let mut ring = Ring::new(4);
        push(&mut ring, 3 * PAGE);
        take(&mut ring, 100);
        let piece = ring.peek(3 * PAGE).unwrap();
        assert_eq!(piece.whole_pages(PAGE - 101), 0);
        assert_eq!(piece.whole_pages(PAGE - 100), PAGE - 100);
        assert_eq!(piece.whole_pages(2 * PAGE), 2 * PAGE - 100);
    }

    #[test]
    fn packets_keep_their_borders() {
        let mut ring = Ring::new(4);
        assert_eq!(ring.push(vec![1; PAGE + 7], Some(PAGE + 7), false, true), PAGE + 7);
        assert_eq!(ring.push(vec![2; 3], Some(3), false, true), 3);
        assert_eq!(take(&mut ring, 10), 10);
        assert_eq!((take(&mut ring, 100), take(&mut ring, 100), take(&mut ring, 100)), (7, 3, 0));
        assert_eq!(ring.used, 0);
    }

    #[test]
    fn a_piece_outlives_writes_behind_it() {
        let mut ring = Ring::new(2);
        push(&mut ring, 10);
        let piece = ring.peek(100).unwrap();
        push(&mut ring, 5);
        assert_eq!((piece.bytes().len(), ring.len()), (10, 15));
        ring.consume(10);
        assert_eq!(take(&mut ring, 100), 5);
    }
}
