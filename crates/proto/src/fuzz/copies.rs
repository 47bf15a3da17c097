//! The receiving machine of a copy against whatever may be said and come: nothing is ready before all of it is written and settled,
//! nothing is settled twice, and it comes to an end.

use std::collections::HashMap;

use crate::copy::CopyReceiver;
use crate::copy::message::{Catalogue, Entry, EntryKind, GRAIN_BYTES, Proved, Wants};
use crate::copy::receiver::table::Event;
use crate::copy::receiver::{Action, Admission, Chunk, Config, Heard, Item, Known, Looked, Parting, Ready};

const G: u64 = GRAIN_BYTES;
/// Grains of the longest file.
const MOST_GRAINS: u64 = 4;

/// What was done with a file.
#[derive(Debug, Default)]
struct Facts {
    bytes: u64,
    written: u64,
    is_settled: bool,
    is_link: bool,
    is_over: bool,
}

struct Play {
    machine: CopyReceiver<u64>,
    facts: HashMap<u64, Facts>,
    /// Chunks that were taken and are not written.
    writes: Vec<Chunk>,
    now_ns: u64,
}

/// Plays `data`, four bytes a step: what happens, to which file, and two for where and how much.
///
/// # Panics
/// When the machine does, or breaks what it promises.
pub fn copy_receiver(data: &[u8]) {
    let [flags, steps @ ..] = data else {
        return;
    };
    let mut play = Play {
        machine: CopyReceiver::new(config(*flags)),
        facts: HashMap::new(),
        writes: Vec::new(),
        now_ns: 0,
    };
    play.machine.start(flags & 8 != 0);
    let begin = Catalogue::Begin {
        chunk_bytes: G,
        top: None,
        asks_whole: flags & 16 != 0,
    };
    if play.machine.handle_message(begin).is_err() {
        return;
    }
    for step in steps.chunks_exact(4) {
        play.now_ns += 20_000_000;
        if play
            .step(step[0], u64::from(step[1] % 8), step[2], step[3])
            .is_none()
        {
            return;
        }
    }
    play.end();
}

fn config(flags: u8) -> Config {
    Config {
        sum: None,
        is_durable: flags & 1 != 0,
        has_further_names: flags & 2 != 0,
        takes_names_apart: flags & 4 != 0,
        range: None,
        chunk_bytes: None,
        most_entries: 8,
        most_bytes: 64 * G,
        most_open_files: 8,
        most_parts: 16,
    }
}

impl Play {
    /// Does one step; nothing once the copy is broken.
    fn step(&mut self, kind: u8, file: u64, first: u8, second: u8) -> Option<()> {
        let (offset, bytes) = self.part(file, first, second);
        match kind % 12 {
            0 | 1 => self.announce(first, second),
            2 | 3 => self.chunk(Chunk {
                file,
                offset,
                bytes,
                hash: None,
            }),
            4 => self.item(file, bytes),
            5 => self.write(usize::from(first)),
            6 => self.say(Catalogue::Settled { file, hash: None }),
            7 => self.say(Catalogue::Hole {
                file,
                offset,
                bytes: G,
            }),
            8 => self.say(Catalogue::Lost {
                file,
                reason: String::new(),
                again: first % 2 == 0,
            }),
            9 => {
                self.give_up(file);
                Some(())
            }
            10 => {
                while self.machine.poll_message().is_some() {}
                Some(())
            }
            _ => self.act(),
        }
    }

    /// A part of a file, now and then one that it cannot have.
    fn part(&self, file: u64, first: u8, second: u8) -> (u64, u64) {
        let length = self.facts.get(&file).map_or(0, |facts| facts.bytes);
        let offset = u64::from(first % MOST_GRAINS as u8) * G;
        match second % 32 {
            0 => (offset, u64::from(second) * 1024 + 1),
            _ if offset < length => (offset, G.min(length - offset)),
            _ => (0, G.min(length.max(1))),
        }
    }

    fn say(&mut self, said: Catalogue) -> Option<()> {
        let settled = match &said {
            Catalogue::Settled { file, .. } => Some(*file),
            _ => None,
        };
        if let Heard::Lost { file, again, .. } = self.machine.handle_message(said).ok()? {
            self.over(file);
            self.machine.leave(file, Parting::Lost(again));
        }
        if let Some(facts) = settled.and_then(|file| self.facts.get_mut(&file)) {
            facts.is_settled = true;
        }
        Some(())
    }

    /// Announces a file, perhaps with parts that are there, a further name, or what an answer settles.
    fn announce(&mut self, kind: u8, size: u8) -> Option<()> {
        let entry = Catalogue::Entry(Entry {
            path: Vec::new(),
            kind: EntryKind::Folder,
            mode: 0,
            mtime_ns: 0,
            ctime_ns: 0,
            xattrs: Vec::new(),
        });
        let Heard::Look(number, _) = self.machine.handle_message(entry).ok()? else {
            panic!("an entry is to be looked at");
        };
        let key = [size % 4; 16];
        let bytes = 1 + u64::from(size) * (MOST_GRAINS * G / 256);
        let mut facts = Facts {
            bytes,
            ..Facts::default()
        };
        let looked = match kind % 5 {
            0 => {
                facts.is_over = true;
                Looked::Answered {
                    wants: Wants::Made,
                    file: Some((key, kind % 2 == 0)),
                }
            }
            1 => {
                facts.is_link = true;
                Looked::FurtherName {
                    kept: number,
                    facts_bytes: 1,
                    of: key,
                }
            }
            _ => {
                let parts = u64::from(kind % 5 == 2 && bytes > G);
                facts.written = parts * G;
                let part = Proved {
                    offset: 0,
                    bytes: G,
                    hash: None,
                };
                Looked::Wanted {
                    kept: number,
                    bytes,
                    facts_bytes: 1,
                    key: Some(key),
                    proved: vec![part; parts as usize],
                }
            }
        };
        self.facts.insert(number, facts);
        self.machine.looked(looked).ok().map(drop)
    }

