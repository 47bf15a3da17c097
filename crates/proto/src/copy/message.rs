//! What the two ends of a copy tell each other besides the data, in frames of postcard messages one behind the other.
//!
//! ```text
//! sending end                                      receiving end
//! Catalogue: Begin                 ──►
//!                                   ◄── Feedback ── Ready
//! Catalogue: Entry, Entry, …, End  ──►              makes folders and links, looks at what is there and what a journal proves
//!                                   ◄── Feedback ── Answers
//!   data streams: Chunk, Pack      ══►              writes, checks
//! Catalogue: Hole, Settled, Lost   ──►              (and Unannounced, AllAnnounced, for whoever reads this end's receipt)
//!                                   ◄── Feedback ── Whole, Done, Failed, Again, Unopened, OutOfStep, Apart
//!                                   ◄── Feedback ── Finished   after End, when every entry is settled
//! ```
//!
//! Entries are numbered from 0 in the order in which they come. A frame of data may overtake the message that its file is
//! about, because it goes over another stream: the receiving end waits for the entry.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use farline_spec::{Failure, FailureKind, FileKind, FileStatus};

use super::sum::Sum;
use super::tree_hash::is_subtree;

/// Longest path, in bytes (PATH_MAX).
pub const MAX_PATH_BYTES: usize = 4096;
/// Most bytes of messages in one frame.
pub const MESSAGE_FRAME_BYTES: usize = 256 * 1024;
/// Most bytes of extended attributes of one entry, names and values together.
pub const MOST_XATTR_BYTES: usize = 64 * 1024;
/// Sealed frames of data of one session that may not open: each is one attempt to forge a seal, and one chunk to be sent again.
pub const MOST_UNOPENED: u32 = 4_096;

/// Longest name of a user or a group.
pub const MOST_OWNER_BYTES: usize = 256;

/// Where a file may be cut: chunks, holes and proved parts begin at multiples of this, and end at one or with the file. Finer
/// than a chunk, so that a hole need not fill one to stay one; what is sent around it goes in shorter chunks.
pub const GRAIN_BYTES: u64 = 64 * 1024;

/// Whether a file of `file_bytes` bytes may have a part there ([`GRAIN_BYTES`]).
pub fn is_part(offset: u64, bytes: u64, file_bytes: u64) -> bool {
    let end = offset
        .checked_add(bytes)
        .filter(|end| bytes > 0 && *end <= file_bytes);
    let is_end = |end| end == file_bytes || end % GRAIN_BYTES == 0;
    offset % GRAIN_BYTES == 0 && end.is_some_and(is_end)
}

/// Whether a part of a file of `file_bytes` bytes may be a chunk where the longest has `most` bytes: it is a subtree of the file's
/// hash, too.
pub fn is_chunk(offset: u64, bytes: u64, file_bytes: u64, most: u64) -> bool {
    bytes <= most && is_part(offset, bytes, file_bytes) && is_subtree(offset, bytes, file_bytes)
}

/// Whether an extended attribute of this name is copied: what a user says about his files and access control lists, nothing
/// else that gives rights or belongs to one host.
pub fn takes_xattr(name: &[u8]) -> bool {
    let is_list = matches!(name, b"system.posix_acl_access" | b"system.posix_acl_default");
    (is_list || name.starts_with(b"user.")) && !name.contains(&0)
}

/// One name at the sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Path below the destination; `/` between names, no `.` or `..` among them, not empty, not beginning or ending with `/`.
    #[serde(with = "serde_bytes")]
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// Permission bits, the lowest twelve.
    pub mode: u32,
    /// Time of last change, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of last change of anything about it: with it a journal knows its source again.
    pub ctime_ns: i64,
    /// Extended attributes, where asked for: name and value.
    pub xattrs: Vec<Xattr>,
}

/// One extended attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xattr {
    /// Name, with its namespace (`user.comment`).
    #[serde(with = "serde_bytes")]
    pub name: Vec<u8>,
    /// Value.
    #[serde(with = "serde_bytes")]
    pub value: Vec<u8>,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A regular file.
    File {
        /// Its length.
        bytes: u64,
        /// Its BLAKE3, where the sync level asks for it.
        hash: Option<Sum>,
    },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link {
        /// Where it points, as it is written.
        #[serde(with = "serde_bytes")]
        target: Vec<u8>,
    },
    /// One more name of the file with this number.
    HardLink {
        /// Number of the entry that has the content.
        to: u64,
    },
}

/// Whose names are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Number of the user.
    pub user: u32,
    /// Number of the group.
    pub group: u32,
    /// What the user is called at the sending end; empty if nothing.
    #[serde(with = "serde_bytes")]
    pub user_name: Vec<u8>,
    /// What the group is called there.
    #[serde(with = "serde_bytes")]
    pub group_name: Vec<u8>,
}

/// Of a folder whose content is the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Top {
    /// Permission bits, the lowest twelve.
    pub mode: u32,
    /// Time of last change, nanoseconds since 1970.
    pub mtime_ns: i64,
}

