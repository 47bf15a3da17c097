//! What has moved on one stream; written by its thread, read by the session's.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use farline_proto::iperf3::arrivals::Arrivals;

/// Counters of one stream. They stand for themselves, hence relaxed.
#[derive(Debug, Default)]
pub struct Tally {
    bytes: AtomicU64,
    packets: AtomicU64,
    errors: AtomicU64,
    out_of_order: AtomicU64,
    jitter_us: AtomicU64,
    forgets_jitter: AtomicBool,
}

/// Counters at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Count {
    /// Bytes moved.
    pub bytes: u64,
    /// Datagrams sent, or the highest number received.
    pub packets: u64,
    /// Datagrams missing.
    pub errors: u64,
    /// Datagrams that came late.
    pub out_of_order: u64,
    /// Jitter now.
    pub jitter_us: f64,
}

impl Tally {
    /// Bytes that one call moved. Only the stream's own thread writes, so that a load and a store are enough.
    pub(super) fn moved(&self, bytes: usize) {
        let before = self.bytes.load(Ordering::Relaxed);
        self.bytes.store(before + bytes as u64, Ordering::Relaxed);
    }

    /// Datagrams sent so far.
    pub(super) fn sent(&self, packets: u64) {
        self.packets.store(packets, Ordering::Relaxed);
    }

    /// What a receiver has counted so far.
    pub(super) fn arrived(&self, arrivals: &Arrivals) {
        self.packets.store(arrivals.packets, Ordering::Relaxed);
        self.errors.store(arrivals.errors, Ordering::Relaxed);
        self.out_of_order.store(arrivals.out_of_order, Ordering::Relaxed);
        self.jitter_us
            .store(arrivals.jitter_us.to_bits(), Ordering::Relaxed);
    }

    /// Asks the receiver to begin its jitter anew.
    pub fn forget_jitter(&self) {
        self.forgets_jitter.store(true, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub(super) fn must_forget_jitter(&self) -> bool {
        self.forgets_jitter.load(Ordering::Relaxed) && self.forgets_jitter.swap(false, Ordering::Relaxed)
    }

    /// The counters now.
    pub fn count(&self) -> Count {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Count {
            bytes: get(&self.bytes),
            packets: get(&self.packets),
            errors: get(&self.errors),
            out_of_order: get(&self.out_of_order),
            jitter_us: f64::from_bits(get(&self.jitter_us)),
        }
    }
}
