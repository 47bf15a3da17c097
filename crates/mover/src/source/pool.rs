//! Frames that go round between readers and streams.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::frame::{Frame, FrameMaker};

/// Frames of one size, made when they are first needed, at most so many.
#[derive(Debug)]
pub(super) struct Pool {
    maker: FrameMaker,
    inner: Mutex<Inner>,
    bell: Condvar,
}

#[derive(Debug)]
struct Inner {
    free: Vec<Frame>,
    is_over: bool,
}

impl Pool {
    /// At most `most` frames with room for `frame_bytes`.
    pub(super) fn new(most: usize, frame_bytes: usize) -> Self {
        Self::with_room(most, most, frame_bytes)
    }

    /// As [`Self::new`], with room for up to `room` once more streams want them ([`Self::allow`]).
    pub(super) fn with_room(room: usize, most: usize, frame_bytes: usize) -> Self {
        Self {
            maker: FrameMaker::with_room(room, most, frame_bytes),
            inner: Mutex::new(Inner {
                free: Vec::new(),
                is_over: false,
            }),
            bell: Condvar::new(),
        }
    }

    /// Frames there may be now.
    pub(super) fn room(&self) -> usize {
        self.maker.allowed()
    }

    /// Lets `more` frames be made besides, as far as there is room.
    pub(super) fn allow(&self, more: usize) {
        self.maker.allow(more);
        drop(self.lock());
        self.bell.notify_all();
    }

    /// A frame, if one is free.
    pub(super) fn try_take(&self) -> Option<Frame> {
        let free = self.lock().free.pop();
        free.or_else(|| self.maker.make())
    }

    /// Waits until one is free, for at most `time`.
    pub(super) fn wait(&self, time: Duration) {
        let none_free = |inner: &mut Inner| !inner.is_over && inner.free.is_empty() && !self.maker.has_more();
        let waited = self.bell.wait_timeout_while(self.lock(), time, none_free);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Gives a frame back.
    pub(super) fn put(&self, frame: Frame) {
        self.lock().free.push(frame);
        self.bell.notify_one();
    }

    /// None will be needed any more: whoever waits goes on at once.
    pub(super) fn close(&self) {
        self.lock().is_over = true;
        self.bell.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn frames_come_back_and_nobody_waits_for_one_at_the_end() {
        let pool = Pool::new(1, 10);
        let frame = pool.try_take().unwrap();
        assert!(pool.try_take().is_none());
        pool.put(frame);
        let _frame = pool.try_take().unwrap();
        pool.close();
        let began = Instant::now();
        pool.wait(Duration::from_secs(60));
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
