//! Inode numbers: one number space over the files of all layers.

use std::collections::HashMap;

use smallvec::SmallVec;
use sync::Mutex;
use sync::order::Leaf;

/// Bits for a layer's own numbers; the device's index stands above them (Linux: `xino`).
const OWN_BITS: u32 = 48;

/// Gives each (device, number) of the layers a number of its own, always the same.
#[derive(Default)]
pub(crate) struct Numbers {
    known: Mutex<Leaf, Known>,
}

#[derive(Default)]
struct Known {
    devices: SmallVec<[u64; 4]>,
    /// Numbers that do not fit beside an index.
    large: HashMap<(u64, u64), u64>,
}

impl Numbers {
    /// The number shown for the file `ino` on `dev`. Files of the first device keep theirs.
    pub(crate) fn shown(&self, dev: u64, ino: u64) -> u64 {
        let mut known = self.known.lock();
        let index = match known.devices.iter().position(|known| *known == dev) {
            Some(index) => index,
            None => {
                known.devices.push(dev);
                known.devices.len() - 1
            }
        };
        if ino >> OWN_BITS == 0 && index < 1 << 14 {
            return ((index as u64) << OWN_BITS) | ino;
        }
        let next = (1 << 63) | known.large.len() as u64;
        *known.large.entry((dev, ino)).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_different_devices_do_not_meet() {
        let numbers = Numbers::default();
        assert_eq!(numbers.shown(5, 77), 77);
        let other = numbers.shown(6, 77);
        let large = numbers.shown(5, 1 << 60);
        assert!(other != 77 && large != 77 && large != other);
        assert_eq!((numbers.shown(6, 77), numbers.shown(5, 1 << 60)), (other, large));
        assert_ne!(numbers.shown(6, 1 << 60), large);
    }
}
