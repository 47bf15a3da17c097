//! What is noted is found again, in the order in which it may be believed, whatever is cut off.

use farline_spec::SumKind;
use proptest::prelude::*;

use super::super::sum::{Sum, chunk_sum, content_sum};
use super::super::tree_hash::TreeHash;
use super::*;

#[test]
fn parts_that_touch_are_remembered_as_one_of_each_kind() {
    const CHUNK: usize = 64 * 1024;
    let all: Vec<u8> = (0..11 * CHUNK + 5).map(|at| (at % 251) as u8).collect();
    let length = all.len() as u64;
    let parts_of = |kind| -> Vec<Part> {
        let part = |(place, part): (usize, &[u8])| {
            let offset = (place * CHUNK) as u64;
            (
                offset,
                part.len() as u64,
                Some(chunk_sum(kind, offset, part, false)),
            )
        };
        all.chunks(CHUNK).enumerate().map(part).collect()
    };
    let lengths = |parts: &[Part]| parts.iter().map(|part| part.1 / CHUNK as u64).collect::<Vec<_>>();
    for kind in [SumKind::Blake3, SumKind::Xxh3] {
        let parts = parts_of(kind);
        let some = parts::joined(&parts[..11], length);
        assert_eq!(lengths(&some), [8, 2, 1]);
        let mut tree = TreeHash::new(kind, length);
        for (offset, bytes, hash) in some.iter().chain(&parts[11..]) {
            assert!(tree.insert(*offset, *bytes, hash.unwrap()));
        }
        assert_eq!(tree.root(), Some(content_sum(kind, &all)));
    }
    let (blake3, xxh3) = (parts_of(SumKind::Blake3), parts_of(SumKind::Xxh3));
    let mixed = parts::joined(&[blake3[0], xxh3[1], blake3[2], xxh3[3]], length);
    assert_eq!(
        lengths(&mixed),
        [1, 1, 1, 1],
        "none is a neighbour of another kind"
    );
    let plain: Vec<Part> = blake3[2..7].iter().map(|part| (part.0, part.1, None)).collect();
    let joined = (2 * CHUNK as u64, 5 * CHUNK as u64, None);
    assert_eq!(parts::joined(&plain, length), [joined]);
    assert_eq!(parts::joined(&[(u64::MAX, 9, None), (0, 0, None)], length), []);
}

const KEY: [u8; 16] = [7; 16];

fn source(path: &str, bytes: u64) -> Source {
    Source {
        path: path.as_bytes().to_vec(),
        bytes,
        mtime_ns: 1,
        ctime_ns: 2,
    }
}

/// A journal with nothing in it, as bytes.
fn begun() -> Vec<u8> {
    let mut bytes = Vec::new();
    let put = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    compact(KEY, None, &Memory::default(), put).unwrap();
    bytes
}

fn read(journal: &[u8], pieces: usize, has: impl Fn(u64, &Source) -> bool) -> Memory {
    let mut reader = Reader::new(KEY, "boot");
    for piece in journal.chunks(pieces) {
        reader.take(piece);
    }
    reader.end(has)
}

fn sum(text: &[u8]) -> Option<Sum> {
    Some(content_sum(SumKind::Xxh3, text))
}

#[test]
fn a_journal_of_the_version_before_is_read_and_one_of_a_later_one_is_not() {
    for (version, is_known) in [(1, false), (2, true), (3, true), (4, false)] {
        let mut journal = Vec::new();
        let (key, boot) = (KEY, None);
        record::append(&mut journal, &Record::Header { version, key, boot }).unwrap();
        let (key, hash, id) = (source("a", 1).key(), sum(b"a"), None);
        record::append(&mut journal, &Record::Done { key, hash, id }).unwrap();
        let memory = read(&journal, 100, |_, _| true);
        assert_eq!(memory.done(&key), is_known.then_some(hash), "version {version}");
    }
}

#[test]
fn of_a_partial_that_was_begun_anew_only_what_was_kept_is_believed() {
    const G: u64 = 64 * 1024;
    let whole = source("a", 8 * G);
    let parts = [(0, G, sum(b"0")), (2 * G, 2 * G, sum(b"2")), (4 * G, G, None)];
    let mut notes = Notes::default();
    for part in parts {
        notes.part(1, &(), &whole, part);
    }
    let mut flush = notes.take();
    while flush.next().is_some() {
        flush.synced(true).unwrap();
    }
    let mut journal = [begun(), flush.records()].concat();
    let known = |journal: &[u8]| {
        read(journal, 100, |_, _| true).partials[&path_key(b"a")]
            .parts
            .clone()
    };
    assert_eq!(known(&journal), parts);
    notes.begun_anew(1, &whole, &parts[1..2]).unwrap();
    notes.part(1, &(), &whole, (6 * G, G, sum(b"6")));
    let mut flush = notes.take();
    while flush.next().is_some() {
        flush.synced(true).unwrap();
    }
    journal.extend(flush.records());
    assert_eq!(known(&journal), [parts[1], (6 * G, G, sum(b"6"))]);
}

#[test]
fn nothing_is_said_of_data_that_did_not_reach_the_device() {
    const G: u64 = 64 * 1024;
    let mut notes = Notes::default();
    for (id, path) in [(1, "a"), (2, "b")] {
        notes.part(id, &path, &source(path, 2 * G), (0, G, None));
    }
    let mut flush = notes.take();
    let mut asked = Vec::new();
    while let Some(partial) = flush.next() {
        asked.push(partial);
        flush.synced(partial == "b").unwrap();
    }
    assert_eq!(asked, ["a", "b"]);
    let journal = [begun(), flush.records()].concat();
    let memory = read(&journal, 100, |_, _| true);
    let known: Vec<u64> = memory.partials.values().map(|partial| partial.id).collect();
    assert_eq!(known, [2]);
}

#[test]
fn a_file_that_was_about_to_be_named_is_done_only_where_its_partial_is_gone() {
    const G: u64 = 64 * 1024;
    let mut notes = Notes::default();
    notes.part(1, &(), &source("a", 2 * G), (0, G, None));
    let mut flush = notes.take();
    while flush.next().is_some() {
        flush.synced(true).unwrap();
    }
    notes.done(source("a", 2 * G).key(), None, Some(1)).unwrap();
    let journal = [begun(), flush.records(), notes.take_records()].concat();
    for is_there in [true, false] {
        let memory = read(&journal, 1, |_, _| is_there);
        assert_eq!(memory.done(&source("a", 2 * G).key()).is_none(), is_there);
        assert_eq!(memory.partials.len(), usize::from(is_there));
    }
}

proptest! {
    #[test]
    fn a_journal_that_is_cut_anywhere_says_what_is_before_the_cut(cut in 0usize..2000, pieces in 1usize..300) {
        let mut notes = Notes::<()>::default();
        let mut journal = begun();
        let mut ends = vec![];
        for number in 0..10 {
            notes.done(source("f", number).key(), None, None).unwrap();
            journal.extend(notes.take_records());
            ends.push(journal.len());
        }
        let cut = cut.min(journal.len());
        let memory = read(&journal[..cut], pieces, |_, _| true);
        for (number, end) in (0..10).zip(ends) {
            prop_assert_eq!(memory.done(&source("f", number).key()).is_some(), end <= cut);
        }
    }
}