    fn chunk(&mut self, chunk: Chunk) -> Option<()> {
        match self.machine.check_chunk(&chunk).ok()? {
            Known::Open(_) => {}
            Known::NotYet | Known::Over => return Some(()),
        }
        match self.machine.take_chunk(&chunk, None).ok()? {
            Admission::Write => self.writes.push(chunk),
            Admission::Drop => {}
            Admission::GiveUp(_) => panic!("nothing is damaged"),
        }
        Some(())
    }

    fn item(&mut self, file: u64, bytes: u64) -> Option<()> {
        let length = self.facts.get(&file).map_or(bytes, |facts| facts.bytes);
        let item = Item {
            file,
            bytes: length,
            hash: None,
        };
        if !matches!(self.machine.check_item(&item).ok()?, Known::Open(_)) {
            return Some(());
        }
        if self.machine.take_item(&item, None).ok()? == Admission::Write {
            let facts = self.facts.get_mut(&file).expect("it is under way");
            (facts.written, facts.is_settled) = (facts.bytes, true);
            let named = self.machine.items_written(&[file], self.now_ns).ok()?;
            named.into_iter().for_each(|file| self.name(file));
        }
        Some(())
    }

    /// Writes complete in any order.
    fn write(&mut self, place: usize) -> Option<()> {
        if self.writes.is_empty() {
            return Some(());
        }
        let chunk = self.writes.swap_remove(place % self.writes.len());
        self.written(&chunk)
    }

    fn written(&mut self, chunk: &Chunk) -> Option<()> {
        if let Some(facts) = self.facts.get_mut(&chunk.file) {
            facts.written += chunk.bytes;
        }
        self.machine.written(chunk).ok().map(drop)
    }

    fn give_up(&mut self, file: u64) {
        if self.machine.conclude(file, Event::GiveUp).is_some() {
            self.over(file);
            self.machine.leave(file, Parting::Failed(String::new()));
        }
    }

    fn over(&mut self, file: u64) {
        let facts = self.facts.get_mut(&file).expect("it was announced");
        assert!(!std::mem::replace(&mut facts.is_over, true), "settled twice");
    }

    fn name(&mut self, file: u64) {
        let facts = &self.facts[&file];
        let is_whole = facts.is_link || (facts.is_settled && facts.written == facts.bytes);
        assert!(is_whole && !facts.is_over, "{file}: {facts:?}");
        let is_link = facts.is_link;
        if self.machine.conclude(file, Event::Name).is_some() {
            self.over(file);
            let parting = match is_link {
                true => Parting::Linked(Wants::Made),
                false => Parting::Named(None),
            };
            self.machine.leave(file, parting);
        }
    }

    fn name_all(&mut self, ready: Vec<Ready<u64>>) {
        ready.into_iter().for_each(|ready| self.name(ready.file));
    }

    fn act(&mut self) -> Option<()> {
        let Some(action) = self.machine.poll_action(self.now_ns) else {
            return Some(());
        };
        match action {
            Action::GiveUp(file, _) => self.give_up(file),
            Action::Link(file) => self.name(file),
            Action::Finish(ready) | Action::Group(ready) => self.name_all(ready),
            Action::Hole(file, offset, bytes) => {
                for (offset, bytes) in self.machine.claim_hole(file, offset, bytes).ok()? {
                    let hash = None;
                    self.written(&Chunk {
                        file,
                        offset,
                        bytes,
                        hash,
                    })?;
                }
            }
            Action::Close { .. } => {
                let all_over = self.facts.values().all(|facts| facts.is_over);
                assert!(all_over && self.machine.open() == 0, "it closes too early");
                self.machine.finish(Vec::new());
            }
        }
        self.machine.did();
        Some(())
    }

    /// Whatever is under way is given up: nothing remains.
    fn end(mut self) {
        let entries = self.machine.entries();
        let end = Catalogue::End { entries, whole: true };
        // It may have been said.
        let _ = self.machine.handle_message(end);
        for file in self.machine.all() {
            self.give_up(file);
        }
        for _ in 0..100 {
            self.now_ns += 200_000_000;
            if self.act().is_none() {
                return;
            }
        }
        assert!(!self.machine.is_busy(), "something is still to be done");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn nothing_is_ready_before_all_of_it_is_there(
            flags in any::<u8>(),
            steps in prop::collection::vec((0u8..12, 0u8..4, any::<u8>(), any::<u8>()), 0..40),
        ) {
            let steps = steps.into_iter().flat_map(|(kind, file, first, second)| [kind, file, first, second]);
            copy_receiver(&std::iter::once(flags).chain(steps).collect::<Vec<_>>());
        }
    }
}
