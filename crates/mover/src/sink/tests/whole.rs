//! What arrives is what was sent, or it has no name.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use farline_spec::unit::ThreadCount;
use farline_spec::{FileEngine, Hash, Verify};

use super::*;

#[test]
fn a_tree_arrives_with_its_modes_and_times_and_nothing_else_stays() {
    for place in places() {
        let destination = place.path().join("new");
        let mut session = start(&spec(&destination)).unwrap();
        assert!(session.fresh);
        session.announce(b"d", EntryKind::Folder);
        let small = session.announce_file(b"d/small", b"abc");
        let empty = session.announce_file(b"d/empty", b"");
        let large_content = content(3 * CHUNK as usize + 5, 1);
        let large = session.announce_file(b"large", &large_content);
        session.announce(
            b"link",
            EntryKind::Link {
                target: b"/nowhere\xff".to_vec(),
            },
        );
        session.pack(0, &[(small, b"abc")]);
        send_wanted(&mut session, large, &large_content);
        assert_eq!(
            session.until_done(large),
            Some(content_sum(session.kind, &large_content))
        );
        session.until_done(small);
        assert_eq!(session.wants(empty), Wants::Made);
        let (problems, report) = session.finish();
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(listing(&destination), ["d", "large", "link"]);
        assert_eq!(listing(&destination.join("d")), ["empty", "small"]);
        assert_eq!(fs::read(destination.join("large")).unwrap(), large_content);
        assert_eq!(fs::read(destination.join("d/small")).unwrap(), b"abc");
        for (name, mode) in [
            ("d", 0o750),
            ("d/small", 0o640),
            ("large", 0o640),
            ("d/empty", 0o640),
        ] {
            let facts = fs::metadata(destination.join(name)).unwrap();
            assert_eq!(facts.permissions().mode() & 0o7777, mode, "{name}");
            let mtime_ns = facts.mtime() * 1_000_000_000 + facts.mtime_nsec();
            assert_eq!(mtime_ns, MTIME_NS, "{name}");
        }
        assert_eq!((report.copied.files, report.made, report.failed.files), (3, 2, 0));
        assert_eq!(report.copied.bytes, large_content.len() as u64 + 3);
    }
}

#[test]
fn chunks_come_in_any_order_over_any_stream_and_more_than_once() {
    let ways = [
        (FileEngine::Auto, Some(2)),
        (FileEngine::Buffered, Some(0)),
        (FileEngine::Buffered, None),
    ];
    let places = places();
    for (place, (engine, writers)) in places.iter().cycle().zip(ways) {
        let name = format!("new by {writers:?}");
        let mut spec = spec(&place.path().join(&name));
        spec.write_engine = engine;
        spec.writers = writers.map(|writers| ThreadCount::new(writers).unwrap());
        spec.verify = Verify::ReadBack;
        let mut session = start(&spec).unwrap();
        let all = content(10 * CHUNK as usize + 1, 2);
        let file = session.announce_file(b"a", &all);
        session.settle(file, &all);
        let offsets: Vec<u64> = offsets(&all).collect();
        for (place, &offset) in offsets.iter().enumerate().rev() {
            session.chunk(place % 2, file, &all, offset, false);
            session.chunk(1, file, &all, offset, false);
        }
        session.until_done(file);
        session.finish();
        assert_eq!(fs::read(place.path().join(name).join("a")).unwrap(), all);
    }
}

#[test]
fn a_file_that_several_streams_bring_is_written_by_one_thread_for_all_of_them() {
    for place in places() {
        let all = content(40 * CHUNK as usize + 1, 2);
        for is_cut in [true, false] {
            let destination = place.path().join(format!("new {is_cut}"));
            let mut spec = spec(&destination);
            spec.write_engine = FileEngine::Buffered;
            let mut session = start(&spec).unwrap();
            let file = session.announce_file(b"a", &all);
            session.chunk(0, file, &all, 0, false);
            session.share(file);
            for (turn, offset) in offsets(&all).skip(1).enumerate() {
                session.chunk(turn % 2, file, &all, offset, false);
            }
            if is_cut {
                assert!(!session.cut().is_empty());
                assert!(!destination.join("a").exists());
                continue;
            }
            session.settle(file, &all);
            session.until_done(file);
            let inner = Arc::clone(&session.end.inner);
            let (problems, report) = session.finish();
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(report.receiver.threads as usize, 1 + inner.hands.helpers);
            assert!(inner.hands.line.as_ref().unwrap().handed_bytes() > 0);
            assert_eq!(fs::read(destination.join("a")).unwrap(), all);
        }
    }
}

