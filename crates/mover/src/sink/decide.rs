//! What is wanted of a file, by what is at the destination and what a journal proves.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

pub use farline_proto::copy::receiver::Verdict;
use farline_proto::copy::receiver::{Compared, OTHER_CONTENT, compare};
use farline_spec::{Failure, Overwrite, SumKind, kernel_words};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use super::attributes::Attributes;
use super::journal::{Resumable, Source, path_key};
use super::owner::Belongs;
use super::place::{Folders, word};
use super::plan::{Mode, Plan};
use super::run::Run;
use super::site::{Destination, ResumeState};
use super::way::Way;
use super::words::{POISONED, Problems, in_words};
use crate::Gauges;
use crate::message::Xattr;
use crate::root::split;
use crate::sum::{Hasher, Sum};

/// What is read at once to hash a file.
const READ_BYTES: usize = 1 << 20;

/// A file as the sending end announced it.
#[derive(Debug, Clone, Copy)]
pub struct Announced<'a> {
    /// What it is known by.
    pub source: &'a Source,
    /// Permission bits.
    pub mode: u32,
    /// To whom it is to belong.
    pub belongs: Belongs,
    /// Extended attributes.
    pub xattrs: &'a [Xattr],
    /// Its hash, where the sync level asks for it.
    pub hash: Option<Sum>,
}

/// Decides about files by what the destination has. On the catalogue's thread.
#[derive(Debug)]
pub struct Decider {
    pub plan: Arc<Plan>,
    pub destination: Arc<Destination>,
    way: Arc<Way>,
    pub problems: Arc<Problems>,
    gauges: Arc<Gauges>,
    run: Arc<Run>,
}

impl Decider {
    /// For what comes to `destination`.
    pub fn new(
        destination: &Arc<Destination>,
        way: &Arc<Way>,
        problems: &Arc<Problems>,
        gauges: &Arc<Gauges>,
        run: &Arc<Run>,
    ) -> Self {
        Self {
            plan: Arc::clone(&destination.plan),
            destination: Arc::clone(destination),
            way: Arc::clone(way),
            problems: Arc::clone(problems),
            gauges: Arc::clone(gauges),
            run: Arc::clone(run),
        }
    }

    /// What is to be done about a regular file.
    ///
    /// # Errors
    /// That the copy is over.
    pub fn verdict(
        &self,
        folders: &mut Option<Folders>,
        announced: Announced<'_>,
    ) -> Result<Verdict, Failure> {
        let (site, source) = (self.destination.site(), announced.source);
        let Some(folders) = folders.as_mut().filter(|_| !site.fresh) else {
            return Ok(Verdict::Make(false));
        };
        let facts = match folders.facts(&source.path) {
            Ok(None) => return Ok(Verdict::Make(false)),
            Ok(Some(facts)) => facts,
            Err(error) => return Ok(Verdict::Refused(in_words(&error))),
        };
        let verdict = if let Some(kept) = site.kept_if_any()
            && let Some(hash) = self.done_before(kept, source)
            && facts.kind == FileKind::File
            && facts.bytes == source.bytes
            && (!self.plan.spec.times || self.destination.is_same_time(facts.mtime_ns, source))
            && announced.hash.is_none_or(|said| Some(said) == hash)
        {
            Verdict::Present(hash)
        } else if facts.kind == FileKind::Folder {
            match self.way.folder_in_the_way(folders, &source.path) {
                Ok(verdict) => verdict,
                Err(error) => Verdict::Refused(in_words(&error)),
            }
        } else {
            self.compared(folders, announced, &facts)?
        };
        let wanted = Attributes {
            mode: announced.mode,
            mtime_ns: source.mtime_ns,
            ctime_ns: source.ctime_ns,
            belongs: announced.belongs,
            xattrs: announced.xattrs,
        };
        Ok(match verdict {
            Verdict::Present(hash) if self.update(folders, &source.path, wanted, &facts) => {
                Verdict::Updated(hash)
            }
            verdict => verdict,
        })
    }

