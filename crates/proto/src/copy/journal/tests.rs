//! What is noted is found again, in the order in which it may be believed, whatever is cut off.

use proptest::prelude::*;

use super::super::tree_hash::{TreeHash, chunk_hash};
use super::*;

#[test]
fn parts_that_touch_are_remembered_as_one() {
    const CHUNK: usize = 64 * 1024;
    let all: Vec<u8> = (0..11 * CHUNK + 5).map(|at| (at % 251) as u8).collect();
    let parts: Vec<Part> = all
        .chunks(CHUNK)
        .enumerate()
        .map(|(place, part)| {
            let offset = (place * CHUNK) as u64;
            (offset, part.len() as u64, Some(chunk_hash(offset, part, false)))
        })
        .collect();
    let length = all.len() as u64;
    let some = parts::joined(&parts[..11], length);
    assert_eq!(
        some.iter().map(|part| part.1 / CHUNK as u64).collect::<Vec<_>>(),
        [8, 2, 1]
    );
    let mut tree = TreeHash::new(length);
    for (offset, bytes, hash) in some.iter().chain(&parts[11..]) {
        assert!(tree.insert(*offset, *bytes, hash.unwrap()));
    }
    assert_eq!(tree.root(), Some(*blake3::hash(&all).as_bytes()));
    let plain: Vec<Part> = parts[2..7].iter().map(|part| (part.0, part.1, None)).collect();
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
