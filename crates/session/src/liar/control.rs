//! Lies on the control channel, and servers that never come to an end: every wait of the client has one.

use std::time::{Duration, Instant};

use farline_mover::frame::{FrameKind, Header};
use farline_spec::unit::RateBps;
use farline_spec::{Failure, FailureKind};
use serde_json::json;

use super::stage::{Lie, all_found_out, asked, lie};
use super::{Gone, PATIENCE, Session, Step};
use crate::message::{ProfilePart, ProfilingEnd, ServerMessage};

fn granting(what: &'static str, change: impl FnOnce(&mut crate::message::Grant) + Send + 'static) -> Lie {
    lie(what, move |session| {
        session.greet()?;
        session.grant(change)
    })
}

fn with_copy(grant: &mut crate::message::Grant, change: impl FnOnce(&mut farline_spec::CopySpec)) {
    change(grant.spec.copy.as_mut().expect("a copy"));
}

#[test]
fn a_grant_of_something_else_ends_the_session() {
    let lies = vec![
        granting("another destination", |grant| {
            with_copy(grant, |copy| copy.destination = "/etc".to_owned());
        }),
        granting("deletion", |grant| {
            with_copy(grant, |copy| {
                copy.delete = farline_spec::unit::DeleteCount::new(9).ok()
            });
        }),
        granting("no filters", |grant| {
            with_copy(grant, |copy| copy.filters.push("+ *".to_owned()))
        }),
        granting("other sources", |grant| {
            with_copy(grant, |copy| copy.sources.push("/".to_owned()))
        }),
        granting("links", |grant| {
            with_copy(grant, |copy| copy.links = farline_spec::SymbolicLinks::Follow);
        }),
        granting("no cipher", |grant| {
            with_copy(grant, |copy| copy.cipher = farline_spec::Cipher::None)
        }),
        granting("another direction", |grant| {
            grant.spec.direction = farline_spec::Direction::Forward
        }),
        granting("more than was asked for", |grant| {
            with_copy(grant, |copy| copy.total_rate_bps = RateBps::new(7).ok());
            grant.spec.seed = Default::default();
            grant.spec.streams = farline_spec::unit::StreamCount::new(9).expect("a count");
        }),
        lie("no port for messages", |session| {
            session.greet()?;
            session.grant(|_| ())?;
            session.listen(|listeners| listeners.messages_port = None)
        }),
        lie("no listener", |session| {
            session.greet()?;
            session.grant(|_| ())?;
            session.listen(|listeners| listeners.listeners.clear())
        }),
        lie("starts twice", |session| {
            session.prepare()?;
            session.tell(&ServerMessage::ProfilingStart)
        }),
        lie("a profile before the start", |session| {
            session.greet()?;
            session.grant(|_| ())?;
            session.tell(&ServerMessage::ExchangeProfile(ProfilePart::Streams(Vec::new())))
        }),
    ];
    all_found_out("reverse", lies, |what, met| {
        assert_eq!(met.kind(), FailureKind::Protocol, "{what}: {}", met.message());
        assert!(met.new.is_empty(), "{what}: {:?}", met.new);
    });
}

#[test]
fn what_a_server_says_of_itself_is_one_plain_line() {
    const WILD: &str = "\u{1b}[2J\r\nfarline: all is well\u{202e}\u{9b}31m";
    let lies = vec![
        lie("a refusal", |session| {
            session.greet()?;
            session.tell(&ServerMessage::Error(Failure {
                kind: FailureKind::Busy,
                message: WILD.repeat(1_000),
                retry_after_s: Some(1e300),
                permanent: true,
            }))
        }),
        granting("notes", |grant| {
            grant.notes = vec![WILD.repeat(100); 200];
            grant.spec.streams = farline_spec::unit::StreamCount::new(9).expect("a count");
        }),
    ];
    all_found_out("reverse", lies, |what, met| {
        assert!(met.message().len() <= 1_100, "{what}");
        assert!(met.notices.iter().all(|line| line.len() <= 1_100), "{what}");
    });
}

