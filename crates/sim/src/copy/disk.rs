//! A disk that loses power: what is written is in memory until it is brought to the device, and what names say follows in order.
//!
//! Content is a number for each grain of a file, 0 for zeros: enough to tell whose content a grain is, and cheap. When power
//! goes, a grain that was not brought to the device is what it was, what it became, or neither; of what happened to names
//! since the last sync as much happened as the device had got to, in order, as journalling file systems have it: a sync of a
//! file brings what happened to names up to the file's own, and a sync of the journal all of it. A device
//! that refuses a sync keeps what it had, and the next sync of the same file succeeds without it, as on Linux.

use std::collections::{BTreeMap, VecDeque};

use crate::Random;

/// What a torn grain has.
const TORN: u64 = u64::MAX;

/// Number of a file.
pub type FileId = u64;

/// Names and times of files.
#[derive(Debug, Clone, Default)]
struct Names {
    files: BTreeMap<Vec<u8>, FileId>,
    times: BTreeMap<FileId, i64>,
}

#[derive(Debug, Clone)]
enum Change {
    Link(Vec<u8>, FileId),
    Unlink(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
    Time(FileId, i64),
}

impl Names {
    fn apply(&mut self, change: &Change) {
        match change {
            Change::Link(name, file) => drop(self.files.insert(name.clone(), *file)),
            Change::Unlink(name) => drop(self.files.remove(name)),
            Change::Rename(from, to) => {
                if let Some(file) = self.files.remove(from) {
                    self.files.insert(to.clone(), file);
                }
            }
            Change::Time(file, mtime_ns) => drop(self.times.insert(*file, *mtime_ns)),
        }
    }
}

#[derive(Debug, Clone)]
struct Content {
    bytes: u64,
    now: Vec<u64>,
    device: Vec<u64>,
    /// What the next sync takes: not what a device refused.
    is_dirty: Vec<bool>,
}

impl Content {
    fn sync(&mut self, is_refused: bool) {
        for (place, is_dirty) in self.is_dirty.iter_mut().enumerate() {
            if std::mem::take(is_dirty) && !is_refused {
                self.device[place] = self.now[place];
            }
        }
    }
}

/// The disk of the receiving end.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    contents: BTreeMap<FileId, Content>,
    now: Names,
    device: Names,
    changes: VecDeque<Change>,
    next: FileId,
    /// The journal, and how much of it is on the device.
    pub journal: Vec<u8>,
    journal_device: usize,
    /// Grains that may still be written; then the disk is full.
    pub room: u64,
    /// Times that power went: what names a start of the machine.
    pub boots: u32,
}

impl Disk {
    /// A new file without a name.
    pub fn make(&mut self, bytes: u64, grains: usize) -> FileId {
        self.next += 1;
        let content = Content {
            bytes,
            now: vec![0; grains],
            device: vec![0; grains],
            is_dirty: vec![false; grains],
        };
        self.contents.insert(self.next, content);
        self.next
    }

    fn change(&mut self, change: Change) {
        self.now.apply(&change);
        self.changes.push_back(change);
    }

    /// Gives a file a name.
    pub fn link(&mut self, name: &[u8], file: FileId) {
        self.change(Change::Link(name.to_vec(), file));
    }

    /// Takes a name away.
    pub fn unlink(&mut self, name: &[u8]) {
        self.change(Change::Unlink(name.to_vec()));
    }

