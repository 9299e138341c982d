//! Every target on what fuzzers found before, and for some seconds on input from fixed seeds.
//!
//! `UMLAUT_FUZZ_SECONDS` is how long, `UMLAUT_FUZZ_SEED` where to begin, `UMLAUT_FUZZ_ONLY` a file in place of the corpus. What fails is written to a file, to be run again
//! by `cargo xtask fuzz TARGET FILE`, and kept in `fuzz/corpus`.
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fuzzing::{TARGETS, Target};

/// Descriptors and threads are counted: one target at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Longest input.
const LONGEST: u64 = 2048;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Numbers that look random (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).flat_map(|_| self.next().to_le_bytes().into_iter().take(1)).collect()
    }
}

/// Of a seed: bytes, or what is in the corpus, changed.
fn input(seed: u64, corpus: &[(PathBuf, Vec<u8>)]) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let length = 1 + numbers.next() % LONGEST;
    let known = usize::try_from(numbers.next()).unwrap_or(0).checked_rem(corpus.len() * 2);
    let Some((_, known)) = known.and_then(|index| corpus.get(index)) else { return numbers.bytes(length) };
    let mut bytes = known.clone();
    for _ in 0..1 + numbers.next() % 8 {
        let at = usize::try_from(numbers.next()).unwrap_or(0).checked_rem(bytes.len()).unwrap_or(0);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = numbers.next().to_le_bytes()[0];
        }
    }
    bytes
}

fn corpus(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    if let Some(only) = std::env::var_os("UMLAUT_FUZZ_ONLY") {
        return vec![(only.clone().into(), std::fs::read(only).unwrap())];
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let entries = std::fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

fn attempt((name, run): Target, what: &str, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| run(bytes))).is_err() {
        let path = std::env::temp_dir().join(format!("umlaut-fuzz-{name}-{}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        panic!("{what} fails; it is in {}: run `cargo xtask fuzz {name} {0}`", path.display());
    }
}

fn check(name: &str) {
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let target = *TARGETS.iter().find(|(known, _)| *known == name).unwrap();
    let corpus = corpus(name);
    for (path, bytes) in &corpus {
        attempt(target, &path.display().to_string(), bytes);
    }
    let end = Instant::now() + Duration::from_secs(number("UMLAUT_FUZZ_SECONDS", 3));
    let mut seed = number("UMLAUT_FUZZ_SEED", 1);
    while Instant::now() < end {
        attempt(target, &format!("seed {seed}"), &input(seed, &corpus));
        seed += 1;
    }
    println!("{name}: {} of the corpus, seeds to {seed}", corpus.len());
}

#[test]
fn channel() {
    check("channel");
}

#[test]
fn decode() {
    check("decode");
}

#[test]
fn dispatch() {
    check("dispatch");
}

#[test]
fn elf() {
    check("elf");
}

#[test]
fn paths() {
    check("paths");
}

#[test]
fn sigframe() {
    check("sigframe");
}
