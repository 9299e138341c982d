//! The command line.

use std::io::Write;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use kernel::stats::CountersMode;

use crate::host_user::HostUser;
use crate::outside::stat::StatOptions;

/// Runs Linux programs under a kernel that is an ordinary process: no root, no KVM, no set-up.
#[derive(Debug, Parser)]
#[command(name = "umlaut", version, propagate_version = true)]
#[command(after_help = "Examples:
  umlaut run sh                        a shell; nothing it does changes the host
  umlaut run gcc hello.c -o hello      any command of the host, on a throwaway view of it
  umlaut run --root debian/ --rw bash  a distribution unpacked in a directory, changed for good
  umlaut run --trace=file ls           with the system calls that name files
  umlaut stat --interval 1             what a running kernel does, a line a second
  umlaut check                         what this host offers
  umlaut bench --quick                 what it costs, beside native")]
pub(crate) struct Options {
    #[command(subcommand)]
    pub command: Command,
}

impl Options {
    /// Reads the command line; ends the process with a message where it cannot be understood.
    pub(crate) fn read() -> Self {
        // Status 125, as of all failures of umlaut's own: programs end with 2 themselves.
        let options = Self::try_parse().unwrap_or_else(|error| end(&error));
        // PROGRAM's own arguments may begin with a hyphen, and with them (to clap) PROGRAM itself: an unknown option.
        if let Command::Run(run) = &options.command
            && let Some(first) =
                run.program.first().filter(|first| first.as_encoded_bytes().starts_with(b"-"))
        {
            let mut command = Self::command();
            command.build();
            let run = command.find_subcommand("run").unwrap_or(&command);
            let mut error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(run);
            let name = ContextValue::String(first.to_string_lossy().into_owned());
            error.insert(ContextKind::InvalidArg, name);
            let usage = run.clone().render_usage();
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
            end(&error);
        }
        options
    }
}

/// Prints what is wrong with the command line, in the manner of all messages, or the help that was asked for.
fn end(error: &clap::Error) -> ! {
    if error.use_stderr() {
        let text = error.render().to_string();
        complain!("umlaut: {}", text.strip_prefix("error: ").unwrap_or(&text).trim_end());
        std::process::exit(125);
    }
    let printed = error.print().and_then(|()| std::io::stdout().flush());
    std::process::exit(if printed.is_err() { 125 } else { 0 });
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program
    Run(Box<RunOptions>),
    /// Show what a running kernel does, live, in the manner of vmstat
    Stat(StatOptions),
    /// List the running kernels, or the processes inside one
    Ps {
        /// The kernel whose processes are wanted: its pid or its program's name
        target: Option<String>,
    },
    /// Probe the host: what it offers, and which platform `--platform auto` takes
    Check {
        /// Show what holds guests in, on each platform, and what is missing here
        #[arg(long)]
        security: bool,
    },
    /// List the system-call sites of a program or library, and how the platform stub treats each
    ExplainSites {
        /// The program or library
        file: PathBuf,
        /// Only those that are left to SIGSYS
        #[arg(long)]
        left: bool,
    },
    /// Measure: workloads natively and inside, side by side
    Bench(Box<bench::Options>),
}

/// How guest code is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlatformName {
    /// The best that this host allows
    Auto,
    /// PTRACE_SYSCALL: two stops a system call; works wherever ptrace does
    Ptrace,
    /// PTRACE_SYSEMU: one stop a system call
    Sysemu,
    /// Code of ours in the guest's process, entered by seccomp: no ptrace, fewest host context switches
    Stub,
}

#[derive(Debug, Args)]
#[command(trailing_var_arg = true)]
#[command(
    long_about = "Runs PROGRAM under a fresh kernel and ends with its status (128 + n if signal n ended it).

Without --root the program sees the system part of the host's / (/usr, /bin, /etc, … without secrets) and the
current directory, below a throwaway layer: it may change everything, and nothing on the host changes."
)]
pub(crate) struct RunOptions {
    /// The program, found on the guest's PATH, and its arguments
    #[arg(required = true, value_name = "PROGRAM [ARGS]", allow_hyphen_values = true)]
    pub program: Vec<std::ffi::OsString>,

    /// Use this directory as the root (read below a throwaway layer, unless --ro or --rw)
    #[arg(long, value_name = "DIR", help_heading = "File system")]
    pub root: Option<PathBuf>,
    /// The root is read-only; without --root, so is the current directory, and --home's
    #[arg(long, conflicts_with = "rw", help_heading = "File system")]
    pub ro: bool,
    /// Changes to the root are made on the host (needs --root)
    #[arg(long, requires = "root", help_heading = "File system")]
    pub rw: bool,
    /// Show a host file or directory inside, writable unless `:ro` follows
    #[arg(long, value_name = "SRC:DST[:ro]", help_heading = "File system")]
    pub bind: Vec<String>,
    /// An empty file system in memory
    #[arg(long, value_name = "DST", value_parser = parse_place, help_heading = "File system")]
    pub tmpfs: Vec<String>,
    /// Show the home directory too (`ro`: below the throwaway layer). It may hold secrets
    #[arg(long, value_name = "ro", value_parser = ["ro"], conflicts_with = "root", help_heading = "File system")]
    pub home: Option<String>,
    /// Show all of the host's / below the throwaway layer, secrets included
    #[arg(long, conflicts_with = "root", help_heading = "File system")]
    pub host_all: bool,
    /// Start in this directory
    #[arg(long, value_name = "DIR", help_heading = "File system")]
    pub workdir: Option<String>,

