//! The threads that do what is not writing, and what comes when every entry is settled.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use farline_proto::copy::naming::{Last, closing, closing_part};
use farline_proto::copy::receiver::Action;
use farline_spec::{Attribute, Failure};
use farline_sys::file::OpenFlags;
use tracing::debug;

use super::attributes::FOLDER_BITS;
use super::delete::Deletion;
use super::driver::Machine;
use super::entry::Entry;
use super::finalizer::Finalizer;
use super::owner::Belongs;
use super::owner_rights::{self, OWNER};
use super::place::Folders;
use super::plan::{Mode, Plan};
use super::remembered::Remembered;
use super::run::Run;
use super::settle::Ledger;
use super::site::{Destination, Site};
use super::staging;
use super::staging_top::hand_bits_on;
use super::words::{POISONED, Problems, in_words};
use crate::Gauges;

/// The threads that give names, and what the last of them does.
#[derive(Debug)]
pub struct Closer {
    pub plan: Arc<Plan>,
    pub destination: Arc<Destination>,
    pub names: Arc<Remembered>,
    pub problems: Arc<Problems>,
    pub deletion: Deletion,
    pub finalizer: Arc<Finalizer>,
    pub ledger: Arc<Ledger>,
    pub machine: Arc<Machine>,
    pub run: Arc<Run>,
    pub gauges: Arc<Gauges>,
}

