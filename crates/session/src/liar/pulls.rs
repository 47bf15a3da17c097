//! Lies of a server that has the files.

use farline_mover::frame::{FrameKind, Header};
use farline_mover::message::{Catalogue, Entry, EntryKind, Feedback, Top, Xattr};
use farline_spec::{FailureKind, FileKind, FileStatus};
use serde_json::{Value, json};

use super::stage::{Lie, Met, all_found_out, asked, lie};
use super::{CHUNK, Session, Step};

fn link(target: &str) -> EntryKind {
    EntryKind::Link {
        target: target.as_bytes().to_vec(),
    }
}

/// Says one name besides the one that was asked for.
fn says(path: &'static str, kind: EntryKind) -> impl FnOnce(&mut Session) -> Step + Send {
    move |session| {
        session.prepare()?;
        session.begin()?;
        let file = session.entry(path, kind.clone())?;
        if let EntryKind::File { bytes: 3, .. } = kind {
            session.pack(file, b"bad")?;
        }
        session.end()
    }
}

const SMALL: EntryKind = EntryKind::File { bytes: 3, hash: None };

/// The lie is a breach that names what was sent.
fn is_breach(what: &str, met: &Met) {
    assert_eq!(met.kind(), FailureKind::Protocol, "{what}");
    let error = met.record.error.as_ref().expect("a breach");
    assert!(error.permanent, "{what}: {error}");
    let named = what.split('\'').nth(1).unwrap_or(what);
    assert!(error.message.contains(&format!("\"{named}\"")), "{what}: {error}");
}

#[test]
fn names_that_were_not_asked_for_end_the_copy() {
    let names = [
        ("beside: '.bashrc'", ".bashrc"),
        ("keys: '.ssh/authorized_keys'", ".ssh/authorized_keys"),
        ("another name: 'y'", "y"),
        ("another case: 'X'", "X"),
        ("longer: 'xx'", "xx"),
        ("up: '../x'", "../x"),
        ("from the top: '/x'", "/x"),
        ("up again: 'x/../.bashrc'", "x/../.bashrc"),
        ("doubled: 'x//y'", "x//y"),
        ("a dot: './x'", "./x"),
    ];
    let files = names.map(|(what, path)| lie(what, says(path, SMALL)));
    let others = [
        lie("a folder: '.ssh'", says(".ssh", EntryKind::Folder)),
        lie("a link: '.profile'", says(".profile", link("/etc/passwd"))),
        lie("a zero byte: 'x\\x00y'", says("x\0y", SMALL)),
        asked(
            "a further name: '.bash_login'",
            json!({"copy": {"hard_links": true}}),
            says(".bash_login", EntryKind::HardLink { to: 0 }),
        ),
    ];
    all_found_out("reverse", files.into_iter().chain(others).collect(), is_breach);
}

fn with_xattr(session: &mut Session) -> Step {
    session.prepare()?;
    session.begin()?;
    session.announce(Entry {
        path: b"x".to_vec(),
        kind: SMALL,
        mode: 0o644,
        mtime_ns: 0,
        ctime_ns: 0,
        xattrs: vec![Xattr {
            name: b"user.x".to_vec(),
            value: vec![1],
        }],
    })?;
    Ok(())
}

fn through_a_link(session: &mut Session) -> Step {
    session.prepare()?;
    session.begin()?;
    session.entry("x", EntryKind::Folder)?;
    session.entry("x/up", link("../.ssh"))?;
    let file = session.file("x/up/authorized_keys", 3)?;
    session.pack(file, b"bad")
}

fn over_a_link(session: &mut Session) -> Step {
    session.prepare()?;
    session.begin()?;
    session.entry("x", link("."))?;
    session.entry("x", EntryKind::Folder)?;
    Ok(())
}

