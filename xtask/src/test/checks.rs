//! Checks of the sources before any test runs: format, clippy, house rules, dependencies.
use std::process::Command;

use super::Plan;

/// Runs them; each is one pass, failure or skip.
pub(crate) fn run(plan: &Plan) {
    plan.report.stage("checks");
    cargo(
        plan,
        "format",
        &["fmt", "--version"],
        "rustup component add rustfmt",
        &["fmt", "--all", "--check"],
    );
    let clippy = ["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"];
    cargo(plan, "clippy", &["clippy", "--version"], "rustup component add clippy", &clippy);
    if plan.full && plan.installs {
        install_deny(plan);
    }
    // Licences, bans and sources only: the advisory database would be fetched from the network.
    let deny = ["deny", "--locked", "check", "licenses", "bans", "sources"];
    cargo(plan, "cargo-deny", &["deny", "--version"], "cargo install cargo-deny", &deny);
    match crate::tidy::check(&plan.workspace) {
        Ok(complaints) => {
            plan.report.passed(crate::tidy::rules().saturating_sub(complaints.len()));
            complaints.into_iter().for_each(|(rule, text)| plan.report.failed(format!("tidy {rule}"), text));
        }
        Err(error) => plan.report.failed("tidy", format!("{error:#}")),
    }
}

/// Builds cargo-deny where it is not; what stays missing is counted by the check itself.
fn install_deny(plan: &Plan) {
    let run = |words: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo).args(words).current_dir(&plan.workspace).output()
    };
    if run(&["deny", "--version"]).is_ok_and(|output| output.status.success()) {
        return;
    }
    plan.report.line("installing cargo-deny, which takes some minutes");
    match run(&["install", "--quiet", "--locked", "cargo-deny"]) {
        Ok(output) if output.status.success() => {}
        Ok(output) => plan.report.line(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => plan.report.line(&format!("cargo install: {error}")),
    }
}

fn cargo(plan: &Plan, name: &str, probe: &[&str], install: &str, words: &[&str]) {
    let cargo = |words: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Command::new(cargo).args(words).current_dir(&plan.workspace).env("CARGO_TERM_COLOR", "never").output()
    };
    if !cargo(probe).is_ok_and(|output| output.status.success()) {
        plan.report.line(&format!("missing: {name}: not checked; `{install}` brings it"));
        return plan.report.skipped(format!("{name} is not installed ({install})"), 1);
    }
    match cargo(words) {
        Ok(output) if output.status.success() => plan.report.passed(1),
        Ok(output) => {
            let text = [&output.stdout[..], &output.stderr[..]].map(String::from_utf8_lossy).concat();
            plan.report.failed(format!("cargo {}", words.join(" ")), text);
        }
        Err(error) => plan.report.failed(name, error.to_string()),
    }
}
