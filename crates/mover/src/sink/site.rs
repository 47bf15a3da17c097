//! From what is at the destination to a place that files can go to.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, OnceLock};

use farline_proto::copy::receiver::Fold;
use farline_spec::{Attribute, CopySpec, Failure, FailureKind};
use farline_sys::file::{self, OpenFlags};
use tracing::debug;

use super::able::Able;
use super::attributes::xattr_changes;
use super::clock::Clock;
use super::entry::Small;
use super::fold;
use super::journal::{Journal, Memory, Resumable};
use super::losses::Losses;
use super::owner::Belongs;
use super::owner_rights::{self, OWNER};
use super::place::{self, DestinationLookup, Folders, MissingTarget, Reach};
use super::plan::{Mode, Plan};
use super::staging::{self, Staging, copy_key};
use super::words::{POISONED, broken};
use crate::Root;
use crate::message::{Entry, Top, Xattr};
use crate::reserved::is_staging;

/// Threads that give names: while one waits for the device the other goes on.
pub const NAMERS: usize = 2;
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

/// Where things go, once that is known.
#[derive(Debug)]
pub struct Site {
    /// The destination folder; nothing where there is none, or none is wanted.
    pub base: Option<Arc<OwnedFd>>,
    /// The one path that may come, and the name that it gets.
    pub single: Option<(Vec<u8>, Vec<u8>)>,
    /// Whether nothing was there.
    pub fresh: bool,
    /// Whether this copy made the destination folder.
    pub is_new: bool,
    /// The bits that the destination folder gets again, once this copy is the last in it.
    pub closed_bits: OnceLock<u32>,
    /// What the destination does not tell apart.
    pub fold: Fold,
    /// What is kept beside the files; only where files are.
    kept: Option<ResumeState>,
}

/// What is kept beside the files until all of them are done.
#[derive(Debug)]
pub struct ResumeState {
    /// The folder for it.
    pub staging: Staging,
    /// What the destination can.
    pub able: Able,
    /// What is proved.
    pub journal: Journal,
    /// What was proved by earlier sessions.
    pub memory: Memory,
    /// Partials of earlier sessions that no entry has asked for yet.
    pub left: Mutex<HashMap<[u8; 16], Resumable>>,
    /// The destination folder once more for each thread that gives names: the kernel tells each descriptor once of what
    /// could not be written since it was opened.
    pub bases: Vec<Arc<OwnedFd>>,
}

impl Site {
    /// A place that nothing is kept at.
    pub const fn bare(base: Option<Arc<OwnedFd>>, single: Option<(Vec<u8>, Vec<u8>)>, fresh: bool) -> Self {
        Self {
            base,
            single,
            fresh,
            is_new: false,
            closed_bits: OnceLock::new(),
            fold: Fold::NOTHING,
            kept: None,
        }
    }

    /// A place that files go to.
    pub fn of_files(
        base: Arc<OwnedFd>,
        single: Option<(Vec<u8>, Vec<u8>)>,
        fresh: bool,
        kept: ResumeState,
    ) -> Self {
        Self {
            base: Some(base),
            single,
            fresh,
            is_new: false,
            closed_bits: OnceLock::new(),
            fold: Fold::NOTHING,
            kept: Some(kept),
        }
    }

    /// What is kept beside the files.
    ///
    /// # Panics
    /// Where no files are kept.
    pub fn kept(&self) -> &ResumeState {
        self.kept
            .as_ref()
            .expect("files are kept only at a site of files")
    }

    /// The same, if files are kept.
    pub const fn kept_if_any(&self) -> Option<&ResumeState> {
        self.kept.as_ref()
    }
}

impl Drop for Site {
    /// A folder that was opened for its owner is closed by the last copy in it, however that ends.
    fn drop(&mut self) {
        let (Some(base), Some(kept)) = (&self.base, &self.kept) else {
            return;
        };
        if let Some(bits) = kept.staging.bits_to_give_back() {
            // A copy that ended early has said why; nobody hears of this.
            let _ = owner_rights::withdraw(base.as_fd(), bits);
            if kept.staging.bits_to_give_back().is_none() {
                // Another has begun just now.
                let _ = owner_rights::grant(base.as_fd());
            }
        }
    }
}

