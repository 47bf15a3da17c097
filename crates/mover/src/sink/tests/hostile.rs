//! Nothing that another host says makes this end panic, wait for ever or write where it should not.

use std::fs;

use farline_spec::unit::FileCount;
use farline_spec::{FileKind, FileStatus};

use super::*;
use crate::message::Xattr;

/// What another host says.
type Tell = Box<dyn FnOnce(&mut Session)>;

/// A session is broken by what it is told; why.
fn broken_by(tell: impl FnOnce(&mut Session)) -> Failure {
    let place = tempfile::tempdir().unwrap();
    let destination = place.path().join("new");
    let mut session = start(&spec(&destination)).unwrap();
    tell(&mut session);
    let failures = session.failures();
    assert!(
        failures.iter().all(|failure| *failure == failures[0]),
        "{failures:?}"
    );
    session.end.finish().unwrap();
    assert_eq!(listing(place.path()).len(), usize::from(destination.exists()));
    failures[0].clone()
}

fn all_break(tells: Vec<(&str, Tell)>) {
    for (what, tell) in tells {
        assert_eq!(broken_by(tell).kind, FailureKind::Protocol, "{what}");
    }
}

#[test]
fn chunks_and_holes_that_no_file_has_end_the_copy() {
    let chunk = CHUNK as usize;
    for (file, offset, bytes) in [
        (1, 0, chunk),
        (u64::MAX, 0, chunk),
        (0, 9 * CHUNK, chunk),
        (0, u64::MAX - CHUNK + 1, chunk),
        (0, 5, chunk),
        (0, 0, 5),
        (0, 0, 0),
        // No subtrees.
        (0, CHUNK, 2 * chunk),
        (0, 2 * CHUNK, 3 * chunk),
        // Longer than the catalogue says.
        (0, 0, 8 * chunk),
    ] {
        let failure = broken_by(|session| {
            session.announce_file(b"a", &[0; 9 * CHUNK as usize]);
            let header = Header {
                file,
                offset,
                hash: Some(crate::Sum::from_bytes([0; 32])),
                ..Header::of_messages(FrameKind::Chunk)
            };
            session.frame(0, header, &vec![0; bytes]);
            session.end_of_catalogue();
        });
        assert_eq!(failure.kind, FailureKind::Protocol, "{file} {offset} {bytes}");
    }
    for (file, offset, bytes) in [(0, CHUNK, u64::MAX), (0, 1, CHUNK), (0, 0, 0), (3, 0, CHUNK)] {
        let failure = broken_by(|session| {
            session.announce_file(b"a", &[0; 3 * CHUNK as usize]);
            session.say(&Catalogue::Hole { file, offset, bytes });
        });
        assert_eq!(failure.kind, FailureKind::Protocol, "{file} {offset} {bytes}");
    }
}

/// Says of a name of so many bytes, which is no entry, what became of it.
fn unannounced(status: FileStatus, bytes: usize) -> Tell {
    Box::new(move |session| {
        session.say(&Catalogue::Unannounced {
            path: vec![b'a'; bytes],
            kind: FileKind::File,
            status,
            reason: String::new(),
        });
    })
}

#[test]
fn a_catalogue_that_makes_no_sense_ends_the_copy() {
    let lost = Catalogue::Lost {
        file: 9,
        reason: String::new(),
        again: true,
    };
    let end = Catalogue::End {
        entries: 3,
        whole: true,
    };
    let begin = Catalogue::Begin {
        chunk_bytes: CHUNK,
        top: None,
        asks_whole: false,
    };
    all_break(vec![
        ("settled unknown", Box::new(|session| session.settle(9, b""))),
        ("lost unknown", Box::new(move |session| session.say(&lost))),
        ("another count", Box::new(move |session| session.say(&end))),
        ("begin twice", Box::new(move |session| session.say(&begin))),
        (
            "attributes of a destination folder that is no source's",
            Box::new(|session| session.say(&Catalogue::TopXattrs(Vec::new()))),
        ),
        ("copied unannounced", unannounced(FileStatus::Copied, 1)),
        (
            "a long name",
            unannounced(FileStatus::Failed, message::MAX_PATH_BYTES + 1),
        ),
        (
            "end twice",
            Box::new(|session| {
                session.announce_file(b"a", b"abc");
                session.end_of_catalogue();
                session.end_of_catalogue();
            }),
        ),
        (
            "entry after the end",
            Box::new(|session| {
                session.announce_file(b"a", b"abc");
                session.end_of_catalogue();
                session.announce_file(b"b", b"abc");
            }),
        ),
        (
            "broken off",
            Box::new(|session| {
                session.announce_file(b"a", b"abc");
                session.close();
            }),
        ),
    ]);
}

#[test]
fn data_that_make_no_sense_end_the_copy() {
    let all = content(2 * CHUNK as usize, 1);
    all_break(vec![
        (
            "another length",
            Box::new(|session| {
                let file = session.announce_file(b"a", b"abc");
                session.pack(0, &[(file, b"abcd")]);
            }),
        ),
        (
            "pack and chunk",
            Box::new(move |session| {
                let file = session.announce_file(b"a", &all);
                session.chunk(0, file, &all, 0, false);
                session.pack(0, &[(file, &all)]);
            }),
        ),
        (
            "messages among data",
            Box::new(|session| {
                session.frame(0, Header::of_messages(FrameKind::Feedback), b"");
            }),
        ),
        (
            "torn pack",
            Box::new(|session| {
                session.frame(0, Header::of_messages(FrameKind::Pack), &[1; 20]);
            }),
        ),
        (
            "streams that end early",
            Box::new(|session| {
                session.announce_file(b"a", b"abc");
                session.end_of_catalogue();
                session.close();
            }),
        ),
    ]);
}

