//! Entries under way: those that were announced and are not settled, by number.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use farline_proto::copy::Ranges;
use farline_spec::{Failure, FailureKind};

use super::journal::Source;
use super::owner::Belongs;
use super::staging::Partial;
use crate::engine::OpenFile;
use crate::message::Xattr;
use crate::tree_hash::TreeHash;

/// How often a wait looks whether the copy is still wanted.
pub const TICK: Duration = Duration::from_millis(50);

/// A file, or a further name of one, that is to come.
#[derive(Debug)]
pub struct Entry {
    /// Its number.
    pub number: u64,
    /// Where it goes and what it is known by.
    pub source: Source,
    /// Path of the file that this is a further name of.
    pub link_to: Option<Vec<u8>>,
    /// Permission bits.
    pub mode: u32,
    /// To whom it is to belong.
    pub belongs: Belongs,
    /// Extended attributes.
    pub xattrs: Vec<Xattr>,
    /// Whether it takes the place of what has its name.
    pub replaces: bool,
    /// Set once, by whoever settles it.
    pub over: AtomicBool,
    body: Mutex<Body>,
}

/// What is there of a file's content.
#[derive(Debug)]
pub enum Body {
    /// Nothing yet; so often it came damaged in a pack.
    Expected(u8),
    /// It came in a pack and is being written or waits for its name.
    Packed,
    /// It comes in chunks.
    Large(Box<Large>),
}

/// A file that comes in chunks.
#[derive(Debug)]
pub struct Large {
    /// Where it grows; absent where nothing is kept.
    pub partial: Option<Arc<Partial>>,
    /// The same, as the engine writes to it.
    pub file: Option<Arc<OpenFile>>,
    /// Its tree, where it is hashed.
    pub tree: Option<TreeHash>,
    /// What is written, or being written.
    pub claimed: Ranges,
    /// Its share of the parts of all files.
    pub parts: PartCount,
    /// What of it is written and proved.
    pub proved: Ranges,
    /// Bytes that are written and proved.
    pub proved_bytes: u64,
    /// Of them, bytes that an earlier session proved.
    pub resumed_bytes: u64,
    /// What the sending end said at its end: its hash.
    pub settled: Option<Option<[u8; 32]>>,
    /// How often a chunk came damaged.
    pub spoiled: HashMap<u64, u8>,
    /// Handed to those who give names.
    pub is_finishing: bool,
}

impl Entry {
    /// An entry of which nothing has come.
    pub fn new(number: u64, source: Source, mode: u32, xattrs: Vec<Xattr>) -> Self {
        Self {
            number,
            source,
            link_to: None,
            mode,
            belongs: Belongs::default(),
            xattrs,
            replaces: false,
            over: AtomicBool::new(false),
            body: Mutex::new(Body::Expected(0)),
        }
    }

    /// Bytes that its path and attributes take.
    fn facts_bytes(&self) -> usize {
        let xattrs = self
            .xattrs
            .iter()
            .map(|xattr| xattr.name.len() + xattr.value.len());
        let further = self.link_to.as_ref().map_or(0, Vec::len);
        self.source.path.len() + further + xattrs.sum::<usize>()
    }

    /// Its content so far.
    pub fn body(&self) -> MutexGuard<'_, Body> {
        self.body
            .lock()
            .expect("a thread of the copy panicked while it held a file")
    }

    /// Bytes of it that count as settled before it is.
    pub fn proved_bytes(&self) -> u64 {
        match &*self.body() {
            Body::Large(large) => large.proved_bytes,
            Body::Expected(_) | Body::Packed => 0,
        }
    }

    /// Bytes of it that an earlier session proved.
    pub fn resumed_bytes(&self) -> u64 {
        match &*self.body() {
            Body::Large(large) => large.resumed_bytes,
            Body::Expected(_) | Body::Packed => 0,
        }
    }

    /// Its partial, if it has one.
    pub fn partial(&self) -> Option<Arc<Partial>> {
        match &*self.body() {
            Body::Large(large) => large.partial.clone(),
            Body::Expected(_) | Body::Packed => None,
        }
    }
}

impl Large {
    /// Whether all of it is there and the sending end has said so; true once.
    pub fn is_ready(&mut self, bytes: u64) -> bool {
        let ready = self.settled.is_some() && self.proved_bytes == bytes && !self.is_finishing;
        self.is_finishing |= ready;
        ready
    }
}

/// Parts of files that do not touch, of one copy: memory that another host could ask for without sending anything.
#[derive(Debug, Default, Clone)]
pub struct Parts(Arc<AtomicUsize>);

/// Those of one file; given back when it is dropped.
#[derive(Debug)]
pub struct PartCount {
    all: Parts,
    own: usize,
}

impl Parts {
    /// None yet, of one file.
    pub fn of_file(&self) -> PartCount {
        PartCount {
            all: self.clone(),
            own: 0,
        }
    }
}