/// Does `each` every 50 ms until the client has gone.
fn keep(session: &mut Session, mut each: impl FnMut(&mut Session) -> Step) -> Step {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        each(session)?;
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Gone)
}

fn delivered(session: &mut Session) -> Step {
    session.prepare()?;
    session.begin()?;
    session.honest_file()?;
    session.end()?;
    session.finished()
}

/// The end of the streams, without the end of the session.
fn end_streams(session: &mut Session) -> Step {
    for lane in &mut session.lanes {
        if lane.open.role == farline_transport::Role::Sender {
            lane.open.io.finish_sending(Instant::now() + PATIENCE)?;
        }
    }
    Ok(())
}

#[test]
fn a_server_that_never_comes_to_an_end_is_given_up() {
    let stuck = vec![
        lie("never greets", |_| Ok(())),
        lie("never grants", |session| session.greet()),
        lie("never listens", |session| {
            session.greet()?;
            session.grant(|_| ())
        }),
        lie("never takes the streams", |session| {
            session.greet()?;
            session.grant(|_| ())?;
            session.listen(|_| ())
        }),
        lie("never starts", |session| {
            session.greet()?;
            session.grant(|_| ())?;
            session.listen(|_| ())?;
            session.open()
        }),
        lie("says nothing of files", Session::prepare),
        lie("announces and sends nothing", |session| {
            session.prepare()?;
            session.begin()?;
            session.file("x", 3)?;
            session.end()
        }),
        lie("delivers all and never ends its streams", delivered),
        lie("delivers all and never ends the session", |session| {
            delivered(session)?;
            end_streams(session)
        }),
        lie("ends and never tells what it did", |session| {
            delivered(session)?;
            end_streams(session)?;
            session.tell(&ServerMessage::ProfilingEnd(ProfilingEnd { stopped: false }))
        }),
    ];
    all_found_out("reverse", stuck, |what, met| {
        assert_eq!(met.kind(), FailureKind::Timeout, "{what}: {}", met.message());
    });
}

#[test]
fn signs_of_life_without_progress_do_not_hold_a_client() {
    let begin = |session: &mut Session| -> Step {
        session.prepare()?;
        session.begin()?;
        session.file("x", 3).map(drop)
    };
    let lies = vec![
        lie("empty frames", move |session| {
            begin(session)?;
            keep(session, |session| session.say_bytes(b""))
        }),
        lie("a byte now and then", move |session| {
            begin(session)?;
            session.raw(0, &[0x50, 0, 1, 0, 1, 0, 0, 0])?;
            keep(session, |session| session.raw(0, &[0]))
        }),
        lie("data for nobody", move |session| {
            delivered(session)?;
            keep(session, |session| {
                session.frame(0, Header::of_messages(FrameKind::Pack), b"")
            })
        }),
        lie("parts of a profile after a failure", |session| {
            session.prepare()?;
            session.begin()?;
            session.begin()?;
            keep(session, |session| {
                session.tell(&ServerMessage::ProfilingEnd(ProfilingEnd { stopped: false }))
            })
        }),
    ];
    all_found_out("reverse", lies, |what, met| {
        let kinds = [FailureKind::Timeout, FailureKind::Protocol];
        assert!(kinds.contains(&met.kind()), "{what}: {}", met.message());
    });
}

#[test]
fn a_server_that_takes_nothing_is_given_up_by_one_who_sends() {
    let asks = json!({"copy": {"cipher": "none"}});
    let lies = vec![
        lie("is never ready", Session::prepare),
        asked("never answers", asks, |session| {
            session.prepare()?;
            session.ready()
        }),
        lie("wants a file and never says that it came", |session| {
            session.prepare()?;
            session.ready()?;
            let large = session.announced("data/large")?;
            session.wants(large, farline_mover::message::Wants::All)
        }),
        lie("shows that it lives", |session| {
            session.prepare()?;
            session.ready()?;
            keep(session, |session| session.say_bytes(b""))
        }),
    ];
    all_found_out("forward", lies, |what, met| {
        assert_eq!(met.kind(), FailureKind::Timeout, "{what}: {}", met.message());
    });
}
