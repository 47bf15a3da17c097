//! Whether what was read of a file is one state that the file had: the one place that decides it.
//!
//! A name at the destination gets the length and times that were announced, so what was read must be the content that the
//! file had with them. Two looks at the open file prove that: one before the first byte is read ([`begin`]), one after the
//! last ([`end`]). Both must find what was announced: kind, device, inode, length, mtime and ctime (a program can set the
//! mtime, never the ctime). Two things could deceive them:
//!
//! - **A change under way.** The kernel sets times before it writes, and after it has shortened a file. Meanwhile it holds the
//!   file's lock, which a search for data waits for (ext4, btrfs, f2fs, tmpfs; XFS holds it for reads as well). So a look
//!   comes after the change, and the next change comes after the look.
//! - **The clock's grain.** A second change in the same tick leaves the same ctime. So nothing is read before the tick of the
//!   ctime is over (compare git's "racily clean" entries).
//!
//! What a program writes through a mapping (mmap) changes times only when it first touches a page: no look can tell.

use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farline_sys::file::{self, FileFacts, FileKind};

use super::found::{Found, MOST_TRIES};
use super::settle::Trouble;

/// Longer than a tick of the kernel's clock, by which file systems set times.
const GRAIN_NS: i64 = 20_000_000;
/// The same of a file system that keeps whole seconds, or every second one (FAT).
const WHOLE_SECONDS_GRAIN_NS: i64 = 2_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// A single call that writes may last so long, on a slow disk.
const LONGEST_CALL_NS: i64 = 600 * SECOND_NS;
/// A file that takes more than its length by this is perhaps being shortened.
const SLACK_BYTES: u64 = 128 * 1024;

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
    check(&found.facts, &facts_at_rest(file)?)?;
    outlast_grain(found);
    Ok(())
}

/// As [`begin`], of a file that is read at once: [`end`] alone compares.
pub(super) fn begin_small(found: &Found, file: BorrowedFd<'_>) {
    let now_ns = now_ns();
    if may_be_under_way(&found.facts, now_ns) {
        wait_for_change(file);
    }
    if grain_left_ns(&found.facts, found.seen_ns, now_ns) > 0 {
        outlast_grain(found);
    }
}

/// After everything has been read of `file`: it is still what was announced.
///
/// # Errors
/// As of [`begin`].
pub(super) fn end(found: &Found, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    check(&found.facts, &facts_at_rest(file)?)
}

/// As [`end`], of a file that was read at once.
///
/// # Errors
/// As of [`begin`].
pub(super) fn end_small(found: &Found, file: BorrowedFd<'_>) -> Result<(), Trouble> {
    check(&found.facts, &file::stat_fd(file)?)
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
        if check(&before, &facts).is_ok() {
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

fn facts_at_rest(file: BorrowedFd<'_>) -> Result<FileFacts, Trouble> {
    wait_for_change(file);
    Ok(file::stat_fd(file)?)
}

fn wait_for_change(file: BorrowedFd<'_>) {
    // Its answer says nothing, what is no file has none.
    let _ = file::data_after(file, 0);
}

/// Whether a call that changes the file may be under way: a young ctime, or blocks behind its end.
const fn may_be_under_way(facts: &FileFacts, now_ns: i64) -> bool {
    let is_young = facts.ctime_ns > now_ns.saturating_sub(LONGEST_CALL_NS);
    let allotted = facts.blocks_512.saturating_mul(512);
    is_young || allotted > facts.bytes.saturating_add(SLACK_BYTES)
}

/// Waits until no change can leave the ctime that was seen.
fn outlast_grain(found: &Found) {
    loop {
        let left_ns = grain_left_ns(&found.facts, found.seen_ns, now_ns());
        match u64::try_from(left_ns) {
            Ok(left_ns) if left_ns > 0 => std::thread::sleep(Duration::from_nanos(left_ns)),
            _ => return,
        }
    }
}

/// How long a change may still leave the ctime of `facts`, which were seen at `seen_ns`. Since a file's clock cannot be behind a
/// time that it gave, a grain after the look is late enough whatever the two clocks are.
fn grain_left_ns(facts: &FileFacts, seen_ns: i64, now_ns: i64) -> i64 {
    let grain_ns = match facts.ctime_ns % SECOND_NS {
        0 => WHOLE_SECONDS_GRAIN_NS,
        _ => GRAIN_NS,
    };
    let left_ns = |since_ns: i64| since_ns.saturating_add(grain_ns).saturating_sub(now_ns);
    // Also where the clock was set back meanwhile.
    left_ns(facts.ctime_ns).min(left_ns(seen_ns)).min(grain_ns)
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
    fn a_file_is_read_once_its_ctime_can_only_be_left_by_a_change() {
        const NOW_NS: i64 = 1_000 * SECOND_NS + 7;
        let left_ns = |ctime_ns, seen_ns| grain_left_ns(&facts(ctime_ns), seen_ns, NOW_NS);
        assert!(left_ns(NOW_NS - GRAIN_NS, NOW_NS) <= 0);
        assert_eq!(left_ns(NOW_NS - GRAIN_NS + 1, NOW_NS), 1);
        assert_eq!(left_ns(NOW_NS, NOW_NS), GRAIN_NS);
        // Another host's clock is ahead: the look counts.
        assert_eq!(left_ns(NOW_NS + 90 * SECOND_NS, NOW_NS - GRAIN_NS + 5), 5);
        assert!(left_ns(NOW_NS + 90 * SECOND_NS, NOW_NS - GRAIN_NS) <= 0);
        // Times of whole seconds.
        assert_eq!(left_ns(999 * SECOND_NS, NOW_NS), SECOND_NS - 7);
        // A clock that was set back by a year does not stop the copy.
        assert_eq!(left_ns(NOW_NS << 1, NOW_NS << 1), GRAIN_NS);
    }

    #[test]
    fn a_call_may_be_under_way_where_a_file_is_young_or_larger_than_it_says() {
        const NOW_NS: i64 = 1_000_000 * SECOND_NS;
        assert!(may_be_under_way(&facts(NOW_NS - SECOND_NS), NOW_NS));
        assert!(!may_be_under_way(&facts(NOW_NS - 2 * LONGEST_CALL_NS), NOW_NS));
        let shortened = FileFacts {
            blocks_512: 600_000,
            ..facts(NOW_NS - 2 * LONGEST_CALL_NS)
        };
        assert!(may_be_under_way(&shortened, NOW_NS));
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