    /// Set a variable of the environment
    #[arg(long, value_name = "K=V", value_parser = parse_variable, help_heading = "Program")]
    pub env: Vec<String>,
    /// Pass the whole environment on, PATH, HOME and USER too, not only TERM, LANG, LC_ALL and TZ
    #[arg(long, help_heading = "Program")]
    pub env_host: bool,
    /// Run as this user: numbers, or names of the root's /etc/passwd and /etc/group
    #[arg(long, value_name = "USER[:GROUP]", default_value = "0", help_heading = "Program")]
    pub user: String,
    /// The name of the machine
    #[arg(long, default_value = "umlaut", value_parser = parse_hostname, help_heading = "Program")]
    pub hostname: String,
    /// Memory that all guests may use together, such as 512M or 2G
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = parse_size,
        help_heading = "Program",
        long_help = "Memory that all guests may use together, such as 512M or 2G: what programs see as the machine's. \
            Beyond it the largest process is killed, as by Linux's out-of-memory killer. A memory cgroup enforces it \
            where umlaut may make one (see --cgroup); everywhere a thread watches what guests and the kernel's own \
            file systems hold, and without a cgroup each process's data is bounded too (RLIMIT_DATA, four times \
            SIZE). `umlaut check` says which it will be. Without --memory guests may use what the host has; each \
            file system in memory holds at most half of it"
    )]
    pub memory: Option<u64>,
    /// The cgroup below which --memory makes its own (by default the caller's, if it is delegated)
    #[arg(long, value_name = "DIR", requires = "memory", help_heading = "Program")]
    pub cgroup: Option<PathBuf>,
    /// The program is pid 1 itself, not a child of the kernel's init
    #[arg(long, help_heading = "Program")]
    pub as_pid_1: bool,

    /// How guest code is run
    #[arg(long, value_enum, default_value = "auto", help_heading = "Platform")]
    pub platform: PlatformName,
    /// Fetch all registers at each stop (slower; to be measured)
    #[arg(long, help_heading = "Platform")]
    pub eager_registers: bool,
    /// Copy guest memory word by word (slower; to be measured)
    #[arg(long, help_heading = "Platform")]
    pub no_batch: bool,
    /// Leave programs' code as it is: every system call traps (slower; for programs that check their own code)
    #[arg(long, help_heading = "Platform")]
    pub no_patch: bool,
    /// Have all reads and writes of files go to the kernel (slower; to be measured)
    #[arg(long, help_heading = "Platform")]
    pub no_delegate: bool,
    /// Leave guest and kernel threads wherever the host puts them (slower; to be measured)
    #[arg(long, help_heading = "Platform")]
    pub no_placement: bool,
    /// Let neither side of a hand-over watch for the other on an idle CPU (slower; to be measured)
    #[arg(long, help_heading = "Platform")]
    pub no_spin: bool,

    /// Who guest processes and umlaut's kernel are to the host when root runs umlaut: `auto` takes an unused user, `none` root
    /// itself (weaker)
    #[arg(long, value_name = "auto|UID|none", value_parser = HostUser::parse, default_value = "auto", help_heading = "Platform")]
    pub host_user: HostUser,
    /// Leave umlaut's own process without Landlock and seccomp (weaker; to be measured)
    #[arg(long, help_heading = "Platform")]
    pub no_confine: bool,

    /// Print system calls in strace's manner; with names, only those
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, default_missing_value = "", help_heading = "Watching")]
    pub trace: Option<String>,
    /// Where the trace goes, in place of stderr; alone: all calls
    #[arg(long, value_name = "FILE", help_heading = "Watching")]
    pub trace_file: Option<PathBuf>,
    /// Write what each task does, and for how long, to a file that ui.perfetto.dev opens
    #[arg(long, value_name = "FILE", help_heading = "Watching")]
    pub profile: Option<PathBuf>,
    /// Print the kernel's counters at the end
    #[arg(long, help_heading = "Watching")]
    pub stats: bool,
    /// Where the kernel's counters are: in a block for each thread, in one for all (slower), or nowhere. To be measured
    #[arg(long, value_enum, default_value = "per-thread", help_heading = "Watching")]
    pub counters: CountersName,
}

/// Where the kernel's counters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CountersName {
    PerThread,
    Shared,
    Off,
}

impl CountersName {
    pub(crate) fn mode(self) -> CountersMode {
        match self {
            CountersName::PerThread => CountersMode::PerThread,
            CountersName::Shared => CountersMode::Shared,
            CountersName::Off => CountersMode::Off,
        }
    }
}

/// An absolute path.
fn parse_place(text: &str) -> Result<String, String> {
    if text.starts_with('/') { Ok(text.into()) } else { Err("give an absolute path".into()) }
}

/// `K=V`.
fn parse_variable(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, _)) if !name.is_empty() => Ok(text.into()),
        _ => Err("give a name and a value: NAME=VALUE".into()),
    }
}

/// As long as `sethostname` takes.
fn parse_hostname(text: &str) -> Result<String, String> {
    if text.len() <= 64 { Ok(text.into()) } else { Err("a name has 64 bytes at most".into()) }
}

/// A number of bytes, or of KiB, MiB, GiB or TiB with a letter behind it.
fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (text.get(..at), 10),
        Some((at, 'm' | 'M')) => (text.get(..at), 20),
        Some((at, 'g' | 'G')) => (text.get(..at), 30),
        Some((at, 't' | 'T')) => (text.get(..at), 40),
        _ => (Some(text), 0),
    };
    let number =
        digits.unwrap_or("").parse::<u64>().map_err(|_| "give a size such as 512M or 2G".to_string())?;
    let bytes = number.checked_mul(1 << shift).ok_or("that is more than there can be")?;
    if bytes < 1 << 20 { Err("no program runs in less than 1M".into()) } else { Ok(bytes) }
}
