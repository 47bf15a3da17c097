//! The threads that do what is not writing, and what comes when every entry is settled.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use farline_proto::copy::naming::{Last, closing, closing_part};
use farline_proto::copy::receiver::Action;
use farline_spec::{Attribute, Failure};
use tracing::debug;

use super::entry::Entry;
use super::place::Folders;
use super::shared::{Destination, Mode, POISONED, Shared, in_words};
use super::staging;

impl Shared {
    /// Does what is to be done until there is nothing more. On a thread of its own, one of those numbered from 0.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn work(&self, namer: usize) -> Result<(), Failure> {
        let mut folders = None;
        while let Some(action) = self.machine.next_action() {
            if folders.is_none() && self.site.get().is_some() {
                folders = self.folders_of(namer);
            }
            let worked = self.do_one(&mut folders, action);
            self.machine.with(|machine| machine.did());
            worked?;
        }
        Ok(())
    }

    fn do_one(&self, folders: &mut Option<Folders>, action: Action<Arc<Entry>>) -> Result<(), Failure> {
        match action {
            Action::GiveUp(entry, reason) => self.failed(&entry, reason),
            Action::Link(entry) => self.make_further_name(folders, &entry),
            Action::Finish(batch) => self.finish_large(folders, batch),
            Action::Group(files) => match folders {
                Some(folders) => self.finish_group(folders, &files),
                None => Ok(()),
            },
            Action::Hole(entry, offset, bytes) => self.hole(&entry, offset, bytes),
            Action::Close { whole } => self.close(folders.as_ref(), whole),
        }
    }

    /// Every entry is settled; `whole` if the sending end could read all of its sources.
    fn close(&self, folders: Option<&Folders>, whole: bool) -> Result<(), Failure> {
        let mut problems = self.problems();
        if let (Some(folders), Some(site)) = (folders, self.site.get()) {
            for last in self.lasts() {
                match last {
                    Last::SayDisplaced => self.say_displaced()?,
                    Last::Delete => problems.extend(self.delete(folders, whole)?),
                    Last::Folders => problems.extend(self.finish_folders(folders)?),
                    Last::Sync => self.sync_all(Some(folders))?,
                    Last::EndStaging => problems.extend(self.end_staging(site, whole)?),
                    Last::KeepStaging => keep_staging(site)?,
                    Last::Top => problems.extend(self.finish_top(site)),
                }
            }
        }
        self.tell_end(problems.len());
        // Said to the other end too: either may be the one that asked for the copy.
        self.note_problems(&problems)?;
        self.finished.store(true, Ordering::Release);
        self.over.tell();
        self.machine.with(|machine| machine.finish(problems));
        self.machine.stop();
        Ok(())
    }

    fn lasts(&self) -> Vec<Last> {
        let is_part = self.spec.share.as_ref().is_some_and(|share| share.part.is_some());
        match is_part && self.mode == Mode::Real {
            true => closing_part(self.durable).collect(),
            false => closing(self.mode == Mode::Real, self.durable).collect(),
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
    fn end_staging(&self, site: &Destination, whole: bool) -> Result<Option<String>, Failure> {
        let kept = site.kept();
        let is_wanted = !whole && !kept.left.lock().expect(POISONED).is_empty();
        let Some(base) = site.base.as_ref().filter(|_| !is_wanted) else {
            kept.journal.close();
            return kept.journal.flush().map(|()| None);
        };
        kept.journal.forget();
        let ended = kept.staging.end(base.as_fd());
        if let Err(error) = &ended
            && staging::is_not_empty(error)
        {
            let how = format!("{} stays: {}", staging::shown_name(), in_words(error));
            self.lose(Attribute::Staging, &how, 1);
            return Ok(None);
        }
        Ok(ended
            .err()
            .map(|error| format!("staging folder .farline-partial: {}", in_words(&error))))
    }

    /// Whether this end is at work that the other end cannot see; if so, that is no stall.
    pub fn is_at_work(&self) -> bool {
        let works = self.machine.quietly(|machine| machine.is_busy());
        if works {
            self.pulse.beat();
        }
        works
    }
}

/// What this session proved is written down, and stays.
fn keep_staging(site: &Destination) -> Result<(), Failure> {
    let journal = &site.kept().journal;
    journal.close();
    journal.flush()
}
