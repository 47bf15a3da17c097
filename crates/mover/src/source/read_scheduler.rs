//! What is to be read next, for whoever asks: packs of small files and chunks of large ones, in the order announced.
//!
//! ```text
//! again    ─────────────► packs     those that came spoiled, few at a time
//! small    ─────────────► packs     as many as fit into a frame
//! waiting  ─► active ───► spans     a reader stays with its file; when there is no other, it helps where most is left
//! ```
//! Files of which chunks are handed out and packs being filled are together at most `concurrency`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::sending::Sending;
use crate::pack::ITEM_HEADER_BYTES;

/// Small files that are taken with one look at the supply: more would leave none for the other streams.
const MOST_TAKEN: usize = 64;

/// Longest pack of files that are sent once more, unless one of them is longer: what spoils one pack spoils a shorter one less
/// often.
const AGAIN_BYTES: usize = 64 * 1024;

/// The supply of one copy.
#[derive(Debug)]
pub(super) struct ReadScheduler {
    most_under_way: AtomicUsize,
    pack_bytes: usize,
    inner: Mutex<Inner>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Inner {
    /// Small files that are wanted once more.
    again: VecDeque<Arc<Sending>>,
    small: VecDeque<Arc<Sending>>,
    waiting: VecDeque<Arc<Sending>>,
    /// Chunks of these are still to be handed out.
    active: Vec<Arc<Sending>>,
    /// How many are active, and packs being filled.
    under_way: usize,
    is_over: bool,
}

/// What a reader does next.
#[derive(Debug)]
pub(super) enum Work {
    /// Fill a pack with these; then [`ReadScheduler::pack_done`].
    Pack(Batch),
    /// Read chunks of this.
    File(Arc<Sending>),
}

/// Small files for a pack.
#[derive(Debug)]
pub(super) struct Batch {
    /// They.
    pub(super) files: Vec<Arc<Sending>>,
    /// How long the pack may get with others.
    pub(super) pack_bytes: usize,
}

impl ReadScheduler {
    /// An empty one; packs are up to `pack_bytes` long.
    pub(super) fn new(most_under_way: usize, pack_bytes: usize) -> Self {
        Self {
            most_under_way: AtomicUsize::new(most_under_way),
            pack_bytes,
            inner: Mutex::default(),
            bell: Condvar::new(),
        }
    }

    /// Files and packs at once, at most.
    pub(super) fn most_under_way(&self) -> usize {
        // Relaxed: the figure stands for itself.
        self.most_under_way.load(Ordering::Relaxed)
    }

    /// From now on so many. What is under way beyond that is finished.
    pub(super) fn set_most_under_way(&self, most: usize) {
        self.most_under_way.store(most.max(1), Ordering::Relaxed);
        self.ring();
    }

    /// Longest pack of all.
    pub(super) const fn pack_bytes(&self) -> usize {
        self.pack_bytes
    }

    /// Whether a file of so many bytes goes in a pack.
    pub(super) fn is_small(&self, bytes: u64) -> bool {
        bytes <= (self.pack_bytes - ITEM_HEADER_BYTES) as u64
    }

    /// These are wanted, in this order.
    pub(super) fn add(&self, files: impl IntoIterator<Item = Arc<Sending>>) {
        let mut inner = self.lock();
        for file in files {
            if self.is_small(file.found.bytes()) {
                inner.small.push_back(file);
            } else {
                inner.waiting.push_back(file);
            }
        }
        self.bell.notify_all();
    }

    /// This is wanted once more, before the others.
    pub(super) fn add_again(&self, file: Arc<Sending>) {
        let mut inner = self.lock();
        if self.is_small(file.found.bytes()) {
            inner.again.push_back(file);
        } else if !inner.active.iter().any(|active| Arc::ptr_eq(active, &file)) {
            inner.waiting.push_front(file);
        }
        self.bell.notify_all();
    }

    /// What to do next, if there is anything; `own` is the file that the reader was at.
    pub(super) fn take(&self, own: Option<&Arc<Sending>>) -> Option<Work> {
        let mut inner = self.lock();
        let still = own.filter(|own| inner.active.iter().any(|active| Arc::ptr_eq(active, own)));
        if let Some(own) = still {
            return Some(Work::File(Arc::clone(own)));
        }
        if inner.under_way < self.most_under_way() {
            if let Some(batch) = inner.again() {
                return Some(Work::Pack(batch));
            }
            let next_small = inner.small.front().map(|file| file.number);
            let next_large = inner.waiting.front().map(|file| file.number);
            match (next_small, next_large) {
                (Some(small), large) if large.is_none_or(|large| small < large) => {
                    return Some(Work::Pack(self.batch(&mut inner)));
                }
                (_, Some(_)) => {
                    let file = inner.waiting.pop_front()?;
                    inner.under_way += 1;
                    inner.active.push(Arc::clone(&file));
                    return Some(Work::File(file));
                }
                _ => {}
            }
        }
        let most_left = |file: &&Arc<Sending>| file.left_bytes.load(Ordering::Relaxed);
        inner
            .active
            .iter()
            .max_by_key(most_left)
            .map(|file| Work::File(Arc::clone(file)))
    }

