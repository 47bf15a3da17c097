//! A folder with all that is in it: listed, and removed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use farline_spec::FileKind as Kind;
use farline_sys::file::{self, FileKind, OpenFlags};

use super::owner_rights;
use crate::root::split;

/// Names in one folder, at most.
const MOST_NAMES: usize = 1_000_000;

/// Names in a folder and below it, itself first, and what they are.
pub type Names = Vec<(Vec<u8>, Kind)>;

/// The folder `at` below `from` and all that is in it, as if it were at `path`; `beat` is called for each folder.
///
/// # Errors
/// The kernel's; more than a million names.
pub fn below(from: BorrowedFd<'_>, at: &[u8], path: &[u8], beat: impl Fn()) -> io::Result<Names> {
    let mut names = vec![(path.to_vec(), Kind::Folder)];
    let mut next = 0;
    while let Some((below, kind)) = names.get(next).cloned() {
        next += 1;
        if kind != Kind::Folder {
            continue;
        }
        let folder = opened(from, &[at, &below[path.len()..]].concat())?;
        for listed in file::list(folder.as_fd())? {
            let listed = listed?;
            let kind = kind_of(listed.kind_in(folder.as_fd())?);
            names.push(([&below[..], b"/", &listed.name].concat(), kind));
            if names.len() > MOST_NAMES {
                return Err(io::Error::other(
                    "a folder of more than 1000000 names is not replaced",
                ));
            }
        }
        beat();
    }
    Ok(names)
}

/// Whether all of `names`, as [`below`] gives them, may be removed as far as permission bits tell.
///
/// # Errors
/// The kernel's, of the first that may not.
pub fn check_removable(from: BorrowedFd<'_>, at: &[u8], names: &Names) -> io::Result<()> {
    let length = names.first().map_or(0, |(path, _)| path.len());
    for (path, _) in names.iter().filter(|(_, kind)| *kind == Kind::Folder) {
        let folder = opened(from, &[at, &path[length..]].concat())?;
        let checked = file::check_writable(folder.as_fd());
        if checked.is_err() && !owner_rights::are_withheld(folder.as_fd())? {
            return checked;
        }
    }
    Ok(())
}

/// Removes `names`, as [`below`] gives them, and takes from the list what is gone.
///
/// # Errors
/// The kernel's; what is left stands in the list.
pub fn remove(from: BorrowedFd<'_>, at: &[u8], names: &mut Names) -> io::Result<()> {
    let length = names.first().map_or(0, |(path, _)| path.len());
    while let Some((path, kind)) = names.last() {
        let there = [at, &path[length..]].concat();
        let (parent, name) = split(&there);
        let parent = opened(from, if parent.is_empty() { b"." } else { parent })?;
        let remove = || match kind {
            Kind::Folder => file::remove_folder(parent.as_fd(), name),
            _ => file::unlink(parent.as_fd(), name),
        };
        match path.len() == length {
            true => remove()?,
            false => owner_rights::granted(&parent, remove)?,
        }
        names.pop();
    }
    Ok(())
}

fn opened(from: BorrowedFd<'_>, path: &[u8]) -> io::Result<OwnedFd> {
    file::open_without_links(from, path, OpenFlags::READ | OpenFlags::FOLDER, 0)
}

/// A kind of the file system as one of a report.
pub const fn kind_of(kind: FileKind) -> Kind {
    match kind {
        FileKind::File => Kind::File,
        FileKind::Folder => Kind::Folder,
        FileKind::Link => Kind::Link,
        FileKind::Other => Kind::Other,
    }
}
