//! Small files, and how any file gets its name: never before it is whole, proved, and on the device where that is asked for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use farline_spec::{Attribute, Failure, kernel_words};
use farline_sys::file::{self, OpenFlags};
use farline_sys::page_buffer::PAGE_BYTES;
use tracing::{debug, debug_span};

use super::able::synced;
use super::entry::Entry;
use super::finalize_queue::Written;
use super::place::{Folders, split};
use super::shared::{Shared, ends_all, in_words};
use crate::path_text::Shown;

/// Permission bits of a file: the bits that lend its owner's rights are not taken from another host.
pub const FILE_BITS: u32 = 0o777;
/// What is read at once to read a file back.
const READ_BACK_BYTES: usize = 1 << 20;

impl Shared {
    /// Makes a small file: written, but without its name.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_small(
        &self,
        folders: &mut Folders,
        entry: &Arc<Entry>,
        content: &[u8],
        hash: Option<[u8; 32]>,
    ) -> io::Result<Written> {
        let (parent, _) = split(&entry.source.path);
        let (file, staged) = self
            .gauges
            .name_ns
            .time(|| self.nameless(folders, parent, entry.mode))?;
        let entry = Arc::clone(entry);
        let written = Written {
            entry,
            file,
            staged,
            hash,
        };
        self.gauges
            .file_ns
            .time(|| file::write_all_at(written.file.as_fd(), content, 0))
            .inspect_err(|_| self.unstage(&written))?;
        self.gauges.file_bytes.add(content.len() as u64);
        Ok(written)
    }

    /// A file without a name in the folder `parent`, or one in the staging folder where there are none.
    fn nameless(
        &self,
        folders: &mut Folders,
        parent: &[u8],
        mode: u32,
    ) -> io::Result<(OwnedFd, Option<Vec<u8>>)> {
        let access = if self.reads_back() {
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
            Err(error) => return Err(error),
        }
        let staging = &self.site().kept().staging;
        let name = staging.new_name();
        let flags = access | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let file = file::open_at(Some(staging.fd()), &name, flags, mode)?;
        Ok((file, Some(name)))
    }

    /// Gives a small file what it should be like, and its name; in its place where it `replaces`. The reason where that cannot be.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn name_small(
        &self,
        folders: &mut Folders,
        written: &Written,
    ) -> Result<Result<(), String>, Failure> {
        let began = std::time::Instant::now();
        let named = self.dress(written.file.as_fd(), &written.entry).and_then(|()| {
            let path = &written.entry.source.path;
            let (parent, name) = split(path);
            let folder = folders.get(parent)?;
            let staging = || &self.site().kept().staging;
            let replaces = written.entry.replaces;
            match &written.staged {
                None if !replaces => named(file::link_fd(written.file.as_fd(), folder.as_fd(), name)),
                None => {
                    let new = staging().new_name();
                    file::link_fd(written.file.as_fd(), staging().fd(), &new)?;
                    self.put_in_place(&new, folder.as_fd(), name, path)
                        .inspect_err(|_| staging().discard(&new))
                }
                Some(staged) if replaces => named(self.put_in_place(staged, folder.as_fd(), name, path)),
                Some(staged) => named(file::rename(staging().fd(), staged, folder.as_fd(), name, false)),
            }
        });
        self.gauges.name_ns.add(began.elapsed().as_nanos() as u64);
        tell_named(&written.entry, &named);
        reason_of(named)
    }

    /// Attributes, time and permission bits of a file that is whole: these last, they may forbid the others.
    ///
    /// # Errors
    /// The kernel's.
    pub fn dress(&self, file: BorrowedFd<'_>, entry: &Entry) -> io::Result<()> {
        let _within = debug_span!("entry", entry = %Shown(&entry.source.path)).entered();
        if self.durable && !self.syncs() {
            let how = "the file system does not support flushing files to the device";
            self.lose(Attribute::Sync, how, 1);
        }
        self.keep_xattrs(file, &entry.xattrs)?;
        entry.belongs.give(file)?;
        if self.spec.times {
            self.keep_time(file, entry.source.mtime_ns)?;
        }
        if self.spec.modes {
            self.keep_mode(file, entry.mode & entry.belongs.file_bits())?;
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
        hash: Option<[u8; 32]>,
    ) -> Result<Result<(), String>, Failure> {
        let written = match self.write_small(folders, entry, content, hash) {
            Ok(written) => written,
            Err(error) => return reason_of(Err(error)),
        };
        let mut named = self.name_group(folders, std::slice::from_ref(&written))?;
        Ok(match named.pop() {
            Some((_, Err(reason))) => {
                self.unstage(&written);
                Err(reason)
            }
            _ => Ok(()),
        })
    }

    /// Whether the journal says that a file is done before it has its name: where times do not tell, only that says whose
    /// file it is. Where another file has the name until then it would speak of that one.
    pub fn is_noted_before(&self, entry: &Entry) -> bool {
        !self.spec.times && !entry.replaces
    }

    /// Names small files whose content is where it should be, with a record of each; what came of each.
    ///
    /// # Errors
    /// What ends the copy.
    #[expect(clippy::type_complexity, reason = "the results stand beside their files")]
    pub fn name_group<'a>(
        &self,
        folders: &mut Folders,
        files: &'a [Written],
    ) -> Result<Vec<(&'a Written, Result<(), String>)>, Failure> {
        let journal = &self.site().kept().journal;
        let before = |written: &&Written| self.is_noted_before(&written.entry);
        for written in files.iter().filter(before) {
            journal.done(written.entry.source.key(), written.hash, None)?;
        }
        if !self.spec.times {
            journal.hand_over()?;
        }
        let mut named = Vec::with_capacity(files.len());
        for (place, written) in files.iter().enumerate() {
            let key = written.entry.source.key();
            let result = self.check().and_then(|()| self.name_small(folders, written));
            match (&result, before(&written)) {
                (Ok(Ok(())), true) | (Ok(Err(_)), false) | (Err(_), _) => {}
                (Ok(Ok(())), false) => {
                    journal.done(key, written.hash, None)?;
                    journal.placed(&written.entry.source)?;
                }
                (Ok(Err(_)), true) => journal.undone(key)?,
            }
            if result.is_err() {
                // The copy is over: this one and those behind it have no names.
                for unnamed in files[place..].iter().filter(before) {
                    journal.undone(unnamed.entry.source.key())?;
                }
            }
            named.push((written, result?));
        }
        Ok(named)
    }

    /// A group of small files: to the device, read back where asked for, named.
    ///
    /// # Errors
    /// What ends the copy.
    pub fn finish_group(&self, folders: &mut Folders, files: Vec<Written>) -> Result<(), Failure> {
        if self.durable {
            self.sync_all(Some(folders))?;
        }
        let mut sound = Vec::with_capacity(files.len());
        for written in files {
            let bytes = written.entry.source.bytes;
            match self.read_back(written.file.as_fd(), bytes, written.hash)? {
                Ok(()) => sound.push(written),
                Err(reason) => {
                    self.unstage(&written);
                    self.failed(&written.entry, &reason)?;
                }
            }
        }
        let named = self.name_group(folders, &sound)?;
        let mut done = Vec::with_capacity(named.len());
        for (written, result) in named {
            match result {
                Ok(()) => done.push((Arc::clone(&written.entry), written.hash)),
                Err(reason) => {
                    self.unstage(written);
                    self.failed(&written.entry, &reason)?;
                }
            }
        }
        self.done(&done)
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
        self.check()
    }

    fn unstage(&self, written: &Written) {
        if let Some(staged) = &written.staged {
            // What is left there goes with the folder.
            let _ = self.site().kept().staging.remove(staged);
        }
    }

    /// Reads a file of `bytes` bytes that was brought to the device from there, if that is asked for; the reason where it is not what was received.
    ///
    /// # Errors
    /// That the copy is over.
    pub fn read_back(
        &self,
        file: BorrowedFd<'_>,
        bytes: u64,
        hash: Option<[u8; 32]>,
    ) -> Result<Result<(), String>, Failure> {
        let Some(hash) = hash.filter(|_| self.reads_back()) else {
            return Ok(Ok(()));
        };
        let read = self.hash_on_device(file, bytes)?;
        Ok(match read {
            Ok(found) if found == hash => Ok(()),
            Ok(_) => Err("the data read back from the device differ from the data received".to_owned()),
            Err(error) => Err(format!("read back: {}", in_words(&error))),
        })
    }

    fn hash_on_device(&self, file: BorrowedFd<'_>, bytes: u64) -> Result<io::Result<[u8; 32]>, Failure> {
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
        let mut hasher = blake3::Hasher::new();
        let mut offset = 0;
        loop {
            self.check()?;
            self.pulse.beat();
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
                return Ok(Ok(*hasher.finalize().as_bytes()));
            }
        }
    }
}

