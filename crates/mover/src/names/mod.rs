//! Answers about names below a root, and changes of them, one at a time.
//!
//! What a copy does to names is `sink`'s; here somebody asks for one thing, and gets it or hears why not. Nothing is followed out
//! of the root: a name is changed through the folder it is in, which the kernel finds beneath the root.

mod change;
mod sums;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use farline_spec::{
    MOST_READ_BYTES, NameAnswer, NameFacts, NameKind, NameRefusal, NameRequest, NameRights, NameSum,
    kernel_words,
};
use farline_sys::file::{self, FileFacts, FileKind, OpenFlags};

use self::sums::sums_of;
use crate::message::MAX_PATH_BYTES;
use crate::path_text::{Shown, to_bytes, to_text};
use crate::root::{LEADS_OUT, Root, is_link_loop, split};

/// Bytes of names and targets in one answer, as text; the rest of an entry is about as long again.
const MOST_LISTED_BYTES: usize = 192 << 10;
/// Names in one answer.
const MOST_LISTED: usize = 2_000;
/// Names of one folder that are sorted: what more there is cannot be listed.
const MOST_NAMES: usize = 10_000_000;

/// Why something was not done.
struct Refused(NameRefusal, String);

type Answer<T> = Result<T, Refused>;

/// Names below a root, for one client.
#[derive(Debug)]
pub struct Names {
    root: Root,
    rights: NameRights,
    /// Bytes that may still be read.
    left_bytes: Option<u64>,
    /// The folder that was listed last, and what was in it, sorted.
    listed: Option<(Vec<u8>, Vec<Vec<u8>>)>,
}

impl Names {
    /// Names below `root`; no more than `most_bytes` of files are read.
    pub fn new(root: Root, rights: NameRights, most_bytes: Option<u64>) -> Self {
        Self {
            root,
            rights,
            left_bytes: most_bytes,
            listed: None,
        }
    }

    /// Does what is asked for; what takes long ends early once `is_wanted` says no.
    pub fn answer(&mut self, request: &NameRequest, is_wanted: &dyn Fn() -> bool) -> NameAnswer {
        let answered = match request {
            NameRequest::List { path, after } => self.list(path, after.as_deref()),
            NameRequest::Stat { path, follow, sums } => self
                .stat(path, *follow, sums, is_wanted)
                .map(|facts| NameAnswer::Facts { facts }),
            NameRequest::MakeFolder { path, parents } => self.make_folder(path, *parents).map(done),
            NameRequest::Rename {
                path,
                to,
                replace,
                parents,
            } => self.rename(path, to, *replace, *parents).map(done),
            NameRequest::Remove { path, recursive } => self.remove(path, *recursive, is_wanted).map(done),
            NameRequest::Read { path, offset, bytes } => self.read(path, *offset, *bytes),
        };
        answered.unwrap_or_else(|Refused(reason, message)| NameAnswer::Refused { reason, message })
    }

    fn list(&mut self, path: &str, after: Option<&str>) -> Answer<NameAnswer> {
        let path = known(path)?;
        let after = after.map(known).transpose()?;
        let folder = self
            .root
            .open(&path, OpenFlags::READ | OpenFlags::FOLDER)
            .map_err(|error| refused(&path, &error))?;
        let held = self
            .listed
            .take()
            .filter(|(held, _)| after.is_some() && *held == path);
        let names = match held {
            Some((_, names)) => names,
            None => sorted_names(folder.as_fd(), &path)?,
        };
        let begin = after.map_or(0, |after| names.partition_point(|name| *name <= after));
        let (mut found, mut length, mut seen) = (Vec::new(), 0, begin);
        while seen < names.len() && found.len() < MOST_LISTED && length < MOST_LISTED_BYTES {
            // One that is gone meanwhile is not there.
            if let Ok(facts) = file::stat_at(Some(folder.as_fd()), &names[seen], false) {
                let facts = self.described(folder.as_fd(), &path, &names[seen], &facts);
                length += facts.name.len() + facts.target.as_ref().map_or(0, String::len);
                found.push(facts);
            }
            seen += 1;
        }
        let more = seen < names.len();
        if more {
            self.listed = Some((path, names));
        }
        Ok(NameAnswer::Names { names: found, more })
    }

