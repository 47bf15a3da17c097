//! Moving files: what to copy and how, and what came of it.
//!
//! A copy is a run whose streams carry files instead of a payload made up on the spot: [`CopySpec`] is a section of the
//! [`RunSpec`](crate::RunSpec), [`CopyReport`] a part of its record. What belongs to streams (transport, their number,
//! addresses, rates) stays where it is for every run.
//!
//! **Names** are bytes to a kernel and text in a document: a [`PathText`] is the name in UTF-8 in which a backslash is
//! `\\` and every byte that is no UTF-8, or is a control character, is `\xNN`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::unit::{
    ChunkBytes, DeleteCount, DurationS, FileCount, ModifyWindowS, RateBps, StreamCount, ThreadCount,
    size_text,
};
use crate::{CopyShare, Direction, Failure, FailureKind, Hash, Transport};

/// A path with its bytes written as text; see the head of this file.
pub type PathText = String;

/// Most sources that one spec names; longer lists come from a file.
const MAX_SOURCES: usize = 4_096;
/// Most bytes that all names in a spec have together: it travels in one frame.
const MAX_NAME_BYTES: usize = 512 * 1024;
/// Most bytes that frames of a copy take at one end, with one for each stream and thread and no more.
const MAX_FRAMES_BYTES: u64 = 1 << 30;
/// Chunk that a copy has at most where its spec does not say, and has past the page cache: a chunk is a request there, and what
/// limits a disk that reads and writes at once is how many of them it is given.
pub const MOST_CHOSEN_CHUNK_BYTES: u64 = 2 << 20;
/// Most bytes of an origin: a hash in letters.
const MAX_ORIGIN_BYTES: usize = 64;

/// What is done with a file that is at the destination already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Overwrite {
    /// One that the sync level calls different is left alone and named as failed.
    Never,
    /// One that is newer than the source is left alone and named as failed; others that differ are replaced.
    Older,
    /// One that the sync level calls different is replaced.
    Different,
    /// Everything is copied again.
    Always,
}

/// What makes a file at the destination the same as the source's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SyncLevel {
    /// That it exists.
    Exists,
    /// Its size.
    Size,
    /// Its size and time of last change.
    Time,
    /// Its BLAKE3, whatever the copy itself is proved with: both ends read it.
    Checksum,
}

/// What is done with symbolic links in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SymbolicLinks {
    /// The link itself is copied, wherever it points.
    Keep,
    /// What it points at is copied.
    Follow,
    /// It is left out, and counted.
    Skip,
}

/// How far a file's content is proved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Nothing beyond what the transport and the cipher check.
    None,
    /// The sum of every chunk (`copy.hash`) where it was read against where it was written, and the file's from them.
    Tree,
    /// As tree, and the file is read back from the device before it takes its name.
    ReadBack,
}

/// What payload is sealed with between the two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Cipher {
    /// AES-128 in Galois counter mode.
    Aes128Gcm,
    /// AES-256 in Galois counter mode.
    Aes256Gcm,
    /// Clear text: who can read the path reads the data.
    None,
}

impl Cipher {
    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "aes128-gcm",
            Self::Aes256Gcm => "aes256-gcm",
            Self::None => "none",
        }
    }
}

/// How files are read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileEngine {
    /// What the file system is best at, found by looking at it.
    Auto,
    /// Through the page cache.
    Buffered,
    /// Past the page cache (O_DIRECT), a call at a time on each thread.
    Direct,
    /// Past the page cache, many requests under way on each thread (io_uring).
    Uring,
    /// From the page cache to the stream without a copy (sendfile): for reading, where nothing is hashed or sealed.
    Sendfile,
    /// No disk: what is read is zeros of the file's length, what is written is dropped. For measuring.
    Null,
    /// No disk: what is read is copied from memory, what is written is copied into memory. For measuring.
    Memory,
}

impl FileEngine {
    /// The word used in JSON and on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Buffered => "buffered",
            Self::Direct => "direct",
            Self::Uring => "uring",
            Self::Sendfile => "sendfile",
            Self::Null => "null",
            Self::Memory => "memory",
        }
    }
}

