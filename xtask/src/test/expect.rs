//! Expectation files: known failures, each with its reason, in `tests/guest/expect/PLATFORM.txt`.
//!
//! A line is `FAMILY/PROGRAM CASE REASON…`; `#` starts a comment. CASE may end in `@root` or `@user`, to hold for that
//! run only, and may be `*`: the program as a whole (it crashes, hangs, or fails here and there). A listed case that
//! passes is a failure too, so that the list only ever tells the truth.
use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

use super::process::User;

/// One known failure.
#[derive(Debug, PartialEq, Eq)]
struct Known {
    program: String,
    case: String,
    user: Option<String>,
    reason: String,
}

/// The known failures of one platform.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    known: Vec<Known>,
    met: Mutex<HashSet<usize>>,
}

impl Expectations {
    /// Reads a file; one that does not exist expects no failure.
    pub(crate) fn load(path: &Path) -> Result<Self> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text).with_context(|| path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    fn parse(text: &str) -> Result<Self> {
        let mut known = Vec::new();
        for (number, line) in (1..).zip(text.lines().map(str::trim)) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut words = line.splitn(3, char::is_whitespace).map(str::trim);
            let (Some(program), Some(case), Some(reason)) = (words.next(), words.next(), words.next()) else {
                bail!("line {number}: expected FAMILY/PROGRAM CASE[@root|@user] REASON")
            };
            let (case, user) = match case.split_once('@') {
                None => (case, None),
                Some((case, user @ ("root" | "user"))) => (case, Some(user.to_owned())),
                Some((_, other)) => bail!("line {number}: @{other} is neither @root nor @user"),
            };
            let reason = reason.to_owned();
            known.push(Known { program: program.to_owned(), case: case.to_owned(), user, reason });
        }
        Ok(Self { known, met: Mutex::default() })
    }

    /// The reason why this case is known to fail, if it is.
    pub(crate) fn reason(&self, program: &str, case: &str, user: User) -> Option<&str> {
        let fits = |known: &Known| {
            known.program == program
                && known.case == case
                && known.user.as_deref().is_none_or(|word| word == user.word())
        };
        let at = self.known.iter().position(fits)?;
        if let Ok(mut met) = self.met.lock() {
            met.insert(at);
        }
        self.known.get(at).map(|known| known.reason.as_str())
    }

    /// Lines that fitted nothing that ran: a case renamed or gone. Only of use after a complete run.
    pub(crate) fn unmet(&self) -> Vec<String> {
        let Ok(met) = self.met.lock() else { return Vec::new() };
        let unmet = self.known.iter().enumerate().filter(|(at, _)| !met.contains(at));
        unmet.map(|(_, known)| format!("{} {}", known.program, known.case)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_program_case_user_and_reason() {
        let list = Expectations::parse("# head\n\nfs/open tmpfile why: so\nmm/brk *@user later\n").unwrap();
        assert_eq!(list.reason("fs/open", "tmpfile", User::Root), Some("why: so"));
        assert_eq!(list.reason("fs/open", "other", User::Root), None);
        assert_eq!(list.reason("mm/brk", "*", User::Root), None);
        assert_eq!(list.unmet(), ["mm/brk *"]);
        assert_eq!(list.reason("mm/brk", "*", User::Nobody), Some("later"));
    }

    #[test]
    fn a_known_failure_needs_a_reason() {
        assert!(Expectations::parse("fs/open tmpfile\n").is_err());
        assert!(Expectations::parse("fs/open tmpfile@guest because\n").is_err());
    }
}
