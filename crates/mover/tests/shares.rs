//! A copy that several sessions carry together: each writes and proves its part, the last one ends the copy.

mod common;

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use common::pair::{Ended, copy};
use common::{Weather, setup, spec, tree};
use farline_mover::ReceiveEnd;
use farline_mover::message::GRAIN_BYTES;
use farline_spec::unit::ChunkBytes;
use farline_spec::{CopyShare, CopySpec, FailureKind, Verify};
use proptest::prelude::*;

/// Two large files, small ones and an empty one; their names.
fn make_tree(folder: &Path, seed: u64) -> Vec<(String, u64)> {
    let sizes = [0, 1, 70_000, 65_536, 1_000_001, 3_000_000];
    let names = (0..).zip(sizes).map(|(number, bytes)| {
        let name = format!("d{}/f{number}", number % 2);
        tree::put(folder, &name, &tree::content(bytes, seed ^ number));
        (name, bytes as u64)
    });
    names.collect()
}

struct Place {
    top: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("src")).unwrap();
        Self { top }
    }

    fn source(&self) -> std::path::PathBuf {
        self.top.path().join("src")
    }

    fn destination(&self) -> std::path::PathBuf {
        self.top.path().join("dst")
    }

    /// The session that ends the copy.
    fn last(&self) -> CopySpec {
        let mut spec = spec(self.source(), self.destination());
        spec.sources[0].push('/');
        spec.destination.push('/');
        spec.chunk_bytes = Some(ChunkBytes::new(65_536).unwrap());
        spec.share = Some(CopyShare {
            id: "copy1".to_owned(),
            part: None,
            offset: None,
            bytes: None,
        });
        spec
    }

    /// A session that carries these files, or this range of them.
    fn part(&self, number: u32, names: &[&str], range: Option<(u64, u64)>) -> CopySpec {
        let list = self.top.path().join(format!("list-{number}"));
        fs::write(&list, names.join("\n")).unwrap();
        let mut spec = self.last();
        spec.sources = vec![self.source().to_str().unwrap().to_owned()];
        spec.source_list = Some(list.to_str().unwrap().to_owned());
        let share = spec.share.as_mut().unwrap();
        share.part = Some(number);
        (share.offset, share.bytes) = range.unzip();
        spec
    }

    fn assert_whole(&self) {
        let (expected, found) = (tree::read(&self.source()), tree::read(&self.destination()));
        assert_eq!(found.len(), expected.len(), "{:?}", found.keys());
        for (path, thing) in &expected {
            let other = &found[path];
            assert!(thing.content == other.content, "{}", path.escape_ascii());
            assert_eq!((thing.mode, thing.mtime_ns), (other.mode, other.mtime_ns));
        }
    }
}

fn moved(ended: &Ended) -> u64 {
    ended.sent.report.copied.bytes - resumed(ended)
}

fn resumed(ended: &Ended) -> u64 {
    ended.received.resumed_bytes
}

#[test]
fn parts_at_the_same_time_are_one_copy_in_the_end_and_the_last_session_sends_nothing() {
    let place = Place::new();
    let names = make_tree(&place.source(), 1);
    let half = 1_507_328;
    let parts = [
        place.part(1, &["d1/f5"], Some((0, half))),
        place.part(2, &["d1/f5"], Some((half, half))),
        place.part(3, &["d0/f0", "d1/f1", "d0/f2", "d1/f3"], None),
        place.part(4, &["d0/f4"], None),
    ];
    std::thread::scope(|scope| {
        for part in &parts {
            scope.spawn(|| copy(part, 2, &Weather::fair()).assert_well());
        }
    });
    assert!(
        !place.destination().join("d1/f5").exists(),
        "named before it was whole"
    );
    let ended = copy(&place.last(), 2, &Weather::fair());
    ended.assert_well();
    place.assert_whole();
    let all: u64 = names.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(moved(&ended), 0);
    assert_eq!(ended.received.copied.bytes, 3_000_000);
    assert_eq!(ended.received.copied.bytes + ended.received.present.bytes, all);
}

#[test]
fn a_part_that_breaks_off_goes_on_where_it_was_and_costs_the_others_nothing() {
    let place = Place::new();
    make_tree(&place.source(), 2);
    let first = place.part(1, &["d1/f5"], Some((0, 1_507_328)));
    let second = place.part(2, &["d1/f5"], Some((1_507_328, 1_507_328)));
    copy(&second, 1, &Weather::fair()).assert_well();
    let cut = copy(&first, 1, &Weather::cut_after(14));
    assert!(cut.outcome.is_err());
    copy(&first, 1, &Weather::fair()).assert_well();
    let ended = copy(&place.last(), 1, &Weather::fair());
    ended.assert_well();
    assert_eq!(resumed(&ended), 3_000_000);
    place.assert_whole();
}

