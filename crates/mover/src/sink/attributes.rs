//! What attributes a name should have, and what is to be done about the extended ones that it has.

use std::io;
use std::os::fd::BorrowedFd;

use farline_sys::file;

use super::losses::Losses;
use super::owner::Belongs;
use crate::message::Xattr;
use crate::xattrs::xattrs_of;

/// Bits of a folder: its set-group and sticky bits give nobody rights.
pub const FOLDER_BITS: u32 = 0o3777;
/// The access control list that permission bits are a part of.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";

/// What a name should be like.
#[derive(Debug, Clone, Copy)]
pub struct Attributes<'a> {
    /// Permission bits.
    pub mode: u32,
    /// Time of last change, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of last change of anything about it.
    pub ctime_ns: i64,
    /// To whom it is to belong.
    pub belongs: Belongs,
    /// Extended attributes; all of those that copies take.
    pub xattrs: &'a [Xattr],
}

/// What is to be done about extended attributes.
#[derive(Debug, Default)]
pub struct XattrChanges<'a> {
    set: Vec<&'a Xattr>,
    remove: Vec<Vec<u8>>,
}

impl XattrChanges<'_> {
    /// Whether nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.remove.is_empty()
    }

    /// The same without access control lists: they are rights, as permission bits are.
    pub fn without_lists(mut self) -> Self {
        let is_list = |name: &[u8]| name.starts_with(b"system.posix_acl_");
        self.set.retain(|xattr| !is_list(&xattr.name));
        self.remove.retain(|name| !is_list(name));
        self
    }

    /// Removes what is not to be there, sets the others, and says where that is not kept.
    ///
    /// # Errors
    /// The kernel's.
    pub fn apply(&self, losses: &Losses, file: BorrowedFd<'_>) -> io::Result<()> {
        for name in &self.remove {
            file::remove_xattr(file, name)?;
        }
        for xattr in &self.set {
            losses.keep_xattrs(file, std::slice::from_ref(*xattr))?;
        }
        Ok(())
    }
}

/// What makes the attributes of `file` those that are wanted, and no others of the kinds that copies take.
///
/// # Errors
/// The kernel's.
pub fn xattr_changes<'a>(file: BorrowedFd<'_>, wanted: &'a [Xattr]) -> io::Result<XattrChanges<'a>> {
    let there = xattrs_of(file)?;
    let is_wanted = |name: &[u8]| wanted.iter().any(|xattr| xattr.name == name);
    let mut set: Vec<_> = wanted.iter().filter(|xattr| !there.contains(xattr)).collect();
    // Last: a list may forbid its owner the others.
    set.sort_by_key(|xattr| xattr.name == ACCESS_LIST);
    Ok(XattrChanges {
        set,
        remove: there
            .iter()
            .filter(|xattr| !is_wanted(&xattr.name))
            .map(|xattr| xattr.name.clone())
            .collect(),
    })
}
