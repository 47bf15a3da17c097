//! Frames that do not open under a cipher: what was in them comes once more, whatever it was, over whatever stream is left.

mod common;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use common::pair::{Ended, copy};
use common::{Fate, Weather, setup, spec, tree};
use farline_mover::SendEnd;
use farline_spec::unit::{ChunkBytes, ThreadCount};
use farline_spec::{CopySpec, FailureKind};
use proptest::prelude::*;

const CHUNK: u64 = 262_144;

/// Files that go in packs, in one chunk and in several.
fn make(top: &Path) -> PathBuf {
    let source = top.join("source");
    for (seed, bytes) in (1..).zip([1, 60_000, 200_000, 262_144, 300_000, 2_000_000, 1_000_001]) {
        tree::put(&source, format!("sizes/{bytes}"), &tree::content(bytes, seed));
    }
    for number in 0..120 {
        let content = tree::content(number * 37, number as u64);
        tree::put(&source, format!("many/{number}"), &content);
    }
    source
}

fn asked(source: &Path, destination: &Path, threads: u16) -> CopySpec {
    CopySpec {
        chunk_bytes: Some(ChunkBytes::new(CHUNK).unwrap()),
        readers: Some(ThreadCount::new(threads).unwrap()),
        writers: Some(ThreadCount::new(threads).unwrap()),
        fsync: false,
        ..spec(format!("{}/", source.display()), destination)
    }
}

fn assert_whole(ended: &Ended, source: &Path, destination: &Path) {
    ended.assert_well();
    assert!(
        tree::read(source) == tree::read(destination),
        "another tree arrived"
    );
}

/// One number for a stream and a frame.
fn draw(seed: u64, stream: u16, record: u64) -> u64 {
    let mut bits = seed ^ (u64::from(stream) << 48) ^ record.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn whatever_does_not_open_is_healed(seed in any::<u64>(), percent in 1u64..60, streams in 1u16..4, threads in 0u16..3) {
        let top = tempfile::tempdir().unwrap();
        let source = make(top.path());
        let destination = top.path().join("d");
        let weather = Weather::sealed(move |stream, record| match draw(seed, stream, record) % 100 < percent {
            true => Fate::Unopened,
            false => Fate::Opens,
        });
        let ended = copy(&asked(&source, &destination, threads), streams, &weather);
        assert_whole(&ended, &source, &destination);
        prop_assert_eq!(ended.sent.report.repeated_chunks, ended.received.repeated_chunks);
    }

    #[test]
    fn a_stream_out_of_step_is_left_and_the_others_carry_what_it_had(
        seed in any::<u64>(), record in 0u64..12, streams in 2u16..5, threads in 0u16..3,
    ) {
        let top = tempfile::tempdir().unwrap();
        let source = make(top.path());
        let destination = top.path().join("d");
        let lost = (seed % u64::from(streams)) as u16;
        // All but one may go, one after the other.
        let weather = Weather::sealed(move |stream, number| match stream != lost && number == record + u64::from(stream) {
            true => Fate::OutOfStep,
            false if draw(seed, stream, number) % 10 == 0 => Fate::Unopened,
            false => Fate::Opens,
        });
        let ended = copy(&asked(&source, &destination, threads), streams, &weather);
        assert_whole(&ended, &source, &destination);
    }
}

#[test]
fn the_last_stream_out_of_step_ends_the_session_and_the_next_goes_on() {
    for streams in [1, 3] {
        let top = tempfile::tempdir().unwrap();
        let source = make(top.path());
        let destination = top.path().join("d");
        let asked = asked(&source, &destination, 0);
        let weather = Weather::sealed(|_, record| match record {
            0..2 => Fate::Opens,
            _ => Fate::OutOfStep,
        });
        let ended = copy(&asked, streams, &weather);
        let why = ended.outcome.unwrap_err();
        assert_eq!((why.kind, why.permanent), (FailureKind::Protocol, false), "{why}");
        assert!(why.message.contains("no other stream is left"), "{why}");
        let again = copy(&asked, streams, &Weather::fair());
        assert_whole(&again, &source, &destination);
        let report = &again.received;
        assert!(
            report.resumed_bytes > 0 || report.present.files > 0,
            "it begins anew"
        );
    }
}

#[test]
fn a_sending_end_takes_no_made_up_word_about_frames() {
    use common::{Into, OutOf, drive_sender, link};
    use farline_mover::Outlet;
    use farline_mover::frame::{Frame, FrameKind, Header};
    use farline_mover::message::{self, Feedback};
    let top = tempfile::tempdir().unwrap();
    let source = make(top.path());
    let ready = Feedback::Ready { fresh: true };
    let many: Vec<_> = (0..3)
        .map(|_| Feedback::Unopened { stream: 0, record: 0 })
        .collect();
    for said in [
        vec![Feedback::Unopened {
            stream: 0,
            record: 1 << 40,
        }],
        vec![Feedback::Unopened { stream: 9, record: 0 }],
        vec![Feedback::OutOfStep { stream: 9, record: 0 }],
        vec![Feedback::OutOfStep {
            stream: 0,
            record: u64::MAX,
        }],
        many,
    ] {
        let end = SendEnd::start(setup(&asked(&source, Path::new("/d"), 0), 1, None)).unwrap();
        let weather = Weather::fair();
        let [
            (data, from_data),
            (catalogue, from_catalogue),
            (mut feedback, from_feedback),
        ]: [(Into, OutOf); 3] = std::array::from_fn(|_| link(&weather));
        let mut payload = Vec::new();
        let first = std::iter::once(&ready);
        first
            .chain(&said)
            .for_each(|message| message::append(&mut payload, message).unwrap());
        let mut frame = Frame::new(payload.len());
        frame.room()[..payload.len()].copy_from_slice(&payload);
        frame.set(&Header {
            payload_bytes: payload.len() as u32,
            ..Header::of_messages(FrameKind::Feedback)
        });
        feedback.send(&mut frame).unwrap();
        let drains: Vec<_> = [from_data, from_catalogue]
            .map(|mut out| {
                std::thread::spawn(move || {
                    let mut frame = Frame::new(1 << 20);
                    use farline_mover::{Arrived, Inlet};
                    while !matches!(out.receive(&mut frame), Ok(Arrived::End) | Err(_)) {}
                })
            })
            .into();
        let sent = drive_sender(&end, vec![data], catalogue, from_feedback);
        drop(feedback);
        drains.into_iter().for_each(|drain| drain.join().unwrap());
        assert_eq!(sent.outcome.unwrap_err().kind, FailureKind::Protocol, "{said:?}");
    }
}

#[test]
fn each_frame_of_a_copy_may_be_the_one_that_does_not_open() {
    let top = tempfile::tempdir().unwrap();
    let source = make(top.path());
    for hit in 0..14 {
        let destination = top.path().join(format!("d{hit}"));
        let seen = Mutex::new(HashSet::new());
        let weather = Weather::sealed(move |stream, record| {
            // So that one that comes instead does open.
            match record == hit && seen.lock().unwrap().insert(stream) {
                true => Fate::Unopened,
                false => Fate::Opens,
            }
        });
        let ended = copy(&asked(&source, &destination, 0), 1, &weather);
        assert_whole(&ended, &source, &destination);
        assert_eq!(ended.received.repeated_chunks, 1, "frame {hit}");
    }
}
