//! What a destination does not tell apart, by trying it or by looking.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use farline_proto::copy::receiver::Fold;
use farline_sys::file::{self, OpenFlags};

/// Names that are looked at where nothing may be made.
const MOST_NAMES: usize = 64;

/// By trying it in `folder`, which may be written to and has a file `name`, in small letters.
pub fn tried(folder: BorrowedFd<'_>, name: &[u8]) -> Fold {
    let has = |name: &[u8]| file::stat_at(Some(folder), name, false).is_ok();
    Fold {
        case: has(&name.to_ascii_uppercase()),
        forms: tried_forms(folder).unwrap_or(false),
        dots: has(&[name, b"."].concat()),
    }
}

/// By looking up what is in `folder` under other names.
pub fn looked(folder: BorrowedFd<'_>) -> Fold {
    let Ok(listed) = file::list(folder) else {
        return Fold::NOTHING;
    };
    let names: Vec<String> = listed
        .take(MOST_NAMES)
        .flatten()
        .filter_map(|listed| String::from_utf8(listed.name).ok())
        .collect();
    // Another name that is listed too is another file.
    let is_unlisted = |name: &str| !names.iter().any(|listed| listed == name);
    let has = |name: &str| is_unlisted(name) && file::stat_at(Some(folder), name.as_bytes(), false).is_ok();
    let folds = names.iter().map(|name| Fold::looked(name, has));
    folds.fold(Fold::NOTHING, Fold::or)
}

fn tried_forms(folder: BorrowedFd<'_>) -> io::Result<bool> {
    const COMPOSED: &str = "\u{e9}.new";
    const DECOMPOSED: &str = "e\u{301}.new";
    let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::NO_FOLLOW;
    drop(file::open_beneath(folder, COMPOSED.as_bytes(), flags, 0o600)?);
    let is_one = file::stat_at(Some(folder), DECOMPOSED.as_bytes(), false).is_ok();
    file::unlink(folder.as_fd(), COMPOSED.as_bytes())?;
    Ok(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_of_this_machine_tells_all_names_apart() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("name"), "").unwrap();
        let folder = std::fs::File::open(place.path()).unwrap();
        assert_eq!(tried(folder.as_fd(), b"name"), Fold::NOTHING);
        assert_eq!(looked(folder.as_fd()), Fold::NOTHING);
    }
}
