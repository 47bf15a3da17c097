//! The one word by which the threads of a run tell each other to end.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use farline_spec::{Failure, FailureKind};
use farline_transport::Probe;

use crate::copy::Copying;

const RUNNING: u8 = 0;
const STOPPING: u8 = 1;
const ABORTED: u8 = 2;

/// Phase of a run; it only ever moves forward.
pub(super) struct Control {
    phase: AtomicU8,
    probes: Mutex<HashMap<u16, Arc<dyn Probe>>>,
    copy: Option<Arc<Copying>>,
}

impl Control {
    pub(super) fn new(
        probes: impl Iterator<Item = (u16, Arc<dyn Probe>)>,
        copy: Option<Arc<Copying>>,
    ) -> Self {
        Self {
            phase: AtomicU8::new(RUNNING),
            probes: Mutex::new(probes.collect()),
            copy,
        }
    }

    /// The copy that the streams carry, if they carry one.
    pub(super) fn copy(&self) -> Option<&Arc<Copying>> {
        self.copy.as_ref()
    }

    /// Senders send no more.
    pub(super) fn stop(&self) {
        self.phase.fetch_max(STOPPING, Ordering::Relaxed);
        if let Some(copy) = &self.copy {
            copy.stop();
        }
    }

    /// Nobody moves anything more; blocked calls return at once.
    pub(super) fn abort(&self) {
        self.abort_because(&Failure::new(FailureKind::Interrupted, "the run was aborted"));
    }

    /// As [`Self::abort`], for a reason that a copy can name.
    pub(super) fn abort_because(&self, why: &Failure) {
        // Release, before the probes wake anyone: who is woken sees the phase that woke him.
        self.phase.fetch_max(ABORTED, Ordering::Release);
        if let Some(copy) = &self.copy {
            copy.abort(why);
        }
        self.probes().values().for_each(|probe| probe.abort());
    }

    /// One stream more; aborted at once where the run is.
    pub(super) fn join(&self, stream: u16, probe: Arc<dyn Probe>) {
        self.probes().insert(stream, Arc::clone(&probe));
        if self.is_aborted() {
            probe.abort();
        }
    }

    /// A stream has ended long ago, and is closed.
    pub(super) fn part(&self, stream: u16) {
        self.probes().remove(&stream);
    }

    fn probes(&self) -> MutexGuard<'_, HashMap<u16, Arc<dyn Probe>>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
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