#[test]
fn a_chunk_that_came_damaged_is_asked_for_again_and_its_file_given_up_at_the_fourth_time() {
    for place in places() {
        let mut session = start(&spec(&place.path().join("new"))).unwrap();
        let all = content(2 * CHUNK as usize, 3);
        let good = session.announce_file(b"good", &all);
        let bad = session.announce_file(b"bad", &all);
        let small = session.announce_file(b"small", b"abc");
        session.chunk(0, good, &all, 0, false);
        session.chunk(0, good, &all, CHUNK, true);
        session.until(|said| {
            *said
                == Feedback::Again {
                    file: good,
                    offset: CHUNK,
                    bytes: CHUNK,
                }
        });
        session.chunk(0, good, &all, CHUNK, false);
        session.settle(good, &all);
        session.until_done(good);
        for _ in 0..4 {
            session.chunk(1, bad, &all, 0, true);
        }
        assert!(session.until_failed(bad).contains("corrupted"));
        let mut payload = vec![0; pack::ITEM_HEADER_BYTES + 3];
        let other = content_sum(session.kind, b"other");
        pack::write_item_header(&mut payload, small, 3, Some(other));
        session.frame(0, Header::of_messages(FrameKind::Pack), &payload);
        session.until(|said| {
            *said
                == Feedback::Again {
                    file: small,
                    offset: 0,
                    bytes: 3,
                }
        });
        session.pack(0, &[(small, b"abc")]);
        session.until_done(small);
        let (_, report) = session.finish();
        assert_eq!(listing(&place.path().join("new")), ["good", "small"]);
        assert_eq!((report.repeated_chunks, report.failed.files), (6, 1));
    }
}

#[test]
fn parts_that_do_not_make_the_senders_file_get_no_name() {
    let place = tempfile::tempdir().unwrap();
    let mut session = start(&spec(&place.path().join("new"))).unwrap();
    let all = content(2 * CHUNK as usize, 3);
    let file = session.announce_file(b"a", &all);
    session.chunk(0, file, &all, 0, false);
    session.chunk(0, file, &all, CHUNK, false);
    session.settle(file, b"another file");
    session.until_failed(file);
    session.finish();
    assert!(listing(&place.path().join("new")).is_empty());
}

#[test]
fn a_hole_does_not_take_what_came_as_data() {
    let place = tempfile::tempdir().unwrap();
    let mut session = start(&spec(&place.path().join("new"))).unwrap();
    let mut all = content(2 * CHUNK as usize, 4);
    all[CHUNK as usize..].fill(0);
    let file = session.announce_file(b"a", &all);
    session.chunk(0, file, &all, 0, false);
    while session.gauges.settled_bytes.get() < CHUNK {
        std::thread::yield_now();
    }
    let (offset, bytes) = (0, 2 * CHUNK);
    session.say(&Catalogue::Hole { file, offset, bytes });
    session.settle(file, &all);
    session.until_done(file);
    session.finish();
    assert!(fs::read(place.path().join("new/a")).unwrap() == all);
}

#[test]
fn holes_are_not_sent_and_stay_holes() {
    let place = tempfile::tempdir().unwrap();
    let mut session = start(&spec(&place.path().join("new"))).unwrap();
    let mut all = vec![0; 64 * CHUNK as usize];
    all[..CHUNK as usize].copy_from_slice(&content(CHUNK as usize, 4));
    let file = session.announce_file(b"a", &all);
    session.chunk(0, file, &all, 0, false);
    session.say(&Catalogue::Hole {
        file,
        offset: CHUNK,
        bytes: 63 * CHUNK,
    });
    session.settle(file, &all);
    session.until_done(file);
    let (_, report) = session.finish();
    assert_eq!(report.hole_bytes, 63 * CHUNK);
    let path = place.path().join("new/a");
    assert_eq!(fs::read(&path).unwrap(), all);
    assert!(fs::metadata(&path).unwrap().blocks() * 512 < 4 * CHUNK);
}

#[test]
fn what_the_sender_gave_up_leaves_nothing_and_may_come_again() {
    for place in places() {
        let mut session = start(&spec(&place.path().join("new"))).unwrap();
        let all = content(2 * CHUNK as usize, 3);
        let first = session.announce_file(b"a", &all);
        session.chunk(0, first, &all, 0, false);
        let gone = session.announce_file(b"b", &all);
        for (file, again) in [(first, true), (gone, false)] {
            let reason = "changed".to_owned();
            session.say(&Catalogue::Lost { file, reason, again });
        }
        let second = session.announce_file(b"a", &all);
        session.chunk(0, first, &all, CHUNK, false);
        send_wanted(&mut session, second, &all);
        session.until_done(second);
        let (_, report) = session.finish();
        assert_eq!(listing(&place.path().join("new")), ["a"]);
        assert_eq!((report.copied.files, report.failed.files), (1, 1));
    }
}

#[test]
fn without_hashes_what_comes_is_written_as_it_comes() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.verify = Verify::None;
    let mut session = start(&spec).unwrap();
    let all = content(CHUNK as usize + 9, 3);
    let file = session.announce_file(b"a", &all);
    for offset in offsets(&all) {
        session.chunk(0, file, &all, offset, false);
    }
    session.say(&Catalogue::Settled { file, hash: None });
    assert_eq!(session.until_done(file), None);
    session.finish();
    assert_eq!(fs::read(place.path().join("new/a")).unwrap(), all);
}

