//! Compiles what is embedded: the program that is measured (`crates/bench-guest`) and the library that User-Mode Linux
//! needs on some CPUs (`crates/bench-uml-shim`).
//!
//! By rustc alone: they use nothing but std, and cargo cannot build one crate of a workspace with other flags.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let guest = Path::new("../bench-guest/src");
    println!("cargo::rerun-if-changed={}", guest.display());
    // Static, so that one file runs natively, inside, and under rivals. Some hosts have no static C library.
    let made = ["target-feature=+crt-static", "target-feature=-crt-static"].iter().any(|linkage| {
        compile("bench_guest", &guest.join("main.rs"), &out.join("bench-guest"), &["-C", linkage])
    });
    assert!(made, "bench-guest does not compile");
    let shim = Path::new("../bench-uml-shim/src");
    println!("cargo::rerun-if-changed={}", shim.display());
    let library = ["--crate-type", "cdylib", "-C", "lto"];
    let made = compile("bench_uml_shim", &shim.join("lib.rs"), &out.join("bench-uml-shim.so"), &library);
    assert!(made, "bench-uml-shim does not compile");
}

/// Whether that went well; where not, what rustc said is shown.
fn compile(name: &str, from: &Path, to: &Path, flags: &[&str]) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--crate-name", name, "--cap-lints", "allow"]);
    command.args(["-C", "opt-level=2", "-C", "panic=abort", "-C", "strip=symbols"]).args(flags);
    let output = command.arg(from).arg("-o").arg(to).output().expect("rustc runs");
    if !output.status.success() {
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            println!("cargo::warning={line}");
        }
    }
    output.status.success()
}
