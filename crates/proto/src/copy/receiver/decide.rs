//! What is wanted of a name, by what is at the destination: whether that counts as the same, and whether it may be replaced.

use farline_spec::{Overwrite, SyncLevel};

use super::Hash;

/// What is to be done about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is made; `true`: in the place of what has its name.
    Make(bool),
    /// It is there; its hash where that is known.
    Present(Option<Hash>),
    /// It is there, and attributes that differed were set to the source's, or would be; its hash where that is known.
    Updated(Option<Hash>),
    /// It may not be.
    Refused(String),
}

/// How what is at the destination compares with a file of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// It counts as the same.
    Same,
    /// Its content tells: it is the same if its hash is.
    ByContent,
    /// It is another; how, as what is said of it.
    Different(String),
}

/// What is said of a file whose hash is another.
pub const OTHER_CONTENT: &str = "has different content at the destination";

/// Compares a file of `bytes` bytes with what has its name: that is `what` ("a file", "a folder"), a regular file of so many bytes
/// where `there` says so. `is_same_time` is asked where times decide.
pub fn compare(
    level: SyncLevel,
    bytes: u64,
    what: &str,
    there: Option<u64>,
    is_same_time: impl FnOnce() -> bool,
) -> Compared {
    let different = |how: String| Compared::Different(how);
    match (level, there) {
        (SyncLevel::Exists, _) => Compared::Same,
        (_, None) => different(format!("is {what} at the destination")),
        (_, Some(there)) if there != bytes => {
            different(format!("has a different size at the destination ({there} bytes)"))
        }
        (SyncLevel::Size, _) => Compared::Same,
        (SyncLevel::Time, _) if is_same_time() => Compared::Same,
        (SyncLevel::Time, _) => different("has a different modification time at the destination".to_owned()),
        (SyncLevel::Checksum, _) => Compared::ByContent,
    }
}

/// Whether something different, which was changed last at `there_ns`, may be replaced; of what is of the same kind the time of the
/// source, `mtime_ns`, counts: what is of another kind is replaced whatever its time.
pub fn replacement(
    overwrite: Overwrite,
    difference: String,
    there_ns: i64,
    mtime_ns: Option<i64>,
) -> Verdict {
    match overwrite {
        Overwrite::Always | Overwrite::Different => Verdict::Make(true),
        Overwrite::Older if mtime_ns.is_none_or(|mtime_ns| there_ns <= mtime_ns) => Verdict::Make(true),
        Overwrite::Older => Verdict::Refused(format!("{difference}, which is newer")),
        Overwrite::Never => Verdict::Refused(format!("{difference}; --overwrite different replaces it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [SyncLevel; 4] = [
        SyncLevel::Exists,
        SyncLevel::Size,
        SyncLevel::Time,
        SyncLevel::Checksum,
    ];

    #[test]
    fn each_level_asks_what_it_says_and_no_more() {
        for level in LEVELS {
            let of = |there, is_same_time| compare(level, 5, "a folder", there, || is_same_time);
            let is_same = |there, is_same_time| of(there, is_same_time) == Compared::Same;
            assert_eq!(is_same(None, true), level == SyncLevel::Exists);
            assert_eq!(is_same(Some(6), true), level == SyncLevel::Exists);
            let without_content = level != SyncLevel::Checksum;
            assert_eq!(is_same(Some(5), true), without_content, "{level:?}");
            let without_time = matches!(level, SyncLevel::Exists | SyncLevel::Size);
            assert_eq!(is_same(Some(5), false), without_time, "{level:?}");
            let by_content = of(Some(5), false) == Compared::ByContent;
            assert_eq!(by_content, level == SyncLevel::Checksum);
        }
    }

    #[test]
    fn nothing_is_replaced_unasked_and_by_age_nothing_that_is_newer() {
        let of = |overwrite, mtime_ns| replacement(overwrite, "differs".to_owned(), 10, mtime_ns);
        assert_eq!(of(Overwrite::Different, Some(3)), Verdict::Make(true));
        assert_eq!(of(Overwrite::Always, None), Verdict::Make(true));
        assert_eq!(of(Overwrite::Older, Some(11)), Verdict::Make(true));
        // As rsync and rclone have it: what differs at the same time is replaced.
        assert_eq!(of(Overwrite::Older, Some(10)), Verdict::Make(true));
        assert_eq!(of(Overwrite::Older, None), Verdict::Make(true));
        for (overwrite, mtime_ns) in [(Overwrite::Older, Some(9)), (Overwrite::Never, None)] {
            assert!(matches!(of(overwrite, mtime_ns), Verdict::Refused(line) if line.starts_with("differs")));
        }
    }
}
