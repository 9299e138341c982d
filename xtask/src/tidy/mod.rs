//! `cargo xtask tidy`: the rules of the house as code, each with a name.
//!
//! A rule is a function from the [`Tree`] to complaints. What only may shrink (unsafe blocks, panics) is in `ratchet`,
//! whose counts are kept in `xtask/ratchet.toml`.
mod arrows;
mod ratchet;
mod source;
mod text;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::Args;

#[derive(Args)]
pub(crate) struct Options {
    /// Write today's counts of unsafe code and panics into xtask/ratchet.toml
    #[arg(long)]
    bless: bool,
}

/// A file under version control (or about to be), with its text.
pub(crate) struct File {
    /// Relative to the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The directory name of the crate that a Rust source belongs to: `kernel`, `xtask`.
    pub(crate) fn krate(&self) -> Option<&str> {
        let path = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        let (krate, rest) = path.split_once('/')?;
        (rest.starts_with("src/") && self.has_extension("rs")).then_some(krate)
    }

    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|own| own == extension)
    }
}

/// All that is checked.
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) files: Vec<File>,
}

impl Tree {
    fn read(root: &Path) -> Result<Self> {
        let git = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git ls-files")?;
        if !git.status.success() {
            bail!("git ls-files: {}", String::from_utf8_lossy(&git.stderr).trim());
        }
        let mut files = Vec::new();
        for path in String::from_utf8_lossy(&git.stdout).split('\0').filter(|path| !path.is_empty()) {
            // A file that is deleted but not yet committed, a link to nowhere or a binary has no text to check.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push(File { path: path.to_owned(), text });
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { root: root.to_owned(), files })
    }

    /// The Rust sources of our crates.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &File)> {
        self.files.iter().filter_map(|file| Some((file.krate()?, file)))
    }
}

type Rule = fn(&Tree) -> Vec<String>;

/// Every rule: name, what it asks for, check.
const RULES: &[(&str, &str, Rule)] = &[
    ("small-files", "find the seam and split the file", text::small_files),
    ("module-heads", "begin a Rust module with `//!`: purpose, main types, neighbours", text::module_heads),
    ("no-later-marks", "finish it, or say in a sentence what is missing and why", text::no_later_marks),
    ("no-places", "name nothing of the machine or the tracker that the work was done on", text::no_places),
    ("short-architecture", "keep ARCHITECTURE.md readable in one sitting", text::short_architecture),
    ("arrows-down", "depend downwards only; the table is in xtask/src/tidy/arrows.rs", arrows::arrows_down),
    ("unsafe-ratchet", "unsafe code only shrinks; see xtask/ratchet.toml", ratchet::unsafe_code),
    ("panic-ratchet", "what a guest can reach returns errors; see xtask/ratchet.toml", ratchet::panics),
    ("generated-docs", "run `cargo xtask docs`", crate::docs::stale),
];

/// Checks every rule; complaints as `(rule, text)`.
///
/// # Errors
/// If the files cannot be listed.
pub(crate) fn check(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let tree = Tree::read(root)?;
    let mut complaints = Vec::new();
    for (name, advice, rule) in RULES {
        complaints.extend(rule(&tree).into_iter().map(|text| (*name, format!("{text}: {advice}"))));
    }
    Ok(complaints)
}

/// How many rules [`check`] checks.
pub(crate) fn rules() -> usize {
    RULES.len()
}

/// The command. True if there is nothing to complain about.
///
/// # Errors
/// If the files cannot be read or the counts not be written.
pub(crate) fn run(root: &Path, options: &Options) -> Result<bool> {
    if options.bless {
        ratchet::bless(&Tree::read(root)?)?;
    }
    let complaints = check(root)?;
    for (rule, text) in &complaints {
        println!("{rule}: {text}");
    }
    println!("tidy: {} rules, {} complaints", rules(), complaints.len());
    Ok(complaints.is_empty())
}
