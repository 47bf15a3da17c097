//! Chunks to files, through one engine: on a stream's own thread, or on threads that write for all streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded, select};
use farline_proto::copy::receiver::{self, Proof};
use farline_spec::{CopySpec, Failure, FileEngine};
use tracing::debug;

use super::driver::Machine;
use super::entry::Entry;
use super::entry::TICK;
use super::frames::Frames;
use super::partials::Partials;
use super::plan::Plan;
use super::run::Run;
use super::settle::Ledger;
use super::site::Destination;
use crate::engine::{self, Choice, Request, Writer};
use crate::path_text::Shown;
use crate::sum::Sum;
use crate::{Frame, Gauges, most_frame_bytes};

/// How many threads write files that several streams bring at once, while these write all others for themselves: through the
/// page cache the kernel lets one thread at a time write to a file, and a stream that waits leaves what comes to pile up.
/// None where there is one stream, or where it was said who writes.
pub fn relief(spec: &CopySpec, choice: Choice, streams: u16) -> u16 {
    u16::from(choice.engine == FileEngine::Buffered && spec.writers.is_none() && streams > 1)
}

/// A chunk that was proved and is to be written.
#[derive(Debug)]
pub struct Chunk {
    /// Its file.
    pub entry: Arc<Entry>,
    /// Where in the file.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Its sum, where it is hashed.
    pub hash: Option<Sum>,
}

impl Chunk {
    fn facts(&self) -> receiver::Chunk {
        receiver::Chunk {
            file: self.entry.number,
            offset: self.offset,
            bytes: self.bytes,
            hash: self.hash,
        }
    }
}

/// Most bytes of frames of one copy, unless its streams and threads have one each already.
const MOST_FRAME_BYTES: usize = 1 << 30;

/// Chunks on their way to threads that write, and frames on their way back.
#[derive(Debug, Clone)]
pub struct WriteQueue {
    pub to: Sender<(Chunk, Frame)>,
    from: Receiver<(Chunk, Frame)>,
    pub frames: Frames,
    /// Bytes that streams handed on.
    handed: Arc<AtomicU64>,
    gauges: Arc<Gauges>,
}

impl WriteQueue {
    /// A line for so many streams, as many as there may be later, and so many threads that write: two frames for each of them,
    /// and what an engine has under way, as far as they do not take too much memory. They are made when they are needed.
    pub fn new(
        (streams, most_streams): (u16, u16),
        writers: u16,
        depth: usize,
        frame_bytes: usize,
        gauges: &Arc<Gauges>,
    ) -> Self {
        let frames_of = |streams: u16| {
            let threads = usize::from(streams) + usize::from(writers);
            let frames = usize::from(streams) + threads + usize::from(writers) * depth;
            frames.min(MOST_FRAME_BYTES / frame_bytes).max(threads)
        };
        let (frames, room) = (frames_of(streams), frames_of(streams.max(most_streams)));
        let (to, from) = bounded(room);
        let frames = Frames::with_room(room, frames, frame_bytes);
        Self {
            to,
            from,
            frames,
            handed: Arc::default(),
            gauges: Arc::clone(gauges),
        }
    }

    /// Bytes that streams handed on.
    pub fn handed_bytes(&self) -> u64 {
        self.handed.load(Ordering::Relaxed)
    }

    /// Hands a chunk to the threads that write.
    pub fn hand_on(&self, chunk: Chunk, frame: Frame) {
        self.gauges.queued_frames.add(1);
        self.handed.fetch_add(chunk.bytes, Ordering::Relaxed);
        // There is room for all frames there are; nobody is there any more only when the copy is over.
        let _ = self.to.try_send((chunk, frame));
    }
}

/// Notes what is written: for the journal, then for the machine.
#[derive(Debug)]
pub struct Proofs {
    machine: Arc<Machine>,
    destination: Arc<Destination>,
    gauges: Arc<Gauges>,
}

impl Proofs {
    /// Nothing is written yet.
    pub fn new(machine: &Arc<Machine>, destination: &Arc<Destination>, gauges: &Arc<Gauges>) -> Self {
        Self {
            machine: Arc::clone(machine),
            destination: Arc::clone(destination),
            gauges: Arc::clone(gauges),
        }
    }

    /// A part of a file is written. `may_wait`: not on a thread that gives names.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a part that is none of its tree.
    pub fn proved(&self, chunk: &Chunk, may_wait: bool) -> Result<(), Failure> {
        let entry = &chunk.entry;
        if let Some(partial) = entry.partial() {
            // Before it counts: what is named next needs no notes of its parts.
            let part = (chunk.offset, chunk.bytes, chunk.hash);
            self.destination.site().kept().journal.part(&partial, part);
        }
        let proof = self.machine.with(|machine| machine.written(&chunk.facts()))?;
        if proof == Proof::Late {
            return Ok(());
        }
        self.gauges.settled_bytes.add(chunk.bytes);
        if proof == Proof::All {
            debug!(entry = %Shown(&entry.source.path), bytes = entry.source.bytes, "all of entry proved");
            if may_wait {
                self.machine.wait_while(|machine| machine.is_full_of_files());
            }
        }
        Ok(())
    }
}

/// What chunks are written with: the same for all threads that write them.
#[derive(Debug)]
pub struct Writing {
    pub plan: Arc<Plan>,
    /// Data streams at first.
    pub streams: u16,
    pub partials: Arc<Partials>,
    pub proofs: Arc<Proofs>,
    pub ledger: Arc<Ledger>,
    pub machine: Arc<Machine>,
    pub run: Arc<Run>,
    pub gauges: Arc<Gauges>,
}