/// The destination of one copy: where things go, and what it can keep.
#[derive(Debug)]
pub struct Destination {
    pub plan: Arc<Plan>,
    /// Who asks.
    origin: String,
    /// Where links at the destination lead that stand for folders, if they do.
    reach: Option<Arc<Reach>>,
    outlook: Mutex<Option<DestinationLookup>>,
    site: OnceLock<Site>,
    /// What the destination folder itself should be like, if there is such a thing.
    pub top: OnceLock<Top>,
    /// Extended attributes that it should have, where they are copied.
    pub top_xattrs: OnceLock<Vec<Xattr>>,
    /// To whom the destination folder itself is to belong.
    pub top_owner: OnceLock<Belongs>,
    /// What could not be kept.
    pub losses: Losses,
}

impl Destination {
    /// That of which `outlook` is known, for who is called `origin`.
    pub fn new(
        plan: &Arc<Plan>,
        origin: String,
        reach: Option<Arc<Reach>>,
        outlook: Option<DestinationLookup>,
    ) -> Self {
        Self {
            plan: Arc::clone(plan),
            origin,
            reach,
            outlook: Mutex::new(outlook),
            site: OnceLock::new(),
            top: OnceLock::new(),
            top_xattrs: OnceLock::new(),
            top_owner: OnceLock::new(),
            losses: Losses::default(),
        }
    }

    /// Where things go.
    ///
    /// # Panics
    /// Before the first entry.
    pub fn site(&self) -> &Site {
        self.site
            .get()
            .expect("an entry is known only at a known destination")
    }

    /// Where things go, once that is known.
    pub fn site_if_any(&self) -> Option<&Site> {
        self.site.get()
    }

    /// What is kept beside the files, where that is known and anything is.
    pub fn kept_if_any(&self) -> Option<&ResumeState> {
        self.site.get()?.kept_if_any()
    }

    /// Folders for one thread.
    pub fn folders(&self) -> Option<Folders> {
        let base = self.site().base.as_ref()?;
        let makes = self.plan.mode == Mode::Real && !self.plan.spec.existing;
        Some(Folders::new(Arc::clone(base), makes, self.reach.clone()))
    }

    /// Folders for the thread `namer` that gives names, with a descriptor of its own.
    pub fn folders_of(&self, namer: usize) -> Option<Folders> {
        let kept = self.site().kept_if_any();
        match kept.and_then(|kept| kept.bases.get(namer)) {
            Some(base) => Some(Folders::new(
                Arc::clone(base),
                !self.plan.spec.existing,
                self.reach.clone(),
            )),
            None => self.folders(),
        }
    }

    /// What there is of a small file goes.
    pub fn unstage(&self, small: &Small) {
        if let Some(staged) = &small.staged {
            // What is left there goes with the folder.
            let _ = self.site().kept().staging.remove(staged);
        }
    }

