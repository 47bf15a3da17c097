//! A copy that was cut goes on where it was: nothing that was proved comes again, nothing that was not is believed.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use farline_spec::Hash;

use super::super::journal::{Record, record_at};
use super::super::staging::copy_key;
use super::*;
use crate::sum::content_sum;

const BYTES: usize = 8 * CHUNK as usize + 7;

fn staging_of(spec: &CopySpec) -> PathBuf {
    let key: String = copy_key(spec, "")
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    PathBuf::from(&spec.destination)
        .join(".farline-partial")
        .join(key)
}

/// A session that brings the chunks `which` of one file, and small files, and is cut.
fn cut_session(spec: &CopySpec, all: &[u8], which: &[u64]) {
    let mut session = start(spec).unwrap();
    let small = session.announce_file(b"small", b"abc");
    let file = session.announce_file(b"d/large", all);
    session.pack(0, &[(small, b"abc")]);
    session.until_done(small);
    for &chunk in which {
        session.chunk(chunk as usize % 2, file, all, chunk * CHUNK, false);
    }
    let bytes: u64 = which
        .iter()
        .map(|chunk| CHUNK.min(all.len() as u64 - chunk * CHUNK))
        .sum();
    while session.gauges.settled_bytes.get() < bytes + 3 {
        std::thread::yield_now();
    }
    for failure in session.cut() {
        assert_eq!(failure.kind, FailureKind::Interrupted);
    }
}

/// A session that goes on with what another left of the large file, brings one more chunk, and is cut.
fn cut_again(spec: &CopySpec, all: &[u8], chunk: u64) {
    let mut session = start(spec).unwrap();
    let file = session.announce_file(b"d/large", all);
    session.wants(file);
    let before = session.gauges.settled_bytes.get();
    session.chunk(0, file, all, chunk * CHUNK, false);
    while session.gauges.settled_bytes.get() < before + CHUNK {
        std::thread::yield_now();
    }
    session.cut();
}

/// Goes on; bytes that had to be sent.
fn resumed_session(spec: &CopySpec, all: &[u8]) -> (u64, CopyReport) {
    let mut session = start(spec).unwrap();
    let small = session.announce_file(b"small", b"abc");
    let file = session.announce_file(b"d/large", all);
    if session.wants(small) == Wants::All {
        session.pack(0, &[(small, b"abc")]);
    }
    let sent = send_wanted(&mut session, file, all);
    session.until_done(file);
    let (problems, report) = session.finish();
    assert!(problems.is_empty(), "{problems:?}");
    let destination = Path::new(&spec.destination);
    assert_eq!(listing(destination), ["d", "small"]);
    assert!(fs::read(destination.join("d/large")).unwrap() == all);
    assert_eq!(fs::read(destination.join("small")).unwrap(), b"abc");
    (sent, report)
}

#[test]
fn only_what_was_not_proved_is_sent_again() {
    for place in places() {
        let spec = spec(place.path());
        let all = content(BYTES, 5);
        cut_session(&spec, &all, &[0, 1, 2, 3, 5, 8]);
        let (sent, report) = resumed_session(&spec, &all);
        assert_eq!(sent, 3 * CHUNK);
        assert_eq!(report.resumed_bytes, BYTES as u64 - sent);
        assert_eq!((report.present.files, report.copied.files), (1, 1));
    }
}

/// The only file `file` is announced with this content and length of time; what the other end wants of it.
fn wants_of(session: &mut Session, content: &[u8], mtime_ns: i64) -> (u64, Wants) {
    let file = session.announce_entry(Entry {
        path: b"file".to_vec(),
        kind: EntryKind::File {
            bytes: content.len() as u64,
            hash: None,
        },
        mode: 0o640,
        mtime_ns,
        ctime_ns: mtime_ns,
        xattrs: Vec::new(),
    });
    (file, session.wants(file))
}

#[test]
fn what_this_copy_put_there_before_it_broke_off_is_its_own_and_what_others_did_is_not() {
    for is_touched in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let spec = spec(place.path());
        let mut session = start(&spec).unwrap();
        let (file, _) = wants_of(&mut session, b"before", 5);
        session.pack(0, &[(file, b"before")]);
        session.until_done(file);
        session.cut();
        if is_touched {
            fs::write(place.path().join("file"), "others").unwrap();
        }
        let mut session = start(&spec).unwrap();
        let (file, wants) = wants_of(&mut session, b"the source since", 6);
        if is_touched {
            assert!(matches!(wants, Wants::Refused(_)), "{wants:?}");
            continue;
        }
        assert_eq!(wants, Wants::All);
        session.pack(0, &[(file, b"the source since")]);
        session.until_done(file);
        assert_eq!(session.finish().0, Vec::<String>::new());
        assert_eq!(fs::read(place.path().join("file")).unwrap(), b"the source since");
    }
}

