//! `.farline-partial/KEY/` in the destination folder: what is not yet whole, the journal, and the lock that keeps two copies apart.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use farline_spec::{CopySpec, Failure, FailureKind};
use farline_sys::file::{self, OpenFlags};
use farline_sys::process;
use tracing::debug;

use super::able::synced;
use super::fold;
use super::journal::{self, Journal, Memory, SHARED_ID, Source, shared_id, sixteen};
use super::lock::Lock;
use super::locked_folder::{LOCK, LockedFolder, NotLocked, locked, opened_folder};
use super::partial::Partial;
use super::staging_top::{StagingTop, is_not_empty};
use super::tree;
use crate::reserved::{STAGING, staging_of};

const JOURNAL: &[u8] = b"journal";
const NEW_JOURNAL: &[u8] = b"journal.new";
/// What the folders of parts of a copy are called before their number.
const PART: &[u8] = b"part-";
/// Only the owner reads what is not whole.
const FILE_MODE: u32 = 0o600;
/// So much of a file's name is in its partial's.
const NAME_BYTES: usize = 200;
/// What is removed while it is open may take a moment to go when it is closed: so long it is waited at first, then twice as
/// long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// And no longer than this at a time: two seconds in all.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How often the lock is tried when the folder goes away meanwhile.
const LOCK_TRIES: usize = 20;

/// What a copy is known by: the same sources of the same origin, by the same rules, to the same destination. A list of
/// sources counts as one: it may come by another name each time. Sessions that share a copy are known by what it is called.
pub fn copy_key(spec: &CopySpec, origin: &str) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    if let Some(share) = &spec.share {
        // Sessions of several nodes, each with sources of its own.
        hasher.update(b"shared copy");
        hasher.update(&(share.id.len() as u64).to_le_bytes());
        hasher.update(share.id.as_bytes());
        hasher.update(spec.destination.as_bytes());
        return sixteen(&hasher.finalize());
    }
    for parts in [&spec.sources, &spec.filters] {
        hasher.update(&(parts.len() as u64).to_le_bytes());
        for part in parts {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
    }
    hasher.update(&[u8::from(spec.source_list.is_some())]);
    hasher.update(&(origin.len() as u64).to_le_bytes());
    hasher.update(origin.as_bytes());
    // A folder is the same with a slash and without.
    let destination = spec.destination.trim_end_matches('/');
    hasher.update(destination.as_bytes());
    sixteen(&hasher.finalize())
}

/// The folder of one copy, locked.
#[derive(Debug)]
pub struct Staging {
    top: StagingTop,
    folder: OwnedFd,
    key: [u8; 16],
    key_text: String,
    /// Of a part: the folder of the whole copy, where files are that several parts write to.
    whole: Option<OwnedFd>,
    /// Open for as long as the lock is held; that of the whole copy, which parts have together, behind it.
    lock: Mutex<Option<(Lock, Option<Lock>)>>,
    next_id: AtomicU64,
}

/// Whether the copy `key` left something below `folder`.
pub fn is_there(folder: BorrowedFd<'_>, key: &[u8; 16]) -> bool {
    let is_below = |top: &[u8]| {
        let path = [top, b"/", text_of(key).as_bytes()].concat();
        file::stat_at(Some(folder), &path, false).is_ok()
    };
    is_below(STAGING) || is_below(&staging_of(process::user()))
}

impl Staging {
    /// Makes the folder of the copy `key` below `base`, or opens it, and takes its lock; of its part `part`, if it is given, which
    /// may be at work together with other parts.
    ///
    /// # Errors
    /// [`FailureKind::Busy`] when another copy holds it; [`FailureKind::System`] when it cannot be made.
    pub fn open(base: BorrowedFd<'_>, key: [u8; 16], part: Option<u32>) -> Result<Self, Failure> {
        let key_text = text_of(&key);
        for _ in 0..LOCK_TRIES {
            let opened = opened(base, key_text.as_bytes(), part)?;
            match opened {
                Ok(Opened { top, own, whole }) => {
                    let (whole, whole_lock) = whole.map(|whole| (whole.folder, whole.lock)).unzip();
                    return Ok(Self {
                        top,
                        folder: own.folder,
                        key,
                        key_text,
                        whole,
                        lock: Mutex::new(Some((own.lock, whole_lock))),
                        next_id: AtomicU64::new(1),
                    });
                }
                Err(NotLocked::Gone) => {}
                Err(NotLocked::Busy) => break,
            }
        }
        Err(busy())
    }

