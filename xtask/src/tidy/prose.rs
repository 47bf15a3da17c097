//! What any text of the project may contain.

use super::Complaint;
use super::checkout::{Checkout, SourceFile};

/// Trailing blanks, missing last line breaks, emoji and registry hosts.
pub fn complaints(checkout: &Checkout) -> Vec<Complaint> {
    checkout.files.iter().flat_map(of_file).collect()
}

fn of_file(file: &SourceFile) -> Vec<Complaint> {
    let hosts = registry_hosts();
    let mut found = Vec::new();
    // Captured output of other programs and snapshots stay as they came.
    let as_it_came = file.path.starts_with("tests/data/") || file.ending() == "snap";
    if !as_it_came && !file.text.is_empty() && !file.text.ends_with('\n') {
        let line = file.text.lines().count();
        found.push(Complaint::new(
            &file.path,
            line,
            "blanks",
            "the last line does not end".to_owned(),
        ));
    }
    for (index, line) in file.text.split('\n').enumerate() {
        let mut complain =
            |rule, message: String| found.push(Complaint::new(&file.path, index + 1, rule, message));
        if !as_it_came && line.ends_with([' ', '\t', '\r']) {
            complain("blanks", "blanks at the end of the line".to_owned());
        }
        if let Some(c) = line.chars().find(|c| is_emoji(*c)) {
            complain(
                "emoji",
                format!("U+{:04X} is a picture: write a word", u32::from(c)),
            );
        }
        if let Some(host) = hosts.iter().find(|host| line.contains(host.as_str())) {
            complain("registry-host", format!("{host} is a registry: name none"));
        }
    }
    found
}

fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x2600..=0x27BF | 0x2B50..=0x2B55 | 0xFE0F | 0x1F000..=0x1FAFF)
}

/// Put together here, so that this file does not name them either.
fn registry_hosts() -> Vec<String> {
    [
        ("py", "pi.org"),
        ("python", "hosted.org"),
        ("crates", ".io"),
        ("npm", "js.org"),
        ("npm", "js.com"),
        ("anaconda", ".org"),
    ]
    .map(|(start, end)| format!("{start}{end}"))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        complaints(&Checkout::of(&[(path, text)]))
            .into_iter()
            .map(|complaint| complaint.rule)
            .collect()
    }

    #[test]
    fn blanks_at_the_end_are_found() {
        assert_eq!(rules("a.md", "a \nb\t\nc\r\nd"), ["blanks"; 4]);
        assert!(rules("a.md", "a\nb\n").is_empty());
        assert!(rules("tests/data/a.txt", "a \nb").is_empty());
    }

    #[test]
    fn pictures_are_found_and_arrows_are_not() {
        assert_eq!(rules("a.md", "\u{1F680}\n"), ["emoji"]);
        assert_eq!(rules("a.md", "\u{2705}\n"), ["emoji"]);
        assert!(rules("a.md", "a \u{2192} b \u{25BA} c \u{2212}1\n").is_empty());
    }

    #[test]
    fn registries_are_found() {
        for host in registry_hosts() {
            assert_eq!(
                rules("a.toml", &format!("url = \"https://{host}/x\"\n")),
                ["registry-host"]
            );
        }
    }
}
