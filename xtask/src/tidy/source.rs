//! A Rust source as rules want it: comments and literals blanked, test code marked.
//!
//! [`Code::of`] is a small scanner, not a parser: it knows comments (nested), strings (raw, byte, C), character
//! literals against lifetimes, and finds the blocks under `#[cfg(test)]`. Blanked characters become spaces, so that
//! line numbers stay.

/// The code of one file without comments and literals.
pub(crate) struct Code {
    text: String,
}

impl Code {
    /// Blanks the comments and literals of a Rust source.
    pub(crate) fn of(source: &str) -> Self {
        let mut scanner = Scanner { rest: source, out: String::with_capacity(source.len()) };
        while scanner.step() {}
        Self { text: scanner.out }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The same with the blocks under `#[cfg(test)]` blanked.
    pub(crate) fn without_tests(&self) -> String {
        let mut text = String::new();
        let mut rest = self.text.as_str();
        while let Some(at) = rest.find("#[cfg(test)]") {
            let (before, tests) = rest.split_at(at);
            text += before;
            let end = block_end(tests);
            text.extend(tests[..end].chars().filter(|c| *c == '\n'));
            rest = &tests[end..];
        }
        text + rest
    }

    /// How often a word (not a part of one) occurs.
    pub(crate) fn count_word(text: &str, word: &str) -> usize {
        let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
        let whole = |at: usize| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(part_of_word) && !after.is_some_and(part_of_word)
        };
        text.match_indices(word).filter(|(at, _)| whole(*at)).count()
    }
}

/// Where the item that starts here ends: after its closing brace, or its semicolon if that comes first.
fn block_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

struct Scanner<'a> {
    rest: &'a str,
    out: String,
}

impl Scanner<'_> {
    fn step(&mut self) -> bool {
        let Some(first) = self.rest.chars().next() else { return false };
        let in_word = self.out.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(self.comment());
        } else if let Some(length) = if in_word { None } else { self.raw_string() } {
            self.blank(length);
        } else if first == '"' {
            self.blank(self.string());
        } else if first == '\'' {
            self.quote();
        } else {
            self.keep(first.len_utf8());
        }
        true
    }

    fn keep(&mut self, length: usize) {
        self.out += &self.rest[..length];
        self.rest = &self.rest[length..];
    }

    fn blank(&mut self, length: usize) {
        self.out.extend(self.rest[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        self.rest = &self.rest[length..];
    }

    fn comment(&self) -> usize {
        let (mut at, mut depth) = (0, 0_usize);
        while at < self.rest.len() {
            let here = &self.rest.as_bytes()[at..];
            if here.starts_with(b"/*") {
                (at, depth) = (at + 2, depth + 1);
            } else if here.starts_with(b"*/") {
                (at, depth) = (at + 2, depth - 1);
                if depth == 0 {
                    return at;
                }
            } else {
                at += 1;
            }
        }
        self.rest.len()
    }

    /// The length of a raw string (`r"…"`, `br#"…"#`, `cr"…"`) that starts here.
    fn raw_string(&self) -> Option<usize> {
        let prefix = ["br", "cr", "r"].into_iter().find(|prefix| self.rest.starts_with(prefix))?;
        let after = &self.rest[prefix.len()..];
        let hashes = after.len() - after.trim_start_matches('#').len();
        let body = after[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        Some(prefix.len() + hashes + 1 + length)
    }

    fn string(&self) -> usize {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => return at + 1,
                _ => {}
            }
        }
        self.rest.len()
    }

    /// A character literal is blanked, a lifetime or label kept.
    fn quote(&mut self) {
        let mut chars = self.rest.char_indices().skip(1);
        match (chars.next(), chars.next()) {
            (Some((_, '\\')), _) => {
                let from = 3.min(self.rest.len());
                let end = self.rest[from..].find('\'').map_or(self.rest.len(), |at| from + at + 1);
                self.blank(end);
            }
            (Some(_), Some((at, '\''))) => self.blank(at + 1),
            _ => self.keep(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let code =
            Code::of("a // unsafe\n/* b /* c */ */ \"x\\\"y[0]\" r#\"q\"# b'\\'' '\"' 'c' d<'a>(x: &'a u8)");
        let words: Vec<&str> = code.text().split_whitespace().collect();
        assert_eq!(words, ["a", "b", "d<'a>(x:", "&'a", "u8)"]);
        assert_eq!(code.text().lines().count(), 2);
    }

    #[test]
    fn a_word_that_ends_in_r_starts_no_raw_string() {
        assert_eq!(Code::of("for \"a\" in car\"b\"c").text().split_whitespace().last(), Some("c"));
    }

    #[test]
    fn test_modules_are_left_out() {
        let code = Code::of("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() { x.unwrap() }\n}\nfn c() {}\n");
        assert_eq!(
            code.without_tests().split_whitespace().collect::<Vec<_>>(),
            ["fn", "a()", "{}", "fn", "c()", "{}"]
        );
        assert_eq!(Code::of("#[cfg(test)]\nmod tests;\nfn c() {}").without_tests().trim(), "fn c() {}");
    }

    #[test]
    fn words_are_counted_whole() {
        assert_eq!(Code::count_word("unsafe unsafe_code xunsafe (unsafe)", "unsafe"), 2);
    }
}
