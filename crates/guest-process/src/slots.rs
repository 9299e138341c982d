//! Which slots of an address space are taken. A slot is where the request page and the scratch area of one
//! guest thread lie; processes that share memory share this.

use parking_lot::Mutex;

/// The slots of one address space.
#[derive(Debug)]
pub struct Slots {
    count: u32,
    /// One bit for each; as long as the highest taken one needs.
    taken: Mutex<Vec<u64>>,
}

impl Slots {
    /// `count` of them, all free but `slot`: what a fork child has.
    pub fn with(count: u32, slot: u32) -> Slots {
        let slots = Slots { count, taken: Mutex::default() };
        set(&mut slots.taken.lock(), slot, true);
        slots
    }

    /// Takes the lowest free one, or `None` if all are taken.
    pub fn take(&self) -> Option<u32> {
        let mut taken = self.taken.lock();
        let index = taken.iter().position(|word| *word != u64::MAX).unwrap_or(taken.len());
        let bits = taken.get(index).copied().unwrap_or(0);
        let slot = u32::try_from(index).ok()? * 64 + bits.trailing_ones();
        if slot >= self.count {
            return None;
        }
        set(&mut taken, slot, true);
        Some(slot)
    }

    /// Gives one back.
    pub fn give_back(&self, slot: u32) {
        set(&mut self.taken.lock(), slot, false);
    }
}

fn set(taken: &mut Vec<u64>, slot: u32, value: bool) {
    let (word, bit) = (slot as usize / 64, 1u64 << (slot % 64));
    if taken.len() <= word {
        taken.resize(word + 1, 0);
    }
    if let Some(word) = taken.get_mut(word) {
        *word = if value { *word | bit } else { *word & !bit };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOTS: u32 = 1000;

    #[test]
    fn lowest_free_first_and_none_past_the_end() {
        let slots = Slots::with(SLOTS, 1);
        assert_eq!(slots.take(), Some(0));
        assert_eq!(slots.take(), Some(2));
        slots.give_back(0);
        assert_eq!(slots.take(), Some(0));
        for expected in 3..SLOTS {
            assert_eq!(slots.take(), Some(expected));
        }
        assert_eq!(slots.take(), None);
        slots.give_back(SLOTS - 1);
        assert_eq!(slots.take(), Some(SLOTS - 1));
    }
}
