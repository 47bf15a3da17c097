//! Frames that go round between streams and threads that write: so many and no more, made when they are first needed.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::Frame;
use crate::frame::FrameMaker;

/// Frames of one size. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct Frames {
    used: Sender<Frame>,
    free: Receiver<Frame>,
    maker: Arc<FrameMaker>,
}

impl Frames {
    /// At most `most` frames with room for `frame_bytes`.
    pub fn new(most: usize, frame_bytes: usize) -> Self {
        Self::with_room(most, most, frame_bytes)
    }

    /// As [`Self::new`], with room for up to `room` once more streams want them ([`Self::allow`]).
    pub fn with_room(room: usize, most: usize, frame_bytes: usize) -> Self {
        let (used, free) = bounded(room.max(most));
        Self {
            used,
            free,
            maker: Arc::new(FrameMaker::with_room(room, most, frame_bytes)),
        }
    }

    /// Frames there may be now.
    pub fn room(&self) -> usize {
        self.maker.allowed()
    }

    /// Lets `more` frames be made besides, as far as there is room.
    pub fn allow(&self, more: usize) {
        self.maker.allow(more);
    }

    /// A frame, if one is free.
    pub fn try_take(&self) -> Option<Frame> {
        self.free.try_recv().ok().or_else(|| self.maker.make())
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
