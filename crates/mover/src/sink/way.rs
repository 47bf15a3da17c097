//! What has a name that something of another kind is to get: when it makes way, and how.
//!
//! As rsync has it: what is no folder is replaced, an empty folder too; a folder with something in it only under `--force`.
//! Nothing of it is opened: a pipe would wait for a writer, a device is nobody's content.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use farline_proto::copy::receiver::replacement;
use farline_spec::{FileKind as Kind, Overwrite, SyncLevel};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::ajar;
use super::decide::Verdict;
use super::place::{Folders, word};
use super::plan::{Mode, Plan};
use super::remembered::Remembered;
use super::run::Run;
use super::site::Destination;
use super::words::{POISONED, Problems, in_words};
use crate::root::split;
use crate::source::filter::Filters;

/// Names of one folder that makes way, at most.
const MOST_NAMES: usize = 1_000_000;

/// Names in a folder and below it, itself first, and what they are.
pub type Names = Vec<(Vec<u8>, Kind)>;

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
        match self.set_aside(folder, name, &aside) {
            // A folder of a lower layer of an overlay cannot be moved.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
                self.remove_below(folder, name, path)?;
                return put();
            }
            moved => moved?,
        }
        if let Err(error) = put() {
            file::rename(staging.fd(), &aside, folder, name, false)?;
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

    /// Moves a folder that makes way into the staging folder. Its own bits may forbid that: its `..` changes.
    fn set_aside(&self, folder: BorrowedFd<'_>, name: &[u8], aside: &[u8]) -> io::Result<()> {
        let moved = file::open_without_links(folder, name, OpenFlags::READ | OpenFlags::FOLDER, 0)?;
        let staging = self.destination.site().kept().staging.fd();
        ajar::opened(moved.as_fd(), || {
            file::rename(folder, name, staging, aside, false)
        })
    }

    /// Deletes the folder `at` below `from`, which made way for the name `path`, with all that is in it.
    fn remove_below(&self, from: BorrowedFd<'_>, at: &[u8], path: &[u8]) -> io::Result<()> {
        let names = self.tree_below(from, at, path)?;
        for (below, kind) in names.iter().rev() {
            let there = [at, &below[path.len()..]].concat();
            let (parent, name) = split(&there);
            let parent = if parent.is_empty() {
                b".".as_slice()
            } else {
                parent
            };
            let parent = file::open_without_links(from, parent, OpenFlags::READ | OpenFlags::FOLDER, 0)?;
            let remove = || match kind {
                Kind::Folder => file::remove_folder(parent.as_fd(), name),
                _ => file::unlink(parent.as_fd(), name),
            };
            match below.len() == path.len() {
                true => remove()?,
                false => ajar::opened(parent.as_fd(), remove)?,
            }
        }
        self.displaced.lock().expect(POISONED).extend(names);
        Ok(())
    }

    /// The folder `at` below `from` and all that is in it, as if it were at `path`.
    fn tree_below(&self, from: BorrowedFd<'_>, at: &[u8], path: &[u8]) -> io::Result<Names> {
        let mut names = vec![(path.to_vec(), Kind::Folder)];
        let mut next = 0;
        while let Some((below, kind)) = names.get(next).cloned() {
            next += 1;
            if kind != Kind::Folder {
                continue;
            }
            let place = [at, &below[path.len()..]].concat();
            let folder = file::open_without_links(from, &place, OpenFlags::READ | OpenFlags::FOLDER, 0)?;
            for listed in file::list(folder.as_fd())? {
                let listed = listed?;
                let kind = match listed.kind {
                    Some(kind) => kind,
                    None => file::stat_at(Some(folder.as_fd()), &listed.name, false)?.kind,
                };
                let kind = match kind {
                    FileKind::File => Kind::File,
                    FileKind::Folder => Kind::Folder,
                    FileKind::Link => Kind::Link,
                    FileKind::Other => Kind::Other,
                };
                names.push(([&below[..], b"/", &listed.name].concat(), kind));
                if names.len() > MOST_NAMES {
                    return Err(io::Error::other(
                        "a folder of more than 1000000 names is not replaced",
                    ));
                }
            }
            self.run.beat();
        }
        Ok(names)
    }

    /// What folders that made way took with them, or would.
    pub fn take_displaced(&self) -> Names {
        std::mem::take(&mut *self.displaced.lock().expect(POISONED))
    }
}
