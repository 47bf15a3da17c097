//! How source files open.

use super::Complaint;
use super::checkout::{Checkout, SourceFile};

const RULE: &str = "opening";
const LEAST: usize = 10;
const MOST: usize = 40;

/// Source files without an opening word, and rooms whose first file opens too briefly or too long.
pub fn complaints(checkout: &Checkout) -> Vec<Complaint> {
    checkout.files.iter().filter_map(of_file).collect()
}

fn of_file(file: &SourceFile) -> Option<Complaint> {
    let lines = match file.ending() {
        "rs" => rust_opening(&file.text),
        "py" => python_opening(&file.text),
        _ => return None,
    };
    let complain = |message: String| Some(Complaint::new(&file.path, 1, RULE, message));
    let is_room = is_first_file(&file.path);
    if is_room && !(LEAST..=MOST).contains(&lines) {
        return complain(format!(
            "opens with {lines} lines; a room's first file has {LEAST} to {MOST}: what it does, what it \
             must not do, what comes in, what goes out, where to start reading"
        ));
    }
    let empty = file.text.trim().is_empty();
    if lines == 0 && !empty {
        return complain("opens without saying what it is: one line of documentation will do".to_owned());
    }
    None
}

/// First file of a crate, of xtask, or of a Python room.
fn is_first_file(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["crates", _, "src", "lib.rs"]
            | ["xtask", "src", "main.rs"]
            | ["python", "farline", _, "__init__.py"]
    )
}

/// Lines of documentation at the top, attributes of the crate before it aside.
fn rust_opening(text: &str) -> usize {
    text.lines().take_while(|line| line.starts_with("//!")).count()
}

/// Lines of the docstring at the top, comments before it aside.
fn python_opening(text: &str) -> usize {
    let mut lines = text
        .lines()
        .skip_while(|line| line.starts_with('#') || line.trim().is_empty());
    let first = lines.next().unwrap_or("");
    if !first.starts_with("\"\"\"") {
        return 0;
    }
    if first.len() > 3 && first.trim_end().ends_with("\"\"\"") {
        return 1;
    }
    let rest = lines.take_while(|line| !line.contains("\"\"\"")).count();
    // The closing quotes stand on a line of their own.
    rest + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complains(path: &str, text: &str) -> bool {
        !complaints(&Checkout::of(&[(path, text)])).is_empty()
    }

    #[test]
    fn a_room_opens_with_ten_to_forty_lines() {
        for (lines, wrong) in [(9, true), (10, false), (40, false), (41, true)] {
            let text = "//! word\n".repeat(lines) + "\nmod a;\n";
            assert_eq!(complains("crates/spec/src/lib.rs", &text), wrong, "{lines}");
            let text = format!("\"\"\"word\n{}\"\"\"\n", "word\n".repeat(lines - 1));
            assert_eq!(
                complains("python/farline/store/__init__.py", &text),
                wrong,
                "{lines}"
            );
        }
    }

    #[test]
    fn every_other_file_says_what_it_is() {
        assert!(complains("crates/spec/src/a.rs", "fn a() {}\n"));
        assert!(!complains("crates/spec/src/a.rs", "//! What it is.\nfn a() {}\n"));
        assert!(complains("tests/unit/test_a.py", "import b\n"));
        assert!(!complains(
            "tests/unit/test_a.py",
            "\"\"\"What it is.\"\"\"\nimport b\n"
        ));
        assert!(!complains("tests/unit/__init__.py", ""));
    }
}