    /// The sum of a file that an earlier session was done with; `Some(None)` where it was proved by another kind of sum than is
    /// in use now, or by none: it is there, and not proved here.
    #[expect(clippy::option_option, reason = "a file that is done may have no sum")]
    fn done_before(&self, kept: &ResumeState, source: &Source) -> Option<Option<Sum>> {
        let known = kept.memory.done(&source.key())?;
        Some(known.filter(|sum| Some(sum.kind()) == self.plan.sum))
    }

    fn compared(
        &self,
        folders: &mut Folders,
        announced: Announced<'_>,
        facts: &FileFacts,
    ) -> Result<Verdict, Failure> {
        let source = announced.source;
        if self.plan.spec.overwrite == Overwrite::Always {
            return Ok(Verdict::Make(true));
        }
        let is_file = facts.kind == FileKind::File;
        let there = is_file.then_some(facts.bytes);
        let is_same_time = || self.destination.is_same_time(facts.mtime_ns, source);
        let what = word(facts.kind);
        let difference = match compare(self.plan.spec.sync_level, source.bytes, what, there, is_same_time) {
            Compared::Same => return Ok(Verdict::Present(None)),
            Compared::Different(how) => how,
            Compared::ByContent => match self.hash_of(folders, &source.path)? {
                Ok(found) if Some(found) == announced.hash => return Ok(Verdict::Present(Some(found))),
                Ok(_) => OTHER_CONTENT.to_owned(),
                Err(error) => {
                    let reason = format!("at the destination: {}", kernel_words(&error).to_lowercase());
                    return Ok(Verdict::Refused(reason));
                }
            },
        };
        if is_file && self.is_own(&source.path, facts) {
            return Ok(Verdict::Make(true));
        }
        let older_ns = is_file.then_some(source.mtime_ns);
        Ok(self.way.replacement(difference, facts, older_ns))
    }

    /// Whether this copy put the file there, before it broke off: the source changed since, and nobody's file is replaced.
    fn is_own(&self, path: &[u8], facts: &FileFacts) -> bool {
        let kept = self.destination.site().kept_if_any();
        self.plan.spec.times
            && kept.is_some_and(|kept| kept.memory.has_placed(path, facts.bytes, facts.mtime_ns))
    }

    /// BLAKE3 of a file at the destination; the copy may end meanwhile.
    fn hash_of(&self, folders: &mut Folders, path: &[u8]) -> Result<io::Result<Sum>, Failure> {
        let (parent, name) = split(path);
        let flags = OpenFlags::READ | OpenFlags::NO_FOLLOW | OpenFlags::NO_WAIT;
        let opened = folders
            .get(parent)
            .and_then(|folder| file::open_beneath(folder.as_fd(), name, flags, 0));
        let file = match opened {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let mut hasher = Hasher::new(SumKind::Blake3);
        let mut buffer = vec![0; READ_BYTES];
        let mut offset = 0;
        loop {
            self.run.check()?;
            self.run.beat();
            let read = match self
                .gauges
                .file_ns
                .time(|| file::read_at(file.as_fd(), &mut buffer, offset))
            {
                Ok(0) => return Ok(Ok(hasher.sum())),
                Ok(read) => read,
                Err(error) => return Ok(Err(error)),
            };
            self.gauges.hash_ns.time(|| hasher.update(&buffer[..read]));
            offset += read as u64;
        }
    }

    /// What an earlier session left of a file, if it is still the same; removed if not.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when it cannot be removed.
    pub fn left_of(&self, source: &Source) -> Result<Option<Resumable>, Failure> {
        let site = self.destination.site();
        if self.plan.mode != Mode::Real {
            return Ok(None);
        }
        let kept = site.kept();
        let left = kept.left.lock().expect(POISONED).remove(&path_key(&source.path));
        let Some(left) = left else {
            return Ok(None);
        };
        if left.source == *source {
            return Ok(Some(left));
        }
        kept.staging.remove_left(left.id, &left.source).map_err(|error| {
            Failure::system(
                "folder .farline-partial for incomplete files, at the destination",
                &error,
            )
        })?;
        Ok(None)
    }
}
