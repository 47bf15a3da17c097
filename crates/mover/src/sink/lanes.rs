//! The data streams of a receiving end: how many there are or will be, and how many can still bring anything.

use std::sync::{Mutex, MutexGuard};

use super::words::POISONED;

/// The streams of one copy.
#[derive(Debug)]
pub struct Lanes(Mutex<Counts>);

#[derive(Debug, Clone, Copy)]
struct Counts {
    /// Streams that are there or on their way and have not ended.
    open: u32,
    /// Those of them that can be read.
    readable: u32,
}

impl Lanes {
    /// So many.
    pub fn new(streams: u16) -> Self {
        Self(Mutex::new(Counts {
            open: streams.into(),
            readable: streams.into(),
        }))
    }

    /// So many more will come.
    pub fn expect(&self, count: u16) {
        let mut counts = self.lock();
        counts.open += u32::from(count);
        counts.readable += u32::from(count);
    }

    /// So many of those that were expected never came.
    pub fn give_up(&self, count: u16) {
        (0..count).for_each(|_| {
            self.end(false);
        });
    }

    /// A stream has ended, one that could not be read any more (`was_lost`) or another; whether it was the last.
    pub fn end(&self, was_lost: bool) -> bool {
        let mut counts = self.lock();
        counts.open = counts.open.saturating_sub(1);
        if !was_lost {
            counts.readable = counts.readable.saturating_sub(1);
        }
        counts.open == 0
    }

    /// A stream cannot be read any more; whether it was the last that could.
    pub fn lose(&self) -> bool {
        let mut counts = self.lock();
        counts.readable = counts.readable.saturating_sub(1);
        counts.readable == 0
    }

    /// Those that are there or on their way.
    pub fn open(&self) -> u32 {
        self.lock().open
    }

    /// Whether all have ended.
    pub fn is_over(&self) -> bool {
        self.lock().open == 0
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().expect(POISONED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_stream_is_the_last_of_those_that_came_and_will_come() {
        let lanes = Lanes::new(1);
        lanes.expect(2);
        assert!(!lanes.end(false), "the first ends before the second is there");
        lanes.give_up(1);
        assert!(!lanes.is_over());
        assert!(lanes.end(false) && lanes.is_over());
    }

    #[test]
    fn a_stream_that_cannot_be_read_counts_as_lost_once() {
        let lanes = Lanes::new(2);
        assert!(!lanes.lose());
        assert!(!lanes.end(true), "the other can be read");
        assert!(lanes.lose());
        assert!(lanes.end(true));
    }
}
