//! What came of a copy: of each name, at each end, in all.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::copy::PathText;

/// Exit code of a copy after which some names are not as they should be at the destination (rsync's).
pub const PARTIAL_EXIT_CODE: u8 = 23;
/// Exit code of a copy in which nothing failed but sources that vanished meanwhile (rsync's).
pub const VANISHED_EXIT_CODE: u8 = 24;

/// What became of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileStatus {
    /// Whole, proved as far as asked for, under its name.
    Copied,
    /// It was there already, by the sync level.
    Present,
    /// It was there already with the same content; attributes that differed were set to the source's.
    Updated,
    /// Its attributes would be set to the source's; this was a dry run.
    WouldUpdate,
    /// It would be copied; this was a dry run.
    WouldCopy,
    /// It would be deleted; this was a dry run.
    WouldDelete,
    /// It was deleted at the destination.
    Deleted,
    /// Left out by a rule of the spec that concerns kinds of files (sockets, devices, links to be skipped).
    Skipped,
    /// Not there as it should be; `reason` says why.
    Failed,
}

impl FileStatus {
    /// Its word in receipts and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Copied => "copied",
            Self::Present => "present",
            Self::Updated => "updated",
            Self::WouldUpdate => "would-update",
            Self::WouldCopy => "would-copy",
            Self::WouldDelete => "would-delete",
            Self::Deleted => "deleted",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }
}

/// What kind of thing a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// One more name of a file.
    HardLink,
    /// Anything else: a device, a socket, a pipe.
    Other,
}

impl FileKind {
    /// Its word in receipts and logs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Folder => "folder",
            Self::Link => "link",
            Self::HardLink => "hard-link",
            Self::Other => "other",
        }
    }
}

/// One line of a receipt: what became of one name. Lines come in the order in which names were settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiptLine {
    /// Path below the destination.
    pub path: PathText,
    /// What it is.
    pub kind: FileKind,
    /// What became of it.
    pub status: FileStatus,
    /// Length.
    pub bytes: u64,
    /// Bytes that did not have to be sent, because a journal proved them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub resumed_bytes: u64,
    /// BLAKE3 of the content in hexadecimal, as `b3sum` prints it; absent where it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blake3: Option<String>,
    /// XXH3-128 of the content in hexadecimal, over pieces of 64 KiB and then over pairs of sums; of a file of at most 64 KiB
    /// what `xxhsum -H128` prints. Absent where it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xxh3_tree: Option<String>,
    /// `none` where content was copied without any sum of it; absent where there is one, or nothing was copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Why it failed or was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Node of the destination on whose own disk it is, or was to be; absent where all of its nodes see the same files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// Names and bytes that ended alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileTally {
    /// Names.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// What one end of a copy used and how long its threads were at what. Times are sums over threads.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopyEnd {
    /// How files were read or written, the word of [`FileEngine`] that was chosen.
    pub engine: String,
    /// Type of the file system (`ext4`, `tmpfs`).
    pub file_system: String,
    /// Threads that read or wrote for the streams; 0: each stream for itself.
    pub threads: u32,
    /// Microseconds in reading or writing files.
    pub file_us: u64,
    /// Microseconds in opening, naming and closing them.
    pub name_us: u64,
    /// Microseconds in hashing.
    pub hash_us: u64,
    /// Microseconds in sealing or opening frames.
    pub cipher_us: u64,
    /// Microseconds in sending or receiving.
    pub stream_us: u64,
    /// Microseconds in bringing data to the device.
    pub sync_us: u64,
    /// Microseconds in which streams had nothing to send, or nowhere to put what came.
    pub starved_us: u64,
    /// Largest memory of the process, in bytes.
    pub peak_memory_bytes: u64,
}

