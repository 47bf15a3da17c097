//! The server's folder: its key, the secret behind its tickets (or both in a folder of their own), the count of their uses.
//!
//! What is secret is readable by its owner alone, and refused if it is not. Files appear
//! whole or not at all, also when two servers start at the same moment.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use farline_spec::{Failure, FailureKind};
use farline_sys::owner::{RightsOf, is_in_group};
use farline_sys::process::user;
use ring::rand::{SecureRandom, SystemRandom};

/// Longest file that is read from the folder, in bytes.
const MAX_FILE_BYTES: u64 = 65_536;

/// The folders of a server: what it remembers, and its secrets, in the same one unless they have their own.
#[derive(Debug, Clone, Copy)]
pub struct ServerFolders<'a> {
    /// Tickets that were made, used and revoked.
    pub state: &'a Path,
    /// The server's key, and the secret behind its tickets: a service manager may fill this one before it starts the
    /// server, which then writes nothing there.
    pub keys: &'a Path,
}

impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for ServerFolders<'a> {
    fn from(both: &'a P) -> Self {
        Self {
            state: both.as_ref(),
            keys: both.as_ref(),
        }
    }
}

/// A folder that only its owner may write to.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
    /// Where the secrets are: the same folder, unless said otherwise.
    keys: PathBuf,
}

