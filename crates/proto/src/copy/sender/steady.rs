//! Whether what was read of a file is one state that the file had: what decides it, without looking.
//!
//! A name at the destination gets the length and times that were announced, so what was read must be the content that the
//! file had with them. Two looks at the open file prove that: one before the first byte is read, one after the last. Both must find
//! what was announced: kind, device, inode, length, mtime and ctime (a program can set the mtime, never the ctime). Two things
//! could deceive them:
//!
//! - **A change under way.** The kernel sets times before it writes, and after it has shortened a file. Meanwhile it holds the
//!   file's lock, which a search for data waits for (ext4, btrfs, f2fs, tmpfs; XFS holds it for reads as well). So a look
//!   comes after the change, and the next change comes after the look ([`may_be_under_way`] says where one is worth waiting for).
//! - **The clock's grain.** A second change in the same tick leaves the same ctime. So nothing is read before the tick of the
//!   ctime is over ([`grain_left_ns`]; compare git's "racily clean" entries).
//!
//! What a program writes through a mapping (mmap) changes times only when it first touches a page: no look can tell.

/// Longer than a tick of the kernel's clock, by which file systems set times.
const GRAIN_NS: i64 = 20_000_000;
/// The same of a file system that keeps whole seconds, or every second one (FAT).
const WHOLE_SECONDS_GRAIN_NS: i64 = 2_000_000_000;
const SECOND_NS: i64 = 1_000_000_000;
/// A single call that writes may last so long, on a slow disk.
const LONGEST_CALL_NS: i64 = 600 * SECOND_NS;
/// A file that takes more than its length by this is perhaps being shortened.
const SLACK_BYTES: u64 = 128 * 1024;

/// Whether a call that changes a file of `bytes` bytes may be under way at `now_ns`: a young ctime, or blocks (`allotted_bytes`)
/// behind its end. Times are nanoseconds since 1970.
pub const fn may_be_under_way(ctime_ns: i64, bytes: u64, allotted_bytes: u64, now_ns: i64) -> bool {
    let is_young = ctime_ns > now_ns.saturating_sub(LONGEST_CALL_NS);
    is_young || allotted_bytes > bytes.saturating_add(SLACK_BYTES)
}

/// How long a change may still leave `ctime_ns`, which was seen at `seen_ns`; nothing is left where it is not positive. Since a
/// file's clock cannot be behind a time that it gave, a grain after the look is late enough whatever the two clocks are.
pub fn grain_left_ns(ctime_ns: i64, seen_ns: i64, now_ns: i64) -> i64 {
    let grain_ns = match ctime_ns % SECOND_NS {
        0 => WHOLE_SECONDS_GRAIN_NS,
        _ => GRAIN_NS,
    };
    let left_ns = |since_ns: i64| since_ns.saturating_add(grain_ns).saturating_sub(now_ns);
    // Also where the clock was set back meanwhile.
    left_ns(ctime_ns).min(left_ns(seen_ns)).min(grain_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_its_ctime_can_only_be_left_by_a_change() {
        const NOW_NS: i64 = 1_000 * SECOND_NS + 7;
        let left_ns = |ctime_ns, seen_ns| grain_left_ns(ctime_ns, seen_ns, NOW_NS);
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
        let old_ns = NOW_NS - 2 * LONGEST_CALL_NS;
        assert!(may_be_under_way(NOW_NS - SECOND_NS, 1, 4096, NOW_NS));
        assert!(!may_be_under_way(old_ns, 1, 4096, NOW_NS));
        assert!(may_be_under_way(old_ns, 1, 600_000 * 512, NOW_NS));
    }
}
