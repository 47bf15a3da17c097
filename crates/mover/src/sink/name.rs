//! Small files, and how any file gets its name: never before it is whole, proved, and on the device where that is asked for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use farline_proto::copy::naming::{Naming, Step};
use farline_proto::copy::receiver::Ready;
use farline_spec::{Attribute, Failure, SumKind};
use farline_sys::file::{self, OpenFlags};
use farline_sys::page_buffer::PAGE_BYTES;
use tracing::{debug, debug_span};

use super::able::synced;
use super::attributes::xattr_changes;
use super::entry::{Entry, Small};
use super::finalizer::Finalizer;
use super::name_result::{named, or_removed, reason_of, tell_named};
use super::partial::Partial;
use super::place::Folders;
use super::words::in_words;
use crate::path_text::Shown;
use crate::root::split;
use crate::sum::{Hasher, Sum};

/// Permission bits of a file: the bits that lend its owner's rights are not taken from another host.
pub const FILE_BITS: u32 = 0o777;
/// What is read at once to read a file back.
const READ_BACK_BYTES: usize = 1 << 20;

/// A small file that is being named.
struct OnItsWay {
    ready: Ready<Arc<Entry>>,
    small: Small,
    naming: Naming,
    /// Whether the journal is handed over before it gets its name.
    waits: bool,
    /// Why it does not get its name.
    failed: Option<String>,
}

