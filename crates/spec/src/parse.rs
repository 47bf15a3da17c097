//! From JSON text to a valid value, or one line that says what was wrong and where.

use serde::de::DeserializeOwned;

use crate::{Failure, FailureKind};

/// Reads `text` as a `T`.
///
/// # Errors
/// [`FailureKind::Spec`] with the path of the offending field and, by the
/// types' own refusals, the allowed range or the list of valid words.
pub fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let reason = strip_position(&error.inner().to_string());
        let place = if path == "." {
            String::new()
        } else {
            format!("{path}: ")
        };
        Failure::new(FailureKind::Spec, format!("{place}{reason}"))
    })?;
    reader
        .end()
        .map_err(|error| Failure::new(FailureKind::Spec, format!("after the document: {error}")))?;
    Ok(value)
}

/// Line and column mean nothing to someone who typed options.
fn strip_position(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(cut) => message[..cut].to_owned(),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSpec;

    #[test]
    fn unknown_keys_are_named_with_the_valid_ones() {
        let message = from_json::<RunSpec>(r#"{"transport":"tcp","strems":4}"#)
            .unwrap_err()
            .message;
        assert!(message.contains("unknown field `strems`"), "{message}");
        assert!(message.contains("`streams`"), "{message}");
    }

    #[test]
    fn ranges_are_named_with_the_place() {
        let message = from_json::<RunSpec>(r#"{"transport":"tcp","tcp":{"mss_bytes":7}}"#)
            .unwrap_err()
            .message;
        assert_eq!(
            message,
            "tcp.mss_bytes: 7 is out of range; allowed: 88 to 32767 bytes"
        );
    }

    #[test]
    fn words_are_listed() {
        let message = from_json::<RunSpec>(r#"{"transport":"sctp"}"#)
            .unwrap_err()
            .message;
        assert!(
            message.contains("expected one of `tcp`, `udp`, `udt`, `rbudp`, `quic`, `null`"),
            "{message}"
        );
    }

    #[test]
    fn trailing_text_is_refused() {
        assert!(from_json::<RunSpec>(r#"{"transport":"tcp"} x"#).is_err());
    }
}
