//! Other systems that run unmodified programs: what of them is installed, and how each is entered.
//!
//! Main function: [`installed`]. Each is set up in the directory of [`Setup`] and gone with it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::places::{Kind, Place, Setup};
use crate::session::Session;

/// `crates/bench-uml-shim`, as `build.rs` made it.
const SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bench-uml-shim.so"));

/// One way to run another system.
struct Rival {
    name: &'static str,
    program: &'static str,
    /// What brings it.
    package: &'static str,
    /// Asks for its version.
    version: &'static str,
    mode: &'static str,
    /// Words before the program that is to run.
    prefix: &'static [&'static str],
}

const PREFIXES: &[Rival] = &[
    Rival {
        name: "proot",
        program: "proot",
        package: "proot",
        version: "--version",
        mode: "ptrace with seccomp",
        prefix: &["-r", "/"],
    },
    Rival {
        name: "bubblewrap",
        program: "bwrap",
        package: "bubblewrap",
        version: "--version",
        mode: "namespaces, the host's own kernel",
        prefix: &["--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "--"],
    },
    Rival {
        name: "gvisor-systrap",
        program: "runsc",
        package: "runsc",
        version: "--version",
        mode: "do --rootless --platform=systrap",
        prefix: &["--rootless", "--network=none", "--platform=systrap", "do"],
    },
    Rival {
        name: "gvisor-ptrace",
        program: "runsc",
        package: "runsc",
        version: "--version",
        mode: "do --rootless --platform=ptrace",
        prefix: &["--rootless", "--network=none", "--platform=ptrace", "do"],
    },
    Rival {
        name: "vuos",
        program: "umvu",
        package: "vuos (not in every distribution: github.com/virtualsquare/vuos)",
        version: "--version",
        mode: "no module",
        prefix: &[],
    },
];

/// User-Mode Linux.
const UML: &str = "uml";

/// The rivals of these names (`all`) that work here. What does not is told in `missing`.
///
/// # Errors
/// If a name is not known.
pub(crate) fn installed(
    names: &[String],
    setup: &Setup,
    missing: &mut Vec<String>,
) -> anyhow::Result<Vec<Place>> {
    let known: Vec<&str> = std::iter::once(UML).chain(PREFIXES.iter().map(|rival| rival.name)).collect();
    let all = names.iter().any(|name| name == "all");
    if let Some(name) = names.iter().find(|name| !all && !known.contains(&name.as_str())) {
        bail!("no rival {name}; known are {}", known.join(", "));
    }
    let wanted = |name: &str| all || names.iter().any(|own| own == name);
    let mut places = Vec::new();
    let mut add = |name: &str, place: anyhow::Result<Place>| match place {
        Ok(place) => places.push(place),
        Err(why) => {
            let why = format!("{why:#}");
            missing.push(format!("{name}: {}", why.lines().next_back().unwrap_or("it gave no reason")));
        }
    };
    if wanted(UML) {
        add(UML, user_mode_linux(setup));
    }
    for rival in PREFIXES.iter().filter(|rival| wanted(rival.name)) {
        add(rival.name, prefixed(rival, setup));
    }
    Ok(places)
}

fn prefixed(rival: &Rival, setup: &Setup) -> anyhow::Result<Place> {
    let program = find(rival.program, rival.package)?;
    let words = std::iter::once(program.as_str()).chain(rival.prefix.iter().copied());
    let what = format!("{} {}, {}", rival.program, version(&program, rival.version), rival.mode);
    let place =
        Place { name: rival.name.into(), what, kind: Kind::Prefix(words.map(String::from).collect()) };
    place.try_out(setup)?;
    Ok(place)
}

/// A whole Linux as a process. It takes a second to boot, so that it stays up: its first process is a shell that
/// becomes `bench-guest serve`, on a console that is a pipe.
fn user_mode_linux(setup: &Setup) -> anyhow::Result<Place> {
    let program = find("linux.uml", "user-mode-linux")?;
    let init = setup.work.join("uml-init");
    let script = format!(
        "#!/bin/sh\nexport PATH={} LC_ALL=C\nmount -t proc proc /proc\nmount -t sysfs sysfs /sys\n\
         mount -t tmpfs tmpfs /run\nstty -echo -onlcr\nexec {} serve {}\n",
        "/usr/sbin:/usr/bin:/sbin:/bin",
        setup.guest.display(),
        setup.work.display()
    );
    std::fs::write(&init, script)?;
    std::fs::set_permissions(&init, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let options = [
        program.clone(),
        "mem=512M".into(),
        "rootfstype=hostfs".into(),
        "rootflags=/".into(),
        "rw".into(),
        "con0=fd:0,fd:1".into(),
        "con=null".into(),
        "quiet".into(),
        format!("uml_dir={}", setup.work.display()),
        format!("init={}", init.display()),
    ];
    let what = format!("user-mode-linux {}, SYSEMU, hostfs", version(&program, "--version"));
    let place = Place { name: UML.into(), what, kind: Kind::Session(options.to_vec()) };
    if serves(&place, setup).is_ok() {
        return Ok(place);
    }
    // See there: CPUs with AMX.
    let shim = setup.work.join("bench-uml-shim.so");
    std::fs::write(&shim, SHIM)?;
    let preload = format!("LD_PRELOAD={}", shim.display());
    let words = ["/usr/bin/env".to_string(), preload].into_iter().chain(options).collect();
    let what = format!("{}, with a shim for this CPU's large XSAVE area", place.what);
    let place = Place { what, kind: Kind::Session(words), ..place };
    serves(&place, setup)?;
    Ok(place)
}

fn serves(place: &Place, setup: &Setup) -> anyhow::Result<()> {
    let mut command = place.command(setup, &setup.guest, &[]);
    Session::start(&mut command, None)?.run(&["run".into(), "clock_gettime".into()]).map(|_| ())
}

fn find(program: &str, package: &str) -> anyhow::Result<String> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    let mut places = path.split(':').map(|place| format!("{place}/{program}"));
    places
        .find(|place| Path::new(place).is_file())
        .with_context(|| format!("not installed; the package {package} brings it"))
}

/// The first word that looks like a version in what it says.
fn version(program: &str, option: &str) -> String {
    let output = Command::new(program).arg(option).stdin(Stdio::null()).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',');
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    words.find(is_version).unwrap_or("of unknown version").to_string()
}