#[test]
fn streams_are_read_to_their_end_where_a_file_was_given_up_on_its_way() {
    for is_lost in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let mut session = start(&spec(place.path())).unwrap();
        let all = content(BYTES, 5);
        let file = session.announce_file(b"large", &all);
        session.chunk(0, file, &all, 0, false);
        if is_lost {
            session.say(&Catalogue::Lost {
                file,
                reason: "changed while it was read".to_owned(),
                again: true,
            });
        } else {
            send_wanted(&mut session, file, &all);
            session.until_done(file);
        }
        session.end_of_catalogue();
        session.until(|said| matches!(said, Feedback::Finished { .. }));
        assert_eq!(session.end.has_stragglers(), is_lost);
        session.close();
        assert_eq!(session.failures(), []);
    }
}

#[test]
fn what_came_void_is_not_taken_for_proved() {
    let place = tempfile::tempdir().unwrap();
    let (spec, all) = (spec(place.path()), content(BYTES, 5));
    let mut session = start(&spec).unwrap();
    let file = session.announce_file(b"d/large", &all);
    session.chunk(0, file, &all, 0, false);
    session.void_chunk(0, file, CHUNK);
    while session.gauges.moved_bytes.get() < 2 * CHUNK || session.gauges.settled_bytes.get() < CHUNK {
        std::thread::yield_now();
    }
    for failure in session.cut() {
        assert_eq!(failure.kind, FailureKind::Interrupted);
    }
    let (sent, _) = resumed_session(&spec, &all);
    assert_eq!(sent, BYTES as u64 - CHUNK);
}

#[test]
fn a_source_that_changed_begins_anew() {
    let place = tempfile::tempdir().unwrap();
    let spec = spec(place.path());
    let all = content(BYTES, 5);
    cut_session(&spec, &all, &[0, 1, 2]);
    let mut session = start(&spec).unwrap();
    let entry = Entry {
        path: b"d/large".to_vec(),
        kind: EntryKind::File {
            bytes: all.len() as u64,
            hash: None,
        },
        mode: 0o644,
        mtime_ns: MTIME_NS,
        ctime_ns: 8,
        xattrs: Vec::new(),
    };
    let file = session.announce_entry(entry);
    assert_eq!(session.wants(file), Wants::All);
    send_wanted(&mut session, file, &all);
    session.until_done(file);
    session.finish();
    assert!(fs::read(place.path().join("d/large")).unwrap() == all);
}

#[test]
fn files_done_are_known_by_the_journal_where_their_times_tell_nothing() {
    for place in places() {
        let mut spec = spec(place.path());
        spec.times = false;
        let all = content(BYTES, 5);
        cut_session(&spec, &all, &[0]);
        let mut session = start(&spec).unwrap();
        let small = session.announce_file(b"small", b"abc");
        assert_eq!(
            session.wants(small),
            Wants::Present(Some(content_sum(session.kind, b"abc")))
        );
        session.cut();
        fs::write(place.path().join("small"), b"other").unwrap();
        let mut session = start(&spec).unwrap();
        let small = session.announce_file(b"small", b"abc");
        assert!(matches!(session.wants(small), Wants::Refused(_)));
        session.cut();
    }
}

/// Every way to prove a copy, with what its sum is.
const HASHES: [Hash; 3] = [Hash::Xxh3, Hash::Blake3, Hash::None];

fn with_hash(spec: &CopySpec, hash: Hash) -> CopySpec {
    CopySpec { hash, ..spec.clone() }
}

#[test]
fn what_one_sum_proved_is_not_believed_by_a_session_of_another_and_what_any_proved_by_one_of_none() {
    let all = content(BYTES, 5);
    for before in HASHES {
        for now in HASHES {
            let place = tempfile::tempdir_in("/dev/shm").unwrap();
            let spec = spec(place.path());
            cut_session(&with_hash(&spec, before), &all, &[0, 1, 2, 3, 5, 8]);
            let (sent, report) = resumed_session(&with_hash(&spec, now), &all);
            let is_believed = now == before || now == Hash::None;
            let expected = if is_believed { 3 * CHUNK } else { BYTES as u64 };
            assert_eq!(sent, expected, "{before:?}, then {now:?}");
            assert_eq!(
                report.present.files, 1,
                "the small file is there, whatever proved it"
            );
            assert_eq!(report.resumed_bytes, BYTES as u64 - sent);
        }
    }
}

