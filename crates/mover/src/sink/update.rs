//! Attributes of what is at the destination already: brought to the source's without a byte of content.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_spec::{Attribute, SyncLevel};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::attributes::{Attributes, FOLDER_BITS, XattrChanges, xattr_changes};
use super::decide::Decider;
use super::journal::Source;
use super::losses::FOLLOWS;
use super::owner_rights::{self, OWNER};
use super::place::Folders;
use super::plan::Mode;
use super::words::in_words;
use crate::root::split;

/// Bits that lend rights, or keep others from removing names.
const SPECIAL_BITS: u32 = 0o7000;
/// What the owner needs to change attributes that permission bits guard.
const OWNER_WRITES: u32 = 0o600;

impl Decider {
    /// Gives a file or link that is there the source's attributes, in a dry run only looks; whether any differ. Where its name
    /// alone says that it is there nobody knows whether it is the same file: that is left as it is.
    pub fn update(
        &self,
        folders: &mut Folders,
        path: &[u8],
        wanted: Attributes<'_>,
        facts: &FileFacts,
    ) -> bool {
        let may = self.plan.mode != Mode::Nothing && self.plan.spec.sync_level != SyncLevel::Exists;
        let updated = match facts.kind {
            FileKind::File if may => self.update_file(folders, path, wanted, facts),
            FileKind::Link if may => self.update_link(folders, path, wanted, facts),
            _ => Ok(false),
        };
        updated.unwrap_or_else(|error| {
            self.problems
                .add(path, &format!("time, mode and attributes: {}", in_words(&error)));
            false
        })
    }

    fn update_file(
        &self,
        folders: &mut Folders,
        path: &[u8],
        wanted: Attributes<'_>,
        facts: &FileFacts,
    ) -> io::Result<bool> {
        let bits = wanted.belongs.file_bits();
        let new_mode = self.plan.spec.modes && self.has_other_mode(wanted, facts, bits);
        let new_time = self.has_other_time(path, wanted, facts);
        let new_owner = wanted.belongs.differs(facts);
        if !new_mode && !new_time && !new_owner && !self.plan.spec.xattrs {
            return Ok(false);
        }
        let (parent, name) = split(path);
        let folder = folders.get(parent)?;
        let file = file::open_beneath(folder.as_fd(), name, OpenFlags::PATH | OpenFlags::NO_FOLLOW, 0)?;
        let now = file::stat_fd(file.as_fd())?;
        if (now.device, now.inode) != (facts.device, facts.inode) {
            return Err(io::Error::other("another file took its name in the meantime"));
        }
        let mut opened = None;
        if self.plan.spec.xattrs {
            opened = Some(file::reopen(file.as_fd(), OpenFlags::READ | OpenFlags::NO_WAIT)?);
        }
        let changes = match &opened {
            Some(opened) => xattr_changes(opened.as_fd(), wanted.xattrs)?,
            None => XattrChanges::default(),
        };
        let differs = new_mode || new_time || new_owner || !changes.is_empty();
        if !differs || self.plan.mode == Mode::Dry {
            return Ok(differs);
        }
        // A new owner takes away the bits that lend rights.
        let mut mode = (new_mode || (self.plan.spec.modes && new_owner)).then_some(wanted.mode & bits);
        if let Some(opened) = opened.filter(|_| !changes.is_empty())
            && let Err(error) = changes.apply(&self.destination.losses, opened.as_fd())
        {
            if error.kind() != io::ErrorKind::PermissionDenied {
                return Err(error);
            }
            // Its own bits forbid it for a moment.
            file::set_mode(file.as_fd(), facts.mode & 0o7777 | OWNER_WRITES)?;
            mode.get_or_insert(facts.mode & 0o7777);
            changes.apply(&self.destination.losses, opened.as_fd())?;
        }
        if new_owner {
            wanted.belongs.give(file.as_fd())?;
        }
        if new_time {
            self.destination.keep_time(file.as_fd(), wanted.mtime_ns)?;
        }
        // Last: an access control list changes the bits as well.
        match mode.or_else(|| (self.plan.spec.modes && self.plan.spec.xattrs).then_some(wanted.mode & bits)) {
            Some(mode) => self.destination.keep_mode(file.as_fd(), mode).map(|()| true),
            None => Ok(true),
        }
    }

    fn update_link(
        &self,
        folders: &mut Folders,
        path: &[u8],
        wanted: Attributes<'_>,
        facts: &FileFacts,
    ) -> io::Result<bool> {
        let (new_time, new_owner) = (
            self.has_other_time(path, wanted, facts),
            wanted.belongs.differs(facts),
        );
        if (new_time || new_owner) && self.plan.mode == Mode::Real {
            if self.destination.follows_links() {
                self.destination.losses.lose(Attribute::LinkTime, FOLLOWS, 1);
                return Ok(false);
            }
            let (parent, name) = split(path);
            let parent = folders.get(parent)?;
            if new_owner {
                wanted.belongs.give_at(parent.as_fd(), name)?;
            }
            if new_time {
                let set = self
                    .destination
                    .set_link_time(parent.as_fd(), name, wanted.mtime_ns);
                if let Err(error) = &set {
                    self.destination
                        .losses
                        .lose(Attribute::LinkTime, &in_words(error), 1);
                }
                return Ok(set.is_ok() || new_owner);
            }
        }
        Ok(new_time || new_owner)
    }

    /// Whether the folder that is open is not what it should be; its extended attributes are set and its owner has all rights
    /// to it from now on, unless in a dry run. Its mode and time follow when all that is in it is there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn update_folder(
        &self,
        folder: BorrowedFd<'_>,
        wanted: Attributes<'_>,
        facts: &FileFacts,
    ) -> io::Result<bool> {
        let new_mode = self.plan.spec.modes && self.has_other_mode(wanted, facts, FOLDER_BITS);
        let changes = match self.plan.spec.xattrs {
            true => xattr_changes(folder, wanted.xattrs)?,
            false => XattrChanges::default(),
        };
        if self.plan.mode == Mode::Real {
            // Not before its access control list was read, which has these rights too.
            if self.plan.spec.modes && owner_rights::are_incomplete(facts.mode) {
                self.destination.keep_mode(folder, facts.mode | OWNER)?;
            }
            if !changes.is_empty() {
                changes.apply(&self.destination.losses, folder)?;
                owner_rights::complete(folder)?;
            }
        }
        let new_owner = wanted.belongs.differs(facts);
        Ok(new_mode || new_owner || self.has_other_time(b"", wanted, facts) || !changes.is_empty())
    }

    fn has_other_time(&self, path: &[u8], wanted: Attributes<'_>, facts: &FileFacts) -> bool {
        let source = Source {
            path: path.to_vec(),
            bytes: facts.bytes,
            mtime_ns: wanted.mtime_ns,
            ctime_ns: wanted.ctime_ns,
        };
        self.plan.spec.times && !self.destination.is_same_time(facts.mtime_ns, &source)
    }

    /// Whether any of `bits` are others and could be made the same, or special bits are set that the source does not have.
    fn has_other_mode(&self, wanted: Attributes<'_>, facts: &FileFacts, bits: u32) -> bool {
        let special = bits & SPECIAL_BITS;
        self.destination.is_other_mode(facts.mode, wanted.mode)
            || facts.mode & special != wanted.mode & special
            || facts.mode & SPECIAL_BITS & !wanted.mode != 0
    }
}
