//! What the readers of a copy have in common.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use farline_spec::SumKind;

use super::origin::Sources;
use super::straight::Straight;
use crate::Gauges;
use crate::engine::Choice;

/// How content is read, and what of it is proved: the same for all readers of a copy.
#[derive(Debug)]
pub(super) struct Reading {
    /// Where files are.
    pub(super) sources: Arc<Sources>,
    /// How files are read.
    pub(super) choice: Choice,
    /// Requests that each reader may have under way.
    pub(super) depth: usize,
    /// Chunk in use.
    pub(super) chunk_bytes: u64,
    /// Longest pack of all.
    pub(super) pack_bytes: usize,
    /// What content is proved with, if it is.
    pub(super) sum: Option<SumKind>,
    /// Whether content has to come from a device.
    pub(super) waits_for_device: bool,
    /// Files that go straight to the streams; `None` where every byte is read.
    pub(super) straight: Option<Straight>,
    /// Bytes of holes left out.
    pub(super) hole_bytes: AtomicU64,
    /// Figures.
    pub(super) gauges: Arc<Gauges>,
}

impl Reading {
    /// Room that frames of data need.
    pub(super) fn frame_bytes(&self) -> usize {
        // A chunk is at most as long as the longest frame.
        (self.chunk_bytes as usize).max(self.pack_bytes)
    }
}
