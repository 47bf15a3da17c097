//! Names that are one at a destination which does not tell them apart: by case, by Unicode form, by dots at their end.

use unicode_normalization::UnicodeNormalization;

/// What a destination does not tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fold {
    /// Capital and small letters.
    pub case: bool,
    /// Composed and decomposed letters (NFC and NFD).
    pub forms: bool,
    /// Names with and without dots or spaces at their end.
    pub dots: bool,
}

impl Fold {
    /// Every name is one of its own.
    pub const NOTHING: Self = Self {
        case: false,
        forms: false,
        dots: false,
    };

    /// What a destination does not tell apart that has a file of the name `name`, and where `has` says so one of another name.
    pub fn looked(name: &str, has: impl Fn(&str) -> bool) -> Self {
        let is_same = |other: String| other != name && has(&other);
        Self {
            case: is_same(name.to_ascii_uppercase()) || is_same(name.to_ascii_lowercase()),
            forms: is_same(name.nfd().collect()) || is_same(name.nfc().collect()),
            dots: is_same(format!("{name}.")),
        }
    }

    /// What either does not tell apart.
    pub const fn or(self, other: Self) -> Self {
        Self {
            case: self.case || other.case,
            forms: self.forms || other.forms,
            dots: self.dots || other.dots,
        }
    }

    /// What paths have in common that are one; `None` where every path is one of its own.
    pub fn key(self, path: &[u8]) -> Option<Vec<u8>> {
        if self == Self::NOTHING {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_only_by_what_the_file_system_does_not_tell_apart() {
        let key = |fold: Fold, path: &str| fold.key(path.as_bytes());
        assert_eq!(key(Fold::NOTHING, "A"), None);
        let [case, forms, dots] = [0, 1, 2].map(|which| Fold {
            case: which == 0,
            forms: which == 1,
            dots: which == 2,
        });
        assert_eq!(key(case, "Dir/\u{c9}"), key(case, "dir/\u{e9}"));
        assert_ne!(key(case, "\u{e9}"), key(case, "e\u{301}"));
        assert_eq!(key(forms, "\u{e9}"), key(forms, "e\u{301}"));
        assert_ne!(key(forms, "A"), key(forms, "a"));
        assert_eq!(key(dots, "a./b. "), key(dots, "a/b"));
        assert_eq!(case.key(b"\xff"), Some(b"\xff".to_vec()));
    }

    #[test]
    fn what_is_not_told_apart_is_seen_by_other_names_of_one_file() {
        let all = Fold {
            case: true,
            forms: true,
            dots: true,
        };
        assert_eq!(Fold::looked("caf\u{e9}", |_| true), all);
        assert_eq!(Fold::looked("caf\u{e9}", |_| false), Fold::NOTHING);
        let case = Fold::looked("caf\u{e9}", |name| name == "CAF\u{e9}");
        assert_eq!(
            case.or(Fold::NOTHING),
            Fold {
                case: true,
                ..Fold::NOTHING
            }
        );
        // A name without letters has no other.
        assert_eq!(Fold::looked("1", |name| !name.ends_with('.')), Fold::NOTHING);
    }
}
