//! What readers ask: what is next, which part of it, and what comes of what they read.

use farline_spec::FileStatus;

use super::super::message::Catalogue;
use super::super::sum::Sum;
use super::chunks::{Piece, Reach, Span};
use super::entry::Entry;
use super::queue::Next;
use super::table::{Event, Stage};
use super::{CopySender, Outcome};

/// What a reader does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work<T> {
    /// Fills a pack with these; then [`CopySender::pack_done`].
    Pack(Batch<T>),
    /// Reads chunks of this file, by number: [`CopySender::cut`] says which.
    File(u64, T),
}

/// Small files for a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch<T> {
    /// They, each with its number.
    pub files: Vec<(u64, T)>,
    /// How long the pack may get with others.
    pub pack_bytes: usize,
}

/// What is known of a file once a part of it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// More of it is to be read, or to arrive.
    Part,
    /// All of it: if the file is still what was announced, [`CopySender::all_read`]; [`CopySender::lose`] otherwise.
    All,
    /// It is not wanted any more.
    Late,
    /// The part was read before: a defect of whoever reads.
    Twice,
}

impl<T: Clone> CopySender<T> {
    /// Files and packs that are read at once, at most.
    pub const fn most_under_way(&self) -> usize {
        self.queue.most_under_way()
    }

    /// From now on so many. What is under way beyond that is finished.
    pub fn set_most_under_way(&mut self, most: usize) {
        self.queue.set_most_under_way(most);
    }

    /// Whether a file of so many bytes goes in a pack.
    pub const fn is_small(&self, bytes: u64) -> bool {
        self.queue.is_small(bytes)
    }

    /// Whether a reader has something to do.
    pub fn has_work(&self) -> bool {
        self.queue.has_work()
    }

    /// Whether who fills packs has something to do.
    pub fn has_packs(&self) -> bool {
        self.queue.may_pack()
    }

    /// What to do next, if there is anything; `own` is the file that the reader was at.
    pub fn take(&mut self, own: Option<u64>) -> Option<Work<T>> {
        if let Some(own) = own.filter(|own| self.queue.is_active(*own))
            && let Some(work) = self.chunks_of(own)
        {
            return Some(work);
        }
        while let Some(next) = self.queue.next() {
            match next {
                Next::Again | Next::Small => {
                    if let Some(batch) = self.batch(next) {
                        return Some(Work::Pack(batch));
                    }
                }
                Next::Large(file) => {
                    if let Some(work) = self.chunks_of(file) {
                        self.queue.begin_file(file);
                        return Some(work);
                    }
                }
            }
        }
        let left_bytes = |file: &&u64| {
            let chunks = self.live.get(file).and_then(|entry| entry.chunks.as_ref());
            chunks.map_or(0, |chunks| chunks.left_bytes())
        };
        let most_left = self.queue.active().iter().max_by_key(left_bytes).copied()?;
        self.chunks_of(most_left)
    }

    /// Small files for a pack, if there are any; then [`Self::pack_done`].
    pub fn take_pack(&mut self) -> Option<Batch<T>> {
        while self.queue.may_pack() {
            let next = match self.queue.next()? {
                // A large file is before them: it keeps its place.
                Next::Large(file) => {
                    self.queue.put_back(file);
                    Next::Small
                }
                next => next,
            };
            if let Some(batch) = self.batch(next) {
                return Some(batch);
            }
        }
        None
    }

    /// More small files for a pack with so much room left; none if there are none now.
    pub fn more(&mut self, room_bytes: usize) -> Vec<(u64, T)> {
        loop {
            let files = self.queue.pack(Next::Small, room_bytes);
            let wanted = self.wanted(&files);
            if !wanted.is_empty() || files.is_empty() {
                return wanted;
            }
        }
    }

    /// A pack has been filled.
    pub const fn pack_done(&mut self) {
        self.queue.pack_done();
    }

    fn batch(&mut self, next: Next) -> Option<Batch<T>> {
        let pack_bytes = self.queue.room_of(next);
        let files = self.queue.pack(next, pack_bytes);
        let files = self.wanted(&files);
        if files.is_empty() {
            return None;
        }
        self.queue.begin_pack();
        Some(Batch { files, pack_bytes })
    }

    /// Those of `files` that are wanted still.
    fn wanted(&self, files: &[u64]) -> Vec<(u64, T)> {
        let of = |file: &u64| {
            let entry = self.live.get(file)?;
            (entry.stage == Stage::Wanted).then(|| (*file, entry.kept.clone()))
        };
        files.iter().filter_map(of).collect()
    }

    fn chunks_of(&self, file: u64) -> Option<Work<T>> {
        let (file, kept) = self.wanted(&[file]).pop()?;
        Some(Work::File(file, kept))
    }

    fn wanted_mut(&mut self, file: u64) -> Option<&mut Entry<T>> {
        let entry = self.live.get_mut(&file);
        entry.filter(|entry| entry.stage == Stage::Wanted)
    }

    /// Whether content of `file` is wanted still.
    pub fn is_wanted(&self, file: u64) -> bool {
        let entry = self.live.get(&file);
        entry.is_some_and(|entry| entry.stage == Stage::Wanted)
    }

    /// Whether the other end may still say what becomes of `file`.
    pub fn is_under_way(&self, file: u64) -> bool {
        let entry = self.live.get(&file);
        entry.is_some_and(|entry| entry.stage.is_under_way())
    }

    /// The bytes of `file` go to streams without being read here.
    pub fn go_straight(&mut self, file: u64, is_straight: bool) {
        if let Some(chunks) = self.wanted_mut(file).and_then(|entry| entry.chunks.as_mut()) {
            chunks.is_straight = is_straight;
        }
    }

