//! Names as text: see the head of `spec::copy`.

use std::fmt;

use farline_spec::{Failure, FailureKind, PathText, is_plain, plain_line};

/// A name that is turned to text where it is shown, and only then.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(pub &'a [u8]);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&to_text(self.0))
    }
}

/// What the other end or the kernel said as one line of bearable length without control characters.
pub fn one_line(text: &str) -> String {
    const MOST_BYTES: usize = 1_000;
    let mut line = plain_line(text, MOST_BYTES);
    line.truncate(line.trim_end().len());
    line
}

/// `path` as text that is UTF-8, fits one line, and can be turned back.
pub fn to_text(path: &[u8]) -> PathText {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                letter if !is_plain(letter) => {
                    let mut bytes = [0; 4];
                    letter
                        .encode_utf8(&mut bytes)
                        .bytes()
                        .for_each(|byte| push_byte(&mut text, byte));
                }
                letter => text.push(letter),
            }
        }
        chunk
            .invalid()
            .iter()
            .for_each(|&byte| push_byte(&mut text, byte));
    }
    text
}

fn push_byte(text: &mut String, byte: u8) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    text.push_str("\\x");
    text.push(DIGITS[usize::from(byte >> 4)].into());
    text.push(DIGITS[usize::from(byte & 15)].into());
}

/// The bytes that `text` stands for.
///
/// # Errors
/// [`FailureKind::Spec`] for a backslash that is followed by neither `\` nor `xNN`, and for a zero byte.
pub fn to_bytes(text: &str) -> Result<Vec<u8>, Failure> {
    let wrong = || {
        Failure::new(
            FailureKind::Spec,
            format!(
                "path {text:?}: a backslash must be followed by a backslash or xNN, and a zero byte is not allowed"
            ),
        )
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, left) = match (first, after) {
            (b'\\', [b'\\', left @ ..]) => (b'\\', left),
            (b'\\', [b'x', high, low, left @ ..]) => {
                let digit = |digit: u8| char::from(digit).to_digit(16).ok_or_else(wrong);
                ((digit(*high)? << 4 | digit(*low)?) as u8, left)
            }
            (b'\\', _) => return Err(wrong()),
            (byte, left) => (byte, left),
        };
        if byte == 0 {
            return Err(wrong());
        }
        bytes.push(byte);
        rest = left;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_terminal_or_a_document_cannot_bear_is_written_out() {
        assert_eq!(to_text(b"a b/\xc3\xbc"), "a b/ü");
        assert_eq!(to_text(b"a\n\\\xff"), "a\\x0a\\\\\\xff");
        assert_eq!(to_text("a\u{202e}b".as_bytes()), "a\\xe2\\x80\\xaeb");
        for wrong in ["\\", "\\a", "\\x0", "\\xzz", "\\x00", "a\0"] {
            assert!(to_bytes(wrong).is_err(), "{wrong:?}");
        }
    }

    proptest! {
        #[test]
        fn text_can_be_turned_back(bytes in prop::collection::vec(1u8.., 0..60)) {
            let text = to_text(&bytes);
            prop_assert!(text.chars().all(is_plain));
            prop_assert_eq!(to_bytes(&text).unwrap(), bytes);
        }
    }
}
