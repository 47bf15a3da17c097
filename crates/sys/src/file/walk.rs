//! Opening beneath a folder where the kernel cannot hold a path there itself: before Linux 5.6, such as on RHEL 8, and where a
//! filter of system calls does not know openat2.
//!
//! The path is walked a name at a time from folders that are held open. `..` goes back to the one that was held before it, so that
//! nothing that is renamed meanwhile leads out; links are read and their names walked in the same way. What an open folder is
//! moved to while it is walked through does not matter, as with openat2.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Links in one path, at most, as the kernel has it (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// As openat2 with RESOLVE_BENEATH and, unless `follows`, RESOLVE_NO_SYMLINKS.
///
/// # Errors
/// The kernel's; `EXDEV` for a path that would leave `from`, `ELOOP` for a link that is not followed and for too many.
pub(super) fn open(
    from: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
    follows: bool,
) -> Result<OwnedFd, Errno> {
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let mut held: Vec<OwnedFd> = Vec::new();
    let mut names = names_of(path)?;
    let mut links = 0;
    while let Some(name) = names.pop_front() {
        let folder = held.last().map_or(from, AsFd::as_fd);
        let is_last = names.is_empty();
        match &name[..] {
            b"." if is_last => return rustix::fs::openat(folder, c".", flags, mode),
            b"." => continue,
            b".." => {
                if held.pop().is_none() {
                    return Err(Errno::XDEV);
                }
                if is_last {
                    names.push_back(b".".to_vec());
                }
                continue;
            }
            _ => {}
        }
        if is_last && flags.contains(OFlags::NOFOLLOW) {
            return open_last(folder, &name, flags, mode);
        }
        let found = match rustix::fs::openat(folder, &name[..], STEP, Mode::empty()) {
            Ok(found) => found,
            Err(Errno::NOENT) if is_last => return open_last(folder, &name, flags, mode),
            Err(errno) => return Err(errno),
        };
        let kind = rustix::fs::statat(&found, c"", AtFlags::EMPTY_PATH)?.st_mode;
        match FileType::from_raw_mode(kind) {
            // A file that is to be made is not made through a link.
            FileType::Symlink if is_last && flags.contains(OFlags::CREATE | OFlags::EXCL) => {
                return Err(Errno::EXIST);
            }
            FileType::Symlink => {
                links += 1;
                if !follows || links > MOST_LINKS {
                    return Err(Errno::LOOP);
                }
                let target = rustix::fs::readlinkat(&found, c"", Vec::new())?;
                for part in names_of(target.to_bytes())?.into_iter().rev() {
                    names.push_front(part);
                }
            }
            _ if is_last => return open_last(folder, &name, flags, mode),
            FileType::Directory => held.push(found),
            _ => return Err(Errno::NOTDIR),
        }
    }
    Err(Errno::NOENT)
}

const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The last name: no link, or it was seen that it is none.
fn open_last(folder: BorrowedFd<'_>, name: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(folder, name, flags.union(OFlags::NOFOLLOW), mode)
}

/// Names of a relative path; one that ends with a slash ends with the folder itself.
fn names_of(path: &[u8]) -> Result<VecDeque<Vec<u8>>, Errno> {
    if path.starts_with(b"/") {
        return Err(Errno::XDEV);
    }
    let mut names: VecDeque<_> = path
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    if path.ends_with(b"/") {
        names.push_back(b".".to_vec());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::ResolveFlags;

    use super::*;

    /// What came of it: what was opened, or why not.
    fn outcome(opened: Result<OwnedFd, Errno>) -> Result<(u64, u64), Errno> {
        let file = opened?;
        let facts = rustix::fs::fstat(file).unwrap();
        Ok((facts.st_dev, facts.st_ino))
    }

    fn tree() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("root/a/b")).unwrap();
        fs::create_dir_all(at("outside")).unwrap();
        for file in ["root/file", "root/a/file", "root/a/b/file", "outside/file"] {
            fs::write(at(file), file).unwrap();
        }
        for (target, link) in [
            ("a", "root/to-a"),
            ("a/b/../file", "root/to-file"),
            ("../file", "root/a/up"),
            ("../../outside", "root/a/out"),
            ("../outside/file", "root/out"),
            ("/etc/passwd", "root/absolute"),
            ("loop", "root/loop"),
            ("nothing", "root/dangling"),
            ("to-a/b/", "root/to-b"),
            (".", "root/a/here"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        top
    }

    #[test]
    fn every_path_comes_to_what_the_kernel_says() {
        let top = tree();
        let root = fs::File::open(top.path().join("root")).unwrap();
        let parts = [
            "a", "b", "file", "to-a", "to-file", "up", "out", "absolute", "loop", "dangling", "to-b", "here",
            "..", ".", "nothing", "",
        ];
        let mut state = 7_u64;
        let mut draw = |count: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % count
        };
        let kinds = [
            OFlags::RDONLY,
            OFlags::RDONLY | OFlags::NOFOLLOW,
            OFlags::PATH | OFlags::NOFOLLOW,
            OFlags::PATH,
            OFlags::RDONLY | OFlags::DIRECTORY,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL,
        ];
        let mut opened = 0;
        for _ in 0..20_000 {
            let path = (0..=draw(5))
                .map(|_| parts[draw(parts.len())])
                .collect::<Vec<_>>()
                .join("/");
            let (flags, follows) = (kinds[draw(kinds.len())] | OFlags::CLOEXEC, draw(3) > 0);
            let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
            if !follows {
                resolve |= ResolveFlags::NO_SYMLINKS;
            }
            let makes = flags.contains(OFlags::CREATE);
            if makes && path.ends_with(['/', '.']) {
                // Which error a folder is that shall be made as a file, nobody asks.
                continue;
            }
            let mode = if makes { Mode::RUSR } else { Mode::empty() };
            let kernel = outcome(rustix::fs::openat2(&root, path.as_bytes(), flags, mode, resolve));
            if kernel == Err(Errno::NOSYS) {
                return;
            }
            if makes && kernel.is_ok() {
                // Made by the first: the second would meet it.
                fs::remove_file(top.path().join("root").join(&path)).unwrap();
                continue;
            }
            let walked = outcome(open(root.as_fd(), path.as_bytes(), flags, mode, follows));
            assert_eq!(walked, kernel, "{path:?} {flags:?} follows: {follows}");
            opened += usize::from(walked.is_ok());
        }
        assert!(opened > 1_000, "{opened}");
    }

    #[test]
    fn what_is_made_is_made_beneath() {
        let top = tree();
        let root = fs::File::open(top.path().join("root")).unwrap();
        let make = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
        open(root.as_fd(), b"to-a/new", make, Mode::RUSR, true).unwrap();
        assert!(top.path().join("root/a/new").exists());
        // A name that a link gives, which is not there yet.
        open(root.as_fd(), b"dangling", make, Mode::RUSR, true).unwrap();
        assert!(top.path().join("root/nothing").exists());
        for path in [&b"../new"[..], b"a/out/new", b"/tmp/new", b"a/../../outside/new"] {
            let refused = open(root.as_fd(), path, make, Mode::RUSR, true).unwrap_err();
            assert_eq!(refused, Errno::XDEV);
        }
        assert!(!top.path().join("outside/new").exists());
        let nameless = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
        for path in [&b"."[..], b"a", b"to-b"] {
            open(root.as_fd(), path, nameless, Mode::RUSR, true).unwrap();
        }
    }
}
