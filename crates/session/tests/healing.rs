//! Files over a path that changes what it carries, under a cipher: what comes is right, and it comes.

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use common::site::{Site, assert_same, make_tree, merge, spec};
use common::spoiler::Spoiler;
use common::{Run, follow};
use farline_session::message::VersionRange;
use farline_session::{Local, Target, start_run_with};
use farline_spec::{FailureKind, from_json};
use serde_json::{Value, json};

const LARGE_BYTES: usize = 5_000_000;
const STREAMS: u16 = 3;
/// Bits of a frame's beginning that say how long it is.
const PREFIX_BITS: usize = 64;

/// One number for a frame, the same in every run.
fn draw(stream: u16, number: u64) -> usize {
    let mut bits = (u64::from(stream) << 40 | number)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (bits >> 33) as usize
}

/// A bit of one in `every` frames of data, never of its length.
fn some(every: usize) -> impl Fn(u16, u64, usize) -> Option<usize> + Send + Sync + 'static {
    move |stream, number, bytes| {
        let drawn = draw(stream, number);
        let is_hit = stream < STREAMS && drawn % every == 0;
        is_hit.then(|| PREFIX_BITS + (drawn / every) % (8 * bytes - PREFIX_BITS))
    }
}

struct Place {
    site: Site,
    direction: &'static str,
}

impl Place {
    fn new(direction: &'static str) -> Self {
        let site = Site::new(r#","single_port":true"#);
        let source = match direction {
            "forward" => site.near().join("data"),
            _ => site.far().join("data"),
        };
        make_tree(&source, LARGE_BYTES);
        Self { site, direction }
    }

    fn run(&self, through: &Spoiler, versions: VersionRange, more: &Value) -> Run {
        let mut asked = match self.direction {
            "forward" => self.site.push(&json!({})),
            _ => {
                let reverse = json!({"direction": "reverse"});
                spec(Path::new("/data"), &self.site.near().join("copy"), &reverse)
            }
        };
        merge(
            &mut asked,
            &json!({"streams": STREAMS, "copy": {"chunk_bytes": 65_536}}),
        );
        merge(&mut asked, more);
        let ticket = match self.direction {
            "forward" => self.site.writer(),
            _ => self.site.reader(),
        };
        let target = Target {
            host: through.address.ip().to_string(),
            port: through.address.port(),
            ..ticket
        };
        let local = Local {
            versions,
            ..Local::default()
        };
        follow(&start_run_with(
            target,
            from_json(&asked.to_string()).unwrap(),
            local,
        ))
    }

    fn assert_same(&self) {
        let (near, far) = (self.site.near(), self.site.far());
        match self.direction {
            "forward" => assert_same(&near.join("data"), &far.join("copy")),
            _ => assert_same(&far.join("data"), &near.join("copy")),
        }
    }
}

#[test]
fn spoiled_frames_are_healed_and_counted_in_both_directions() {
    for direction in ["forward", "reverse"] {
        for cipher in ["aes128-gcm", "aes256-gcm"] {
            let place = Place::new(direction);
            let path = Spoiler::start(place.site.server.address(), some(7));
            let run = place.run(
                &path,
                VersionRange::default(),
                &json!({"copy": {"cipher": cipher}}),
            );
            assert_eq!(run.record.error, None, "{direction} {cipher}");
            let healed = run.record.copy.unwrap().repeated_chunks;
            assert_eq!(healed, path.spoiled(), "{direction} {cipher}");
            assert!(healed > 10, "{healed}");
            place.assert_same();
        }
    }
}

#[test]
fn with_an_end_of_an_older_version_the_first_ends_the_session() {
    for direction in ["forward", "reverse"] {
        for max in [1, 2] {
            let place = Place::new(direction);
            let versions = VersionRange { min: 1, max };
            let path = Spoiler::start(place.site.server.address(), some(7));
            let failure = place.run(&path, versions, &json!({})).record.error.unwrap();
            assert_eq!(
                (failure.kind, failure.permanent),
                (FailureKind::Protocol, false),
                "{failure}"
            );
            assert!(failure.message.contains("authentication failed"), "{failure}");
            drop(path);
            let path = Spoiler::start(place.site.server.address(), |_, _, _| None);
            let run = place.run(&path, versions, &json!({}));
            assert_eq!(run.record.error, None, "{direction} {max}");
            assert_eq!(run.record.copy.unwrap().repeated_chunks, 0);
            place.assert_same();
        }
    }
}

#[test]
fn streams_whose_lengths_are_spoiled_are_left_and_the_last_one_ends_the_session() {
    for direction in ["forward", "reverse"] {
        let place = Place::new(direction);
        // The topmost bit of the length, once in each stream that comes to its fourth frame, until
        // one stream is left: whichever of them carry the bytes, all but one are spoiled.
        let left = Mutex::new(BTreeSet::new());
        let path = Spoiler::start(place.site.server.address(), move |stream, number, _| {
            let mut left = left.lock().unwrap();
            let is_hit = stream < STREAMS
                && number >= 4
                && left.len() < usize::from(STREAMS) - 1
                && left.insert(stream);
            is_hit.then_some(31)
        });
        let run = place.run(&path, VersionRange::default(), &json!({}));
        assert_eq!(run.record.error, None, "{direction}");
        assert_eq!(path.spoiled(), u64::from(STREAMS) - 1, "{direction}");
        place.assert_same();

        let place = Place::new(direction);
        let path = Spoiler::start(place.site.server.address(), |stream, number, _| {
            (stream < STREAMS && number == 4).then_some(31)
        });
        let failure = place
            .run(&path, VersionRange::default(), &json!({}))
            .record
            .error
            .unwrap();
        assert_eq!(
            (failure.kind, failure.permanent),
            (FailureKind::Protocol, false),
            "{failure}"
        );
        assert!(failure.message.contains("no other stream is left"), "{failure}");
    }
}

#[test]
fn a_copy_ends_whatever_is_spoiled_messages_too() {
    for direction in ["forward", "reverse"] {
        let place = Place::new(direction);
        let path = Spoiler::start(place.site.server.address(), {
            let sessions = std::sync::atomic::AtomicU64::new(0);
            move |stream, number, bytes| {
                // Other frames in each session.
                let session = match number {
                    0 => sessions.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
                    _ => sessions.load(std::sync::atomic::Ordering::Relaxed),
                };
                let drawn = draw(stream, number + (session << 20));
                (drawn % 9 == 0).then(|| (drawn / 9) % (8 * bytes))
            }
        });
        let more = json!({"copy": {"stall_timeout_s": 2.0}});
        let mut sessions = 0;
        loop {
            sessions += 1;
            match place.run(&path, VersionRange::default(), &more).record.error {
                None => break,
                Some(failure) => assert!(!failure.permanent && sessions < 60, "{failure}"),
            }
        }
        place.assert_same();
    }
}
