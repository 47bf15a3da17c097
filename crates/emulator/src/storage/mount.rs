//! The mount: FUSE requests in, answers at the time that the model gives.
//!
//! A thread of fuser's reads requests, moves bytes and asks the model; another one answers what is due. Names and
//! attributes are answered at once.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use farline_spec::{Failure, FailureKind, StorageAction, StorageCounters, StorageSpec};
use farline_sys::process::process_of_thread;
use farline_sys::time::now_ns;
use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request,
    TimeOrNow, WriteFlags,
};

use super::model::{RequestId, StorageModel};
use super::tree::{Content, Owner, Pieces, Tree};

/// How mounts are listed: what one that its program left behind is known by.
pub const SOURCE_PREFIX: &str = "farline-storage-";
/// For so long the kernel need not ask again: nobody else changes anything.
const KEPT: Duration = Duration::from_secs(3600);
const O_TRUNC: i32 = 0o1000;
/// Requests that the kernel may have under way here by itself: read-ahead, and those of io_uring.
const MOST_UNDER_WAY: u16 = 1024;
const BLOCK_BYTES: u64 = 4096;

/// A mounted file system; unmounted when it is dropped.
pub struct Mount {
    session: Option<BackgroundSession>,
    answerer: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    place: PathBuf,
}

impl Mount {
    /// Mounts one over the folder `place`.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the kernel refuses: FUSE is not there, or may not be used.
    pub fn start(spec: &StorageSpec, place: &Path) -> Result<Self, Failure> {
        let owner = Owner {
            mode: 0o755,
            user: farline_sys::process::user(),
            group: farline_sys::process::group(),
        };
        let shared = Arc::new(Shared {
            served: Mutex::new(Served {
                model: StorageModel::new(spec),
                waiting: HashMap::new(),
                next: 0,
                is_over: false,
                counters: StorageCounters::default(),
            }),
            changed: Condvar::new(),
        });
        let mut config = Config::default();
        config.mount_options = vec![
            MountOption::FSName(format!("{SOURCE_PREFIX}{}", spec.name)),
            MountOption::DefaultPermissions,
            MountOption::NoSuid,
            MountOption::NoDev,
        ];
        let files = Files {
            tree: Arc::new(Mutex::new(Tree::new(spec.capacity_bytes, owner))),
            shared: Arc::clone(&shared),
            processes: Mutex::new(HashMap::new()),
            next_handle: AtomicU64::new(1),
        };
        let session = fuser::spawn_mount(files, place, &config).map_err(|error| {
            let line = format!(
                "{}: mounting through FUSE (needs /dev/fuse, and root or the program fusermount3)",
                place.display()
            );
            Failure::system(&line, &error)
        })?;
        let answering = Arc::clone(&shared);
        let answerer = thread::Builder::new()
            .name("storage-answers".to_owned())
            .spawn(move || answering.answer_all())
            .map_err(|error| Failure::system("a thread for a file system", &error))?;
        Ok(Self {
            session: Some(session),
            answerer: Some(answerer),
            shared,
            place: place.to_owned(),
        })
    }

    /// What it has done so far.
    pub fn counters(&self) -> StorageCounters {
        let served = self.shared.served();
        StorageCounters {
            waited_for_credit: served.model.waited_for_credit(),
            ..served.counters
        }
    }

    /// Whether it still serves: somebody else may have unmounted it.
    pub fn is_mounted(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| !session.guard.is_finished())
    }

    /// Unmounts it. Programs that have files open there keep what they have, and get errors for what they ask.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the kernel refuses.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let Some(session) = self.session.take() else {
            return Ok(());
        };
        self.shared.end();
        // What is in use can only be taken out of the tree of names; the connection ends with the process that serves it.
        let detached = farline_sys::mount::detach(&self.place);
        let unmounted = match detached {
            Ok(()) => Ok(()),
            Err(_) => session.umount_and_join(),
        };
        if let Some(answerer) = self.answerer.take() {
            // A panic there has been told by the thread itself.
            let _ = answerer.join();
        }
        unmounted.map_err(|error| {
            let line = format!("unmounting {}", self.place.display());
            Failure::new(FailureKind::System, format!("{line}: {error}"))
        })
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Nobody is left to be told.
        let _ = self.stop();
    }
}