    fn described(&self, folder: BorrowedFd<'_>, path: &[u8], name: &[u8], facts: &FileFacts) -> NameFacts {
        let target = (facts.kind == FileKind::Link)
            .then(|| file::read_link(folder, name).ok())
            .flatten();
        let target_kind = target.as_ref().and_then(|_| {
            let whole = [path, name].join(&b'/');
            let led_to = self.root.open(&whole, OpenFlags::PATH).ok()?;
            file::stat_fd(led_to.as_fd()).ok().map(|facts| kind(facts.kind))
        });
        NameFacts {
            target: target.map(|target| to_text(&target)),
            target_kind,
            ..plain_facts(name, facts)
        }
    }

    fn stat(
        &self,
        path: &str,
        follow: bool,
        sums: &[NameSum],
        is_wanted: &dyn Fn() -> bool,
    ) -> Answer<NameFacts> {
        let path = known(path)?;
        let explain = |error: io::Error| refused(&path, &error);
        let (above, name) = split(&path);
        let is_named = !matches!(name, b"" | b"." | b"..");
        let mut found = if follow || !is_named {
            let file = self.root.open(&path, OpenFlags::PATH).map_err(explain)?;
            let name = if is_named { name } else { b"" };
            plain_facts(name, &file::stat_fd(file.as_fd()).map_err(explain)?)
        } else {
            let folder = self.folder(above, &path)?;
            let facts = file::stat_at(Some(folder.as_fd()), name, false).map_err(explain)?;
            self.described(folder.as_fd(), above, name, &facts)
        };
        if !sums.is_empty() {
            let file = self.open_file(&path)?;
            found.sums = sums_of(file.as_fd(), sums, is_wanted)
                .map_err(explain)?
                .ok_or_else(|| {
                    Refused(
                        NameRefusal::System,
                        format!("{}: nobody waits for its sum", Shown(&path)),
                    )
                })?;
        }
        Ok(found)
    }

    fn read(&mut self, path: &str, offset: u64, bytes: u64) -> Answer<NameAnswer> {
        if !self.rights.read {
            let line = "the ticket is for writing files, not for reading what is in them".to_owned();
            return Err(Refused(NameRefusal::NotAllowed, line));
        }
        let path = known(path)?;
        let file = self.open_file(&path)?;
        let explain = |error: io::Error| refused(&path, &error);
        let file_bytes = file::stat_fd(file.as_fd()).map_err(explain)?.bytes;
        let wanted = bytes.min(MOST_READ_BYTES).min(file_bytes.saturating_sub(offset));
        if self.left_bytes.is_some_and(|left| left < wanted) {
            let line = "total_bytes: the ticket does not allow reading more in this session".to_owned();
            return Err(Refused(NameRefusal::Limit, line));
        }
        let mut data = vec![0; wanted as usize];
        let count = file::read_at(file.as_fd(), &mut data, offset).map_err(explain)?;
        data.truncate(count);
        if let Some(left) = &mut self.left_bytes {
            *left -= count as u64;
        }
        Ok(NameAnswer::Bytes { data, file_bytes })
    }

    fn check_write(&self, what: &str) -> Answer<()> {
        if self.rights.write {
            return Ok(());
        }
        let line = format!("the ticket is for reading files, not for {what}");
        Err(Refused(NameRefusal::NotAllowed, line))
    }

