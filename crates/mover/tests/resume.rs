//! Both ends of a copy over links that break: the next session goes on, and in the end every byte is right.

mod common;

use std::fs;
use std::path::Path;

use common::{Weather, cut, drive_sender, link, setup, spec};
use farline_mover::{ReceiveEnd, SendEnd};
use farline_spec::unit::{ChunkBytes, ThreadCount};
use farline_spec::{CopyReport, CopySpec, Failure};
use proptest::prelude::*;

/// One session; what it came to at the sending end, and both reports.
fn session(
    spec: &CopySpec,
    streams: u16,
    weather: &std::sync::Arc<Weather>,
) -> (Result<(), Failure>, CopyReport, CopyReport) {
    let receiver = ReceiveEnd::start(setup(spec, streams, None)).expect("a destination");
    let sender = SendEnd::start(setup(spec, streams, None)).expect("a source");
    let (outlets, inlets): (Vec<_>, Vec<_>) = (0..streams).map(|_| link(weather)).unzip();
    let (catalogue_into, mut catalogue) = link(weather);
    let (mut feedback, feedback_out) = link(weather);
    let stopped = |outcome: Result<(), Failure>| {
        if let Err(failure) = &outcome {
            receiver.abort(failure);
        }
    };
    let sent = std::thread::scope(|scope| {
        let stopped = &stopped;
        let receiver = &receiver;
        for (stream, mut inlet) in (0_u16..).zip(inlets) {
            scope.spawn(move || stopped(receiver.data(stream, &mut inlet)));
        }
        scope.spawn(move || stopped(receiver.catalogue(&mut catalogue)));
        scope.spawn(move || stopped(receiver.feedback(&mut feedback)));
        drive_sender(&sender, outlets, catalogue_into, feedback_out)
    });
    let received = receiver.finish().expect("a receipt");
    (sent.outcome, sent.report, received)
}

/// A tree with small and large files; its bytes.
fn make_tree(folder: &Path, seed: u64) -> u64 {
    let mut bytes = 0;
    for (number, length) in [0, 1, 70_000, 65_536, 400_000, 1_000_001, 300_000, 10]
        .into_iter()
        .enumerate()
    {
        let path = folder.join(format!("d{}/f{number}", number % 3));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut reader = blake3::Hasher::new()
            .update(&(seed ^ number as u64).to_le_bytes())
            .finalize_xof();
        let mut content = vec![0; length];
        reader.fill(&mut content);
        fs::write(path, content).unwrap();
        bytes += length as u64;
    }
    bytes
}

fn assert_same(source: &Path, destination: &Path) {
    let mut names = 0;
    for folder in fs::read_dir(source).unwrap() {
        let folder = folder.unwrap();
        for file in fs::read_dir(folder.path()).unwrap() {
            let file = file.unwrap();
            let copy = destination.join(folder.file_name()).join(file.file_name());
            assert!(
                fs::read(file.path()).unwrap() == fs::read(&copy).unwrap(),
                "{}",
                copy.display()
            );
            names += 1;
        }
    }
    assert_eq!(names, 8);
    assert!(!destination.join(".farline-partial").exists());
}

fn tree_spec(source: &Path, destination: &Path, writers: u16) -> CopySpec {
    let mut spec = spec(source, destination);
    spec.sources[0].push('/');
    spec.chunk_bytes = Some(ChunkBytes::new(65_536).unwrap());
    spec.writers = Some(ThreadCount::new(writers).unwrap());
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_link_that_is_cut_anywhere_costs_no_byte_and_no_file(
        cuts in prop::collection::vec(1i64..60, 1..4),
        streams in 1u16..4,
        writers in 0u16..2,
        in_memory in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let place = match in_memory {
            true => tempfile::tempdir_in("/dev/shm").unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let (source, destination) = (place.path().join("src"), place.path().join("dst"));
        let bytes = make_tree(&source, seed);
        let spec = tree_spec(&source, &destination, writers);
        for frames in cuts {
            let (outcome, ..) = session(&spec, streams, &Weather::cut_after(frames));
            if let Err(failure) = outcome {
                prop_assert_eq!(failure, cut());
            }
        }
        let (outcome, sent, received) = session(&spec, streams, &Weather::fair());
        prop_assert_eq!(outcome, Ok(()));
        prop_assert_eq!((sent.failed.files, received.failed.files), (0, 0));
        prop_assert_eq!(sent.copied.bytes + sent.present.bytes, bytes);
        assert_same(&source, &destination);
    }
}

#[test]
fn a_chunk_spoiled_on_its_way_is_sent_again() {
    for frame in [1, 3, 9] {
        let place = tempfile::tempdir_in("/dev/shm").unwrap();
        let (source, destination) = (place.path().join("src"), place.path().join("dst"));
        make_tree(&source, 7);
        let spec = tree_spec(&source, &destination, 0);
        let (outcome, _, received) = session(&spec, 2, &Weather::spoils(frame));
        assert_eq!(outcome, Ok(()));
        assert_eq!((received.repeated_chunks, received.failed.files), (1, 0));
        assert_same(&source, &destination);
    }
}

#[test]
fn a_second_copy_finds_everything_there() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let (source, destination) = (place.path().join("src"), place.path().join("dst"));
    make_tree(&source, 7);
    let spec = tree_spec(&source, &destination, 0);
    for present in [0, 8] {
        let (outcome, sent, received) = session(&spec, 2, &Weather::fair());
        assert_eq!(outcome, Ok(()));
        assert_eq!(received.copied.files, 8 - present);
        assert_eq!((sent.copied.files, sent.failed.files), (8 - present, 0));
        assert_same(&source, &destination);
    }
}