impl Finalizer {
    /// Makes a small file: written, but without its name. Nothing is left of it where its entry is over.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_small(&self, folders: &mut Folders, entry: &Entry, content: &[u8]) -> io::Result<()> {
        let (parent, _) = split(&entry.source.path);
        let (file, staged) = self
            .gauges
            .name_ns
            .time(|| self.nameless(folders, parent, entry.mode))?;
        let small = Small { file, staged };
        self.gauges
            .file_ns
            .time(|| file::write_all_at(small.file.as_fd(), content, 0))
            .inspect_err(|_| self.destination.unstage(&small))?;
        self.gauges.file_bytes.add(content.len() as u64);
        let mut store = entry.store();
        match store.is_over {
            true => self.destination.unstage(&small),
            false => store.small = Some(small),
        }
        Ok(())
    }

    /// A file without a name in the folder `parent`, or one in the staging folder where there are none.
    fn nameless(
        &self,
        folders: &mut Folders,
        parent: &[u8],
        mode: u32,
    ) -> io::Result<(OwnedFd, Option<Vec<u8>>)> {
        let access = if self.plan.reads_back() {
            OpenFlags::READ_WRITE
        } else {
            OpenFlags::WRITE
        };
        let folder = folders.get(parent)?;
        // Whatever it is to be in the end, its owner writes to it now.
        let mode = mode & FILE_BITS | 0o600;
        match file::open_at(Some(folder.as_fd()), b".", access | OpenFlags::NAMELESS, mode) {
            Ok(file) => return Ok((file, None)),
            Err(error) if has_no_nameless(&error) => {}
            Err(error) => return Err(or_removed(folder.as_fd(), error)),
        }
        let staging = &self.destination.site().kept().staging;
        let name = staging.new_name();
        let flags = access | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let file = file::open_at(Some(staging.fd()), &name, flags, mode)?;
        Ok((file, Some(name)))
    }

    /// Gives a small file its name; in its place where it `replaces`.
    fn name_small(&self, folders: &mut Folders, entry: &Entry, small: &Small) -> io::Result<()> {
        let path = &entry.source.path;
        let (parent, name) = split(path);
        let folder = folders.get(parent)?;
        let staging = &self.destination.site().kept().staging;
        let put = match &small.staged {
            None if !entry.replaces => file::link_fd(small.file.as_fd(), folder.as_fd(), name),
            None => {
                let new = staging.new_name();
                file::link_fd(small.file.as_fd(), staging.fd(), &new).and_then(|()| {
                    self.way
                        .put_in_place(&new, folder.as_fd(), name, path)
                        .inspect_err(|_| staging.discard(&new))
                })
            }
            Some(staged) if entry.replaces => self.way.put_in_place(staged, folder.as_fd(), name, path),
            Some(staged) => file::rename(staging.fd(), staged, folder.as_fd(), name, false),
        };
        let file = (small.file.as_fd(), small.staged.as_deref());
        named(self.unless_across(put, file, entry, folder.as_fd()))
    }

    /// Attributes, time and permission bits of a file that is whole and taken by the file system: these last, they may forbid the others.
    ///
    /// # Errors
    /// The kernel's.
    pub fn dress(&self, file: BorrowedFd<'_>, entry: &Entry) -> io::Result<()> {
        let _within = debug_span!("entry", entry = %Shown(&entry.source.path)).entered();
        file::flush(file)?;
        if self.plan.durable && !self.destination.syncs() {
            let how = "the file system does not support flushing files to the device";
            self.destination.losses.lose(Attribute::Sync, how, 1);
        }
        if self.plan.spec.xattrs {
            // Not only those of the source: a new file inherits access control lists of the folder that it is made in.
            xattr_changes(file, &entry.xattrs)?.apply(&self.destination.losses, file)?;
        }
        entry.belongs.give(file)?;
        if self.plan.spec.times {
            self.destination.keep_time(file, entry.source.mtime_ns)?;
        }
        if self.plan.spec.modes {
            self.destination
                .keep_mode(file, entry.mode & entry.belongs.file_bits())?;
        }
        Ok(())
    }

    /// Makes a small file with its name, without a group.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn make_small(
        &self,
        folders: &mut Folders,
        entry: &Arc<Entry>,
        content: &[u8],
        hash: Option<Sum>,
    ) -> Result<Result<(), String>, Failure> {
        if let Err(error) = self.write_small(folders, entry, content) {
            return reason_of(Err(error));
        }
        let ready = Ready {
            file: entry.number,
            kept: Arc::clone(entry),
            hash,
        };
        let mut named = self.name_group(folders, &[ready])?;
        Ok(named.pop().map_or(Ok(()), |(_, named)| named))
    }

    /// Names small files whose content is where it should be, with a record of each; what came of each.
    #[expect(clippy::type_complexity, reason = "the results stand beside their files")]
    fn name_group(
        &self,
        folders: &mut Folders,
        files: &[Ready<Arc<Entry>>],
    ) -> Result<Vec<(Ready<Arc<Entry>>, Result<(), String>)>, Failure> {
        let rules = self.plan.naming_rules();
        let on_its_way = |ready: &Ready<Arc<Entry>>| {
            let small = ready.kept.store().small.take()?;
            Some(OnItsWay {
                naming: Naming::new(rules, ready.kept.replaces, true),
                ready: ready.clone(),
                small,
                waits: false,
                failed: None,
            })
        };
        let mut group: Vec<OnItsWay> = files.iter().filter_map(on_its_way).collect();
        let named = self.name_all(folders, &mut group);
        if named.is_err() {
            // The copy is over: those that were noted and have no names are taken back.
            group.iter_mut().try_for_each(|one| self.break_off(one))?;
        }
        named?;
        let result = |one: OnItsWay| {
            if one.failed.is_some() {
                self.destination.unstage(&one.small);
            }
            (one.ready, one.failed.map_or(Ok(()), Err))
        };
        Ok(group.into_iter().map(result).collect())
    }

    fn name_all(&self, folders: &mut Folders, group: &mut [OnItsWay]) -> Result<(), Failure> {
        let mut hands_over = false;
        for one in &mut *group {
            one.waits = self.take_steps(folders, one)?;
            hands_over |= one.waits;
        }
        if hands_over {
            // Once for all of them.
            self.destination.site().kept().journal.hand_over()?;
        }
        for one in group {
            if one.waits {
                one.naming.did(true);
            }
            self.take_steps(folders, one)?;
        }
        Ok(())
    }

    /// Does what is to be done with a small file, as far as to where the journal is handed over; whether that is next.
    fn take_steps(&self, folders: &mut Folders, one: &mut OnItsWay) -> Result<bool, Failure> {
        while let Some(step) = one.naming.next() {
            if step == Step::HandOver {
                return Ok(true);
            }
            let done = self.small_step(folders, one, step)?;
            one.naming.did(done.is_ok());
            one.failed = one.failed.take().or(done.err());
        }
        Ok(false)
    }

    fn small_step(
        &self,
        folders: &mut Folders,
        one: &OnItsWay,
        step: Step,
    ) -> Result<Result<(), String>, Failure> {
        let (entry, file) = (&one.ready.kept, one.small.file.as_fd());
        match step {
            Step::ReadBack => self.read_back(file, entry.source.bytes, one.ready.hash),
            Step::Dress => reason_of(self.gauges.name_ns.time(|| self.dress(file, entry))),
            Step::Name => {
                self.run.check()?;
                let name = || self.name_small(folders, entry, &one.small);
                let named = self.gauges.name_ns.time(name);
                tell_named(entry, &named);
                reason_of(named)
            }
            Step::Sync | Step::HandOver => Ok(Ok(())),
            Step::NoteDone | Step::NotePlaced | Step::TakeBack => {
                self.note(entry, one.ready.hash, None, step).map(Ok)
            }
        }
    }

    /// Notes in the journal what a step says of a file.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn note(
        &self,
        entry: &Entry,
        hash: Option<Sum>,
        partial: Option<&Partial>,
        step: Step,
    ) -> Result<(), Failure> {
        let journal = &self.destination.site().kept().journal;
        match step {
            Step::NoteDone => journal.done(entry.source.key(), hash, partial),
            Step::NotePlaced => journal.placed(&entry.source),
            Step::HandOver => journal.hand_over(),
            Step::TakeBack => journal.undone(entry.source.key()),
            Step::Sync | Step::ReadBack | Step::Dress | Step::Name => Ok(()),
        }
    }

    /// The copy is over: a file that was noted and is not named is taken back.
    fn break_off(&self, one: &mut OnItsWay) -> Result<(), Failure> {
        one.naming.did(false);
        match one.naming.next() {
            Some(step) => self.note(&one.ready.kept, None, None, step),
            None => Ok(()),
        }
    }

    /// A group of small files: to the device, read back where asked for, named.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn finish_group(&self, folders: &mut Folders, files: &[Ready<Arc<Entry>>]) -> Result<(), Failure> {
        if self.plan.durable {
            self.sync_all(Some(folders))?;
        }
        let named = self.name_group(folders, files)?;
        let mut done = Vec::with_capacity(named.len());
        for (ready, result) in named {
            match result {
                Ok(()) => done.push(ready),
                Err(reason) => self.ledger.failed(&ready.kept, &reason)?,
            }
        }
        self.ledger.done(&done)
    }

    /// Everything that was written to the destination goes to the device. By the thread's own descriptor: the kernel says
    /// once to each that something could not be written.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System); what ended the copy meanwhile.
    pub fn sync_all(&self, folders: Option<&Folders>) -> Result<(), Failure> {
        let base = folders.map(Folders::base);
        let sync = || base.map_or(Ok(()), |base| synced(file::sync_file_system(base)));
        let synced = self.gauges.sync_ns.time(sync);
        debug!(is_done = synced.is_ok(), "destination synced");
        synced.map_err(|error| Failure::system("destination", &error))?;
        self.run.check()
    }

    /// Reads a file of `bytes` bytes that was brought to the device from there, if that is asked for; the reason where it is not what was received.
    ///
    /// # Errors
    /// That the copy is over.
    pub fn read_back(
        &self,
        file: BorrowedFd<'_>,
        bytes: u64,
        hash: Option<Sum>,
    ) -> Result<Result<(), String>, Failure> {
        let Some(hash) = hash.filter(|_| self.plan.reads_back()) else {
            return Ok(Ok(()));
        };
        let read = self.hash_on_device(file, bytes, hash.kind())?;
        Ok(match read {
            Ok(found) if found == hash => Ok(()),
            Ok(_) => Err("the data read back from the device differ from the data received".to_owned()),
            Err(error) => Err(format!("read back: {}", in_words(&error))),
        })
    }

    fn hash_on_device(
        &self,
        file: BorrowedFd<'_>,
        bytes: u64,
        kind: SumKind,
    ) -> Result<io::Result<Sum>, Failure> {
        let opened = file::forget(file, 0, 0).and_then(|()| {
            let direct = file::reopen(file, OpenFlags::READ | OpenFlags::DIRECT);
            // Where nothing can be read past the page cache it was dropped just now, or memory is all there is.
            direct.or_else(|_| file::reopen(file, OpenFlags::READ))
        });
        let file = match opened {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let mut frame = crate::Frame::new(READ_BACK_BYTES);
        let mut hasher = Hasher::new(kind);
        let mut offset = 0;
        loop {
            self.run.check()?;
            self.run.beat();
            let room = frame.room();
            let read = match self
                .gauges
                .file_ns
                .time(|| file::read_once_at(file.as_fd(), room, offset))
            {
                Ok(read) => read,
                Err(error) => return Ok(Err(error)),
            };
            let is_end = offset + read as u64 >= bytes;
            // Past the page cache a read begins at a whole page.
            let used = if is_end { read } else { read - read % PAGE_BYTES };
            self.gauges.hash_ns.time(|| hasher.update(&room[..used]));
            offset += used as u64;
            if is_end || used == 0 {
                return Ok(Ok(hasher.sum()));
            }
        }
    }
}

/// Whether a file system makes no files without a name.
fn has_no_nameless(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, Unsupported};
    matches!(error.kind(), Unsupported | IsADirectory | InvalidInput)
}
