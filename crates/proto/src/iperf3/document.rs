//! What comes over the control connection: words, and documents behind some of them.

use serde_json::Value;

use super::word::ErrorCode;

/// Longest parameters; iperf3 takes as much from 3.18 on.
pub const MAX_PARAMETERS: usize = 8 * 1024;
/// Longest results: those of 128 streams each way, and the text of a server that says what it measured.
pub const MAX_RESULTS: usize = 4 * 1024 * 1024;
const LENGTH_BYTES: usize = 4;

/// A document as it is sent: its length in four bytes, the highest first, and its text.
pub fn frame(document: &Value) -> Vec<u8> {
    let text = document.to_string();
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

/// Bytes that have come and were not looked at yet; never more than the document that is allowed next.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: Vec<u8>,
}

impl Inbox {
    /// Keeps what came; false if that is more than a document of `most` bytes and a few words.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8], most: usize) -> bool {
        let fits = self.bytes.len() + bytes.len() <= most + 64;
        if fits {
            self.bytes.extend_from_slice(bytes);
        }
        fits
    }

    /// The next `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = *self.bytes.first_chunk::<N>()?;
        self.bytes.drain(..N);
        Some(taken)
    }

    /// The next document of at most `most` bytes, once it is whole.
    ///
    /// # Errors
    /// `code` for one that is empty, too long or no JSON object.
    pub fn document(&mut self, most: usize, code: ErrorCode) -> Result<Option<Value>, ErrorCode> {
        let Some(length) = self.bytes.first_chunk::<LENGTH_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length == 0 || length > most {
            return Err(code);
        }
        let Some(text) = self.bytes.get(LENGTH_BYTES..LENGTH_BYTES + length) else {
            return Ok(None);
        };
        let document = read(text).ok_or(code)?;
        self.bytes.drain(..LENGTH_BYTES + length);
        Ok(Some(document))
    }
}

/// Titles may be of any encoding, which iperf3 passes on: what is no UTF-8 is replaced.
fn read(text: &[u8]) -> Option<Value> {
    serde_json::from_str::<Value>(&String::from_utf8_lossy(text))
        .ok()
        .filter(Value::is_object)
}

/// A count under `name`: numbers as iperf3 writes them, with a point or an exponent if they are large. What is negative or none
/// is 0, what is too large the largest there is, as iperf3 reads them.
pub(super) fn count(document: &Value, name: &str) -> u64 {
    let number = document.get(name);
    number.and_then(Value::as_u64).unwrap_or_else(|| {
        // `as` goes to the nearest that there is.
        number.and_then(Value::as_f64).map_or(0, |number| number as u64)
    })
}

/// As [`count`], negative ones too; `None` if there is no number.
pub(super) fn signed(document: &Value, name: &str) -> Option<i64> {
    let number = document.get(name)?;
    number
        .as_i64()
        .or_else(|| number.as_f64().map(|number| number as i64))
}

/// A number under `name`, if there is one and it is finite.
pub(super) fn real(document: &Value, name: &str) -> Option<f64> {
    document.get(name)?.as_f64().filter(|number| number.is_finite())
}

/// Text under `name`, up to `most` characters of it.
pub(super) fn text(document: &Value, name: &str, most: usize) -> Option<String> {
    let text = document.get(name)?.as_str()?;
    Some(text.chars().take(most).collect())
}

/// Whether `name` stands there as true, or as a number that is not 0.
pub(super) fn flag(document: &Value, name: &str) -> bool {
    document.get(name).and_then(Value::as_bool) == Some(true) || count(document, name) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_of_another_encoding_is_no_reason_to_refuse_a_client() {
        let text = b"{\"title\":\"caf\xe9\",\"time\":1}";
        let mut inbox = Inbox::default();
        assert!(inbox.push(&u32::try_from(text.len()).unwrap().to_be_bytes(), MAX_PARAMETERS));
        assert!(inbox.push(text, MAX_PARAMETERS));
        let document = inbox
            .document(MAX_PARAMETERS, ErrorCode::PARAMETERS)
            .unwrap()
            .unwrap();
        assert_eq!(
            super::text(&document, "title", 256).as_deref(),
            Some("caf\u{fffd}")
        );
        assert_eq!(count(&document, "time"), 1);
    }
}
