//! Programs for the tests that no package of the distribution brings: static binaries of Go, Rust and Rust on musl.
//!
//! They are kept in `target/extra`. A test that `needs:` one by its name finds it in its directory.
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Plan;

/// Name, npm package (a registry package that holds a Linux binary), path of the binary in it.
const FETCHED: [(&str, &str, &str); 2] = [
    ("esbuild", "@esbuild/linux-x64@0.28.2", "package/bin/esbuild"), // Go
    ("turbo", "turbo-linux-64@2.8.17", "turbo-linux-x64/bin/turbo"), // Rust on musl, static-pie
];

/// Makes what can be made; says what cannot, so that its tests are skipped for a reason that was told.
pub(crate) fn prepare(plan: &Plan) {
    let dir = plan.workspace.join("target/extra");
    if let Err(error) = std::fs::create_dir_all(&dir) {
        return plan.report.line(&format!("{}: {error}", dir.display()));
    }
    for (name, package, binary) in FETCHED {
        if !dir.join(name).exists()
            && let Err(error) = fetch(&dir, name, package, binary)
        {
            plan.report.line(&format!("missing: {name} (npm package {package}): {error:#}"));
        }
    }
    if let Err(error) =
        compile(&plan.workspace.join("tests/programs/lib/static.rs"), &dir.join("rust-static"))
    {
        plan.report.line(&format!("missing: rust-static: {error:#}"));
    }
}

fn fetch(dir: &Path, name: &str, package: &str, binary: &str) -> Result<()> {
    let scratch = tempfile::tempdir_in(dir)?;
    let run = |command: &mut Command| -> Result<String> {
        let output = command.current_dir(scratch.path()).output().with_context(|| format!("{command:?}"))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("{command:?}: {}", text.lines().next().unwrap_or(""));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let archive = run(Command::new("timeout").args(["120", "npm", "pack", "--silent", package]))?;
    run(Command::new("tar").args(["-xzf", archive.lines().last().unwrap_or(""), binary]))?;
    Ok(std::fs::rename(scratch.path().join(binary), dir.join(name))?)
}

/// Compiles a Rust program to a static binary, with the toolchain that builds umlaut.
fn compile(source: &Path, binary: &Path) -> Result<()> {
    let written = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
    if written(binary) > written(source) {
        return Ok(());
    }
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command
        .args(["--edition", "2024", "-O", "-C", "target-feature=+crt-static", "-o"])
        .args([binary, source]);
    let output = command.output().context("rustc")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