    /// Where the next span of `file` begins, and where it ends at the latest, if it is worth looking for holes there.
    pub fn next_part(&mut self, file: u64) -> Option<(u64, u64)> {
        let chunks = self.wanted_mut(file)?.chunks.as_mut()?;
        let looks = chunks.may_have_holes && !chunks.is_to_repeat();
        looks.then(|| chunks.next()).flatten()
    }

    /// The file system does not say where holes of `file` are.
    pub fn ignore_holes(&mut self, file: u64) {
        if let Some(chunks) = self.wanted_mut(file).and_then(|entry| entry.chunks.as_mut()) {
            chunks.may_have_holes = false;
        }
    }

    /// The next chunks of `file` that nobody has taken, which may begin with what was found by [`Self::next_part`]; `None` when
    /// all have been handed out or are not wanted any more. A hole is said by that, and counted.
    pub fn cut(&mut self, file: u64, reach: Option<Reach>) -> Option<Span> {
        let chunks = self.wanted_mut(file).and_then(|entry| entry.chunks.as_mut());
        let cut = chunks.map(|chunks| (chunks.cut(reach), chunks.has_more()));
        let (span, has_more) = cut.unwrap_or((None, false));
        if !has_more {
            self.queue.handed_out(file);
        }
        if let Some(hole) = span.filter(|span| span.is_hole) {
            let (offset, bytes) = (hole.offset, hole.end - hole.offset);
            self.say(Catalogue::Hole { file, offset, bytes });
            self.progress.spared_bytes += bytes;
            self.credit(file, bytes);
        }
        span
    }

    /// A part of `file` is known: it was read and hashed, or sent straight, or is a hole.
    pub fn part_read(&mut self, file: u64, piece: &Piece) -> Known {
        let Some(chunks) = self.wanted_mut(file).and_then(|entry| entry.chunks.as_mut()) else {
            return Known::Late;
        };
        match (chunks.read(piece), chunks.is_known()) {
            (false, _) => Known::Twice,
            (true, true) => Known::All,
            (true, false) => Known::Part,
        }
    }

    /// Every part of `file` is known and it is what was announced: it may take its name at the other end. False if that was so
    /// before, or is not any more.
    pub fn all_read(&mut self, file: u64) -> bool {
        let Some(entry) = self.wanted_mut(file) else {
            return false;
        };
        let Some(chunks) = entry.chunks.as_mut().filter(|chunks| chunks.is_known()) else {
            return false;
        };
        let is_first = chunks.tell();
        let root = chunks.tree.take().and_then(|tree| tree.root());
        entry.hash = entry.hash.or(root);
        entry.turn(Event::AllRead);
        let (was_unread, hash) = (entry.take_unread(), entry.hash);
        if is_first {
            self.say(Catalogue::Settled { file, hash });
        }
        self.no_longer_unread(was_unread);
        true
    }

    /// All of a small file was read, and it is what was announced: a pack says so. False where it is not wanted any more: then it
    /// does not go.
    pub fn item_read(&mut self, file: u64, hash: Option<Sum>) -> bool {
        let Some(entry) = self.wanted_mut(file) else {
            return false;
        };
        entry.turn(Event::AllRead);
        entry.hash = hash;
        let was_unread = entry.take_unread();
        self.no_longer_unread(was_unread);
        true
    }

    /// `bytes` more of `file` are on their way: they count as settled until it is, or fails.
    pub fn credit(&mut self, file: u64, bytes: u64) {
        let entry = self.live.get_mut(&file);
        if let Some(entry) = entry.filter(|entry| entry.stage.is_under_way()) {
            self.progress.settled_bytes += entry.credit(bytes) as i64;
        }
    }

    /// Reads and sends `bytes` bytes of `file` at `offset` once more, all of a small one, unless it is settled meanwhile.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) if it was not sent before.
    pub(super) fn repeat(&mut self, file: u64, offset: u64, bytes: u64) -> Result<(), farline_spec::Failure> {
        let Some(entry) = self.live.get_mut(&file) else {
            return Ok(());
        };
        let was_read = entry.stage == Stage::Read;
        if !entry.on(file, Event::Repeat)? {
            return Ok(());
        }
        if let Some(chunks) = &mut entry.chunks {
            chunks.repeat(offset, bytes);
        }
        if was_read && !self.is_end_said {
            entry.is_unread = true;
            self.unread += 1;
        }
        let whole = entry.about.bytes;
        if !self.queue.is_small(whole) {
            let bytes = bytes.min(entry.credited_bytes);
            entry.credited_bytes -= bytes;
            self.progress.settled_bytes -= bytes as i64;
        }
        self.queue.add_again(file, whole);
        Ok(())
    }

    /// The other end has every byte of `file`, which is not settled yet.
    pub(super) fn arrived(&mut self, file: u64) {
        let Some(entry) = self.wanted_mut(file) else {
            return;
        };
        let Some(chunks) = &mut entry.chunks else {
            return;
        };
        chunks.has_arrived = true;
        // Otherwise its last part is just being sent.
        if chunks.is_known() {
            let kept = entry.kept.clone();
            self.outcomes.push_back(Outcome::Arrived { file, kept });
        }
    }

    /// A name of the sources that is not announced became something.
    pub const fn count_unannounced(&mut self, status: FileStatus) {
        match status {
            FileStatus::Failed => self.progress.failed_files += 1,
            _ => self.progress.settled_files += 1,
        }
    }
}