impl std::fmt::Debug for Mount {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Mount")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// What is between the thread that takes requests and the one that answers them.
struct Shared {
    served: Mutex<Served>,
    changed: Condvar,
}

struct Served {
    model: StorageModel,
    waiting: HashMap<RequestId, Answer>,
    next: RequestId,
    is_over: bool,
    counters: StorageCounters,
}

/// An answer that waits for its time.
enum Answer {
    Read(ReplyData, Arc<Mutex<Tree>>, u64, u64, u64),
    Written(ReplyWrite, u32),
}

impl Answer {
    fn send(self) {
        match self {
            Self::Read(reply, tree, number, offset, bytes) => {
                let read = lock(&tree).read(number, offset, bytes);
                match read {
                    Ok(data) => reply.data(&data),
                    Err(error) => reply.error(error),
                }
            }
            Self::Written(reply, bytes) => reply.written(bytes),
        }
    }
}

impl Shared {
    fn served(&self) -> MutexGuard<'_, Served> {
        lock(&self.served)
    }

    fn submit(&self, process: u32, action: StorageAction, bytes: u64, answer: Answer) {
        let mut served = self.served();
        if served.is_over {
            // An answer that is dropped is an error.
            return;
        }
        let request = served.next;
        served.next += 1;
        match action {
            StorageAction::Read => served.counters.read_bytes += bytes,
            StorageAction::Write => served.counters.written_bytes += bytes,
        }
        served.waiting.insert(request, answer);
        served.model.submit(now_ns(), request, process, action, bytes);
        drop(served);
        self.changed.notify_one();
    }

    fn end(&self) {
        self.served().is_over = true;
        self.changed.notify_one();
    }