/// Something about files that a destination may be unable to keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Attribute {
    /// The time of last change: not kept, or less finely than the source has it.
    Time,
    /// The time of last change of a symbolic link.
    LinkTime,
    /// Permission bits.
    Mode,
    /// An extended attribute.
    Xattr,
    /// That names are names of one file: each is a file of its own.
    HardLink,
    /// That it is on the device before it has its name.
    Sync,
    /// A lock that keeps two copies apart.
    Lock,
    /// That nothing is left beside the files.
    Staging,
}

/// What the destination did not keep of names that were copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotKept {
    /// What.
    pub attribute: Attribute,
    /// In which way, or why; one line.
    pub how: String,
    /// Of how many names.
    pub names: u64,
}

/// What a copy came to.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopyReport {
    /// Names found at the sources.
    pub found: FileTally,
    /// Regular files copied now.
    pub copied: FileTally,
    /// What was there already.
    pub present: FileTally,
    /// Files, folders and links that were there already and whose attributes were set to the source's, or would be.
    #[serde(skip_serializing_if = "is_nothing")]
    pub updated: FileTally,
    /// What failed.
    pub failed: FileTally,
    /// Of the names that failed, those that had only disappeared from the sources. Absent in records of older versions.
    #[serde(skip_serializing_if = "is_zero")]
    pub vanished: u64,
    /// What was skipped.
    pub skipped: FileTally,
    /// What was deleted, or would be.
    pub deleted: FileTally,
    /// Names whose owner was to be set and could not be.
    #[serde(skip_serializing_if = "is_zero")]
    pub unset_owners: u64,
    /// Names whose group was to be set and could not be.
    #[serde(skip_serializing_if = "is_zero")]
    pub unset_groups: u64,
    /// Names removed from the sources because they had been copied.
    #[serde(skip_serializing_if = "is_zero")]
    pub removed: u64,
    /// Folders, links and further names made.
    pub made: u64,
    /// Bytes that a journal proved and that were not sent again.
    pub resumed_bytes: u64,
    /// Bytes of holes that were not sent.
    pub hole_bytes: u64,
    /// Chunks that came spoiled and were sent again.
    pub repeated_chunks: u64,
    /// Cipher in use.
    pub cipher: String,
    /// Transport that encrypts the data with it by itself, below farline's frames; absent where farline seals them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_by: Option<String>,
    /// Sum in use: the word of `hash` that was settled on. Empty in records of versions that knew BLAKE3 alone.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hash: String,
    /// Chunk in use, in bytes.
    pub chunk_bytes: u64,
    /// A hundred of the names that failed, those that had only disappeared from the sources after all others.
    pub failures: Vec<ReceiptLine>,
    /// Sessions so far of the command that copied, this one included.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u64,
    /// Microseconds in which its sessions ran: from the first byte of each to the last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub moving_us: u64,
    /// Microseconds since the command began, with its start over ssh and the pauses between sessions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub command_us: u64,
    /// What the destination could not keep, by kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_kept: Vec<NotKept>,
    /// What went wrong besides names: why nothing was deleted, say; one line each, counted among what failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// The first hundred names that were skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skips: Vec<ReceiptLine>,
    /// The end that had the files.
    pub sender: CopyEnd,
    /// The end that got them.
    pub receiver: CopyEnd,
}

/// How far a copy is, told a few times a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopyProgress {
    /// Names found so far.
    pub found_files: u64,
    /// Bytes in them.
    pub found_bytes: u64,
    /// Whether all have been found: only then are the two above totals.
    pub all_found: bool,
    /// Names settled: copied, present, skipped.
    pub settled_files: u64,
    /// Bytes settled, or on the destination's side of the path: what a bar shows.
    pub settled_bytes: u64,
    /// Names that failed.
    pub failed_files: u64,
    /// Payload bytes sent or received by this end.
    pub moved_bytes: u64,
    /// Bytes that needed no sending.
    pub spared_bytes: u64,
    /// Streams that moved something since the last time.
    pub busy_streams: u32,
    /// Microseconds since the copy began.
    pub elapsed_us: u64,
}

fn is_nothing(tally: &FileTally) -> bool {
    *tally == FileTally::default()
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}
