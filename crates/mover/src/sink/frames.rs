//! Frames that go round between streams and threads that write: so many and no more, made when they are first needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::Frame;

/// Frames of one size. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Frames {
    used: Sender<Frame>,
    free: Receiver<Frame>,
    /// Frames that may still be made.
    unmade: Arc<AtomicUsize>,
    frame_bytes: usize,
}

impl Frames {
    /// At most `most` frames with room for `frame_bytes`.
    pub fn new(most: usize, frame_bytes: usize) -> Self {
        let (used, free) = bounded(most);
        Self {
            used,
            free,
            unmade: Arc::new(AtomicUsize::new(most)),
            frame_bytes,
        }
    }

    /// A frame, if one is free.
    pub fn try_take(&self) -> Option<Frame> {
        if let Ok(frame) = self.free.try_recv() {
            return Some(frame);
        }
        let less = |unmade: usize| unmade.checked_sub(1);
        let made = self
            .unmade
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        made.ok().map(|_| Frame::new(self.frame_bytes))
    }

    /// A frame; waits for one for at most `time`.
    pub fn take(&self, time: Duration) -> Option<Frame> {
        self.try_take().or_else(|| self.free.recv_timeout(time).ok())
    }

    /// Gives a frame back.
    pub fn put(&self, frame: Frame) {
        // There is room for all there are.
        let _ = self.used.try_send(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_made_when_they_are_needed_and_no_more_than_there_may_be() {
        let frames = Frames::new(3, 1024);
        let taken: Vec<Frame> = std::iter::from_fn(|| frames.try_take()).collect();
        assert_eq!(taken.len(), 3);
        assert!(frames.take(Duration::ZERO).is_none());
        taken.into_iter().for_each(|frame| frames.put(frame));
        assert!(frames.take(Duration::ZERO).is_some());
    }
}
