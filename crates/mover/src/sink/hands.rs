//! Threads that write besides the streams, and what they are handed.

use std::sync::Arc;

use farline_spec::{Failure, FileEngine};

use super::chunk_writer::{self, WriteQueue};
use super::pack_workers::{self, PackWorkerPool};
use super::plan::Plan;
use crate::{Gauges, engine, most_frame_bytes};

/// Threads that write, besides the streams.
#[derive(Debug)]
pub struct Hands {
    /// Threads that write chunks for streams, or beside them.
    pub writers: u16,
    /// Where there are such threads.
    pub line: Option<WriteQueue>,
    /// Threads that write small files beside the streams.
    pub helpers: usize,
    /// Where there are processors for them.
    pub crew: Option<PackWorkerPool>,
    gauges: Arc<Gauges>,
}

impl Hands {
    /// Those beside so many streams, and as many as there may be later.
    ///
    /// # Errors
    /// As of [`engine::writer`].
    pub fn new(
        plan: &Plan,
        (streams, most_streams): (u16, u16),
        gauges: &Arc<Gauges>,
    ) -> Result<Self, Failure> {
        let (spec, choice) = (&plan.spec, plan.choice);
        let frame_bytes = most_frame_bytes(spec);
        let relief = chunk_writer::relief(spec, choice, most_streams.max(streams));
        let writers = choice.threads.max(relief);
        let line = match writers {
            0 => None,
            writers => {
                let depth = match choice.engine {
                    FileEngine::Null => 1,
                    _ => engine::writer(choice)?.depth(),
                };
                let streams = (streams, most_streams);
                Some(WriteQueue::new(streams, writers, depth, frame_bytes, gauges))
            }
        };
        let room = line.as_ref().map_or(0, |line| line.frames.room());
        gauges.room_frames.set(room as u64);
        let helpers = pack_workers::helpers(spec, streams);
        Ok(Self {
            writers,
            line,
            helpers,
            crew: PackWorkerPool::new(helpers, frame_bytes),
            gauges: Arc::clone(gauges),
        })
    }

    /// Threads that wrote, where `chosen` threads were to and there were so many streams at first; 0 where each stream did it for
    /// itself and nobody helped.
    pub fn threads(&self, chosen: u16, streams: u16) -> u32 {
        let handed_bytes = self.line.as_ref().map_or(0, WriteQueue::handed_bytes);
        let own = if chosen > 0 || 2 * handed_bytes > self.gauges.file_bytes.get() {
            self.writers
        } else if self.helpers > 0 {
            streams
        } else {
            0
        };
        // A few helpers at most.
        u32::from(own) + self.helpers as u32
    }
}
