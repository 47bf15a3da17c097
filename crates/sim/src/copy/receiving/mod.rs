//! A driver of the receiving machine over the modelled disk: does what `farline-mover` does, one step at a time, so that a trial
//! can stop it anywhere.

mod breaking;
mod finishing;
mod looking;

use std::collections::{BTreeMap, HashMap, HashSet};

use farline_proto::copy::CopyReceiver;
use farline_proto::copy::journal::{self, Flush, Memory, Notes, Reader, Resumable, Source};
use farline_proto::copy::message::{Catalogue, Feedback, GRAIN_BYTES};
use farline_proto::copy::receiver::{Admission, Chunk, Config, Heard, Item, Known, Parting, Proof, Ready};
use farline_spec::Failure;

use super::disk::{Disk, FileId};
use super::sending::Frame;
use super::source::{SourceFile, chunk_hash};
use super::{Careless, Options};
use crate::Random;
use finishing::{Task, finish};

/// Whose journal it is.
const KEY: [u8; 16] = [7; 16];
/// Time between steps: groups of small files come of age.
const STEP_NS: u64 = 3_000_000;

/// What is kept of an entry.
#[derive(Debug)]
struct Kept {
    source: Source,
    replaces: bool,
    link_to: Option<Vec<u8>>,
    partial: Option<u64>,
    small: Option<FileId>,
    is_over: bool,
}

/// A write that is under way.
#[derive(Debug)]
enum Write {
    Chunk(Chunk, Vec<u64>),
    Pack(Vec<(Item, Vec<u64>)>),
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The last message is said.
    Finished,
    /// Something went wrong, which is said.
    Failed(String),
}

/// The receiving end of one session.
#[derive(Debug)]
pub struct ReceivingEnd<'a> {
    pub machine: CopyReceiver<u64>,
    disk: &'a mut Disk,
    options: Options,
    /// Every state that each file of the source ever had.
    history: &'a HashMap<Vec<u8>, Vec<SourceFile>>,
    notes: Notes<u64>,
    memory: Memory,
    left: HashMap<[u8; 16], Resumable>,
    entries: BTreeMap<u64, Kept>,
    paths: BTreeMap<u64, Vec<u8>>,
    writes: Vec<Write>,
    tasks: Vec<Task>,
    flush: Option<Flush<u64>>,
    flush_failed: bool,
    /// Partials of which the device refused something.
    broken: HashSet<u64>,
    /// Streams that lost step.
    lost_streams: HashSet<u16>,
    next_partial: u64,
    now_ns: u64,
    has_journal: bool,
    pub ended: Option<Ended>,
    /// What an oracle found wrong.
    pub wrong: Option<String>,
}

fn partial_name(id: u64) -> Vec<u8> {
    format!("p/{id}").into_bytes()
}

fn grains_of(offset: u64, bytes: u64) -> std::ops::Range<usize> {
    (offset / GRAIN_BYTES) as usize..(offset + bytes).div_ceil(GRAIN_BYTES) as usize
}

impl<'a> ReceivingEnd<'a> {
    /// Reads the journal, holds what it says against the disk, and begins a new one.
    ///
    /// # Errors
    /// What is wrong with what the journal says.
    pub fn start(
        disk: &'a mut Disk,
        options: Options,
        history: &'a HashMap<Vec<u8>, Vec<SourceFile>>,
        sources: &[SourceFile],
    ) -> Result<Self, String> {
        let boot = format!("boot {}", disk.boots);
        let mut reader = Reader::new(KEY, &boot);
        reader.take(&disk.journal);
        let has = |id: u64, source: &Source| {
            let found = disk.look(&partial_name(id));
            found.is_some_and(|(_, bytes, _)| bytes == source.bytes)
        };
        let mut memory = reader.end(has);
        let known: HashSet<Vec<u8>> = memory
            .partials
            .values()
            .map(|left| partial_name(left.id))
            .collect();
        for name in disk.names(b"p/") {
            if !known.contains(&name) {
                disk.unlink(&name);
            }
        }
        looking::check_memory(disk, &memory, history, sources)?;
        if options.is_durable && !memory.is_empty() {
            disk.sync_all();
        }
        let mut anew = Vec::new();
        let at = (!options.is_durable).then_some(boot);
        let put = |piece: &[u8]| {
            anew.extend_from_slice(piece);
            Ok(())
        };
        journal::compact(KEY, at, &memory, put).map_err(|why| why.message)?;
        disk.replace_journal(anew);
        let is_fresh = disk.names(b"d").is_empty() && memory.is_empty();
        let left = std::mem::take(&mut memory.partials);
        let mut machine = CopyReceiver::new(config(options));
        machine.start(is_fresh);
        Ok(Self {
            machine,
            next_partial: memory.largest_id + 1,
            disk,
            options,
            history,
            notes: Notes::default(),
            memory,
            left,
            entries: BTreeMap::new(),
            paths: BTreeMap::new(),
            writes: Vec::new(),
            tasks: Vec::new(),
            flush: None,
            flush_failed: false,
            broken: HashSet::new(),
            lost_streams: HashSet::new(),
            now_ns: 0,
            has_journal: true,
            ended: None,
            wrong: None,
        })
    }