impl StateDir {
    /// Opens the folder; makes it, for its owner alone, if it is not there.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] without a path, [`FailureKind::System`] when it cannot be made or others may write to it.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str().is_empty() {
            return Err(Failure::new(FailureKind::Spec, "state_dir: no folder given"));
        }
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| system("creating the folder", path, &error))?;
        let mode = fs::metadata(path)
            .map_err(|error| system("looking at", path, &error))?
            .mode();
        if mode & 0o022 != 0 {
            let line = format!(
                "others can write to {} (mode {:o}): run chmod 700 on it",
                path.display(),
                mode & 0o777
            );
            return Err(Failure::new(FailureKind::System, line));
        }
        Ok(Self {
            path: path.to_owned(),
            keys: path.to_owned(),
        })
    }

    /// As [`Self::open`], with the secrets where `folders` has them.
    ///
    /// # Errors
    /// As [`Self::open`], for either folder.
    pub fn of(folders: ServerFolders<'_>) -> Result<Self, Failure> {
        let Self { path, .. } = Self::open(folders.state)?;
        let keys = Self::open(folders.keys)?.path;
        Ok(Self { path, keys })
    }

    /// Both folders.
    pub fn folders(&self) -> ServerFolders<'_> {
        ServerFolders {
            state: &self.path,
            keys: &self.keys,
        }
    }

    /// Where the secret file `name` is, whether or not it is there.
    pub fn secret(&self, name: &str) -> PathBuf {
        self.keys.join(name)
    }

    /// Content of the secret file `name`, which is made by `make` if it is not there.
    ///
    /// # Errors
    /// [`FailureKind::System`] when it cannot be read or made, or others may read it.
    pub fn read_or_make(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<Vec<u8>, Failure>,
    ) -> Result<Vec<u8>, Failure> {
        let path = self.secret(name);
        let rights = rights_in(&self.keys)?;
        let read = || read_secret(&path, reader(rights.as_ref()));
        if let Some(content) = read()? {
            return Ok(content);
        }
        self.put(&path, &make()?)?;
        let gone = || {
            Failure::new(
                FailureKind::System,
                format!("{} disappeared while it was read", path.display()),
            )
        };
        read()?.ok_or_else(gone)
    }

    /// Puts a whole file in place unless one is there already.
    fn put(&self, path: &Path, content: &[u8]) -> Result<(), Failure> {
        let draft = self.keys.join(format!(".draft-{}", hex(&random::<8>()?)));
        let synced = write_new(&draft, content).and_then(|file| file.sync_all());
        let written = synced.and_then(|()| match fs::hard_link(&draft, path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
        let removed = fs::remove_file(&draft);
        written
            .and(removed)
            .and_then(|()| sync_dir(&self.keys))
            .map_err(|error| system("writing", path, &error))
    }

    /// Counts one more use of `name` in the folder `group` and gives how many there are now, this one included.
    ///
    /// The count is the length of a file that each use makes longer by one byte: it survives a crash, and
    /// two servers on one folder never give the same number.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the count cannot be written.
    pub fn count(&self, group: &str, name: &str) -> Result<u64, Failure> {
        let _rights = rights_in(&self.path)?;
        let folder = self.path.join(group);
        let path = folder.join(name);
        let counted = || {
            make_private(&folder)?;
            let mut file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(b".")?;
            let uses = file.stream_position()?;
            file.sync_all()?;
            sync_dir(&folder)?;
            Ok(uses)
        };
        counted().map_err(|error| system("counting in", &path, &error))
    }

    /// Length of the file `name` in the folder `group`, in bytes; None if it is not there.
    ///
    /// # Errors
    /// [`FailureKind::System`] when that cannot be told.
    pub fn length(&self, group: &str, name: &str) -> Result<Option<u64>, Failure> {
        let _rights = rights_in(&self.path)?;
        let path = self.path.join(group).join(name);
        match fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            found => found
                .map(|metadata| Some(metadata.len()))
                .map_err(|error| system("looking at", &path, &error)),
        }
    }

    /// Puts an empty file `name` into the folder `group`, on the disk when this returns.
    ///
    /// # Errors
    /// [`FailureKind::System`] when it cannot be made.
    pub fn mark(&self, group: &str, name: &str) -> Result<(), Failure> {
        let _rights = rights_in(&self.path)?;
        let folder = self.path.join(group);
        let path = folder.join(name);
        let marked = || {
            make_private(&folder)?;
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(&path)?;
            file.sync_all()?;
            sync_dir(&folder)?;
            sync_dir(&self.path)
        };
        marked().map_err(|error| system("writing", &path, &error))
    }

    /// Puts a file `name` with `content` into the folder `group`. A power cut may take it away again.
    ///
    /// # Errors
    /// [`FailureKind::System`] when it cannot be written.
    pub fn keep(&self, group: &str, name: &str, content: &[u8]) -> Result<(), Failure> {
        let _rights = rights_in(&self.path)?;
        let folder = self.path.join(group);
        let path = folder.join(name);
        let draft = self.path.join(format!(".draft-{}", hex(&random::<8>()?)));
        let kept = make_private(&folder)
            .and_then(|()| write_new(&draft, content).map(drop))
            .and_then(|()| fs::rename(&draft, &path));
        kept.map_err(|error| {
            // What is left of it is of no use; the failure above is what counts.
            drop(fs::remove_file(&draft));
            system("writing", &path, &error)
        })
    }

    /// Names of the files in the folder `group` with their contents, in the order of the names.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the folder or a file cannot be read, or others may read it.
    pub fn read_all(&self, group: &str) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let rights = rights_in(&self.path)?;
        let folder = self.path.join(group);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.map_err(|error| system("reading", &folder, &error))?,
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| system("reading", &folder, &error))?;
            if let Some(content) = read_secret(&entry.path(), reader(rights.as_ref()))? {
                files.push((entry.file_name().to_string_lossy().into_owned(), content));
            }
        }
        files.sort();
        Ok(files)
    }

    /// Removes the files in the folder `group` whose names `keep` does not want.
    ///
    /// # Errors
    /// [`FailureKind::System`] when the folder cannot be read or a file cannot be removed.
    pub fn prune(&self, group: &str, keep: impl Fn(&str) -> bool) -> Result<(), Failure> {
        let _rights = rights_in(&self.path)?;
        let folder = self.path.join(group);
        let prune = || -> std::io::Result<()> {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if !entry.file_name().to_str().is_some_and(&keep) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        match prune() {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            pruned => pruned.map_err(|error| system("tidying", &folder, &error)),
        }
    }
}

/// Random bytes from the kernel.
///
/// # Errors
/// [`FailureKind::System`] when the kernel gives none.
pub fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::new(FailureKind::System, "the kernel returned no random bytes"))?;
    Ok(bytes)
}

/// Content of a file that nobody but the user `reader` may read; None if it is not there.
fn read_secret(path: &Path, reader: u32) -> Result<Option<Vec<u8>>, Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Ok(found) if !found.is_file() => {
            let line = format!("{} is not a regular file: remove it", path.display());
            return Err(Failure::new(FailureKind::System, line));
        }
        _ => {}
    }
    let file = File::open(path).map_err(|error| system("opening", path, &error))?;
    let metadata = file
        .metadata()
        .map_err(|error| system("looking at", path, &error))?;
    if let Some(advice) = too_open(&metadata, reader) {
        let line = format!(
            "others can read {} (mode {:o}): {advice}",
            path.display(),
            metadata.mode() & 0o777
        );
        return Err(Failure::new(FailureKind::System, line));
    }
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES)
        .read_to_end(&mut content)
        .map_err(|error| system("reading", path, &error))?;
    Ok(Some(content))
}