    /// Reads what an earlier session left, drops what is not borne out, and begins a journal with what is still true.
    /// `boot` names this start of the machine; `durable` says whether records wait for the device.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the journal cannot be read or made.
    pub fn journal(&self, boot: &str, durable: bool) -> Result<(Journal, Memory), Failure> {
        let memory = self.memory(boot)?;
        self.sweep(&memory).map_err(|error| {
            Failure::system(
                "folder .farline-partial for incomplete files, at the destination",
                &error,
            )
        })?;
        self.next_id.store(memory.largest_id + 1, Ordering::Relaxed);
        let explain = |error: io::Error| Failure::system("journal of the copy", &error);
        if durable && !memory.is_empty() {
            // Believed so far because this machine did not stop: from now on it is believed even if it does.
            synced(file::sync_file_system(self.folder.as_fd())).map_err(explain)?;
        }
        let at = (!durable).then(|| boot.to_owned());
        let journal = self.anew(at, &memory)?;
        // What parts proved is in the one journal now.
        self.sweep_parts().map_err(explain)?;
        Ok((Journal::new(journal, durable).map_err(explain)?, memory))
    }

    /// Which names the file system does not tell apart.
    pub fn fold(&self) -> farline_proto::copy::receiver::Fold {
        fold::tried(self.folder.as_fd(), LOCK)
    }

    /// Does something with the lock; `None` once it is given back.
    pub fn with_lock<T>(&self, work: impl FnOnce(&Lock) -> T) -> Option<T> {
        let lock = self.lock.lock().expect(POISONED);
        lock.as_ref().map(|(lock, _)| work(lock))
    }

    fn memory(&self, boot: &str) -> Result<Memory, Failure> {
        let explain = |error: io::Error| Failure::system("journal of the copy", &error);
        let has = |id: u64, source: &Source| self.has(id, source);
        let mut memory = self.read(self.folder.as_fd(), boot, has).map_err(explain)?;
        // Partials of others are in folders of theirs, but for those that all write to.
        let has_shared = |id: u64, source: &Source| id & SHARED_ID != 0 && self.has(id, source);
        if let Some(whole) = &self.whole {
            memory.merge(self.read(whole.as_fd(), boot, has_shared).map_err(explain)?);
            return Ok(memory);
        }
        for part in self.parts().map_err(explain)? {
            let folder = opened_folder(self.folder.as_fd(), &part).map_err(explain)?;
            memory.merge(self.read(folder.as_fd(), boot, has_shared).map_err(explain)?);
        }
        Ok(memory)
    }

