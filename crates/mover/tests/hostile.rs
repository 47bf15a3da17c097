//! The sending end against another end that says whatever it likes, or nothing at all.

mod common;

use std::time::{Duration, Instant};

use common::{Weather, drive_sender, link, setup, spec, straight, tree};
use farline_mover::frame::{FrameKind, Header};
use farline_mover::message::{self, Feedback, Proved, Wants};
use farline_mover::{Arrived, Frame, Inlet, Outlet, SendEnd, Sum};
use farline_spec::unit::ChunkBytes;
use farline_spec::{CopySpec, Failure, FailureKind};
use proptest::prelude::*;

fn tree_spec(top: &std::path::Path) -> CopySpec {
    for number in 0..5 {
        tree::put(top, format!("a/{number}"), &tree::content(number * 1000, 1));
    }
    tree::put(top, "large", &tree::content(1_000_000, 2));
    CopySpec {
        chunk_bytes: Some(ChunkBytes::new(65_536).unwrap()),
        ..spec(format!("{}/", top.display()), "/d")
    }
}

/// Runs a sending end against these frames of feedback, after which the other end is gone.
fn run(spec: &CopySpec, frames: Vec<Vec<u8>>) -> Result<(), Failure> {
    let end = SendEnd::start(setup(spec, 2, None)).expect("a sending end");
    let weather = Weather::fair();
    let (streams, drains): (Vec<_>, Vec<_>) = (0..2).map(|_| link(&weather)).unzip();
    let (catalogue, catalogue_drain) = link(&weather);
    let (mut feedback, feedback_out_of) = link(&weather);
    std::thread::scope(|scope| {
        for mut drain in drains.into_iter().chain([catalogue_drain]) {
            scope.spawn(move || {
                let mut frame = Frame::new(1 << 20);
                while !matches!(drain.receive(&mut frame), Ok(Arrived::End) | Err(_)) {}
            });
        }
        scope.spawn(move || {
            for payload in frames {
                let mut frame = Frame::new(payload.len());
                frame.room()[..payload.len()].copy_from_slice(&payload);
                frame.set(&Header {
                    payload_bytes: payload.len() as u32,
                    ..Header::of_messages(FrameKind::Feedback)
                });
                if feedback.send(&mut frame).is_err() {
                    return;
                }
            }
        });
        drive_sender(&end, streams, catalogue, feedback_out_of).outcome
    })
}

fn frame_of(messages: &[Feedback]) -> Vec<u8> {
    let mut payload = Vec::new();
    for message in messages {
        message::append(&mut payload, message).unwrap();
    }
    payload
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0_u64..9, Just(u64::MAX), any::<u64>()]
}

fn offset() -> impl Strategy<Value = u64> {
    prop_oneof![(0_u64..20).prop_map(|chunk| chunk * 65_536), any::<u64>()]
}

fn wants() -> impl Strategy<Value = Wants> {
    let proved = (offset(), offset(), any::<bool>()).prop_map(|(offset, bytes, hashed)| Proved {
        offset,
        bytes,
        hash: hashed.then_some(Sum::from_bytes([7; 32])),
    });
    prop_oneof![
        Just(Wants::All),
        prop::collection::vec(proved, 0..4).prop_map(Wants::Rest),
        Just(Wants::Present(None)),
        Just(Wants::Made),
        Just(Wants::Refused("no\r\n\u{1b}[2J".repeat(500))),
    ]
}

fn feedback() -> impl Strategy<Value = Feedback> {
    prop_oneof![
        any::<bool>().prop_map(|fresh| Feedback::Ready { fresh }),
        (number(), prop::collection::vec(wants(), 0..9))
            .prop_map(|(first, wants)| Feedback::Answers { first, wants }),
        (number(), prop::option::of(Just(Sum::from_bytes([3; 32]))))
            .prop_map(|(file, hash)| Feedback::Done { file, hash }),
        number().prop_map(|file| Feedback::Failed {
            file,
            reason: "full".into()
        }),
        (number(), offset(), offset()).prop_map(|(file, offset, bytes)| Feedback::Again {
            file,
            offset,
            bytes
        }),
        number().prop_map(|file| Feedback::Whole { file }),
        Just(Feedback::Deleted { path: b"a".to_vec() }),
        Just(Feedback::Finished {
            problems: vec!["x\ny".into()]
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_feedback_makes_a_defect_or_a_hang(
        ready in any::<Option<bool>>(),
        said in prop::collection::vec(feedback(), 0..12),
        plain in any::<bool>(),
    ) {
        let top = tempfile::tempdir().unwrap();
        let ready = ready.map(|fresh| frame_of(&[Feedback::Ready { fresh }]));
        let frames = ready.into_iter().chain(said.iter().map(|message| frame_of(std::slice::from_ref(message))));
        let spec = tree_spec(top.path());
        let spec = if plain { straight(spec) } else { spec };
        let failure = run(&spec, frames.collect()).expect_err("nobody took the files");
        prop_assert_eq!(failure.kind, FailureKind::Protocol, "{}", failure);
    }

    #[test]
    fn no_bytes_make_a_defect_or_a_hang(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let top = tempfile::tempdir().unwrap();
        let ready = frame_of(&[Feedback::Ready { fresh: true }]);
        let failure = run(&tree_spec(top.path()), vec![ready, bytes]).expect_err("nobody took the files");
        prop_assert_eq!(failure.kind, FailureKind::Protocol, "{}", failure);
    }
}

#[test]
fn feedback_that_makes_no_sense_is_named() {
    let ready = Feedback::Ready { fresh: false };
    let answer = |first, wants| Feedback::Answers {
        first,
        wants: vec![wants],
    };
    // Number 0 is the folder, 1 the large file.
    let cases = [
        (vec![answer(0, Wants::All)], "before the other end was ready"),
        (vec![ready.clone(), ready.clone()], "READY twice"),
        (
            vec![ready.clone(), answer(1 << 40, Wants::All)],
            "which was not announced",
        ),
        (
            vec![ready.clone(), Feedback::Finished { problems: vec![] }],
            "finished",
        ),
    ];
    for (messages, expected) in cases {
        let top = tempfile::tempdir().unwrap();
        let failure = run(&tree_spec(top.path()), vec![frame_of(&messages)]).unwrap_err();
        assert!(failure.message.contains(expected), "{failure}");
    }
}

#[test]
fn an_abort_ends_every_job_at_once() {
    let top = tempfile::tempdir().unwrap();
    let spec = tree_spec(top.path());
    for readers in [0, 2] {
        let mut spec = spec.clone();
        spec.readers = Some(farline_spec::unit::ThreadCount::new(readers).unwrap());
        let end = SendEnd::start(setup(&spec, 1, None)).unwrap();
        let weather = Weather::fair();
        let (data, _data_end) = link(&weather);
        let (catalogue, _catalogue_end) = link(&weather);
        let (_feedback_end, feedback) = link(&weather);
        let why = Failure::new(FailureKind::Interrupted, "stopped");
        let (outcome, took) = std::thread::scope(|scope| {
            let jobs = scope.spawn(|| drive_sender(&end, vec![data], catalogue, feedback).outcome);
            let began = Instant::now();
            end.abort(&why);
            (jobs.join().unwrap(), began.elapsed())
        });
        assert_eq!(outcome, Err(why));
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}
