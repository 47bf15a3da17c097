//! What paths are relative to and may not leave.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use farline_spec::Failure;
use farline_sys::file::{self, OpenFlags};

/// Permission bits of a file that is made through a root, before the umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Why a path of a ticket is not followed.
pub(crate) const LEADS_OUT: &str = "leads outside the folder of the ticket";

/// Whether the kernel found a link where none may be, or links that lead in a circle.
pub(crate) fn is_link_loop(error: &io::Error) -> bool {
    /// ELOOP on Linux; std has no stable word for it.
    const LINK_LOOP: i32 = 40;
    error.raw_os_error() == Some(LINK_LOOP)
}

/// A folder that paths of a copy begin at.
#[derive(Debug)]
pub struct Root {
    /// What paths are relative to; `None`: where the process is.
    folder: Option<OwnedFd>,
    is_confined: bool,
}

impl Root {
    /// The caller's own file system: relative paths are relative to where the process is, absolute ones are themselves.
    pub fn own() -> Self {
        Self {
            folder: None,
            is_confined: false,
        }
    }

    /// Everything below `path` and nothing else, held by the kernel (openat2, RESOLVE_BENEATH): an absolute path is taken as relative to it, `..` and
    /// links that lead out are refused. Below `/` there is nothing to hold: paths there are the machine's own.
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when it is no folder that can be opened, or the kernel cannot hold paths.
    pub fn beneath(path: &Path) -> Result<Self, Failure> {
        let explain = |error: io::Error| Failure::system(&format!("root {}", path.display()), &error);
        let flags = OpenFlags::PATH | OpenFlags::FOLDER;
        let folder = file::open_at(None, path.as_os_str().as_bytes(), flags, 0).map_err(explain)?;
        let is_confined = !is_the_top(&folder).map_err(explain)?;
        if is_confined {
            // Found out here and not in the middle of a copy.
            file::open_beneath(folder.as_fd(), b".", flags, 0).map_err(explain)?;
        }
        Ok(Self {
            folder: Some(folder),
            is_confined,
        })
    }

    /// Opens `path` with the flags of open(2) that `farline_sys::file` names. An empty path is the root itself.
    ///
    /// # Errors
    /// The kernel's; `EXDEV` for a path that would leave.
    pub fn open(&self, path: &[u8], flags: OpenFlags) -> io::Result<OwnedFd> {
        let folder = self.folder.as_ref().map(AsFd::as_fd);
        match folder {
            Some(folder) if self.is_confined => {
                file::open_beneath(folder, or_here(relative(path)), flags, NEW_FILE_MODE)
            }
            _ => file::open_at(folder, or_here(path), flags, NEW_FILE_MODE),
        }
    }

    /// Whether paths are held below a folder.
    pub const fn is_confined(&self) -> bool {
        self.is_confined
    }
}

/// The folder part of a path (empty for the root itself) and the last name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

fn is_the_top(folder: &OwnedFd) -> io::Result<bool> {
    let facts = file::stat_fd(folder.as_fd())?;
    let top = file::stat_at(None, b"/", true)?;
    Ok((facts.device, facts.inode) == (top.device, top.inode))
}

/// The folder itself for an empty path, which the kernel would take for no path.
const fn or_here(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

/// `path` without the slashes it begins with.
fn relative(path: &[u8]) -> &[u8] {
    let start = path.iter().position(|byte| *byte != b'/');
    start.map_or(&[], |start| &path[start..])
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(root: &Root, path: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        fs::File::from(root.open(path, OpenFlags::READ)?).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn a_root_is_not_left_by_any_path() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("root");
        fs::create_dir_all(inner.join("a")).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(inner.join("a/file"), "inside").unwrap();
        symlink("../../secret", inner.join("a/out")).unwrap();
        symlink(outer.path().join("secret"), inner.join("absolute")).unwrap();
        symlink(outer.path(), inner.join("folder")).unwrap();
        symlink("a/file", inner.join("in")).unwrap();
        let root = Root::beneath(&inner).unwrap();
        for path in ["a/file", "/a/file", "///a/../a/file", "in"] {
            assert_eq!(read(&root, path.as_bytes()).unwrap(), "inside", "{path}");
        }
        let out = [
            "../secret",
            "/../secret",
            "a/../../secret",
            "a/out",
            "absolute",
            "folder/secret",
            "..",
        ];
        for path in out {
            let error = read(&root, path.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::CrossesDevices, "{path}");
        }
        assert!(root.open(b"", OpenFlags::READ | OpenFlags::FOLDER).is_ok());
    }

    #[test]
    fn one_s_own_files_are_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "own").unwrap();
        let path = folder.path().join("file");
        assert_eq!(read(&Root::own(), path.as_os_str().as_bytes()).unwrap(), "own");
        assert!(Root::own().open(b"", OpenFlags::READ | OpenFlags::FOLDER).is_ok());
    }

    #[test]
    fn at_the_top_of_the_machine_nothing_is_held_and_links_lead_where_they_say() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "own").unwrap();
        symlink(folder.path().join("file"), folder.path().join("link")).unwrap();
        let (own, held) = (
            Root::beneath(Path::new("/")).unwrap(),
            Root::beneath(folder.path()).unwrap(),
        );
        assert!(!own.is_confined() && held.is_confined());
        let path = folder.path().join("link");
        let path = path.as_os_str().as_bytes();
        assert_eq!(read(&own, path).unwrap(), "own");
        assert_eq!(read(&own, &path[1..]).unwrap(), "own");
    }

    #[test]
    fn a_root_that_is_no_folder_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let failure = Root::beneath(file.path()).unwrap_err();
        assert!(failure.message.contains(&file.path().display().to_string()));
        assert!(Root::beneath(Path::new("/no/such/folder")).is_err());
    }
}
