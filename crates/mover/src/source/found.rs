//! A name found at a source, as the walk hands it on: no number yet, nothing sent.

use std::sync::Arc;

use farline_sys::file::FileFacts;

use super::held::Held;
use crate::message::{Entry, EntryKind, Xattr};
use crate::sum::Sum;

/// One name.
#[derive(Debug)]
pub(super) struct Found {
    /// Number of the source.
    pub(super) origin: u32,
    /// Whether links were followed on the way to it or at it.
    pub(super) is_through_link: bool,
    /// How often it has been announced, this time included.
    pub(super) tries: u8,
    /// Number of the file that it was one more name of, which could not be copied.
    pub(super) apart_from: Option<u64>,
    /// Path below the destination, and below the source's folder.
    pub(super) path: Box<[u8]>,
    /// What it is.
    pub(super) what: What,
    /// What was seen of it: what is read later has to be this still.
    pub(super) facts: FileFacts,
    /// When that was seen, at the latest; nanoseconds since 1970. Of files alone.
    pub(super) seen_ns: i64,
    /// Its content, where that was read when it was found.
    pub(super) held: Option<Arc<Held>>,
    /// Attributes, where asked for.
    pub(super) xattrs: Vec<Xattr>,
}

/// What a name stands for.
#[derive(Debug)]
pub(super) enum What {
    /// A regular file, with its hash where the sync level asks for it.
    File(Option<Box<Sum>>),
    /// A folder.
    Folder,
    /// A symbolic link to there.
    Link(Box<[u8]>),
}

impl Found {
    /// Bytes of content.
    pub(super) const fn bytes(&self) -> u64 {
        match self.what {
            What::File(_) => self.facts.bytes,
            _ => 0,
        }
    }

    /// Bytes that its entry keeps in memory at both ends: names and attributes.
    pub(super) fn entry_bytes(&self) -> usize {
        let xattrs = self
            .xattrs
            .iter()
            .map(|xattr| xattr.name.len() + xattr.value.len());
        let target = match &self.what {
            What::Link(target) => target.len(),
            _ => 0,
        };
        self.path.len() + target + xattrs.sum::<usize>()
    }

    /// What the other end is told; `link_to` is the number of the file that this is one more name of.
    pub(super) fn entry(&self, link_to: Option<u64>) -> Entry {
        let kind = match (&self.what, link_to) {
            (_, Some(to)) => EntryKind::HardLink { to },
            (What::File(hash), None) => EntryKind::File {
                bytes: self.facts.bytes,
                hash: hash.as_deref().copied(),
            },
            (What::Folder, None) => EntryKind::Folder,
            (What::Link(target), None) => EntryKind::Link {
                target: target.to_vec(),
            },
        };
        Entry {
            path: self.path.to_vec(),
            kind,
            mode: self.facts.mode,
            mtime_ns: self.facts.mtime_ns,
            ctime_ns: self.facts.ctime_ns,
            xattrs: self.xattrs.clone(),
        }
    }
}
