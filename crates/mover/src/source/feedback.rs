//! The other end's feedback: what it wants, what it has, what came of it. All of it is taken for what it is: words of
//! somebody else.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_spec::unit::counted;
use farline_spec::{Failure, FileKind, FileStatus, ReceiptLine};
use tracing::debug;

use super::found::MOST_TRIES;
use super::sending::{Phase, Sending, State};
use super::settle::Trouble;
use super::shared::{Shared, one_line};
use super::start::asks_nothing;
use super::table::Known;
use crate::frame::{Frame, FrameKind};
use crate::message::{self, Feedback, Proved, Wants, is_chunk};
use crate::path_text::{Shown, to_text};
use crate::sum::{Sum, content_sum};
use crate::{Arrived, Inlet};

/// Problems besides files that are taken at the end.
const MOST_PROBLEMS: usize = 1_000;

/// Chunks of one copy that are sent again, at most: a path that spoils more carries no copy.
const MOST_REPEATED_CHUNKS: u64 = 65_536;

/// Takes feedback until the other end has finished.
pub(super) fn run(shared: &Shared, inlet: &mut dyn Inlet) -> Result<(), Failure> {
    let mut frame = Frame::new(crate::most_frame_bytes(&shared.spec));
    while !shared.halt.is_over() {
        match inlet.receive(&mut frame)? {
            Arrived::Void | Arrived::Unopened { .. } | Arrived::OutOfStep { .. } => {
                return shared.broken("an empty frame among messages");
            }
            Arrived::Nothing => {}
            Arrived::End => return shared.broken("the other end's feedback ended before the copy"),
            Arrived::Frame => {
                let header = frame.header()?;
                if header.kind != FrameKind::Feedback {
                    return shared.broken("an invalid feedback frame");
                }
                take(shared, frame.payload())?;
            }
        }
    }
    shared.halt.outcome()
}

/// What the messages of one frame add up to.
#[derive(Default)]
struct Taken {
    wanted: Vec<Arc<Sending>>,
    is_window_moved: bool,
}

fn take(shared: &Shared, payload: &[u8]) -> Result<(), Failure> {
    let mut taken = Taken::default();
    let mut is_over = false;
    for message in message::messages::<Feedback>(payload)? {
        if is_over {
            return shared.broken("feedback after the last message");
        }
        is_over = matches!(message, Feedback::Finished { .. });
        shared.hear(message, &mut taken)?;
    }
    shared.supply.add(taken.wanted);
    if taken.is_window_moved {
        shared.outbox.ring();
    }
    Ok(())
}

impl Shared {
    fn hear(&self, message: Feedback, taken: &mut Taken) -> Result<(), Failure> {
        if !matches!(message, Feedback::Ready { .. }) && !self.table.is_ready() {
            return self.broken("feedback before the other end was ready");
        }
        match message {
            Feedback::Ready { fresh } => self.ready(fresh, taken),
            Feedback::Answers { first, wants } => {
                for (place, wants) in (0_u64..).zip(wants) {
                    let Some(number) = first.checked_add(place) else {
                        return self.broken("an answer for an impossible entry number");
                    };
                    self.answer(number, wants, taken)?;
                }
                Ok(())
            }
            Feedback::Whole { file } => match self.live(file)? {
                Some(file) => {
                    self.has_arrived(&file);
                    Ok(())
                }
                None => Ok(()),
            },
            Feedback::Done { file, hash } => self.done(file, hash, taken),
            Feedback::Failed { file, reason } => {
                if let Some(file) = self.live(file)? {
                    self.settle_as(&file, FileStatus::Failed, Some(&reason), None, taken);
                }
                Ok(())
            }
            Feedback::Again { file, offset, bytes } => self.again_chunk(file, offset, bytes),
            Feedback::Unopened { stream, record } => self.unopened(stream, record),
            Feedback::OutOfStep { stream, record } => self.out_of_step(stream, record),
            Feedback::Apart { file } => self.apart(file),
            Feedback::Deleted { path } => self.deleted(&path),
            Feedback::Finished { problems } => self.finished(problems),
        }
    }

    fn ready(&self, is_fresh: bool, taken: &mut Taken) -> Result<(), Failure> {
        debug!(is_empty = is_fresh, "destination is ready");
        match self.table.ready(is_fresh && asks_nothing(&self.spec)) {
            None => self.broken("the other end said READY twice"),
            Some(files) => {
                taken
                    .wanted
                    .extend(files.into_iter().filter(|file| self.want(file)));
                Ok(())
            }
        }
    }

    /// The entry of this number, unless it is settled already.
    fn live(&self, number: u64) -> Result<Option<Arc<Sending>>, Failure> {
        match self.table.find(number) {
            Known::Live(file) => Ok(Some(file)),
            Known::Settled => Ok(None),
            Known::Never => self.broken(format!("feedback for entry {number}, which was not announced")),
        }
    }

