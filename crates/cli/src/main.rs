//! The command `umlaut`: options, set-up, supervisor, console.
//!
//! `options.rs` says what can be asked for; `run.rs` puts a kernel together and starts it, `supervisor.rs` watches
//! over it, `host_user.rs` chooses its user, `cgroup.rs` bounds its memory, `confine` the kernel's own process, `root.rs` composes what guests see of the
//! host, `program.rs` what they start with, `user.rs` as whom; `check.rs` probes the host, `security.rs` what holds guests
//! in, `sites.rs` explains what is patched.

/// Prints a line on stderr, which may be closed or full: that is no reason to fail in another way.
macro_rules! complain {
    ($($text:tt)*) => { crate::complain_text(&format!("{}\n", format_args!($($text)*))) };
}

mod cgroup;
mod check;
mod confine;
mod console;
mod explain;
mod host_user;
mod memory_files;
mod options;
mod outside;
mod program;
mod root;
mod run;
mod security;
mod sites;
mod supervisor;
mod user;

use std::io::Write;

use crate::options::{Command, Options};

fn main() {
    let options = Options::read();
    init_log();
    let status = match options.command {
        Command::Run(run) => run::run(&run),
        Command::Stat(options) => outside::stat::stat(&options),
        Command::Ps { target } => outside::ps::ps(target.as_deref()),
        Command::ExplainSites { file, left } => sites::explain(&file, left),
        Command::Check { security: false } => check::check(),
        Command::Check { security: true } => security::check(),
        Command::Bench(bench) => std::env::current_exe()
            .map_err(anyhow::Error::from)
            .and_then(|umlaut| bench::run(&bench, &umlaut)),
    };
    let code = status.unwrap_or_else(|error| {
        complain!("umlaut: {error:#}");
        // What `env` and shells use for a command that could not be started.
        run::exit_code_of(&error)
    });
    std::process::exit(code);
}

/// See [`complain!`].
pub(crate) fn complain_text(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The kernel's own log goes to stderr: warnings, or what `UMLAUT_LOG` says.
fn init_log() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("UMLAUT_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    // A stderr that nobody reads any more must not make the kernel panic: it would, to report that.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .without_time()
        .init();
}
