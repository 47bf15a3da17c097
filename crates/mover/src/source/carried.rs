//! What the last frames of each stream of data carried: one that does not open at the other end is known by its number
//! alone, and what was in it is sent again.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use farline_spec::{Failure, FailureKind};

use super::producer::Filled;
use super::shared::Shared;
use super::table::Known;
use crate::Frame;
use crate::frame::FrameKind;
use crate::message::MOST_UNOPENED;
use crate::pack;

/// Frames that are remembered of one stream: more than can be on its way, at 64 KiB each a gigabyte.
const MOST_FRAMES: usize = 16_384;
/// Files of packs among them; all entries under way are fewer.
const MOST_FILES: usize = 1 << 18;

/// What was in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cargo {
    /// A chunk.
    Chunk { file: u64, offset: u64, bytes: u32 },
    /// Whole files: their numbers.
    Pack(Box<[u64]>),
    /// It was asked for again.
    Repeated,
}

impl Cargo {
    /// What is in `frame`, which is about to be sent.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] for a frame that this end did not fill.
    fn of(frame: &Frame) -> Result<Self, Failure> {
        let header = frame.header()?;
        match header.kind {
            FrameKind::Chunk => Ok(Self::Chunk {
                file: header.file,
                offset: header.offset,
                bytes: header.payload_bytes,
            }),
            FrameKind::Pack => {
                let numbers = pack::items(frame.payload()).map(|item| item.map(|item| item.file));
                numbers.collect::<Result<_, _>>().map(Self::Pack)
            }
            FrameKind::Catalogue | FrameKind::Feedback => {
                let line = "messages among the data that are to be sent";
                Err(Failure::new(FailureKind::Internal, line))
            }
        }
    }

    const fn files(&self) -> usize {
        match self {
            Self::Pack(files) => files.len(),
            Self::Chunk { .. } | Self::Repeated => 0,
        }
    }
}

/// What the streams of one copy carried.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Whether anything may be asked for again.
    remembers: bool,
    /// By number of the stream.
    streams: RwLock<HashMap<u16, Arc<Mutex<Recent>>>>,
    /// Streams that were given up.
    closed: AtomicU32,
    unopened: AtomicU32,
}

/// The last frames of one stream.
#[derive(Debug, Default)]
struct Recent {
    /// Number of the next frame.
    next: u64,
    cargoes: VecDeque<Cargo>,
    files: usize,
    is_closed: bool,
}

impl Recent {
    /// Notes what the next frame carries; gives it back where the stream was given up.
    fn note(&mut self, cargo: Cargo) -> Option<Cargo> {
        if self.is_closed {
            return Some(cargo);
        }
        self.next += 1;
        self.files += cargo.files();
        self.cargoes.push_back(cargo);
        while self.cargoes.len() > MOST_FRAMES || self.files > MOST_FILES {
            let oldest = self.cargoes.pop_front();
            self.files -= oldest.as_ref().map_or(0, Cargo::files);
        }
        None
    }

    /// Where frame `record` stands among those remembered.
    fn place(&self, record: u64) -> Option<usize> {
        let back = usize::try_from(self.next.checked_sub(record)?).ok()?;
        self.cargoes.len().checked_sub(back)
    }

    /// What frame `record` carried; once.
    fn take(&mut self, record: u64) -> Option<Cargo> {
        let place = self.place(record)?;
        let cargo = mem::replace(self.cargoes.get_mut(place)?, Cargo::Repeated);
        self.files -= cargo.files();
        (cargo != Cargo::Repeated).then_some(cargo)
    }

    /// Gives the stream up; gives what it carried from frame `record` on.
    fn close(&mut self, record: u64) -> Option<VecDeque<Cargo>> {
        let place = self.place(record).filter(|_| !self.is_closed)?;
        self.is_closed = true;
        self.files = 0;
        let mut all = mem::take(&mut self.cargoes);
        Some(all.split_off(place))
    }
}

impl Carried {
    /// Nothing yet, of `streams` streams; `remembers` whether anything may be asked for again.
    pub(super) fn new(streams: u16, remembers: bool) -> Self {
        let carried = Self {
            remembers,
            ..Self::default()
        };
        (0..streams).for_each(|stream| carried.add(stream));
        carried
    }

    /// One stream more.
    pub(super) fn add(&self, stream: u16) {
        if self.remembers {
            let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
            streams.entry(stream).or_default();
        }
    }

    fn of<T>(&self, stream: u16, look: impl FnOnce(&mut Recent) -> T) -> Option<T> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        let recent = Arc::clone(streams.get(&stream)?);
        drop(streams);
        let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
        Some(look(&mut recent))
    }

    /// Whether `stream` was given up.
    pub(super) fn is_closed(&self, stream: u16) -> bool {
        let any = self.closed.load(Ordering::Acquire) > 0;
        any && self.of(stream, |recent| recent.is_closed).unwrap_or_default()
    }
}