impl PartCount {
    /// The file has so many now; gives how many all have.
    pub fn set(&mut self, own: usize) -> usize {
        let before = std::mem::replace(&mut self.own, own);
        let added = own.wrapping_sub(before);
        let all = self.all.0.fetch_add(added, Ordering::Relaxed);
        all.wrapping_add(added)
    }
}

impl Drop for PartCount {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Entries by number.
#[derive(Debug, Default)]
pub struct Table {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    open: HashMap<u64, Arc<Entry>>,
    /// What the facts of those take.
    bytes: usize,
    /// Entries that are none of them any more, of which the other end may not have been told.
    leaving: usize,
    next: u64,
    end: Option<End>,
}

/// What the last message of the catalogue said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Entries there were.
    pub entries: u64,
    /// Whether the sending end could read all of its sources.
    pub whole: bool,
}

impl Table {
    /// The entry of the next number is answered or kept: data of it need not wait any longer.
    pub fn announced(&self) {
        self.lock().next += 1;
    }

    /// Numbers so far; that of the next entry.
    pub fn count(&self) -> u64 {
        self.lock().next
    }

    /// Keeps an entry until [`Self::leave`]. Those who wait for it are woken by [`Self::tell`].
    pub fn keep(&self, entry: &Arc<Entry>) {
        let mut inner = self.lock();
        inner.bytes += entry.facts_bytes();
        inner.open.insert(entry.number, Arc::clone(entry));
    }

    /// Wakes those who wait for entries.
    pub fn tell(&self) {
        self.changed.notify_all();
    }

    /// Entries under way.
    pub fn open(&self) -> usize {
        self.lock().open.len()
    }

    /// All entries under way.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        self.lock().open.values().cloned().collect()
    }

    /// Bytes of paths and attributes of entries under way.
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Entries are settled, which `tell` tells the other end. They leave before it hears that and announces others in their
    /// place; nothing comes after all entries until it was told.
    pub fn leave(&self, numbers: impl Iterator<Item = u64>, tell: impl FnOnce()) {
        let mut count = 0;
        {
            let mut inner = self.lock();
            for number in numbers {
                if let Some(entry) = inner.open.remove(&number) {
                    inner.bytes -= entry.facts_bytes();
                    count += 1;
                }
            }
            inner.leaving += count;
        }
        tell();
        self.lock().leaving -= count;
    }

    /// There are no more entries.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] when their number is another, or this was said before.
    pub fn end(&self, end: End) -> Result<(), Failure> {
        let mut inner = self.lock();
        if inner.end.is_some() || inner.next != end.entries {
            return Err(Failure::new(
                FailureKind::Protocol,
                format!(
                    "the file list announces {} entries but had {}",
                    end.entries, inner.next
                ),
            ));
        }
        inner.end = Some(end);
        drop(inner);
        self.changed.notify_all();
        Ok(())
    }

    /// What was said at the end, once every entry is settled.
    pub fn is_over(&self) -> Option<End> {
        let inner = self.lock();
        inner.end.filter(|_| inner.open.is_empty() && inner.leaving == 0)
    }

    /// What was said at the end.
    pub fn said_end(&self) -> Option<End> {
        self.lock().end
    }

    /// The entries of these numbers, `None` for those that are settled; waits for those that have not come.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`] for a number that no entry has; whatever `stop` says.
    pub fn get(
        &self,
        numbers: &[u64],
        stop: impl Fn() -> Result<(), Failure>,
    ) -> Result<Vec<Option<Arc<Entry>>>, Failure> {
        let last = numbers.iter().copied().max().unwrap_or(0);
        let mut inner = self.lock();
        while inner.next <= last {
            if inner.end.is_some() {
                let line = format!("data for file {last}, which was not announced");
                return Err(Failure::new(FailureKind::Protocol, line));
            }
            inner = self.changed.wait_timeout(inner, TICK).expect(POISONED).0;
            stop()?;
        }
        Ok(numbers
            .iter()
            .map(|number| inner.open.get(number).cloned())
            .collect())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().expect(POISONED)
    }
}

const POISONED: &str = "a thread of the copy panicked while it held the table";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_leave_before_it_is_told_and_the_end_comes_after() {
        let table = Table::default();
        let source = Source {
            path: b"a".to_vec(),
            bytes: 1,
            mtime_ns: 0,
            ctime_ns: 0,
        };
        table.keep(&Arc::new(Entry::new(0, source, 0o644, Vec::new())));
        table.announced();
        let end = End {
            entries: 1,
            whole: true,
        };
        table.end(end).unwrap();
        assert_eq!((table.open(), table.is_over()), (1, None));
        table.leave([0, 7].into_iter(), || {
            assert_eq!((table.open(), table.bytes(), table.is_over()), (0, 0, None));
        });
        assert_eq!(table.is_over(), Some(end));
    }
}
