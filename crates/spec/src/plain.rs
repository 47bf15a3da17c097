//! Text of somebody else made fit for a terminal, a log and a page: one line without anything that moves, hides or turns it.

/// Whether `letter` shows as itself and nothing more: no control character (C0, C1, a line break), no letter that turns the
/// direction of its neighbours, none that cannot be seen or ends a line in some readers.
pub const fn is_plain(letter: char) -> bool {
    !matches!(letter,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// `text` as one plain line of at most `most_bytes` bytes: what is not plain becomes a space, what is too long is cut.
pub fn plain_line(text: &str, most_bytes: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most_bytes));
    for letter in text.chars() {
        let letter = if is_plain(letter) { letter } else { ' ' };
        if line.len() + letter.len_utf8() > most_bytes {
            break;
        }
        line.push(letter);
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_hides_or_turns_text_becomes_a_space() {
        for wild in [
            '\u{1b}',
            '\r',
            '\n',
            '\t',
            '\u{7}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{200b}',
            '\u{2028}',
            '\u{202a}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            assert_eq!(plain_line(&format!("a{wild}b"), 100), "a b", "{wild:?}");
        }
        for fine in ["ü", "日本", "a b", "\u{1f600}", "می\u{200c}خواهم", "[red]", "…"] {
            assert_eq!(plain_line(fine, 100), fine);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_between_letters() {
        assert_eq!(plain_line(&"ü".repeat(9), 5), "üü");
        assert_eq!(plain_line("", 5), "");
    }
}
