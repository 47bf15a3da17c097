//! Figures of one end of a copy, written by its threads and read by whoever shows or records them.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

macro_rules! gauges {
    ($($(#[doc = $meaning:literal])+ $name:ident),+ $(,)?) => {
        /// Counters since the copy began; relaxed: a reader sees each of them a moment old.
        #[derive(Debug, Default)]
        pub struct Gauges {
            $($(#[doc = $meaning])+ pub $name: Gauge,)+
        }
    };
}

gauges! {
    /// Names found at the sources.
    found_files,
    /// Bytes in them.
    found_bytes,
    /// 1 once all have been found.
    all_found,
    /// Names settled: copied, present, made, skipped.
    settled_files,
    /// Bytes of them, and of files under way what is on the destination's side.
    settled_bytes,
    /// Names that failed.
    failed_files,
    /// Payload bytes sent or received by this end, packs' item headers left out.
    moved_bytes,
    /// Bytes that needed no sending: present, proved by a journal, holes.
    spared_bytes,
    /// Bytes read from files, or written to them.
    file_bytes,
    /// Nanoseconds in reading or writing files, over all threads.
    file_ns,
    /// Nanoseconds in opening, naming and closing files.
    name_ns,
    /// Nanoseconds in hashing.
    hash_ns,
    /// Nanoseconds in sealing or opening frames; the session's streams count it.
    cipher_ns,
    /// Nanoseconds in sending or receiving; the session's streams count it.
    stream_ns,
    /// Nanoseconds in bringing data to the device.
    sync_ns,
    /// Nanoseconds in which streams had nothing to send, or nowhere to put what came.
    starved_ns,
    /// Frames that wait between files and streams now.
    queued_frames,
    /// Frames that fit there; 0 where streams read or write for themselves.
    room_frames,
    /// Rate that the sender holds itself to now, bit/s; 0 where it does not.
    held_rate_bps,
}

/// One figure.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Adds to it.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes from it; never below 0.
    pub fn take(&self, amount: u64) {
        let less = |now: u64| Some(now.saturating_sub(amount));
        // The closure always gives a value.
        let _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Sets it.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Does `work` and adds the nanoseconds it took.
    pub fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        self.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        done
    }
}

/// Bytes of the other end that count as progress by themselves, whatever they turn out to be.
const STEP_BYTES: u64 = 16 * 1024;

/// When something last moved, in nanoseconds since `zero`; how stalls are found.
///
/// A sign of life is not progress: an end that sends a byte now and then, or frames without content, lives and goes nowhere.
#[derive(Debug)]
pub struct ActivityMonitor {
    zero: Instant,
    last_ns: AtomicI64,
    /// When there last was progress.
    progress_ns: AtomicI64,
    /// Bytes that moved since then.
    moved_bytes: AtomicU64,
}

impl Default for ActivityMonitor {
    fn default() -> Self {
        Self {
            zero: Instant::now(),
            last_ns: AtomicI64::new(0),
            progress_ns: AtomicI64::new(0),
            moved_bytes: AtomicU64::new(0),
        }
    }
}

impl ActivityMonitor {
    /// There is progress: something was settled, or this end works.
    pub fn beat(&self) {
        let now = self.live();
        self.progress_ns.fetch_max(now, Ordering::Relaxed);
    }

    /// So many bytes moved, none perhaps: the other end lives. Enough of them are progress.
    pub fn moved(&self, bytes: usize) {
        self.live();
        let before = self.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 >= STEP_BYTES {
            self.moved_bytes.store(0, Ordering::Relaxed);
            self.beat();
        }
    }

    /// Time since the last sign of life, or since the start.
    pub fn silence(&self) -> std::time::Duration {
        self.since(&self.last_ns)
    }

    /// Time since there last was progress, or since the start.
    pub fn standstill(&self) -> std::time::Duration {
        self.since(&self.progress_ns)
    }

    fn live(&self) -> i64 {
        let now = i64::try_from(self.zero.elapsed().as_nanos()).unwrap_or(i64::MAX);
        self.last_ns.fetch_max(now, Ordering::Relaxed);
        now
    }

    fn since(&self, ns: &AtomicI64) -> std::time::Duration {
        let last = u64::try_from(ns.load(Ordering::Relaxed)).unwrap_or(0);
        let last = std::time::Duration::from_nanos(last);
        self.zero.elapsed().saturating_sub(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_add_up_and_do_not_go_below_nothing() {
        let gauges = Gauges::default();
        gauges.file_bytes.add(5);
        gauges.file_bytes.take(7);
        assert_eq!(gauges.file_bytes.get(), 0);
        assert_eq!(gauges.hash_ns.time(|| 3), 3);
    }

    #[test]
    fn a_beat_ends_silence() {
        let pulse = ActivityMonitor::default();
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(pulse.silence().as_millis() >= 20);
        pulse.beat();
        assert!(pulse.silence().as_millis() < 20);
    }

    #[test]
    fn a_trickle_is_life_and_no_progress() {
        let pulse = ActivityMonitor::default();
        std::thread::sleep(std::time::Duration::from_millis(5));
        pulse.moved(0);
        pulse.moved(1);
        assert!(pulse.silence() < pulse.standstill());
        pulse.moved(STEP_BYTES as usize - 1);
        assert!(pulse.standstill().as_millis() < 5);
    }
}