#[test]
fn kinds_and_places_that_were_not_asked_for_end_the_copy() {
    let copy = |more: Value| json!({ "copy": more });
    let content = |more: Value| {
        let mut all = json!({"sources": ["data/"]});
        all.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        copy(all)
    };
    let lies = vec![
        asked("skip: 'x'", copy(json!({"links": "skip"})), says("x", link("a"))),
        asked(
            "follow: 'x'",
            copy(json!({"links": "follow"})),
            says("x", link("a")),
        ),
        lie("no -H: 'x'", says("x", EntryKind::HardLink { to: 0 })),
        lie("no -X: 'x'", with_xattr),
        asked(
            "no -r: 'x'",
            copy(json!({"recursive": false})),
            says("x", EntryKind::Folder),
        ),
        asked(
            "in a folder: 'x/y'",
            copy(json!({"recursive": false})),
            says("x/y", SMALL),
        ),
        asked(
            "left out: 'wanted.secret'",
            content(json!({"filters": ["- *.secret"]})),
            says("wanted.secret", SMALL),
        ),
        asked(
            "in a folder that is left out: '.ssh/authorized_keys'",
            content(json!({"filters": ["- /.ssh/"]})),
            says(".ssh/authorized_keys", SMALL),
        ),
        lie("through a link: 'x/up/authorized_keys'", through_a_link),
        lie("over a link: 'x'", over_a_link),
    ];
    all_found_out("reverse", lies, is_breach);
}

#[test]
fn what_else_a_catalogue_may_say_is_held_against_the_request() {
    let top = |session: &mut Session| -> Step {
        session.prepare()?;
        let top = Some(Top {
            mode: 0o777,
            mtime_ns: 0,
        });
        session.say_all(&[Catalogue::Begin {
            chunk_bytes: CHUNK,
            top,
            asks_whole: false,
        }])
    };
    let unannounced = |session: &mut Session| -> Step {
        session.prepare()?;
        session.begin()?;
        session.say_all(&[Catalogue::Unannounced {
            path: b".bashrc".to_vec(),
            kind: FileKind::File,
            status: FileStatus::Failed,
            reason: "gone".to_owned(),
        }])
    };
    let emptied = |session: &mut Session| -> Step {
        session.prepare()?;
        session.begin()?;
        session.entry(".ssh", EntryKind::Folder)?;
        session.end()
    };
    let late = |session: &mut Session| -> Step {
        session.prepare()?;
        session.begin()?;
        let file = session.honest_file()?;
        session.until(|said: Feedback| matches!(said, Feedback::Done { .. }).then_some(()))?;
        assert_eq!(file, 0);
        says_more(session)
    };
    let lies = vec![
        lie("the destination itself: '.'", top),
        lie("a name that does not come: '.bashrc'", unannounced),
        asked("to be emptied: '.ssh'", json!({"copy": {"delete": 1}}), emptied),
        lie("after what was asked for: '.bashrc'", late),
    ];
    all_found_out("reverse", lies, is_breach);
}

fn says_more(session: &mut Session) -> Step {
    session.file(".bashrc", 3)?;
    session.end()
}

/// A lie that begins as an honest copy does.
fn begun(what: &'static str, then: impl FnOnce(&mut Session) -> Step + Send + 'static) -> Lie {
    lie(what, move |session| {
        session.prepare()?;
        session.begin()?;
        then(session)
    })
}

fn chunk(session: &mut Session, file: u64, offset: u64, bytes: usize) -> Step {
    let header = Header {
        file,
        offset,
        hash: Some(farline_mover::Sum::from_bytes([1; 32])),
        ..Header::of_messages(FrameKind::Chunk)
    };
    session.frame(0, header, &vec![0; bytes])
}

#[test]
fn messages_that_make_no_sense_end_the_copy() {
    let lies = vec![
        begun("begins twice", |session| session.begin()),
        lie("does not begin", |session| {
            session.prepare()?;
            session.file("x", 3).map(drop)
        }),
        lie("chunks that were not agreed on", |session| {
            session.prepare()?;
            session.say_all(&[Catalogue::Begin {
                chunk_bytes: 1 << 20,
                top: None,
                asks_whole: false,
            }])
        }),
        begun("another count at the end", |session| {
            session.say_all(&[Catalogue::End {
                entries: 5,
                whole: true,
            }])
        }),
        begun("a name after the end", |session| {
            // What is still to come keeps the copy from ending before the lie arrives.
            session.file("x", 2 * CHUNK)?;
            session.end()?;
            session.file("x", 3).map(drop)
        }),
        begun("settles what was not announced", |session| {
            session.say_all(&[Catalogue::Settled { file: 9, hash: None }])
        }),
        begun("loses what was not announced", |session| {
            let reason = String::new();
            session.say_all(&[Catalogue::Lost {
                file: 9,
                reason,
                again: false,
            }])
        }),
        begun("a hole beyond the end", |session| {
            let file = session.file("x", 3 * CHUNK)?;
            session.say_all(&[Catalogue::Hole {
                file,
                offset: 2 * CHUNK,
                bytes: 2 * CHUNK,
            }])
        }),
        begun("a status that there is not", |session| {
            session.say_all(&[Catalogue::Unannounced {
                path: b"x".to_vec(),
                kind: FileKind::File,
                status: FileStatus::Copied,
                reason: String::new(),
            }])
        }),
        begun("no message", |session| session.say_bytes(&[0xff; 40])),
        begun("feedback on the catalogue", |session| {
            let stream = session.own_messages();
            session.frame(stream, Header::of_messages(FrameKind::Feedback), b"")
        }),
    ];
    all_found_out("reverse", lies, |what, met| {
        assert_eq!(met.kind(), FailureKind::Protocol, "{what}: {}", met.message());
        assert!(!met.message().is_empty(), "{what}");
    });
}

