//! Lies of a server that gets the files.

use farline_mover::message::{Feedback, Proved, Wants};
use farline_spec::FailureKind;
use serde_json::{Value, json};

use super::stage::{Lie, Met, all_found_out, asked, lie};
use super::{CHUNK, Session, Step};

/// A lie after the entry of the large file was heard: number and length are known.
fn about(what: &'static str, then: impl FnOnce(&mut Session, u64) -> Step + Send + 'static) -> Lie {
    lie(what, heard(then))
}

fn heard(
    then: impl FnOnce(&mut Session, u64) -> Step + Send + 'static,
) -> impl FnOnce(&mut Session) -> Step + Send + 'static {
    move |session| {
        session.prepare()?;
        session.ready()?;
        let number = session.announced("data/large")?;
        then(session, number)
    }
}

fn part(offset: u64, bytes: u64) -> Wants {
    Wants::Rest(vec![Proved {
        offset,
        bytes,
        hash: Some(farline_mover::Sum::from_bytes([1; 32])),
    }])
}

fn is_protocol(what: &str, met: &Met) {
    assert_eq!(met.kind(), FailureKind::Protocol, "{what}: {}", met.message());
    assert!(met.new.is_empty(), "{what}");
}

#[test]
fn answers_that_make_no_sense_end_the_copy() {
    let lies = vec![
        lie("answers before it is ready", |session| {
            session.prepare()?;
            session.wants(0, Wants::All)
        }),
        about("ready twice", |session, _| session.ready()),
        about("answers for nothing", |session, _| {
            session.wants(1 << 40, Wants::All)
        }),
        about("content of a folder", |session, _| session.wants(0, Wants::All)),
        about("parts beyond the end", |session, large| {
            session.wants(large, part(5 * CHUNK, 1 << 30))
        }),
        about("parts between chunks", |session, large| {
            session.wants(large, part(5, CHUNK))
        }),
        about("made without content", |session, large| {
            session.wants(large, Wants::Made)
        }),
        about("done before it was sent", |session, file| {
            session.say_all(&[Feedback::Done { file, hash: None }])
        }),
        about("done of nothing", |session, _| {
            session.say_all(&[Feedback::Done { file: 77, hash: None }])
        }),
        about("failed of nothing", |session, _| {
            let reason = String::new();
            session.say_all(&[Feedback::Failed { file: 77, reason }])
        }),
        about("again of nothing", |session, _| {
            session.say_all(&[Feedback::Again {
                file: 77,
                offset: 0,
                bytes: CHUNK,
            }])
        }),
        about("again beyond the end", |session, file| {
            session.wants(file, Wants::All)?;
            session.say_all(&[Feedback::Again {
                file,
                offset: 64 * CHUNK,
                bytes: CHUNK,
            }])
        }),
        about("again before it was wanted", |session, file| {
            session.say_all(&[Feedback::Again {
                file,
                offset: 0,
                bytes: CHUNK,
            }])
        }),
        about("whole of nothing", |session, _| {
            session.say_all(&[Feedback::Whole { file: 77 }])
        }),
        about("finished before the end", |session, _| {
            session.say_all(&[Feedback::Finished { problems: Vec::new() }])
        }),
        about("no message", |session, _| session.say_bytes(&[0xff; 40])),
    ];
    all_found_out("forward", lies, is_protocol);
}

#[test]
fn deletions_that_were_not_asked_for_end_the_copy() {
    let deleted = |path: &'static str, times: usize| {
        heard(move |session, _| {
            let path = path.as_bytes().to_vec();
            session.say_all(&vec![Feedback::Deleted { path }; times])
        })
    };
    let delete = |count: u64| -> Value { json!({"copy": {"delete": count}}) };
    let lies = vec![
        lie("nothing was to be deleted", deleted("data/old", 1)),
        asked("more than was confirmed", delete(2), deleted("data/old", 3)),
        asked("beside the sources", delete(2), deleted("other", 1)),
        asked("the source itself", delete(2), deleted("data", 1)),
        asked("out of the destination", delete(2), deleted("data/../../etc", 1)),
        asked(
            "what a rule keeps",
            json!({"copy": {"delete": 2, "filters": ["- *.keep"]}}),
            deleted("data/a.keep", 1),
        ),
    ];
    all_found_out("forward", lies, |what, met| {
        is_protocol(what, met);
        let error = met.record.error.as_ref().expect("a breach");
        assert!(
            error.permanent && error.message.contains("deleted"),
            "{what}: {error}"
        );
    });
}

#[test]
fn a_reason_that_plays_with_the_terminal_is_one_plain_line() {
    let lies = vec![about("a forged line", |session, _| {
        let reason = "no\u{1b}[2J\r\nfarline: all is well \u{202e}\u{2067}\u{9b}31m".to_owned();
        session.say_all(&[Feedback::Answers {
            first: 0,
            wants: vec![Wants::Refused(reason.clone()); 3],
        }])?;
        session.until(|said: farline_mover::message::Catalogue| {
            matches!(said, farline_mover::message::Catalogue::End { .. }).then_some(())
        })?;
        session.say_all(&[Feedback::Finished {
            problems: vec![reason],
        }])?;
        session.close()
    })];
    all_found_out("forward", lies, |what, met| {
        assert!(met.failures().len() >= 3, "{what}: {:?}", met.failures());
    });
}