impl Closer {
    /// Does what is to be done until there is nothing more. On a thread of its own, one of those numbered from 0.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn work(&self, namer: usize) -> Result<(), Failure> {
        let mut folders = None;
        while let Some(action) = self.machine.next_action() {
            if folders.is_none() && self.destination.site_if_any().is_some() {
                folders = self.destination.folders_of(namer);
            }
            let worked = self.do_one(&mut folders, action);
            self.machine.with(|machine| machine.did());
            worked?;
        }
        Ok(())
    }

    fn do_one(&self, folders: &mut Option<Folders>, action: Action<Arc<Entry>>) -> Result<(), Failure> {
        match action {
            Action::GiveUp(entry, reason) => self.ledger.failed(&entry, reason),
            Action::Link(entry) => self.finalizer.make_further_name(folders, &entry),
            Action::Finish(batch) => self.finalizer.finish_large(folders, batch),
            Action::Group(files) => match folders {
                Some(folders) => self.finalizer.finish_group(folders, &files),
                None => Ok(()),
            },
            Action::Hole(entry, offset, bytes) => self.finalizer.hole(&entry, offset, bytes),
            Action::Close { whole } => self.close(folders.as_ref(), whole),
        }
    }

    /// Every entry is settled; `whole` if the sending end could read all of its sources.
    fn close(&self, folders: Option<&Folders>, whole: bool) -> Result<(), Failure> {
        let mut problems = self.problems.take();
        if let (Some(folders), Some(site)) = (folders, self.destination.site_if_any()) {
            for last in self.lasts() {
                match last {
                    Last::SayDisplaced => self.deletion.say_displaced()?,
                    Last::Delete => problems.extend(self.deletion.delete(folders, whole)?),
                    Last::Folders => problems.extend(self.finish_folders(folders)?),
                    Last::Sync => self.finalizer.sync_all(Some(folders))?,
                    Last::EndStaging => problems.extend(self.end_staging(site, whole)?),
                    Last::KeepStaging => keep_staging(site)?,
                    Last::Top => {
                        problems.extend(self.finish_top(site));
                        problems.extend(close_top(site));
                    }
                }
            }
        }
        self.tell_end(problems.len());
        // Said to the other end too: either may be the one that asked for the copy.
        self.ledger.note_problems(&problems)?;
        self.run.finish();
        self.machine.with(|machine| machine.finish(problems));
        self.machine.stop();
        Ok(())
    }

    fn lasts(&self) -> Vec<Last> {
        let is_part = self
            .plan
            .spec
            .share
            .as_ref()
            .is_some_and(|share| share.part.is_some());
        match is_part && self.plan.mode == Mode::Real {
            true => closing_part(self.plan.durable).collect(),
            false => closing(self.plan.mode == Mode::Real, self.plan.durable).collect(),
        }
    }

    fn tell_end(&self, problems: usize) {
        let gauges = &self.gauges;
        debug!(
            settled_files = gauges.settled_files.get(),
            settled_bytes = gauges.settled_bytes.get(),
            failed_files = gauges.failed_files.get(),
            moved_bytes = gauges.moved_bytes.get(),
            spared_bytes = gauges.spared_bytes.get(),
            problems,
            "receiving end has settled every entry"
        );
    }

    /// Removes what is kept beside the files, unless a file that could not be looked at now may go on from it.
    fn end_staging(&self, site: &Site, whole: bool) -> Result<Option<String>, Failure> {
        let kept = site.kept();
        let is_wanted = !whole && !kept.left.lock().expect(POISONED).is_empty();
        let Some(base) = site.base.as_ref().filter(|_| !is_wanted) else {
            kept.journal.close();
            return kept.journal.flush().map(|()| None);
        };
        kept.journal.forget();
        let ended = kept.staging.end(base.as_fd()).map(|bits| {
            if let Some(bits) = bits.filter(|_| self.is_to_be_closed()) {
                let _ = site.closed_bits.set(bits);
            }
        });
        if let Err(error) = &ended
            && staging::stays(error)
        {
            let how = format!("{} stays: {}", kept.staging.shown_name(), in_words(error));
            self.destination.losses.lose(Attribute::Staging, &how, 1);
            return Ok(None);
        }
        Ok(ended.err().map(|error| {
            format!(
                "staging folder {}: {}",
                kept.staging.shown_name(),
                in_words(&error)
            )
        }))
    }

    /// Gives folders their permission bits and times, what is in a folder before it. Problems, a line each.
    ///
    /// # Errors
    /// That the copy is over.
    pub fn finish_folders(&self, folders: &Folders) -> Result<Vec<String>, Failure> {
        let mut problems = Vec::new();
        let next = || self.names.seen().pop_folder();
        while let Some(late) = next() {
            self.run.check()?;
            self.run.beat();
            let finished = folders
                .open(&late.path, OpenFlags::READ | OpenFlags::FOLDER)
                .and_then(|folder| {
                    Belongs::of_ids(late.owner).give(folder.as_fd())?;
                    self.finish_folder(folder.as_fd(), self.plan.spec.modes, late.mode, late.mtime_ns)
                });
            if let Err(error) = finished {
                let path = crate::path_text::to_text(&late.path);
                let reason = in_words(&error);
                problems.push(format!("{path}: times and modes of the folder: {reason}"));
            }
        }
        Ok(problems)
    }

    /// The same for the destination folder itself, last of all. Permission bits only where this copy made it: it may be
    /// anybody's home, or /tmp.
    pub fn finish_top(&self, site: &Site) -> Option<String> {
        let (top, base) = (self.destination.top.get()?, site.base.as_ref()?);
        let with_mode = self.plan.spec.modes && site.is_new;
        // It is closed by the last copy in it.
        let mode = top.mode | OWNER;
        let belongs = self.destination.top_owner.get().copied().filter(|_| site.is_new);
        belongs
            .map_or(Ok(()), |belongs| belongs.give(base.as_fd()))
            .and_then(|()| self.finish_folder(base.as_fd(), with_mode, mode, top.mtime_ns))
            .err()
            .map(|error| format!("times and modes of the folder: {}", in_words(&error)))
    }

    /// Whether the destination folder gets the bits again that it had: not if the source has others since.
    fn is_to_be_closed(&self) -> bool {
        let is_open = |mode| self.plan.spec.modes && !owner_rights::are_incomplete(mode);
        !self.destination.top.get().is_some_and(|top| is_open(top.mode))
    }

    fn finish_folder(
        &self,
        folder: BorrowedFd<'_>,
        with_mode: bool,
        mode: u32,
        mtime_ns: i64,
    ) -> io::Result<()> {
        if with_mode {
            self.destination.keep_mode(folder, mode & FOLDER_BITS)?;
        }
        match self.plan.spec.times {
            true => self.destination.keep_time(folder, mtime_ns),
            false => Ok(()),
        }
    }
}

/// Closes the destination folder for its owner again, if this was the last copy in it; one that has begun just now closes it then.
fn close_top(site: &Site) -> Option<String> {
    let (bits, base) = (*site.closed_bits.get()?, site.base.as_ref()?.as_fd());
    let closed = owner_rights::withdraw(base, bits).and_then(|()| match hand_bits_on(base, bits) {
        true => owner_rights::grant(base).map(drop),
        false => Ok(()),
    });
    closed
        .err()
        .map(|error| format!("modes of the folder: {}", in_words(&error)))
}

/// What this session proved is written down, and stays.
fn keep_staging(site: &Site) -> Result<(), Failure> {
    let journal = &site.kept().journal;
    journal.close();
    journal.flush()
}
