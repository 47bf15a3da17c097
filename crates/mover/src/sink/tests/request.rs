//! What was not asked for ends the copy before anything of it is made, whatever the other end says it is.

use std::collections::BTreeMap;
use std::fs;

use farline_spec::unit::DeleteCount;
use farline_spec::{FileKind, FileStatus, Overwrite, SymbolicLinks};

use super::*;
use crate::message::{Top, Xattr};

/// What is said of one name.
fn said(path: &str, kind: EntryKind) -> Catalogue {
    Catalogue::Entry(Entry {
        path: path.as_bytes().to_vec(),
        kind,
        mode: 0o6777,
        mtime_ns: MTIME_NS,
        ctime_ns: 7,
        xattrs: Vec::new(),
    })
}

const EMPTY: EntryKind = EntryKind::File { bytes: 0, hash: None };

fn link(target: &str) -> EntryKind {
    EntryKind::Link {
        target: target.as_bytes().to_vec(),
    }
}

/// A home folder, with what a liar would like to have.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join(".ssh")).unwrap();
    fs::write(home.path().join(".bashrc"), "mine").unwrap();
    fs::write(home.path().join(".ssh/authorized_keys"), "my keys").unwrap();
    home
}

/// All that is in `folder`, with its content and time.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, std::time::SystemTime)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let facts = fs::symlink_metadata(&path).unwrap();
            let is_own = path.file_name().unwrap() == ".farline-partial";
            if facts.is_dir() && !is_own {
                folders.push(path.clone());
            }
            if !is_own {
                let content = facts.is_file().then(|| fs::read(&path).unwrap());
                // A folder in which staging comes and goes has another time.
                let time = if facts.is_dir() {
                    std::time::UNIX_EPOCH
                } else {
                    facts.modified().unwrap()
                };
                found.insert(path, (content, time));
            }
        }
    }
    found
}

fn asked(home: &Path, source: &str) -> CopySpec {
    CopySpec {
        sources: vec![source.to_owned()],
        overwrite: Overwrite::Always,
        ..spec(home)
    }
}

/// The copy ends with a breach that quotes `named`, and the home folder is as it was.
fn assert_breach(spec: impl FnOnce(&Path) -> CopySpec, lies: &[Catalogue], named: &str) {
    let home = home();
    let before = state(home.path());
    let mut session = start(&spec(home.path())).unwrap();
    for lie in lies {
        session.say(lie);
    }
    let failures = session.failures();
    session.end.finish().unwrap();
    assert!(failures[0].permanent, "{lies:?}: {failures:?}");
    assert_eq!(failures[0].kind, FailureKind::Protocol);
    assert!(
        failures[0].message.contains(&format!("{named:?}")),
        "{failures:?}"
    );
    assert_eq!(state(home.path()), before, "{lies:?}");
}

#[test]
fn a_name_that_was_not_asked_for_is_neither_made_nor_replaced() {
    for name in [
        ".bashrc",
        ".ssh/authorized_keys",
        "y",
        ".ssh",
        "../x",
        "/x",
        "",
        "x/../.bashrc",
    ] {
        for kind in [EMPTY, EntryKind::Folder, link("/etc/passwd")] {
            assert_breach(|home| asked(home, "data/x"), &[said(name, kind)], name);
        }
    }
}

#[test]
fn kinds_that_were_not_asked_for_are_not_made() {
    let skip = |home: &Path| CopySpec {
        links: SymbolicLinks::Skip,
        ..asked(home, "x")
    };
    assert_breach(skip, &[said("x", link("a"))], "x");
    let flat = |home: &Path| CopySpec {
        recursive: false,
        ..asked(home, "x")
    };
    assert_breach(flat, &[said("x", EntryKind::Folder)], "x");
    assert_breach(
        |home| asked(home, "x"),
        &[said("x", EntryKind::HardLink { to: 0 })],
        "x",
    );
    let Catalogue::Entry(mut entry) = said("x", EMPTY) else {
        unreachable!()
    };
    entry.xattrs.push(Xattr {
        name: b"user.a".to_vec(),
        value: vec![1],
    });
    assert_breach(|home| asked(home, "x"), &[Catalogue::Entry(entry)], "x");
}

#[test]
fn what_a_filter_leaves_out_is_neither_made_nor_replaced() {
    let filtered = |home: &Path| CopySpec {
        filters: vec!["- .*".to_owned()],
        ..asked(home, "data/")
    };
    for name in [".bashrc", ".ssh", ".ssh/authorized_keys", "deep/.hidden/x"] {
        assert_breach(filtered, &[said(name, EMPTY)], name);
    }
}

#[test]
fn nothing_is_made_through_a_link_that_came_first() {
    // The link itself was asked for: it may be made.
    for through in [said("x/.bashrc", EMPTY), said("x", EntryKind::Folder)] {
        let home = home();
        let mut session = start(&asked(home.path(), "x")).unwrap();
        session.say(&said("x", link(".")));
        session.say(&through);
        let failures = session.failures();
        assert!(failures[0].permanent, "{failures:?}");
        assert_eq!(fs::read(home.path().join(".bashrc")).unwrap(), b"mine");
    }
}

#[test]
fn the_one_name_asked_for_does_not_become_a_link_to_elsewhere() {
    let place = home();
    let mut spec = asked(place.path(), "data/x");
    spec.destination = place.path().join("mine").to_str().unwrap().to_owned();
    let mut session = start(&spec).unwrap();
    let number = session.announce(b"x", link("/etc/passwd"));
    let Wants::Refused(reason) = session.wants(number) else {
        panic!("{:?}", session.answers);
    };
    assert!(reason.contains("--links follow"), "{reason}");
    session.finish();
    assert!(fs::symlink_metadata(place.path().join("mine")).is_err());
}

#[test]
fn deletion_goes_no_further_than_the_request() {
    let delete = |count: u64| {
        move |home: &Path| CopySpec {
            delete: Some(DeleteCount::new(count).unwrap()),
            ..asked(home, "x")
        }
    };
    let end = Catalogue::End {
        entries: 1,
        whole: true,
    };
    // A folder that is said to be a source would be emptied.
    let lies = [said(".ssh", EntryKind::Folder), end];
    assert_breach(delete(1), &lies, ".ssh");
}

#[test]
fn names_that_do_not_come_and_the_destination_itself_are_held_against_the_request_too() {
    let unannounced = |path: &str| Catalogue::Unannounced {
        path: path.as_bytes().to_vec(),
        kind: FileKind::File,
        status: FileStatus::Failed,
        reason: "no such file or folder".to_owned(),
    };
    for name in [".bashrc", "../..", "", "y"] {
        assert_breach(|home| asked(home, "x"), &[unannounced(name)], name);
    }
    let home = home();
    let end = ReceiveEnd::start(setup_of(&asked(home.path(), "x"))).unwrap();
    let begin = Catalogue::Begin {
        chunk_bytes: MOST_CHUNK,
        top: Some(Top {
            mode: 0o777,
            mtime_ns: 0,
        }),
        asks_whole: false,
    };
    let mut payload = Vec::new();
    message::append(&mut payload, &begin).unwrap();
    let (to, from) = unbounded();
    to.send(wire(Header::of_messages(FrameKind::Catalogue), &payload))
        .unwrap();
    drop(to);
    let failure = end.catalogue(&mut Frames(from)).unwrap_err();
    assert!(failure.permanent, "{failure}");
}
