//! Words to lines, values to Python.

use serde_json::Value;

/// Breaks `text` into lines that start with `prefix` and are at most `width` wide where words allow.
pub fn wrap(text: &str, prefix: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let room = prefix.chars().count() + line.chars().count() + 1 + word.chars().count();
        if !line.is_empty() && room > width {
            lines.push(format!("{prefix}{line}"));
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(format!("{prefix}{line}"));
    }
    lines
}

/// First paragraph of a documentation, on one line.
pub fn first_paragraph(text: &str) -> String {
    let paragraph = text.split("\n\n").next().unwrap_or("");
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Everything behind the first paragraph of a documentation, on one line.
pub fn later_paragraphs(text: &str) -> String {
    let rest = text.split_once("\n\n").map_or("", |(_, rest)| rest);
    rest.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A string as Python writes it.
pub fn python_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// A tuple of strings as Python writes it.
pub fn python_strings<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(python_string).collect();
    match items.as_slice() {
        [only] => format!("({only},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A plain JSON value as Python writes it; lists become tuples.
pub fn python_value(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) if items.is_empty() => "()".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        assert_eq!(wrap("aa bb cc", "# ", 7), ["# aa bb", "# cc"]);
        assert_eq!(wrap("a-word-that-is-long b", "", 5), ["a-word-that-is-long", "b"]);
        assert!(wrap("", "# ", 9).is_empty());
    }

    #[test]
    fn python_reads_what_is_written() {
        assert_eq!(python_strings(["-t"]), r#"("-t",)"#);
        assert_eq!(python_strings([]), "()");
        assert_eq!(python_strings(["a", "b\"c"]), r#"("a", "b\"c")"#);
        assert_eq!(python_value(&Value::Null), "None");
        assert_eq!(python_value(&Value::from(false)), "False");
        assert_eq!(python_value(&Value::from(1.0)), "1.0");
    }

    #[test]
    fn the_first_paragraph_is_one_line() {
        assert_eq!(first_paragraph("a\nb\n\nc"), "a b");
        assert_eq!(later_paragraphs("a\nb\n\nc\n\nd"), "c d");
        assert_eq!(later_paragraphs("a\nb"), "");
    }
}
