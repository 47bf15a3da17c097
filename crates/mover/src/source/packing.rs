//! Small files: each opened, read and hashed where it stands in the frame of a pack.

use std::sync::Arc;

use farline_proto::copy::sender::Batch;
use farline_sys::file;

use super::chunk_reader::ChunkReader;
use super::queue::Filled;
use super::run::PAUSE;
use super::sending::Sending;
use super::steady;
use super::trouble::Trouble;
use crate::engine::OpenFile;
use crate::frame::{Frame, FrameKind, Header};
use crate::pack::{ITEM_HEADER_BYTES, write_item_header};
use crate::sum::content_sum;

/// What became of the files of one pack.
#[derive(Debug, Default)]
struct Packed {
    /// Bytes of the pack filled so far.
    at: usize,
    /// Bytes of content in it.
    content_bytes: u64,
}

impl ChunkReader {
    /// A pack of a batch, and of others while it has room and the supply has more; `None` if none of them could be read.
    pub(super) fn fill_pack(&mut self, batch: Batch<Arc<Sending>>) -> Option<Filled> {
        let mut frame = self.frame_for_pack()?;
        let Batch {
            mut files,
            pack_bytes,
        } = batch;
        let mut packed = Packed::default();
        while !files.is_empty() {
            let mut ahead = self.open_ahead(&files).into_iter();
            for (_, file) in files.drain(..) {
                self.add(&file, ahead.next(), &mut frame, &mut packed);
            }
            let room_bytes = pack_bytes.saturating_sub(packed.at);
            files = self.driver.ask(|machine| machine.more(room_bytes));
        }
        self.driver.ask(|machine| machine.pack_done());
        self.run.count_work();
        if packed.at == 0 {
            self.pool.put(frame);
            return None;
        }
        frame.set(&Header {
            payload_bytes: packed.at as u32,
            ..Header::of_messages(FrameKind::Pack)
        });
        Some(Filled {
            frame,
            content_bytes: packed.content_bytes,
            file: None,
            pointer: None,
        })
    }

    /// `None` when the copy is over.
    fn frame_for_pack(&self) -> Option<Frame> {
        while !self.run.is_over() {
            match self.pool.try_take() {
                Some(frame) => return Some(frame),
                None => self.pool.wait(PAUSE),
            }
        }
        None
    }

    /// Opens files whose content has to come from a device, and asks for it: one comes while another is read.
    fn open_ahead(&mut self, files: &[(u64, Arc<Sending>)]) -> Vec<Result<OpenFile, Trouble>> {
        if !self.reading.waits_for_device || files.len() < 2 {
            return Vec::new();
        }
        let open = |(_, file): &(u64, Arc<Sending>)| {
            let opened = self.scheduler.open_small(&*self.reader, file)?;
            // Only advice: what is not asked for ahead is read all the same.
            let _ = file::will_read(opened.fd(), 0, file.found.bytes());
            Ok(opened)
        };
        files.iter().map(open).collect()
    }

    fn add(
        &mut self,
        file: &Arc<Sending>,
        opened: Option<Result<OpenFile, Trouble>>,
        frame: &mut Frame,
        packed: &mut Packed,
    ) {
        // It fits into the frame: the supply looked.
        let bytes = file.found.bytes() as usize;
        let place = &mut frame.room()[packed.at..packed.at + ITEM_HEADER_BYTES + bytes];
        let content = &mut place[ITEM_HEADER_BYTES..];
        let opened = opened.unwrap_or_else(|| self.scheduler.open_small(&*self.reader, file));
        if let Err(trouble) = opened.and_then(|opened| self.read_small(file, opened, content)) {
            return self.driver.lost(file, &trouble);
        }
        let reading = &self.reading;
        let content = &place[ITEM_HEADER_BYTES..];
        let sum = |kind| reading.gauges.hash_ns.time(|| content_sum(kind, content));
        let hash = reading.sum.map(sum);
        if !self.driver.ask(|machine| machine.item_read(file.number, hash)) {
            return;
        }
        write_item_header(place, file.number, bytes as u32, hash);
        packed.at += ITEM_HEADER_BYTES + bytes;
        packed.content_bytes += bytes as u64;
    }

    /// Reads all of a file; what was seen of it before has to be true after that.
    fn read_small(&self, file: &Sending, opened: OpenFile, content: &mut [u8]) -> Result<(), Trouble> {
        let gauges = &self.reading.gauges;
        steady::begin_small(&file.found, opened.fd());
        let (read, is_same) = gauges.file_ns.time(|| {
            let read = opened.read_at(content, 0);
            (read, steady::end_small(&file.found, opened.fd()))
        });
        gauges.name_ns.time(|| drop(opened));
        // First: what is no longer a file cannot be read either.
        is_same?;
        let read = read?;
        gauges.file_bytes.add(read as u64);
        if read < content.len() {
            return Err(Trouble::Changed);
        }
        Ok(())
    }
}
