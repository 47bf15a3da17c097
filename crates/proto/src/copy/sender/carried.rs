//! What the last frames of each stream of data carried: one that does not open at the other end is known by its number
//! alone, and what was in it is sent again.

use std::collections::{HashMap, VecDeque};
use std::mem;

use farline_spec::Failure;

use super::super::message::MOST_UNOPENED;
use super::{CopySender, Outcome, broken};

/// Frames that are remembered of one stream: more than can be on its way, at 64 KiB each a gigabyte.
const MOST_FRAMES: usize = 16_384;
/// Files of packs among them; all entries under way are fewer.
const MOST_FILES: usize = 1 << 18;
/// Chunks of one copy that are sent again, at most: a path that spoils more carries no copy.
const MOST_REPEATED_CHUNKS: u64 = 65_536;

/// What was in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cargo {
    /// A chunk.
    Chunk {
        /// Number of its file.
        file: u64,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        bytes: u32,
    },
    /// Whole files: their numbers.
    Pack(Box<[u64]>),
    /// It was asked for again.
    Repeated,
}

impl Cargo {
    const fn files(&self) -> usize {
        match self {
            Self::Pack(files) => files.len(),
            Self::Chunk { .. } | Self::Repeated => 0,
        }
    }
}

/// What the streams of one copy carried.
#[derive(Debug)]
pub(super) struct Carried {
    /// Whether anything may be asked for again.
    remembers: bool,
    /// By number of the stream.
    streams: HashMap<u16, Recent>,
    unopened: u32,
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
    /// Nothing yet; `remembers` whether anything may be asked for again.
    pub fn new(remembers: bool) -> Self {
        Self {
            remembers,
            streams: HashMap::new(),
            unopened: 0,
        }
    }
}

impl<T: Clone> CopySender<T> {
    /// One stream of data, before its first frame.
    pub fn add_stream(&mut self, stream: u16) {
        if self.carried.remembers {
            self.carried.streams.entry(stream).or_default();
        }
    }

    /// Notes that a frame with `cargo` goes over `stream` next; false where that stream was given up: then what is in it goes over
    /// another.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a part that was not handed out.
    pub fn carry(&mut self, stream: u16, cargo: Cargo) -> Result<bool, Failure> {
        let recent = self.carried.streams.get_mut(&stream);
        match recent.and_then(|recent| recent.note(cargo)) {
            None => Ok(true),
            Some(cargo) => self.carry_again(&cargo).map(|()| false),
        }
    }

    /// What was read for a stream that was given up goes over another.
    ///
    /// # Errors
    /// As of [`Self::carry`].
    pub fn carry_again(&mut self, cargo: &Cargo) -> Result<(), Failure> {
        match cargo {
            Cargo::Chunk { file, offset, bytes } => self.repeat(*file, *offset, u64::from(*bytes)),
            Cargo::Pack(files) => files.iter().try_for_each(|file| {
                let bytes = self.live.get(file).map_or(0, |entry| entry.about.bytes);
                self.repeat(*file, 0, bytes)
            }),
            Cargo::Repeated => Ok(()),
        }
    }

    /// Whether `stream` was given up.
    pub fn is_closed(&self, stream: u16) -> bool {
        let recent = self.carried.streams.get(&stream);
        recent.is_some_and(|recent| recent.is_closed)
    }

    /// Frame `record` of `stream` did not open at the other end.
    pub(super) fn unopened(&mut self, stream: u16, record: u64) -> Result<(), Failure> {
        let recent = self.carried.streams.get_mut(&stream);
        let Some(cargo) = recent.and_then(|recent| recent.take(record)) else {
            return Err(forgotten(stream, record));
        };
        if self.carried.unopened >= MOST_UNOPENED {
            return Err(broken(format!(
                "more than {MOST_UNOPENED} frames reported unreadable"
            )));
        }
        self.carried.unopened += 1;
        self.count_repeated()?;
        self.carry_again(&cargo)
    }

    /// From frame `record` on the other end cannot read `stream`.
    pub(super) fn out_of_step(&mut self, stream: u16, record: u64) -> Result<(), Failure> {
        let recent = self.carried.streams.get_mut(&stream);
        let Some(left) = recent.and_then(|recent| recent.close(record)) else {
            return Err(forgotten(stream, record));
        };
        self.outcomes.push_back(Outcome::StreamLost { stream, record });
        for cargo in left.iter().filter(|cargo| **cargo != Cargo::Repeated) {
            self.count_repeated()?;
            self.carry_again(cargo)?;
        }
        Ok(())
    }

    /// One chunk or pack more was asked for again.
    pub(super) fn count_repeated(&mut self) -> Result<(), Failure> {
        if self.repeated_chunks >= MOST_REPEATED_CHUNKS {
            return Err(broken(format!(
                "more than {MOST_REPEATED_CHUNKS} chunks reported corrupted"
            )));
        }
        self.repeated_chunks += 1;
        Ok(())
    }
}

fn forgotten(stream: u16, record: u64) -> Failure {
    broken(format!(
        "frame {record} of stream {stream} was requested again, but its contents are no longer known"
    ))
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
