//! The extended state (x87, SSE, AVX, …) as images of `XSAVE`'s standard format.
//!
//! # Safety
//! CPUID and XGETBV read the processor's own description.
#![allow(unsafe_code, reason = "xgetbv has no safe wrapper")]

use abi::Errno;

/// Where MXCSR is, and the mask of its valid bits.
const MXCSR: usize = 24;
const MXCSR_MASK: usize = 28;
/// Where the bytes begin that software may use.
const FEATURES: usize = 464;
/// Where the header is: which components there are, whether it is compacted, reserved words.
const HEADER: usize = 512;
const LEGACY: usize = HEADER + 64;
/// Components that a process has only by asking (AMX tiles): not used by guests yet.
const DYNAMIC: u64 = 3 << 17;

/// What of the extended state this processor and host have.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// XCR0 bits.
    pub(crate) features: u64,
    /// Bytes of an image.
    pub(crate) size: usize,
    /// The components behind the header. Kept, since virtual machines leave to their host at each CPUID.
    extended: Vec<Component>,
}

/// Where a component lies in an image.
#[derive(Clone, Debug)]
struct Component {
    bit: u32,
    offset: usize,
    size: usize,
}

impl State {
    /// Asks the processor. `None`: no XSAVE, or more state than a channel has room for.
    pub(crate) fn of_host() -> Option<State> {
        if std::arch::x86_64::__cpuid(1).ecx & 1 << 27 == 0 {
            return None;
        }
        // SAFETY: the host has enabled XSAVE, as just asked.
        let features = unsafe { xgetbv() } & !DYNAMIC;
        let component = |bit: u32| {
            let leaf = std::arch::x86_64::__cpuid_count(13, bit);
            Component { bit, offset: leaf.ebx as usize, size: leaf.eax as usize }
        };
        let extended: Vec<_> = (2..63).filter(|bit| features >> bit & 1 != 0).map(component).collect();
        let size = extended.iter().map(|one| one.offset + one.size).max().unwrap_or(0).max(LEGACY);
        (size as u64 <= crate::layout::XSTATE_SIZE).then_some(State { features, size, extended })
    }

    /// What a fresh process has.
    pub(crate) fn fresh(&self) -> Vec<u8> {
        let mut image = vec![0; self.size];
        self.put_defaults(&mut image, u64::MAX);
        put(&mut image, MXCSR, &0x1f80u32.to_le_bytes());
        self.put_features(&mut image);
        put(&mut image, MXCSR_MASK, &0xffffu32.to_le_bytes());
        image
    }

    /// Gives components that an image does not hold (`XSAVE` leaves them out when they are as after a reset)
    /// their values. MXCSR is always there.
    pub(crate) fn complete(&self, image: &mut [u8]) {
        self.put_features(image);
        let present = self.components(image);
        self.put_defaults(image, !present);
    }

    /// Tells the features in the bytes that software may use, as the host does for tracers (`user.h`:
    /// `USER_XSTATE_XCR0_WORD`); a signal frame has its own there.
    fn put_features(&self, image: &mut [u8]) {
        let mut words = [0; HEADER - FEATURES];
        put(&mut words, 0, &self.features.to_le_bytes());
        put(image, FEATURES, &words);
    }

    fn put_defaults(&self, image: &mut [u8], missing: u64) {
        if missing & 1 != 0 {
            put(image, 0, &[0; MXCSR]);
            put(image, 0, &0x37fu16.to_le_bytes());
            put(image, 32, &[0; 128]);
        }
        if missing & 2 != 0 {
            put(image, 160, &[0; 256]);
        }
        for component in self.extended.iter().filter(|one| missing >> one.bit & 1 != 0) {
            if let Some(place) = image.get_mut(component.offset..component.offset + component.size) {
                place.fill(0);
            }
        }
    }

    fn components(&self, image: &[u8]) -> u64 {
        image.get(HEADER..HEADER + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    /// Whether the processor takes it.
    ///
    /// # Errors
    /// `EINVAL`: a wrong size, unknown components, reserved bits.
    pub(crate) fn check(&self, image: &[u8]) -> Result<(), Errno> {
        let word = |at: usize| {
            image.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
        };
        let rest = image.get(HEADER + 8..LEGACY).unwrap_or(&[1]);
        let valid = image.len() == self.size
            && self.components(image) & !self.features == 0
            && rest.iter().all(|byte| *byte == 0)
            && word(MXCSR) & !0xffff == 0;
        if valid { Ok(()) } else { Err(Errno::EINVAL) }
    }
}

/// # Safety
/// Only where the host has enabled XSAVE.
#[target_feature(enable = "xsave")]
unsafe fn xgetbv() -> u64 {
    // SAFETY: as the caller says.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = image.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Whether user code may read and write FS and GS base itself (CR4.FSGSBASE, told by AT_HWCAP2).
pub(crate) fn has_fsgsbase() -> bool {
    const HWCAP2_FSGSBASE: libc::c_ulong = 2;
    // SAFETY: reads a word of the auxiliary vector.
    let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    capabilities & HWCAP2_FSGSBASE != 0
}