/// What to do about a secret file that more than the user `reader` may read. One that root owns may be open to that user by
/// its group, or by the access list that a service manager gives it, which looks like root's group from here.
fn too_open(file: &fs::Metadata, reader: u32) -> Option<&'static str> {
    let others = file.mode() & 0o077;
    if file.uid() == reader {
        return (others != 0).then_some("run chmod 600 on it");
    }
    let group_is_ours = file.gid() == 0 || is_in_group(file.gid());
    let is_handed_over = file.uid() == 0 && group_is_ours && others & 0o037 == 0;
    (!is_handed_over).then_some(
        "make this user its owner and run chmod 600 on it; or root its owner, this user's group its group, and chmod 640",
    )
}

/// Number of the user by whose rights files are read.
fn reader(rights: Option<&RightsOf>) -> u32 {
    rights.map_or_else(user, RightsOf::user)
}

/// What the owner of a folder may do, where this is root and it belongs to another: root makes and revokes tickets of a
/// server that runs as another user and has to read them, and who may have put anything into its folder.
fn rights_in(folder: &Path) -> Result<Option<RightsOf>, Failure> {
    if user() != 0 {
        return Ok(None);
    }
    let metadata = fs::metadata(folder).map_err(|error| system("looking at", folder, &error))?;
    if metadata.uid() == 0 {
        return Ok(None);
    }
    let taken = RightsOf::take(metadata.uid(), metadata.gid());
    taken
        .map(Some)
        .map_err(|error| system("taking the rights of the owner of", folder, &error))
}

/// Makes a folder, if it is not there.
fn make_private(folder: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn write_new(path: &Path, content: &[u8]) -> std::io::Result<File> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(content)?;
    Ok(file)
}

