//! A driver of the sending machine over modelled files: does what `farline-mover` does, one step at a time. What it reads is what
//! a file has at that moment, and files change between any two steps.

use std::collections::{BTreeMap, HashSet, VecDeque};

use farline_proto::copy::CopySender;
use farline_proto::copy::message::{Catalogue, Entry, EntryKind, Feedback, GRAIN_BYTES};
use farline_proto::copy::receiver::{Chunk, Item};
use farline_proto::copy::sender::{
    Announcement, Cargo, Config, Inode, Kind, Known, Look, Loss, Outcome, Piece, Reach, Settled, Span, Word,
    Work,
};
use farline_proto::copy::tree_hash::subtree_bytes;
use farline_spec::FileStatus;

use super::source::{SourceFile, chunk_hash};
use super::{Careless, Options};
use crate::Random;

/// Chunks of all trials.
pub const CHUNK_BYTES: u64 = 4 * GRAIN_BYTES;
/// Longest pack: a file of more than a grain goes in chunks.
const PACK_BYTES: usize = GRAIN_BYTES as usize + 48;
/// Time between steps: files that changed come to rest.
const STEP_NS: u64 = 20_000_000;

/// What a frame of data carries, and what its grains are.
#[derive(Debug, Clone)]
pub enum Frame {
    /// A chunk of one file.
    Chunk(Chunk, Vec<u64>),
    /// Whole small files.
    Pack(Vec<(Item, Vec<u64>)>),
}

impl Frame {
    fn cargo(&self) -> Cargo {
        match self {
            Self::Chunk(chunk, _) => Cargo::Chunk {
                file: chunk.file,
                offset: chunk.offset,
                bytes: chunk.bytes as u32,
            },
            Self::Pack(items) => Cargo::Pack(items.iter().map(|(item, _)| item.file).collect()),
        }
    }
}

/// What is kept of an entry.
#[derive(Debug, Clone)]
struct Sent {
    number: u64,
    place: usize,
    /// What was announced.
    file: SourceFile,
    link_to: Option<u64>,
    tries: u8,
}

/// Chunks that a reader has taken.
#[derive(Debug)]
struct Reading {
    sent: Sent,
    span: Span,
}

/// The sending end of one session.
#[derive(Debug)]
pub struct SendingEnd {
    machine: CopySender<Sent>,
    options: Options,
    /// What it said and the other end has not heard.
    pub said: VecDeque<Catalogue>,
    /// Frames on their way, by stream, each with its number.
    pub data: Vec<VecDeque<(u64, Frame)>>,
    records: Vec<u64>,
    /// Places of files that were not announced.
    to_announce: VecDeque<usize>,
    reading: Vec<Reading>,
    /// Numbers that were settled, or lost and announced anew.
    over: HashSet<u64>,
    /// Numbers that are not yet, with their lengths.
    lengths: BTreeMap<u64, u64>,
    settled_bytes: i64,
    counted_files: u64,
    /// Places of files that failed.
    failed: Vec<usize>,
    now_ns: u64,
    /// What the other end said at its end.
    pub finished: Option<Vec<String>>,
    /// What an oracle found wrong.
    pub wrong: Option<String>,
}

fn config(options: Options) -> Config {
    Config {
        sum: options.sum(),
        chunk_bytes: CHUNK_BYTES,
        pack_bytes: PACK_BYTES,
        range: None,
        is_dry: false,
        is_fresh: false,
        wants_unasked: true,
        joins_names: true,
        takes_names_apart: options.takes_names_apart,
        remembers_frames: true,
        most_unanswered: 3,
        most_live: 5,
        most_under_way: 2,
    }
}

