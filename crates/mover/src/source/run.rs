//! The course of a sending end: that it works, and how it stops, finished or with the failure that came first; whoever waits
//! hears of it at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};
use farline_spec::Failure;

use super::pool::Pool;
use crate::ActivityMonitor;

/// How long a thread waits for something before it looks around.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// Whether an end goes on.
#[derive(Debug)]
pub(super) struct Run {
    is_over: AtomicBool,
    state: Mutex<State>,
    closed: Receiver<()>,
    /// Frames that somebody may wait for.
    pool: Option<Arc<Pool>>,
    /// Moves while this end works at anything, sending or not.
    work: AtomicU64,
    pulse: Arc<ActivityMonitor>,
}

#[derive(Debug)]
struct State {
    failure: Option<Failure>,
    /// Dropped when it is over: then every clone of `closed` can be received from.
    open: Option<Sender<()>>,
}

impl Run {
    /// Goes on; `pulse` beats with it, and nobody waits for a frame of `pool` after the end.
    pub(super) fn new(pool: Option<Arc<Pool>>, pulse: Arc<ActivityMonitor>) -> Self {
        let (open, closed) = bounded(0);
        Self {
            is_over: AtomicBool::new(false),
            state: Mutex::new(State {
                failure: None,
                open: Some(open),
            }),
            closed,
            pool,
            work: AtomicU64::new(0),
            pulse,
        }
    }

    /// All is done; unless it is over already.
    pub(super) fn finish(&self) {
        self.end(None);
    }

    /// Over with `why`; unless it is over already.
    pub(super) fn stop(&self, why: &Failure) {
        self.end(Some(why));
    }

    /// Whether it is over, well or not.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Can be received from (an error, there is nothing in it) once it is over.
    pub(super) const fn closed(&self) -> &Receiver<()> {
        &self.closed
    }

    /// What a job returns once it is over.
    ///
    /// # Errors
    /// Why it was stopped.
    pub(super) fn outcome(&self) -> Result<(), Failure> {
        self.lock().failure.clone().map_or(Ok(()), Err)
    }

    /// This end works: it neither waits nor hangs.
    pub(super) fn worked(&self) {
        self.count_work();
        self.beat();
    }

    /// As [`Self::worked`], of work whose frame beats when it is sent.
    pub(super) fn count_work(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
    }

    /// Another figure than before where this end worked meanwhile.
    pub(super) fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// Something moves.
    pub(super) fn beat(&self) {
        self.pulse.beat();
    }

    fn end(&self, why: Option<&Failure>) {
        let mut state = self.lock();
        if state.open.take().is_some() {
            state.failure = why.cloned();
            self.is_over.store(true, Ordering::Release);
        }
        drop(state);
        if let Some(pool) = &self.pool {
            pool.close();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::FailureKind;

    #[test]
    fn the_first_reason_stays() {
        let run = Run::new(None, Arc::default());
        assert!(!run.is_over());
        let failure = Failure::new(FailureKind::System, "disk");
        run.stop(&failure);
        run.stop(&Failure::new(FailureKind::Timeout, "later"));
        run.finish();
        assert!(run.is_over() && run.closed().recv().is_err());
        assert_eq!(run.outcome(), Err(failure));
    }
}
