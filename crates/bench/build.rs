//! Compiles the program that is measured (`crates/bench-guest`) and has it embedded.
//!
//! By rustc alone: it uses nothing but std, and cargo cannot build one crate of a workspace with other flags. Static,
//! so that one file runs natively, inside, and under rivals; where the host has no static C library, dynamic.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let sources = PathBuf::from("../bench-guest/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("bench-guest");
    let compile = |linkage: &str| {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(rustc);
        command.args(["--edition", "2024", "--crate-name", "bench_guest", "--cap-lints", "allow"]);
        command.args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols", "-C", linkage]);
        command.arg(sources.join("main.rs")).arg("-o").arg(&out);
        command.output().expect("rustc runs")
    };
    if compile("target-feature=+crt-static").status.success() {
        return;
    }
    println!("cargo::warning=no static C library: the program for `umlaut bench` is dynamic");
    let output = compile("target-feature=-crt-static");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