/// Reason of a name that was found and is gone: the source has it no more, as if it had never been there.
pub const VANISHED: &str = "disappeared while it was copied";

/// Whether `reason` says that a name is gone, as [`VANISHED`] or in the word of the first version.
pub fn has_vanished(reason: &str) -> bool {
    reason == VANISHED || reason.starts_with("vanished ")
}

/// What the sending end says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Catalogue {
    /// The first message.
    Begin {
        /// Longest chunk, in bytes: what the spec says, or what the sending end chose.
        chunk_bytes: u64,
        /// What the destination folder itself should be like: as the one source, when that is what is in a folder.
        top: Option<Top>,
        /// Whether the sending end wants to hear [`Feedback::Whole`]: the kernel takes bytes from its files when they leave,
        /// so that it knows only then that a file was the same to the end.
        asks_whole: bool,
    },
    /// The next entry.
    Entry(Entry),
    /// This part of a file ([`is_part`]) is a hole: zeros that are not sent.
    Hole {
        /// Number of the file.
        file: u64,
        /// Where it begins.
        offset: u64,
        /// How long it is.
        bytes: u64,
    },
    /// All of a file has been read and it did not change meanwhile: it may take its name once it is whole. A file that
    /// goes in a pack has this in the pack instead.
    Settled {
        /// Number of the file.
        file: u64,
        /// Its sum as the sending end knows it; `None` where nothing is hashed.
        hash: Option<Sum>,
    },
    /// A file cannot be sent: it vanished, changed while it was read, cannot be read. Nothing that came under this number
    /// may take its name.
    Lost {
        /// Number of the file.
        file: u64,
        /// Why, one line.
        reason: String,
        /// Whether it is tried once more, as a later entry of the same path: then it has not failed yet.
        again: bool,
    },
    /// There are no more entries.
    End {
        /// How many there were.
        entries: u64,
        /// Whether every folder could be read: only then may what is not among the entries be deleted.
        whole: bool,
    },
    /// A name that the sources have, or should have, and that is no entry: it cannot be read, is of a kind that is not copied
    /// (a device, a link that is skipped), or two sources give it. It has no number and no answer, and what the destination
    /// has of that name is not deleted.
    Unannounced {
        /// Path below the destination, as an entry's; of a source that is not there the name that was asked for.
        #[serde(with = "serde_bytes")]
        path: Vec<u8>,
        /// What it is.
        kind: FileKind,
        /// [`FileStatus::Failed`] or [`FileStatus::Skipped`].
        status: FileStatus,
        /// Why, one line.
        reason: String,
    },
    /// Every name that the sources have was said: entries that follow are further tries.
    AllAnnounced,
    /// Whose the entries that follow are, up to the next such word; where the spec asks for owners or groups. The first before any
    /// entry is about the folder whose content is the source, if there is one.
    Owner(Owner),
    /// Extended attributes of the folder whose content is the source, where the spec asks for them; before any entry, and from
    /// version 7 of the control protocol on.
    TopXattrs(Vec<Xattr>),
}

/// A part of a file ([`is_part`]) that the receiving end has on disk and proved before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proved {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Sum of this part, where it is a subtree of the file's; `None` where nothing was hashed.
    pub hash: Option<Sum>,
}

/// What the receiving end wants of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wants {
    /// All of its content.
    All,
    /// What is not among these parts.
    Rest(Vec<Proved>),
    /// Nothing: it is there already. The hash where a journal has it.
    Present(Option<Sum>),
    /// Nothing: it was made (folders, links, further names, empty files) or would be (a dry run).
    Made,
    /// Nothing: it may not be there, or cannot be made; one line says why.
    Refused(String),
    /// Nothing: it is there already, and its attributes were set to the source's, or would be (a dry run); from version 2 of the
    /// control protocol on. The hash as of `Present`.
    Updated(Option<Sum>),
    /// Nothing: the spec leaves it out for what the destination has or has not; one line says why.
    LeftOut(String),
}

