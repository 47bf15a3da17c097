//! The entries under way by number, the window of those that are not answered, and what keeps the end of the catalogue open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::found::{Found, What};
use super::sending::{Phase, Sending};

/// Bytes of names and attributes of entries under way from which others wait; the other end takes twice that.
const MOST_LIVE_BYTES: usize = 32 << 20;

/// Entries that have been announced and are not settled.
#[derive(Debug)]
pub(super) struct Table {
    most_unanswered: usize,
    most_live: usize,
    joins_names: bool,
    /// Names of one file may come by themselves in the end.
    takes_apart: bool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    live: HashMap<u64, Arc<Sending>>,
    /// Bytes of their names and attributes.
    live_bytes: usize,
    next: u64,
    unanswered: usize,
    /// Files that may have to be read still, so that any of them may become a new entry.
    unread: usize,
    is_end_said: bool,
    /// `Ready` has come.
    is_ready: bool,
    /// Nothing is at the destination, as the other end said there or before.
    is_fresh: bool,
    /// Files with names still to come, by device and inode: number, names left.
    names: HashMap<(u64, u64), (u64, u64)>,
}

/// What is known of a number that the other end speaks of.
#[derive(Debug)]
pub(super) enum Known {
    /// Under way.
    Live(Arc<Sending>),
    /// Settled before.
    Settled,
    /// Never announced.
    Never,
}

/// An entry that has got its number.
#[derive(Debug)]
pub(super) struct Registered {
    /// The entry.
    pub(super) file: Arc<Sending>,
    /// Number of the file that it is one more name of.
    pub(super) link_to: Option<u64>,
    /// The other end had nothing: its content is wanted without asking.
    pub(super) is_wanted: bool,
}

impl Table {
    /// An empty one; `joins_names`: names of one file are said to be that; `is_fresh`: nothing is at the destination.
    pub(super) fn new(most_unanswered: usize, most_live: usize, joins_names: bool, is_fresh: bool) -> Self {
        let inner = Inner {
            is_fresh,
            ..Inner::default()
        };
        Self {
            most_unanswered,
            most_live,
            joins_names,
            takes_apart: false,
            inner: Mutex::new(inner),
        }
    }

    /// The same; `takes_apart`: a further name may have to come by itself until it is settled.
    pub(super) fn taking_apart(self, takes_apart: bool) -> Self {
        Self { takes_apart, ..self }
    }

    /// Whether one more entry may be announced now.
    pub(super) fn has_room(&self) -> bool {
        let inner = self.lock();
        inner.unanswered < self.most_unanswered
            && inner.live.len() < self.most_live
            && inner.live_bytes < MOST_LIVE_BYTES
    }

    /// Gives an entry its number.
    pub(super) fn register(&self, found: Found) -> Registered {
        let mut inner = self.lock();
        let number = inner.next;
        inner.next += 1;
        inner.unanswered += 1;
        let link_to = self.joined(&mut inner, &found, number);
        let file = Arc::new(Sending::new(number, found, link_to, self.takes_apart));
        inner.unread += usize::from(file.lock().is_unread);
        inner.live_bytes += file.found.entry_bytes();
        inner.live.insert(number, Arc::clone(&file));
        Registered {
            is_wanted: inner.is_fresh && file.found.bytes() > 0 && file.has_content(),
            file,
            link_to,
        }
    }

    fn joined(&self, inner: &mut Inner, found: &Found, number: u64) -> Option<u64> {
        let facts = &found.facts;
        if !self.joins_names || facts.links < 2 || !matches!(found.what, What::File(_)) {
            return None;
        }
        let key = (facts.device, facts.inode);
        if found.tries > 1 {
            // The first name comes again, or another one in its place: the names to come are those of the new entry. Of names
            // that come again because the first could not be copied, one is the first.
            let first = &mut inner.names.entry(key).or_insert((number, facts.links - 1)).0;
            let is_first = found
                .apart_from
                .is_none_or(|failed| *first == failed || *first == number);
            if !is_first {
                return Some(*first);
            }
            *first = number;
            return None;
        }
        let Some((to, left)) = inner.names.get_mut(&key) else {
            inner.names.insert(key, (number, facts.links - 1));
            return None;
        };
        let to = *to;
        *left = left.saturating_sub(1);
        if *left == 0 {
            inner.names.remove(&key);
        }
        Some(to)
    }

    /// `Ready` has come: gives what is wanted without asking, in order; `None` when it came before.
    pub(super) fn ready(&self, is_fresh: bool) -> Option<Vec<Arc<Sending>>> {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.is_ready, true) {
            return None;
        }
        inner.is_fresh = is_fresh;
        let mut wanted: Vec<_> = inner
            .live
            .values()
            .filter(|file| is_fresh && file.has_content() && file.found.bytes() > 0)
            .cloned()
            .collect();
        wanted.sort_unstable_by_key(|file| file.number);
        Some(wanted)
    }

    /// Whether `Ready` has come.
    pub(super) fn is_ready(&self) -> bool {
        self.lock().is_ready
    }

    /// Whether nothing is at the destination, as far as the other end has said.
    pub(super) fn is_fresh(&self) -> bool {
        self.lock().is_fresh
    }

    /// What is known of `number`.
    pub(super) fn find(&self, number: u64) -> Known {
        let inner = self.lock();
        match inner.live.get(&number) {
            Some(file) => Known::Live(Arc::clone(file)),
            None if number < inner.next => Known::Settled,
            None => Known::Never,
        }
    }

    /// The entry has been answered for, the first time.
    pub(super) fn answered(&self) {
        let mut inner = self.lock();
        inner.unanswered = inner.unanswered.saturating_sub(1);
    }

    /// The entry is settled.
    pub(super) fn remove(&self, number: u64) {
        let mut inner = self.lock();
        if let Some(file) = inner.live.remove(&number) {
            inner.live_bytes -= file.found.entry_bytes();
        }
    }

    /// So many files need no reading any more; whether that were all.
    pub(super) fn all_read(&self, files: usize) -> bool {
        let mut inner = self.lock();
        inner.unread = inner.unread.saturating_sub(files);
        inner.unread == 0
    }

    /// A file has to be read once more; false when it can become no new entry, because the end has been said.
    pub(super) fn unread_again(&self) -> bool {
        let mut inner = self.lock();
        inner.unread += usize::from(!inner.is_end_said);
        !inner.is_end_said
    }

    /// Says the end, if nothing can become a new entry any more and `is_quiet`; gives how many entries there were.
    pub(super) fn say_end(&self, is_quiet: impl FnOnce() -> bool) -> Option<u64> {
        let mut inner = self.lock();
        if inner.is_end_said || inner.unread > 0 || !is_quiet() {
            return None;
        }
        inner.is_end_said = true;
        Some(inner.next)
    }

    /// Names that are not settled, if the end has been said; `None` before.
    pub(super) fn unsettled_at_end(&self) -> Option<usize> {
        let inner = self.lock();
        let unsettled = inner
            .live
            .values()
            .filter(|file| file.lock().phase != Phase::Over);
        inner.is_end_said.then(|| unsettled.count())
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
