//! A sending end for trials: says what it has, sends what is wanted in any order over any stream, and tries again what changed.

use std::collections::{BTreeMap, VecDeque};

use farline_proto::copy::message::{Catalogue, Entry, EntryKind, Feedback, GRAIN_BYTES, Proved, Wants};
use farline_proto::copy::receiver::{Chunk, Item};
use farline_proto::copy::tree_hash::subtree_bytes;

use super::Options;
use super::source::{SourceFile, chunk_hash};
use crate::Random;

/// Chunks of all trials.
pub const CHUNK_BYTES: u64 = 4 * GRAIN_BYTES;
/// How often a file that changes is announced.
const MOST_TRIES: u32 = 4;

/// What a frame of data carries, and what its grains are.
#[derive(Debug, Clone)]
pub enum Frame {
    /// A chunk of one file.
    Chunk(Chunk, Vec<u64>),
    /// Whole small files.
    Pack(Vec<(Item, Vec<u64>)>),
}

/// An entry that was announced.
#[derive(Debug)]
struct Sent {
    file: SourceFile,
    place: usize,
    tries: u32,
    /// What of it is wanted and not sent; `None` until it is known.
    to_send: Option<Vec<(u64, u64)>>,
    /// Whether chunks of it went: it is heard then when all of it is there.
    has_gone: bool,
    is_whole: bool,
    is_settled: bool,
    is_over: bool,
}

/// The sending end of one session.
#[derive(Debug)]
pub struct SendingEnd {
    options: Options,
    /// What it said and the other end has not heard.
    pub said: VecDeque<Catalogue>,
    /// Frames on their way, by stream, each with its number.
    pub data: Vec<VecDeque<(u64, Frame)>>,
    /// Frames that were sent, by stream and number, to be sent again.
    kept: BTreeMap<(u16, u64), Frame>,
    records: Vec<u64>,
    entries: Vec<Sent>,
    /// Places of files to be announced, how often they were, and whether they come as files of their own.
    to_announce: VecDeque<(usize, u32, bool)>,
    /// Number of the entry of each place.
    numbers: BTreeMap<usize, u64>,
    /// Places of files that failed.
    failed: Vec<usize>,
    is_fresh: bool,
    has_ended: bool,
    /// What the other end said at its end.
    pub finished: Option<Vec<String>>,
}

impl SendingEnd {
    /// One that has these files.
    pub fn new(options: Options, files: usize) -> Self {
        let begin = Catalogue::Begin {
            chunk_bytes: CHUNK_BYTES,
            top: None,
            asks_whole: options.asks_whole,
        };
        let streams = usize::from(options.streams);
        Self {
            options,
            said: VecDeque::from([begin]),
            data: vec![VecDeque::new(); streams],
            kept: BTreeMap::new(),
            records: vec![0; streams],
            entries: Vec::new(),
            to_announce: (0..files).map(|place| (place, 1, false)).collect(),
            numbers: BTreeMap::new(),
            failed: Vec::new(),
            is_fresh: false,
            has_ended: false,
            finished: None,
        }
    }

    /// Hears what the other end says.
    pub fn hear(&mut self, feedback: Feedback) {
        match feedback {
            Feedback::Ready { fresh } => self.is_fresh = fresh,
            Feedback::Answers { first, wants } => {
                for (number, wants) in (first..).zip(wants) {
                    self.answered(number, wants);
                }
            }
            Feedback::Whole { file } => self.entries[file as usize].is_whole = true,
            Feedback::Done { file, .. } => self.entries[file as usize].is_over = true,
            Feedback::Failed { file, .. } => {
                let entry = &mut self.entries[file as usize];
                entry.is_over = true;
                self.failed.push(entry.place);
            }
            Feedback::Again { file, offset, bytes } => {
                let entry = &mut self.entries[file as usize];
                entry.to_send.get_or_insert_default().push((offset, bytes));
            }
            Feedback::Unopened { stream, record } => {
                if let Some(frame) = self.kept.get(&(stream, record)).cloned() {
                    self.send(0, frame);
                }
            }
            Feedback::Apart { file } => self.lose(file, "comes by itself", true, true),
            Feedback::Finished { problems } => self.finished = Some(problems),
            Feedback::Deleted { .. } | Feedback::OutOfStep { .. } => {}
        }
    }

