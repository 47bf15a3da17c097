//! What went wrong, and whose fault it is.
//!
//! ```text
//! caller    usage  spec  limit  interrupted   the one who asked
//! peer      auth   busy  version  protocol    the other end
//! path      unreachable  timeout              what lies between
//! system    system                            this machine: kernel, disk, memory
//! internal  internal                          farline itself: a defect
//! ```
//!
//! Each kind is one exception class in Python, one exit code and one retry
//! decision; the Python tables are generated from here.

use std::any::Any;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plain::{is_plain, plain_line};

/// Who has to act on a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The one who asked.
    Caller,
    /// The other end.
    Peer,
    /// What lies between the two ends.
    Path,
    /// This machine: kernel, disk, memory, permissions.
    System,
    /// farline itself.
    Internal,
}

/// Kind of a failure: one exception, one exit code, one retry decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailureKind {
    /// The command was put together wrongly.
    Usage,
    /// A value or a document is not allowed.
    Spec,
    /// More was asked for than the other side's limits allow.
    Limit,
    /// Someone stopped the run.
    Interrupted,
    /// No ticket, or one that is wrong, expired or out of scope; or a server key that is not the pinned one.
    Auth,
    /// The server has no room now.
    Busy,
    /// The two ends have no protocol version in common.
    Version,
    /// The other end broke the protocol, vanished inside it or failed by itself.
    Protocol,
    /// No way to the other end: name, route, port.
    Unreachable,
    /// Nothing came in the time allowed.
    Timeout,
    /// This machine refused: kernel, disk, memory, permission.
    System,
    /// A defect in farline.
    Internal,
}

impl FailureKind {
    /// Every kind, in the order of the table above.
    pub const ALL: [FailureKind; 12] = [
        FailureKind::Usage,
        FailureKind::Spec,
        FailureKind::Limit,
        FailureKind::Interrupted,
        FailureKind::Auth,
        FailureKind::Busy,
        FailureKind::Version,
        FailureKind::Protocol,
        FailureKind::Unreachable,
        FailureKind::Timeout,
        FailureKind::System,
        FailureKind::Internal,
    ];

    /// Who has to act.
    pub const fn fault(self) -> Fault {
        match self {
            Self::Usage | Self::Spec | Self::Limit | Self::Interrupted => Fault::Caller,
            Self::Auth | Self::Busy | Self::Version | Self::Protocol => Fault::Peer,
            Self::Unreachable | Self::Timeout => Fault::Path,
            Self::System => Fault::System,
            Self::Internal => Fault::Internal,
        }
    }

    /// Exit code of the command line, in the tradition of rsync and rclone.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage | Self::Spec => 1,
            Self::System => 2,
            Self::Auth => 4,
            Self::Busy | Self::Unreachable => 5,
            Self::Version | Self::Protocol => 7,
            Self::Limit => 8,
            Self::Timeout => 30,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }

    /// Whether the same request may succeed later without anyone acting.
    pub const fn may_retry(self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Unreachable | Self::Timeout | Self::Protocol
        )
    }

    /// The word used in JSON.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Spec => "spec",
            Self::Limit => "limit",
            Self::Interrupted => "interrupted",
            Self::Auth => "auth",
            Self::Busy => "busy",
            Self::Version => "version",
            Self::Protocol => "protocol",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::System => "system",
            Self::Internal => "internal",
        }
    }
}

/// One thing that went wrong, in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(deny_unknown_fields)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// One line: what was wrong, where, what is allowed.
    pub message: String,
    /// Seconds after which it is worth trying again, when the other side said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<f64>,
    /// Whether it is no use to try again, though failures of this kind often pass: the other end did what nobody asked it to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl Failure {
    /// A failure of `kind`; what of `message` is not plain becomes spaces: it may quote somebody else. The numbers of the
    /// kernel's errors are left out.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let mut message = without_numbers(message.into());
        if !message.chars().all(is_plain) {
            message = plain_line(&message, usize::MAX);
        }
        Self {
            kind,
            message,
            retry_after_s: None,
            permanent: false,
        }
    }

    /// The other end did what this end had not asked for: it would do so again.
    pub fn breach(message: impl Into<String>) -> Self {
        Self {
            permanent: true,
            ..Self::new(FailureKind::Protocol, message)
        }
    }

    /// As it goes to the other end, which decides for itself whether to try again.
    #[must_use]
    pub fn for_the_wire(self) -> Self {
        Self {
            permanent: false,
            ..self
        }
    }

    /// An option that cannot be as it was asked for: its path in a spec, such as `tcp.mss_bytes`, and why. Whoever shows it
    /// to a person says the option as that person wrote it.
    pub fn option(path: &str, reason: impl std::fmt::Display) -> Self {
        Self::new(FailureKind::Spec, format!("{path}: {reason}"))
    }

    /// A defect in `part` of this program, from what its panic carried.
    pub fn defect(part: &str, panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Self::new(FailureKind::Internal, format!("a defect in {part}: {text}"))
    }

    /// A failure of this machine while it did `what`.
    pub fn system(what: &str, error: &std::io::Error) -> Self {
        Self::new(FailureKind::System, format!("{what}: {}", kernel_words(error)))
    }
}

/// What the kernel says of `error`, without its number.
pub fn kernel_words(error: &std::io::Error) -> String {
    without_numbers(error.to_string())
}

/// `text` without each ` (os error 98)`, which the words before it say already.
fn without_numbers(mut text: String) -> String {
    const MARK: &str = " (os error ";
    let mut from = 0;
    while let Some(found) = text[from..].find(MARK) {
        let start = from + found;
        let number = &text[start + MARK.len()..];
        match number.find(')') {
            Some(digits) if number[..digits].bytes().all(|byte| byte.is_ascii_digit()) => {
                text.replace_range(start..start + MARK.len() + digits + 1, "");
                from = start;
            }
            _ => from = start + MARK.len(),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_the_ones_in_json() {
        for kind in FailureKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
        }
    }

    #[test]
    fn a_failure_of_the_kernel_has_no_number() {
        let error = std::io::Error::from_raw_os_error(30);
        let failure = Failure::system("destination /x", &error);
        assert_eq!(failure.message, "destination /x: Read-only file system");
        let own = Failure::system("x", &std::io::Error::other("a b"));
        assert_eq!(own.message, "x: a b");
    }

    #[test]
    fn numbers_of_the_kernel_reach_no_message() {
        let (busy, gone) = (
            std::io::Error::from_raw_os_error(98),
            std::io::Error::from_raw_os_error(2),
        );
        let failure = Failure::new(FailureKind::System, format!("a: {busy}, then {gone}; wait"));
        assert_eq!(
            failure.message,
            "a: Address already in use, then No such file or directory; wait"
        );
        let other = Failure::option("tcp.mss_bytes", "a name (os error x) and (os error 5");
        assert_eq!(
            other.message,
            "tcp.mss_bytes: a name (os error x) and (os error 5"
        );
        assert_eq!(other.kind, FailureKind::Spec);
    }

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(Failure::new(FailureKind::Usage, "a\nb").message, "a b");
    }
}