    /// Gives what has the name `from` the name `to`.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) {
        self.change(Change::Rename(from.to_vec(), to.to_vec()));
    }

    /// Sets the time of a file.
    pub fn set_time(&mut self, file: FileId, mtime_ns: i64) {
        self.change(Change::Time(file, mtime_ns));
    }

    /// The file of a name, its length and its time.
    pub fn look(&self, name: &[u8]) -> Option<(FileId, u64, i64)> {
        let file = *self.now.files.get(name)?;
        let time = self.now.times.get(&file).copied().unwrap_or(0);
        Some((file, self.contents.get(&file)?.bytes, time))
    }

    /// All names that begin so.
    pub fn names(&self, prefix: &[u8]) -> Vec<Vec<u8>> {
        let names = self.now.files.keys();
        names.filter(|name| name.starts_with(prefix)).cloned().collect()
    }

    /// Content of a file, by grain: what a reader sees, and what the device has.
    pub fn content(&self, file: FileId) -> (&[u64], &[u64]) {
        let content = self.contents.get(&file);
        content.map_or((&[], &[]), |content| (&content.now, &content.device))
    }

    /// Writes one grain; false where the disk is full.
    pub fn write(&mut self, file: FileId, grain: usize, tag: u64) -> bool {
        if self.room == 0 {
            return false;
        }
        self.room -= 1;
        self.put(file, grain, tag);
        true
    }

    /// Makes a grain zeros.
    pub fn punch(&mut self, file: FileId, grain: usize) {
        self.put(file, grain, 0);
    }

    /// As [`Self::write`], of a write that the end of the process tore.
    pub fn tear(&mut self, file: FileId, grain: usize) {
        self.put(file, grain, TORN);
    }

    fn put(&mut self, file: FileId, grain: usize, tag: u64) {
        let content = self.contents.get_mut(&file);
        if let Some(content) = content.filter(|content| grain < content.now.len()) {
            content.now[grain] = tag;
            content.is_dirty[grain] = true;
        }
    }

    /// Brings the content of a file to the device. Where the device refuses, what was written since is only in memory from now
    /// on: the file is as if it had been brought there.
    pub fn sync(&mut self, file: FileId, is_refused: bool) {
        if let Some(content) = self.contents.get_mut(&file) {
            content.sync(is_refused);
        }
        let is_of_file = |change: &Change| match change {
            Change::Link(_, of) | Change::Time(of, _) => *of == file,
            Change::Rename(_, to) => self.now.files.get(to) == Some(&file),
            Change::Unlink(_) => false,
        };
        let last = self.changes.iter().rposition(is_of_file);
        if let Some(last) = last.filter(|_| !is_refused) {
            self.bring_names(last + 1);
        }
    }

    /// Brings everything to the device.
    pub fn sync_all(&mut self) {
        for content in self.contents.values_mut() {
            content.sync(false);
        }
        self.device = self.now.clone();
        self.changes.clear();
    }

    /// Writes behind what is in the journal.
    pub fn append(&mut self, records: &[u8]) {
        self.journal.extend_from_slice(records);
    }

    /// Brings the journal to the device.
    pub fn sync_journal(&mut self) {
        self.journal_device = self.journal.len();
        self.bring_names(self.changes.len());
    }

    /// The first so many of what happened to names reach the device.
    fn bring_names(&mut self, count: usize) {
        for change in self.changes.drain(..count) {
            self.device.apply(&change);
        }
    }

    /// A new journal takes the place of the old one, at once and on the device.
    pub fn replace_journal(&mut self, journal: Vec<u8>) {
        self.journal = journal;
        self.sync_journal();
    }

    /// Power goes and comes back.
    pub fn cut_power(&mut self, random: &mut Random) {
        self.boots += 1;
        for content in self.contents.values_mut() {
            for (now, device) in content.now.iter_mut().zip(&mut content.device) {
                if now != device {
                    *device = match random.bits() % 3 {
                        0 => *device,
                        1 => *now,
                        _ => TORN,
                    };
                }
                *now = *device;
            }
            content.is_dirty.fill(false);
        }
        let survive = random.bits() as usize % (self.changes.len() + 1);
        self.bring_names(survive);
        self.changes.clear();
        self.now = self.device.clone();
        self.cut_journal(random);
    }

    fn cut_journal(&mut self, random: &mut Random) {
        let unsynced = self.journal.len() - self.journal_device;
        let survive = random.bits() as usize % (unsynced + 1);
        self.journal.truncate(self.journal_device + survive);
        if survive > 0 && random.bits() % 2 == 0 {
            let place = self.journal_device + random.bits() as usize % survive;
            self.journal[place] ^= 0x55;
        }
        self.journal_device = self.journal.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_synced_survives_and_what_was_not_may_be_anything() {
        let mut outcomes = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let mut disk = Disk {
                room: 10,
                ..Disk::default()
            };
            let file = disk.make(1, 2);
            disk.write(file, 0, 7);
            disk.link(b"a", file);
            disk.sync_all();
            disk.write(file, 1, 8);
            disk.rename(b"a", b"b");
            disk.cut_power(&mut Random::new(seed));
            let content = disk.content(file).0.to_vec();
            assert_eq!(content[0], 7);
            assert_eq!(disk.names(b"").len(), 1);
            outcomes.insert((content[1], disk.look(b"b").is_some()));
        }
        assert_eq!(outcomes.len(), 6, "{outcomes:?}");
    }

    #[test]
    fn what_a_device_refused_is_not_there_after_a_sync_that_succeeds() {
        let mut disk = Disk {
            room: 1,
            ..Disk::default()
        };
        let file = disk.make(1, 1);
        assert!(disk.write(file, 0, 7) && !disk.write(file, 0, 8));
        disk.sync(file, true);
        disk.sync(file, false);
        assert_eq!(disk.content(file), (&[7][..], &[0][..]));
    }
}