/// What to copy and how. `direction` of the run says which end has the sources: forward is a push, reverse a pull.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CopySpec {
    /// Files and folders at the sending end; a folder with a slash at its end means what is in it.
    #[schemars(length(max = 4096), extend("x-sweep" = false))]
    pub sources: Vec<PathText>,
    /// File at the client with one name a line, relative to the one source, instead of the whole of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096), extend("x-sweep" = false))]
    pub source_list: Option<String>,
    /// Where it goes at the receiving end; a slash at its end means a folder.
    #[schemars(extend("x-sweep" = false))]
    pub destination: PathText,
    /// Who copies, a hash of host, user and working folder: what tells copies of the same names from different places apart. Set by the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), extend("x-sweep" = false))]
    pub origin: Option<String>,
    /// Of a copy that several sessions carry together, over several nodes: which copy it is, and what this session carries of it. Set by the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-sweep" = false))]
    pub share: Option<CopyShare>,
    /// Rules for names below a source, the first that fits decides: `+ pattern` takes, `- pattern` leaves out (rsync's patterns).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-sweep" = false))]
    pub filters: Vec<String>,
    /// Copy folders with their contents; without it, folders are skipped and reported as failed.
    #[schemars(extend("x-flags" = ["-r", "--recursive"], "x-sweep" = false))]
    pub recursive: bool,
    /// Preserve permission bits.
    #[schemars(extend("x-flags" = ["--modes"], "x-sweep" = false))]
    pub modes: bool,
    /// Preserve modification times.
    #[schemars(extend("x-flags" = ["--times"], "x-sweep" = false))]
    pub times: bool,
    /// Preserve hard links between copied files.
    #[schemars(extend("x-flags" = ["-H", "--hard-links"], "x-sweep" = false))]
    pub hard_links: bool,
    /// Preserve extended attributes (`user.*` and access control lists).
    #[schemars(extend("x-flags" = ["-X", "--xattrs"], "x-sweep" = false))]
    pub xattrs: bool,
    /// Preserve owners, by name where the receiver knows it; only root can.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["--owner"], "x-sweep" = false))]
    pub owner: bool,
    /// Preserve groups, by name where the receiver knows it; without root, only groups of the user.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["--group"], "x-sweep" = false))]
    pub group: bool,
    /// Match owners and groups by number instead of name.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["--numeric-ids"], "x-sweep" = false))]
    pub numeric_ids: bool,
    /// Preserve holes in sparse files and do not send them.
    ///
    /// Holes count in steps of 64 KiB, in files of more than 1 MiB.
    #[schemars(extend("x-flags" = ["--sparse"]))]
    pub sparse: bool,
    /// Keep symbolic links, follow them to what they point at, or skip them.
    #[schemars(extend("x-flags" = ["--links"], "x-sweep" = false))]
    pub links: SymbolicLinks,
    /// Skip a file whose copy exists, has the same size, has the same size and time, or has the same checksum.
    #[schemars(extend("x-flags" = ["--sync-level"]))]
    pub sync_level: SyncLevel,
    /// Treat modification times this close as equal (default: what the destination can store).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["-@", "--modify-window"], "x-sweep" = false))]
    pub modify_window_s: Option<ModifyWindowS>,
    /// Replace a file that differs never, if it is older, or if it is different; always copies every file again.
    #[schemars(extend("x-flags" = ["--overwrite"], "x-sweep" = false))]
    pub overwrite: Overwrite,
    /// Update only what exists at the destination; create nothing.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["--existing", "--ignore-non-existing"], "x-sweep" = false))]
    pub existing: bool,
    /// Treat a symbolic link to a folder at the destination as that folder; without it, the link is replaced.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["-K", "--keep-dirlinks"], "x-sweep" = false))]
    pub keep_dirlinks: bool,
    /// Replace a folder by a file or link of the same name even if it is not empty.
    ///
    /// All that is in the folder is deleted. It applies where the folder may be replaced.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["--force"], "x-sweep" = false))]
    pub force: bool,
    /// Delete what the destination has and the sources lack, if it is exactly this many names (default: delete nothing).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--delete"], "x-sweep" = false))]
    pub delete: Option<DeleteCount>,
    /// Delete nothing if more names than this would be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--max-delete"], "x-sweep" = false))]
    pub max_delete: Option<DeleteCount>,
    /// Remove source files and links once the destination has them verified and on disk.
    #[serde(skip_serializing_if = "is_false")]
    #[schemars(extend("x-flags" = ["--remove-source-files"], "x-sweep" = false))]
    pub remove_source_files: bool,
    /// Show what would be done and change nothing.
    #[schemars(extend("x-flags" = ["-n", "--dry-run"], "x-sweep" = false))]
    pub dry_run: bool,
    /// Verify contents not at all, by checksums, or by checksums after reading files back.
    #[schemars(extend("x-flags" = ["--verify"]))]
    pub verify: Verify,
    /// Verify with this checksum: auto is xxh3 for encrypted data, blake3 for unencrypted data; none verifies nothing.
    ///
    /// xxh3 finds damage by chance at a fraction of the processor time. blake3 is for receipts that `b3sum` checks and for data
    /// that others may have changed. auto is blake3 with `--sync-level checksum` too, and xxh3 between two folders of one host.
    #[serde(skip_serializing_if = "Hash::is_auto")]
    #[schemars(extend("x-flags" = ["--hash"]))]
    pub hash: Hash,
    /// Encrypt the data with this cipher; none sends them unencrypted.
    #[schemars(extend("x-flags" = ["--cipher"]))]
    pub cipher: Cipher,
    /// Write each file to disk before it gets its name, so that it survives a power failure.
    #[schemars(extend("x-flags" = ["--fsync"]))]
    pub fsync: bool,
    /// Send, hash and resume files in chunks of this size, a power of two (default 512 KiB; 2 MiB for direct I/O, 1 MiB for sendfile; less where the rate is limited: what a stream sends in about a second).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--chunk"]))]
    pub chunk_bytes: Option<ChunkBytes>,
    /// Use this many reader threads at the sender; with 0 each stream reads (default: chosen by file system).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--readers"]))]
    pub readers: Option<ThreadCount>,
    /// Use this many writer threads at the receiver; with 0 each stream writes (default: chosen by file system).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--writers"]))]
    pub writers: Option<ThreadCount>,
    /// Send at most this many files at once (default: enough to fill the streams).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--concurrency"]))]
    pub concurrency: Option<FileCount>,
    /// Announce this many files before the receiver answers for the first.
    #[schemars(extend("x-flags" = ["--pipeline"]))]
    pub pipeline: FileCount,
    /// Read files by this method.
    #[schemars(extend("x-flags" = ["--read-engine"]))]
    pub read_engine: FileEngine,
    /// Write files by this method.
    #[schemars(extend("x-flags" = ["--write-engine"]))]
    pub write_engine: FileEngine,
    /// Limit the payload rate over all streams (default: no limit).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-flags" = ["--bwlimit"]))]
    pub total_rate_bps: Option<RateBps>,
    /// Yield to other traffic: slow down as soon as queues on the path grow.
    #[schemars(extend("x-flags" = ["--yield"]))]
    pub give_way: bool,
    /// Drop a session, and resume in a new one, when no byte has moved for this long.
    #[schemars(extend("x-flags" = ["--stall-timeout"], "x-sweep" = false))]
    pub stall_timeout_s: DurationS,
}

