//! What of a host tree is shown: names hidden or shown, directory by directory.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What is shown in one directory, and below it.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Names with a rule of their own: `None` hides one, a view shows it with that view below.
    names: BTreeMap<Box<[u8]>, Option<Arc<View>>>,
    /// Patterns ([`glob`]) of names that are hidden here.
    hidden: Vec<Box<[u8]>>,
    /// Whether names without a rule are hidden.
    only_named: bool,
    /// Whether this directory may be a mount of its own.
    mount: bool,
}

impl View {
    /// Shows everything.
    pub fn all() -> View {
        View::default()
    }

    /// Shows only the names given.
    pub fn only() -> View {
        View { only_named: true, ..View::default() }
    }

    /// Shows `path` (names separated by `/`) and all below it, also if it is a mount of its own.
    pub fn show(self, path: &str) -> View {
        self.with(path, Some(Arc::new(View { mount: true, ..View::all() })))
    }

    /// Shows `path` as `view` says.
    pub fn show_as(self, path: &str, view: View) -> View {
        self.with(path, Some(Arc::new(View { mount: true, ..view })))
    }

    /// Hides what matches `path`, whose last name may be a pattern.
    pub fn hide(self, path: &str) -> View {
        match path.rsplit_once('/') {
            None if path.contains(['*', '?']) => {
                let mut view = self;
                view.hidden.push(path.as_bytes().into());
                view
            }
            None => self.with(path, None),
            Some((dir, name)) => {
                let below = self.get(dir).hide(name);
                self.with(dir, Some(Arc::new(below)))
            }
        }
    }

    /// The view of a path as it is now.
    fn get(&self, path: &str) -> View {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        let below = match self.names.get(first.as_bytes()) {
            Some(Some(view)) => (**view).clone(),
            _ if self.only_named => View::only(),
            _ => View::all(),
        };
        if rest.is_empty() { below } else { below.get(rest) }
    }

    fn with(mut self, path: &str, rule: Option<Arc<View>>) -> View {
        match path.split_once('/') {
            None => {
                self.names.insert(path.as_bytes().into(), rule);
            }
            Some((first, rest)) => {
                // What is shown may lie on mounts of its own all the way down.
                let below = View { mount: true, ..self.get(first).with(rest, rule) };
                self.names.insert(first.as_bytes().into(), Some(Arc::new(below)));
            }
        }
        self
    }

    /// Whether `name` is shown here.
    pub(crate) fn shows(&self, name: &[u8]) -> bool {
        match self.names.get(name) {
            Some(rule) => rule.is_some(),
            None => !self.only_named && !self.hidden.iter().any(|pattern| glob(pattern, name)),
        }
    }

    /// The view below `name`; `None`: everything.
    pub(crate) fn below(&self, name: &[u8]) -> Option<Arc<View>> {
        self.names.get(name).cloned().flatten()
    }

    /// Whether it may be a mount.
    pub(crate) fn may_be_mount(&self) -> bool {
        self.mount
    }
}

/// Whether `name` matches `pattern`: `*` stands for any bytes, `?` for one.
pub fn glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) if glob(rest, name) => true,
        (Some((b'*', _)), Some((_, name))) => glob(pattern, name),
        (Some((b'?', rest)), Some((_, name))) => glob(rest, name),
        (Some((byte, rest)), Some((first, name))) => byte == first && glob(rest, name),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, yes) in [
            ("shadow*", "shadow-", true),
            ("shadow*", "gshadow", false),
            ("ssh_host_*_key", "ssh_host_rsa_key", true),
            ("ssh_host_*_key", "ssh_host_rsa_key.pub", false),
            ("?", "", false),
            ("*", "", true),
        ] {
            assert_eq!(glob(pattern.as_bytes(), name.as_bytes()), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn rules_apply_below_their_directory_only() {
        let view = View::only().show("usr").show("etc").hide("etc/shadow*").hide("etc/ssl/private");
        assert!(view.shows(b"usr") && view.shows(b"etc") && !view.shows(b"root"));
        assert!(view.below(b"usr").is_some_and(|usr| usr.shows(b"shadow") && usr.may_be_mount()));
        let etc = view.below(b"etc").expect("a view of etc");
        assert!(etc.shows(b"passwd") && !etc.shows(b"shadow") && !etc.shows(b"shadow-"));
        let ssl = etc.below(b"ssl").expect("a view of ssl");
        assert!(ssl.shows(b"certs") && !ssl.shows(b"private"));
    }

    #[test]
    fn a_nested_path_shows_only_itself() {
        let view = View::only().show("var/lib/dpkg");
        let lib = view.below(b"var").and_then(|var| var.below(b"lib")).expect("a view of var/lib");
        assert!(lib.shows(b"dpkg") && !lib.shows(b"mysql"));
    }
}