    fn answered(&mut self, number: u64, wants: Wants) {
        let entry = &mut self.entries[number as usize];
        match wants {
            Wants::All => {
                let all = vec![(0, entry.file.bytes)];
                entry.to_send.get_or_insert(all);
            }
            Wants::Rest(proved) => entry.to_send = Some(rest(entry.file.bytes, &proved)),
            _ => entry.is_over = true,
        }
    }

    fn lose(&mut self, file: u64, reason: &str, again: bool, is_own: bool) {
        let entry = &mut self.entries[file as usize];
        if std::mem::replace(&mut entry.is_over, true) {
            return;
        }
        if again {
            self.to_announce.push_back((entry.place, entry.tries + 1, is_own));
        }
        self.said.push_back(Catalogue::Lost {
            file,
            reason: reason.to_owned(),
            again,
        });
    }

    /// Whether the other end said that the file at this place failed.
    pub fn has_failed(&self, place: usize) -> bool {
        self.failed.contains(&place)
    }

    /// Does the next thing, if there is any; whether it did something.
    pub fn step(&mut self, random: &mut Random, files: &[SourceFile]) -> bool {
        if random.bits() % 2 == 0 && self.announce(files) {
            return true;
        }
        let under_way: Vec<usize> = (0..self.entries.len())
            .filter(|number| !self.entries[*number].is_over)
            .collect();
        if !under_way.is_empty() {
            let first = random.bits() as usize % under_way.len();
            let turn = under_way.iter().cycle().skip(first).take(under_way.len());
            for number in turn {
                if self.work_at(*number, random, files) {
                    return true;
                }
            }
        }
        self.announce(files) || self.end(under_way.is_empty())
    }

    fn announce(&mut self, files: &[SourceFile]) -> bool {
        let Some((place, tries, is_own)) = self.to_announce.pop_front() else {
            return false;
        };
        let file = files[place].clone();
        let number = self.entries.len() as u64;
        let to = file.link_to.filter(|_| !is_own);
        let kind = match to.and_then(|to| self.numbers.get(&to)) {
            Some(to) => EntryKind::HardLink { to: *to },
            None => EntryKind::File {
                bytes: file.bytes,
                hash: None,
            },
        };
        let is_link = matches!(kind, EntryKind::HardLink { .. });
        self.numbers.insert(place, number);
        self.said.push_back(Catalogue::Entry(Entry {
            path: file.path.clone(),
            kind,
            mode: 0o644,
            mtime_ns: file.mtime_ns(),
            ctime_ns: file.mtime_ns(),
            xattrs: Vec::new(),
        }));
        let goes_at_once = self.is_fresh && !is_link;
        self.entries.push(Sent {
            to_send: goes_at_once.then(|| vec![(0, file.bytes)]),
            file,
            place,
            tries,
            has_gone: false,
            is_whole: false,
            is_settled: is_link,
            is_over: false,
        });
        true
    }

    /// Goes on with one entry; whether there was something to do.
    fn work_at(&mut self, number: usize, random: &mut Random, files: &[SourceFile]) -> bool {
        let entry = &mut self.entries[number];
        let Some(to_send) = &mut entry.to_send else {
            return false;
        };
        let has_changed = files[entry.place].version != entry.file.version;
        let waits = self.options.asks_whole && entry.has_gone && !entry.is_whole;
        if to_send.is_empty() && (entry.is_settled || waits) {
            return false;
        }
        let file = number as u64;
        if has_changed && !entry.is_settled {
            let again = entry.tries < MOST_TRIES;
            self.lose(file, "changed while it was read", again, false);
            return true;
        }
        if to_send.is_empty() {
            entry.is_settled = true;
            let hash = entry.file.hash().filter(|_| self.options.is_hashed);
            self.said.push_back(Catalogue::Settled { file, hash });
            return true;
        }
        let place = random.bits() as usize % to_send.len();
        let (offset, bytes) = to_send.swap_remove(place);
        self.send_part(file, offset, bytes, random);
        true
    }

