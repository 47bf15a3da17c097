//! The lock that keeps two copies of one key apart, and what is tried on its file.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use farline_sys::file::{self, FileFacts, OpenFlags};

use super::able::{Modes, Tried};
use super::clock::{Clock, Grain};

/// Permission bits that no file system gives unasked.
const ODD_MODE: u32 = 0o624;
/// Those of the lock.
const MODE: u32 = 0o600;

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    file: OwnedFd,
    /// The name of the folder on this host, where the file system has no locks.
    on_host: Option<UnixDatagram>,
}

/// Sets the time of last change; `both`: with that of last access.
///
/// # Errors
/// The kernel's.
pub fn set_times(file: BorrowedFd<'_>, mtime_ns: i64, both: bool) -> io::Result<()> {
    match both {
        true => file::set_both_times(file, mtime_ns),
        false => file::set_times(file, mtime_ns),
    }
}

/// Bytes that were given to nobody else: of this process, a count and the time.
pub fn token() -> [u8; 32] {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let text = format!("{}-{count}-{:?}", std::process::id(), SystemTime::now());
    *blake3::hash(text.as_bytes()).as_bytes()
}

impl Lock {
    /// Takes the lock `file` of `folder`; `None` while another copy has it. Where the file system has no locks, the host keeps
    /// the folder's name for one process at a time.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take(folder: BorrowedFd<'_>, file: OwnedFd) -> io::Result<Option<Self>> {
        match file::lock_exclusive(file.as_fd()) {
            Ok(true) => return Ok(Some(Self { file, on_host: None })),
            Ok(false) => return Ok(None),
            Err(error) if file::is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
        let path = std::fs::read_link(format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
        let hash = blake3::hash(path.as_os_str().as_bytes()).to_hex();
        let name = SocketAddr::from_abstract_name(format!("farline-copy-{hash}"))?;
        match UnixDatagram::bind_addr(&name) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Ok(None),
            bound => bound.map(|bound| {
                let on_host = Some(bound);
                Some(Self { file, on_host })
            }),
        }
    }

    /// Takes the lock `file` together with other parts of the same copy; `None` while the session that ends it has it alone.
    /// Where the file system has no locks, nothing is kept apart by it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn share(file: OwnedFd) -> io::Result<Option<Self>> {
        match file::lock_shared(file.as_fd()) {
            Ok(false) => Ok(None),
            Err(error) if !file::is_unsupported(&error) => Err(error),
            _ => Ok(Some(Self { file, on_host: None })),
        }
    }

    /// Whether it keeps copies on other hosts away too.
    pub const fn is_of_the_file(&self) -> bool {
        self.on_host.is_none()
    }

    /// Whether the file that is locked has the name `name` in `folder`. It is written to: its time is that of now, and where file
    /// numbers change it is known by what is in it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_in(&self, folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<bool> {
        let token = token();
        file::write_all_at(self.file.as_fd(), &token, 0)?;
        let named = match file::stat_at(Some(folder), name, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            named => named?,
        };
        if named.inode == file::stat_fd(self.file.as_fd())?.inode {
            return Ok(true);
        }
        let flags = OpenFlags::READ | OpenFlags::NO_FOLLOW;
        let named = match file::open_beneath(folder, name, flags, 0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            named => named?,
        };
        let mut found = [0; 32];
        file::read_at(named.as_fd(), &mut found, 0)?;
        Ok(found == token)
    }

    /// Whether the file that is locked is the one of these facts.
    ///
    /// # Errors
    /// The kernel's.
    pub fn is_at(&self, named: &FileFacts) -> io::Result<bool> {
        Ok(named.inode == file::stat_fd(self.file.as_fd())?.inode)
    }

    /// What the file system makes of times, permission bits and a sync (if `durable`).
    pub fn tried(&self, durable: bool) -> Tried {
        let file = self.file.as_fd();
        let looked = || file::stat_fd_anew(file).map(|facts| facts.mtime_ns);
        let unset_ns = looked().unwrap_or(0);
        let set = file::set_times(file, Clock::probe_ns()).and_then(|()| looked());
        let set_both = || file::set_both_times(file, Clock::probe_ns()).and_then(|()| looked());
        let now_ns = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as i64);
        let mut grain = Grain::of(set, unset_ns, now_ns);
        let takes_one = grain.is_settable();
        if !takes_one {
            grain = Grain::of(set_both(), unset_ns, now_ns);
        }
        Tried {
            grain,
            both_times: !takes_one && grain.is_settable(),
            modes: self.tried_modes(),
            syncs: !durable || !file::sync_data(file).is_err_and(|error| file::is_unsupported(&error)),
        }
    }

    fn tried_modes(&self) -> Modes {
        let file = self.file.as_fd();
        if file::set_mode(file, ODD_MODE).is_err() {
            return Modes::Refused;
        }
        let modes = match file::stat_fd_anew(file) {
            Ok(facts) if facts.mode & 0o777 != ODD_MODE => Modes::Fixed(facts.mode & 0o777),
            _ => Modes::ResumeState,
        };
        // Where it cannot be set back it goes with the folder.
        let _ = file::set_mode(file, MODE);
        modes
    }

    /// How the file system keeps a time of last change.
    ///
    /// # Errors
    /// The kernel's.
    pub fn kept_as(&self, mtime_ns: i64, both_times: bool) -> io::Result<i64> {
        set_times(self.file.as_fd(), mtime_ns, both_times)?;
        Ok(file::stat_fd_anew(self.file.as_fd())?.mtime_ns)
    }
}
