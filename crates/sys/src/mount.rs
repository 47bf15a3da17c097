//! Mounts: those of a thread that has a mount namespace of its own, and taking one away.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::call::{check, explain};

/// Of linux/mount.h; libc has them for some C libraries only.
const OPEN_TREE_CLONE: libc::c_uint = 1;
const MOVE_MOUNT_FROM_EMPTY_PATH: libc::c_uint = 4;

/// Keeps whatever is mounted from here on away from the rest of the machine.
pub(crate) fn make_private() -> io::Result<()> {
    mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)
        .map_err(|error| explain(&error, "private mounts"))
}

/// Takes what is mounted at `place` out of the tree of names at once, whoever uses it (umount2(2), MNT_DETACH).
///
/// # Errors
/// The kernel's: `PermissionDenied` without the right to; `InvalidInput` where nothing is mounted.
pub fn detach(place: &Path) -> io::Result<()> {
    let place = c_path(place)?;
    // SAFETY: the path ends in a zero byte and lives through the call.
    check(unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Puts `file` where `place` is, for this mount namespace.
pub(crate) fn put_over(file: &Path, place: &Path) -> io::Result<()> {
    let put = || mount(Some(&c_path(file)?), &c_path(place)?, None, libc::MS_BIND);
    put().map_err(|error| {
        let (file, place) = (file.display(), place.display());
        explain(&error, format_args!("{file} as {place} (both must exist)"))
    })
}

/// Mounts a sysfs that shows the devices of the thread's network namespace, with everything that was mounted below
/// the old one (control groups among them) in its old place.
pub(crate) fn renew_sys() -> io::Result<()> {
    let explained = |error: io::Error| explain(&error, "a private /sys");
    let below = mounts_below_sys().map_err(explained)?;
    let kept: io::Result<Vec<_>> = below
        .into_iter()
        .map(|place| Ok((clone_tree(&place)?, place)))
        .collect();
    let kept = kept.map_err(explained)?;
    mount_sys().map_err(explained)?;
    for (tree, place) in kept {
        attach(&tree, &place).map_err(explained)?;
    }
    Ok(())
}

/// A user namespace may not make writable what its parent has read-only.
fn mount_sys() -> io::Result<()> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let fresh = |flags| mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), flags);
    match fresh(flags) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fresh(flags | libc::MS_RDONLY),
        other => other,
    }
}

fn mounts_below_sys() -> io::Result<Vec<CString>> {
    Ok(places_below_sys(&std::fs::read_to_string(
        "/proc/thread-self/mountinfo",
    )?))
}

/// Mount points directly below `/sys` and its directories, outermost ones only: their own come along with them.
/// Field 5 of a line is the mount point (proc_pid_mountinfo(5)).
fn places_below_sys(table: &str) -> Vec<CString> {
    let is_inside = |place: &str, outer: &str| {
        let rest = place.strip_prefix(outer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut outermost: Vec<&str> = Vec::new();
    for place in table.lines().filter_map(|line| line.split(' ').nth(4)) {
        if place.starts_with("/sys/") && !outermost.iter().any(|outer| is_inside(place, outer)) {
            outermost.push(place);
        }
    }
    outermost
        .into_iter()
        .filter_map(|place| CString::new(place).ok())
        .collect()
}

/// A detached copy of the mounts at `place` and below (open_tree(2), Linux 5.2).
fn clone_tree(place: &CStr) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as libc::c_uint | libc::AT_RECURSIVE as libc::c_uint;
    // SAFETY: `place` ends in a zero byte and lives through the call, which returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, place.as_ptr(), flags) };
    let fd = check(fd as libc::c_int)?;
    // SAFETY: `fd` was just made by the kernel and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn attach(tree: &OwnedFd, place: &CStr) -> io::Result<()> {
    // SAFETY: both paths end in a zero byte and live through the call; the empty one means `tree` itself.
    let result = unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            place.as_ptr(),
            MOVE_MOUNT_FROM_EMPTY_PATH,
        )
    };
    check(result as libc::c_int).map(drop)
}

fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    let none = std::ptr::null();
    // SAFETY: the texts end in a zero byte and live through the call; null is allowed for source, kind and data.
    check(unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, none) }).map(drop)
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outermost_mounts_are_moved() {
        let table = "1 0 0:1 / / rw - ext4 a rw\n\
                     2 1 0:2 / /sys rw - sysfs b rw\n\
                     3 2 0:3 / /sys/fs/cgroup rw shared:1 - tmpfs c rw\n\
                     4 3 0:4 / /sys/fs/cgroup/cpu rw - cgroup d rw\n\
                     5 2 0:5 / /sys/fs/cgroup2 rw - cgroup2 e rw\n\
                     6 1 0:6 / /system rw - tmpfs f rw\n";
        let places: Vec<_> = places_below_sys(table);
        assert_eq!(
            places,
            [c"/sys/fs/cgroup".to_owned(), c"/sys/fs/cgroup2".to_owned()]
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = put_over(Path::new("/no/such/file"), Path::new("/etc/hosts")).unwrap_err();
        assert!(error.to_string().contains("/no/such/file"), "{error}");
    }
}
