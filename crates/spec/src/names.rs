//! Names below the folder of a ticket: what may be asked about them, and what the answers are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::PathText;

/// Most bytes of a file that one answer has.
pub const MOST_READ_BYTES: u64 = 512 << 10;

/// Something to be done with one name. Paths are below the folder of the ticket, as in a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "snake_case", deny_unknown_fields)]
pub enum NameRequest {
    /// The names in a folder, sorted by their bytes, as many as one answer holds.
    List {
        /// The folder.
        path: PathText,
        /// The last name that is known already.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after: Option<PathText>,
    },
    /// What a name stands for.
    Stat {
        /// The name.
        path: PathText,
        /// Whether a link at its end is followed.
        #[serde(default)]
        follow: bool,
        /// Sums of its content, each of which reads all of it.
        #[serde(default)]
        sums: Vec<NameSum>,
    },
    /// Makes a folder.
    MakeFolder {
        /// Its name.
        path: PathText,
        /// Whether missing folders above it are made too, and one that is there already is no error.
        #[serde(default)]
        parents: bool,
    },
    /// Gives a file or folder another name.
    Rename {
        /// The name that it has.
        path: PathText,
        /// The name that it is to have.
        to: PathText,
        /// Whether a file of that name makes way.
        #[serde(default)]
        replace: bool,
        /// Whether missing folders above the new name are made.
        #[serde(default)]
        parents: bool,
    },
    /// Removes a file, a link or an empty folder.
    Remove {
        /// Its name.
        path: PathText,
        /// Whether a folder goes with all that is in it.
        #[serde(default)]
        recursive: bool,
    },
    /// Bytes of a file.
    Read {
        /// The file; links are followed.
        path: PathText,
        /// Where to begin.
        offset: u64,
        /// How many, up to [`MOST_READ_BYTES`].
        bytes: u64,
    },
}

impl NameRequest {
    /// The name that it is about.
    pub fn path(&self) -> &str {
        match self {
            Self::List { path, .. }
            | Self::Stat { path, .. }
            | Self::MakeFolder { path, .. }
            | Self::Rename { path, .. }
            | Self::Remove { path, .. }
            | Self::Read { path, .. } => path,
        }
    }

    /// The verb, where it changes something.
    pub const fn change(&self) -> Option<&'static str> {
        match self {
            Self::MakeFolder { .. } => Some("make_folder"),
            Self::Rename { .. } => Some("rename"),
            Self::Remove { .. } => Some("remove"),
            Self::List { .. } | Self::Stat { .. } | Self::Read { .. } => None,
        }
    }
}

/// A sum of the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameSum {
    /// BLAKE3, as `b3sum` prints it.
    Blake3,
    /// Adler-32 (RFC 1950), eight hexadecimal digits.
    Adler32,
    /// MD5 (RFC 1321), as `md5sum` prints it.
    Md5,
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NameKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// What is known of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameFacts {
    /// The last part of its path; empty for the folder of the ticket itself.
    pub name: PathText,
    /// What it is.
    pub kind: NameKind,
    /// Length of its content.
    pub bytes: u64,
    /// Last change of its content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Permission bits, the lowest twelve.
    pub mode: u32,
    /// Of a link: where it leads, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<PathText>,
    /// Of a link: what is there, if anything is that may be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_kind: Option<NameKind>,
    /// The sums that were wanted, in hexadecimal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sums: BTreeMap<NameSum, String>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum NameAnswer {
    /// Names in a folder.
    Names {
        /// In order.
        names: Vec<NameFacts>,
        /// Whether more follow.
        more: bool,
    },
    /// What a name stands for.
    Facts {
        /// All of it.
        facts: NameFacts,
    },
    /// It is done.
    Done {
        /// Names that were made, changed or removed.
        count: u64,
    },
    /// Bytes of a file.
    Bytes {
        /// The bytes; fewer than asked for only at the end of the file.
        #[serde(with = "base64_text")]
        data: Vec<u8>,
        /// Length of the file now.
        file_bytes: u64,
    },
    /// It was not done, or not all of it.
    Refused {
        /// Why, as a word.
        reason: NameRefusal,
        /// Why, in one line.
        message: String,
    },
}

/// Why a request was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NameRefusal {
    /// Nothing has this name.
    NotFound,
    /// Something has this name already.
    Exists,
    /// It is no folder.
    NotAFolder,
    /// It is a folder.
    IsAFolder,
    /// The folder has something in it.
    NotEmpty,
    /// The path leads outside the folder of the ticket.
    Outside,
    /// The ticket does not allow it.
    NotAllowed,
    /// More than the ticket allows.
    Limit,
    /// The system of the server does not permit it.
    NoPermission,
    /// The path or the request is none that can be.
    Invalid,
    /// The system of the server could not do it.
    System,
}

/// What a client may do with names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRights {
    /// Read what is in files.
    pub read: bool,
    /// Make, rename and remove.
    pub write: bool,
}

mod base64_text {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD
            .decode(String::deserialize(from)?)
            .map_err(|error| D::Error::custom(format!("bytes in base64: {error}")))
    }
}
