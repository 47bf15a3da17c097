//! Hosts for a user who is not root: a user namespace in which that user is.

use std::io;

use crate::call::{check, explain};

/// Line of a table that maps every identity to itself: the namespace the machine started with.
const WHOLE_RANGE: [&str; 3] = ["0", "0", "4294967295"];

/// Makes the calling process root of a user namespace of its own, for good: its user and group become 0 there, every
/// other is nobody. The process must have one thread.
///
/// # Errors
/// `InvalidInput` for a process with several threads, `PermissionDenied` or `StorageFull` where the machine's
/// settings forbid user namespaces.
pub fn become_root() -> io::Result<()> {
    // SAFETY: these take nothing and cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    // SAFETY: takes flags only.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map_err(|error| {
        explain(
            &error,
            "a user namespace (this machine or this process does not allow it)",
        )
    })?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

/// Whether the process is in a user namespace other than the machine's first.
///
/// # Errors
/// When `/proc/self/uid_map` cannot be read.
pub fn is_inside() -> io::Result<bool> {
    Ok(!maps_all(&std::fs::read_to_string("/proc/self/uid_map")?))
}

fn maps_all(table: &str) -> bool {
    table.split_ascii_whitespace().eq(WHOLE_RANGE)
}

fn write(path: &str, text: &str) -> io::Result<()> {
    std::fs::write(path, text).map_err(|error| explain(&error, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_users_is_not_all() {
        assert!(maps_all("         0          0 4294967295\n"));
        assert!(!maps_all("         0       1000          1\n"));
        assert!(!maps_all(""));
        assert!(is_inside().is_ok());
    }

    #[test]
    fn a_process_with_threads_is_refused() {
        let error = become_root().unwrap_err();
        assert!(error.to_string().contains("user namespace"), "{error}");
    }
}
