//! Short sleeps instead of a wake-up per batch.
//!
//! A receiver that blocks is woken for every batch, and waking costs the sender's CPU (on loopback) or the
//! interrupt's more than a tenth of the batch itself. Above a few Gbit/s the receiver therefore looks once
//! more without waiting and, if nothing is there, sleeps for some tens of microseconds, in which several
//! batches gather. Never longer than the socket's buffer bears, and never at rates at which a wake-up per
//! batch costs nothing that matters. When datagrams came is noted by the kernel, so jitter does not suffer.

/// Rate from which on naps pay.
const BUSY_BYTES_PER_S: u64 = 250_000_000;
/// Time over which the rate is taken.
const WINDOW_NS: u64 = 1_000_000;
/// Longest nap.
const LONGEST_NS: u64 = 50_000;
/// Shortest nap: a shorter sleep costs more than the wake-up it saves.
const SHORTEST_NS: u64 = 10_000;

/// Decides how long to sleep when nothing is there.
#[derive(Debug, Clone)]
pub(crate) struct Nap {
    /// Bytes that may gather while nobody reads.
    room_bytes: u64,
    since_ns: u64,
    bytes: u64,
    length_ns: u64,
}

impl Nap {
    /// For a socket whose buffer the kernel reports as `socket_bytes`. An eighth of it may fill: the report
    /// is twice the payload it holds at best, and a sleep may end late.
    pub(crate) fn new(socket_bytes: usize) -> Self {
        Self {
            room_bytes: socket_bytes as u64 / 8,
            since_ns: 0,
            bytes: 0,
            length_ns: 0,
        }
    }

    /// Takes note that `bytes` came.
    pub(crate) fn received(&mut self, now_ns: u64, bytes: usize) {
        self.bytes += bytes as u64;
        let elapsed_ns = now_ns.saturating_sub(self.since_ns);
        if elapsed_ns < WINDOW_NS {
            return;
        }
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(elapsed_ns);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.length_ns = if rate < BUSY_BYTES_PER_S {
            0
        } else {
            self.bearable_ns(rate)
        };
        (self.since_ns, self.bytes) = (now_ns, 0);
    }

    fn bearable_ns(&self, bytes_per_s: u64) -> u64 {
        let fills_ns = u128::from(self.room_bytes) * 1_000_000_000 / u128::from(bytes_per_s);
        match u64::try_from(fills_ns).unwrap_or(u64::MAX).min(LONGEST_NS) {
            ..SHORTEST_NS => 0,
            length_ns => length_ns,
        }
    }

    /// How long to sleep if nothing is there; 0 is to block at once.
    pub(crate) fn length_ns(&self) -> u64 {
        self.length_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Naps after 10 ms at `bytes_per_ms` in batches of `batch`.
    fn nap_after(socket_bytes: usize, bytes_per_ms: usize) -> u64 {
        let mut nap = Nap::new(socket_bytes);
        for step in 0..100 {
            nap.received(1_000_000_000 + step * 100_000, bytes_per_ms / 10);
        }
        nap.length_ns()
    }

    #[test]
    fn slow_streams_are_woken_at_once() {
        assert_eq!(nap_after(32 << 20, 125_000), 0);
        assert_eq!(Nap::new(32 << 20).length_ns(), 0);
    }

    #[test]
    fn fast_streams_nap_as_long_as_the_buffer_bears() {
        assert_eq!(nap_after(32 << 20, 8_000_000), LONGEST_NS);
        assert_eq!(nap_after(8_000_000, 50_000_000), 20_000);
        assert_eq!(nap_after(212_992, 8_000_000), 0);
    }

    #[test]
    fn a_pause_ends_the_naps() {
        let mut nap = Nap::new(32 << 20);
        nap.received(1_000_000, 1_000_000);
        nap.received(2_000_000, 1_000_000);
        assert!(nap.length_ns() > 0);
        nap.received(200_000_000, 1_000_000);
        assert_eq!(nap.length_ns(), 0);
    }
}
