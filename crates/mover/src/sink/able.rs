//! What a destination can: found out once by trying it on the lock.

use std::io;
use std::sync::OnceLock;

use farline_sys::file;

use super::clock::{Clock, Grain};

/// What a destination makes of permission bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modes {
    /// They are kept.
    ResumeState,
    /// Setting them is refused.
    Refused,
    /// Setting them goes well and changes nothing: every file has these.
    Fixed(u32),
}

/// What was found out by trying it on the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// How finely times are kept.
    pub grain: Grain,
    /// Whether the time of last change is taken only together with that of last access.
    pub both_times: bool,
    /// What becomes of permission bits.
    pub modes: Modes,
    /// Whether files are brought to the device when that is asked for.
    pub syncs: bool,
}

/// The same, with what it takes to compare.
#[derive(Debug)]
pub struct Able {
    /// Compares times.
    pub clock: Clock,
    /// Whether the time of last change is taken only together with that of last access.
    pub both_times: bool,
    /// What becomes of permission bits.
    pub modes: Modes,
    /// Whether files are brought to the device when that is asked for.
    pub syncs: bool,
    /// Whether what is set of a link is set of what it leads to; tried with the first link.
    pub follows_links: OnceLock<bool>,
}

/// What only a file system without any such request says of a sync is no error: there is nothing to wait for.
///
/// # Errors
/// Any other: what was written may be lost.
pub fn synced(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if file::is_unsupported(&error) => Ok(()),
        result => result,
    }
}