impl SendingEnd {
    /// One that has these files.
    pub fn new(options: Options, files: usize) -> Self {
        let begin = Catalogue::Begin {
            chunk_bytes: CHUNK_BYTES,
            top: None,
            asks_whole: options.asks_whole,
        };
        let mut machine = CopySender::new(config(options));
        (0..options.streams).for_each(|stream| machine.add_stream(stream));
        let streams = usize::from(options.streams);
        Self {
            machine,
            options,
            said: VecDeque::from([begin]),
            data: vec![VecDeque::new(); streams],
            records: vec![0; streams],
            to_announce: (0..files).collect(),
            reading: Vec::new(),
            over: HashSet::new(),
            lengths: BTreeMap::new(),
            settled_bytes: 0,
            counted_files: 0,
            failed: Vec::new(),
            now_ns: 0,
            finished: None,
            wrong: None,
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// Hears what the other end says.
    pub fn hear(&mut self, feedback: Feedback, files: &[SourceFile]) {
        let said = format!("{feedback:?}");
        if let Err(failure) = self.machine.handle_message(feedback, self.now_ns) {
            self.wrong(format!("the sending end refused {said}: {}", failure.message));
        }
        self.take_outcomes(files);
    }

    fn take_outcomes(&mut self, files: &[SourceFile]) {
        while let Some(outcome) = self.machine.poll_outcome() {
            match outcome {
                Outcome::Settled(settled) => self.settled(&settled),
                Outcome::Arrived { kept, .. } => self.settle_if_unchanged(&kept, files),
                Outcome::Finished(problems) => self.finish(problems),
                Outcome::Wanted { .. }
                | Outcome::Repeated { .. }
                | Outcome::StreamLost { .. }
                | Outcome::Deleted(_) => {}
            }
        }
        let progress = self.machine.take_progress();
        self.settled_bytes += progress.settled_bytes;
        self.counted_files += progress.settled_files + progress.failed_files;
        if self.settled_bytes < 0 {
            self.wrong("fewer than no bytes count as settled".to_owned());
        }
    }

    fn settled(&mut self, settled: &Settled<Sent>) {
        let number = settled.file;
        if !self.over.insert(number) {
            self.wrong(format!("entry {number} was settled twice"));
        }
        if settled.status == FileStatus::Failed {
            self.failed.push(settled.kept.place);
            self.lengths.remove(&number);
        }
    }

    /// The other end has finished: every entry was settled, and all of it was counted.
    fn finish(&mut self, problems: Vec<String>) {
        let (own, open) = (self.lengths.values().sum::<u64>(), self.machine.live());
        if open > 0 || self.counted_files != self.over.len() as u64 {
            self.wrong(format!("finished with {open} entries under way"));
        }
        if self.settled_bytes != own as i64 {
            let counted = self.settled_bytes;
            self.wrong(format!("{counted} bytes count as settled, and {own} are"));
        }
        self.finished = Some(problems);
    }

    /// Whether the file at this place failed.
    pub fn has_failed(&self, place: usize) -> bool {
        self.failed.contains(&place)
    }

    /// Does one thing, if there is any of what follows from chance.
    pub fn step(&mut self, random: &mut Random, files: &[SourceFile]) {
        self.now_ns += STEP_NS;
        match random.bits() % 6 {
            0 => self.announce_next(files),
            1 => self.say_word(files),
            2 => self.look(files),
            3 => self.begin_to_read(files, random),
            4 => self.read_on(files, random),
            _ => self.end(),
        }
        self.take_outcomes(files);
    }

    fn announce_next(&mut self, files: &[SourceFile]) {
        if self.machine.has_room()
            && let Some(place) = self.to_announce.pop_front()
        {
            self.announce(place, 1, None, files);
        }
    }

    fn announce(&mut self, place: usize, tries: u8, apart_from: Option<u64>, files: &[SourceFile]) {
        let file = files[place].clone();
        let first = file.link_to.unwrap_or(place);
        let names = files.iter().filter(|other| other.link_to == Some(first)).count() as u64 + 1;
        let inode = Inode {
            device: 1,
            number: first as u64,
        };
        let about = Announcement {
            kind: Kind::File,
            bytes: file.bytes,
            facts_bytes: file.path.len(),
            names: (names > 1).then_some((inode, names)),
            tries,
            apart_from,
            may_have_holes: file.has_holes,
        };
        let sent = self.machine.announce(about, |number, link_to| Sent {
            number,
            place,
            file: file.clone(),
            link_to,
            tries,
        });
        let kind = match sent.link_to {
            Some(to) => EntryKind::HardLink { to },
            None => EntryKind::File {
                bytes: file.bytes,
                hash: None,
            },
        };
        self.lengths.insert(sent.number, file.bytes);
        self.said.push_back(Catalogue::Entry(Entry {
            path: file.path.clone(),
            kind,
            mode: 0o644,
            mtime_ns: file.mtime_ns(),
            ctime_ns: file.mtime_ns(),
            xattrs: Vec::new(),
        }));
        self.machine.said();
    }

    fn say_word(&mut self, files: &[SourceFile]) {
        match self.machine.poll_word() {
            Some(Word::Message(message)) => self.said.push_back(message),
            Some(Word::Lost {
                file,
                kept,
                reason,
                again,
            }) => {
                self.said.push_back(Catalogue::Lost { file, reason, again });
                if again {
                    self.lengths.remove(&file);
                    self.announce(kept.place, kept.tries + 1, kept.link_to, files);
                }
            }
            None => {}
        }
    }

    fn look(&mut self, files: &[SourceFile]) {
        if let Some((file, sent)) = self.machine.poll_look(self.now_ns) {
            // Every other state is seen while it changes.
            let look = match files[sent.place].version % 2 {
                0 => Look::Changing,
                _ => Look::Rested(u64::MAX),
            };
            self.machine.looked(file, look, self.now_ns);
        }
    }

    fn begin_to_read(&mut self, files: &[SourceFile], random: &mut Random) {
        let own = self.reading.first().map(|reading| reading.sent.number);
        match self.machine.take(own.filter(|_| random.bits() % 2 == 0)) {
            Some(Work::Pack(batch)) => self.pack(batch.files, files, random),
            Some(Work::File(_, sent)) => self.cut(sent, files),
            None => {}
        }
    }

    fn has_changed(sent: &Sent, files: &[SourceFile]) -> bool {
        files[sent.place].version != sent.file.version
    }

    fn pack(&mut self, mut next: Vec<(u64, Sent)>, files: &[SourceFile], random: &mut Random) {
        let mut items = Vec::new();
        while !next.is_empty() {
            for (file, sent) in next.drain(..) {
                if Self::has_changed(&sent, files) {
                    self.machine.lose(file, Loss::Changed, self.now_ns);
                    continue;
                }
                let hash = sent.file.hash().filter(|_| self.options.is_hashed);
                if self.machine.item_read(file, hash) {
                    let bytes = sent.file.bytes;
                    items.push((Item { file, bytes, hash }, sent.file.tags()));
                }
            }
            next = self.machine.more(PACK_BYTES / 2);
        }
        self.machine.pack_done();
        if !items.is_empty() {
            self.send(Frame::Pack(items), random);
        }
    }

    fn cut(&mut self, sent: Sent, files: &[SourceFile]) {
        let number = sent.number;
        if Self::has_changed(&sent, files) {
            return self.machine.lose(number, Loss::Changed, self.now_ns);
        }
        self.machine.go_straight(number, self.options.asks_whole);
        let part = self.machine.next_part(number);
        let reach = part.map(|(offset, _)| reach(&sent.file, offset));
        let Some(span) = self.machine.cut(number, reach) else {
            return;
        };
        match span.is_hole {
            true => self.pass_hole(&sent, span, files),
            false => self.reading.push(Reading { sent, span }),
        }
    }

    fn pass_hole(&mut self, sent: &Sent, span: Span, files: &[SourceFile]) {
        let mut offset = span.offset;
        while offset < span.end {
            let bytes = subtree_bytes(offset, span.end, sent.file.bytes, CHUNK_BYTES);
            let grains = bytes.div_ceil(GRAIN_BYTES) as usize;
            let hash = chunk_hash(sent.file.bytes, offset, bytes, &vec![0; grains]);
            self.known(sent, offset, bytes, hash, false, files);
            offset += bytes;
        }
    }

    /// One of the readers reads the next chunk of its span, and it is sent.
    fn read_on(&mut self, files: &[SourceFile], random: &mut Random) {
        if self.reading.is_empty() {
            return;
        }
        let place = random.bits() as usize % self.reading.len();
        let reading = &mut self.reading[place];
        let (sent, span) = (reading.sent.clone(), reading.span);
        let most = if span.is_repeat { GRAIN_BYTES } else { CHUNK_BYTES };
        let (whole, offset) = (sent.file.bytes, span.offset);
        let bytes = subtree_bytes(offset, span.end, whole, most);
        reading.span.offset += bytes;
        if reading.span.offset >= span.end {
            self.reading.swap_remove(place);
        }
        let now = &files[sent.place];
        if !self.machine.is_under_way(sent.number) {
            return;
        }
        if now.bytes < offset + bytes {
            return self.machine.lose(sent.number, Loss::Changed, self.now_ns);
        }
        // What the file has now, whatever was announced.
        let grains = (offset / GRAIN_BYTES) as usize..(offset + bytes).div_ceil(GRAIN_BYTES) as usize;
        let mut tags: Vec<u64> = grains.map(|grain| now.tag(grain)).collect();
        let hash = chunk_hash(whole, offset, bytes, &tags).filter(|_| self.options.is_hashed);
        if self.options.is_hashed && random.bits() % 16 == 0 {
            // Damaged on the way.
            tags[0] ^= 2;
        }
        self.known(&sent, offset, bytes, hash, span.is_repeat, files);
        if !self.machine.is_under_way(sent.number) {
            return;
        }
        let chunk = Chunk {
            file: sent.number,
            offset,
            bytes,
            hash,
        };
        self.send(Frame::Chunk(chunk, tags), random);
        self.machine.credit(sent.number, bytes);
    }

    fn known(
        &mut self,
        sent: &Sent,
        offset: u64,
        bytes: u64,
        hash: Option<farline_proto::copy::sum::Sum>,
        is_repeat: bool,
        files: &[SourceFile],
    ) {
        let piece = Piece {
            offset,
            bytes,
            hash: hash.filter(|_| self.options.is_hashed),
            is_repeat,
        };
        match self.machine.part_read(sent.number, &piece) {
            Known::All => self.settle_if_unchanged(sent, files),
            Known::Twice => self.wrong(format!("a part of entry {} was read twice", sent.number)),
            Known::Part | Known::Late => {}
        }
    }

    fn settle_if_unchanged(&mut self, sent: &Sent, files: &[SourceFile]) {
        let is_careless = self.options.careless == Careless::Looks;
        match Self::has_changed(sent, files) && !is_careless {
            true => self.machine.lose(sent.number, Loss::Changed, self.now_ns),
            false => drop(self.machine.all_read(sent.number)),
        }
    }

    fn send(&mut self, frame: Frame, random: &mut Random) {
        let stream = random.bits() as usize % self.data.len();
        match self.machine.carry(stream as u16, frame.cargo()) {
            Ok(true) => {
                self.data[stream].push_back((self.records[stream], frame));
                self.records[stream] += 1;
            }
            // That stream was given up: another carries it.
            Ok(false) => {}
            Err(failure) => self.wrong(failure.message),
        }
    }

    /// Says that there are no more entries, when none can follow.
    fn end(&mut self) {
        if self.to_announce.is_empty()
            && let Some(entries) = self.machine.say_end()
        {
            self.said.push_back(Catalogue::End { entries, whole: true });
        }
    }
}

/// How far the hole or the data at `offset` go.
fn reach(file: &SourceFile, offset: u64) -> Reach {
    let first = (offset / GRAIN_BYTES) as usize;
    let is_hole = file.tag(first) == 0;
    let same = (first..file.grains()).take_while(|grain| (file.tag(*grain) == 0) == is_hole);
    let end = (first + same.count()) as u64 * GRAIN_BYTES;
    Reach {
        end: end.min(file.bytes),
        is_hole,
    }
}