#[test]
fn a_hash_that_is_missing_ends_the_copy() {
    let all = content(CHUNK as usize, 1);
    let failure = broken_by(|session| {
        let file = session.announce_file(b"a", &all);
        let header = Header {
            file,
            ..Header::of_messages(FrameKind::Chunk)
        };
        session.frame(0, header, &all);
    });
    assert!(failure.message.contains("without its hash"));
}

#[test]
fn names_and_facts_that_may_not_be_are_refused_one_by_one() {
    let place = tempfile::tempdir().unwrap();
    let destination = place.path().join("new");
    let mut spec = spec(&destination);
    (spec.xattrs, spec.hard_links) = (true, true);
    let mut session = start(&spec).unwrap();
    let entry = |path: &[u8], kind: EntryKind, xattrs: Vec<Xattr>| Entry {
        path: path.to_vec(),
        kind,
        mode: u32::MAX,
        mtime_ns: i64::MIN,
        ctime_ns: 0,
        xattrs,
    };
    let xattr = |name: &[u8], bytes: usize| Xattr {
        name: name.to_vec(),
        value: vec![0; bytes],
    };
    let file = || EntryKind::File { bytes: 3, hash: None };
    let link = |target: &[u8]| EntryKind::Link {
        target: target.to_vec(),
    };
    let mut numbers = Vec::new();
    for wrong in [
        entry(b".farline-partial/a", file(), vec![]),
        entry(&[b'a'; 300], file(), vec![]),
        entry(
            b"big",
            EntryKind::File {
                bytes: u64::MAX,
                hash: None,
            },
            vec![],
        ),
        entry(b"l", link(b""), vec![]),
        entry(b"l", link(&[b'a'; 5000]), vec![]),
        entry(b"l", link(b"a\0"), vec![]),
        entry(b"x", file(), vec![xattr(b"user.a", 70_000)]),
        entry(b"h", EntryKind::HardLink { to: 0 }, vec![]),
    ] {
        numbers.push(session.announce_entry(wrong));
    }
    for &number in &numbers {
        assert!(matches!(session.wants(number), Wants::Refused(_)), "{number}");
    }
    session.pack(0, &[(numbers[0], b"abc")]);
    let strange = xattr(b"security.capability", 20);
    let good = session.announce_entry(entry(b"good", file(), vec![strange]));
    session.pack(0, &[(good, b"abc")]);
    session.until_done(good);
    let (problems, _) = session.finish();
    assert!(
        problems[0].starts_with("good: extended attribute security.capability"),
        "{problems:?}"
    );
    assert_eq!(problems.len(), 1);
    assert_eq!(listing(place.path()), ["new"]);
    assert_eq!(listing(&destination), ["good"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(destination.join("good")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o7000, 0, "nobody else's rights are lent");
}

#[test]
fn more_entries_than_agreed_on_end_the_copy() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.pipeline = FileCount::new(1).unwrap();
    let most = crate::most_entries_under_way(&spec);
    let mut session = start(&spec).unwrap();
    // A file that is tried again may be announced before its first try is lost.
    for number in 0..=most + 1_024 {
        session.announce_file(format!("{number}").as_bytes(), b"abc");
    }
    assert_eq!(session.failures()[0].kind, FailureKind::Protocol);
}

#[test]
fn an_abort_ends_every_wait() {
    let place = tempfile::tempdir().unwrap();
    let mut session = start(&spec(&place.path().join("new"))).unwrap();
    session.pack(0, &[(5, b"abc")]);
    session.announce_file(b"a", b"abc");
    let began = std::time::Instant::now();
    let failures = session.cut();
    assert_eq!(failures.len(), 4);
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn files_that_are_more_than_the_ticket_allows_end_the_copy_before_there_is_a_byte_of_them() {
    let place = tempfile::tempdir().unwrap();
    let mut session = start_limited(&spec(place.path()), 1, None, Some(100)).unwrap();
    let file = session.announce_file(b"a", &[7; 60]);
    session.say(&Catalogue::Lost {
        file,
        reason: String::new(),
        again: true,
    });
    let again = session.announce_file(b"a", &[7; 60]);
    assert_eq!(session.wants(again), Wants::All);
    session.announce_file(b"b", &[7; 41]);
    assert_eq!(session.failures()[0].kind, FailureKind::Limit);
}

#[test]
fn facts_of_entries_that_take_too_much_memory_end_the_copy() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.xattrs = true;
    let mut session = start(&spec).unwrap();
    for number in 0..1_200 {
        let xattr = Xattr {
            name: b"user.a".to_vec(),
            value: vec![0; 60_000],
        };
        session.announce_entry(Entry {
            path: format!("{number}").into_bytes(),
            kind: EntryKind::File { bytes: 3, hash: None },
            mode: 0o644,
            mtime_ns: 0,
            ctime_ns: 0,
            xattrs: vec![xattr],
        });
    }
    assert_eq!(session.failures()[0].kind, FailureKind::Limit);
}
