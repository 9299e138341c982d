//! The rule `arrows-down`: which crate of ours may depend on which.
//!
//! A platform never knows the kernel, the kernel knows platforms only as traits, file systems may know the kernel and
//! never the reverse; only the command line knows all.
use super::Tree;

/// A crate (`fs-*` stands for all file systems) and the crates of ours that it may use. `*` is all.
const ARROWS: &[(&str, &[&str])] = &[
    ("abi", &[]),
    ("sync", &["abi"]),
    ("host", &["abi", "sync"]),
    ("platform", &["abi", "sync"]),
    ("vfs", &["abi", "sync"]),
    ("tty", &["abi", "sync"]),
    ("guest-process", &["abi", "host", "platform"]),
    ("ptrace", &["guest-process", "abi", "sync", "host", "platform"]),
    ("stubs", &["guest-process", "abi", "sync", "host", "platform"]),
    ("kernel", &["abi", "sync", "host", "platform", "vfs", "tty"]),
    ("fs-*", &["abi", "sync", "host", "vfs", "tty", "kernel"]),
    ("bench-guest", &[]),
    ("bench-uml-shim", &[]),
    ("bench", &["host"]),
    ("cli", &["*"]),
    ("fuzzing", &["*"]),
    ("fuzz", &["fuzzing"]),
    ("benches", &["*"]),
    ("xtask", &[]),
];

pub(super) fn arrows_down(tree: &Tree) -> Vec<String> {
    let crates: Vec<(&str, &str)> = tree
        .files
        .iter()
        .filter_map(|file| {
            let path = file.path.strip_suffix("/Cargo.toml")?;
            Some((path.strip_prefix("crates/").unwrap_or(path), file.text.as_str()))
        })
        .collect();
    let mut found = Vec::new();
    for (name, manifest) in &crates {
        let row = ARROWS.iter().find(|(row, _)| row == name || (*row == "fs-*" && name.starts_with("fs-")));
        let Some((_, allowed)) = row else {
            found.push(format!("{name}: not in the table of arrows"));
            continue;
        };
        let upward = dependencies(manifest)
            .filter(|used| crates.iter().any(|(ours, _)| ours == used))
            .filter(|used| !allowed.contains(used) && !allowed.contains(&"*"));
        found.extend(upward.map(|used| format!("{name} depends on {used}")));
    }
    found
}

/// The names in `[dependencies]` and its kin; development dependencies may point anywhere.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside =
                table == "dependencies" || table == "build-dependencies" || table.ends_with(".dependencies");
            return None;
        }
        let name = line.split(['.', '=', ' ']).next().unwrap_or("");
        (inside && !name.is_empty() && !name.starts_with('#')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::File;
    use super::*;

    fn complaints(manifests: &[(&str, &str)]) -> Vec<String> {
        let file = |(name, text): &(&str, &str)| File {
            path: format!("crates/{name}/Cargo.toml"),
            text: (*text).into(),
        };
        arrows_down(&Tree { root: "/".into(), files: manifests.iter().map(file).collect() })
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let vfs = "[dependencies]\nabi.workspace = true\nkernel = { path = \"../kernel\" }\nlibc = \"1\"\n";
        assert_eq!(complaints(&[("abi", ""), ("kernel", ""), ("vfs", vfs)]), ["vfs depends on kernel"]);
        let tests = "[dependencies]\nabi.workspace = true\n[dev-dependencies]\nkernel.workspace = true\n";
        assert!(complaints(&[("abi", ""), ("kernel", ""), ("vfs", tests)]).is_empty());
        assert!(
            complaints(&[("kernel", ""), ("fs-new", "[dependencies]\nkernel.workspace = true\n")]).is_empty()
        );
    }

    #[test]
    fn a_new_crate_needs_a_row() {
        assert_eq!(complaints(&[("novel", "")]), ["novel: not in the table of arrows"]);
    }
}
