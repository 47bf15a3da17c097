//! Deletion of what the destination has and the sources have not: all of it, if it is as many as was said, or nothing.

use std::collections::HashSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use farline_proto::copy::naming::deletion;
use farline_spec::{Failure, FileKind as Kind, FileStatus};
use farline_sys::file::{self, FileKind, OpenFlags};

use super::driver::Machine;
use super::owner_rights;
use super::place::Folders;
use super::plan::{Mode, Plan};
use super::remembered::Remembered;
use super::run::Run;
use super::settle::Ledger;
use super::site::Destination;
use super::tree::kind_of;
use super::way::Way;
use super::words::in_words;
use crate::message::Feedback;
use crate::path_text;
use crate::receipt::line;
use crate::reserved::is_staging;
use crate::root::split;
use crate::source::filter::Filters;

/// Deletions that are said and not yet sent.
const MOST_SAID: usize = 10_000;

/// What the destination has and the sources have not.
#[derive(Debug, Default)]
struct Extraneous {
    /// A folder before what is in it.
    names: Vec<(Vec<u8>, Kind)>,
    /// Folders that keep something that a rule protects.
    kept: HashSet<Vec<u8>>,
}

/// A folder to be looked into.
struct Visit {
    path: Vec<u8>,
    /// Whether the sources have it.
    is_seen: bool,
}

/// Deletes, and says what was deleted.
#[derive(Debug)]
pub struct Deletion {
    plan: Arc<Plan>,
    destination: Arc<Destination>,
    names: Arc<Remembered>,
    way: Arc<Way>,
    ledger: Arc<Ledger>,
    machine: Arc<Machine>,
    run: Arc<Run>,
    /// Names that made way for others.
    displaced: AtomicU64,
}

impl Deletion {
    /// Nothing is deleted yet.
    pub fn new(
        names: &Arc<Remembered>,
        way: &Arc<Way>,
        ledger: &Arc<Ledger>,
        (destination, machine, run): (&Arc<Destination>, &Arc<Machine>, &Arc<Run>),
    ) -> Self {
        Self {
            plan: Arc::clone(&destination.plan),
            destination: Arc::clone(destination),
            names: Arc::clone(names),
            way: Arc::clone(way),
            ledger: Arc::clone(ledger),
            machine: Arc::clone(machine),
            run: Arc::clone(run),
            displaced: AtomicU64::new(0),
        }
    }

    /// Says what folders that made way took with them, or would.
    ///
    /// # Errors
    /// What ended the copy.
    pub fn say_displaced(&self) -> Result<(), Failure> {
        let displaced = self.way.take_displaced();
        self.displaced.store(displaced.len() as u64, Ordering::Relaxed);
        displaced
            .into_iter()
            .try_for_each(|(path, kind)| self.say(path, kind))
    }

    fn say(&self, path: Vec<u8>, kind: Kind) -> Result<(), Failure> {
        let status = match self.plan.mode {
            Mode::Real => FileStatus::Deleted,
            Mode::Dry | Mode::Nothing => FileStatus::WouldDelete,
        };
        self.ledger.receipt.settle(&line(&path, kind, status, 0))?;
        self.machine.wait_for_room(MOST_SAID, || self.run.check())?;
        self.machine
            .with(|machine| machine.say(Feedback::Deleted { path }));
        Ok(())
    }

    /// Deletes, or says what would be deleted; what stood in the way, a line each.
    ///
    /// # Errors
    /// What ended the copy.
    pub fn delete(&self, folders: &Folders, whole: bool) -> Result<Vec<String>, Failure> {
        let Some(wanted) = self.plan.spec.delete else {
            return Ok(Vec::new());
        };
        if self.destination.site().single.is_some() {
            return Ok(Vec::new());
        }
        if !whole {
            let line = "nothing was deleted: some of the sources could not be read";
            return Ok(vec![line.to_owned()]);
        }
        let found = match self.extraneous(folders)? {
            Ok(found) => found,
            Err(error) => return Ok(vec![format!("nothing was deleted: {}", in_words(&error))]),
        };
        // What made way is gone already, and is among what a dry run counts.
        let displaced = self.displaced.load(Ordering::Relaxed);
        let count = displaced + found.names.len() as u64;
        match deletion(
            count,
            wanted,
            self.plan.spec.max_delete,
            self.plan.mode == Mode::Real,
        ) {
            Ok(()) => self.remove_all(folders, &found),
            Err(reason) if displaced > 0 => Ok(vec![reason.replacen(
                "nothing was",
                "only what --force replaced was",
                1,
            )]),
            Err(reason) => Ok(vec![reason]),
        }
    }

