//! The one word by which the threads of a run tell each other to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use farline_transport::Probe;

const RUNNING: u8 = 0;
const STOPPING: u8 = 1;
const ABORTED: u8 = 2;

/// Phase of a run; it only ever moves forward.
pub(super) struct Control {
    phase: AtomicU8,
    probes: Vec<Arc<dyn Probe>>,
}

impl Control {
    pub(super) fn new(probes: impl Iterator<Item = Arc<dyn Probe>>) -> Self {
        Self {
            phase: AtomicU8::new(RUNNING),
            probes: probes.collect(),
        }
    }

    /// Senders send no more.
    pub(super) fn stop(&self) {
        self.phase.fetch_max(STOPPING, Ordering::Relaxed);
    }

    /// Nobody moves anything more; blocked calls return at once.
    pub(super) fn abort(&self) {
        // Release, before the probes wake anyone: who is woken sees the phase that woke him.
        self.phase.fetch_max(ABORTED, Ordering::Release);
        self.probes.iter().for_each(|probe| probe.abort());
    }

    pub(super) fn may_send(&self) -> bool {
        // Relaxed: a block more or less does not matter, and this is read once per block.
        self.phase.load(Ordering::Relaxed) == RUNNING
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.phase.load(Ordering::Relaxed) >= STOPPING
    }

    pub(super) fn is_aborted(&self) -> bool {
        self.phase.load(Ordering::Acquire) == ABORTED
    }
}
