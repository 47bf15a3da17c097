//! Names that are one at a destination which does not tell them apart: by case, by Unicode form, by dots at their end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_sys::file::{self, OpenFlags};
use unicode_normalization::UnicodeNormalization;

/// Names that are looked at where nothing may be made.
const MOST_NAMES: usize = 64;

/// What a destination does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fold {
    case: bool,
    forms: bool,
    dots: bool,
}

impl Fold {
    /// Every name is one of its own.
    pub const NOTHING: Self = Self {
        case: false,
        forms: false,
        dots: false,
    };

    /// By trying it in `folder`, which may be written to and has a file `name`, in small letters.
    pub fn tried(folder: BorrowedFd<'_>, name: &[u8]) -> Self {
        let has = |name: &[u8]| file::stat_at(Some(folder), name, false).is_ok();
        Self {
            case: has(&name.to_ascii_uppercase()),
            forms: tried_forms(folder).unwrap_or(false),
            dots: has(&[name, b"."].concat()),
        }
    }

    /// By looking up what is in `folder` under other names.
    pub fn looked(folder: BorrowedFd<'_>) -> Self {
        let has = |name: &str| file::stat_at(Some(folder), name.as_bytes(), false).is_ok();
        let mut fold = Self::default();
        let Ok(listed) = file::list(folder) else {
            return fold;
        };
        let names: Vec<String> = listed
            .take(MOST_NAMES)
            .flatten()
            .filter_map(|listed| String::from_utf8(listed.name).ok())
            .collect();
        // Another name that is listed too is another file.
        let is_same = |other: String, name: &String| other != *name && !names.contains(&other) && has(&other);
        for name in &names {
            fold.case |= is_same(name.to_ascii_uppercase(), name) || is_same(name.to_ascii_lowercase(), name);
            fold.forms |= is_same(name.nfd().collect(), name) || is_same(name.nfc().collect(), name);
            fold.dots |= is_same(format!("{name}."), name);
        }
        fold
    }

    /// What paths have in common that are one; `None` where every path is one of its own.
    pub fn key(self, path: &[u8]) -> Option<Vec<u8>> {
        if self == Self::default() {
            return None;
        }
        let Ok(text) = std::str::from_utf8(path) else {
            return Some(path.to_vec());
        };
        let mut text = match self.forms {
            true => text.nfd().collect(),
            false => text.to_owned(),
        };
        if self.case {
            text = text.to_lowercase();
        }
        if self.dots {
            let names = text.split('/').map(|name| name.trim_end_matches(['.', ' ']));
            text = names.collect::<Vec<_>>().join("/");
        }
        Some(text.into_bytes())
    }
}

fn tried_forms(folder: BorrowedFd<'_>) -> io::Result<bool> {
    const COMPOSED: &str = "\u{e9}.new";
    const DECOMPOSED: &str = "e\u{301}.new";
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::NO_FOLLOW;
    drop(file::open_beneath(folder, COMPOSED.as_bytes(), flags, 0o600)?);
    let is_one = file::stat_at(Some(folder), DECOMPOSED.as_bytes(), false).is_ok();
    file::unlink(folder.as_fd(), COMPOSED.as_bytes())?;
    Ok(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_only_by_what_the_file_system_does_not_tell_apart() {
        let key = |fold: Fold, path: &str| fold.key(path.as_bytes());
        assert_eq!(key(Fold::default(), "A"), None);
        let case = Fold {
            case: true,
            ..Fold::default()
        };
        assert_eq!(key(case, "Dir/\u{c9}"), key(case, "dir/\u{e9}"));
        assert_ne!(key(case, "\u{e9}"), key(case, "e\u{301}"));
        let forms = Fold {
            forms: true,
            ..Fold::default()
        };
        assert_eq!(key(forms, "\u{e9}"), key(forms, "e\u{301}"));
        assert_ne!(key(forms, "A"), key(forms, "a"));
        let dots = Fold {
            dots: true,
            ..Fold::default()
        };
        assert_eq!(key(dots, "a./b. "), key(dots, "a/b"));
        assert_eq!(case.key(b"\xff"), Some(b"\xff".to_vec()));
    }

    #[test]
    fn a_file_system_of_this_machine_tells_all_names_apart() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("name"), "").unwrap();
        let folder = std::fs::File::open(place.path()).unwrap();
        assert_eq!(Fold::tried(folder.as_fd(), b"name"), Fold::default());
        assert_eq!(Fold::looked(folder.as_fd()), Fold::default());
    }
}
