//! One pattern: `*` and `?` within a name, `**` across names, `[..]` one of a set, `\` takes the next as it is.
//!
//! Matched as a set of places in the pattern that moves over the text, so that no pattern takes longer than its length
//! times the text's: patterns come from the other end too.

/// A pattern taken apart.
#[derive(Debug)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    ends_with_folder_content: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    Byte(u8),
    /// `?`: any byte but `/`.
    One,
    /// `*`: any bytes but `/`.
    Name,
    /// `**`: any bytes.
    Any,
    /// `[..]`: one byte of a set, never `/`.
    Set(Box<[bool; 256]>),
}

impl Part {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::One | Self::Name => byte != b'/',
            Self::Any => true,
            Self::Set(set) => set[usize::from(byte)],
        }
    }

    const fn repeats(&self) -> bool {
        matches!(self, Self::Name | Self::Any)
    }
}

impl Pattern {
    /// Takes `text` apart. A `[` that nothing closes is a `[`; without wildcards a `\` is a `\`, as in rsync.
    pub(crate) fn read(text: &[u8]) -> Self {
        let is_plain = !text.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['));
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            let part = match byte {
                _ if is_plain => Part::Byte(byte),
                b'\\' if !after.is_empty() => {
                    rest = &after[1..];
                    Part::Byte(after[0])
                }
                b'?' => Part::One,
                b'*' => {
                    let more = after.iter().take_while(|byte| **byte == b'*').count();
                    rest = &after[more..];
                    if more > 0 { Part::Any } else { Part::Name }
                }
                b'[' => match set(after) {
                    Some((set, left)) => {
                        rest = left;
                        Part::Set(set)
                    }
                    None => Part::Byte(byte),
                },
                byte => Part::Byte(byte),
            };
            parts.push(part);
        }
        Self {
            parts,
            ends_with_folder_content: text.ends_with(b"/***"),
        }
    }

    /// Whether it is `…/***`, which fits a folder and all that is in it.
    pub(super) const fn ends_with_folder_content(&self) -> bool {
        self.ends_with_folder_content
    }

    /// Whether all of `text` fits.
    pub(crate) fn fits(&self, text: &[u8]) -> bool {
        let mut places = vec![false; self.parts.len() + 1];
        places[0] = true;
        self.skip_repeats(&mut places);
        for &byte in text {
            let mut next = vec![false; places.len()];
            let live = self.parts.iter().enumerate().filter(|(place, _)| places[*place]);
            for (place, part) in live.filter(|(_, part)| part.takes(byte)) {
                next[if part.repeats() { place } else { place + 1 }] = true;
            }
            if !next.contains(&true) {
                return false;
            }
            self.skip_repeats(&mut next);
            places = next;
        }
        places.last() == Some(&true)
    }

    /// What may repeat may also not be there at all.
    fn skip_repeats(&self, places: &mut [bool]) {
        for (place, part) in self.parts.iter().enumerate() {
            if places[place] && part.repeats() {
                places[place + 1] = true;
            }
        }
    }
}

/// The set that `text` begins with, after its `[`, and what follows its `]`.
fn set(text: &[u8]) -> Option<(Box<[bool; 256]>, &[u8])> {
    let is_negated = matches!(text.first(), Some(b'!' | b'^'));
    let mut rest = if is_negated { &text[1..] } else { text };
    let mut set = Box::new([false; 256]);
    let mut is_first = true;
    loop {
        let (&byte, after) = rest.split_first()?;
        if byte == b']' && !is_first {
            if is_negated {
                set.iter_mut().for_each(|takes| *takes = !*takes);
            }
            set[usize::from(b'/')] = false;
            return Some((set, after));
        }
        is_first = false;
        rest = match class(rest) {
            Some((class, after)) => {
                (0..=255).for_each(|byte: u8| set[usize::from(byte)] |= class(byte));
                after
            }
            None => range(&mut set, rest)?,
        };
    }
}

/// Takes `a` or `a-z` into the set; gives what follows.
fn range<'a>(set: &mut [bool; 256], text: &'a [u8]) -> Option<&'a [u8]> {
    let (low, after) = member(text)?;
    let (high, after) = match after {
        [b'-', next, ..] if *next != b']' => member(&after[1..])?,
        _ => (low, after),
    };
    (low..=high).for_each(|byte| set[usize::from(byte)] = true);
    Some(after)
}

fn member(text: &[u8]) -> Option<(u8, &[u8])> {
    match text {
        [b'\\', byte, after @ ..] | [byte, after @ ..] => Some((*byte, after)),
        [] => None,
    }
}

/// Whether a byte is in a class.
type IsIn = fn(u8) -> bool;

/// `[:alpha:]` and its like.
fn class(text: &[u8]) -> Option<(IsIn, &[u8])> {
    let inner = text.strip_prefix(b"[:")?;
    let end = inner.windows(2).position(|two| two == b":]")?;
    let class: IsIn = match &inner[..end] {
        b"alpha" => |byte| byte.is_ascii_alphabetic(),
        b"digit" => |byte| byte.is_ascii_digit(),
        b"alnum" => |byte| byte.is_ascii_alphanumeric(),
        b"upper" => |byte| byte.is_ascii_uppercase(),
        b"lower" => |byte| byte.is_ascii_lowercase(),
        b"space" => |byte| byte.is_ascii_whitespace() || byte == 0x0b,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"punct" => |byte| byte.is_ascii_punctuation(),
        b"xdigit" => |byte| byte.is_ascii_hexdigit(),
        b"cntrl" => |byte| byte.is_ascii_control(),
        b"graph" => |byte| byte.is_ascii_graphic(),
        b"print" => |byte| byte.is_ascii_graphic() || byte == b' ',
        _ => return None,
    };
    Some((class, &inner[end + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The meaning of a pattern of `*`, `**`, `?` and bytes, by trying everything.
    fn slowly(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', b'*', rest @ ..] => {
                slowly(rest, text) || (!text.is_empty() && slowly(pattern, &text[1..]))
            }
            [b'*', rest @ ..] => {
                slowly(rest, text)
                    || (text.first().is_some_and(|byte| *byte != b'/') && slowly(pattern, &text[1..]))
            }
            [b'?', rest @ ..] => text.first().is_some_and(|byte| *byte != b'/') && slowly(rest, &text[1..]),
            [byte, rest @ ..] => text.first() == Some(byte) && slowly(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn matching_is_what_trying_everything_says(pattern in "[ab/?]{0,3}(\\*{0,2}[ab/?]{1,2}){0,3}", text in "[ab/]{0,9}") {
            let found = Pattern::read(pattern.as_bytes()).fits(text.as_bytes());
            prop_assert_eq!(found, slowly(pattern.as_bytes(), text.as_bytes()));
        }

        #[test]
        fn no_pattern_panics(pattern in prop::collection::vec(any::<u8>(), 0..40), text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = Pattern::read(&pattern).fits(&text);
        }
    }

    #[test]
    fn what_nothing_closes_is_itself() {
        assert!(Pattern::read(b"[ab").fits(b"[ab"));
        assert!(Pattern::read(b"[]a]").fits(b"]"));
        assert!(Pattern::read(b"[a-]").fits(b"-"));
        assert!(Pattern::read(b"a\\").fits(b"a\\"));
    }
}
