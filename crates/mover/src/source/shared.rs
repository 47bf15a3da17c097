//! What the jobs and threads of a sending end have in common.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::{Receiver, Sender};
use farline_spec::{CopySpec, Failure, FileKind, FileStatus, ReceiptLine, SumKind, plain_line};
use farline_sys::file::FileFacts;
use tracing::debug;

use super::driver::Driver;
use super::filter::Filters;
use super::halt::Halt;
use super::held::Room;
use super::lanes::Lanes;
use super::origin::Origin;
use super::pool::Pool;
use super::producer::Filled;
use super::removal::Removal;
use super::straight::Straight;
use crate::engine::Choice;
use crate::message::{Catalogue, MAX_PATH_BYTES, Top};
use crate::receipt::{Receipt, line};
use crate::request::Request;
use crate::{ActivityMonitor, Gauges, Root};

/// Bytes of a line that the other end or the kernel gave as a reason, at most.
const MOST_REASON_BYTES: usize = 1_000;

/// What a sending end is made of.
#[derive(Debug)]
pub(super) struct Shared {
    /// What to copy and how.
    pub(super) spec: CopySpec,
    /// What paths are relative to.
    pub(super) root: Root,
    /// The sources, those that are there.
    pub(super) origins: Vec<Origin>,
    /// Which names are taken.
    pub(super) filters: Filters,
    /// How files are read.
    pub(super) choice: Choice,
    /// Type of the first source's file system.
    pub(super) file_system: String,
    /// Whether content has to come from a device.
    pub(super) waits_for_device: bool,
    /// Chunk in use.
    pub(super) chunk_bytes: u64,
    /// What the destination folder itself should be like.
    pub(super) top: Option<Top>,
    /// What is known of the folder that is the source, where that is what the destination folder should be like.
    pub(super) top_facts: Option<FileFacts>,
    /// Sources that are to be removed.
    pub(super) removal: Removal,
    /// What content is proved with, if it is.
    pub(super) sum: Option<SumKind>,
    /// Most payload bytes that may move.
    pub(super) most_bytes: Option<u64>,
    /// Figures.
    pub(super) gauges: Arc<Gauges>,
    /// What was asked for.
    pub(super) request: Request,
    /// Names that the other end says it deleted.
    pub(super) deleted: AtomicU64,
    /// Beats when anything moves.
    pub(super) pulse: Arc<ActivityMonitor>,
    /// What became of each name.
    pub(super) receipt: Receipt,
    /// The machine: entries under way, what is to be read, what is to be said.
    pub(super) driver: Driver,
    /// Longest pack of all.
    pub(super) pack_bytes: usize,
    /// Whether frames may be asked for again by their number.
    pub(super) remembers_frames: bool,
    /// Room for files that are read when they are found.
    pub(super) held: Arc<Room>,
    /// How it ends.
    pub(super) halt: Halt,
    /// Frames between reader threads and streams; `None`: streams read for themselves, without help.
    pub(super) queue: Option<Queue>,
    /// Threads that fill packs while streams, which read for themselves, are at others.
    pub(super) helpers: usize,
    /// Data streams at the start.
    pub(super) streams: u16,
    /// Data streams now.
    pub(super) lanes: Lanes,
    /// Whether it was said how many files are sent at once; otherwise that follows from the streams.
    pub(super) is_concurrency_said: AtomicBool,
    /// Requests that each reader may have under way.
    pub(super) depth: usize,
    /// Whether every folder could be read so far.
    pub(super) is_whole: AtomicBool,
    /// Moves while this end works at anything, sending or not.
    pub(super) work: AtomicU64,
    /// Bytes of holes left out.
    pub(super) hole_bytes: AtomicU64,
    /// Files that go straight to the streams; `None` where every byte is read.
    pub(super) straight: Option<Straight>,
}

/// Full frames on their way from reader threads to streams.
#[derive(Debug)]
pub(super) struct Queue {
    /// Frames for all of them.
    pub(super) pool: Arc<Pool>,
    /// Into the queue.
    pub(super) into: Sender<Filled>,
    /// Out of it.
    pub(super) out_of: Receiver<Filled>,
}

impl Shared {
    /// Ends the copy with `why`; everyone hears of it at once.
    pub(super) fn stop(&self, why: &Failure) {
        if !self.halt.is_over() {
            debug!(kind = why.kind.word(), reason = why.message, "sending end stops");
        }
        self.halt.stop(why);
        self.wake();
    }

    /// Ends the copy well.
    pub(super) fn end(&self) {
        self.halt.finish();
        self.wake();
    }

    /// Whoever waits for something to read or for a frame looks around.
    fn wake(&self) {
        self.driver.close();
        if let Some(queue) = &self.queue {
            queue.pool.close();
        }
    }

    /// This end works: it neither waits nor hangs.
    pub(super) fn worked(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
        self.pulse.beat();
    }

    /// Notes what became of a name that is not announced, and leaves word of it for the other end. Its finding has not been
    /// counted yet. Not on the catalogue's own thread.
    pub(super) fn settle_unannounced(&self, path: &[u8], kind: FileKind, status: FileStatus, reason: &str) {
        let message = self.note_unannounced(path, kind, status, reason);
        self.ask(|machine| machine.say(message));
    }

    /// As [`Self::settle_unannounced`]; gives what the other end is to be told.
    pub(super) fn note_unannounced(
        &self,
        path: &[u8],
        kind: FileKind,
        status: FileStatus,
        reason: &str,
    ) -> Catalogue {
        self.gauges.found_files.add(1);
        self.ask(|machine| machine.count_unannounced(status));
        let mut line = line(path, kind, status, 0);
        line.reason = Some(one_line(reason));
        self.note(&line);
        Catalogue::Unannounced {
            path: path[..path.len().min(MAX_PATH_BYTES)].to_vec(),
            kind,
            status,
            reason: one_line(reason),
        }
    }

    /// Writes a line of the receipt; a receipt that cannot be written ends the copy.
    pub(super) fn note(&self, line: &ReceiptLine) {
        if let Err(failure) = self.receipt.settle(line) {
            self.stop(&failure);
        }
    }
}

/// `text` as one line of bearable length without control characters.
pub(super) fn one_line(text: &str) -> String {
    let mut line = plain_line(text, MOST_REASON_BYTES);
    line.truncate(line.trim_end().len());
    line
}
