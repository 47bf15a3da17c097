//! Patterns among sources that another host names: expanded here, where the files are, by no shell.
//!
//! What is there by its name is that name, whatever is in it. `*`, `?` and `[..]` stand for what they do in filters, and never for
//! a `/`; a name that begins with a dot is only meant by a pattern that does.

use std::io;
use std::os::fd::AsFd;

use farline_sys::file::{self, FileKind, OpenFlags};

use super::filter::Pattern;
use crate::Root;

/// Names that one pattern may stand for.
const MOST_NAMES: usize = 65_536;

/// The paths that `path` stands for, in order; none if nothing fits. A path without wildcards, or that is there, is itself.
///
/// # Errors
/// `ArgumentListTooLong` for a pattern that stands for too many.
pub(super) fn expand(root: &Root, path: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let is_there = |path: &[u8]| root.open(path, OpenFlags::PATH | OpenFlags::NO_FOLLOW).is_ok();
    if !has_wildcard(path) || is_there(path) {
        return Ok(vec![path.to_vec()]);
    }
    let mut found = vec![Vec::new()];
    let mut names = path.split_inclusive(|byte| *byte == b'/').peekable();
    while let Some(part) = names.next() {
        let name = part.strip_suffix(b"/").unwrap_or(part);
        let slash = &part[name.len()..];
        let is_last = names.peek().is_none();
        let mut next = Vec::new();
        for base in found {
            if !has_wildcard(name) {
                next.push([&base, part].concat());
                continue;
            }
            let wants_folder = !slash.is_empty();
            for fitting in fitting(root, &base, name, wants_folder) {
                next.push([&base[..], &fitting, slash].concat());
            }
            if next.len() > MOST_NAMES {
                return Err(io::ErrorKind::ArgumentListTooLong.into());
            }
        }
        found = next;
        if is_last && !has_wildcard(name) {
            found.retain(|path| is_there(path));
        }
    }
    Ok(found)
}

/// Whether a name or path is a pattern.
pub(crate) fn has_wildcard(name: &[u8]) -> bool {
    name.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Names in the folder `base` that fit, in order; none where it cannot be read.
fn fitting(root: &Root, base: &[u8], pattern: &[u8], wants_folder: bool) -> Vec<Vec<u8>> {
    let Ok(folder) = root.open(base, OpenFlags::READ | OpenFlags::FOLDER) else {
        return Vec::new();
    };
    let Ok(listing) = file::list(folder.as_fd()) else {
        return Vec::new();
    };
    let is_hidden = |name: &[u8]| name.starts_with(b".");
    let read = Pattern::read(pattern);
    let is_folder = |name: &[u8]| {
        file::stat_at(Some(folder.as_fd()), name, true).is_ok_and(|facts| facts.kind == FileKind::Folder)
    };
    let mut names: Vec<Vec<u8>> = listing
        .map_while(Result::ok)
        .map(|listed| listed.name)
        .filter(|name| is_hidden(pattern) || !is_hidden(name))
        .filter(|name| read.fits(name))
        .filter(|name| !wants_folder || is_folder(name))
        .collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn expanded(root: &Root, path: &str) -> Vec<String> {
        let found = expand(root, path.as_bytes()).unwrap();
        found
            .into_iter()
            .map(|path| String::from_utf8(path).unwrap())
            .collect()
    }

    #[test]
    fn patterns_stand_for_the_names_that_fit_and_nothing_outside_the_root() {
        let top = tempfile::tempdir().unwrap();
        let inside = top.path().join("root");
        for folder in ["a1/deep", "a2", "b"] {
            fs::create_dir_all(inside.join(folder)).unwrap();
        }
        for file in [
            "a1/x.dat",
            "a1/.hidden.dat",
            "a2/y.dat",
            "a2/*.dat2",
            "b/z.txt",
            "[b]",
        ] {
            fs::write(inside.join(file), "").unwrap();
        }
        fs::write(top.path().join("secret.dat"), "").unwrap();
        let root = Root::beneath(&inside).unwrap();
        assert_eq!(expanded(&root, "a*/*.dat"), ["a1/x.dat", "a2/y.dat"]);
        assert_eq!(expanded(&root, "/a?/*.dat"), ["/a1/x.dat", "/a2/y.dat"]);
        assert_eq!(expanded(&root, "a1/.*.dat"), ["a1/.hidden.dat"]);
        assert_eq!(expanded(&root, "*/deep"), ["a1/deep"]);
        assert_eq!(expanded(&root, "a*/"), ["a1/", "a2/"]);
        assert_eq!(expanded(&root, "a2/\\*.dat2"), ["a2/*.dat2"]);
        // What is there by its name is itself.
        assert_eq!(expanded(&root, "[b]"), ["[b]"]);
        assert_eq!(expanded(&root, "a2/*.dat2"), ["a2/*.dat2"]);
        assert_eq!(expanded(&root, "none"), ["none"]);
        assert!(expanded(&root, "*.none").is_empty());
        assert!(expanded(&root, "../*.dat").is_empty());
    }
}
