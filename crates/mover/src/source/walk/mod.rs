//! Finds what is to be copied: a few threads that go through folders, and what they found into a bounded channel.
//!
//! A folder comes before what is in it; names of one folder come in order. One source after the other, so that of two
//! that give one name the first is the first. Nothing is kept of what was found but the folders still to be looked into,
//! a few bytes each.
//!
//! In: the sources, or one source and a list of names in it. Out: [`Found`], and lines of the receipt for what is left out
//! or cannot be read.

mod list;
mod look;
mod names;

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, select};
use farline_spec::{CopySpec, FileKind as Kind, FileStatus};
use farline_sys::file::{self, FileKind, OpenFlags};

use super::driver::Driver;
use super::filter::Filters;
use super::found::Found;
use super::held::{Lengths, Room};
use super::inspector::Inspector;
use super::origin::Sources;
use super::run::{PAUSE, Run};
use crate::Gauges;
use crate::message::VANISHED;
pub(super) use list::List;
use names::Names;

/// Why a folder is left out.
const NOT_RECURSIVE: &str = "is a folder, but the copy is not recursive";
/// Threads that walk: on a file system far away one waits while the other works.
pub(super) const THREADS: usize = 2;
/// Names handed on at a time.
const BATCH_NAMES: usize = 128;
/// Batches that wait for the catalogue: totals are known that far ahead.
pub(super) const BATCHES_AHEAD: usize = 512;
/// Time after which what was found is handed on in any case.
const BATCH_TIME: Duration = Duration::from_millis(5);
/// Names of a folder that are put in order together.
const MOST_SORTED: usize = 200_000;

/// What a walk finds names with, and whom it tells of those that it leaves out.
#[derive(Debug)]
pub(super) struct Ground {
    /// What to copy and how.
    pub(super) spec: Arc<CopySpec>,
    /// Where it goes.
    pub(super) sources: Arc<Sources>,
    /// Which names are taken.
    pub(super) filters: Filters,
    /// What only open files tell.
    pub(super) inspector: Arc<Inspector>,
    /// What is read of a file is what it has.
    pub(super) reads_files: bool,
    /// Cleared where something could not be read.
    pub(super) is_whole: Arc<AtomicBool>,
    /// Hears of what is left out.
    pub(super) driver: Arc<Driver>,
    /// That it goes on.
    pub(super) run: Arc<Run>,
    /// Figures.
    pub(super) gauges: Arc<Gauges>,
}

/// One walk.
#[derive(Debug)]
pub(super) struct Walk {
    ground: Ground,
    /// Room for files that are read when they are found.
    room: Arc<Room>,
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Debug)]
struct State {
    /// Folders to look into, the next at the end.
    branches: Vec<Branch>,
    /// Threads at work.
    busy: usize,
    /// What is left of the sources, or of the list; gone while a thread has it.
    tops: Option<Tops>,
}

/// Where the walk begins.
#[derive(Debug)]
struct Tops {
    next_origin: u32,
    list: Option<List>,
}

/// Folders in one folder that are still to be looked into.
#[derive(Debug)]
struct Branch {
    origin: u32,
    parent: Vec<u8>,
    names: Names,
    is_through_link: bool,
    lineage: Option<Arc<Lineage>>,
}

/// The folders that a folder is in, where links are followed: what tells a circle.
#[derive(Debug)]
struct Lineage {
    device: u64,
    inode: u64,
    parent: Option<Arc<Lineage>>,
}

/// A folder to look into.
#[derive(Debug)]
struct Folder {
    origin: u32,
    path: Vec<u8>,
    is_through_link: bool,
    lineage: Option<Arc<Lineage>>,
}

enum Task {
    Folder(Folder),
    Tops(Tops),
}

/// One thread of the walk.
struct Walker<'a> {
    walk: &'a Walk,
    ground: &'a Ground,
    into: Sender<Vec<Found>>,
    batch: Vec<Found>,
    since: Instant,
    /// What lengths are worth on each device that it has come to.
    lengths: HashMap<u64, Lengths>,
}

