//! What the control thread hears of captures and of its end.

use crossbeam_channel::Sender;

use super::capture::{Capture, CaptureEnd, Chunk};

/// What the control thread is told.
pub enum Command {
    /// A capture begins; its chunks come after this.
    Open {
        /// Number of the link.
        link: usize,
        /// Its file.
        capture: Capture,
    },
    /// Records from the engine.
    Chunk(Chunk),
    /// A capture ends.
    Close {
        /// Number of the link.
        link: usize,
        /// What became of it.
        reply: Sender<CaptureEnd>,
    },
    /// The thread ends.
    Stop,
}