#[test]
fn null_and_memory_engines_check_everything_and_make_nothing() {
    for engine in [FileEngine::Null, FileEngine::Memory] {
        for writers in [0, 1] {
            let place = tempfile::tempdir().unwrap();
            let mut spec = spec(&place.path().join("new"));
            spec.write_engine = engine;
            spec.writers = Some(ThreadCount::new(writers).unwrap());
            let mut session = start(&spec).unwrap();
            session.announce(b"d", EntryKind::Folder);
            let all = content(3 * CHUNK as usize, 3);
            let large = session.announce_file(b"d/a", &all);
            let small = session.announce_file(b"d/b", b"abc");
            session.pack(0, &[(small, b"abc")]);
            session.chunk(0, large, &all, 0, true);
            session.until(|said| {
                *said
                    == Feedback::Again {
                        file: large,
                        offset: 0,
                        bytes: CHUNK,
                    }
            });
            send_wanted(&mut session, large, &all);
            session.until_done(large);
            let (_, report) = session.finish();
            assert!(listing(place.path()).is_empty());
            assert_eq!(
                (report.receiver.engine.as_str(), report.copied.files),
                (engine.word(), 2)
            );
        }
    }
}

#[test]
fn a_receipt_has_a_line_for_every_name() {
    let place = tempfile::tempdir().unwrap();
    let receipt = place.path().join("receipt");
    let mut session = start_with(&spec(&place.path().join("new")), 1, Some(receipt.clone())).unwrap();
    let file = session.announce_file(b"a\n", b"abc");
    session.announce(b".farline-partial", EntryKind::Folder);
    session.pack(0, &[(file, b"abc")]);
    session.until_done(file);
    session.finish();
    let text = fs::read_to_string(receipt).unwrap();
    let mut lines: Vec<farline_spec::ReceiptLine> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    lines.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].status, farline_spec::FileStatus::Failed);
    assert_eq!(lines[1].path, "a\\x0a");
    // `xxhsum -H128` of the same bytes.
    assert_eq!(
        lines[1].xxh3_tree.as_deref(),
        Some("06b05ab6733a618578af5f94892f3950")
    );
    assert_eq!(lines[1].blake3, None);
}

#[test]
fn a_chunk_or_a_file_that_is_not_what_its_sum_says_is_asked_for_again_whatever_the_sum() {
    for hash in [Hash::Xxh3, Hash::Blake3] {
        let place = tempfile::tempdir().unwrap();
        let spec = CopySpec {
            hash,
            ..spec(place.path())
        };
        let all = content(2 * CHUNK as usize + 5, 7);
        let mut session = start(&spec).unwrap();
        let (small, large) = (
            session.announce_file(b"small", b"abc"),
            session.announce_file(b"large", &all),
        );
        let mut payload = vec![0; pack::ITEM_HEADER_BYTES];
        pack::write_item_header(&mut payload, small, 3, Some(content_sum(session.kind, b"abc")));
        payload.extend_from_slice(b"abd");
        session.frame(0, Header::of_messages(FrameKind::Pack), &payload);
        session.chunk(0, large, &all, CHUNK, true);
        for (file, offset, bytes) in [(small, 0, 3), (large, CHUNK, CHUNK)] {
            let again = Feedback::Again { file, offset, bytes };
            session.until(|said| *said == again);
        }
        session.pack(0, &[(small, b"abc")]);
        send_wanted(&mut session, large, &all);
        for (file, whole) in [(small, &b"abc"[..]), (large, &all)] {
            assert_eq!(session.until_done(file), Some(content_sum(session.kind, whole)));
        }
        let (problems, report) = session.finish();
        assert!(problems.is_empty() && report.repeated_chunks == 2, "{problems:?}");
    }
}

#[test]
fn a_sum_of_another_kind_than_was_agreed_on_ends_the_copy() {
    for (agreed, sent) in [(Hash::Xxh3, SumKind::Blake3), (Hash::Blake3, SumKind::Xxh3)] {
        let place = tempfile::tempdir().unwrap();
        let spec = CopySpec {
            hash: agreed,
            ..spec(place.path())
        };
        let mut session = start(&spec).unwrap();
        session.kind = sent;
        let file = session.announce_file(b"a", b"abc");
        session.pack(0, &[(file, b"abc")]);
        let failures = session.failures();
        let is_named = |why: &Failure| {
            why.kind == FailureKind::Protocol && why.message.contains("of another kind than the agreed")
        };
        assert!(failures.iter().any(is_named), "{failures:?}");
    }
}

#[test]
fn how_much_there_is_is_known_as_soon_as_it_was_said_and_a_further_try_does_not_count() {
    let place = tempfile::tempdir().unwrap();
    let mut session = start(&spec(&place.path().join("new"))).unwrap();
    let file = session.announce_file(b"a", b"abc");
    session.say(&Catalogue::AllAnnounced);
    session.say(&Catalogue::Lost {
        file,
        reason: "changed while it was read".to_owned(),
        again: true,
    });
    let again = session.announce_file(b"a", b"abcd");
    assert_eq!(session.wants(again), Wants::All);
    let progress = session.end.progress();
    assert!(progress.all_found);
    assert_eq!((progress.found_files, progress.found_bytes), (1, 4));
    session.pack(0, &[(again, b"abcd")]);
    session.until_done(again);
    session.finish();
}
