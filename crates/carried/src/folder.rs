//! A server's folder that goes with its process: its secret, and the ticket that it signs, die together.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use farline_spec::Failure;

/// How many names are tried where one is taken.
const TRIES: u32 = 16;

/// A folder that only this user may enter; removed when this is dropped.
#[derive(Debug)]
pub struct OwnFolder(PathBuf);

impl OwnFolder {
    /// In the run-time folder, which is in memory and gone after a logout, else in `TMPDIR` or `/tmp`.
    ///
    /// # Errors
    /// [`farline_spec::FailureKind::System`] when there is no room for it.
    pub fn make() -> Result<Self, Failure> {
        let named = ["XDG_RUNTIME_DIR", "TMPDIR"];
        let places = named.iter().filter_map(std::env::var_os).map(PathBuf::from);
        let mut last = None;
        for place in places.chain([PathBuf::from("/tmp")]) {
            match Self::below(&place) {
                Ok(folder) => return Ok(folder),
                Err(failure) => last = Some(failure),
            }
        }
        Err(last.expect("one place was tried"))
    }

    fn below(place: &Path) -> Result<Self, Failure> {
        let (mut path, mut error) = (PathBuf::new(), None);
        for number in 0..TRIES {
            // Not to be guessed is the mode's business: whoever finds the name cannot enter.
            path = place.join(format!("farline-server-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(found) => error = Some(found),
            }
        }
        let error = error.expect("one name was tried");
        Err(Failure::system(&format!("{}", path.display()), &error))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for OwnFolder {
    fn drop(&mut self) {
        // What cannot be removed is of no use to anybody: the server that takes its tickets has gone.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_its_owners_alone_and_goes() {
        let place = tempfile::tempdir().unwrap();
        let (one, other) = (
            OwnFolder::below(place.path()).unwrap(),
            OwnFolder::below(place.path()).unwrap(),
        );
        assert_ne!(one.path(), other.path());
        let mode = fs::metadata(one.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(one.path().join("key"), "secret").unwrap();
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
    }

    #[test]
    fn a_place_that_takes_none_is_named() {
        let failure = OwnFolder::below(Path::new("/dev/null/none")).unwrap_err();
        assert!(failure.message.contains("/dev/null/none"), "{failure}");
    }
}
