//! Files to frames and frames to files.
//!
//! What it does: finds what is to be copied, cuts it into chunks that any stream can take, reads, hashes, and hands out
//! frames; at the other end takes frames, writes, proves, remembers in a journal what is proved, and gives a file its
//! name when it is whole, verified and on the device.
//! What it must not do: know a transport, a ticket, a cipher or the control channel; open a socket; decide about retries.
//! Nothing that comes from the other end may lead out of the [`Root`], nor ask for memory without bound.
//!
//! ```text
//! SendEnd    walk ─► Catalogue ─────────────── catalogue stream ─► names, journal     ReceiveEnd
//!             └► supply ◄── Answers ◄───────── feedback stream ◄─────┘
//!                 └► readers ─► frames ─► n data streams ─► frames ─► writers ─► placement ─► name
//! ```
//!
//! In: an [`EndSetup`] and streams lent as [`Outlet`] and [`Inlet`]; one thread of the session's on each runs the job that
//! this room gives for it. Out: [`Gauges`] while it goes on, a receipt line for each name, a `CopyReport` at the end.
//!
//! Start with [`message`] (what the ends say), [`frame`] and [`pack`] (what data look like), then [`source`] and [`sink`].

pub mod engine;
mod file_sum;
pub mod frame;
pub mod gauges;
pub mod link;
mod names;
pub mod path_text;
mod receipt;
mod request;
mod reserved;
mod root;
pub mod sink;
pub mod source;
mod storage_load;
mod xattrs;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use farline_spec::{CopySpec, MOST_CHOSEN_CHUNK_BYTES, SumKind};

pub use farline_proto::copy::{message, pack, sum, tree_hash};
pub use file_sum::FileSum;
pub use frame::Frame;
pub use gauges::{ActivityMonitor, Gauges};
pub use link::{Arrived, Inlet, Outlet};
pub use names::Names;
pub use root::Root;
pub use sink::{ReceiveEnd, is_vacant};
pub use source::SendEnd;
pub use storage_load::run_storage_load;
pub use sum::Sum;

/// Largest payload that any frame of a copy can have; the chunk in use is told by [`message::Catalogue::Begin`].
pub fn most_frame_bytes(spec: &CopySpec) -> usize {
    let chunk = spec
        .chunk_bytes
        .map_or(MOST_CHOSEN_CHUNK_BYTES, |chunk| chunk.get());
    usize::try_from(chunk).map_or(frame::MAX_PAYLOAD_BYTES, |chunk| {
        chunk.clamp(message::MESSAGE_FRAME_BYTES, frame::MAX_PAYLOAD_BYTES)
    })
}

/// Most entries that the sending end has said and not yet seen settled; a receiving end may take more for an error.
pub fn most_entries_under_way(spec: &CopySpec) -> usize {
    (spec.pipeline.get() as usize).max(4_096) * 4
}

/// Longest silence of an end that works: well before the other end would call it a stall.
fn heartbeat(spec: &CopySpec) -> Duration {
    const LONGEST_S: f64 = 4.0;
    Duration::from_secs_f64((spec.stall_timeout_s.get() / 3.0).min(LONGEST_S))
}

/// What either end of a copy needs to begin.
#[derive(Debug)]
pub struct EndSetup {
    /// What to copy and how.
    pub spec: CopySpec,
    /// What its paths are relative to, and may not leave.
    pub root: Root,
    /// Who asks: host, user and working folder of whoever named the sources, as far as the session knows; only told apart.
    pub origin: String,
    /// Whether this end asked for the copy, and was not asked for it.
    pub is_own_request: bool,
    /// Data streams that there will be at first.
    pub streams: u16,
    /// Data streams that there may be at once while it goes on; as many as at first where none come or go.
    pub most_streams: u16,
    /// Whether bytes may go straight from a file to its stream, with nobody between who looks at them: no hash, no seal, and
    /// a transport that can ([`Outlet::send_from`]).
    pub may_go_straight: bool,
    /// Whether the other end said beforehand that nothing is at the destination ([`is_vacant`]): the sending end then sends without
    /// waiting to hear it once more.
    pub is_vacant: bool,
    /// Whether the other end knows of names whose attributes alone are updated ([`message::Wants::Updated`]).
    pub counts_updates: bool,
    /// Whether sealed frames that do not open at the receiving end are sent again ([`message::Feedback::Unopened`]).
    pub heals_frames: bool,
    /// Whether the other end knows of further names that come by themselves where their file could not be copied
    /// ([`message::Feedback::Apart`]).
    pub takes_names_apart: bool,
    /// Whether the other end knows of extended attributes of the destination folder itself ([`message::Catalogue::TopXattrs`]).
    pub takes_top_xattrs: bool,
    /// What content is proved with, as both ends understand it; `None` where nothing is hashed.
    pub sum: Option<SumKind>,
    /// Whether sources may be patterns: those that another host names; on this one its shell has expanded them.
    pub expands_patterns: bool,
    /// Where the receipt goes, a JSON document a line ([`farline_spec::ReceiptLine`]); nowhere if absent.
    pub receipt: Option<PathBuf>,
    /// Most payload bytes that may move; a ticket's limit.
    pub most_bytes: Option<u64>,
    /// Figures, for others to read.
    pub gauges: Arc<Gauges>,
    /// Beats when anything moves.
    pub pulse: Arc<ActivityMonitor>,
}