#[test]
fn a_range_that_is_proved_is_not_sent_again_by_whoever_carries_it() {
    let place = Place::new();
    make_tree(&place.source(), 3);
    let range = Some((GRAIN_BYTES, 20 * GRAIN_BYTES));
    copy(&place.part(1, &["d1/f5"], range), 1, &Weather::fair()).assert_well();
    let again = copy(&place.part(1, &["d1/f5"], range), 1, &Weather::fair());
    again.assert_well();
    assert_eq!(again.received.present.files, 1);
    // A last session that breaks off has taken over what the part proved: the next one of that part knows it.
    let broken = copy(&place.last(), 1, &Weather::cut_after(6));
    assert!(broken.outcome.is_err());
    let third = copy(&place.part(1, &["d1/f5"], range), 1, &Weather::fair());
    assert_eq!(third.received.present.files, 1);
    copy(&place.last(), 1, &Weather::fair()).assert_well();
    place.assert_whole();
}

#[test]
fn the_session_that_ends_a_copy_waits_for_its_parts_and_parts_of_one_number_exclude_each_other() {
    let place = Place::new();
    make_tree(&place.source(), 4);
    fs::create_dir(place.destination()).unwrap();
    let start = |spec: &CopySpec| ReceiveEnd::start(setup(spec, 1, None)).map_err(|why| why.kind);
    let part = start(&place.part(1, &["d0/f4"], None)).unwrap();
    let other = start(&place.part(2, &["d1/f5"], None)).unwrap();
    assert_eq!(start(&place.last()).unwrap_err(), FailureKind::Busy);
    assert_eq!(
        start(&place.part(1, &["d0/f4"], None)).unwrap_err(),
        FailureKind::Busy
    );
    drop((part, other));
    let last = start(&place.last()).unwrap();
    assert_eq!(
        start(&place.part(3, &["d0/f4"], None)).unwrap_err(),
        FailureKind::Busy
    );
    drop(last);
    copy(&place.last(), 1, &Weather::fair()).assert_well();
    place.assert_whole();
}

#[test]
fn holes_stay_holes_though_other_parts_of_their_file_come_later() {
    let place = Place::new();
    let source = place.source().join("sparse");
    File::create(&source).unwrap().set_len(256 * GRAIN_BYTES).unwrap();
    let half = 128 * GRAIN_BYTES;
    for (number, offset) in [(1, 0), (2, half)] {
        let part = place.part(number, &["sparse"], Some((offset, half)));
        copy(&part, 1, &Weather::fair()).assert_well();
    }
    let ended = copy(&place.last(), 1, &Weather::fair());
    ended.assert_well();
    place.assert_whole();
    let blocks = fs::metadata(place.destination().join("sparse")).unwrap().blocks();
    assert!(blocks * 512 <= GRAIN_BYTES, "{blocks} blocks");
}

#[test]
fn what_the_source_was_before_is_not_named() {
    let place = Place::new();
    make_tree(&place.source(), 5);
    copy(
        &place.part(1, &["d1/f5"], Some((0, 1_507_328))),
        1,
        &Weather::fair(),
    )
    .assert_well();
    tree::put(&place.source(), "d1/f5", &tree::content(3_000_000, 99));
    copy(
        &place.part(2, &["d1/f5"], Some((1_507_328, 1_507_328))),
        1,
        &Weather::fair(),
    )
    .assert_well();
    let ended = copy(&place.last(), 1, &Weather::fair());
    ended.assert_well();
    assert_eq!(resumed(&ended), 3_000_000 - 1_507_328);
    place.assert_whole();
}

#[test]
fn a_file_that_became_shorter_is_no_business_of_the_part_behind_its_end() {
    let place = Place::new();
    make_tree(&place.source(), 6);
    let behind = place.part(1, &["d1/f5"], Some((2 * GRAIN_BYTES, GRAIN_BYTES)));
    tree::put(&place.source(), "d1/f5", &tree::content(GRAIN_BYTES as usize, 7));
    copy(&behind, 1, &Weather::fair()).assert_well();
    copy(&place.last(), 1, &Weather::fair()).assert_well();
    place.assert_whole();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_that_are_cut_anywhere_leave_nothing_that_is_wrong(
        grains in prop::collection::vec(1u64..20, 1..4),
        cuts in prop::collection::vec((0usize..4, 1i64..40), 0..4),
        is_hashed in any::<bool>(),
        in_memory in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let place = match in_memory {
            true => Place { top: tempfile::tempdir_in("/dev/shm").unwrap() },
            false => Place::new(),
        };
        make_tree(&place.source(), seed);
        let dressed = |mut spec: CopySpec| {
            if !is_hashed {
                spec.verify = Verify::None;
            }
            spec
        };
        let mut at = 0;
        let mut parts = Vec::new();
        for (number, grains) in (1..).zip(&grains) {
            let range = Some((at * GRAIN_BYTES, grains * GRAIN_BYTES));
            parts.push(dressed(place.part(number, &["d1/f5", "d0/f4"], range)));
            at += grains;
        }
        for (which, frames) in cuts {
            let part = &parts[which % parts.len()];
            let _ = copy(part, 2, &Weather::cut_after(frames));
        }
        let fair = Weather::fair();
        std::thread::scope(|scope| {
            for part in &parts {
                let fair: &Arc<Weather> = &fair;
                scope.spawn(move || copy(part, 2, fair).assert_well());
            }
        });
        let ended = copy(&dressed(place.last()), 2, &fair);
        ended.assert_well();
        let carried = |bytes: u64| (at * GRAIN_BYTES).min(bytes);
        prop_assert_eq!(resumed(&ended), carried(3_000_000) + carried(1_000_001));
        place.assert_whole();
    }
}
