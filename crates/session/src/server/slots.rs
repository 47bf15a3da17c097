//! Room for sessions: so many at once, so many in all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use farline_spec::unit::counted;
use farline_spec::{Failure, FailureKind};

/// Places for sessions.
#[derive(Debug, Clone)]
pub struct Slots {
    book: Arc<Mutex<Book>>,
    most_at_once: usize,
    most_in_all: Option<u64>,
}

#[derive(Debug, Default)]
struct Book {
    next: u64,
    /// Number of each session that runs, and when it will be over at the latest.
    running: Vec<(u64, Instant)>,
    admitted: u64,
}

impl Slots {
    pub(super) fn new(most_at_once: usize, most_in_all: Option<u64>) -> Self {
        Self {
            book: Arc::default(),
            most_at_once,
            most_in_all,
        }
    }

    /// Whether one more session would find room now.
    ///
    /// # Errors
    /// [`FailureKind::Busy`] with the reason and when to try again.
    pub fn check(&self) -> Result<(), Failure> {
        self.refusal(&self.book()).map_or(Ok(()), Err)
    }

    /// Takes a place for a session that lasts no longer than `expected`.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn take(&self, expected: Duration) -> Result<Slot, Failure> {
        let mut book = self.book();
        if let Some(failure) = self.refusal(&book) {
            return Err(failure);
        }
        book.next += 1;
        book.admitted += 1;
        let number = book.next;
        book.running.push((number, Instant::now() + expected));
        Ok(Slot {
            number,
            slots: self.clone(),
            confirmed: false,
        })
    }

    /// Most sessions at once.
    pub fn most_at_once(&self) -> usize {
        self.most_at_once
    }

    /// Sessions admitted since the start.
    pub fn admitted(&self) -> u64 {
        self.book().admitted
    }

    /// Whether no session runs and none will be admitted any more.
    pub fn is_used_up(&self) -> bool {
        let book = self.book();
        book.running.is_empty() && self.most_in_all.is_some_and(|most| book.admitted >= most)
    }

    fn refusal(&self, book: &Book) -> Option<Failure> {
        let running = book.running.len();
        if let Some(most) = self.most_in_all.filter(|&most| book.admitted >= most) {
            return Some(Failure::new(
                FailureKind::Busy,
                format!(
                    "the server is busy: it stops after {}, and all have started",
                    counted(most, "session")
                ),
            ));
        }
        if running < self.most_at_once {
            return None;
        }
        let line = format!(
            "the server is busy: running sessions: {running} of at most {}",
            self.most_at_once
        );
        let mut failure = Failure::new(FailureKind::Busy, line);
        let soonest = book
            .running
            .iter()
            .map(|(_, ends)| ends.saturating_duration_since(Instant::now()))
            .min();
        failure.retry_after_s = soonest.map(|soonest| soonest.as_secs_f64().ceil().max(1.0));
        Some(failure)
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One session's place.
#[derive(Debug)]
pub struct Slot {
    number: u64,
    slots: Slots,
    /// Whether the session was admitted after all; if not, it never counted.
    confirmed: bool,
}

impl Slot {
    /// The session is admitted: it counts.
    pub fn confirm(&mut self) {
        self.confirmed = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut book = self.slots.book();
        book.running.retain(|(number, _)| *number != self.number);
        if !self.confirmed {
            book.admitted -= 1;
        }
    }
}
