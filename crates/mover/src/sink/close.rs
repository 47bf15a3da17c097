//! The threads that do what is not writing, and what comes when every entry is settled.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use farline_spec::{Attribute, Failure};
use tracing::debug;

use super::entry::End;
use super::finalize_queue::Work;
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
        while let Some(work) = self.works.next() {
            if folders.is_none() && self.site.get().is_some() {
                folders = self.folders_of(namer);
            }
            let worked = self.do_one(&mut folders, work);
            self.works.did();
            worked?;
        }
        Ok(())
    }

    fn do_one(&self, folders: &mut Option<Folders>, work: Work) -> Result<(), Failure> {
        match work {
            Work::Finish(batch) => self.finish_large(folders, batch),
            Work::Hole(entry, offset, bytes) => self.hole(&entry, offset, bytes),
            Work::Link(entry) => self.make_further_name(folders, &entry),
            Work::Group(files) => match folders {
                Some(folders) => self.finish_group(folders, files),
                None => Ok(()),
            },
            Work::Close => self.close(folders.as_ref()),
        }
    }

    /// Every entry is settled: deletion, times of folders, names to the device, the staging folder away.
    fn close(&self, folders: Option<&Folders>) -> Result<(), Failure> {
        let Some(end) = self.table.said_end() else {
            return Ok(());
        };
        let mut problems = self.problems();
        if let (Some(folders), Some(site)) = (folders, self.site.get()) {
            self.say_displaced()?;
            problems.extend(self.delete(folders, end)?);
            if self.mode == Mode::Real {
                problems.extend(self.finish_folders(folders)?);
            }
            if self.durable {
                // Nothing proves a file any more once the journal is gone.
                self.sync_all(Some(folders))?;
            }
            if self.mode == Mode::Real {
                problems.extend(self.end_staging(site, end)?);
                problems.extend(self.finish_top(site));
            }
        }
        self.tell_end(problems.len());
        // Said to the other end too: either may be the one that asked for the copy.
        self.note_problems(&problems)?;
        self.finished.store(true, Ordering::Release);
        self.over.tell();
        self.outbox.finish(problems);
        self.works.stop();
        Ok(())
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
    fn end_staging(&self, site: &Destination, end: End) -> Result<Option<String>, Failure> {
        let kept = site.kept();
        let is_wanted = !end.whole && !kept.left.lock().expect(POISONED).is_empty();
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
        let works = self.works.is_busy();
        if works {
            self.pulse.beat();
        }
        works
    }
}
