//! From what is at the destination to a place that files can go to.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use farline_spec::{Attribute, CopySpec, Failure, FailureKind};
use farline_sys::file::{self, OpenFlags};
use tracing::debug;

use super::NAMERS;
use super::able::Able;
use super::clock::Clock;
use super::fold;
use super::make::OWNER;
use super::place::{self, DestinationLookup, MissingTarget};
use super::shared::{Destination, Mode, POISONED, ResumeState, Shared, broken};
use super::staging::{self, STAGING_NAME, Staging, copy_key};
use crate::Root;
use crate::message::Entry;

const FOLDER_MODE: u32 = 0o777;

/// Whether a copy of `spec`, asked for by `origin`, would find nothing at its destination below `root`; false where that cannot
/// be said. Nothing is made or opened: what comes there meanwhile the copy finds when it begins.
pub fn is_vacant(root: &Root, spec: &CopySpec, origin: &str) -> bool {
    match place::look(root, spec) {
        Ok(DestinationLookup::Folder(folder)) => {
            let folder = folder.as_fd();
            !staging::is_there(folder, &copy_key(spec, origin)) && matches!(is_empty(folder), Ok(true))
        }
        Ok(DestinationLookup::Name(vacancy)) => is_free(&vacancy, spec, origin),
        Err(_) => false,
    }
}

fn is_free(vacancy: &MissingTarget, spec: &CopySpec, origin: &str) -> bool {
    vacancy.facts.is_none() && !staging::is_there(vacancy.parent.as_fd(), &copy_key(spec, origin))
}

impl Shared {
    /// Looks whether what comes can find anything there; settles where it goes as far as that can be known now.
    ///
    /// # Errors
    /// As of [`Staging::open`]; [`FailureKind::System`] when the destination cannot be looked at.
    pub fn is_fresh(&self) -> Result<bool, Failure> {
        if self.mode == Mode::Nothing {
            self.settle_site(Destination::bare(None, None, true));
            return Ok(true);
        }
        let outlook = self.outlook.lock().expect(POISONED).take();
        match outlook {
            Some(DestinationLookup::Folder(folder)) => {
                let site = self.site_of(folder, None, false)?;
                let fresh = site.fresh;
                self.settle_site(site);
                Ok(fresh)
            }
            Some(DestinationLookup::Name(vacancy)) => {
                let fresh = is_free(&vacancy, &self.spec, &self.origin);
                *self.outlook.lock().expect(POISONED) = Some(DestinationLookup::Name(vacancy));
                Ok(fresh)
            }
            None => Ok(false),
        }
    }

    /// Settles where things go, if that is still open, by the first entry.
    ///
    /// # Errors
    /// As of [`Staging::open`]; [`FailureKind::System`] when the folder cannot be made or is a file.
    pub fn settle_by(&self, first: &Entry) -> Result<(), Failure> {
        if self.site.get().is_some() {
            return Ok(());
        }
        let Some(DestinationLookup::Name(vacancy)) = self.outlook.lock().expect(POISONED).take() else {
            return Err(broken("an entry arrived before the destination was examined"));
        };
        let fresh = vacancy.facts.is_none();
        let site = if place::is_one_file(&self.spec, &first.path, &first.kind) {
            let single = (first.path.clone(), vacancy.name);
            self.site_of(vacancy.parent, Some(single), fresh)?
        } else {
            self.folder_site(&vacancy)?
        };
        self.settle_site(site);
        Ok(())
    }

    /// Settles that things go to a folder, if that is still open: no entry comes.
    ///
    /// # Errors
    /// As of [`Self::settle_by`].
    pub fn settle_as_folder(&self) -> Result<(), Failure> {
        let outlook = self.outlook.lock().expect(POISONED).take();
        if let Some(DestinationLookup::Name(vacancy)) = outlook {
            self.settle_site(self.folder_site(&vacancy)?);
        }
        Ok(())
    }

    fn settle_site(&self, site: Destination) {
        self.tell_site(&site);
        // Nobody else does.
        let _ = self.site.set(site);
    }

    /// Says what is known of the place where things go, and what an earlier session left there.
    fn tell_site(&self, site: &Destination) {
        debug!(
            destination = self.spec.destination,
            file_system = self.device.file_system,
            engine = self.choice.engine.word(),
            threads = self.choice.threads,
            is_empty = site.fresh,
            syncs = self.durable,
            "destination ready"
        );
        let Some(kept) = site.kept_if_any() else {
            return;
        };
        let left = kept.left.lock().expect(POISONED);
        if left.is_empty() && kept.memory.is_empty() {
            return;
        }
        let parts = left.values().flat_map(|partial| &partial.parts);
        debug!(
            files_done = kept.memory.all_done().count(),
            files_begun = left.len(),
            trusted_bytes = parts.map(|part| part.1).sum::<u64>(),
            "journal of an earlier session read"
        );
    }

