//! What workloads need to be there: files, trees, and the commands that work on them.
//!
//! Main types: [`Prepared`]. All is made natively, once, below the directory of [`Setup`], which every place sees.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::options::Options;
use crate::places::Setup;

/// A whole command, ready to be run as often as wanted.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Program (an absolute name) and arguments.
    pub(crate) command: Vec<String>,
    /// What is removed before each run.
    pub(crate) remove: Vec<PathBuf>,
    /// A file that must be the same wherever it was made.
    pub(crate) result: Option<PathBuf>,
}

impl Prepared {
    pub(crate) fn clean(&self) {
        for path in &self.remove {
            // One of the two, or not there.
            let _ = std::fs::remove_file(path);
            let _ = std::fs::remove_dir_all(path);
        }
    }

    fn making(self, result: PathBuf) -> Prepared {
        Prepared { result: Some(result), ..self }
    }
}

/// What the program's own workloads find in their directory: see `bench-guest/src/files.rs`.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn for_guest(work: &Path) -> anyhow::Result<()> {
    std::fs::write(work.join("data"), vec![b'd'; 1 << 20])?;
    let entries = work.join("entries");
    std::fs::create_dir(&entries)?;
    for number in 0..1000 {
        std::fs::write(entries.join(format!("entry-{number:04}")), "")?;
    }
    Ok(())
}

/// Makes what a command needs.
///
/// # Errors
/// What is missing, with what brings it.
pub(crate) fn prepare(name: &str, setup: &mut Setup, options: &Options) -> anyhow::Result<Prepared> {
    let work = setup.work.clone();
    let shell = |script: String, remove: &[&str]| Prepared {
        command: vec!["/bin/sh".into(), "-c".into(), script],
        remove: remove.iter().map(|name| work.join(name)).collect(),
        result: None,
    };
    Ok(match name {
        "shell-500" => shell("i=0; while [ $i -lt 500 ]; do /bin/true; i=$((i+1)); done".into(), &[]),
        "python-20" => {
            let python = program("python3", "python3")?;
            shell(
                format!(
                    "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do {python} -c 'import json, subprocess'; done"
                ),
                &[],
            )
        }
        "copy-4k" => copy(&work, "dd if=big of=copy bs=4k 2>dd.log")?,
        "copy-64k" => copy(&work, "dd if=big of=copy bs=64k 2>dd.log")?,
        "cp" => copy(&work, "cp big copy")?,
        "dd" => {
            file_of(&work.join("huge"), 256 << 20)?;
            shell("dd if=huge of=/dev/null bs=1M 2>dd.log".into(), &[])
        }
        "find-cat" => {
            library(&work)?;
            shell("find library -type f -exec cat {} \\; > /dev/null".into(), &[])
        }
        "tar" => {
            library(&work)?;
            program("tar", "tar")?;
            shell("tar cf library.tar library".into(), &["library.tar"])
        }
        "build" | "build-j2" => {
            let jobs = if name == "build" { 1 } else { 2 };
            c_tree(&work.join(name))?;
            let out = format!("{name}/out");
            shell(format!("make -s -C {name} -j{jobs}"), &[&out]).making(work.join(out).join("all"))
        }
        "switches" => {
            for tree in ["tree-1", "tree-2", "tree-3"] {
                c_tree(&work.join(tree))?;
            }
            let script = "for t in 1 2 3; do make -s -C tree-$t -j1 & done; wait";
            shell(script.into(), &["tree-1/out", "tree-2/out", "tree-3/out"])
                .making(work.join("tree-2/out/all"))
        }
        "kernel-build" => kernel_build(setup, options)?,
        "sqlite" => {
            let sqlite = program("sqlite3", "sqlite3")?;
            std::fs::write(work.join("script.sql"), sql())?;
            shell(format!("{sqlite} db.sqlite < script.sql > /dev/null"), &["db.sqlite"])
        }
        "git-status" => {
            let git = program("git", "git")?;
            git_tree(&work.join("repository"), &git)?;
            shell(format!("{git} -c safe.directory='*' -C repository status > /dev/null"), &[])
        }
        "sort" => {
            std::fs::write(work.join("lines"), lines(400_000))?;
            shell("sort lines > sorted".into(), &["sorted"]).making(work.join("sorted"))
        }
        "python" => {
            let python = program("python3", "python3")?;
            std::fs::write(work.join("short_set.py"), include_str!("short_set.py"))?;
            shell(format!("{python} short_set.py"), &[])
        }
        "compile" => {
            let compiler = program("c++", "g++")?;
            std::fs::write(work.join("headers.cc"), CPLUSPLUS)?;
            let script = format!("{compiler} -O1 -c headers.cc -o headers.o");
            shell(script, &["headers.o"]).making(work.join("headers.o"))
        }
        name => bail!("nothing prepares {name}"),
    })
}

/// Where a program is that guests find too.
fn program(name: &str, package: &str) -> anyhow::Result<String> {
    let places = ["/usr/bin", "/bin", "/usr/local/bin"];
    let found = places.iter().map(|place| format!("{place}/{name}")).find(|path| Path::new(path).exists());
    found.with_context(|| format!("{name} is not installed; the package {package} brings it"))
}

fn copy(work: &Path, script: &str) -> anyhow::Result<Prepared> {
    file_of(&work.join("big"), 128 << 20)?;
    Ok(Prepared {
        command: vec!["/bin/sh".into(), "-c".into(), script.into()],
        remove: vec![work.join("copy")],
        result: Some(work.join("copy")),
    })
}

