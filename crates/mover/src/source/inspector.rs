//! Looks into files: what an entry has to tell of its name that only an open file tells.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use farline_proto::copy::sender::MOST_TRIES;
use farline_spec::{CopySpec, SumKind, SyncLevel};
use farline_sys::file::{self, FileFacts, OpenFlags};

use super::found::{Found, What};
use super::origin::Sources;
use super::run::Run;
use super::steady::{self, NO_FILE};
use super::trouble::Trouble;
use crate::Gauges;
use crate::sum::{Hasher, Sum};
use crate::xattrs::{TOO_MANY, xattrs_of};

/// Bytes read at a time where a file is hashed before it is sent.
const HASH_BYTES: usize = 1 << 20;

/// What an entry is to tell that only an open file tells, and how it is had.
#[derive(Debug)]
pub(super) struct Inspector {
    sources: Arc<Sources>,
    /// What is read is what the files have.
    reads_files: bool,
    /// Files are told by their content.
    hashes: bool,
    /// Extended attributes are told.
    xattrs: bool,
    gauges: Arc<Gauges>,
    run: Arc<Run>,
}

impl Inspector {
    /// As `spec` asks for it; `reads_files`: what is read is what the files have.
    pub(super) fn new(
        spec: &CopySpec,
        sources: &Arc<Sources>,
        reads_files: bool,
        gauges: &Arc<Gauges>,
        run: &Arc<Run>,
    ) -> Self {
        Self {
            sources: Arc::clone(sources),
            reads_files,
            hashes: spec.sync_level == SyncLevel::Checksum,
            xattrs: spec.xattrs,
            gauges: Arc::clone(gauges),
            run: Arc::clone(run),
        }
    }

    /// Reads of a name what its entry has to tell and only an open file tells: attributes and hash, where asked for. What is
    /// announced of a file without content is all that comes of it, so it is proved here.
    pub(super) fn look_inside(&self, found: &mut Found) -> Result<(), Trouble> {
        for _ in 1..MOST_TRIES {
            match self.look_inside_once(found) {
                Err(Trouble::Changed) => {}
                looked => return looked,
            }
        }
        self.look_inside_once(found)
    }

    /// The file as it is now.
    ///
    /// # Errors
    /// Why it cannot be announced.
    pub(super) fn look_again(&self, found: &Found) -> Result<Found, Trouble> {
        let facts = self.facts_of(found)?;
        if facts.kind != file::FileKind::File {
            return Err(Trouble::Beyond(NO_FILE.to_owned()));
        }
        let mut fresh = Found {
            origin: found.origin,
            is_through_link: found.is_through_link,
            tries: found.tries + 1,
            apart_from: None,
            path: found.path.clone(),
            what: What::File(None),
            facts,
            seen_ns: steady::now_ns(),
            held: None,
            xattrs: Vec::new(),
        };
        self.look_inside(&mut fresh)?;
        Ok(fresh)
    }

    fn facts_of(&self, found: &Found) -> io::Result<FileFacts> {
        if found.is_through_link {
            return self.sources.stat_through(found.origin, &found.path);
        }
        let flags = file::OpenFlags::PATH | file::OpenFlags::NO_FOLLOW;
        let opened = self.sources.open_at(found.origin, &found.path, flags, false)?;
        file::stat_fd(opened.as_fd())
    }

    fn look_inside_once(&self, found: &mut Found) -> Result<(), Trouble> {
        let is_file = matches!(found.what, What::File(_));
        // What changed before may be in the middle of a change.
        let is_held = found.held.is_some();
        let is_doubtful = is_file && !is_held && self.reads_files && (found.bytes() == 0 || found.tries > 1);
        let wants_hash = is_file && self.hashes && self.reads_files;
        let wants_xattrs = self.xattrs && !matches!(found.what, What::Link(_));
        if !wants_hash && !wants_xattrs && !is_doubtful {
            return Ok(());
        }
        let flags = OpenFlags::READ | OpenFlags::NO_WAIT;
        let opened = self
            .sources
            .open_at(found.origin, &found.path, flags, found.is_through_link)?;
        if is_file && !is_held {
            steady::look(found, opened.as_fd())?;
        }
        if wants_xattrs {
            found.xattrs = xattrs_of(opened.as_fd()).map_err(|error| match error.kind() {
                io::ErrorKind::FileTooLarge => Trouble::Beyond(TOO_MANY.to_owned()),
                _ => Trouble::Kernel(error),
            })?;
        }
        if wants_hash {
            let content = match &found.held {
                Some(held) => held.open()?,
                None => opened,
            };
            let hash = self.hash_all(&content)?;
            steady::end(found, content.as_fd())?;
            found.what = What::File(Some(Box::new(hash)));
        }
        Ok(())
    }

    fn hash_all(&self, file: &OwnedFd) -> Result<Sum, Trouble> {
        let mut buffer = vec![0; HASH_BYTES];
        let mut hasher = Hasher::new(SumKind::Blake3);
        let mut offset = 0;
        loop {
            let read = || file::read_at(file.as_fd(), &mut buffer, offset);
            let bytes = self.gauges.file_ns.time(read)?;
            offset += bytes as u64;
            if bytes == 0 || self.run.is_over() {
                return Ok(hasher.sum());
            }
            self.gauges.file_bytes.add(bytes as u64);
            self.gauges.hash_ns.time(|| hasher.update(&buffer[..bytes]));
            self.run.worked();
        }
    }
}
