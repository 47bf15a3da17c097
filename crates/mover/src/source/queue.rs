//! Full frames on their way from readers to streams.

use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded, select};

use super::pool::Pool;
use super::run::{PAUSE, Run};
use super::sending::Sending;
use super::straight::Pointer;
use crate::Gauges;
use crate::frame::Frame;

/// A frame ready to be sent.
#[derive(Debug)]
pub(super) struct Filled {
    /// The frame.
    pub(super) frame: Frame,
    /// Bytes of content in it.
    pub(super) content_bytes: u64,
    /// The file that it is a chunk of; `None` for a pack.
    pub(super) file: Option<Arc<Sending>>,
    /// Where the payload is, if the frame has its header alone.
    pub(super) pointer: Option<Pointer>,
}

/// Full frames on their way from reader threads to streams.
#[derive(Debug)]
pub(super) struct Queue {
    /// Frames for all of them.
    pub(super) pool: Arc<Pool>,
    into: Sender<Filled>,
    out_of: Receiver<Filled>,
    gauges: Arc<Gauges>,
    run: Arc<Run>,
}

impl Queue {
    /// For all frames of `pool`, which has at most `room` of them.
    pub(super) fn new(pool: Arc<Pool>, room: usize, gauges: &Arc<Gauges>, run: &Arc<Run>) -> Self {
        let (into, out_of) = bounded(room);
        Self {
            pool,
            into,
            out_of,
            gauges: Arc::clone(gauges),
            run: Arc::clone(run),
        }
    }

    /// Adds a frame.
    pub(super) fn put(&self, filled: Filled) {
        self.gauges.queued_frames.add(1);
        select! {
            send(self.into, filled) -> _ => {}
            recv(self.run.closed()) -> _ => {}
        }
    }

    /// The next frame, if there is one.
    pub(super) fn try_take(&self) -> Option<Filled> {
        let filled = self.out_of.try_recv().ok()?;
        self.gauges.queued_frames.take(1);
        Some(filled)
    }

    /// The next frame, which may take a moment to come.
    pub(super) fn wait(&self) -> Option<Filled> {
        let filled = self.gauges.starved_ns.time(|| {
            select! {
                recv(self.out_of) -> filled => filled.ok(),
                recv(self.run.closed()) -> _ => None,
                default(PAUSE) => None,
            }
        })?;
        self.gauges.queued_frames.take(1);
        Some(filled)
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.out_of.is_empty()
    }
}