fn file_of(path: &Path, bytes: usize) -> anyhow::Result<()> {
    if !path.exists() {
        let pattern: Vec<u8> = (0..=250).collect();
        let content: Vec<u8> = pattern.iter().copied().cycle().take(bytes).collect();
        std::fs::write(path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Files of `library`.
const FILES: usize = 1000;
/// None of them larger than this.
const LARGEST: u64 = 1 << 20;

/// Copies of the first files of /usr/lib by name, so that every place and every machine has as many.
fn library(work: &Path) -> anyhow::Result<()> {
    let target = work.join("library");
    if target.exists() {
        return Ok(());
    }
    std::fs::create_dir(&target)?;
    let mut directories = vec![PathBuf::from("/usr/lib")];
    let mut count = 0;
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
        for entry in entries {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                directories.push(entry.path());
            } else if metadata.is_file() && metadata.len() <= LARGEST {
                let into = target.join(format!("{:02}", count / 50));
                std::fs::create_dir_all(&into)?;
                if std::fs::copy(entry.path(), into.join(format!("{count:04}"))).is_ok() {
                    count += 1;
                }
                if count == FILES {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// 31 C files with a makefile that builds them into `out`.
fn c_tree(directory: &Path) -> anyhow::Result<()> {
    program("make", "make")?;
    program("cc", "gcc")?;
    std::fs::create_dir_all(directory)?;
    for number in 0..31 {
        let mut text = String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
        for function in 0..20 {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "int f{number}_{function}(int n) {{ char b[64]; snprintf(b, sizeof b, \"%d\", n); \
                 for (int i = 0; i < n; i++) n += b[i % 8] * {function}; return n + (int)strlen(b); }}"
            );
        }
        if number == 0 {
            text += "int main(void) { return f0_0(0) == 12345; }\n";
        }
        std::fs::write(directory.join(format!("f{number}.c")), text)?;
    }
    let makefile = "O := $(patsubst %.c,out/%.o,$(wildcard *.c))\nout/all: $(O)\n\tcc -o $@ $(O)\n\
                    out/%.o: %.c | out\n\tcc -O1 -c $< -o $@\nout:\n\tmkdir -p out\n";
    Ok(std::fs::write(directory.join("Makefile"), makefile)?)
}

fn kernel_build(setup: &mut Setup, options: &Options) -> anyhow::Result<Prepared> {
    let source = options.kernel_source.as_ref().context("give a Linux tree by --kernel-source")?;
    let source = source.canonicalize().with_context(|| source.display().to_string())?;
    for (name, package) in
        [("make", "make"), ("cc", "gcc"), ("flex", "flex"), ("bison", "bison"), ("bc", "bc")]
    {
        program(name, package)?;
    }
    let make = format!("make -s -C {} O={}", source.display(), setup.work.join("kernel").display());
    setup.binds.push(source);
    // What a kernel says of when and where it was built, so that it is the same each time.
    let said = "export KBUILD_BUILD_TIMESTAMP=2026-01-01 KBUILD_BUILD_USER=bench KBUILD_BUILD_HOST=bench";
    let script = format!("{said}; mkdir -p kernel && {make} tinyconfig && {make} -j2");
    Ok(Prepared {
        command: vec!["/bin/sh".into(), "-c".into(), script],
        remove: vec![setup.work.join("kernel")],
        result: Some(setup.work.join("kernel/vmlinux")),
    })
}

fn git_tree(directory: &Path, git: &str) -> anyhow::Result<()> {
    for number in 0..20_000 {
        let into = directory.join(format!("{:03}", number / 100));
        if number % 100 == 0 {
            std::fs::create_dir_all(&into)?;
        }
        std::fs::write(into.join(format!("file-{number}")), format!("{number}\n"))?;
    }
    let identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"];
    let commit = ["commit", "--quiet", "--message", "all"];
    for words in [&["init", "--quiet"][..], &["add", "."], &commit] {
        let mut command = Command::new(git);
        command.args(identity).arg("-C").arg(directory).args(words).stdin(Stdio::null());
        let output = command.env("GIT_CONFIG_NOSYSTEM", "1").output().context("git")?;
        if !output.status.success() {
            bail!("git {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
    }
    Ok(())
}

fn sql() -> String {
    let mut text = String::from("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c INTEGER);\nBEGIN;\n");
    for number in 0..20_000 {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "INSERT INTO t VALUES({number}, 'row {number}', {});", number * 7919 % 10_007);
    }
    text += "COMMIT;\nCREATE INDEX i ON t(c);\nPRAGMA synchronous = OFF;\n";
    for number in 0..200 {
        let _ = writeln!(text, "INSERT INTO t VALUES({}, 'single', {number});", number + 50_000);
        let _ =
            writeln!(text, "SELECT count(*), sum(a) FROM t WHERE c BETWEEN {number} AND {};", number * 40);
    }
    text
}

/// Lines in no order, always the same ones.
fn lines(count: usize) -> String {
    let mut state: u64 = 88_172_645_463_325_252;
    let mut text = String::new();
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{state:016x} {}", state % 1000);
    }
    text
}

const CPLUSPLUS: &str = "#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>
int main() {
    std::map<std::string, std::vector<int>> m;
    for (int i = 0; i < 100; i++) m[std::to_string(i % 7)].push_back(i);
    std::regex r(\"[0-9]+\");
    for (auto &[k, v] : m)
        if (std::regex_match(k, r)) std::sort(v.begin(), v.end(), std::greater<>());
    std::cout << m.size() << std::endl;
}
";