/// Writes chunks through one engine.
pub struct ChunkWriter {
    writing: Arc<Writing>,
    /// Nothing where nothing is written.
    writer: Option<Box<dyn Writer>>,
    /// Chunks under way, by tag.
    under_way: Vec<Option<Chunk>>,
    count: usize,
    /// Frames that may be used again.
    pub free: Vec<Frame>,
}

impl ChunkWriter {
    /// A pen of the engine that was chosen.
    ///
    /// # Errors
    /// As of [`engine::writer`].
    pub fn new(writing: &Arc<Writing>) -> Result<Self, Failure> {
        let choice = writing.plan.choice;
        let writer = (choice.engine != FileEngine::Null)
            .then(|| engine::writer(choice))
            .transpose()?;
        let depth = writer.as_ref().map_or(1, |writer| writer.depth());
        let share =
            MOST_FRAME_BYTES / most_frame_bytes(&writing.plan.spec) / usize::from(writing.streams.max(1));
        let depth = depth.min(share).max(1);
        Ok(Self {
            writing: Arc::clone(writing),
            writer,
            under_way: (0..depth).map(|_| None).collect(),
            count: 0,
            free: Vec::new(),
        })
    }

    /// Writes a chunk, or begins to.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn write(&mut self, chunk: Chunk, frame: Frame) -> Result<(), Failure> {
        let Some(writer) = &mut self.writer else {
            self.free.push(frame);
            return self.writing.proofs.proved(&chunk, true);
        };
        let file = match self.writing.partials.file_of(writer.as_ref(), &chunk.entry) {
            Ok(Some(file)) => file,
            nothing => {
                self.free.push(frame);
                return match nothing {
                    Err(error) => self.writing.ledger.hurt(&chunk.entry, "new file", &error),
                    Ok(_) => Ok(()),
                };
            }
        };
        let number = chunk.entry.number;
        let all = |machine: &mut super::driver::Receiver| machine.is_all_claimed(number);
        let is_last = self.writing.machine.quietly(all);
        let tag = self
            .under_way
            .iter()
            .position(Option::is_none)
            .unwrap_or_default();
        let request = Request {
            file,
            offset: chunk.offset,
            bytes: frame.payload().len(),
            frame,
            tag: tag as u64,
        };
        self.under_way[tag] = Some(chunk);
        self.count += 1;
        self.writing.gauges.file_ns.time(|| writer.submit(request));
        // The last chunks of a file are not kept waiting for more.
        let most = if is_last { 0 } else { self.under_way.len() - 1 };
        self.drain(most)
    }

    /// Waits until at most `most` writes are under way.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn drain(&mut self, most: usize) -> Result<(), Failure> {
        while self.count > most {
            let Some(writer) = &mut self.writer else {
                return Ok(());
            };
            let Some(completed) = self.writing.gauges.file_ns.time(|| writer.complete()) else {
                return Ok(());
            };
            self.count -= 1;
            let chunk = self.under_way[completed.request.tag as usize].take();
            self.free.push(completed.request.frame);
            let Some(chunk) = chunk else {
                continue;
            };
            match completed.result {
                Ok(_) => {
                    self.writing.gauges.file_bytes.add(chunk.bytes);
                    self.writing.proofs.proved(&chunk, true)?;
                }
                Err(error) => self.writing.ledger.hurt(&chunk.entry, "written", &error)?,
            }
        }
        Ok(())
    }
}

/// Writes what streams bring, until they are gone. On a thread of its own.
///
/// # Errors
/// What ends the copy.
pub fn write_for_streams(writing: &Arc<Writing>, line: &WriteQueue) -> Result<(), Failure> {
    let mut pen = ChunkWriter::new(writing)?;
    loop {
        writing.run.check()?;
        let next = match pen.count {
            0 => select! {
                recv(line.from) -> next => next.map_err(|_| RecvTimeoutError::Disconnected),
                recv(writing.run.gone) -> _ => Err(RecvTimeoutError::Disconnected),
                default(TICK) => Err(RecvTimeoutError::Timeout),
            },
            _ => line.from.try_recv().map_err(|_| RecvTimeoutError::Timeout),
        };
        match next {
            Ok((chunk, frame)) => {
                writing.gauges.queued_frames.take(1);
                pen.write(chunk, frame)?;
            }
            // Nothing waits: what is under way is waited for.
            Err(_) => pen.drain(pen.count.saturating_sub(1))?,
        }
        for frame in pen.free.drain(..) {
            line.frames.put(frame);
        }
        if writing.run.is_finished() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_files_are_written_by_a_thread_of_their_own_through_the_page_cache_alone() {
        let choice = |engine| Choice {
            engine,
            threads: 0,
            is_auto: true,
        };
        let (spec, buffered) = (CopySpec::default(), choice(FileEngine::Buffered));
        assert_eq!([relief(&spec, buffered, 1), relief(&spec, buffered, 2)], [0, 1]);
        assert_eq!(relief(&spec, choice(FileEngine::Direct), 2), 0);
        let said = CopySpec {
            writers: farline_spec::unit::ThreadCount::new(0).ok(),
            ..spec
        };
        assert_eq!(relief(&said, buffered, 2), 0);
    }

    #[test]
    fn frames_of_all_threads_do_not_take_all_memory() {
        let gauges = Arc::default();
        let frames = |line: &WriteQueue| line.to.capacity().unwrap_or_default();
        assert_eq!(
            frames(&WriteQueue::new((2, 2), 1, 3, 1024, &gauges)),
            2 * 2 + 1 + 3
        );
        let large = WriteQueue::new((10, 10), 100, 64, 16 << 20, &gauges);
        assert_eq!(frames(&large), 110, "one for each at least");
        let wide = WriteQueue::new((10, 10), 4, 64, 16 << 20, &gauges);
        assert_eq!(frames(&wide), 64, "a gibibyte");
    }
}