    fn remove_all(&self, folders: &Folders, found: &Extraneous) -> Result<Vec<String>, Failure> {
        let mut problems = Vec::new();
        let is_folder = |kind: Kind| kind == Kind::Folder;
        let gone = found.names.iter().filter(|(_, kind)| is_folder(*kind));
        let gone: HashSet<&[u8]> = gone.map(|(path, _)| path.as_slice()).collect();
        for (path, kind) in found.names.iter().rev() {
            self.run.check()?;
            self.run.beat();
            if self.plan.mode == Mode::Real
                && let Err(error) = remove(folders, path, *kind, gone.contains(split(path).0))
            {
                let path = path_text::to_text(path);
                problems.push(format!("{path} was not deleted: {}", in_words(&error)));
                continue;
            }
            self.say(path.clone(), *kind)?;
        }
        Ok(problems)
    }

    /// Whether a path is one with a path of the sources at this destination.
    fn is_one_with_seen(&self, path: &[u8]) -> bool {
        let key = self.destination.site().fold.key(path);
        key.is_some_and(|key| self.names.seen().has_folded(&key))
    }

    fn extraneous(&self, folders: &Folders) -> Result<io::Result<Extraneous>, Failure> {
        let filters = Filters::new(&self.plan.spec.filters)?;
        let mut found = Extraneous::default();
        let mut visits = vec![Visit {
            path: Vec::new(),
            is_seen: self.plan.spec.sources.iter().any(|source| means_content(source)),
        }];
        while let Some(visit) = visits.pop() {
            self.run.check()?;
            self.run.beat();
            if let Err(error) = self.look_into(folders, &visit, &filters, &mut found, &mut visits) {
                return Ok(Err(error));
            }
        }
        let Extraneous { mut names, kept } = found;
        names.retain(|(path, _)| !kept.contains(path));
        Ok(Ok(Extraneous { names, kept }))
    }

    fn look_into(
        &self,
        folders: &Folders,
        visit: &Visit,
        filters: &Filters,
        found: &mut Extraneous,
        visits: &mut Vec<Visit>,
    ) -> io::Result<()> {
        let folder = folders.open(
            &visit.path,
            OpenFlags::READ | OpenFlags::FOLDER | OpenFlags::NO_FOLLOW,
        )?;
        let is_top = visit.path.is_empty();
        let mut taken = HashSet::new();
        for listed in file::list(folder.as_fd())? {
            let listed = listed?;
            // Below a folder of the sources it is that of another copy, which may be under way.
            if is_staging(&listed.name) && (is_top || visit.is_seen) {
                continue;
            }
            let mut path = visit.path.clone();
            if !is_top {
                path.push(b'/');
            }
            path.extend_from_slice(&listed.name);
            let kind = listed.kind_in(folder.as_fd())?;
            let is_folder = kind == FileKind::Folder;
            let is_said = self.names.seen().has(&path);
            let is_seen = is_said || self.is_one_with_seen(&path);
            // What is beside the sources in the destination is none of this copy's business.
            if !is_seen && is_top && !visit.is_seen {
                continue;
            }
            if !filters.takes(&path, is_folder) || self.names.seen().is_kept(&path) {
                found.keep_above(&path);
                continue;
            }
            if is_seen && !visit.is_seen {
                found.keep_above(&path);
            }
            // Some file systems list a name again while their folder changes.
            if (is_folder || !is_seen) && !taken.insert(listed.name) {
                continue;
            }
            if !is_seen {
                found.names.push((path.clone(), kind_of(kind)));
            }
            if is_folder {
                visits.push(Visit { path, is_seen });
            }
        }
        Ok(())
    }
}

impl Extraneous {
    fn keep_above(&mut self, path: &[u8]) {
        let mut path = path;
        while !path.is_empty() {
            path = split(path).0;
            if !self.kept.insert(path.to_vec()) {
                return;
            }
        }
    }
}

/// Removes one name; from a folder that goes, too, even if its bits forbid its owner to write.
fn remove(folders: &Folders, path: &[u8], kind: Kind, from_gone: bool) -> io::Result<()> {
    let (parent, name) = split(path);
    let parent = folders.open(parent, OpenFlags::READ | OpenFlags::FOLDER)?;
    let remove = || match kind {
        Kind::Folder => file::remove_folder(parent.as_fd(), name),
        _ => file::unlink(parent.as_fd(), name),
    };
    match from_gone {
        true => owner_rights::granted(&parent, remove),
        false => remove(),
    }
}

/// Whether a source stands for what is in it.
fn means_content(source: &str) -> bool {
    matches!(source.rsplit('/').next(), Some("" | "." | ".."))
}