    /// Sends a part of a file: as a hole, in a pack, or the first chunk of it.
    fn send_part(&mut self, file: u64, offset: u64, bytes: u64, random: &mut Random) {
        let entry = &mut self.entries[file as usize];
        let whole = entry.file.bytes;
        let first = (offset / GRAIN_BYTES) as usize;
        if bytes == whole && entry.file.grains() == 1 && !entry.is_settled_by_chunks() {
            let item = Item {
                file,
                bytes,
                hash: entry.file.hash().filter(|_| self.options.is_hashed),
            };
            // A pack says that nothing changed.
            entry.is_settled = true;
            let frame = Frame::Pack(vec![(item, entry.file.tags())]);
            self.send(random.bits() as usize, frame);
            return;
        }
        let is_hole = |grain: usize| entry.file.tag(grain) == 0;
        if is_hole(first) {
            let bytes_of_hole = GRAIN_BYTES.min(bytes);
            entry.put_back(offset + bytes_of_hole, bytes - bytes_of_hole);
            let bytes = bytes_of_hole;
            self.said.push_back(Catalogue::Hole { file, offset, bytes });
            return;
        }
        let solid = (first..).take_while(|grain| *grain < entry.file.grains() && !is_hole(*grain));
        let end = (first + solid.count()) as u64 * GRAIN_BYTES;
        let end = end.min(offset + bytes);
        let part = subtree_bytes(offset, end, whole, CHUNK_BYTES);
        entry.put_back(offset + part, bytes - part);
        entry.has_gone = true;
        let last = (offset + part).div_ceil(GRAIN_BYTES) as usize;
        let mut tags: Vec<u64> = (first..last).map(|grain| entry.file.tag(grain)).collect();
        let hash = chunk_hash(whole, offset, part, &tags).filter(|_| self.options.is_hashed);
        if self.options.is_hashed && random.bits() % 16 == 0 {
            // Damaged on the way.
            tags[0] ^= 2;
        }
        let chunk = Chunk {
            file,
            offset,
            bytes: part,
            hash,
        };
        self.send(random.bits() as usize, Frame::Chunk(chunk, tags));
    }

    fn send(&mut self, stream: usize, frame: Frame) {
        let stream = stream % self.data.len();
        let record = self.records[stream];
        self.records[stream] += 1;
        self.kept.insert((stream as u16, record), frame.clone());
        self.data[stream].push_back((record, frame));
    }

    /// Says that there are no more entries, when none can follow.
    fn end(&mut self, nothing_under_way: bool) -> bool {
        if self.has_ended || !self.to_announce.is_empty() {
            return false;
        }
        let may_follow = |entry: &Sent| !entry.is_over && (!entry.is_settled || entry.to_send.is_none());
        let is_last = nothing_under_way || !self.entries.iter().any(may_follow);
        if is_last {
            self.has_ended = true;
            let entries = self.entries.len() as u64;
            self.said.push_back(Catalogue::End { entries, whole: true });
        }
        is_last
    }
}

impl Sent {
    /// Whether chunks of it may have been sent: it does not go in a pack then.
    const fn is_settled_by_chunks(&self) -> bool {
        self.file.has_holes
    }

    fn put_back(&mut self, offset: u64, bytes: u64) {
        if bytes > 0 {
            self.to_send.get_or_insert_default().push((offset, bytes));
        }
    }
}

/// What of a file is not proved.
fn rest(bytes: u64, proved: &[Proved]) -> Vec<(u64, u64)> {
    let mut ranges = farline_proto::copy::Ranges::default();
    for part in proved {
        ranges.claim(part.offset, part.bytes);
    }
    ranges.gaps(bytes)
}