impl Walk {
    /// A walk over all sources, or over `list` in the first of them.
    pub(super) fn new(ground: Ground, list: Option<List>) -> Self {
        let tops = Some(Tops { next_origin: 0, list });
        Self {
            ground,
            room: Arc::default(),
            state: Mutex::new(State {
                branches: Vec::new(),
                busy: 0,
                tops,
            }),
            bell: Condvar::new(),
        }
    }

    /// Walks until nothing is left; the body of each thread.
    pub(super) fn run(&self, into: Sender<Vec<Found>>) {
        let mut walker = Walker {
            walk: self,
            ground: &self.ground,
            into,
            batch: Vec::new(),
            since: Instant::now(),
            lengths: HashMap::new(),
        };
        while let Some(task) = self.next() {
            match task {
                Task::Folder(folder) => walker.visit(&folder),
                Task::Tops(tops) => walker.begin(tops),
            }
            walker.hand_on();
            self.lock().busy -= 1;
            self.bell.notify_all();
        }
        if !self.ground.run.is_over() {
            self.ground.gauges.all_found.set(1);
        }
    }

    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if self.ground.run.is_over() {
                return None;
            }
            if let Some(folder) = state.take_folder() {
                state.busy += 1;
                return Some(Task::Folder(folder));
            }
            if state.busy == 0 {
                let tops = state.tops.take()?;
                state.busy += 1;
                return Some(Task::Tops(tops));
            }
            let waited = self.bell.wait_timeout(state, PAUSE);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn push(&self, branch: Branch) {
        if !branch.names.is_empty() {
            self.lock().branches.push(branch);
            self.bell.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_folder(&mut self) -> Option<Folder> {
        let branch = self.branches.last_mut()?;
        let name = branch.names.take_next();
        let folder = name.map(|name| Folder {
            origin: branch.origin,
            path: names::join(&branch.parent, name),
            is_through_link: branch.is_through_link,
            lineage: branch.lineage.clone(),
        });
        if branch.names.is_empty() {
            self.branches.pop();
        }
        folder
    }
}

impl Lineage {
    fn has(&self, device: u64, inode: u64) -> bool {
        let mut next = Some(self);
        while let Some(folder) = next {
            if (folder.device, folder.inode) == (device, inode) {
                return true;
            }
            next = folder.parent.as_deref();
        }
        false
    }
}

impl Walker<'_> {
    /// The next source, and others up to one that there is a folder to look into for; or the next names of the list.
    fn begin(&mut self, mut tops: Tops) {
        let has_more = match &mut tops.list {
            Some(list) => self.take_listed(list),
            None => {
                while tops.next_origin < self.ground.sources.count() as u32
                    && self.walk.lock().branches.is_empty()
                {
                    self.begin_origin(tops.next_origin);
                    tops.next_origin += 1;
                }
                tops.next_origin < self.ground.sources.count() as u32
            }
        };
        if has_more {
            self.walk.lock().tops = Some(tops);
        }
    }

    fn begin_origin(&mut self, origin: u32) {
        let folder = Folder {
            origin,
            path: Vec::new(),
            is_through_link: false,
            lineage: None,
        };
        let sources = &self.ground.sources;
        match sources.top(origin) {
            Some(top) => self.look_and_push(&folder, sources.folder(origin), top),
            None if self.ground.spec.recursive => self.visit(&folder),
            None => self.unread(b".", Kind::Folder, NOT_RECURSIVE),
        }
    }

    /// One name by itself; what is in it later.
    fn look_and_push(&mut self, folder: &Folder, open: BorrowedFd<'_>, name: &[u8]) {
        let path = names::join(&folder.path, name);
        if let Some(way) = self.look(folder, open, None, name, path) {
            self.hand_on();
            self.walk.push(Branch {
                origin: folder.origin,
                parent: folder.path.clone(),
                names: Names::of_one(name),
                is_through_link: folder.is_through_link || way.is_through_link,
                lineage: folder.lineage.clone(),
            });
        }
    }

    /// All names in one folder.
    fn visit(&mut self, folder: &Folder) {
        let flags = OpenFlags::READ | OpenFlags::FOLDER;
        let sources = &self.ground.sources;
        let opened = sources
            .open_at(folder.origin, &folder.path, flags, folder.is_through_link)
            .and_then(|open| {
                Ok((
                    file::list(open.as_fd())?,
                    self.lineage_of(folder, open.as_fd())?,
                    open,
                ))
            });
        let (mut listing, lineage, open) = match opened {
            Ok((listing, Ok(lineage), open)) => (listing, lineage, open),
            Ok((_, Err(circle), _)) => return self.unread(&folder.path, Kind::Folder, circle),
            Err(error) => {
                return self.unread(
                    &folder.path,
                    Kind::Folder,
                    &self.told(folder.origin, &folder.path, &error),
                );
            }
        };
        let inside = Folder {
            origin: folder.origin,
            path: folder.path.clone(),
            is_through_link: folder.is_through_link,
            lineage,
        };
        let mut folders = Names::default();
        loop {
            let mut names = Names::default();
            let fetched = names.fetch(&mut listing, MOST_SORTED);
            while let Some((name, kind)) = names.take_next_of_kind() {
                if self.ground.run.is_over() {
                    return;
                }
                self.look_inside_of(&inside, open.as_fd(), kind, name, &mut folders);
            }
            match fetched {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.unread(
                        &folder.path,
                        Kind::Folder,
                        &self.told(folder.origin, &folder.path, &error),
                    );
                    break;
                }
            }
        }
        // What is in a folder comes after the folder: its names first, then this.
        self.push_folders(&inside, folders);
    }