#[test]
fn data_that_make_no_sense_end_the_copy() {
    let lies = vec![
        begun("a chunk of nothing", |session| {
            session.file("x", 2 * CHUNK)?;
            session.end()?;
            chunk(session, 3, 0, 65_536)
        }),
        begun("a chunk beyond the end", |session| {
            let file = session.file("x", 2 * CHUNK)?;
            chunk(session, file, 2 * CHUNK, 65_536)
        }),
        begun("a chunk between chunks", |session| {
            let file = session.file("x", 4 * CHUNK)?;
            chunk(session, file, 5, 65_536)
        }),
        begun("a pack with another length", |session| {
            let file = session.file("x", 3)?;
            session.pack(file, b"abcd")
        }),
        begun("a torn pack", |session| {
            session.frame(0, Header::of_messages(FrameKind::Pack), &[1; 20])
        }),
        begun("messages among data", |session| {
            session.frame(0, Header::of_messages(FrameKind::Catalogue), b"")
        }),
        begun("bytes that no seal opens", |session| {
            let mut bytes = vec![0; 200];
            bytes[0] = 176;
            bytes[4] = 1;
            session.raw(0, &bytes)
        }),
        begun("a frame that is too long", |session| {
            session.raw(0, &[0xff, 0xff, 0xff, 0x7f, 1, 0, 0, 0])
        }),
        begun("no hash", |session| {
            let file = session.file("x", 2 * CHUNK)?;
            let header = Header {
                file,
                ..Header::of_messages(FrameKind::Chunk)
            };
            session.frame(0, header, &vec![0; 65_536])
        }),
    ];
    all_found_out("reverse", lies, |what, met| {
        assert_eq!(met.kind(), FailureKind::Protocol, "{what}: {}", met.message());
        assert!(met.new.is_empty(), "{what}: {:?}", met.new);
    });
}

#[test]
fn a_single_name_that_is_not_what_it_should_be_fails_by_name() {
    let lies = vec![
        begun("a link to elsewhere", |session| {
            session.entry("x", link("/etc/passwd"))?;
            session.end()?;
            session.finished()?;
            session.close()
        }),
        begun("content of another hash", |session| {
            let file = session.file("x", 2 * CHUNK)?;
            for _ in 0..9 {
                chunk(session, file, 0, 65_536)?;
            }
            session.end()?;
            session.until(|said: Feedback| matches!(said, Feedback::Failed { .. }).then_some(()))?;
            session.finished()?;
            session.close()
        }),
        begun("a name that plays with the terminal", |session| {
            session.file("x\u{202e}\u{1b}[31m", 3).map(drop)
        }),
        begun("a reason that plays with the terminal", |session| {
            session.say_all(&[Catalogue::Unannounced {
                path: b"x".to_vec(),
                kind: FileKind::File,
                status: FileStatus::Failed,
                reason: "a\u{1b}]0;owned\u{7}\r\nfarline: all is well\u{9b}2J\u{202e}\u{2066}".repeat(500),
            }])?;
            session.end()?;
            session.finished()?;
            session.close()
        }),
    ];
    all_found_out("reverse", lies, |what, met| {
        let failures = met.failures();
        // A name with other letters behind it was not asked for.
        let is_breach = met.record.error.as_ref().is_some_and(|error| error.permanent);
        assert!(
            is_breach || failures.iter().any(|(path, _)| path == "x"),
            "{what}: {failures:?}"
        );
        assert!(met.new.is_empty(), "{what}: {:?}", met.new);
    });
}

#[test]
fn an_honest_server_is_believed() {
    let honest = begun("honest", |session| {
        session.honest_file()?;
        session.end()?;
        session.finished()?;
        session.close()
    });
    let met = super::stage::meet("reverse", honest);
    assert_eq!((met.record.error, met.new), (None, vec!["home/x".to_owned()]));
}