impl Default for CopySpec {
    fn default() -> Self {
        Self {
            sources: Vec::new(),
            source_list: None,
            destination: String::new(),
            origin: None,
            share: None,
            filters: Vec::new(),
            recursive: true,
            modes: true,
            times: true,
            hard_links: false,
            xattrs: false,
            owner: false,
            group: false,
            numeric_ids: false,
            sparse: true,
            links: SymbolicLinks::Keep,
            sync_level: SyncLevel::Time,
            modify_window_s: None,
            overwrite: Overwrite::Never,
            existing: false,
            keep_dirlinks: false,
            force: false,
            delete: None,
            max_delete: None,
            remove_source_files: false,
            dry_run: false,
            verify: Verify::Tree,
            hash: Hash::Auto,
            cipher: Cipher::Aes128Gcm,
            fsync: true,
            chunk_bytes: None,
            readers: None,
            writers: None,
            concurrency: None,
            pipeline: FileCount::new(16_384).expect("in range"),
            read_engine: FileEngine::Auto,
            write_engine: FileEngine::Auto,
            total_rate_bps: None,
            give_way: false,
            stall_timeout_s: DurationS::new(30.0).expect("in range"),
        }
    }
}

impl CopySpec {
    /// Checks what one field's type cannot.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] that names the field.
    pub(crate) fn check(
        &self,
        transport: Transport,
        direction: Direction,
        streams: StreamCount,
    ) -> Result<(), Failure> {
        let refused = |what: &str| Err(Failure::new(FailureKind::Spec, format!("copy.{what}")));
        if matches!(transport, Transport::Udp | Transport::Null) {
            return refused(
                "transport: files are copied over tcp, udt, rbudp or quic; udp and null do not deliver reliably",
            );
        }
        if transport == Transport::Quic && self.cipher == Cipher::None {
            return refused(
                "cipher: QUIC always encrypts; choose aes128-gcm or aes256-gcm, or another transport",
            );
        }
        if direction == Direction::Bidirectional {
            return refused("direction: a copy goes one way: forward or reverse");
        }
        if self.sources.is_empty() || self.sources.len() > MAX_SOURCES {
            return refused("sources: 1 to 4096 are allowed; longer lists come from a file");
        }
        let names = self.sources.iter().chain(&self.filters);
        if names.map(String::len).sum::<usize>() + self.destination.len() > MAX_NAME_BYTES {
            return refused(
                "sources: all names together may have 524288 bytes; longer lists come from a file",
            );
        }
        if self.sources.iter().any(String::is_empty) || self.destination.is_empty() {
            return refused("destination: the path is empty; use . for the current folder");
        }
        if self.source_list.is_some() && (self.sources.len() != 1 || direction == Direction::Reverse) {
            return refused("source_list: works only with one source, on this host");
        }
        if self.filters.iter().any(|rule| !is_filter(rule)) {
            return refused("filters: a rule is '+ pattern' or '- pattern'");
        }
        self.check_delete()?;
        self.check_hash()?;
        self.check_removal()?;
        if self
            .chunk_bytes
            .is_some_and(|chunk| !chunk.get().is_power_of_two())
        {
            return refused("chunk_bytes: must be a power of two");
        }
        self.check_share()?;
        let is_origin = |text: &str| {
            text.len() <= MAX_ORIGIN_BYTES && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        if self
            .origin
            .as_deref()
            .is_some_and(|text| text.is_empty() || !is_origin(text))
        {
            return refused("origin: 1 to 64 letters and digits are allowed");
        }
        // What no disk gave must not end up on one under the name of a file.
        let is_made_up = |engine| matches!(engine, FileEngine::Null | FileEngine::Memory);
        if is_made_up(self.read_engine) && !is_made_up(self.write_engine) {
            return refused("write_engine: must be null or memory if the read engine is null or memory");
        }
        self.check_sendfile(transport)?;
        self.check_memory(streams)
    }

    /// Whether bytes may go straight from files to streams of `transport` with nobody between who hashes or seals them.
    pub fn may_go_straight(&self, transport: Transport) -> bool {
        let nobody_looks = self.cipher == Cipher::None && self.sum().is_none();
        let no_readers = self.readers.is_none_or(|readers| readers.get() == 0);
        transport == Transport::Tcp && nobody_looks && no_readers
    }

    fn check_share(&self) -> Result<(), Failure> {
        let Some(share) = &self.share else {
            return Ok(());
        };
        share.check(self.source_list.is_some())?;
        if share.part.is_some() && (self.delete.is_some() || self.remove_source_files || self.dry_run) {
            let line =
                "copy.share.part: the session that ends the copy deletes, removes sources and does dry runs";
            return Err(Failure::new(FailureKind::Spec, line));
        }
        Ok(())
    }

    fn check_delete(&self) -> Result<(), Failure> {
        let line = match self.delete {
            Some(_) if self.source_list.is_some() => {
                "copy.delete: does not go with a list of names: what the list leaves out would go too"
            }
            Some(_) if !self.recursive => "copy.delete: works only with a recursive copy",
            _ => return Ok(()),
        };
        Err(Failure::new(FailureKind::Spec, line))
    }

    /// What is removed here has to be there: proved, kept, and under the name that was read.
    fn check_removal(&self) -> Result<(), Failure> {
        let is_kept = !matches!(self.write_engine, FileEngine::Null | FileEngine::Memory);
        let is_safe = self.fsync && is_kept && self.sum().is_some();
        if !self.remove_source_files || (is_safe && self.links != SymbolicLinks::Follow) {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Spec,
            "copy.remove_source_files: needs fsync, a verify and a hash other than none, a write engine that stores files, and links that are not followed",
        ))
    }

