//! The course of a receiving end: that it works, and how it stops, finished or with the failure that came first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use farline_spec::Failure;
use tracing::{debug, trace};

use super::driver::Machine;
use super::words::POISONED;
use crate::ActivityMonitor;

/// Whether an end goes on.
#[derive(Debug)]
pub struct Run {
    machine: Arc<Machine>,
    pulse: Arc<ActivityMonitor>,
    /// Everything is settled and was said.
    finished: AtomicBool,
    failure: OnceLock<Failure>,
    /// Dropped when it is over.
    hold: Mutex<Option<Sender<()>>>,
    /// Nothing ever comes, but that it is over.
    pub gone: Receiver<()>,
}

impl Run {
    /// Goes on; `machine` stops with it, and `pulse` beats.
    pub fn new(machine: &Arc<Machine>, pulse: Arc<ActivityMonitor>) -> Self {
        let (hold, gone) = bounded(0);
        Self {
            machine: Arc::clone(machine),
            pulse,
            finished: AtomicBool::new(false),
            failure: OnceLock::new(),
            hold: Mutex::new(Some(hold)),
            gone,
        }
    }

    /// Why the copy is over; nothing while it goes on.
    ///
    /// # Errors
    /// What ended it.
    pub fn check(&self) -> Result<(), Failure> {
        self.failure.get().map_or(Ok(()), |why| Err(why.clone()))
    }

    /// Ends the copy with `why`, unless it is over.
    pub fn fail(&self, why: Failure) {
        if !self.is_finished() {
            // The first counts.
            if let Err(why) = self.failure.set(why) {
                trace!(reason = why.message, "receiving end fails once more");
            } else if let Some(why) = self.failure.get() {
                debug!(
                    kind = why.kind.word(),
                    reason = why.message,
                    "receiving end fails"
                );
            }
        }
        self.machine.stop();
        self.tell_over();
    }

    /// Everything is settled.
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
        self.tell_over();
    }

    /// Whether everything is settled and was said.
    pub fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Waits for the end for at most `time`; whether it came.
    pub fn wait(&self, time: Duration) -> bool {
        self.gone.recv_timeout(time) == Err(RecvTimeoutError::Disconnected)
    }

    /// Something moves.
    pub fn beat(&self) {
        self.pulse.beat();
    }

    fn tell_over(&self) {
        drop(self.hold.lock().expect(POISONED).take());
    }
}
