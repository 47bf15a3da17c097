//! Looks at open files: whether what was read of one is one state that it had ([`farline_proto::copy::sender::steady`] says why
//! two looks prove that, one before the first byte is read, [`begin`], and one after the last, [`end`]).

use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farline_proto::copy::sender::MOST_TRIES;
use farline_proto::copy::sender::steady::{grain_left_ns, may_be_under_way};
use farline_sys::file::{self, FileFacts, FileKind};

use super::found::Found;
use super::trouble::Trouble;

/// This moment, as times of files are told.
pub(super) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// How long nothing about the file has changed; where clocks differ, forever.
pub(super) fn age(facts: &FileFacts) -> Duration {
    u64::try_from(now_ns().saturating_sub(facts.ctime_ns)).map_or(Duration::MAX, Duration::from_nanos)
}

/// Before anything is read of `file`: it is what was announced, and what changes it from now on can be told.
///
/// # Errors
/// [`Trouble::Changed`]; the kernel's.
pub(super) fn begin(found: &Found, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    check_open(&found.facts, &facts_at_rest(file)?, file)?;
    outlast_grain(found);
    Ok(())
}

/// As [`begin`], of a file that is read at once: [`end`] alone compares.
pub(super) fn begin_small(found: &Found, file: BorrowedFd<'_>) {
    let (facts, now_ns) = (&found.facts, now_ns());
    let allotted_bytes = facts.blocks_512.saturating_mul(512);
    if may_be_under_way(facts.ctime_ns, facts.bytes, allotted_bytes, now_ns) {
        wait_for_change(file);
    }
    if grain_left_ns(facts.ctime_ns, found.seen_ns, now_ns) > 0 {
        outlast_grain(found);
    }
}

/// After everything has been read of `file`: it is still what was announced.
///
/// # Errors
/// As of [`begin`].
pub(super) fn end(found: &Found, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    check_open(&found.facts, &facts_at_rest(file)?, file)
}

/// As [`end`], of a file that was read at once.
///
/// # Errors
/// As of [`begin`].
pub(super) fn end_small(found: &Found, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    check_open(&found.facts, &file::stat_fd(file)?, file)
}

/// Looks at a file that is announced by what is seen now: `found` becomes what it is between two changes.
///
/// # Errors
/// [`Trouble`] where it is no longer a file, or never at rest.
pub(super) fn look(found: &mut Found, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    let mut before = facts_at_rest(file)?;
    for _ in 0..MOST_TRIES {
        // A change that was under way at the first look is over at the second, which then differs.
        let facts = facts_at_rest(file)?;
        if facts.kind != FileKind::File {
            return Err(Trouble::Beyond(NO_FILE.to_owned()));
        }
        if check_open(&before, &facts, file).is_ok() {
            found.facts = facts;
            found.seen_ns = now_ns();
            return Ok(());
        }
        before = facts;
    }
    Err(Trouble::Changed)
}

/// What is said of a name that stood for a file and stands for something else now.
pub(super) const NO_FILE: &str = "is no longer a file";

/// Whether `now` is what was `then`, unchanged.
pub(super) fn is_unchanged(then: &FileFacts, now: &FileFacts) -> bool {
    check(then, now).is_ok()
}

fn check(then: &FileFacts, now: &FileFacts) -> Result<(), Trouble> {
    let identity = |facts: &FileFacts| {
        let place = (facts.kind, facts.device, facts.inode);
        (place, facts.bytes, facts.mtime_ns, facts.ctime_ns)
    };
    if identity(then) == identity(now) {
        Ok(())
    } else {
        Err(Trouble::Changed)
    }
}

/// As [`check`], of the open `file` that `now` was told of. A number that is another one at the next look at the same file tells
/// nothing: some file systems make numbers up as they are asked.
fn check_open(then: &FileFacts, now: &FileFacts, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    let checked = check(then, now);
    if checked.is_err() && file::stat_fd(file)?.inode != now.inode {
        let inode = now.inode;
        return check(&FileFacts { inode, ..*then }, now);
    }
    checked
}

fn facts_at_rest(file: BorrowedFd<'_>) -> Result<FileFacts, Trouble> {
    wait_for_change(file);
    Ok(file::stat_fd(file)?)
}

fn wait_for_change(file: BorrowedFd<'_>) {
    // Its answer says nothing, what is no file has none.
    let _ = file::data_after(file, 0);
}

/// Waits until no change can leave the ctime that was seen.
fn outlast_grain(found: &Found) {
    loop {
        let left_ns = grain_left_ns(found.facts.ctime_ns, found.seen_ns, now_ns());
        match u64::try_from(left_ns) {
            Ok(left_ns) if left_ns > 0 => std::thread::sleep(Duration::from_nanos(left_ns)),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(ctime_ns: i64) -> FileFacts {
        FileFacts {
            kind: FileKind::File,
            mode: 0o644,
            bytes: 1,
            blocks_512: 8,
            mtime_ns: 5,
            ctime_ns,
            device: 1,
            inode: 2,
            user: 0,
            group: 0,
            links: 1,
        }
    }

    #[test]
    fn any_other_identity_is_a_change() {
        let then = facts(9);
        assert!(check(&then, &then).is_ok());
        let others = [
            FileFacts {
                kind: FileKind::Other,
                ..then
            },
            FileFacts { device: 9, ..then },
            FileFacts { inode: 9, ..then },
            FileFacts { bytes: 0, ..then },
            FileFacts { mtime_ns: 6, ..then },
            FileFacts { ctime_ns: 10, ..then },
        ];
        for other in others {
            assert!(check(&then, &other).is_err(), "{other:?}");
        }
    }
}