    fn answer(&self, number: u64, wants: Wants, taken: &mut Taken) -> Result<(), Failure> {
        let Some(file) = self.live(number)? else {
            return Ok(());
        };
        if !self.is_first_answer(&file, taken) {
            return Ok(());
        }
        let has_content = file.has_content();
        match wants {
            Wants::All | Wants::Rest(_) if !has_content => {
                self.broken(format!("content requested for entry {number}, which has none"))
            }
            Wants::All | Wants::Rest(_) if self.spec.dry_run => {
                self.settle_as(&file, FileStatus::WouldCopy, None, None, taken);
                Ok(())
            }
            Wants::All => self.wanted(&file, &[], taken),
            Wants::Rest(parts) => self.wanted(&file, &parts, taken),
            Wants::Present(hash) => {
                self.gauges.spared_bytes.add(file.found.bytes());
                self.settle_as(&file, FileStatus::Present, None, hash, taken);
                Ok(())
            }
            Wants::Updated(hash) => {
                self.gauges.spared_bytes.add(file.found.bytes());
                let status = match self.spec.dry_run {
                    true => FileStatus::WouldUpdate,
                    false => FileStatus::Updated,
                };
                self.settle_as(&file, status, None, hash, taken);
                Ok(())
            }
            Wants::Made if has_content && file.found.bytes() > 0 && !self.spec.dry_run => {
                self.broken(format!("entry {number} was completed without its content"))
            }
            Wants::Made => {
                let status = if self.spec.dry_run {
                    FileStatus::WouldCopy
                } else {
                    FileStatus::Copied
                };
                let is_made = has_content && !self.spec.dry_run;
                let hash = self.sum.filter(|_| is_made).map(|kind| content_sum(kind, &[]));
                self.settle_as(&file, status, None, hash, taken);
                Ok(())
            }
            Wants::LeftOut(reason) => {
                self.settle_as(&file, FileStatus::Skipped, Some(&reason), None, taken);
                Ok(())
            }
            Wants::Refused(reason) => {
                self.settle_as(&file, FileStatus::Failed, Some(&reason), None, taken);
                Ok(())
            }
        }
    }

    /// Notes that the other end has spoken of this entry; false if it had before, or the entry is settled meanwhile.
    fn is_first_answer(&self, file: &Sending, taken: &mut Taken) -> bool {
        let mut state = file.lock();
        let is_first = state.phase != Phase::Over && !std::mem::replace(&mut state.is_answered, true);
        drop(state);
        if is_first {
            self.pulse.beat();
            self.table.answered();
            taken.is_window_moved = true;
        }
        is_first
    }

    fn wanted(&self, file: &Arc<Sending>, parts: &[Proved], taken: &mut Taken) -> Result<(), Failure> {
        if !self.want(file) {
            // It was wanted without asking. Where something has come to the destination since, it goes whole all the same.
            return match parts {
                [] => Ok(()),
                _ if !self.table.is_fresh() => Ok(()),
                _ => self.broken("verified parts reported for a destination that was empty"),
            };
        }
        let is_all_spared = {
            let mut state = file.lock();
            let State {
                chunks,
                resumed_bytes,
                ..
            } = &mut *state;
            match chunks {
                Some(chunks) if !parts.is_empty() => match chunks.spare(parts, file.found.bytes()) {
                    Some(bytes) => {
                        *resumed_bytes = bytes;
                        self.gauges.spared_bytes.add(bytes);
                        chunks.is_read()
                    }
                    None => return self.broken("impossible verified parts of a file"),
                },
                // A file that goes in a pack goes whole.
                _ => false,
            }
        };
        let resumed = file.lock().resumed_bytes;
        debug!(entry = %Shown(&file.found.path), number = file.number, trusted_bytes = resumed, "entry wanted");
        self.credit(file, resumed);
        if is_all_spared {
            self.all_of_it_read(file);
        } else {
            taken.wanted.push(Arc::clone(file));
        }
        Ok(())
    }

    fn done(&self, number: u64, hash: Option<Sum>, taken: &mut Taken) -> Result<(), Failure> {
        let Some(file) = self.live(number)? else {
            return Ok(());
        };
        let (phase, own) = {
            let state = file.lock();
            (state.phase, state.hash)
        };
        let needs_content = file.has_content() && file.found.bytes() > 0;
        if needs_content && phase != Phase::Read {
            return match phase {
                Phase::Over => Ok(()),
                _ => self.broken(format!("entry {number} was reported done before it was sent")),
            };
        }
        match (own, hash) {
            (Some(own), Some(other)) if own != other => {
                let reason = "the two ends do not agree on its hash";
                self.settle_as(&file, FileStatus::Failed, Some(reason), None, taken);
            }
            _ => self.settle_as(&file, FileStatus::Copied, None, hash, taken),
        }
        Ok(())
    }

    /// The entry is what the other end says, unless it was settled before.
    fn settle_as(
        &self,
        file: &Arc<Sending>,
        status: FileStatus,
        reason: Option<&str>,
        hash: Option<Sum>,
        taken: &mut Taken,
    ) {
        self.is_first_answer(file, taken);
        let was_unread = {
            let mut state = file.lock();
            if state.phase == Phase::Over {
                return;
            }
            state.phase = Phase::Over;
            state.take_unread()
        };
        self.pulse.beat();
        if !self.supply.is_small(file.found.bytes()) {
            self.supply.handed_out(file);
        }
        self.settled(file, status, reason, hash);
        self.table.remove(file.number);
        taken.is_window_moved = true;
        self.all_read(usize::from(was_unread));
    }

