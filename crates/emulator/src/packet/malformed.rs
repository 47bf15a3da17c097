//! Why bytes are no packet that can be carried.

use std::fmt;

/// A packet that cannot be carried, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "packet: {}", self.0)
    }
}

impl std::error::Error for Malformed {}