    /// Looks whether what comes can find anything there; settles where it goes as far as that can be known now.
    ///
    /// # Errors
    /// As of [`Staging::open`]; [`FailureKind::System`] when the destination cannot be looked at.
    pub fn is_fresh(&self) -> Result<bool, Failure> {
        if self.plan.mode == Mode::Nothing {
            self.settle_site(Site::bare(None, None, true));
            return Ok(true);
        }
        let outlook = self.outlook.lock().expect(POISONED).take();
        match outlook {
            Some(DestinationLookup::Folder(folder)) if self.is_locked(folder.as_fd())? => {
                *self.outlook.lock().expect(POISONED) = Some(DestinationLookup::Folder(folder));
                Ok(false)
            }
            Some(DestinationLookup::Folder(folder)) => {
                let site = self.site_of(folder, None, false)?;
                let fresh = site.fresh;
                self.settle_site(site);
                Ok(fresh)
            }
            Some(DestinationLookup::Name(vacancy)) => {
                let fresh = is_free(&vacancy, &self.plan.spec, &self.origin);
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
        let vacancy = match self.outlook.lock().expect(POISONED).take() {
            Some(DestinationLookup::Name(vacancy)) => vacancy,
            Some(DestinationLookup::Folder(folder)) => {
                self.settle_site(self.locked_site(folder)?);
                return Ok(());
            }
            None => return Err(broken("an entry arrived before the destination was examined")),
        };
        let fresh = vacancy.facts.is_none();
        let site = if place::is_one_file(&self.plan.spec, &first.path, &first.kind) {
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
        match outlook {
            Some(DestinationLookup::Name(vacancy)) => self.settle_site(self.folder_site(&vacancy)?),
            Some(DestinationLookup::Folder(folder)) => self.settle_site(self.locked_site(folder)?),
            None => {}
        }
        Ok(())
    }

    /// Whether the folder at `path` is opened for its owner if its bits forbid him to write: any that an entry is about, the
    /// destination folder itself only if the source is like that.
    pub fn opens(&self, path: &[u8]) -> bool {
        let is_alike = || {
            self.top
                .get()
                .is_some_and(|top| owner_rights::are_incomplete(top.mode))
        };
        self.plan.spec.modes && (!path.is_empty() || is_alike())
    }

    /// Whether the destination folder may have to be opened first.
    fn is_locked(&self, folder: BorrowedFd<'_>) -> Result<bool, Failure> {
        if self.plan.mode != Mode::Real || !self.plan.spec.modes {
            return Ok(false);
        }
        owner_rights::are_withheld(folder).map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::system(&format!("destination {}", self.plan.spec.destination), error)
    }

    /// Files go below a folder that is locked: it is open for this copy where the source's bits are such, too.
    fn locked_site(&self, folder: OwnedFd) -> Result<Site, Failure> {
        if !self.opens(b"") {
            return self.site_of(folder, None, false);
        }
        let base = Arc::new(folder);
        let bits = owner_rights::grant(base.as_fd()).map_err(|error| self.failed(&error))?;
        self.site_at(Arc::clone(&base), None, false)
            .and_then(|site| self.noted(site, bits))
            .inspect_err(|_| {
                // What matters is why there is no place.
                let _ = owner_rights::withdraw(base.as_fd(), bits);
            })
    }

    /// The last copy at the place gives the folder these bits, if they lack rights of its owner.
    fn noted(&self, site: Site, bits: u32) -> Result<Site, Failure> {
        if owner_rights::are_incomplete(bits) {
            let noted = site.kept().staging.note_bits(bits);
            noted.map_err(|error| self.failed(&error))?;
        }
        Ok(site)
    }

    fn settle_site(&self, site: Site) {
        self.tell_site(&site);
        // Nobody else does.
        let _ = self.site.set(site);
    }

    /// Says what is known of the place where things go, and what an earlier session left there.
    fn tell_site(&self, site: &Site) {
        debug!(
            destination = self.plan.spec.destination,
            file_system = self.plan.device.file_system,
            engine = self.plan.choice.engine.word(),
            threads = self.plan.choice.threads,
            is_empty = site.fresh,
            syncs = self.plan.durable,
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

    fn folder_site(&self, vacancy: &MissingTarget) -> Result<Site, Failure> {
        let what = format!("destination {}", self.plan.spec.destination);
        if let Some(facts) = vacancy.facts {
            let line = format!(
                "{what}: it is {}; a folder can only be copied into a folder",
                place::word(facts.kind)
            );
            return Err(Failure::new(FailureKind::System, line));
        }
        if self.plan.mode == Mode::Dry {
            return Ok(Site::bare(None, None, true));
        }
        let explain = |error: io::Error| self.failed(&error);
        let parent = vacancy.parent.as_fd();
        let mode = match self.top.get().filter(|_| self.plan.spec.modes) {
            Some(top) => top.mode & FOLDER_MODE | OWNER,
            None => FOLDER_MODE,
        };
        let is_new = match file::make_folder(parent, &vacancy.name, mode) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(explain(error)),
            made => made.is_ok(),
        };
        let flags = OpenFlags::READ | OpenFlags::FOLDER | OpenFlags::NO_FOLLOW;
        let folder = file::open_beneath(parent, &vacancy.name, flags, 0).map_err(explain)?;
        if is_new {
            self.give_top_xattrs(folder.as_fd()).map_err(|error| {
                // The next copy is to try again; this folder is empty.
                let _ = file::remove_folder(parent, &vacancy.name);
                explain(error)
            })?;
        }
        let top = self.top.get().filter(|_| is_new && self.plan.spec.modes);
        let mut site = self.site_of(folder, None, true)?;
        site.is_new = is_new;
        match top {
            Some(top) => self.noted(site, top.mode & FOLDER_MODE),
            None => Ok(site),
        }
    }

    /// Gives a destination folder that was just made the source's extended attributes, where they are copied: what it inherits is
    /// not the source's.
    fn give_top_xattrs(&self, folder: BorrowedFd<'_>) -> io::Result<()> {
        if self.top.get().is_none() || !self.plan.spec.xattrs {
            return Ok(());
        }
        let wanted = self.top_xattrs.get().map_or(&[][..], Vec::as_slice);
        let changes = xattr_changes(folder, wanted)?;
        let changes = match self.plan.spec.modes {
            true => changes,
            false => changes.without_lists(),
        };
        changes.apply(&self.losses, folder)?;
        owner_rights::complete(folder)
    }

    /// Files go below `folder`; `fresh` if it is known that nothing is there.
    fn site_of(
        &self,
        folder: OwnedFd,
        single: Option<(Vec<u8>, Vec<u8>)>,
        fresh: bool,
    ) -> Result<Site, Failure> {
        self.site_at(Arc::new(folder), single, fresh)
    }

    fn site_at(
        &self,
        base: Arc<OwnedFd>,
        single: Option<(Vec<u8>, Vec<u8>)>,
        fresh: bool,
    ) -> Result<Site, Failure> {
        let explain = |error: io::Error| self.failed(&error);
        let fresh = fresh || (single.is_none() && is_empty(base.as_fd()).map_err(explain)?);
        if self.plan.mode == Mode::Dry {
            let fold = fold::looked(base.as_fd());
            let mut site = Site::bare(Some(base), single, fresh);
            site.fold = fold;
            return Ok(site);
        }
        let part = self.plan.spec.share.as_ref().and_then(|share| share.part);
        let staging = Staging::open(base.as_fd(), copy_key(&self.plan.spec, &self.origin), part)?;
        let again = || file::open_at(Some(base.as_fd()), b".", OpenFlags::READ | OpenFlags::FOLDER, 0);
        let bases = (0..NAMERS)
            .map(|_| again().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()
            .map_err(explain)?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map_err(|error| Failure::system("reading the boot id", &error))?;
        let locked = staging.with_lock(|lock| (lock.tried(self.plan.durable), lock.is_of_the_file()));
        let (tried, keeps_all_away) = locked.ok_or_else(|| broken("the lock was released"))?;
        if !keeps_all_away {
            let how = "the file system has no locks: only copies on this host are prevented from running at the same time";
            self.losses.lose(Attribute::Lock, how, 1);
        }
        let (journal, mut memory) = staging.journal(boot.trim(), self.plan.durable && tried.syncs)?;
        let fresh = fresh && memory.is_empty();
        let left: HashMap<_, _> = std::mem::take(&mut memory.partials);
        let kept = ResumeState {
            staging,
            able: Able {
                clock: Clock::new(tried.grain, &self.plan.spec),
                both_times: tried.both_times,
                modes: tried.modes,
                syncs: tried.syncs,
                follows_links: OnceLock::new(),
            },
            journal,
            memory,
            left: Mutex::new(left),
            bases,
        };
        let fold = kept.staging.fold();
        let mut site = Site::of_files(base, single, fresh, kept);
        site.fold = fold;
        Ok(site)
    }
}

fn is_empty(folder: BorrowedFd<'_>) -> io::Result<bool> {
    for listed in file::list(folder)? {
        if !is_staging(&listed?.name) {
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
