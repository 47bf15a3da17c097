//! Streams of data: what comes is checked, then written by the stream's own thread, or handed to threads that write for all.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_spec::Failure;

use super::entry::{Body, Entry, TICK};
use super::large::Chunk;
use super::pen::{Line, Pen};
use super::place::Folders;
use super::shared::{Mode, Shared, broken};
use super::works::Written;
use crate::frame::FrameKind;
use crate::pack::{self, Item};
use crate::{Arrived, Frame, Inlet, most_frame_bytes};

/// The thread of one stream.
pub struct Stream<'a> {
    shared: &'a Arc<Shared>,
    /// Where chunks go: through the stream's own pen, or to others.
    pen: Option<Pen>,
    line: Option<Line>,
    folders: Option<Folders>,
}

impl<'a> Stream<'a> {
    /// A stream that writes for itself, or hands chunks to `line`.
    ///
    /// # Errors
    /// As of [`Pen::new`].
    pub fn new(shared: &'a Arc<Shared>, line: Option<Line>) -> Result<Self, Failure> {
        let pen = match line {
            Some(_) => None,
            None => Some(Pen::new(shared)?),
        };
        Ok(Self {
            shared,
            pen,
            line,
            folders: None,
        })
    }

    /// Takes frames until the stream ends.
    ///
    /// # Errors
    /// The stream's; what ended the copy.
    pub fn run(&mut self, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        let mut frame = self.next_frame()?;
        loop {
            self.shared.check()?;
            match inlet.receive(&mut frame)? {
                Arrived::Frame => {
                    frame = match self.take(frame)? {
                        Some(frame) => frame,
                        None => self.next_frame()?,
                    }
                }
                Arrived::Nothing => self.drain()?,
                Arrived::End => {
                    self.drain()?;
                    return Ok(());
                }
            }
        }
    }

    fn drain(&mut self) -> Result<(), Failure> {
        self.pen.as_mut().map_or(Ok(()), |pen| pen.drain(0))
    }

    fn next_frame(&mut self) -> Result<Frame, Failure> {
        let frame_bytes = most_frame_bytes(&self.shared.spec);
        let Some(line) = &self.line else {
            let kept = self.pen.as_mut().and_then(|pen| pen.free.pop());
            return Ok(kept.unwrap_or_else(|| Frame::new(frame_bytes)));
        };
        self.shared.gauges.starved_ns.time(|| {
            loop {
                self.shared.check()?;
                match line.frame(TICK) {
                    Some(frame) => return Ok(frame),
                    None if self.shared.finished.load(Ordering::Acquire) => {
                        return Ok(Frame::new(frame_bytes));
                    }
                    None => {}
                }
            }
        })
    }

    /// The frame, if it may be used again at once.
    fn take(&mut self, frame: Frame) -> Result<Option<Frame>, Failure> {
        let header = frame.header()?;
        match header.kind {
            FrameKind::Pack => {
                self.pack(&frame)?;
                Ok(Some(frame))
            }
            FrameKind::Chunk => {
                self.shared.count_moved(u64::from(header.payload_bytes))?;
                match self.shared.admit(&header, frame.payload())? {
                    Some(chunk) => self.write(chunk, frame).map(|()| None),
                    None => Ok(Some(frame)),
                }
            }
            FrameKind::Catalogue | FrameKind::Feedback => Err(broken("messages on a stream of data")),
        }
    }

    fn write(&mut self, chunk: Chunk, frame: Frame) -> Result<(), Failure> {
        if let Some(pen) = &mut self.pen {
            return pen.write(chunk, frame);
        }
        if let Some(line) = &self.line {
            self.shared.gauges.queued_frames.add(1);
            // There is room for all frames there are; nobody is there any more only when the copy is over.
            let _ = line.to.try_send((chunk, frame));
        }
        Ok(())
    }

    fn pack(&mut self, frame: &Frame) -> Result<(), Failure> {
        let items = pack::items(frame.payload()).collect::<Result<Vec<_>, _>>()?;
        let bytes = items.iter().map(|item| item.content.len() as u64).sum();
        self.shared.count_moved(bytes)?;
        let numbers: Vec<u64> = items.iter().map(|item| item.file).collect();
        let entries = self.shared.table.get(&numbers, || self.shared.check())?;
        if self.folders.is_none() && entries.iter().any(Option::is_some) {
            self.folders = self.shared.folders();
        }
        let mut written = Vec::with_capacity(items.len());
        let mut done = Vec::new();
        for (item, entry) in items.iter().zip(&entries) {
            let Some(entry) = entry else {
                continue;
            };
            let Some(hash) = self.admit(item, entry)? else {
                continue;
            };
            match self.folders.as_mut() {
                Some(folders) if self.shared.mode == Mode::Real => {
                    match self.shared.write_small(folders, entry, item.content, hash) {
                        Ok(small) => written.push(small),
                        Err(error) => self.shared.hurt(entry, "new file", &error)?,
                    }
                }
                _ => done.push((Arc::clone(entry), hash)),
            }
        }
        self.shared.done(&done)?;
        self.hand_on(written)
    }

    /// Small files wait for their group where a device is to be waited for.
    fn hand_on(&mut self, written: Vec<Written>) -> Result<(), Failure> {
        if written.is_empty() {
            return Ok(());
        }
        if self.shared.durable {
            self.shared
                .gauges
                .starved_ns
                .time(|| self.shared.works.group(written));
            return Ok(());
        }
        match self.folders.as_mut() {
            Some(folders) => self.shared.finish_group(folders, written),
            None => Ok(()),
        }
    }

    /// The hash of a file that came whole; `None` if it is not to be written.
    #[expect(clippy::option_option, reason = "a file may have no hash")]
    fn admit(&self, item: &Item<'_>, entry: &Arc<Entry>) -> Result<Option<Option<[u8; 32]>>, Failure> {
        let shared = self.shared;
        if entry.link_to.is_some() || item.content.len() as u64 != entry.source.bytes {
            return Err(broken(format!("file {} comes with another length", entry.number)));
        }
        let hash = match shared.is_hashed() {
            true => Some(
                shared
                    .gauges
                    .hash_ns
                    .time(|| *blake3::hash(item.content).as_bytes()),
            ),
            false => None,
        };
        let mut body = entry.body();
        let Body::Expected(spoiled) = &mut *body else {
            return Err(broken(format!("file {} comes twice", entry.number)));
        };
        if shared.is_hashed() && item.hash.is_none() {
            return Err(broken("a file without its hash"));
        }
        if hash.is_some() && item.hash != hash {
            *spoiled += 1;
            let count = *spoiled;
            drop(body);
            return shared.once_more(entry, 0, count).map(|()| None);
        }
        *body = Body::Packed;
        Ok(Some(hash))
    }
}
