//! What the other end says: what it wants, what it has, what came of it. All of it is taken for what it is: words of
//! somebody else.

use farline_spec::unit::counted;
use farline_spec::{Failure, FileStatus};

use super::super::message::{Feedback, Proved, Wants, is_chunk};
use super::super::sum::{Sum, content_sum};
use super::table::{Event, Stage};
use super::{CopySender, Loss, MOST_TRIES, Outcome, broken};

impl<T: Clone> CopySender<T> {
    /// Takes the next message of the other end.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for what no sound end says.
    pub fn handle_message(&mut self, message: Feedback, now_ns: u64) -> Result<(), Failure> {
        if !matches!(message, Feedback::Ready { .. }) && !self.is_ready {
            return Err(broken("feedback before the other end was ready"));
        }
        match message {
            Feedback::Ready { fresh } => self.ready(fresh),
            Feedback::Answers { first, wants } => {
                for (place, wants) in (0_u64..).zip(wants) {
                    let Some(number) = first.checked_add(place) else {
                        return Err(broken("an answer for an impossible entry number"));
                    };
                    self.answer(number, wants)?;
                }
                Ok(())
            }
            Feedback::Whole { file } => {
                if self.under_way(file)?.is_some() {
                    self.arrived(file);
                }
                Ok(())
            }
            Feedback::Done { file, hash } => self.done(file, hash),
            Feedback::Failed { file, reason } => match self.under_way(file)? {
                Some(_) => self.settle_as(file, Event::Settle, FileStatus::Failed, Some(reason), None),
                None => Ok(()),
            },
            Feedback::Again { file, offset, bytes } => self.again(file, offset, bytes, now_ns),
            Feedback::Unopened { stream, record } => self.unopened(stream, record),
            Feedback::OutOfStep { stream, record } => self.out_of_step(stream, record),
            Feedback::Apart { file } => self.apart(file, now_ns),
            Feedback::Deleted { path } => {
                self.outcomes.push_back(Outcome::Deleted(path));
                Ok(())
            }
            Feedback::Finished { problems } => self.finished(problems),
        }
    }

    fn ready(&mut self, is_fresh: bool) -> Result<(), Failure> {
        if std::mem::replace(&mut self.is_ready, true) {
            return Err(broken("the other end said READY twice"));
        }
        self.is_fresh = is_fresh && self.config.wants_unasked;
        if self.is_fresh {
            let needs_content =
                |(number, entry): (&u64, &super::entry::Entry<T>)| entry.needs_content().then_some(*number);
            let mut wanted: Vec<u64> = self.live.iter().filter_map(needs_content).collect();
            wanted.sort_unstable();
            for file in wanted {
                if self.want(file) {
                    self.add_wanted(file);
                }
            }
        }
        Ok(())
    }

    fn answer(&mut self, number: u64, wants: Wants) -> Result<(), Failure> {
        let Some(entry) = self.under_way(number)? else {
            return Ok(());
        };
        let (has_content, needs_content, bytes) =
            (entry.has_content(), entry.needs_content(), entry.about.bytes);
        if !self.answered(number) {
            return Ok(());
        }
        let is_dry = self.config.is_dry;
        let (status, reason, hash) = match wants {
            Wants::All | Wants::Rest(_) if !has_content => {
                let line = format!("content requested for entry {number}, which has none");
                return Err(broken(line));
            }
            Wants::All | Wants::Rest(_) if is_dry => (FileStatus::WouldCopy, None, None),
            Wants::All => return self.wanted_but(number, &[]),
            Wants::Rest(parts) => return self.wanted_but(number, &parts),
            Wants::Present(hash) => {
                self.progress.spared_bytes += bytes;
                (FileStatus::Present, None, hash)
            }
            Wants::Updated(hash) => {
                self.progress.spared_bytes += bytes;
                let status = match is_dry {
                    true => FileStatus::WouldUpdate,
                    false => FileStatus::Updated,
                };
                (status, None, hash)
            }
            Wants::Made if needs_content && !is_dry => {
                let line = format!("entry {number} was completed without its content");
                return Err(broken(line));
            }
            Wants::Made if is_dry => (FileStatus::WouldCopy, None, None),
            Wants::Made => {
                let sum = self.config.sum.filter(|_| has_content);
                (FileStatus::Copied, None, sum.map(|kind| content_sum(kind, &[])))
            }
            Wants::LeftOut(reason) => (FileStatus::Skipped, Some(reason), None),
            Wants::Refused(reason) => (FileStatus::Failed, Some(reason), None),
        };
        self.settle_as(number, Event::Settle, status, reason, hash)
    }