    /// Small files for a pack, if there are any; then [`Self::pack_done`].
    pub(super) fn take_small(&self) -> Option<Batch> {
        let mut inner = self.lock();
        if inner.is_over || !self.can_pack(&inner) {
            return None;
        }
        Some(inner.again().unwrap_or_else(|| self.batch(&mut inner)))
    }

    fn can_pack(&self, inner: &Inner) -> bool {
        inner.under_way < self.most_under_way() && !(inner.small.is_empty() && inner.again.is_empty())
    }

    fn batch(&self, inner: &mut Inner) -> Batch {
        inner.under_way += 1;
        Batch {
            files: pack(&mut inner.small, self.pack_bytes),
            pack_bytes: self.pack_bytes,
        }
    }

    /// More small files for a pack with so much room left; none if there are none now.
    pub(super) fn more(&self, room_bytes: usize) -> Vec<Arc<Sending>> {
        pack(&mut self.lock().small, room_bytes)
    }

    /// A pack has been filled.
    pub(super) fn pack_done(&self) {
        self.one_less(&mut self.lock());
    }

    /// All chunks of `file` have been handed out, or no more of them are wanted.
    pub(super) fn handed_out(&self, file: &Arc<Sending>) {
        let mut inner = self.lock();
        let place = inner.active.iter().position(|active| Arc::ptr_eq(active, file));
        if let Some(place) = place {
            inner.active.remove(place);
            self.one_less(&mut inner);
        }
    }

    fn one_less(&self, inner: &mut Inner) {
        inner.under_way = inner.under_way.saturating_sub(1);
        if !inner.small.is_empty() || !inner.again.is_empty() || !inner.waiting.is_empty() {
            // Not all who wait take all: a helper takes small files alone.
            self.bell.notify_all();
        }
    }

    /// Waits until there may be something, or until `is_due` after a [`Self::ring`], for at most `time`.
    pub(super) fn wait(&self, time: Duration, is_due: impl Fn() -> bool) {
        self.wait_for(time, |inner| {
            let can_begin = inner.under_way < self.most_under_way() && !inner.waiting.is_empty();
            can_begin || self.can_pack(inner) || !inner.active.is_empty() || is_due()
        });
    }

    /// Waits until there may be small files, for at most `time`.
    pub(super) fn wait_small(&self, time: Duration) {
        self.wait_for(time, |inner| self.can_pack(inner));
    }

    fn wait_for(&self, time: Duration, is_there: impl Fn(&Inner) -> bool) {
        let goes_on = |inner: &mut Inner| !inner.is_over && !is_there(inner);
        let waited = self.bell.wait_timeout_while(self.lock(), time, goes_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Makes whoever waits look around.
    pub(super) fn ring(&self) {
        drop(self.lock());
        self.bell.notify_all();
    }

    /// Nothing more will be wanted: whoever waits goes on at once.
    pub(super) fn close(&self) {
        self.lock().is_over = true;
        self.bell.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Small files that are wanted once more, if there are any.
    fn again(&mut self) -> Option<Batch> {
        let first = item_bytes(self.again.front()?);
        self.under_way += 1;
        Some(Batch {
            files: pack(&mut self.again, AGAIN_BYTES.max(first)),
            pack_bytes: AGAIN_BYTES,
        })
    }
}

/// The first files of a queue that fit into so much room.
fn pack(queue: &mut VecDeque<Arc<Sending>>, mut room_bytes: usize) -> Vec<Arc<Sending>> {
    let mut files = Vec::new();
    while files.len() < MOST_TAKEN {
        let Some(bytes) = queue.front().map(item_bytes) else {
            break;
        };
        if bytes > room_bytes {
            break;
        }
        room_bytes -= bytes;
        files.extend(queue.pop_front());
    }
    files
}

/// What a small file takes of a pack; fits into one, so into memory.
fn item_bytes(file: &Arc<Sending>) -> usize {
    ITEM_HEADER_BYTES + file.found.bytes() as usize
}
