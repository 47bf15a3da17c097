//! One line of the log: what it says, as text and as JSON.

use std::fmt::Write;
use std::time::SystemTime;

use farline_spec::is_plain;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::macros::format_description;

/// Fields that name what a line is about; they come first, in this order.
pub const IDS: [&str; 3] = ["session", "stream", "entry"];

/// Form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `2026-01-31T12:00:00.000000Z INFO session: message session=... bytes=7`
    Text,
    /// One JSON object.
    Json,
}

/// What one line says.
#[derive(Debug)]
pub struct Line {
    at: SystemTime,
    /// In capitals, as `tracing` has it.
    level: String,
    room: String,
    message: String,
    fields: Map<String, Value>,
}

impl Line {
    /// A line of the room `room`.
    pub fn new(
        at: SystemTime,
        level: &str,
        room: &str,
        message: String,
        mut fields: Map<String, Value>,
    ) -> Self {
        for (_, value) in &mut fields {
            if let Value::String(text) = value {
                hide_tickets(text);
            }
        }
        let mut line = Self {
            at,
            level: level.to_ascii_uppercase(),
            room: room.to_owned(),
            message,
            fields,
        };
        hide_tickets(&mut line.message);
        line
    }

    /// The line with its line break; no other is in it, nor anything that a terminal would obey.
    pub fn to_text(&self, format: Format) -> String {
        let mut text = match format {
            Format::Text => self.words(),
            Format::Json => self.json(),
        };
        text.push('\n');
        text
    }

    fn words(&self) -> String {
        let time = rfc3339(self.at);
        let mut text = format!("{time} {} {}: ", self.level, self.room);
        push_plain(&mut text, &self.message);
        for (name, value) in self.ids().chain(self.others()) {
            text.push(' ');
            text.push_str(name);
            text.push('=');
            push_value(&mut text, value);
        }
        text
    }

    fn json(&self) -> String {
        let mut object = Map::new();
        object.insert("time".into(), rfc3339(self.at).into());
        object.insert("level".into(), self.level.to_ascii_lowercase().into());
        object.insert("target".into(), self.room.as_str().into());
        object.insert("message".into(), self.message.as_str().into());
        object.extend(self.ids().map(|(name, value)| (name.clone(), value.clone())));
        let others: Map<_, _> = self
            .others()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !others.is_empty() {
            object.insert("fields".into(), Value::Object(others));
        }
        plain_json(&Value::Object(object).to_string())
    }

    fn ids(&self) -> impl Iterator<Item = (&String, &Value)> {
        IDS.iter().filter_map(|name| self.fields.get_key_value(*name))
    }

    fn others(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.fields
            .iter()
            .filter(|(name, _)| !IDS.contains(&name.as_str()))
    }
}

/// The line that says how many lines are missing before it.
pub fn lost(count: u64, why: &str) -> Line {
    let fields = Map::from_iter([
        ("lines".to_owned(), count.into()),
        ("reason".to_owned(), why.into()),
    ]);
    Line::new(SystemTime::now(), "warn", "logs", "lines lost".to_owned(), fields)
}

/// Rooms do not say tickets; a user's own text that they quote may have one (`farline://HOST/TICKET`), which is as good as a
/// password.
fn hide_tickets(text: &mut String) {
    const SCHEME: &str = "farline://";
    let mut from = 0;
    while let Some(found) = text[from..].find(SCHEME) {
        let host = from + found + SCHEME.len();
        let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '#' | '?');
        let end = text[host..]
            .find(is_end)
            .map_or(text.len(), |length| host + length);
        from = end;
        if let Some(slash) = text[host..end].find('/') {
            let ticket = host + slash + 1;
            text.replace_range(ticket..end, "...");
            from = ticket + "...".len();
        }
    }
}

