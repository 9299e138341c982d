//! `cargo xtask docs`: documents that are generated from the code, and the check that they are up to date.
//!
//! A document is a path and the cargo words that print it. Its text is written by whoever owns the
//! facts, so that a fact and its document change in one commit.
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tidy::Tree;

/// Path of each generated document and the words for `cargo run` that print it.
const DOCUMENTS: &[(&str, &[&str])] = &[
    ("docs/compat.md", &["--package", "kernel", "--example", "compat"]),
    ("docs/host-calls.md", &["--package", "cli", "--example", "host_calls"]),
];

/// Writes every document anew.
///
/// # Errors
/// If what prints it cannot be built, or a document not be written.
pub(crate) fn write(root: &Path) -> Result<bool> {
    for (path, words) in DOCUMENTS {
        std::fs::write(root.join(path), generate(root, words)?).with_context(|| (*path).to_owned())?;
        println!("{path}");
    }
    println!("docs: {} generated", DOCUMENTS.len());
    Ok(true)
}

/// The rule `generated-docs`: documents that differ from what the code says.
pub(crate) fn stale(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for (path, words) in DOCUMENTS {
        let written = tree.files.iter().find(|file| file.path == *path).map(|file| file.text.as_str());
        match generate(&tree.root, words) {
            Ok(text) if Some(text.as_str()) == written => {}
            Ok(_) => found.push(format!("{path}: out of date")),
            Err(error) => found.push(format!("{path}: {error:#}")),
        }
    }
    found
}

fn generate(root: &Path, words: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["run", "--quiet"])
        .args(words)
        .current_dir(root)
        .output()
        .context("cargo run")?;
    if !output.status.success() {
        bail!("cargo run {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}
