//! What has a name that something of another kind is to get: when it makes way, and how.
//!
//! As rsync has it: what is no folder is replaced, an empty folder too; a folder with something in it only under `--force`.
//! Nothing of it is opened: a pipe would wait for a writer, a device is nobody's content.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use farline_proto::copy::receiver::{Verdict, replacement};
use farline_spec::{FileKind as Kind, Overwrite, SyncLevel};
use farline_sys::file::{self, FileFacts, OpenFlags};

use super::owner_rights;
use super::place::{Folders, word};
use super::plan::{Mode, Plan};
use super::remembered::Remembered;
use super::run::Run;
use super::site::Destination;
use super::tree::{self, Names};
use super::words::{POISONED, Problems, in_words};
use crate::source::filter::Filters;

/// What is done with what has a name that is to be another's.
#[derive(Debug)]
pub struct Way {
    plan: Arc<Plan>,
    destination: Arc<Destination>,
    names: Arc<Remembered>,
    problems: Arc<Problems>,
    /// What was in folders that made way for files, or would.
    displaced: Mutex<Names>,
    run: Arc<Run>,
}

impl Way {
    /// Nothing has made way yet.
    pub fn new(
        destination: &Arc<Destination>,
        names: &Arc<Remembered>,
        problems: &Arc<Problems>,
        run: &Arc<Run>,
    ) -> Self {
        Self {
            plan: Arc::clone(&destination.plan),
            destination: Arc::clone(destination),
            names: Arc::clone(names),
            problems: Arc::clone(problems),
            displaced: Mutex::default(),
            run: Arc::clone(run),
        }
    }

    /// Whether something different may be replaced ([`replacement`]).
    pub fn replacement(&self, difference: String, facts: &FileFacts, mtime_ns: Option<i64>) -> Verdict {
        replacement(self.plan.spec.overwrite, difference, facts.mtime_ns, mtime_ns)
    }

    /// Whether the folder at `path` makes way for a file or a link.
    ///
    /// # Errors
    /// The kernel's.
    pub fn folder_in_the_way(&self, folders: &mut Folders, path: &[u8]) -> io::Result<Verdict> {
        let refused = |reason: &str| Ok(Verdict::Refused(reason.to_owned()));
        if self.plan.spec.sync_level == SyncLevel::Exists {
            return Ok(Verdict::Present(None));
        }
        if self.plan.spec.overwrite == Overwrite::Never {
            return refused(
                "a folder has this name at the destination; --overwrite different replaces it if it is empty",
            );
        }
        let below = self.tree_below(folders.base(), path, path)?;
        if below.len() == 1 {
            return Ok(Verdict::Make(true));
        }
        if !self.plan.spec.force {
            return refused(
                "a non-empty folder has this name at the destination; --force deletes it with its contents",
            );
        }
        let filters =
            Filters::new(&self.plan.spec.filters).map_err(|failure| io::Error::other(failure.message))?;
        let is_left = |(path, kind): &(Vec<u8>, Kind)| !filters.takes(path, *kind == Kind::Folder);
        if below.iter().any(is_left) {
            return refused(
                "a folder has this name at the destination, and a filter protects something in it",
            );
        }
        if self.plan.mode == Mode::Dry {
            self.names.protect(path);
            self.displaced.lock().expect(POISONED).extend(below);
        }
        Ok(Verdict::Make(true))
    }

    /// Whether what is no folder makes way for one.
    pub fn in_the_way_of_folder(&self, facts: &FileFacts, leads_to_folder: bool) -> Verdict {
        let what = word(facts.kind);
        let may =
            self.plan.spec.overwrite != Overwrite::Never && self.plan.spec.sync_level != SyncLevel::Exists;
        match (may, leads_to_folder) {
            (true, _) => Verdict::Make(true),
            (false, true) => Verdict::Refused(
                "a symbolic link to a folder has this name at the destination; -K copies into that folder, \
                 --overwrite different replaces the link"
                    .to_owned(),
            ),
            (false, false) => Verdict::Refused(format!(
                "{what} has this name at the destination; --overwrite different replaces it"
            )),
        }
    }

    /// Gives what is called `new` in the staging folder its name, in the place of what has it: a folder that was decided
    /// about makes way first.
    ///
    /// # Errors
    /// The kernel's; what has the name keeps it then.
    pub fn put_in_place(
        &self,
        new: &[u8],
        folder: BorrowedFd<'_>,
        name: &[u8],
        path: &[u8],
    ) -> io::Result<()> {
        let staging = &self.destination.site().kept().staging;
        let put = || file::rename(staging.fd(), new, folder, name, true);
        match put() {
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {}
            put => return put,
        }
        match file::remove_folder(folder, name) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty && self.plan.spec.force => {}
            removed => return removed.and_then(|()| put()),
        }
        let aside = staging.new_name();
        let opened = file::open_without_links(folder, name, OpenFlags::READ | OpenFlags::FOLDER, 0)?;
        let bits = file::stat_fd(opened.as_fd())?.mode;
        tree::check_removable(folder, name, &self.tree_below(folder, name, path)?)?;
        // Its own bits may forbid to move it: its `..` changes.
        match owner_rights::granted(&opened, || {
            file::rename(folder, name, staging.fd(), &aside, false)
        }) {
            // A folder of a lower layer of an overlay cannot be moved.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.remove_below(folder, name, path)?;
                return put();
            }
            moved => moved?,
        }
        if let Err(error) = put() {
            file::rename(staging.fd(), &aside, folder, name, false)?;
            owner_rights::withdraw(opened.as_fd(), bits)?;
            return Err(error);
        }
        if let Err(error) = self.remove_below(staging.fd(), &aside, path) {
            let what = format!(
                "deleting the contents of the folder with its name: {}",
                in_words(&error)
            );
            self.problems.add(path, &what);
        }
        Ok(())
    }

    /// Deletes the folder `at` below `from`, which made way for the name `path`, with all that is in it.
    fn remove_below(&self, from: BorrowedFd<'_>, at: &[u8], path: &[u8]) -> io::Result<()> {
        let names = self.tree_below(from, at, path)?;
        let mut left = names.clone();
        let removed = tree::remove(from, at, &mut left);
        let gone = &names[left.len()..];
        self.displaced.lock().expect(POISONED).extend_from_slice(gone);
        removed.map_err(|error| {
            let line = format!(
                "{}, after {} of the {} names in the folder were deleted",
                in_words(&error),
                gone.len(),
                names.len()
            );
            io::Error::new(error.kind(), line)
        })
    }

    fn tree_below(&self, from: BorrowedFd<'_>, at: &[u8], path: &[u8]) -> io::Result<Names> {
        tree::below(from, at, path, || self.run.beat())
    }

    /// What folders that made way took with them, or would.
    pub fn take_displaced(&self) -> Names {
        std::mem::take(&mut *self.displaced.lock().expect(POISONED))
    }
}