    fn check_sendfile(&self, transport: Transport) -> Result<(), Failure> {
        let refused = |line: &str| Err(Failure::new(FailureKind::Spec, line));
        if self.write_engine == FileEngine::Sendfile {
            return refused("copy.write_engine: sendfile can only read");
        }
        if self.read_engine == FileEngine::Sendfile && !self.may_go_straight(transport) {
            return refused(
                "copy.read_engine: sendfile needs transport tcp, cipher none, verify none and no readers, because the data bypass farline",
            );
        }
        Ok(())
    }

    /// Every stream and every thread needs a frame of a whole chunk: what would need too much of them is refused here, at
    /// both ends, before anything is allocated.
    fn check_memory(&self, streams: StreamCount) -> Result<(), Failure> {
        let threads = |count: Option<ThreadCount>| u64::from(count.map_or(0, ThreadCount::get));
        let threads = threads(self.readers).max(threads(self.writers));
        let chunk = self.chunk_bytes.map_or(MOST_CHOSEN_CHUNK_BYTES, ChunkBytes::get);
        let frames = u64::from(streams.get()) + threads;
        if frames * chunk <= MAX_FRAMES_BYTES {
            return Ok(());
        }
        let line = format!(
            "copy.chunk_bytes: {} for each of {frames} streams and threads makes {} of memory; allowed: {}",
            size_text(chunk),
            size_text(frames * chunk),
            size_text(MAX_FRAMES_BYTES)
        );
        Err(Failure::new(FailureKind::Spec, line))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_false(value: &bool) -> bool {
    !*value
}

fn is_filter(rule: &str) -> bool {
    (rule.starts_with("+ ") || rule.starts_with("- ")) && rule.len() > 2
}

#[cfg(test)]
mod tests {
    use crate::{RunSpec, from_json};

    fn refusal(text: &str) -> String {
        from_json::<RunSpec>(text)
            .unwrap()
            .resolved()
            .unwrap_err()
            .message
    }

    #[test]
    fn a_copy_needs_a_source_a_destination_and_a_transport_that_keeps_its_word() {
        assert!(refusal(r#"{"copy":{"destination":"d"}}"#).starts_with("copy.sources"));
        assert!(refusal(r#"{"copy":{"sources":["s"]}}"#).starts_with("copy.destination"));
        let udp = refusal(r#"{"transport":"udp","copy":{"sources":["s"],"destination":"d"}}"#);
        assert!(udp.starts_with("copy.transport"), "{udp}");
        let both = refusal(r#"{"direction":"bidirectional","copy":{"sources":["s"],"destination":"d"}}"#);
        assert!(both.starts_with("copy.direction"), "{both}");
        let timed = refusal(r#"{"duration_s":3,"copy":{"sources":["s"],"destination":"d"}}"#);
        assert!(timed.starts_with("duration_s"), "{timed}");
    }

    #[test]
    fn what_a_copy_asks_for_is_checked() {
        let with = |more: &str| {
            refusal(&format!(
                r#"{{"copy":{{"sources":["s"],"destination":"d",{more}}}}}"#
            ))
        };
        assert!(with(r#""chunk_bytes":100000"#).contains("power of two"));
        assert!(with(r#""filters":["*.o"]"#).contains("'+ pattern'"));
        assert!(with(r#""delete":0,"recursive":false"#).starts_with("copy.delete"));
    }

    #[test]
    fn what_nobody_reads_nobody_can_hash_or_seal() {
        let plain = r#""verify":"none","cipher":"none""#;
        let check = |transport: &str, more: &str| {
            let copy = format!(r#""copy":{{"sources":["s"],"destination":"d",{more}}}"#);
            let text = format!(r#"{{"transport":"{transport}",{copy}}}"#);
            let resolved = from_json::<RunSpec>(&text).unwrap().resolved();
            resolved.map_or_else(|failure| failure.message, |_| String::new())
        };
        let sendfile = format!(r#""read_engine":"sendfile",{plain}"#);
        assert_eq!(check("tcp", &sendfile), "");
        assert_eq!(check("tcp", &format!(r#"{sendfile},"readers":0"#)), "");
        for (transport, refused) in [
            ("udt", sendfile.clone()),
            ("tcp", format!(r#"{sendfile},"readers":1"#)),
            ("tcp", r#""read_engine":"sendfile","verify":"none""#.to_owned()),
            ("tcp", r#""read_engine":"sendfile","cipher":"none""#.to_owned()),
        ] {
            let line = check(transport, &refused);
            assert!(line.starts_with("copy.read_engine: sendfile needs "), "{line}");
        }
        let line = check("tcp", &format!(r#""write_engine":"sendfile",{plain}"#));
        assert_eq!(line, "copy.write_engine: sendfile can only read");
    }

    #[test]
    fn a_copy_has_no_duration_and_no_total() {
        let spec = from_json::<RunSpec>(r#"{"copy":{"sources":["s"],"destination":"d"}}"#).unwrap();
        let spec = spec.resolved().unwrap();
        assert_eq!((spec.duration_s, spec.total_bytes), (None, None));
        assert_eq!(spec.clone().resolved().unwrap(), spec);
    }
}