    fn push_folders(&mut self, folder: &Folder, names: Names) {
        self.hand_on();
        self.walk.push(Branch {
            origin: folder.origin,
            parent: folder.path.clone(),
            names,
            is_through_link: folder.is_through_link,
            lineage: folder.lineage.clone(),
        });
    }

    fn look_inside_of(
        &mut self,
        folder: &Folder,
        open: BorrowedFd<'_>,
        kind: Option<FileKind>,
        name: &[u8],
        folders: &mut Names,
    ) {
        let path = names::join(&folder.path, name);
        match self.look(folder, open, kind, name, path) {
            Some(way) if way.is_through_link && !folder.is_through_link => {
                self.hand_on();
                self.walk.push(Branch {
                    origin: folder.origin,
                    parent: folder.path.clone(),
                    names: Names::of_one(name),
                    is_through_link: true,
                    lineage: folder.lineage.clone(),
                });
            }
            Some(_) => folders.add(name, None),
            None => return,
        }
        if folders.len() == MOST_SORTED {
            self.push_folders(folder, std::mem::take(folders));
        }
    }

    /// The folders that it is in and itself, where links are followed; an error for one that is in itself.
    fn lineage_of(
        &self,
        folder: &Folder,
        open: BorrowedFd<'_>,
    ) -> std::io::Result<Result<Option<Arc<Lineage>>, &'static str>> {
        if self.ground.spec.links != farline_spec::SymbolicLinks::Follow {
            return Ok(Ok(None));
        }
        let facts = file::stat_fd(open)?;
        let parent = folder.lineage.clone();
        if parent
            .as_ref()
            .is_some_and(|parent| parent.has(facts.device, facts.inode))
        {
            return Ok(Err("is a link to one of its parent folders"));
        }
        Ok(Ok(Some(Arc::new(Lineage {
            device: facts.device,
            inode: facts.inode,
            parent,
        }))))
    }

    /// Something that should be copied and cannot be read: nothing may be deleted on the strength of this walk, but if it is only
    /// that the source has it no more.
    fn unread(&self, path: &[u8], kind: Kind, reason: &str) {
        if reason != VANISHED {
            self.ground.is_whole.store(false, Ordering::Relaxed);
        }
        let path = if path.is_empty() { b"." } else { path };
        let driver = &self.ground.driver;
        driver.settle_unannounced(path, kind, FileStatus::Failed, reason);
        driver.wait_for_room();
    }

    fn found(&mut self, found: Found) {
        self.ground.gauges.found_files.add(1);
        self.ground.gauges.found_bytes.add(found.bytes());
        if self.batch.is_empty() {
            self.since = Instant::now();
        }
        self.batch.push(found);
        if self.batch.len() == BATCH_NAMES || self.since.elapsed() > BATCH_TIME {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        self.ground.run.worked();
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH_NAMES));
        select! {
            send(self.into, batch) -> _ => {}
            recv(self.ground.run.closed()) -> _ => {}
        }
    }
}