#[test]
fn a_file_done_under_another_sum_is_present_and_has_no_sum() {
    for (before, now, has_sum) in [
        (Hash::Xxh3, Hash::Xxh3, true),
        (Hash::Xxh3, Hash::Blake3, false),
        (Hash::Blake3, Hash::Xxh3, false),
        (Hash::Blake3, Hash::None, false),
        (Hash::None, Hash::Xxh3, false),
    ] {
        let place = tempfile::tempdir().unwrap();
        // Where times tell nothing the journal alone knows whose file it is.
        let spec = CopySpec {
            times: false,
            ..spec(place.path())
        };
        cut_session(&with_hash(&spec, before), &content(BYTES, 5), &[0]);
        let mut session = start(&with_hash(&spec, now)).unwrap();
        let small = session.announce_file(b"small", b"abc");
        let sum = has_sum.then(|| content_sum(session.kind, b"abc"));
        assert_eq!(
            session.wants(small),
            Wants::Present(sum),
            "{before:?}, then {now:?}"
        );
        session.cut();
    }
}

#[test]
fn what_a_session_of_another_sum_gave_back_is_not_believed_by_a_third() {
    let all = content(BYTES, 5);
    for first in HASHES {
        for second in HASHES {
            let place = tempfile::tempdir_in("/dev/shm").unwrap();
            let spec = spec(place.path());
            cut_session(&with_hash(&spec, first), &all, &[0, 1, 2, 3]);
            // It breaks off before it has all of that again, and gives back the room of what it does not believe.
            cut_again(&with_hash(&spec, second), &all, 5);
            resumed_session(&with_hash(&spec, first), &all);
        }
    }
}

#[test]
fn a_copy_that_runs_keeps_a_second_of_its_key_out() {
    let place = tempfile::tempdir().unwrap();
    let spec = spec(place.path());
    let first = start(&spec).unwrap();
    let second = start(&spec).err().unwrap();
    assert_eq!(second.kind, FailureKind::Busy);
    assert!(second.retry_after_s.is_some());
    let mut other = spec.clone();
    other.sources = vec!["other/".to_owned()];
    start(&other).unwrap().finish();
    first.cut();
    start(&spec).unwrap().finish();
    assert!(
        listing(place.path()).is_empty(),
        "the last one out takes the folder with it"
    );
}

#[test]
fn nothing_is_left_of_partials_that_no_journal_knows() {
    let place = tempfile::tempdir().unwrap();
    let spec = spec(place.path());
    cut_session(&spec, &content(BYTES, 5), &[0]);
    let staging = staging_of(&spec);
    fs::write(staging.join("x-99.part"), b"junk").unwrap();
    // A folder that made way, not all of which could be deleted then.
    fs::create_dir_all(staging.join("98.new/inside")).unwrap();
    fs::write(staging.join("98.new/inside/file"), b"old").unwrap();
    start(&spec).unwrap().cut();
    assert!(!staging.join("x-99.part").exists() && !staging.join("98.new").exists());
}

#[test]
fn what_is_left_of_a_file_that_is_gone_goes_with_the_copy() {
    for place in places() {
        let spec = spec(place.path());
        cut_session(&spec, &content(BYTES, 5), &[0, 1]);
        let mut session = start(&spec).unwrap();
        let small = session.announce_file(b"small", b"abc");
        assert!(matches!(session.wants(small), Wants::Present(_)));
        let (problems, _) = session.finish();
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(listing(place.path()), ["small"]);
    }
}

#[test]
fn another_file_that_took_a_name_is_not_known_as_done() {
    for place in places() {
        let mut spec = spec(place.path());
        spec.times = false;
        let (small, large) = (content(3, 1), content(2 * CHUNK as usize, 2));
        let other = [vec![7; small.len()], vec![7; large.len()]];
        let mut session = start(&spec).unwrap();
        let files = [
            session.announce_file(b"small", &small),
            session.announce_file(b"large", &large),
        ];
        assert_eq!(session.wants(files[1]), Wants::All);
        session.chunk(0, files[1], &large, 0, false);
        // The journal knows the partial.
        while !fs::read(staging_of(&spec).join("journal")).is_ok_and(|journal| boundaries(&journal).len() > 2)
        {
            std::thread::yield_now();
        }
        fs::write(place.path().join("small"), &other[0]).unwrap();
        fs::write(place.path().join("large"), &other[1]).unwrap();
        session.pack(0, &[(files[0], &small)]);
        session.chunk(0, files[1], &large, CHUNK, false);
        session.settle(files[1], &large);
        for file in files {
            assert!(session.until_failed(file).contains("took its name"));
        }
        session.cut();
        let mut session = start(&spec).unwrap();
        for (name, content) in [(&b"small"[..], &small), (b"large", &large)] {
            let file = session.announce_file(name, content);
            assert!(matches!(session.wants(file), Wants::Refused(_)), "{file}");
        }
        session.finish();
        assert_eq!(fs::read(place.path().join("large")).unwrap(), other[1]);
    }
}

