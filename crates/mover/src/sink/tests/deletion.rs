//! Only what the sources have not is deleted, and only as much of it as was said.

use std::fs;

use farline_spec::unit::DeleteCount;
use farline_spec::{FileKind, FileStatus};

use super::*;

fn copy_with_deletion(spec: &CopySpec, folder: &[u8]) -> (Vec<String>, u64) {
    let mut session = start(spec).unwrap();
    session.announce(folder, EntryKind::Folder);
    session.announce(
        &[folder, b"/kept"].concat(),
        EntryKind::File { bytes: 0, hash: None },
    );
    let (problems, report) = session.finish();
    (problems, report.deleted.files)
}

#[test]
fn what_the_sources_have_not_is_deleted_if_it_is_as_many_as_was_said() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir_all(path("d/old/deep")).unwrap();
    fs::create_dir_all(path("d/safe")).unwrap();
    fs::create_dir_all(path("beside")).unwrap();
    for name in ["d/old/deep/x", "d/y", "top", "d/safe/z.keep"] {
        fs::write(path(name), b"").unwrap();
    }
    let mut spec = spec(place.path());
    spec.filters = vec!["- *.keep".to_owned()];
    spec.sources = vec!["d".to_owned()];
    spec.delete = Some(DeleteCount::new(7).unwrap());
    let (problems, deleted) = copy_with_deletion(&spec, b"d");
    assert!(
        problems[0].contains("4 names") && problems[0].contains("7 confirmed"),
        "{problems:?}"
    );
    assert_eq!((deleted, path("d/y").exists()), (0, true));
    spec.dry_run = true;
    assert_eq!(copy_with_deletion(&spec, b"d"), (vec![], 4));
    assert!(path("d/y").exists());
    spec.dry_run = false;
    spec.delete = Some(DeleteCount::new(4).unwrap());
    assert_eq!(copy_with_deletion(&spec, b"d"), (vec![], 4));
    assert_eq!(listing(&path("d")), ["kept", "safe"]);
    assert_eq!(
        listing(place.path()),
        ["beside", "d", "top"],
        "what is beside the source is not touched"
    );
    spec.sources = vec!["src/".to_owned()];
    spec.delete = Some(DeleteCount::new(2).unwrap());
    assert_eq!(copy_with_deletion(&spec, b"d"), (vec![], 2));
    assert_eq!(listing(place.path()), ["d"]);
}

#[test]
fn nothing_is_deleted_when_the_sender_could_not_read_everything() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("old"), b"").unwrap();
    let mut spec = spec(place.path());
    spec.delete = Some(DeleteCount::new(1).unwrap());
    let mut session = start(&spec).unwrap();
    let file = session.announce_file(b"a", b"abc");
    session.say(&Catalogue::Lost {
        file,
        reason: "vanished".to_owned(),
        again: false,
    });
    let (problems, _) = session.finish();
    assert!(problems[0].starts_with("nothing was deleted"));
    assert_eq!(listing(place.path()), ["old"]);
}

#[test]
fn what_the_sources_have_is_not_deleted_though_it_cannot_come() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    for folder in ["folder/deep", "device.d", "unsaid/deep"] {
        fs::create_dir_all(path(folder)).unwrap();
    }
    for name in ["link", "folder/deep/x", "device.d/y", "unsaid/deep/z", "old"] {
        fs::write(path(name), b"abc").unwrap();
    }
    let mut spec = spec(place.path());
    spec.delete = Some(DeleteCount::new(1).unwrap());
    let mut session = start(&spec).unwrap();
    let target = vec![b'a'; 5000];
    let link = session.announce(b"link", EntryKind::Link { target });
    let file = session.announce_file(b"folder", b"abc");
    for number in [link, file] {
        assert!(matches!(session.wants(number), Wants::Refused(_)), "{number}");
    }
    for kept in [&b"device.d"[..], b"unsaid/deep/z"] {
        session.say(&Catalogue::Unannounced {
            path: kept.to_vec(),
            kind: FileKind::Other,
            status: FileStatus::Skipped,
            reason: "is a device".to_owned(),
        });
    }
    let (problems, report) = session.finish();
    assert_eq!((report.skipped.files, report.failed.files), (2, 2));
    assert_eq!((problems, report.deleted.files), (vec![], 1));
    assert_eq!(listing(place.path()), ["device.d", "folder", "link", "unsaid"]);
    for name in ["folder/deep/x", "device.d/y", "unsaid/deep/z"] {
        assert!(path(name).exists(), "{name}");
    }
}