    fn again_chunk(&self, number: u64, offset: u64, bytes: u64) -> Result<(), Failure> {
        let Some(file) = self.live(number)? else {
            return Ok(());
        };
        debug!(entry = %Shown(&file.found.path), offset, bytes, "chunk wanted again");
        let is_small = self.supply.is_small(file.found.bytes());
        let file_bytes = file.found.bytes();
        let came_so = match is_small {
            true => (offset, bytes) == (0, file_bytes),
            false => is_chunk(offset, bytes, file_bytes, self.chunk_bytes),
        };
        if !file.has_content() || !came_so {
            return self.broken(format!(
                "entry {number} has no chunk of {bytes} bytes at {offset}"
            ));
        }
        let is_often = match file.lock() {
            mut state if state.phase != Phase::Over => !state.may_repeat(offset),
            _ => return Ok(()),
        };
        if is_often {
            let reason = format!("its chunk at {offset} arrived corrupted repeatedly");
            self.lost(&file, &Trouble::Beyond(reason));
            return Ok(());
        }
        if !self.repeat(&file, offset, bytes) {
            return self.broken(format!("entry {number} requested again before it was sent"));
        }
        self.count_repeated()
    }

    /// One chunk or pack more was asked for again.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for one too many.
    pub(super) fn count_repeated(&self) -> Result<(), Failure> {
        if self.repeated_chunks.fetch_add(1, Ordering::Relaxed) == MOST_REPEATED_CHUNKS {
            return self.broken(format!(
                "more than {MOST_REPEATED_CHUNKS} chunks reported corrupted"
            ));
        }
        Ok(())
    }

    /// Reads and sends `bytes` bytes of `file` at `offset` once more, all of a small one; false if it was not sent before.
    pub(super) fn repeat(&self, file: &Arc<Sending>, offset: u64, bytes: u64) -> bool {
        let is_small = self.supply.is_small(file.found.bytes());
        {
            let mut state = file.lock();
            match state.phase {
                Phase::Over => return true,
                Phase::Announced => return false,
                Phase::Wanted | Phase::Read => {}
            }
            let was_read = state.phase == Phase::Read;
            state.phase = Phase::Wanted;
            if let Some(chunks) = &mut state.chunks {
                chunks.repeat(offset, bytes);
            }
            if was_read {
                state.is_unread = self.table.unread_again();
            }
            let bytes = if is_small {
                0
            } else {
                bytes.min(state.credited_bytes)
            };
            state.credited_bytes -= bytes;
            self.gauges.settled_bytes.take(bytes);
        }
        self.supply.add_again(Arc::clone(file));
        true
    }

    /// The file that this is one more name of could not be copied: the name comes by itself, if it may still be announced.
    fn apart(&self, number: u64) -> Result<(), Failure> {
        let Some(file) = self.live(number)? else {
            return Ok(());
        };
        if file.link_to.is_none() {
            return self.broken(format!("entry {number} is not a hard link"));
        }
        let may_come = {
            let mut state = file.lock();
            if state.phase == Phase::Over {
                return Ok(());
            }
            state.phase = Phase::Over;
            state.is_unread && file.found.tries < MOST_TRIES
        };
        match may_come {
            true => self.second_looks.add(&file),
            false => self.give_up(&file, "it is a hard link to a file that could not be copied"),
        }
        Ok(())
    }

    fn deleted(&self, path: &[u8]) -> Result<(), Failure> {
        let count = self.deleted.fetch_add(1, Ordering::Relaxed) + 1;
        self.request.check_deleted(path, count)?;
        self.pulse.beat();
        let is_dry = self.spec.dry_run;
        self.note(&ReceiptLine {
            path: to_text(path),
            kind: FileKind::Other,
            status: if is_dry {
                FileStatus::WouldDelete
            } else {
                FileStatus::Deleted
            },
            bytes: 0,
            resumed_bytes: 0,
            blake3: None,
            xxh3_tree: None,
            hash: None,
            reason: None,
        });
        Ok(())
    }

    fn finished(&self, problems: Vec<String>) -> Result<(), Failure> {
        debug!(problems = problems.len(), "the other end has finished");
        match self.table.unsettled_at_end() {
            None => return self.broken("the other end finished before it had all names"),
            Some(0) => {}
            Some(left) => {
                return self.broken(format!(
                    "the other end finished with {} outstanding",
                    counted(left, "name")
                ));
            }
        }
        let own = self.remove_sources();
        for problem in problems.into_iter().take(MOST_PROBLEMS).chain(own) {
            self.gauges.failed_files.add(1);
            self.receipt
                .problem(&self.spec.destination, &one_line(&problem))?;
        }
        self.end();
        Ok(())
    }
}
