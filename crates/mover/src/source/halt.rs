//! How an end stops: finished, or with the failure that came first; whoever waits hears of it at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crossbeam_channel::{Receiver, Sender, bounded};
use farline_spec::Failure;

/// Whether an end goes on.
#[derive(Debug)]
pub(super) struct Halt {
    is_over: AtomicBool,
    state: Mutex<State>,
    closed: Receiver<()>,
}

#[derive(Debug)]
struct State {
    failure: Option<Failure>,
    /// Dropped when it is over: then every clone of `closed` can be received from.
    open: Option<Sender<()>>,
}

impl Halt {
    /// Goes on.
    pub(super) fn new() -> Self {
        let (open, closed) = bounded(0);
        Self {
            is_over: AtomicBool::new(false),
            state: Mutex::new(State {
                failure: None,
                open: Some(open),
            }),
            closed,
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

    fn end(&self, why: Option<&Failure>) {
        let mut state = self.lock();
        if state.open.take().is_some() {
            state.failure = why.cloned();
            self.is_over.store(true, Ordering::Release);
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
        let halt = Halt::new();
        assert!(!halt.is_over());
        let failure = Failure::new(FailureKind::System, "disk");
        halt.stop(&failure);
        halt.stop(&Failure::new(FailureKind::Timeout, "later"));
        halt.finish();
        assert!(halt.is_over() && halt.closed().recv().is_err());
        assert_eq!(halt.outcome(), Err(failure));
    }
}
