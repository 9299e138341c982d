//! Rules about files as text: size, heads, words.
use super::{File, Tree};

/// Lines that a source may have.
const LONGEST: usize = 800;
/// Tables may be longer: one row a line, nothing to split.
const TABLES: [&str; 2] = ["crates/abi/src/errno.rs", "crates/kernel/src/syscall/table.rs"];

pub(super) fn small_files(tree: &Tree) -> Vec<String> {
    let sources = tree
        .files
        .iter()
        .filter(|file| ["rs", "c", "h", "py", "sh", "S"].iter().any(|e| file.has_extension(e)));
    let long =
        sources.filter(|file| file.text.lines().count() > LONGEST && !TABLES.contains(&file.path.as_str()));
    long.map(|file| format!("{}: {} lines, {LONGEST} at most", file.path, file.text.lines().count()))
        .collect()
}

pub(super) fn module_heads(tree: &Tree) -> Vec<String> {
    let headless =
        |file: &File| !file.text.trim_start().starts_with("//!") || file.text.starts_with("//! (to come)");
    tree.sources()
        .filter(|(_, file)| headless(file))
        .map(|(_, file)| format!("{}: no head", file.path))
        .collect()
}

pub(super) fn no_later_marks(tree: &Tree) -> Vec<String> {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME")];
    each_line(tree, |_, line| {
        marks
            .iter()
            .find(|mark| super::source::Code::count_word(line, mark) > 0)
            .map(|mark| (*mark).to_owned())
    })
}

/// Paths of the machine at hand (the directory that the checkout lies in) and numbers of a tracker mean nothing to
/// an outsider.
pub(super) fn no_places(tree: &Tree) -> Vec<String> {
    let usual = ["/", "/home", "/root", "/tmp", "/var/tmp", "/usr/src", "/build", "/srv", "/opt"];
    let mut places = Vec::new();
    let mut above = tree.root.parent();
    while let Some(dir) = above {
        let name = dir.to_string_lossy();
        if !usual.contains(&name.as_ref()) {
            places.push(format!("{name}/"));
        }
        above = dir.parent();
    }
    each_line(tree, |file, line| {
        let lower = line.to_lowercase();
        let numbered = lower.match_indices("issue ").any(|(at, word)| {
            lower[at + word.len()..].trim_start_matches('#').starts_with(|c: char| c.is_ascii_digit())
        });
        let place = places.iter().find(|place| {
            line.match_indices(place.as_str())
                .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '.'))
        });
        match place {
            _ if file.path == "Cargo.lock" => None,
            Some(place) => Some(place.clone()),
            None => numbered.then(|| "an issue by its number".to_owned()),
        }
    })
}

pub(super) fn short_architecture(tree: &Tree) -> Vec<String> {
    let file = tree.files.iter().find(|file| file.path == "ARCHITECTURE.md");
    let lines = file.map_or(0, |file| file.text.lines().count());
    if lines >= 300 { vec![format!("ARCHITECTURE.md: {lines} lines, 299 at most")] } else { Vec::new() }
}

/// Complaints about single lines, with their place.
fn each_line(tree: &Tree, check: impl Fn(&File, &str) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for file in &tree.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            if let Some(what) = check(file, line) {
                found.push(format!("{}:{number}: {what}", file.path));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(path: &str, text: &str) -> Tree {
        Tree { root: "/elsewhere/umlaut".into(), files: vec![File { path: path.into(), text: text.into() }] }
    }

    #[test]
    fn a_module_needs_a_head() {
        assert_eq!(module_heads(&tree("crates/vfs/src/a.rs", "use x;\n//! late\n")).len(), 1);
        assert!(module_heads(&tree("crates/vfs/src/a.rs", "//! Purpose.\n")).is_empty());
        assert!(module_heads(&tree("tests/a.rs", "use x;\n")).is_empty());
    }

    #[test]
    fn only_tables_may_be_long() {
        let long = "x\n".repeat(LONGEST + 1);
        assert_eq!(small_files(&tree("crates/vfs/src/a.rs", &long)).len(), 1);
        assert!(small_files(&tree(TABLES[0], &long)).is_empty());
        assert!(small_files(&tree("Cargo.lock", &long)).is_empty());
    }

    #[test]
    fn marks_and_places_are_found_with_their_line() {
        let mark = format!("a\n// {}: b\n", ["TO", "DO"].concat());
        assert_eq!(no_later_marks(&tree("a.rs", &mark)), [format!("a.rs:2: {}", ["TO", "DO"].concat())]);
        assert_eq!(no_places(&tree("a.md", "in /elsewhere/x")), ["a.md:1: /elsewhere/"]);
        assert_eq!(no_places(&tree("a.md", &["see is", "sue 7"].concat())).len(), 1);
        assert!(no_places(&tree("a.md", "usr/elsewhere/x, an issue of its own")).is_empty());
    }
}
