//! What is done besides writing: holes, names in their order, the journal, and what comes after all.

use farline_proto::copy::journal::Notes;
use farline_proto::copy::message::Wants;
use farline_proto::copy::naming::{Last, Naming, Rules, Step, closing};
use farline_proto::copy::receiver::table::Event;
use farline_proto::copy::receiver::{Action, Chunk, Parting, Ready};
use farline_proto::copy::tree_hash::subtree_bytes;

use super::super::Careless;
use super::super::sending::CHUNK_BYTES;
use super::super::source::chunk_hash;
use super::{ReceivingEnd, grains_of, partial_name};
use crate::Random;

/// Something that takes several steps.
#[derive(Debug)]
pub(super) enum Task {
    /// Files to be named: those left, the one that is being named, those that have their names.
    Finish {
        left: Vec<Ready<u64>>,
        current: Option<(Ready<u64>, Naming)>,
        done: Vec<Ready<u64>>,
        is_synced: bool,
        is_group: bool,
        is_owed: bool,
    },
    /// What comes after all entries.
    Close(Vec<Last>),
}

impl ReceivingEnd<'_> {
    pub(super) fn next_task(&mut self, random: &mut Random) {
        let Some(action) = self.machine.poll_action(self.now_ns) else {
            return;
        };
        match action {
            Action::GiveUp(number, reason) => {
                self.failed(number, reason.to_owned());
                self.machine.did();
            }
            Action::Link(number) => {
                self.link(number);
                self.machine.did();
            }
            Action::Finish(left) => {
                let is_synced = self.options.is_durable && random.bits() % 2 == 0;
                if is_synced {
                    self.sync_all_for_names();
                }
                self.tasks.push(finish(left, is_synced, false, true));
            }
            Action::Group(left) => {
                self.sync_all_for_names();
                self.tasks.push(finish(left, true, true, true));
            }
            Action::Hole(number, offset, bytes) => {
                self.hole(number, offset, bytes);
                self.machine.did();
            }
            Action::Close { .. } => {
                let mut last: Vec<Last> = closing(true, self.options.is_durable).collect();
                last.reverse();
                self.tasks.push(Task::Close(last));
            }
        }
    }

    fn sync_all_for_names(&mut self) {
        if self.options.careless != Careless::Names {
            self.disk.sync_all();
        }
    }

    pub(super) fn hole(&mut self, number: u64, offset: u64, bytes: u64) {
        let claimed = self.machine.claim_hole(number, offset, bytes);
        let gaps = self.or_end(claimed).unwrap_or_default();
        for (offset, bytes) in gaps {
            let Some((id, file)) = self.partial_of(number) else {
                return;
            };
            for grain in grains_of(offset, bytes) {
                self.disk.punch(file, grain);
            }
            let (whole, end) = (self.entries[&number].source.bytes, offset + bytes);
            let mut at = offset;
            while at < end {
                let part = subtree_bytes(at, end, whole, CHUNK_BYTES);
                let zeros = vec![0; grains_of(at, part).len()];
                let chunk = Chunk {
                    file: number,
                    offset: at,
                    bytes: part,
                    hash: chunk_hash(whole, at, part, &zeros).filter(|_| self.options.is_hashed),
                };
                self.proved(id, &chunk);
                at += part;
            }
        }
    }

    pub(super) fn link(&mut self, number: u64) {
        let kept = &self.entries[&number];
        let (path, target) = (kept.source.path.clone(), kept.link_to.clone().unwrap_or_default());
        let Some((file, _, _)) = self.disk.look(&target) else {
            if self.options.is_hostile {
                return self.failed(number, "there is no such file".to_owned());
            }
            self.wrong(format!("entry {number} is linked to nothing"));
            return;
        };
        self.disk.link(&path, file);
        if self.machine.conclude(number, Event::Name).is_some() {
            self.machine.leave(number, Parting::Linked(Wants::Made));
        }
    }

    pub(super) fn step_task(&mut self, place: usize, random: &mut Random) {
        match &mut self.tasks[place] {
            Task::Close(last) => match last.pop() {
                Some(last) => self.last(last),
                None => {
                    self.tasks.swap_remove(place);
                    self.machine.did();
                    self.machine.finish(Vec::new());
                }
            },
            Task::Finish { .. } => self.step_finish(place, random),
        }
    }

    pub(super) fn last(&mut self, last: Last) {
        match last {
            Last::Sync => self.disk.sync_all(),
            Last::EndStaging => {
                self.has_journal = false;
                self.flush = None;
                self.notes = Notes::default();
                self.disk.replace_journal(Vec::new());
                for name in self.disk.names(b"p/") {
                    self.disk.unlink(&name);
                }
            }
            Last::SayDisplaced | Last::Delete | Last::Folders | Last::KeepStaging | Last::Top => {}
        }
    }

    pub(super) fn step_finish(&mut self, place: usize, random: &mut Random) {
        let Task::Finish {
            left,
            current,
            done,
            is_synced,
            is_group,
            is_owed,
        } = &mut self.tasks[place]
        else {
            return;
        };
        if current.is_none() {
            let Some(next) = left.pop() else {
                let (done, is_owed) = (std::mem::take(done), *is_owed);
                self.tasks.swap_remove(place);
                self.done(&done);
                if is_owed {
                    self.machine.did();
                }
                return;
            };
            let rules = Rules {
                is_durable: self.options.is_durable,
                reads_back: false,
                keeps_times: self.options.keeps_times,
            };
            let replaces = self.entries[&next.file].replaces;
            *current = Some((next, Naming::new(rules, replaces, *is_synced)));
        }
        let (is_group, Some((ready, mut naming))) = (*is_group, current.take()) else {
            return;
        };
        let Some(step) = naming.next() else {
            if naming.is_named() {
                done.push(ready);
            }
            return;
        };
        if step == Step::HandOver && self.flush.is_some() {
            // The journal is being written: it waits.
            *current = Some((ready, naming));
            return;
        }
        let result = self.name_step(&ready, step, is_group, random);
        naming.did(result.is_ok());
        if let Err(reason) = result {
            if naming.next() == Some(Step::TakeBack) {
                let key = self.entries[&ready.file].source.key();
                let undone = self.notes.undone(key);
                self.or_end(undone);
                self.hand_over();
            }
            return self.failed(ready.file, reason.to_owned());
        }
        if let Some(Task::Finish { current, .. }) = self.tasks.get_mut(place) {
            *current = Some((ready, naming));
        }
    }

    pub(super) fn hand_over(&mut self) {
        let records = self.notes.take_records();
        if self.has_journal {
            self.disk.append(&records);
        }
    }

    pub(super) fn name_step(
        &mut self,
        ready: &Ready<u64>,
        step: Step,
        is_group: bool,
        random: &mut Random,
    ) -> Result<(), &'static str> {
        let kept = &self.entries[&ready.file];
        let (source, partial) = (kept.source.clone(), kept.partial.filter(|_| !is_group));
        match step {
            Step::NoteDone => {
                let noted = self.notes.done(source.key(), ready.hash, partial);
                self.or_end(noted);
                return Ok(());
            }
            Step::NotePlaced => {
                let noted = self.notes.placed(&source);
                self.or_end(noted);
                return Ok(());
            }
            Step::HandOver => {
                self.hand_over();
                return Ok(());
            }
            Step::Sync | Step::ReadBack | Step::Dress | Step::Name | Step::TakeBack => {}
        }
        let file = match partial {
            Some(id) => self.disk.look(&partial_name(id)).map(|(file, _, _)| file),
            None => kept.small,
        };
        let file = file.ok_or("nothing is there")?;
        let is_broken = partial.is_some_and(|id| self.broken.contains(&id));
        match step {
            Step::Sync | Step::Dress if is_broken => return Err("the device reported a write error"),
            Step::Sync if self.options.careless == Careless::Names => {}
            Step::Sync => {
                let is_refused = self.options.may_err && random.bits() % 32 == 0;
                self.disk.sync(file, is_refused);
                if is_refused {
                    self.broken.extend(partial);
                    return Err("flushing to the device");
                }
            }
            Step::Dress if self.options.keeps_times => self.disk.set_time(file, source.mtime_ns),
            Step::Name => {
                if !self.entries[&ready.file].is_over {
                    self.check_content(&source, file, "is named");
                }
                match partial {
                    Some(id) => self.disk.rename(&partial_name(id), &source.path),
                    None => self.disk.link(&source.path, file),
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn done(&mut self, files: &[Ready<u64>]) {
        for ready in files {
            if self.machine.conclude(ready.file, Event::Name).is_some() {
                self.machine.leave(ready.file, Parting::Named(ready.hash));
            }
        }
    }

    pub(super) fn failed(&mut self, number: u64, reason: String) {
        if self.machine.conclude(number, Event::GiveUp).is_some() {
            self.give_up(number);
            self.machine.leave(number, Parting::Failed(reason));
        }
    }

    /// What there is of a file goes.
    pub(super) fn give_up(&mut self, number: u64) {
        let Some(kept) = self.entries.get_mut(&number) else {
            return;
        };
        kept.is_over = true;
        kept.small = None;
        if let Some(id) = kept.partial {
            let dropped = self.notes.dropped(id);
            self.disk.unlink(&partial_name(id));
            self.or_end(dropped);
        }
    }

    pub(super) fn step_flush(&mut self, random: &mut Random) {
        if !self.has_journal {
            return;
        }
        let Some(mut flush) = self.flush.take() else {
            self.flush_failed = false;
            self.flush = Some(self.notes.take());
            return;
        };
        if let Some(id) = flush.next() {
            let is_done = self.sync_partial(id, random);
            self.flush_failed |= !is_done;
            let noted = flush.synced(is_done);
            self.or_end(noted);
            self.flush = Some(flush);
            return;
        }
        self.disk.append(&flush.records());
        if self.options.is_durable {
            self.disk.sync_journal();
        }
        if self.flush_failed {
            self.fail("flushing a file to the device".to_owned());
        }
    }

    pub(super) fn sync_partial(&mut self, id: u64, random: &mut Random) -> bool {
        if !self.options.is_durable || self.options.careless == Careless::Journal {
            return true;
        }
        if self.broken.contains(&id) {
            return false;
        }
        // One that has its name, or is given up, is open still.
        let Some((file, _, _)) = self.disk.look(&partial_name(id)) else {
            return true;
        };
        let is_refused = self.options.may_err && random.bits() % 32 == 0;
        self.disk.sync(file, is_refused);
        if is_refused {
            self.broken.insert(id);
        }
        !is_refused
    }
}

pub(super) fn finish(left: Vec<Ready<u64>>, is_synced: bool, is_group: bool, is_owed: bool) -> Task {
    Task::Finish {
        left,
        current: None,
        done: Vec::new(),
        is_synced,
        is_group,
        is_owed,
    }
}