    /// The folder that a name to be changed is in, and the name there.
    fn named<'a>(&self, path: &'a [u8]) -> Answer<(&'a [u8], &'a [u8])> {
        let (above, name) = split(path);
        if matches!(name, b"" | b"." | b"..") {
            let line = format!("{}: the path must end with a name", Shown(path));
            return Err(Refused(NameRefusal::Invalid, line));
        }
        Ok((above, name))
    }

    fn folder(&self, above: &[u8], path: &[u8]) -> Answer<OwnedFd> {
        self.root
            .open(above, OpenFlags::PATH | OpenFlags::FOLDER)
            .map_err(|error| refused(path, &error))
    }

    /// Opens a regular file to be read; a pipe is not waited for.
    fn open_file(&self, path: &[u8]) -> Answer<OwnedFd> {
        let explain = |error: io::Error| refused(path, &error);
        let file = self
            .root
            .open(path, OpenFlags::READ | OpenFlags::NO_WAIT)
            .map_err(explain)?;
        match file::stat_fd(file.as_fd()).map_err(explain)?.kind {
            FileKind::File => Ok(file),
            FileKind::Folder => Err(Refused(
                NameRefusal::IsAFolder,
                format!("{}: is a folder", Shown(path)),
            )),
            _ => Err(Refused(
                NameRefusal::Invalid,
                format!("{}: is not a regular file", Shown(path)),
            )),
        }
    }
}

fn done(count: u64) -> NameAnswer {
    NameAnswer::Done { count }
}

/// The bytes of a path, without slashes at its end.
fn known(text: &str) -> Answer<Vec<u8>> {
    let mut path = to_bytes(text).map_err(|failure| Refused(NameRefusal::Invalid, failure.message))?;
    if path.len() > MAX_PATH_BYTES {
        let line = format!("a path of {} bytes; allowed: up to {MAX_PATH_BYTES}", path.len());
        return Err(Refused(NameRefusal::Invalid, line));
    }
    while path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    Ok(path)
}

fn sorted_names(folder: BorrowedFd<'_>, path: &[u8]) -> Answer<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for listed in file::list(folder).map_err(|error| refused(path, &error))? {
        names.push(listed.map_err(|error| refused(path, &error))?.name);
        if names.len() > MOST_NAMES {
            let line = format!("{}: more than {MOST_NAMES} names", Shown(path));
            return Err(Refused(NameRefusal::Limit, line));
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn plain_facts(name: &[u8], facts: &FileFacts) -> NameFacts {
    NameFacts {
        name: to_text(name),
        kind: kind(facts.kind),
        bytes: facts.bytes,
        mtime_ns: facts.mtime_ns,
        mode: facts.mode,
        target: None,
        target_kind: None,
        sums: Default::default(),
    }
}

const fn kind(found: FileKind) -> NameKind {
    match found {
        FileKind::File => NameKind::File,
        FileKind::Folder => NameKind::Folder,
        FileKind::Link => NameKind::Link,
        FileKind::Other => NameKind::Other,
    }
}

/// Why the kernel did not do it, for whoever asked.
fn refused(path: &[u8], error: &io::Error) -> Refused {
    use io::ErrorKind as Kind;
    let (reason, why) = match error.kind() {
        Kind::NotFound => (NameRefusal::NotFound, "no such file or folder".to_owned()),
        Kind::AlreadyExists => (NameRefusal::Exists, "exists already".to_owned()),
        Kind::NotADirectory => (NameRefusal::NotAFolder, "is not a folder".to_owned()),
        Kind::IsADirectory => (NameRefusal::IsAFolder, "is a folder".to_owned()),
        Kind::DirectoryNotEmpty => (NameRefusal::NotEmpty, "the folder is not empty".to_owned()),
        Kind::CrossesDevices => (NameRefusal::Outside, LEADS_OUT.to_owned()),
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => (NameRefusal::NoPermission, kernel_words(error)),
        _ if file::is_bad_name(error) => (NameRefusal::Invalid, kernel_words(error)),
        _ if is_link_loop(error) => (NameRefusal::Invalid, "links lead in a circle".to_owned()),
        _ => (NameRefusal::System, kernel_words(error)),
    };
    let path = if path.is_empty() { b".".as_slice() } else { path };
    Refused(reason, format!("{}: {why}", Shown(path)))
}