/// A field's value: bare where it is one word, else quoted as in JSON.
fn push_value(text: &mut String, value: &Value) {
    match value {
        Value::String(word) if is_bare(word) => push_plain(text, word),
        other => text.push_str(&plain_json(&other.to_string())),
    }
}

fn is_bare(word: &str) -> bool {
    let is_odd = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '=') || !is_plain(letter);
    !word.is_empty() && !word.contains(is_odd)
}

/// Text outside of quotes: what is not plain is written as JSON escapes it.
fn push_plain(text: &mut String, part: &str) {
    for letter in part.chars() {
        push_letter(text, letter);
    }
}

/// JSON text of which nothing but plain letters is left; they stand in strings alone, so it means the same.
fn plain_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    push_plain(&mut text, json);
    text
}

fn push_letter(text: &mut String, letter: char) {
    if is_plain(letter) {
        text.push(letter);
        return;
    }
    for unit in letter.encode_utf16(&mut [0; 2]) {
        // Writing to a string does not fail.
        let _ = write!(text, "\\u{unit:04x}");
    }
}

/// A time in UTC to the microsecond.
fn rfc3339(at: SystemTime) -> String {
    const FORM: &[time::format_description::BorrowedFormatItem<'_>] =
        format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    OffsetDateTime::from(at).format(FORM).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    fn line(message: &str, fields: Value) -> Line {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_767_225_600_000_007);
        let Value::Object(fields) = fields else {
            panic!("{fields}")
        };
        Line::new(at, "debug", "mover", message.to_owned(), fields)
    }

    #[test]
    fn text_has_time_level_room_message_ids_and_fields() {
        let line = line(
            "entry failed",
            json!({"reason": "No space left", "bytes": 7, "entry": "a b", "stream": 2, "session": "0a", "kept": "a/b"}),
        );
        assert_eq!(
            line.to_text(Format::Text),
            "2026-01-01T00:00:00.000007Z DEBUG mover: entry failed session=0a stream=2 entry=\"a b\" \
             reason=\"No space left\" bytes=7 kept=a/b\n"
        );
    }

    #[test]
    fn json_has_the_same_with_ids_beside_the_message() {
        let line = line("named", json!({"bytes": 7, "entry": "a", "stream": 2}));
        assert_eq!(
            line.to_text(Format::Json),
            "{\"time\":\"2026-01-01T00:00:00.000007Z\",\"level\":\"debug\",\"target\":\"mover\",\
             \"message\":\"named\",\"stream\":2,\"entry\":\"a\",\"fields\":{\"bytes\":7}}\n"
        );
        let bare = super::tests::line("x", json!({})).to_text(Format::Json);
        assert!(!bare.contains("fields"), "{bare}");
    }

    #[test]
    fn a_ticket_in_a_text_is_hidden_and_its_host_is_not() {
        let secret = "farline://h:1/c2VjcmV0?key=sha256-x and 'farline://[::1]:2/more' farline://bare";
        let text = line(secret, json!({"reason": secret, "bytes": 1})).to_text(Format::Text);
        assert!(!text.contains("c2VjcmV0") && !text.contains("more"), "{text}");
        let shown = "farline://h:1/...?key=sha256-x and 'farline://[::1]:2/...' farline://bare";
        assert_eq!(text.matches(shown).count(), 2, "{text}");
    }

    #[test]
    fn what_a_terminal_obeys_or_ends_a_line_is_written_out() {
        let wild = "a\n\u{1b}[31m\u{9b}\u{202e}\u{e0041}b";
        for format in [Format::Text, Format::Json] {
            let text = line(wild, json!({"reason": wild, "entry": wild})).to_text(format);
            let (body, end) = text.split_at(text.len() - 1);
            assert!(body.chars().all(is_plain) && end == "\n", "{text:?}");
        }
        let text = line(wild, json!({"reason": wild})).to_text(Format::Json);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&read["message"], &read["fields"]["reason"]),
            (&json!(wild), &json!(wild))
        );
    }
}
