//! Owners and groups: names of users to their numbers and back, and whose a file is.

use std::ffi::CString;
use std::io;
use std::os::fd::BorrowedFd;

use rustix::fs::{AtFlags, Gid, Uid};
use rustix::io::Errno;

use crate::file::again;

/// Room for one record of the databases of users and groups, and how much it may grow: a group can have many members.
const FIRST_BYTES: usize = 4 * 1024;
const MOST_BYTES: usize = 1 << 20;

/// Name of the user `id`, if the databases of this host have one.
pub fn user_name(id: u32) -> Option<Vec<u8>> {
    let (_, name) = record(
        |record, room, found| {
            // SAFETY: all pointers are to live memory of the lengths given; names in the record point into `room`.
            unsafe { libc::getpwuid_r(id, record, room.as_mut_ptr().cast(), room.len(), found) }
        },
        user,
    )?;
    Some(name)
}

/// Number of the user called `name`.
pub fn user_id(name: &[u8]) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let (id, _) = record(
        |record, room, found| {
            // SAFETY: as above; `name` ends with a zero byte.
            unsafe { libc::getpwnam_r(name.as_ptr(), record, room.as_mut_ptr().cast(), room.len(), found) }
        },
        user,
    )?;
    Some(id)
}

/// Name of the group `id`.
pub fn group_name(id: u32) -> Option<Vec<u8>> {
    let (_, name) = record(
        |record, room, found| {
            // SAFETY: as above.
            unsafe { libc::getgrgid_r(id, record, room.as_mut_ptr().cast(), room.len(), found) }
        },
        group,
    )?;
    Some(name)
}

/// Number of the group called `name`.
pub fn group_id(name: &[u8]) -> Option<u32> {
    let name = CString::new(name).ok()?;
    let (id, _) = record(
        |record, room, found| {
            // SAFETY: as above.
            unsafe { libc::getgrnam_r(name.as_ptr(), record, room.as_mut_ptr().cast(), room.len(), found) }
        },
        group,
    )?;
    Some(id)
}

fn user(found: &libc::passwd) -> (u32, *const libc::c_char) {
    (found.pw_uid, found.pw_name)
}

fn group(found: &libc::group) -> (u32, *const libc::c_char) {
    (found.gr_gid, found.gr_name)
}

/// Asks for one record, with more room until it fits.
fn record<R>(
    ask: impl Fn(*mut R, &mut [u8], *mut *mut R) -> libc::c_int,
    read: impl Fn(&R) -> (u32, *const libc::c_char),
) -> Option<(u32, Vec<u8>)> {
    let mut room = vec![0_u8; FIRST_BYTES];
    loop {
        let mut record = std::mem::MaybeUninit::<R>::zeroed();
        let mut found = std::ptr::null_mut();
        let answer = ask(record.as_mut_ptr(), &mut room, &mut found);
        if answer == libc::ERANGE && room.len() < MOST_BYTES {
            room.resize(room.len() * 8, 0);
            continue;
        }
        if answer != 0 || found.is_null() {
            return None;
        }
        // SAFETY: the call said that it found something, so it filled the record that `found` points to.
        let (id, name) = read(unsafe { &*found });
        if name.is_null() {
            return None;
        }
        // SAFETY: a name in the record is a string in `room`, which lives.
        let name = unsafe { std::ffi::CStr::from_ptr(name) };
        return Some((id, name.to_bytes().to_vec()));
    }
}

/// What another user and group may do with files, and no more, for the calling thread and for as long as this lives
/// (setfsuid(2), setfsgid(2)): what root does in the folder of another user, who may have put links there.
#[derive(Debug)]
pub struct RightsOf {
    /// Whose they are.
    user: u32,
    groups: Vec<Gid>,
    /// The thread that has them gives them back.
    _of_thread: std::marker::PhantomData<*const ()>,
}

impl RightsOf {
    /// Takes the rights of `user` and `group`. Only root can.
    ///
    /// # Errors
    /// `EPERM` for anybody else.
    pub fn take(user: u32, group: u32) -> io::Result<Self> {
        let groups = rustix::process::getgroups()?;
        rustix::thread::set_thread_groups(&[Gid::from_raw(group)])?;
        let taken = Self {
            user,
            groups,
            _of_thread: std::marker::PhantomData,
        };
        if set_file_rights(user, group) {
            Ok(taken)
        } else {
            Err(Errno::PERM.into())
        }
    }

    /// Number of the user whose they are.
    pub fn user(&self) -> u32 {
        self.user
    }
}

impl Drop for RightsOf {
    fn drop(&mut self) {
        set_file_rights(
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        );
        // Where it fails the thread has fewer groups than before, which is on the safe side.
        let _ = rustix::thread::set_thread_groups(&self.groups);
    }
}

/// Whether the thread has the rights of both now: the calls themselves do not say.
fn set_file_rights(user: u32, group: u32) -> bool {
    const ASK: libc::uid_t = libc::uid_t::MAX;
    // SAFETY: the calls take integers alone; an invalid one changes nothing and gives the present one.
    let now = unsafe {
        libc::setfsgid(group);
        libc::setfsuid(user);
        (libc::setfsuid(ASK), libc::setfsgid(ASK))
    };
    let number = |id: libc::c_int| libc::uid_t::from_ne_bytes(id.to_ne_bytes());
    (number(now.0), number(now.1)) == (user, group)
}

/// Whether this process may give files to any user and group (CAP_CHOWN).
pub fn may_give_away() -> bool {
    const CHOWN: u64 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok());
    held.is_some_and(|held| held & CHOWN != 0)
}

/// The user that files made by this process belong to.
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether this process is in the group `id`.
pub fn is_in_group(id: u32) -> bool {
    let others = rustix::process::getgroups().unwrap_or_default();
    rustix::process::getegid().as_raw() == id || others.iter().any(|group| group.as_raw() == id)
}

/// Gives an open file to a user and a group, those that are there. Also of what was opened with `PATH`, a link too.
///
/// # Errors
/// The kernel's; `PermissionDenied` for a user or group that this process may not give to.
pub fn set_owner(file: BorrowedFd<'_>, user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
    match again(|| rustix::fs::fchown(file, user, group)) {
        Err(error) if error.raw_os_error() == Some(Errno::BADF.raw_os_error()) => {
            again(|| rustix::fs::chownat(file, "", user, group, AtFlags::EMPTY_PATH))
        }
        result => result,
    }
}

/// As [`set_owner`], of a name in a folder; of a link itself.
///
/// # Errors
/// As of [`set_owner`].
pub fn set_owner_at(
    dir: BorrowedFd<'_>,
    name: &[u8],
    user: Option<u32>,
    group: Option<u32>,
) -> io::Result<()> {
    let (user, group) = (user.map(Uid::from_raw), group.map(Gid::from_raw));
    again(|| rustix::fs::chownat(dir, name, user, group, AtFlags::SYMLINK_NOFOLLOW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_user_and_group_0_here_as_anywhere() {
        assert_eq!(user_id(b"root"), Some(0));
        assert_eq!(user_name(0).unwrap(), b"root");
        assert_eq!(group_id(b"root"), Some(0));
        assert_eq!(group_name(0).unwrap(), b"root");
    }

    #[test]
    fn who_is_not_known_has_neither_name_nor_number() {
        assert_eq!(user_id(b"no such user"), None);
        assert_eq!(group_id(b"with\0zero"), None);
        assert_eq!(
            (user_name(4_000_000_001), group_name(4_000_000_001)),
            (None, None)
        );
    }
}
