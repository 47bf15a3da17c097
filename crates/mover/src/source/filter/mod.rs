//! Which names are taken: rules as rsync has them, the first that fits decides, and what no rule fits is taken.
//!
//! A path is the one below the destination: `/` at the begin of a pattern is where the first names stand, `/` at its end
//! fits folders only. A pattern with neither a `/` inside nor `**` fits the last name of a path; any other fits the end of
//! the path from some name on, the whole of it where it begins with `/`. A folder that is left out is not looked into.

mod pattern;

use farline_spec::{Failure, FailureKind};

pub(crate) use pattern::Pattern;

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;

/// The rules of one copy.
#[derive(Debug)]
pub(crate) struct Filters {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    takes: bool,
    pattern: Pattern,
    /// Fits folders only.
    is_folder: bool,
    scope: Scope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The last name of a path.
    LastName,
    /// The whole path.
    Whole,
    /// The path from any of its names on.
    Tail,
    /// The path with a `/` before it: a pattern that begins with `**`.
    Rooted,
}

impl Filters {
    /// Reads rules of the form `+ pattern` and `- pattern`.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for a rule that is none.
    pub(crate) fn new(rules: &[String]) -> Result<Self, Failure> {
        let rules = rules
            .iter()
            .map(|rule| Rule::read(rule))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    /// Whether the name is taken.
    pub(crate) fn takes(&self, path: &[u8], is_folder: bool) -> bool {
        let fitting = self.rules.iter().find(|rule| rule.fits(path, is_folder));
        fitting.is_none_or(|rule| rule.takes)
    }
}

/// Whether a copy with these rules looks into the folder at `path`: neither it nor one above it is left out.
///
/// # Errors
/// [`FailureKind::Spec`] for a rule that is none.
pub fn looks_into(rules: &[String], path: &[u8]) -> Result<bool, Failure> {
    let filters = Filters::new(rules)?;
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut folders = ends.map(|(end, _)| &path[..end]).chain([path]);
    Ok(folders.all(|folder| filters.takes(folder, true)))
}

impl Rule {
    fn read(rule: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::new(FailureKind::Spec, format!("copy.filters: {rule:?}: {what}"));
        let (takes, text) = match (rule.strip_prefix("+ "), rule.strip_prefix("- ")) {
            (Some(text), _) => (true, text),
            (_, Some(text)) => (false, text),
            _ => return Err(wrong("a rule is '+ pattern' or '- pattern'")),
        };
        let bytes = text.as_bytes();
        if bytes.len() > MAX_PATTERN_BYTES {
            return Err(wrong("a pattern cannot be longer than 4096 bytes"));
        }
        let anchored = bytes.strip_prefix(b"/");
        let body = anchored.unwrap_or(bytes);
        let is_folder = body.ends_with(b"/");
        let body = body.strip_suffix(b"/").unwrap_or(body);
        if body.is_empty() {
            return Err(wrong("a pattern cannot be empty"));
        }
        let scope = match anchored {
            Some(_) => Scope::Whole,
            None if body.starts_with(b"**") => Scope::Rooted,
            None if body.contains(&b'/') || has_double_star(body) => Scope::Tail,
            None => Scope::LastName,
        };
        Ok(Self {
            takes,
            pattern: Pattern::read(body),
            is_folder,
            scope,
        })
    }

    fn fits(&self, path: &[u8], is_folder: bool) -> bool {
        if self.is_folder && !is_folder {
            return false;
        }
        match self.scope {
            Scope::LastName => self.fits_text(last_name(path), is_folder),
            Scope::Whole => self.fits_text(path, is_folder),
            Scope::Rooted => self.fits_text(&[b"/", path].concat(), is_folder),
            Scope::Tail => starts(path).any(|start| self.fits_text(&path[start..], is_folder)),
        }
    }

    /// `name/***` fits the folder itself, too.
    fn fits_text(&self, text: &[u8], is_folder: bool) -> bool {
        self.pattern.fits(text)
            || (is_folder
                && self.pattern.ends_with_folder_content()
                && self.pattern.fits(&[text, b"/"].concat()))
    }
}

fn has_double_star(pattern: &[u8]) -> bool {
    pattern.windows(2).any(|two| two == b"**")
}

fn last_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Where names begin in `path`.
fn starts(path: &[u8]) -> impl Iterator<Item = usize> {
    let after = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    std::iter::once(0).chain(after.map(|(place, _)| place + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(rules: &[&str], path: &str) -> bool {
        let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
        let is_folder = path.ends_with('/');
        Filters::new(&rules)
            .unwrap()
            .takes(path.trim_end_matches('/').as_bytes(), is_folder)
    }

    fn fits(pattern: &str, path: &str) -> bool {
        !takes(&[&format!("- {pattern}")], path)
    }

    #[test]
    fn a_folder_below_one_that_is_left_out_is_not_looked_into() {
        let into = |rule: &str, path: &str| looks_into(&[rule.to_owned()], path.as_bytes()).unwrap();
        assert!(into("- /b", "a/b") && into("- c/", "a/b"));
        assert!(!into("- a", "a/b") && !into("- b/", "a/b") && !into("- /a/b", "a/b"));
        assert_eq!(
            looks_into(&["x".to_owned()], b"a").unwrap_err().kind,
            FailureKind::Spec
        );
    }

    #[test]
    fn patterns_fit_what_they_fit_in_rsync() {
        let yes = [
            ("*.o", "a/b/c.o"),
            ("foo", "a/foo"),
            ("foo", "foo/"),
            ("/foo", "foo"),
            ("foo/", "a/foo/"),
            ("/foo/*/bar", "foo/x/bar"),
            ("foo/**/bar", "a/foo/x/y/bar"),
            ("**/bar", "bar"),
            ("**bar", "x/foobar"),
            ("foo/***", "foo/"),
            ("foo/***", "foo/a/b"),
            ("/foo/***", "foo/a"),
            ("b/c", "a/b/c"),
            ("a?c", "abc"),
            ("[a-c]x", "bx"),
            ("[!a-c]x", "dx"),
            ("[[:digit:]]*", "7up"),
            ("a\\**", "a*b"),
            ("*", ".hidden"),
            ("foo**bar", "foo/x/bar"),
        ];
        for (pattern, path) in yes {
            assert!(fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn patterns_do_not_fit_what_they_do_not_fit_in_rsync() {
        let no = [
            ("*.o", "a.o/b"),
            ("/foo", "a/foo"),
            ("foo/", "a/foo"),
            ("/foo/*/bar", "foo/x/y/bar"),
            ("foo/*/bar", "foo/bar"),
            ("b/c", "a/xb/c"),
            ("a?c", "a/c"),
            ("foo", "foobar"),
            ("[a-c]x", "dx"),
            ("[!a-c]x", "ax"),
            ("a\\**", "abc"),
            ("foo/***", "afoo/x"),
        ];
        for (pattern, path) in no {
            assert!(!fits(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let rules = ["+ */", "+ *.txt", "- *"];
        assert!(takes(&rules, "a/"));
        assert!(takes(&rules, "a/b.txt"));
        assert!(!takes(&rules, "a/b.bin"));
        assert!(takes(&[], "anything"));
    }

    #[test]
    fn a_rule_that_is_none_is_named() {
        for wrong in ["*.o", "- ", "- /"] {
            let failure = Filters::new(&[wrong.to_owned()]).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Spec, "{wrong:?}");
        }
    }
}
