//! Sealed frames that do not open: how many a copy bears, and what they cost.
//!
//! Why this gives nobody a foothold is in `docs/decisions/0007-nothing-lost.md`.

use std::sync::atomic::{AtomicU32, Ordering};

pub use farline_mover::message::MOST_UNOPENED as MOST_IN_ALL;
use farline_spec::{Failure, FailureKind};

/// Frames in a row of one stream that may not open; the next one means that nothing on it does.
pub const MOST_IN_A_ROW: u32 = 64;

/// The frames that did not open at this end of one copy.
#[derive(Debug, Default)]
pub struct Spoiled {
    /// Whether both ends know how to heal them; otherwise the first ends the session.
    heals: bool,
    count: AtomicU32,
}

impl Spoiled {
    /// None so far; `heals`: both ends know how to heal them, and there is a cipher.
    pub const fn new(heals: bool) -> Self {
        Self {
            heals,
            count: AtomicU32::new(0),
        }
    }

    /// Whether they are healed.
    pub const fn heals(&self) -> bool {
        self.heals
    }

    /// One more.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] when it is one too many.
    pub fn one_more(&self) -> Result<(), Failure> {
        if self.count.fetch_add(1, Ordering::Relaxed) < MOST_IN_ALL {
            return Ok(());
        }
        let line = format!(
            "more than {MOST_IN_ALL} frames of this session were modified in transit: the path or an interface corrupts data, \
             or somebody modifies them"
        );
        Err(Failure::new(FailureKind::Protocol, line))
    }
}