    /// Content of an entry is wanted, but for these parts.
    fn wanted_but(&mut self, file: u64, parts: &[Proved]) -> Result<(), Failure> {
        if !self.want(file) {
            // It was wanted without asking. Where something has come to the destination since, it goes whole all the same.
            return match parts.is_empty() || !self.is_fresh {
                true => Ok(()),
                false => Err(broken("verified parts reported for a destination that was empty")),
            };
        }
        let Some(entry) = self.live.get_mut(&file) else {
            return Ok(());
        };
        let mut is_all_spared = false;
        // A file that goes in a pack goes whole.
        if let Some(chunks) = entry.chunks.as_mut().filter(|_| !parts.is_empty()) {
            let spared = chunks.spare(parts, entry.about.bytes);
            let resumed = spared.ok_or_else(|| broken("impossible verified parts of a file"))?;
            entry.resumed_bytes = resumed;
            self.progress.spared_bytes += resumed;
            is_all_spared = chunks.is_read();
        }
        let (kept, resumed_bytes) = (entry.kept.clone(), entry.resumed_bytes);
        self.outcomes.push_back(Outcome::Wanted {
            file,
            kept,
            resumed_bytes,
        });
        self.credit(file, resumed_bytes);
        match is_all_spared {
            true => {
                self.all_read(file);
            }
            false => self.add_wanted(file),
        }
        Ok(())
    }

    fn done(&mut self, file: u64, hash: Option<Sum>) -> Result<(), Failure> {
        let Some(entry) = self.under_way(file)? else {
            return Ok(());
        };
        let event = match entry.needs_content() {
            true => Event::Done,
            false => Event::Settle,
        };
        match (entry.hash, hash) {
            (Some(own), Some(other)) if own != other && entry.stage == Stage::Read => {
                let reason = "the two ends do not agree on its hash".to_owned();
                self.settle_as(file, event, FileStatus::Failed, Some(reason), None)
            }
            _ => self.settle_as(file, event, FileStatus::Copied, None, hash),
        }
    }

    fn again(&mut self, file: u64, offset: u64, bytes: u64, now_ns: u64) -> Result<(), Failure> {
        let (chunk_bytes, small_bytes) = (self.config.chunk_bytes, self.queue.small_bytes());
        let Some(entry) = self.under_way(file)? else {
            return Ok(());
        };
        let whole = entry.about.bytes;
        let came_so = match whole <= small_bytes {
            true => (offset, bytes) == (0, whole),
            false => is_chunk(offset, bytes, whole, chunk_bytes),
        };
        if !entry.has_content() || !came_so {
            return Err(broken(format!(
                "entry {file} has no chunk of {bytes} bytes at {offset}"
            )));
        }
        if !entry.may_repeat(offset) {
            let reason = format!("its chunk at {offset} arrived corrupted repeatedly");
            self.lose(file, Loss::For(reason), now_ns);
            return Ok(());
        }
        let kept = entry.kept.clone();
        self.outcomes.push_back(Outcome::Repeated { kept, offset, bytes });
        self.repeat(file, offset, bytes)?;
        self.count_repeated()
    }

    /// The file that this is one more name of could not be copied: the name comes by itself, if it may still be announced.
    fn apart(&mut self, file: u64, now_ns: u64) -> Result<(), Failure> {
        let Some(entry) = self.under_way(file)? else {
            return Ok(());
        };
        if entry.link_to.is_none() {
            return Err(broken(format!("entry {file} is not a hard link")));
        }
        match entry.is_unread && entry.about.tries < MOST_TRIES {
            true => self.lose(file, Loss::Changed, now_ns),
            false => {
                let reason = "it is a hard link to a file that could not be copied".to_owned();
                self.lose(file, Loss::For(reason), now_ns);
            }
        }
        Ok(())
    }

    fn finished(&mut self, problems: Vec<String>) -> Result<(), Failure> {
        if !self.is_end_said {
            return Err(broken("the other end finished before it had all names"));
        }
        let left = self.live.values().filter(|entry| entry.stage.is_under_way());
        match left.count() {
            0 => {
                self.outcomes.push_back(Outcome::Finished(problems));
                Ok(())
            }
            left => Err(broken(format!(
                "the other end finished with {} outstanding",
                counted(left, "name")
            ))),
        }
    }
}