/// A result of the kernel as the reason why one file failed.
///
/// # Errors
/// What ends the copy.
pub fn reason_of(result: io::Result<()>) -> Result<Result<(), String>, Failure> {
    match result {
        Ok(()) => Ok(Ok(())),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Err(
            "another file took its name at the destination in the meantime".to_owned(),
        )),
        Err(error) => {
            ends_all(&error)?;
            Ok(Err(in_words(&error)))
        }
    }
}

/// Says what became of giving `entry` its name: with the kernel's number where it refused.
pub fn tell_named(entry: &Entry, result: &io::Result<()>) {
    let (path, replaces) = (Shown(&entry.source.path), entry.replaces);
    match result {
        Ok(()) => debug!(entry = %path, replaces, "entry named"),
        Err(error) => debug!(
            entry = %path,
            replaces,
            errno = error.raw_os_error(),
            reason = kernel_words(error),
            "entry not named"
        ),
    }
}

/// The result of giving a name: what is invalid then is the name.
///
/// # Errors
/// `InvalidFilename` where the file system does not accept this name; else the kernel's.
pub fn named(result: io::Result<()>) -> io::Result<()> {
    result.map_err(|error| match file::is_bad_name(&error) {
        true => file::bad_name(),
        false => error,
    })
}

/// Whether a file system makes no files without a name.
fn has_no_nameless(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, Unsupported};
    matches!(error.kind(), Unsupported | IsADirectory | InvalidInput)
}