#[test]
fn a_copy_is_known_by_its_sources_rules_and_who_asks_and_not_by_its_list() {
    let spec = CopySpec {
        source_list: Some("/tmp/list-1".to_owned()),
        ..spec(Path::new("/d"))
    };
    let key = copy_key(&spec, "host");
    assert_ne!(copy_key(&spec, "tsoh"), key);
    let change = |change: &dyn Fn(&mut CopySpec)| {
        let mut spec = spec.clone();
        change(&mut spec);
        copy_key(&spec, "host")
    };
    assert_eq!(
        change(&|spec| spec.source_list = Some("/tmp/list-2".to_owned())),
        key
    );
    assert_eq!(change(&|spec| spec.destination = "/d/".to_owned()), key);
    for other in [
        change(&|spec| spec.destination = "/e".to_owned()),
        change(&|spec| spec.source_list = None),
        change(&|spec| spec.filters = vec!["- a".to_owned()]),
        change(&|spec| spec.sources.push("b".to_owned())),
        change(&|spec| spec.destination.push('x')),
    ] {
        assert_ne!(other, key);
    }
}

/// Where each record of a journal ends.
fn boundaries(journal: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    let mut at = 0;
    while let Some((_, length)) = record_at(&journal[at..]) {
        at += length;
        ends.push(at);
    }
    ends
}

/// Overwrites every chunk of the partial that the sound start of `journal` does not prove.
fn spoil_unproved(staging: &Path, journal: &[u8]) {
    let mut proved = Vec::new();
    let mut at = 0;
    while let Some((record, length)) = record_at(&journal[at..]) {
        at += length;
        if let Record::Part { offset, bytes, .. } = record {
            proved.push(offset..offset + bytes);
        }
    }
    let partial = fs::read_dir(staging).unwrap().map(|entry| entry.unwrap().path());
    let partial = partial
        .into_iter()
        .find(|path| path.extension().is_some_and(|end| end == "part"));
    let Some(partial) = partial else {
        return;
    };
    let mut all = fs::read(&partial).unwrap();
    for (place, byte) in all.iter_mut().enumerate() {
        if !proved.iter().any(|part| part.contains(&(place as u64))) {
            *byte = 0xee;
        }
    }
    fs::write(partial, all).unwrap();
}

/// The copy as it is on the disk after `which` chunks, and its journal.
fn snapshot(spec: &CopySpec, all: &[u8], which: &[u64]) -> Vec<u8> {
    cut_session(spec, all, which);
    fs::read(staging_of(spec).join("journal")).unwrap()
}

#[test]
fn a_journal_cut_after_any_record_makes_a_whole_file() {
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let all = content(BYTES, 6);
    let mut place = 0;
    loop {
        let mut spec = spec(memory.path());
        spec.destination += &format!("/{place}");
        fs::create_dir(&spec.destination).unwrap();
        let journal = snapshot(&spec, &all, &[0, 2, 1, 8]);
        let ends = boundaries(&journal);
        assert!(ends.len() > 6 && *ends.last().unwrap() == journal.len());
        let Some(&end) = ends.get(place) else {
            break;
        };
        fs::write(staging_of(&spec).join("journal"), &journal[..end]).unwrap();
        spoil_unproved(&staging_of(&spec), &journal[..end]);
        resumed_session(&spec, &all);
        place += 1;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_journal_with_any_damage_makes_a_whole_file(
        which in prop::collection::btree_set(0u64..9, 0..9),
        hashes in [prop::sample::select(&HASHES), prop::sample::select(&HASHES[..2])],
        at in any::<prop::sample::Index>(),
        flips in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let spec = with_hash(&spec(memory.path()), hashes[0]);
        let all = content(BYTES, seed);
        let which: Vec<u64> = which.into_iter().collect();
        let mut journal = snapshot(&spec, &all, &which);
        let at = at.index(journal.len());
        if flips {
            journal[at] ^= 0x10;
        } else {
            journal.truncate(at);
        }
        fs::write(staging_of(&spec).join("journal"), &journal).unwrap();
        spoil_unproved(&staging_of(&spec), &journal);
        resumed_session(&with_hash(&spec, hashes[1]), &all);
    }
}