impl Shared {
    /// Notes that `frame` goes over `stream` next; false where that stream was given up: then what is in it goes over another.
    ///
    /// # Errors
    /// [`FailureKind::Internal`] for a frame that this end did not fill.
    pub(super) fn may_carry(&self, stream: u16, frame: &Frame) -> Result<bool, Failure> {
        if !self.carried.remembers {
            return Ok(true);
        }
        let cargo = Cargo::of(frame)?;
        let refused = self.carried.of(stream, |recent| recent.note(cargo)).flatten();
        match refused {
            None => Ok(true),
            Some(cargo) => self.carry_again(&cargo).map(|()| false),
        }
    }

    /// What is in `filled` goes over another stream.
    ///
    /// # Errors
    /// As of [`Self::may_carry`].
    pub(super) fn hand_back(&self, filled: &Filled) -> Result<(), Failure> {
        self.carry_again(&Cargo::of(&filled.frame)?)
    }

    /// Frame `record` of `stream` did not open at the other end.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a frame that was not sent or is not remembered, or for one too many.
    pub(super) fn unopened(&self, stream: u16, record: u64) -> Result<(), Failure> {
        let cargo = self.carried.of(stream, |recent| recent.take(record)).flatten();
        let Some(cargo) = cargo else {
            return self.broken(forgotten(stream, record));
        };
        if self.carried.unopened.fetch_add(1, Ordering::Relaxed) >= MOST_UNOPENED {
            return self.broken(format!("more than {MOST_UNOPENED} frames reported unreadable"));
        }
        self.count_repeated()?;
        self.carry_again(&cargo)
    }

    /// From frame `record` on the other end cannot read `stream`.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] where no other stream is left, or as of [`Self::unopened`].
    pub(super) fn out_of_step(&self, stream: u16, record: u64) -> Result<(), Failure> {
        let left = self.carried.of(stream, |recent| recent.close(record)).flatten();
        let Some(left) = left else {
            return self.broken(forgotten(stream, record));
        };
        self.carried.closed.fetch_add(1, Ordering::AcqRel);
        if self.lanes.lose() == 0 {
            return self.broken(format!(
                "the other end cannot read stream {stream} from frame {record} on, and no other stream is left"
            ));
        }
        for cargo in left.iter().filter(|cargo| **cargo != Cargo::Repeated) {
            self.count_repeated()?;
            self.carry_again(cargo)?;
        }
        // Whoever waits for something to send on that stream has to end it.
        self.supply.ring();
        Ok(())
    }

    fn carry_again(&self, cargo: &Cargo) -> Result<(), Failure> {
        match cargo {
            Cargo::Chunk { file, offset, bytes } => self.again(*file, Some((*offset, u64::from(*bytes)))),
            Cargo::Pack(files) => files.iter().try_for_each(|file| self.again(*file, None)),
            Cargo::Repeated => Ok(()),
        }
    }

    /// A part of a file, or all of it, is read and sent again, unless the file is settled meanwhile.
    fn again(&self, number: u64, part: Option<(u64, u64)>) -> Result<(), Failure> {
        let Known::Live(file) = self.table.find(number) else {
            return Ok(());
        };
        let (offset, bytes) = part.unwrap_or((0, file.found.bytes()));
        match self.repeat(&file, offset, bytes) {
            true => Ok(()),
            false => self.broken(format!("entry {number} requested again before it was sent")),
        }
    }
}

fn forgotten(stream: u16, record: u64) -> String {
    format!("frame {record} of stream {stream} was requested again, but its contents are no longer known")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(file: u64) -> Cargo {
        Cargo::Chunk {
            file,
            offset: 0,
            bytes: 1,
        }
    }

    #[test]
    fn a_frame_is_found_by_its_number_once() {
        let mut recent = Recent::default();
        for file in 0..5 {
            assert_eq!(recent.note(chunk(file)), None);
        }
        assert_eq!(recent.take(3), Some(chunk(3)));
        for gone in [3, 5, 6, u64::MAX] {
            assert_eq!(recent.take(gone), None, "{gone}");
        }
        assert_eq!(
            recent.close(5),
            Some(VecDeque::new()),
            "nothing came after the last"
        );
        assert_eq!(
            recent.note(chunk(9)),
            Some(chunk(9)),
            "a stream that was given up"
        );
    }

    #[test]
    fn a_stream_is_given_up_once_with_all_that_did_not_come() {
        let mut recent = Recent::default();
        for file in 0..5 {
            recent.note(chunk(file));
        }
        recent.take(4);
        let left = recent.close(3).unwrap();
        assert_eq!(left, [chunk(3), Cargo::Repeated]);
        assert_eq!(recent.close(3), None);
        assert_eq!(Recent::default().close(1), None, "what was never sent");
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes() {
        let mut recent = Recent::default();
        let sent = MOST_FRAMES as u64 + 10;
        for file in 0..sent {
            recent.note(chunk(file));
        }
        assert_eq!((recent.cargoes.len(), recent.take(9)), (MOST_FRAMES, None));
        assert_eq!(recent.take(10), Some(chunk(10)));
        assert_eq!(recent.close(5), None, "more is lost than is remembered");
        let mut packs = Recent::default();
        let pack = || Cargo::Pack(vec![7; MOST_FILES / 4].into());
        for _ in 0..9 {
            packs.note(pack());
        }
        assert_eq!((packs.cargoes.len(), packs.files), (4, MOST_FILES));
        assert_eq!((packs.take(4), packs.take(5)), (None, Some(pack())));
    }
}