fn sync_dir(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn system(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::system(&format!("{what} {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const OTHER: u32 = 61_234;

    fn folder() -> (tempfile::TempDir, StateDir) {
        let temporary = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temporary.path().join("state")).unwrap();
        (temporary, state)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn secrets_may_have_a_folder_of_their_own() {
        let temporary = tempfile::tempdir().unwrap();
        let (state, keys) = (temporary.path().join("state"), temporary.path().join("keys"));
        let folders = ServerFolders {
            state: &state,
            keys: &keys,
        };
        let both = StateDir::of(folders).unwrap();
        both.read_or_make("key", || Ok(b"one".to_vec())).unwrap();
        both.mark("marks", "a").unwrap();
        assert_eq!(fs::read(keys.join("key")).unwrap(), b"one");
        assert_eq!(both.secret("key"), keys.join("key"));
        assert!(state.join("marks/a").exists() && !state.join("key").exists());
    }

    #[test]
    fn what_root_makes_in_the_folder_of_another_user_belongs_to_that_one() {
        if user() != 0 {
            // Nobody else can give files away.
            return;
        }
        let (_keep, state) = folder();
        std::os::unix::fs::chown(&state.path, Some(OTHER), Some(OTHER)).unwrap();
        state.read_or_make("key", || Ok(b"one".to_vec())).unwrap();
        state.mark("marks", "a").unwrap();
        state.keep("kept", "b", b"two").unwrap();
        state.count("uses", "c").unwrap();
        for name in ["key", "marks", "marks/a", "kept", "kept/b", "uses", "uses/c"] {
            let found = fs::symlink_metadata(state.path.join(name)).unwrap();
            assert_eq!((found.uid(), found.gid()), (OTHER, OTHER), "{name}");
        }
    }

    /// The folder's owner decides what is in it; root must not be led out of it by that.
    #[test]
    fn links_in_the_folder_of_another_user_lead_root_to_nothing_that_is_not_theirs() {
        if user() != 0 {
            return;
        }
        let (_keep, state) = folder();
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("file"), b"").unwrap();
        for group in ["marks", "kept", "uses"] {
            std::os::unix::fs::symlink(own.path(), state.path.join(group)).unwrap();
        }
        std::os::unix::fs::chown(&state.path, Some(OTHER), Some(OTHER)).unwrap();
        assert!(state.mark("marks", "a").is_err());
        assert!(state.keep("kept", "b", b"two").is_err());
        assert!(state.count("uses", "c").is_err());
        assert!(state.prune("marks", |_| false).is_err());
        assert!(state.read_all("kept").is_err());
        let left: Vec<_> = fs::read_dir(own.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["file"]);
        // The thread has its own rights again.
        fs::write(own.path().join("more"), b"").unwrap();
        assert_eq!(fs::metadata(own.path().join("more")).unwrap().uid(), 0);
    }

    #[test]
    fn who_else_may_read_a_secret_depends_on_whose_it_is() {
        if user() != 0 {
            return;
        }
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("key");
        fs::write(&path, b"one").unwrap();
        for (owner, group, mode, allowed) in [
            (OTHER, OTHER, 0o600, true),
            (OTHER, OTHER, 0o640, false),
            (OTHER, 0, 0o604, false),
            (0, 0, 0o440, true),
            (0, 0, 0o640, true),
            (0, OTHER, 0o640, false),
            (0, 0, 0o644, false),
            (0, 0, 0o660, false),
            (OTHER + 1, 0, 0o440, false),
        ] {
            std::os::unix::fs::chown(&path, Some(owner), Some(group)).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let found = read_secret(&path, OTHER);
            assert_eq!(found.is_ok(), allowed, "{owner} {group} {mode:o}: {found:?}");
        }
    }

    #[test]
    fn what_is_made_is_for_its_owner_alone_and_stays() {
        let (_keep, state) = folder();
        assert_eq!(state.read_or_make("key", || Ok(b"one".to_vec())).unwrap(), b"one");
        assert_eq!(
            state.read_or_make("key", || panic!("made twice")).unwrap(),
            b"one"
        );
        assert_eq!(mode(&state.path), 0o700);
        assert_eq!(mode(&state.path.join("key")), 0o600);
        assert_eq!(fs::read_dir(&state.path).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn of_two_makers_at_once_one_wins_for_both() {
        let (_keep, state) = folder();
        let other = state.clone();
        let got = state.read_or_make("key", || {
            other.read_or_make("key", || Ok(b"first".to_vec()))?;
            Ok(b"second".to_vec())
        });
        assert_eq!(got.unwrap(), b"first");
    }

    #[test]
    fn a_secret_that_others_can_read_is_refused_with_the_remedy() {
        let (_keep, state) = folder();
        state.read_or_make("key", || Ok(vec![1])).unwrap();
        fs::set_permissions(state.path.join("key"), fs::Permissions::from_mode(0o640)).unwrap();
        let refusal = state.read_or_make("key", || Ok(vec![2])).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::System);
        assert!(
            refusal.message.ends_with(" (mode 640): run chmod 600 on it"),
            "{refusal}"
        );
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_refused() {
        let (_keep, state) = folder();
        fs::set_permissions(&state.path, fs::Permissions::from_mode(0o770)).unwrap();
        assert!(
            StateDir::open(&state.path)
                .unwrap_err()
                .message
                .contains("run chmod 700 on it")
        );
        assert_eq!(StateDir::open(Path::new("")).unwrap_err().kind, FailureKind::Spec);
    }

    #[test]
    fn counts_grow_by_one_whoever_counts() {
        let (_keep, state) = folder();
        let threads: Vec<_> = (0..8)
            .map(|_| {
                let state = state.clone();
                std::thread::spawn(move || state.count("uses", "a").unwrap())
            })
            .collect();
        let mut numbers: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        assert_eq!(state.count("uses", "b").unwrap(), 1);
    }

    #[test]
    fn what_is_kept_is_read_again_and_marks_stay() {
        let (_keep, state) = folder();
        assert!(state.read_all("kept").unwrap().is_empty());
        state.keep("kept", "b", b"two").unwrap();
        state.keep("kept", "a", b"old").unwrap();
        state.keep("kept", "a", b"one").unwrap();
        let expected = [("a", b"one"), ("b", b"two")].map(|(name, text)| (name.to_owned(), text.to_vec()));
        assert_eq!(state.read_all("kept").unwrap(), expected);
        assert_eq!(mode(&state.path.join("kept/a")), 0o600);
        assert_eq!(state.length("kept", "a").unwrap(), Some(3));
        assert_eq!(state.length("marks", "m").unwrap(), None);
        state.mark("marks", "m").unwrap();
        state.mark("marks", "m").unwrap();
        assert_eq!(state.length("marks", "m").unwrap(), Some(0));
        assert_eq!(fs::read_dir(&state.path).unwrap().count(), 2, "no draft is left");
    }

    #[test]
    fn counts_that_nobody_needs_go() {
        let (_keep, state) = folder();
        state.prune("uses", |_| false).unwrap();
        state.count("uses", "old").unwrap();
        state.count("uses", "new").unwrap();
        state.prune("uses", |name| name == "new").unwrap();
        assert_eq!(
            (
                state.count("uses", "old").unwrap(),
                state.count("uses", "new").unwrap()
            ),
            (1, 2)
        );
    }
}
