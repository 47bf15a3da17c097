//! The files of a copy as the sampler sees them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_mover::Gauges;
use farline_spec::{CopyProgress, MoverSamples};

use super::cpu::micros;
use super::events::OwnStages;
use super::rows::Interval;
use crate::copy::Copying;
use crate::message::FarStages;

/// How often to look at a copy between two samples.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A copy, and what was last seen of it.
pub(super) struct Files {
    copy: Arc<Copying>,
    before: Look,
    zero: Instant,
    bytes_before: Vec<u64>,
    moved_before: u64,
    packets_before: u64,
}

/// One look at the counters of a copy.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    file_bytes: u64,
    moved_bytes: u64,
    settled_files: u64,
    file_ns: u64,
    name_ns: u64,
    hash_ns: u64,
    cipher_ns: u64,
    stream_ns: u64,
    sync_ns: u64,
    starved_ns: u64,
}

impl Look {
    fn at(gauges: &Gauges) -> Self {
        Self {
            file_bytes: gauges.file_bytes.get(),
            moved_bytes: gauges.moved_bytes.get(),
            settled_files: gauges.settled_files.get(),
            file_ns: gauges.file_ns.get(),
            name_ns: gauges.name_ns.get(),
            hash_ns: gauges.hash_ns.get(),
            cipher_ns: gauges.cipher_ns.get(),
            stream_ns: gauges.stream_ns.get(),
            sync_ns: gauges.sync_ns.get(),
            starved_ns: gauges.starved_ns.get(),
        }
    }
}

impl Files {
    /// A copy whose run starts at `zero`.
    pub(super) fn new(copy: Arc<Copying>, zero: Instant) -> Self {
        Self {
            copy,
            before: Look::default(),
            zero,
            bytes_before: Vec::new(),
            moved_before: 0,
            packets_before: 0,
        }
    }

    /// Notes that `packets` have been received since the start: at a low rate a blast takes longer than a copy may stand still.
    pub(super) fn note_received(&mut self, packets: u64) {
        if packets > self.packets_before {
            self.copy.beat();
        }
        self.packets_before = packets;
    }

    pub(super) fn copy(&self) -> &Copying {
        &self.copy
    }

    /// The row of this interval.
    pub(super) fn row(&mut self, interval: &Interval) -> MoverSamples {
        let gauges = self.copy.gauges();
        let (was, is) = (self.before, Look::at(gauges));
        self.before = is;
        let count =
            |before: u64, after: u64| vec![i64::try_from(after.saturating_sub(before)).unwrap_or(i64::MAX)];
        let us = |before: u64, after: u64| count(before / 1_000, after / 1_000);
        let held_rate_bps = i64::try_from(gauges.held_rate_bps.get()).unwrap_or(i64::MAX);
        MoverSamples {
            end: vec![interval.end.number().into()],
            role: vec![i64::from(!self.copy.sends())],
            start_us: vec![interval.start_us],
            end_us: vec![interval.end_us],
            file_bytes: count(was.file_bytes, is.file_bytes),
            moved_bytes: count(was.moved_bytes, is.moved_bytes),
            settled_files: count(was.settled_files, is.settled_files),
            file_us: us(was.file_ns, is.file_ns),
            name_us: us(was.name_ns, is.name_ns),
            hash_us: us(was.hash_ns, is.hash_ns),
            cipher_us: us(was.cipher_ns, is.cipher_ns),
            stream_us: us(was.stream_ns, is.stream_ns),
            sync_us: us(was.sync_ns, is.sync_ns),
            starved_us: us(was.starved_ns, is.starved_ns),
            queued_frames: count(0, gauges.queued_frames.get()),
            held_rate_bps: vec![if held_rate_bps == 0 { -1 } else { held_rate_bps }],
        }
    }

    /// How far this end's stages are.
    pub(super) fn stages(&self, now: Instant, retransmits: u64) -> OwnStages {
        let gauges = self.copy.gauges();
        OwnStages {
            at_us: micros(now.saturating_duration_since(self.zero)).unsigned_abs(),
            sends: self.copy.sends(),
            figures: FarStages {
                file_bytes: gauges.file_bytes.get(),
                moved_bytes: gauges.moved_bytes.get(),
                queued_frames: gauges.queued_frames.get(),
                room_frames: gauges.room_frames.get(),
                retransmits,
            },
        }
    }

    /// How far it is, `bytes` having moved on each data stream since the start; of those sent, `under_way_bytes` are not at
    /// the other end yet.
    pub(super) fn progress(&mut self, now: Instant, bytes: Vec<u64>, under_way_bytes: u64) -> CopyProgress {
        let before = self.bytes_before.iter().copied().chain(std::iter::repeat(0));
        let busy = bytes
            .iter()
            .zip(before)
            .filter(|(after, before)| **after > *before)
            .count();
        self.bytes_before = bytes;
        let seen = self.copy.progress(under_way_bytes);
        // Between two counters a piece may be in neither.
        self.moved_before = self.moved_before.max(seen.moved_bytes);
        CopyProgress {
            moved_bytes: self.moved_before,
            busy_streams: u32::try_from(busy).unwrap_or(u32::MAX),
            elapsed_us: micros(now.saturating_duration_since(self.zero)).unsigned_abs(),
            ..seen
        }
    }
}
