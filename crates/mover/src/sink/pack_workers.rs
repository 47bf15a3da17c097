//! Threads that write small files beside the streams: a pack goes to whoever is free.

use std::num::NonZero;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded, select};
use farline_spec::{CopySpec, Failure};

use super::frames::Frames;
use super::run::Run;
use super::small::Small;
use crate::{Frame, Gauges};

/// Threads that help, at most: names in one folder are given one after the other anyway.
const MOST_HELPERS: usize = 2;
/// Packs for each: one in hand, one that waits.
const PACKS_EACH: usize = 2;

/// Packs on their way to those who help.
#[derive(Debug, Clone)]
pub struct PackWorkerPool {
    to: Sender<Frame>,
    from: Receiver<Frame>,
    frames: Frames,
}

/// How many help `streams` streams: as many as there are processors without a stream, unless it was said who writes.
pub fn helpers(spec: &CopySpec, streams: u16) -> usize {
    if spec.writers.is_some() {
        return 0;
    }
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    processors.saturating_sub(streams.into()).min(MOST_HELPERS)
}

impl PackWorkerPool {
    /// A crew of `helpers`; nothing where nobody helps.
    pub fn new(helpers: usize, frame_bytes: usize) -> Option<Self> {
        if helpers == 0 {
            return None;
        }
        let packs = helpers * PACKS_EACH;
        let (to, from) = bounded(packs);
        let frames = Frames::new(packs, frame_bytes);
        Some(Self { to, from, frames })
    }

    /// Hands a pack on and gives a free frame for it.
    ///
    /// # Errors
    /// The pack, where nobody is free.
    pub fn hand_on(&self, pack: Frame) -> Result<Frame, Frame> {
        let Some(free) = self.frames.try_take() else {
            return Err(pack);
        };
        match self.to.try_send(pack) {
            Ok(()) => Ok(free),
            Err(full) => {
                self.frames.put(free);
                Err(full.into_inner())
            }
        }
    }

    /// Writes the files of packs until the copy is over. On a thread of its own.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn work(&self, mut small: Small, run: &Run, gauges: &Gauges) -> Result<(), Failure> {
        loop {
            run.check()?;
            let pack = select! {
                recv(self.from) -> pack => pack,
                recv(run.gone) -> _ => return Ok(()),
            };
            let Ok(pack) = pack else {
                return Ok(());
            };
            small.write(&pack)?;
            gauges.queued_frames.take(1);
            self.frames.put(pack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packs_wait_for_those_who_help_and_no_more_than_a_few() {
        assert!(PackWorkerPool::new(0, 1024).is_none());
        let crew = PackWorkerPool::new(1, 1024).unwrap();
        for _ in 0..PACKS_EACH {
            assert!(crew.hand_on(Frame::new(1024)).is_ok());
        }
        assert!(crew.hand_on(Frame::new(1024)).is_err());
        crew.frames.put(crew.from.recv().unwrap());
        assert!(crew.hand_on(Frame::new(1024)).is_ok());
    }

    #[test]
    fn nobody_helps_where_it_was_said_who_writes_or_every_processor_has_its_stream() {
        let spec = CopySpec::default();
        assert!(helpers(&spec, 1) <= MOST_HELPERS);
        assert_eq!(helpers(&spec, u16::MAX), 0);
        let said = CopySpec {
            writers: farline_spec::unit::ThreadCount::new(0).ok(),
            ..spec
        };
        assert_eq!(helpers(&said, 1), 0);
    }
}
