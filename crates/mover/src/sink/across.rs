//! Files whose folder is on another file system than the staging folder, in another subvolume or under another quota: no name
//! leads from one to the other, so what is whole is copied there.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_sys::file::{self, OpenFlags};

use super::able::synced;
use super::entry::Entry;
use super::finalizer::Finalizer;
use super::staging::lengthen;
use crate::reserved::STAGING;
use crate::root::split;

/// What is copied at once.
const COPIED_BYTES: usize = 1 << 20;

impl Finalizer {
    /// What naming the whole `file` of `entry` in `folder` came to; where no name leads there, a copy of it is named instead, and
    /// the file goes that is called `staged` in the staging folder.
    ///
    /// # Errors
    /// The kernel's.
    pub fn unless_across(
        &self,
        named: io::Result<()>,
        (file, staged): (BorrowedFd<'_>, Option<&[u8]>),
        entry: &Entry,
        folder: BorrowedFd<'_>,
    ) -> io::Result<()> {
        match named {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            named => return named,
        }
        let staging = &self.destination.site().kept().staging;
        let process = format!("-{}-", std::process::id()).into_bytes();
        let new = [STAGING, &process, &staging.new_name()].concat();
        let flags = OpenFlags::READ_WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        let copy = file::open_beneath(folder, &new, flags, 0o600)?;
        let name = split(&entry.source.path).1;
        self.fill(file, copy.as_fd(), entry)
            .and_then(|()| file::rename(folder, &new, folder, name, entry.replaces))
            .inspect_err(|_| {
                // What matters is why it could not be named.
                let _ = file::unlink(folder, &new);
            })?;
        if let Some(staged) = staged {
            staging.discard(staged);
        }
        Ok(())
    }

    /// Makes `copy` what `file` is, on the device where that is asked for.
    fn fill(&self, file: BorrowedFd<'_>, copy: BorrowedFd<'_>, entry: &Entry) -> io::Result<()> {
        // Its own bits may forbid to read it; it is not kept.
        let _ = file::set_mode(file, 0o600);
        let from = file::reopen(file, OpenFlags::READ)?;
        lengthen(copy, entry.source.bytes)?;
        self.each_part(from.as_fd(), |part, offset| {
            match part.iter().all(|byte| *byte == 0) {
                true => Ok(()),
                false => file::write_all_at(copy, part, offset),
            }
        })?;
        if self.plan.durable {
            synced(file::sync_data(copy))?;
        }
        if self.plan.reads_back() {
            file::forget(copy, 0, 0)?;
            let mut there = vec![0; COPIED_BYTES];
            self.each_part(from.as_fd(), |part, offset| {
                let read = file::read_at(copy, &mut there[..part.len()], offset)?;
                match there[..read] == *part {
                    true => Ok(()),
                    false => Err(io::Error::other("the data read back from the device differ")),
                }
            })?;
        }
        self.dress(copy, entry)
    }

    /// Gives `take` all that is in `from`, part by part, with where each begins.
    ///
    /// # Errors
    /// The kernel's, those of `take`, `Interrupted` where the copy ends meanwhile.
    pub fn each_part(
        &self,
        from: BorrowedFd<'_>,
        mut take: impl FnMut(&[u8], u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; COPIED_BYTES];
        let mut offset = 0;
        loop {
            if self.run.check().is_err() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.run.beat();
            match file::read_at(from, &mut buffer, offset)? {
                0 => return Ok(()),
                read => {
                    take(&buffer[..read], offset)?;
                    offset += read as u64;
                }
            }
        }
    }
}
