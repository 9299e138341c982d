//! Counts that only may fall: `unsafe` in each crate, and ways to panic in the crates that a guest can reach.
//!
//! The counts allowed are in `xtask/ratchet.toml`. A count below its entry is a complaint too, so that the file is
//! lowered with it (`cargo xtask tidy --bless`) and the gain is kept.
use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::Tree;
use super::source::Code;

const FILE: &str = "xtask/ratchet.toml";

/// Crates whose code runs on what guests say.
const GUEST_FACING: [&str; 4] = ["kernel", "vfs", "tty", "abi"];

type Counts = BTreeMap<String, usize>;

pub(super) fn unsafe_code(tree: &Tree) -> Vec<String> {
    compare(tree, "unsafe", &count_unsafe(tree))
}

pub(super) fn panics(tree: &Tree) -> Vec<String> {
    compare(tree, "panics", &count_panics(tree))
}

/// Writes today's counts.
///
/// # Errors
/// If the file cannot be written.
pub(super) fn bless(tree: &Tree) -> Result<()> {
    let mut text = String::from(
        "# How much of this each crate has; the numbers only may fall. `cargo xtask tidy --bless` writes them.\n",
    );
    for (title, explanation, counts) in [
        ("unsafe", "uses of the word `unsafe` in code", count_unsafe(tree)),
        (
            "panics",
            "unwrap, expect, panic!, unreachable!, assert! and indexing outside of tests",
            count_panics(tree),
        ),
    ] {
        text += &format!("\n# {explanation}\n[{title}]\n");
        counts.iter().for_each(|(krate, count)| text += &format!("{krate} = {count}\n"));
    }
    std::fs::write(tree.root.join(FILE), text).context(FILE)
}

fn count_unsafe(tree: &Tree) -> Counts {
    count(tree, |_| true, |code| Code::count_word(code.text(), "unsafe"))
}

fn count_panics(tree: &Tree) -> Counts {
    let guest_facing = |krate: &str| GUEST_FACING.contains(&krate) || krate.starts_with("fs-");
    count(tree, guest_facing, |code| ways_to_panic(&code.without_tests()))
}

fn count(tree: &Tree, wanted: impl Fn(&str) -> bool, of: impl Fn(&Code) -> usize) -> Counts {
    let mut counts = Counts::new();
    for (krate, file) in tree.sources().filter(|(krate, _)| wanted(krate)) {
        let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
        let found = if is_test { 0 } else { of(&Code::of(&file.text)) };
        *counts.entry(krate.to_owned()).or_default() += found;
    }
    counts.retain(|_, count| *count > 0);
    counts
}

fn ways_to_panic(code: &str) -> usize {
    let calls = [".unwrap()", ".expect(", ".unwrap_err()", ".expect_err("];
    let macros = ["panic!", "unreachable!", "unimplemented!", "assert!", "assert_eq!", "assert_ne!"];
    let calls: usize = calls.iter().map(|call| code.matches(call).count()).sum();
    let macros: usize = macros.iter().map(|name| word_starts(code, name)).sum();
    calls + macros + indexing(code)
}

/// `assert!` but not `debug_assert!`, which release builds leave out.
fn word_starts(code: &str, name: &str) -> usize {
    let starts = |at: usize| !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    code.match_indices(name).filter(|(at, _)| starts(*at)).count()
}

/// `a[i]`, `f()[i]`, `a[i][j]`; not `#[…]`, `vec![…]`, types, patterns, or the harmless `a[..]`.
fn indexing(code: &str) -> usize {
    let follows =
        |at: usize| code[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | ')' | ']' | '?'));
    code.match_indices('[').filter(|(at, _)| follows(*at) && !code[at + 1..].starts_with("..]")).count()
}

fn compare(tree: &Tree, title: &str, counts: &Counts) -> Vec<String> {
    let text = tree.files.iter().find(|file| file.path == FILE).map_or("", |file| &file.text);
    let allowed = read(text, title);
    let names: std::collections::BTreeSet<&String> = counts.keys().chain(allowed.keys()).collect();
    let mut found = Vec::new();
    for krate in names {
        let (now, most) = (counts.get(krate).unwrap_or(&0), allowed.get(krate).unwrap_or(&0));
        match now.cmp(most) {
            std::cmp::Ordering::Greater => found.push(format!("{krate}: {now} × {title}, {most} at most")),
            std::cmp::Ordering::Less => {
                found
                    .push(format!("{krate}: {now} × {title}, fewer than {most}; keep the gain with --bless"));
            }
            std::cmp::Ordering::Equal => {}
        }
    }
    found
}

/// One table of the file: `name = number` lines.
fn read(text: &str, title: &str) -> Counts {
    let mut inside = false;
    let mut counts = Counts::new();
    for line in text.lines() {
        if line.starts_with('[') {
            inside = line == format!("[{title}]");
        } else if let Some((name, number)) = line.split_once('=').filter(|_| inside) {
            counts.insert(name.trim().to_owned(), number.trim().parse().unwrap_or(0));
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    #[test]
    fn ways_to_panic_are_counted() {
        let code = "#[a] x[0] f()[1] vec![2] &[u8] [3; 4] a[..] let [p] = q; y.unwrap() z.unwrap_or(1) \
                    panic!() debug_assert!(a) assert!(b) a?[5]";
        assert_eq!(ways_to_panic(code), 6);
    }

    #[test]
    fn a_rise_and_an_unrecorded_fall_are_complaints() {
        let tree = |code: &str, most: &str| Tree {
            root: "/".into(),
            files: vec![
                File { path: "crates/kernel/src/a.rs".into(), text: code.into() },
                File {
                    path: FILE.into(),
                    text: format!("[unsafe]\nkernel = {most}\n[panics]\nkernel = 7\n"),
                },
            ],
        };
        assert!(unsafe_code(&tree("unsafe {} // unsafe", "1")).is_empty());
        assert_eq!(unsafe_code(&tree("unsafe {} unsafe {}", "1")).len(), 1);
        assert_eq!(unsafe_code(&tree("", "1")).len(), 1);
    }
}
