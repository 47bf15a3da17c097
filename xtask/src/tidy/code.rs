//! Source text with comments and the insides of strings blanked, line by line as before.
//!
//! Enough of Rust's and Python's lexical rules to tell code from words about
//! code; neither is parsed.

use super::checkout::SourceFile;

/// Code of a Rust or Python file alone; other files as they are.
pub fn of(file: &SourceFile) -> String {
    match file.ending() {
        "rs" => rust(&file.text),
        "py" | "pyi" => python(&file.text),
        _ => file.text.clone(),
    }
}

struct Blanker {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Blanker {
    fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            out: String::with_capacity(text.len()),
        }
    }

    fn starts_with(&self, text: &str) -> bool {
        let rest = &self.chars[self.at..];
        text.chars().count() <= rest.len() && text.chars().zip(rest).all(|(a, b)| a == *b)
    }

    fn previous(&self) -> Option<char> {
        self.at.checked_sub(1).map(|index| self.chars[index])
    }

    fn keep(&mut self, count: usize) {
        let end = (self.at + count).min(self.chars.len());
        self.out.extend(&self.chars[self.at..end]);
        self.at = end;
    }

    fn blank(&mut self, count: usize) {
        let end = (self.at + count).min(self.chars.len());
        let blanked = self.chars[self.at..end]
            .iter()
            .map(|c| if *c == '\n' { '\n' } else { ' ' });
        self.out.extend(blanked);
        self.at = end;
    }

    fn blank_line(&mut self) {
        let rest = &self.chars[self.at..];
        let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
        self.blank(length);
    }

    /// Blanks up to `close`, which is kept; a backslash hides the character after it if `escapes`.
    fn blank_until(&mut self, close: &str, escapes: bool) {
        while self.at < self.chars.len() && !self.starts_with(close) {
            let step = if escapes && self.chars[self.at] == '\\' {
                2
            } else {
                1
            };
            self.blank(step);
        }
        self.keep(close.chars().count());
    }

    fn blank_nested_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            if self.starts_with("/*") {
                depth += 1;
                self.blank(2);
            } else if self.starts_with("*/") {
                depth -= 1;
                self.blank(2);
                if depth == 0 {
                    return;
                }
            } else {
                self.blank(1);
            }
        }
    }

    /// `r"`, `br#"` and the like: the length of the opening and the closing text.
    fn raw_string(&self) -> Option<(usize, String)> {
        if self.previous().is_some_and(is_word) {
            return None;
        }
        let rest = &self.chars[self.at..];
        let prefix = usize::from(matches!(rest.first(), Some('b' | 'c')));
        if rest.get(prefix) != Some(&'r') {
            return None;
        }
        let hashes = rest[prefix + 1..].iter().take_while(|c| **c == '#').count();
        let opens = rest.get(prefix + 1 + hashes) == Some(&'"');
        opens.then(|| (prefix + hashes + 2, format!("\"{}", "#".repeat(hashes))))
    }

    /// Length of a character literal here; none if this is a lifetime.
    fn character_literal(&self) -> Option<usize> {
        let rest = &self.chars[self.at + 1..];
        let start = if rest.first() == Some(&'\\') { 2 } else { 1 };
        let closes_at = rest.iter().skip(start).take(12).position(|c| *c == '\'')?;
        (start == 2 || closes_at == 0).then_some(start + closes_at + 2)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Rust without comments and words in strings.
pub fn rust(text: &str) -> String {
    let mut blanker = Blanker::new(text);
    while blanker.at < blanker.chars.len() {
        let raw = blanker.raw_string();
        if blanker.starts_with("//") {
            blanker.blank_line();
        } else if blanker.starts_with("/*") {
            blanker.blank_nested_comment();
        } else if let Some((opening, close)) = raw {
            blanker.keep(opening);
            blanker.blank_until(&close, false);
        } else if blanker.starts_with("\"") {
            blanker.keep(1);
            blanker.blank_until("\"", true);
        } else if blanker.starts_with("'") {
            match blanker.character_literal() {
                Some(length) => blanker.blank(length),
                None => blanker.keep(1),
            }
        } else {
            blanker.keep(1);
        }
    }
    blanker.out
}

/// Python without comments and words in strings.
pub fn python(text: &str) -> String {
    let mut blanker = Blanker::new(text);
    while blanker.at < blanker.chars.len() {
        let quote = ["\"\"\"", "'''", "\"", "'"]
            .into_iter()
            .find(|quote| blanker.starts_with(quote));
        if blanker.starts_with("#") {
            blanker.blank_line();
        } else if let Some(quote) = quote {
            blanker.keep(quote.len());
            blanker.blank_until(quote, true);
        } else {
            blanker.keep(1);
        }
    }
    blanker.out
}

/// Blanked Rust without its `#[cfg(test)]` items.
pub fn without_tests(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find("#[cfg(test)]") {
        let (before, from) = rest.split_at(start);
        let length = item_length(from);
        kept.push_str(before);
        kept.extend(from[..length].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &from[length..];
    }
    kept + rest
}

/// Bytes to the end of the item that starts here: its closing brace, or a semicolon before any brace.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (index, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return index + 1,
            '}' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return index + 1,
            _ => {}
        }
    }
    code.len()
}

/// Byte positions at which `word` stands as code and not inside a longer name.
pub fn positions<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let joins = |a: Option<char>, b: Option<char>| a.is_some_and(is_word) && b.is_some_and(is_word);
    code.match_indices(word)
        .filter(move |(at, _)| {
            let before = code[..*at].chars().next_back();
            let after = code[at + word.len()..].chars().next();
            !joins(before, word.chars().next()) && !joins(word.chars().next_back(), after)
        })
        .map(|(at, _)| at)
}

/// Line, from 1, of a byte position.
pub fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_words_in_comments_and_strings_are_blank() {
        let text = "let a = \"unsafe\"; // unsafe\n/* unsafe /* x */ unsafe */ let b = r#\"un\"safe\"#;";
        let code = rust(text);
        assert!(!code.contains("safe"), "{code}");
        assert_eq!(code.len(), text.len());
        assert!(code.contains("let b"));
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_not() {
        let code = rust("fn f<'a>(x: &'a str) { g('\"'); h('\\''); unsafe {} }");
        assert!(code.contains("unsafe {}"), "{code}");
        assert!(code.contains("&'a str"));
    }

    #[test]
    fn python_words_in_comments_and_strings_are_blank() {
        let code = python("x = 'print(' # print(\ny = \"\"\"print(\n\"\"\"\nprint(z)");
        assert_eq!(code.matches("print(").count(), 1, "{code}");
        assert_eq!(line_of(&code, code.find("print(").unwrap()), 4);
    }

    #[test]
    fn test_modules_are_cut_out() {
        let code = without_tests("fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n");
        assert!(!code.contains("fn b") && code.contains("fn c"), "{code}");
        assert!(without_tests("#[cfg(test)]\nmod tests;\nfn c() {}").contains("fn c"));
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(
            positions("unsafe_code unsafe not_unsafe", "unsafe").collect::<Vec<_>>(),
            [12]
        );
        assert_eq!(positions("pprint(x) print(y)", "print(").count(), 1);
    }
}