    fn folder_site(&self, vacancy: &MissingTarget) -> Result<Destination, Failure> {
        let what = format!("destination {}", self.spec.destination);
        if let Some(facts) = vacancy.facts {
            let line = format!(
                "{what}: it is {}; a folder can only be copied into a folder",
                place::word(facts.kind)
            );
            return Err(Failure::new(FailureKind::System, line));
        }
        if self.mode == Mode::Dry {
            return Ok(Destination::bare(None, None, true));
        }
        let explain = |error: io::Error| Failure::system(&what, &error);
        let parent = vacancy.parent.as_fd();
        let mode = match self.top.get().filter(|_| self.spec.modes) {
            Some(top) => top.mode & FOLDER_MODE | OWNER,
            None => FOLDER_MODE,
        };
        let is_new = match file::make_folder(parent, &vacancy.name, mode) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(explain(error)),
            made => made.is_ok(),
        };
        let flags = OpenFlags::READ | OpenFlags::FOLDER | OpenFlags::NO_FOLLOW;
        let folder = file::open_beneath(parent, &vacancy.name, flags, 0).map_err(explain)?;
        let mut site = self.site_of(folder, None, true)?;
        site.is_new = is_new;
        Ok(site)
    }

    /// Files go below `folder`; `fresh` if it is known that nothing is there.
    fn site_of(
        &self,
        folder: OwnedFd,
        single: Option<(Vec<u8>, Vec<u8>)>,
        fresh: bool,
    ) -> Result<Destination, Failure> {
        let explain =
            |error: io::Error| Failure::system(&format!("destination {}", self.spec.destination), &error);
        let fresh = fresh || (single.is_none() && is_empty(folder.as_fd()).map_err(explain)?);
        let base = Arc::new(folder);
        if self.mode == Mode::Dry {
            let fold = fold::looked(base.as_fd());
            let mut site = Destination::bare(Some(base), single, fresh);
            site.fold = fold;
            return Ok(site);
        }
        let part = self.spec.share.as_ref().and_then(|share| share.part);
        let staging = Staging::open(base.as_fd(), copy_key(&self.spec, &self.origin), part)?;
        let again = || file::open_at(Some(base.as_fd()), b".", OpenFlags::READ | OpenFlags::FOLDER, 0);
        let bases = (0..NAMERS)
            .map(|_| again().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()
            .map_err(explain)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_err(|error| Failure::system("reading the boot id", &error))?;
        let locked = staging.with_lock(|lock| (lock.tried(self.durable), lock.is_of_the_file()));
        let (tried, keeps_all_away) = locked.ok_or_else(|| broken("the lock was released"))?;
        if !keeps_all_away {
            let how = "the file system has no locks: only copies on this host are prevented from running at the same time";
            self.lose(Attribute::Lock, how, 1);
        }
        let (journal, mut memory) = staging.journal(boot.trim(), self.durable && tried.syncs)?;
        let fresh = fresh && memory.is_empty();
        let left: HashMap<_, _> = std::mem::take(&mut memory.partials);
        let kept = ResumeState {
            staging,
            able: Able {
                clock: Clock::new(tried.grain, &self.spec),
                both_times: tried.both_times,
                modes: tried.modes,
                syncs: tried.syncs,
            },
            journal,
            memory,
            left: Mutex::new(left),
            bases,
        };
        let fold = kept.staging.fold();
        let mut site = Destination::of_files(base, single, fresh, kept);
        site.fold = fold;
        Ok(site)
    }
}

fn is_empty(folder: BorrowedFd<'_>) -> io::Result<bool> {
    for listed in file::list(folder)? {
        if listed?.name != STAGING_NAME {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_destination_is_vacant_where_neither_a_name_nor_the_rest_of_a_copy_is() {
        let top = tempfile::tempdir().unwrap();
        let spec = |name: &str| CopySpec {
            sources: vec!["s".into()],
            destination: top.path().join(name).display().to_string(),
            ..CopySpec::default()
        };
        let is_vacant = |name: &str| is_vacant(&Root::own(), &spec(name), "host");
        assert!(is_vacant("new") && !is_vacant("none/new"));
        fs::create_dir(top.path().join("folder")).unwrap();
        fs::write(top.path().join("file"), "").unwrap();
        assert!(is_vacant("folder") && is_vacant("folder/") && !is_vacant("file") && !is_vacant(""));
        let left = |folder: &Path, of: &str| {
            let key: String = copy_key(&spec(of), "host")
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            fs::create_dir_all(folder.join(".farline-partial").join(key)).unwrap();
        };
        left(&top.path().join("folder"), "folder");
        left(top.path(), "new");
        assert!(!is_vacant("folder") && !is_vacant("new") && is_vacant("other"));
        // What another copy left is none of this one's business.
        fs::create_dir(top.path().join("second")).unwrap();
        left(&top.path().join("second"), "third");
        assert!(is_vacant("second"));
    }
}