    fn answer_all(&self) {
        farline_sys::thread::set_finest_timer_slack();
        let mut served = self.served();
        while !served.is_over {
            let over = served.model.advance(now_ns());
            let answers: Vec<_> = over
                .iter()
                .filter_map(|request| served.waiting.remove(request))
                .collect();
            if !answers.is_empty() {
                drop(served);
                answers.into_iter().for_each(Answer::send);
                served = self.served();
                continue;
            }
            served = match served.model.next_event_ns() {
                None => self.changed.wait(served).unwrap_or_else(PoisonError::into_inner),
                Some(at_ns) => {
                    let left = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
                    let waited = self.changed.wait_timeout(served, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        // What waits is answered with an error as it is dropped.
        served.waiting.clear();
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The files, as fuser asks for them.
struct Files {
    tree: Arc<Mutex<Tree>>,
    shared: Arc<Shared>,
    /// Which process opened a file, by handle.
    processes: Mutex<HashMap<u64, (u32, u64)>>,
    next_handle: AtomicU64,
}

impl Files {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        lock(&self.tree)
    }

    /// A handle for a file that a thread has opened: all that goes through it counts for its process.
    fn handle(&self, number: u64, thread: u32) -> Result<FileHandle, Errno> {
        self.tree().opened(number)?;
        let handle = self.next_handle.fetch_add(1, Ordering::Relaxed);
        let process = process_of_thread(thread).unwrap_or(thread);
        lock(&self.processes).insert(handle, (process, number));
        Ok(FileHandle(handle))
    }

    fn process(&self, handle: FileHandle) -> u32 {
        lock(&self.processes)
            .get(&handle.0)
            .map_or(0, |(process, _)| *process)
    }

    fn made(&self, req: &Request, parent: INodeNo, name: &OsStr, content: Content, mode: u32) -> Made {
        let owner = Owner {
            mode: mode as u16 & 0o7777,
            user: req.uid(),
            group: req.gid(),
        };
        self.tree().make(parent.0, name.as_bytes(), content, owner)
    }

    fn opened(&self, req: &Request, number: u64, flags: i32) -> Result<FileHandle, Errno> {
        if flags & O_TRUNC != 0 {
            self.tree().set_length(number, 0)?;
            self.note_use();
        }
        self.handle(number, req.pid())
    }

    fn set(&self, number: u64, wanted: &Wanted) -> Made {
        let mut tree = self.tree();
        if let Some(bytes) = wanted.bytes {
            tree.set_length(number, bytes)?;
        }
        let node = tree.node(number)?;
        let owner = &mut node.owner;
        owner.mode = wanted.mode.map_or(owner.mode, |mode| mode as u16 & 0o7777);
        owner.user = wanted.user.unwrap_or(owner.user);
        owner.group = wanted.group.unwrap_or(owner.group);
        node.modified = match wanted.modified {
            Some(TimeOrNow::SpecificTime(time)) => time,
            Some(TimeOrNow::Now) => SystemTime::now(),
            None => node.modified,
        };
        tree.attributes(number)
    }

    fn note_use(&self) {
        let (used, _) = self.tree().room();
        self.shared.served().counters.used_bytes = used;
    }
}

type Made = Result<FileAttr, Errno>;

/// What is to be changed of a node.
struct Wanted {
    bytes: Option<u64>,
    mode: Option<u32>,
    user: Option<u32>,
    group: Option<u32>,
    modified: Option<TimeOrNow>,
}

fn say_entry(reply: ReplyEntry, made: Made) {
    match made {
        Ok(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn say_attributes(reply: ReplyAttr, made: Made) {
    match made {
        Ok(attributes) => reply.attr(&KEPT, &attributes),
        Err(error) => reply.error(error),
    }
}

fn say(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Files {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Where the kernel has none of these, requests come one after the other.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_READ | InitFlags::FUSE_ASYNC_DIO);
        let _ = config.add_capabilities(InitFlags::FUSE_PARALLEL_DIROPS);
        let _ = config.set_max_background(MOST_UNDER_WAY);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = self.tree();
        let found = tree.find(parent.0, name.as_bytes());
        say_entry(reply, found.and_then(|number| tree.attributes(number)));
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        let attributes = self.tree().attributes(ino.0);
        say_attributes(reply, attributes);
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
        bytes: Option<u64>,
        _atime: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let wanted = Wanted {
            bytes,
            mode,
            user,
            group,
            modified,
        };
        let made = self.set(ino.0, &wanted);
        self.note_use();
        say_attributes(reply, made);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree().node(ino.0).map(|node| &node.content) {
            Ok(Content::Link(target)) => reply.data(target),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let folder = Content::Folder(std::collections::BTreeMap::new());
        say_entry(reply, self.made(req, parent, name, folder, mode & !umask));
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.tree().remove_name(parent.0, name.as_bytes(), false);
        self.note_use();
        say(reply, done);
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let done = self.tree().remove_name(parent.0, name.as_bytes(), true);
        say(reply, done);
    }

    fn symlink(&self, req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let link = Content::Link(target.as_os_str().as_bytes().to_vec());
        say_entry(reply, self.made(req, parent, name, link, 0o777));
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            return reply.error(Errno::EINVAL);
        }
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        let (from, into) = ((parent.0, name.as_bytes()), (to.0, new_name.as_bytes()));
        let done = self.tree().rename(from, into, keep);
        self.note_use();
        say(reply, done);
    }

    fn link(&self, _req: &Request, ino: INodeNo, to: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let made = self.tree().link(ino.0, to.0, name.as_bytes());
        say_entry(reply, made);
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.opened(req, ino.0, flags.0) {
            Ok(handle) => reply.opened(handle, FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.made(req, parent, name, Content::File(Pieces::default()), mode & !umask);
        let opened = made.and_then(|attributes| Ok((attributes, self.opened(req, attributes.ino.0, 0)?)));
        match opened {
            Ok((attributes, handle)) => reply.created(
                &KEPT,
                &attributes,
                Generation(0),
                handle,
                FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let bytes = u64::from(size);
        let answer = Answer::Read(reply, Arc::clone(&self.tree), ino.0, offset, bytes);
        self.shared
            .submit(self.process(fh), StorageAction::Read, bytes, answer);
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let written = self.tree().write(ino.0, offset, data);
        if let Err(error) = written {
            return reply.error(error);
        }
        self.note_use();
        let answer = Answer::Written(reply, data.len() as u32);
        let bytes = data.len() as u64;
        self.shared
            .submit(self.process(fh), StorageAction::Write, bytes, answer);
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if let Some((_, number)) = lock(&self.processes).remove(&fh.0) {
            self.tree().closed(number);
            self.note_use();
        }
        reply.ok();
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _data: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _data: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut tree = self.tree();
        let names = match tree.names(ino.0) {
            Ok(names) => names,
            Err(error) => return reply.error(error),
        };
        for (place, (name, number)) in names.iter().enumerate().skip(offset as usize) {
            let Ok(attributes) = tree.attributes(*number) else {
                continue;
            };
            if reply.add(
                INodeNo(*number),
                place as u64 + 1,
                attributes.kind,
                OsStr::from_bytes(name),
            ) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let (used, capacity) = self.tree().room();
        let (blocks, free) = (
            capacity / BLOCK_BYTES,
            capacity.saturating_sub(used) / BLOCK_BYTES,
        );
        reply.statfs(
            blocks,
            free,
            free,
            u64::from(u32::MAX),
            u64::from(u32::MAX),
            BLOCK_BYTES as u32,
            255,
            BLOCK_BYTES as u32,
        );
    }
}