    /// What the journal in `folder` says, if there is one.
    fn read(
        &self,
        folder: BorrowedFd<'_>,
        boot: &str,
        has: impl Fn(u64, &Source) -> bool,
    ) -> io::Result<Memory> {
        let flags = OpenFlags::READ | OpenFlags::NO_FOLLOW;
        match file::open_beneath(folder, JOURNAL, flags, 0) {
            Ok(journal) => journal::load(&File::from(journal), &self.key, boot, has),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Memory::default()),
            Err(error) => Err(error),
        }
    }

    /// Names of the folders of parts, in the folder of the whole copy.
    fn parts(&self) -> io::Result<Vec<Vec<u8>>> {
        let mut parts = Vec::new();
        for listed in file::list(self.folder.as_fd())? {
            let name = listed?.name;
            if self.whole.is_none() && name.starts_with(PART) {
                parts.push(name);
            }
        }
        Ok(parts)
    }

    /// Removes the folders of parts. The lock of the whole copy is held: nobody is in them.
    fn sweep_parts(&self) -> io::Result<()> {
        for part in self.parts()? {
            let folder = opened_folder(self.folder.as_fd(), &part)?;
            for listed in file::list(folder.as_fd())? {
                file::unlink(folder.as_fd(), &listed?.name)?;
            }
            self.remove_when_empty(self.folder.as_fd(), &part, &folder)?;
        }
        Ok(())
    }

    fn anew(&self, boot: Option<String>, memory: &Memory) -> Result<File, Failure> {
        let explain = |error: io::Error| Failure::system("journal of the copy", &error);
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::TRUNCATE | OpenFlags::NO_FOLLOW;
        let folder = self.folder.as_fd();
        let journal = file::open_beneath(folder, NEW_JOURNAL, flags, FILE_MODE).map_err(explain)?;
        let mut journal = File::from(journal);
        journal::compact(self.key, boot, memory, &mut journal)?;
        synced(file::sync_data(journal.as_fd())).map_err(explain)?;
        file::rename(folder, NEW_JOURNAL, folder, JOURNAL, true).map_err(explain)?;
        synced(file::sync_file(folder)).map_err(explain)?;
        Ok(journal)
    }

    fn has(&self, id: u64, source: &Source) -> bool {
        names_of(id, &source.path).iter().any(|name| {
            let facts = file::stat_at(Some(self.home_of(id)), name, false);
            facts.is_ok_and(|facts| facts.kind == file::FileKind::File && facts.bytes == source.bytes)
        })
    }

    /// The folder that the partial of this number is in.
    fn home_of(&self, id: u64) -> BorrowedFd<'_> {
        let whole = self.whole.as_ref().filter(|_| id & SHARED_ID != 0);
        whole.unwrap_or(&self.folder).as_fd()
    }

    /// Removes what the journal does not know, but for what parts know.
    fn sweep(&self, memory: &Memory) -> io::Result<()> {
        let known = |partial: &journal::Resumable| names_of(partial.id, &partial.source.path);
        let mut keep: HashSet<Vec<u8>> = memory.partials.values().flat_map(known).collect();
        keep.extend([JOURNAL.to_vec(), LOCK.to_vec()]);
        for listed in file::list(self.folder.as_fd())? {
            let name = listed?.name;
            if keep.contains(&name) || name.starts_with(PART) {
                continue;
            }
            match file::unlink(self.folder.as_fd(), &name) {
                // A folder that made way, of a session that was cut off.
                Err(error) if error.kind() == io::ErrorKind::IsADirectory => self.sweep_tree(&name),
                // What was removed while it was open goes when it is closed, wherever that is.
                Err(error) if stays(&error) || error.kind() == io::ErrorKind::NotFound => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    /// Removes a folder with what is in it. What may not be removed, for it is somebody else's, stays: no copy is the worse for it.
    fn sweep_tree(&self, name: &[u8]) {
        let folder = self.folder.as_fd();
        let removed = tree::below(folder, name, name, || {})
            .and_then(|mut names| tree::remove(folder, name, &mut names));
        if let Err(error) = removed {
            debug!(reason = %error, "a folder that made way stays");
        }
    }

    /// A new partial of `source` with its length; `is_shared`: the one that all sessions of the copy write to, which may be there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn begin(&self, source: Source, mode: u32, is_shared: bool) -> io::Result<Partial> {
        if is_shared {
            let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::NO_FOLLOW;
            let id = shared_id(&source);
            let (name, file) = self.opened(id, &source, flags, mode | FILE_MODE)?;
            let partial = Partial::new(id, name, source, file);
            lengthen(partial.fd(), partial.source().bytes)?;
            return Ok(partial);
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let made = self.opened(id, &source, flags, mode | FILE_MODE);
        let (name, file) = made?;
        let partial = Partial::new(id, name, source, file);
        match lengthen(partial.fd(), partial.source().bytes) {
            Ok(()) => Ok(partial),
            Err(error) => {
                // What matters is why it could not be made.
                let _ = self.remove(partial.name());
                Err(error)
            }
        }
    }

    /// The partial that an earlier session left.
    ///
    /// # Errors
    /// The kernel's.
    pub fn resume(&self, id: u64, source: Source) -> io::Result<Partial> {
        let flags = OpenFlags::READ_WRITE | OpenFlags::NO_FOLLOW;
        let (name, file) = self.opened(id, &source, flags, 0)?;
        Ok(Partial::new(id, name, source, file))
    }

    /// A partial under its name, or under its shorter one where the file system does not take that.
    fn opened(
        &self,
        id: u64,
        source: &Source,
        flags: OpenFlags,
        mode: u32,
    ) -> io::Result<(Vec<u8>, OwnedFd)> {
        let [name, short] = names_of(id, &source.path);
        let open = |name: &[u8]| file::open_beneath(self.home_of(id), name, flags, mode);
        match open(&name) {
            Err(error) if file::is_bad_name(&error) || error.kind() == io::ErrorKind::NotFound => {
                let file = open(&short)?;
                Ok((short, file))
            }
            opened => opened.map(|file| (name, file)),
        }
    }

    /// The same file once more, for an engine to write through.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open_again(&self, partial: &Partial) -> io::Result<OwnedFd> {
        let flags = OpenFlags::READ_WRITE | OpenFlags::NO_FOLLOW;
        file::open_beneath(self.home_of(partial.id()), partial.name(), flags, 0)
    }

    /// A name in this folder that nothing has yet.
    pub fn new_name(&self) -> Vec<u8> {
        format!("{}.new", self.next_id.fetch_add(1, Ordering::Relaxed)).into_bytes()
    }

    /// What `.farline-partial` is called here, for people.
    pub fn shown_name(&self) -> String {
        self.top.shown_name()
    }

    /// Notes the bits that the destination folder is to get again, when the last copy in it ends.
    ///
    /// # Errors
    /// The kernel's.
    pub fn note_bits(&self, bits: u32) -> io::Result<()> {
        self.top.note_bits(bits)
    }

    /// The bits that the destination folder is to get again now: none where nothing changed them, or another copy is at work in it.
    /// The session that ends a copy speaks for its parts.
    pub fn bits_to_give_back(&self) -> Option<u32> {
        match self.whole {
            Some(_) => None,
            None => self.top.bits_beside(self.key_text.as_bytes()),
        }
    }

    /// Gives the lock back: another session may go on.
    pub fn release(&self) {
        drop(self.lock.lock().expect(POISONED).take());
    }

    /// The folder.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    /// Removes one file of it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove(&self, name: &[u8]) -> io::Result<()> {
        file::unlink(self.folder.as_fd(), name)
    }

    /// Removes what could not be put in place; what is left here goes with the folder.
    pub fn discard(&self, new: &[u8]) {
        let _ = self.remove(new);
    }

    /// Removes the partial that an earlier session left; one that other parts may write to stays for the session that ends the copy.
    ///
    /// # Errors
    /// The kernel's.
    pub fn remove_left(&self, id: u64, source: &Source) -> io::Result<()> {
        if self.whole.is_some() && id & SHARED_ID != 0 {
            return Ok(());
        }
        let [name, short] = names_of(id, &source.path);
        match self.remove(&name) {
            Err(error) if file::is_bad_name(&error) || error.kind() == io::ErrorKind::NotFound => {
                self.remove(&short)
            }
            removed => removed,
        }
    }

    /// Whether a time that is set of a link is set of what it leads to, as mounts of sshfs do: of one that leads nowhere it then
    /// cannot be.
    pub fn follows_links(&self, set_time: impl FnOnce(BorrowedFd<'_>, &[u8]) -> io::Result<()>) -> bool {
        let link = self.new_name();
        let made = file::make_link(b"nothing", self.fd(), &link);
        let set = made.and_then(|()| set_time(self.fd(), &link));
        self.discard(&link);
        set.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }

    /// Removes all of it, and `.farline-partial` unless another copy is in it; the bits that the destination folder is to get again
    /// now. The journal is closed by then.
    ///
    /// # Errors
    /// The kernel's.
    pub fn end(&self, base: BorrowedFd<'_>) -> io::Result<Option<u32>> {
        self.sweep(&Memory::default())?;
        self.sweep_parts()?;
        self.remove(JOURNAL)?;
        self.remove(LOCK)?;
        // Some file systems keep what is removed while it is open under another name beside it, until it is closed.
        self.release();
        self.remove_when_empty(self.top.fd(), self.key_text.as_bytes(), &self.folder)?;
        self.top.end(base)
    }

    /// Removes the folder itself, once what was closed just now is gone from it too.
    fn remove_when_empty(&self, top: BorrowedFd<'_>, name: &[u8], folder: &OwnedFd) -> io::Result<()> {
        let mut pause = FIRST_PAUSE;
        loop {
            match file::remove_folder(top, name) {
                Err(error) if is_not_empty(&error) && pause < LONGEST_PAUSE => {}
                // Gone: another session of the same copy came and ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                removed => return removed,
            }
            if is_in_use(folder.as_fd()) {
                // Another session of the same copy has begun in it.
                return Ok(());
            }
            std::thread::sleep(pause);
            pause *= 2;
        }
    }
}

/// Whether there is a lock again in a folder, and somebody's. One that nobody holds came back when it was closed, as on mounts of
/// rclone, which write a file then: it is removed once more, closed.
fn is_in_use(folder: BorrowedFd<'_>) -> bool {
    let lock = match file::open_beneath(folder, LOCK, OpenFlags::READ | OpenFlags::NO_FOLLOW, 0) {
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
        Ok(lock) => lock,
    };
    let is_free = matches!(file::lock_exclusive(lock.as_fd()), Ok(true));
    !is_free || file::unlink(folder, LOCK).is_err()
}

/// The folders of one session, locked.
struct Opened {
    top: StagingTop,
    own: LockedFolder,
    /// Of a part: that of the whole copy.
    whole: Option<LockedFolder>,
}

fn opened(base: BorrowedFd<'_>, key: &[u8], part: Option<u32>) -> Result<Result<Opened, NotLocked>, Failure> {
    let top = StagingTop::open(base, key)?;
    let explain = |error: io::Error| {
        Failure::system(
            "folder .farline-partial for incomplete files, at the destination",
            &error,
        )
    };
    let whole = match locked(top.fd(), key, part.is_some()).map_err(explain)? {
        Ok(whole) => whole,
        Err(why) => return Ok(Err(why)),
    };
    let Some(part) = part else {
        let (own, whole) = (whole, None);
        return Ok(Ok(Opened { top, own, whole }));
    };
    let own = locked(whole.folder.as_fd(), &part_name(part), false).map_err(explain)?;
    let whole = Some(whole);
    Ok(own.map(|own| Opened { top, own, whole }))
}

fn part_name(part: u32) -> Vec<u8> {
    [PART, part.to_string().as_bytes()].concat()
}

const POISONED: &str = "a thread of the copy panicked while it held the staging folder";

/// Whether what could not be removed may stay: it is in use, or nothing may be removed here, and no file is the worse for it.
pub fn stays(error: &io::Error) -> bool {
    is_not_empty(error) || error.kind() == io::ErrorKind::PermissionDenied
}

fn busy() -> Failure {
    let line = "another copy of the same sources to the same destination is running";
    let mut failure = Failure::new(FailureKind::Busy, line);
    failure.retry_after_s = Some(1.0);
    failure
}

/// Gives a new file its length; where a file system does not lengthen files, by writing the last byte.
///
/// # Errors
/// The kernel's.
pub fn lengthen(file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    match file::set_length(file, bytes) {
        Err(error) if bytes > 0 && file::is_unsupported(&error) => file::write_all_at(file, &[0], bytes - 1),
        lengthened => lengthened,
    }
}

/// The name of a partial, and a shorter one for file systems that do not take every name.
fn names_of(id: u64, path: &[u8]) -> [Vec<u8>; 2] {
    [partial_name(id, path), format!("{id}.part").into_bytes()]
}

fn partial_name(id: u64, path: &[u8]) -> Vec<u8> {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let mut partial = name[..name.len().min(NAME_BYTES)].to_vec();
    partial.extend_from_slice(format!("-{id}.part").as_bytes());
    partial
}

fn text_of(key: &[u8; 16]) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_proved_without_a_device_is_believed_for_good_once_it_was_brought_there() {
        let (one, two) = ([1; 16], [2; 16]);
        let place = tempfile::tempdir().unwrap();
        let base = File::open(place.path()).unwrap();
        let session = |boot: &str, durable: bool, done: [u8; 16]| {
            let staging = Staging::open(base.as_fd(), [7; 16], None).unwrap();
            let (journal, memory) = staging.journal(boot, durable).unwrap();
            journal.done(done, None, None).unwrap();
            journal.flush().unwrap();
            staging.release();
            memory
        };
        assert!(session("first", false, one).is_empty());
        assert!(
            session("second", false, one).is_empty(),
            "the machine started anew"
        );
        assert!(session("second", true, two).done(&one).is_some());
        let memory = session("third", true, two);
        assert!(memory.done(&one).is_some() && memory.done(&two).is_some());
    }

    #[test]
    fn what_the_device_refused_once_is_refused_to_everyone() {
        let only_named = file::open_at(None, b".", OpenFlags::PATH, 0).unwrap();
        let source = Source {
            path: b"a".to_vec(),
            bytes: 1,
            mtime_ns: 0,
            ctime_ns: 0,
        };
        let partial = Partial::new(1, Vec::new(), source, only_named);
        assert!(!partial.is_broken());
        // What is open only to be named brings nothing to a device.
        let first = partial.sync().unwrap_err();
        assert!(partial.is_broken());
        let second = partial.sync().unwrap_err();
        assert_ne!(first.to_string(), second.to_string());
    }
}