    fn or_end<R>(&mut self, result: Result<R, Failure>) -> Option<R> {
        match result {
            Ok(answer) => Some(answer),
            Err(why) => {
                self.fail(why.message);
                None
            }
        }
    }

    fn fail(&mut self, why: String) {
        self.ended.get_or_insert(Ended::Failed(why));
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// The state of a file that was announced.
    fn announced(&self, source: &Source) -> Option<&SourceFile> {
        let states = self.history.get(&source.path)?;
        states.iter().find(|state| state.mtime_ns() == source.mtime_ns)
    }

    /// Takes the next message of the catalogue.
    pub fn hear(&mut self, said: Catalogue) {
        let heard = self.machine.handle_message(said);
        match self.or_end(heard) {
            Some(Heard::Look(number, entry)) => {
                let looked = self.look(number, entry);
                let counted = self.machine.looked(looked);
                self.or_end(counted);
            }
            Some(Heard::Lost { file, again, .. }) => {
                self.give_up(file);
                self.machine.leave(file, Parting::Lost(again));
            }
            _ => {}
        }
    }

    /// From this record on nothing of a stream can be told apart.
    pub fn lose_step(&mut self, stream: u16, record: u64) {
        self.lost_streams.insert(stream);
        let lost = self.machine.handle_out_of_step(stream, record, false);
        self.or_end(lost);
    }

    /// Whether nothing of a stream can be told apart any more.
    pub fn has_lost_step(&self, stream: u16) -> bool {
        self.lost_streams.contains(&stream)
    }

    /// Whether data may be taken: their entry was announced, or there is none.
    pub fn may_take(&mut self, frame: &Frame) -> bool {
        let file = match frame {
            Frame::Chunk(chunk, _) => chunk.file,
            Frame::Pack(items) => items.iter().map(|(item, _)| item.file).max().unwrap_or(0),
        };
        let known = self.machine.known(file);
        !matches!(self.or_end(known), None | Some(Known::NotYet))
    }

    /// Takes a frame of data.
    pub fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Chunk(chunk, tags) => {
                let checked = self.machine.check_chunk(&chunk);
                if let Some(Known::Open(number)) = self.or_end(checked) {
                    self.take_chunk(number, chunk, tags);
                }
            }
            Frame::Pack(items) => self.take_pack(items),
        }
    }

    fn take_chunk(&mut self, number: u64, chunk: Chunk, tags: Vec<u64>) {
        let whole = self.entries[&number].source.bytes;
        let found = chunk_hash(whole, chunk.offset, chunk.bytes, &tags).filter(|_| self.options.is_hashed);
        let taken = self.machine.take_chunk(&chunk, found);
        match self.or_end(taken) {
            Some(Admission::Write) => {
                let chunk = Chunk { hash: found, ..chunk };
                if self.options.careless == Careless::Writes
                    && let Some((id, _)) = self.partial_of(number)
                {
                    self.proved(id, &chunk);
                }
                self.writes.push(Write::Chunk(chunk, tags));
            }
            Some(Admission::GiveUp(reason)) => self.failed(number, reason),
            Some(Admission::Drop) | None => {}
        }
    }

    fn take_pack(&mut self, items: Vec<(Item, Vec<u64>)>) {
        let mut taken = Vec::new();
        for (item, tags) in items {
            let checked = self.machine.check_item(&item);
            if !matches!(self.or_end(checked), Some(Known::Open(_))) {
                continue;
            }
            let found = chunk_hash(item.bytes, 0, item.bytes, &tags).filter(|_| self.options.is_hashed);
            let admission = self.machine.take_item(&item, found);
            match self.or_end(admission) {
                Some(Admission::Write) => taken.push((item, tags)),
                Some(Admission::GiveUp(reason)) => self.failed(item.file, reason),
                Some(Admission::Drop) | None => {}
            }
        }
        self.writes.push(Write::Pack(taken));
    }

    /// Whether anything is to be done here.
    pub fn is_busy(&self) -> bool {
        !self.writes.is_empty() || !self.tasks.is_empty() || self.machine.is_busy()
    }

    /// Does one step of what is to be done.
    pub fn step(&mut self, random: &mut Random) {
        self.now_ns += STEP_NS;
        match random.bits() % 4 {
            0 if !self.writes.is_empty() => self.complete_write(random),
            1 if self.flush.is_some() || random.bits() % 8 == 0 => self.step_flush(random),
            2 if self.tasks.len() < 2 => self.next_task(random),
            _ if !self.tasks.is_empty() => {
                let place = random.bits() as usize % self.tasks.len();
                self.step_task(place, random);
            }
            _ if !self.writes.is_empty() => self.complete_write(random),
            _ => self.next_task(random),
        }
    }

    fn complete_write(&mut self, random: &mut Random) {
        // They complete in any order.
        let place = random.bits() as usize % self.writes.len();
        match self.writes.swap_remove(place) {
            Write::Chunk(chunk, tags) => self.write_chunk(chunk, &tags, random),
            Write::Pack(items) => self.write_pack(&items),
        }
    }

    fn partial_of(&mut self, number: u64) -> Option<(u64, FileId)> {
        let kept = self.entries.get_mut(&number).filter(|kept| !kept.is_over)?;
        let bytes = kept.source.bytes;
        let id = *kept.partial.get_or_insert(self.next_partial);
        if id == self.next_partial {
            self.next_partial += 1;
            let file = self.disk.make(bytes, bytes.div_ceil(GRAIN_BYTES) as usize);
            self.disk.link(&partial_name(id), file);
        }
        self.disk.look(&partial_name(id)).map(|(file, _, _)| (id, file))
    }

    fn write_chunk(&mut self, chunk: Chunk, tags: &[u64], random: &mut Random) {
        let Some((id, file)) = self.partial_of(chunk.file) else {
            return;
        };
        if self.options.may_err && random.bits() % 64 == 0 {
            return self.failed(chunk.file, "written: an error".to_owned());
        }
        for (grain, tag) in grains_of(chunk.offset, chunk.bytes).zip(tags) {
            if !self.disk.write(file, grain, *tag) {
                return self.fail("the destination is full".to_owned());
            }
        }
        if self.options.careless != Careless::Writes {
            self.proved(id, &chunk);
        }
    }

    /// Notes that a part is proved, and tells the machine.
    fn proved(&mut self, id: u64, chunk: &Chunk) -> bool {
        let Some(kept) = self.entries.get(&chunk.file) else {
            return false;
        };
        let part = (chunk.offset, chunk.bytes, chunk.hash);
        self.notes.part(id, &id, &kept.source, part);
        let written = self.machine.written(chunk);
        self.or_end(written).is_some_and(|proof| proof != Proof::Late)
    }

    fn write_pack(&mut self, items: &[(Item, Vec<u64>)]) {
        let mut written = Vec::new();
        for (item, tags) in items {
            let Some(kept) = self.entries.get_mut(&item.file).filter(|kept| !kept.is_over) else {
                continue;
            };
            let file = self.disk.make(item.bytes, tags.len());
            kept.small = Some(file);
            for (grain, tag) in tags.iter().enumerate() {
                if !self.disk.write(file, grain, *tag) {
                    return self.fail("the destination is full".to_owned());
                }
            }
            written.push(item.file);
        }
        let ready = self.machine.items_written(&written, self.now_ns);
        let Some(ready) = self.or_end(ready) else {
            return;
        };
        let hash_of = |file: u64| {
            let item = items.iter().find(|(item, _)| item.file == file);
            item.and_then(|(item, _)| item.hash)
        };
        let left: Vec<Ready<u64>> = ready
            .into_iter()
            .map(|file| Ready {
                file,
                kept: file,
                hash: hash_of(file).filter(|_| self.options.is_hashed),
            })
            .collect();
        if !left.is_empty() {
            self.tasks.push(finish(left, false, true, false));
        }
    }

    /// Whether the journal was believed in anything.
    pub fn remembers(&self) -> bool {
        !self.memory.is_empty() || !self.left.is_empty()
    }

    /// The next message to the other end.
    pub fn say(&mut self) -> Option<Feedback> {
        let said = self.machine.poll_message();
        if matches!(said, Some(Feedback::Finished { .. })) {
            self.ended.get_or_insert(Ended::Finished);
        }
        said
    }
}

fn config(options: Options) -> Config {
    Config {
        sum: options.sum(),
        is_durable: options.is_durable,
        has_further_names: true,
        takes_names_apart: options.takes_names_apart,
        range: None,
        chunk_bytes: None,
        most_entries: 1_000,
        most_bytes: u64::MAX,
        most_open_files: 8,
        most_parts: 1 << 10,
    }
}