/// What the receiving end says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Feedback {
    /// The first message.
    Ready {
        /// Whether nothing of the destination was there: every file will be wanted whole, no answer need be waited for.
        fresh: bool,
    },
    /// Answers for the entries from `first` on, in order.
    Answers {
        /// Number of the first.
        first: u64,
        /// One for each.
        wants: Vec<Wants>,
    },
    /// Every byte of the file is here, and it is not settled yet; said where it was asked for.
    Whole {
        /// Number of the file.
        file: u64,
    },
    /// The file is whole, proved, and has its name.
    Done {
        /// Number of the file.
        file: u64,
        /// Its sum as the receiving end knows it; `None` where nothing is hashed.
        hash: Option<Sum>,
    },
    /// The file could not be made; nothing of it has its name.
    Failed {
        /// Number of the file.
        file: u64,
        /// Why, one line.
        reason: String,
    },
    /// The chunk came damaged: once more.
    Again {
        /// Number of the file.
        file: u64,
        /// Where the chunk begins; 0 where the file came in a pack.
        offset: u64,
        /// How long it is; all of the file where it came in a pack.
        bytes: u64,
    },
    /// What was deleted, or would be in a dry run.
    Deleted {
        /// Path below the destination.
        #[serde(with = "serde_bytes")]
        path: Vec<u8>,
    },
    /// Every entry is settled, folders have their times, the journal is gone. The last message.
    Finished {
        /// What went wrong besides files: deletion refused for a count that is another, say; one line each.
        problems: Vec<String>,
    },
    /// A sealed frame of data did not open: what it carried once more; from version 3 of the control protocol on.
    Unopened {
        /// The stream.
        stream: u16,
        /// Number of the frame on it, from 0.
        record: u64,
    },
    /// From this frame on nothing of the stream can be told apart: all that it carried once more, and nothing further on it; from
    /// version 3 of the control protocol on.
    OutOfStep {
        /// The stream.
        stream: u16,
        /// Number of the first frame that did not come.
        record: u64,
    },
    /// The file that this is a further name of could not be copied: this name is to come by itself, or is lost as well; from
    /// version 3 of the control protocol on. Answered by [`Catalogue::Lost`].
    Apart {
        /// Number of the name.
        file: u64,
    },
}

/// Appends one message to the payload of a frame under way.
///
/// # Errors
/// [`FailureKind::Internal`] when it cannot be written down.
pub fn append<M: Serialize>(payload: &mut Vec<u8>, message: &M) -> Result<(), Failure> {
    let taken = std::mem::take(payload);
    *payload = postcard::to_extend(message, taken)
        .map_err(|error| Failure::new(FailureKind::Internal, format!("message: {error}")))?;
    Ok(())
}

/// The messages of a frame's payload.
///
/// # Errors
/// [`FailureKind::Protocol`] at the first that is none.
pub fn messages<M: DeserializeOwned>(mut payload: &[u8]) -> Result<Vec<M>, Failure> {
    let mut found = Vec::new();
    while !payload.is_empty() {
        let (message, rest) = postcard::take_from_bytes(payload)
            .map_err(|error| Failure::new(FailureKind::Protocol, format!("an invalid message: {error}")))?;
        found.push(message);
        payload = rest;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(path: &[u8]) -> Catalogue {
        Catalogue::Entry(Entry {
            path: path.to_vec(),
            kind: EntryKind::File {
                bytes: 1 << 50,
                hash: None,
            },
            mode: 0o644,
            mtime_ns: -1,
            ctime_ns: i64::MAX,
            xattrs: vec![Xattr {
                name: b"user.a".to_vec(),
                value: vec![0, 255],
            }],
        })
    }

    #[test]
    fn parts_begin_and_end_at_the_grain_or_with_their_file() {
        let file = 3 * GRAIN_BYTES + 5;
        for (offset, bytes) in [(0, file), (GRAIN_BYTES, GRAIN_BYTES), (3 * GRAIN_BYTES, 5)] {
            assert!(is_part(offset, bytes, file), "{offset} {bytes}");
        }
        let wrong = [
            (0, 0),
            (0, file + 1),
            (0, 5),
            (5, file - 5),
            (3 * GRAIN_BYTES, GRAIN_BYTES),
            (GRAIN_BYTES, u64::MAX),
        ];
        for (offset, bytes) in wrong {
            assert!(!is_part(offset, bytes, file), "{offset} {bytes}");
        }
    }

    #[test]
    fn chunks_are_parts_that_are_subtrees_and_not_too_long() {
        const G: u64 = GRAIN_BYTES;
        let file = 7 * G + 5;
        for (offset, bytes) in [(0, 4 * G), (2 * G, 2 * G), (4 * G, 3 * G + 5), (7 * G, 5)] {
            assert!(is_chunk(offset, bytes, file, 4 * G), "{offset} {bytes}");
        }
        // Between others, at no multiple of itself, longer than chunks are, no part.
        for (offset, bytes) in [(0, 3 * G), (G, 2 * G), (0, file), (0, 1024)] {
            assert!(!is_chunk(offset, bytes, file, 4 * G), "{offset} {bytes}");
        }
    }

    #[test]
    fn messages_follow_one_another_in_a_frame() {
        let all = [
            entry(b"a\xff\n/b"),
            Catalogue::End {
                entries: 1,
                whole: true,
            },
        ];
        let mut payload = Vec::new();
        for message in &all {
            append(&mut payload, message).unwrap();
        }
        assert_eq!(messages::<Catalogue>(&payload).unwrap(), all);
        payload.pop();
        assert_eq!(
            messages::<Catalogue>(&payload).unwrap_err().kind,
            FailureKind::Protocol
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoders_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = messages::<Catalogue>(&bytes);
            let _ = messages::<Feedback>(&bytes);
        }
    }
}
