//! What a destination could not keep, counted by kind.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use farline_spec::{Attribute, NotKept};
use farline_sys::file;
use tracing::debug;

use super::words::{POISONED, in_words};
use crate::message::Xattr;
use crate::path_text::one_line;

/// Kinds of losses that are told apart; what comes more is none that this end knows.
const MOST_KINDS: usize = 32;
/// Why nothing is set of a link where it would not stay with the link.
pub const FOLLOWS: &str = "the file system would set it of what the link leads to";

/// What could not be kept, by kind.
#[derive(Debug, Default)]
pub struct Losses(Mutex<BTreeMap<(Attribute, String), u64>>);

impl Losses {
    /// As a report has them.
    pub fn told(&self) -> Vec<NotKept> {
        let losses = self.0.lock().expect(POISONED);
        let told = losses.iter().map(|((attribute, how), names)| NotKept {
            attribute: *attribute,
            how: how.clone(),
            names: *names,
        });
        told.collect()
    }

    /// Something of so many names could not be kept.
    pub fn lose(&self, attribute: Attribute, how: &str, names: u64) {
        debug!(attribute = ?attribute, reason = how, names, "attribute not kept");
        let mut losses = self.0.lock().expect(POISONED);
        let key = (attribute, one_line(how));
        if losses.len() < MOST_KINDS || losses.contains_key(&key) {
            *losses.entry(key).or_default() += names;
        }
    }

    /// Sets extended attributes; says where they are not kept.
    ///
    /// # Errors
    /// The kernel's, besides that the file system cannot.
    pub fn keep_xattrs(&self, file: BorrowedFd<'_>, xattrs: &[Xattr]) -> io::Result<()> {
        for xattr in xattrs {
            match file::set_xattr(file, &xattr.name, &xattr.value) {
                Err(error) if file::is_lacking(&error) => {
                    self.lose(Attribute::Xattr, &in_words(&error), 1);
                }
                Err(error) if file::is_too_large(&error) => {
                    self.lose(Attribute::Xattr, "more than the file system supports per file", 1);
                }
                set => set?,
            }
        }
        Ok(())
    }
}
