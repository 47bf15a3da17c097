//! The sending end by itself: what it finds, says and sends, and what it makes of another end that is wrong or hostile.

mod common;

use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use common::taker::{Manner, Outcome, assert_all_came, copy, take_from};
use common::{setup, sources, spec, straight, tree, with_chunk};
use farline_mover::message::{self, EntryKind, Proved, Wants};
use farline_mover::sum::{chunk_sum, content_sum};
use farline_mover::{EndSetup, SendEnd};
use farline_spec::unit::ThreadCount;
use farline_spec::{CopySpec, FailureKind, FileStatus, SumKind, SymbolicLinks};

/// What a copy is proved with unless it says otherwise.
const KIND: SumKind = SumKind::Xxh3;

/// Files of all sizes around the limits of chunks and packs, and names of any bytes.
fn variety(top: &Path) {
    let sizes = [
        0, 1, 1023, 1024, 65_535, 65_536, 65_537, 262_095, 262_096, 262_097, 262_144, 524_288, 700_001,
        3_000_000,
    ];
    for (seed, bytes) in (1..).zip(sizes) {
        tree::put(top, format!("sizes/{bytes}"), &tree::content(bytes, seed));
    }
    for name in [
        &b"a b"[..],
        b"new\nline",
        b"\xff\xfe",
        b"back\\slash",
        "\u{fc}ml".as_bytes(),
    ] {
        tree::put(
            top,
            Path::new("names").join(std::ffi::OsStr::from_bytes(name)),
            name,
        );
    }
    fs::create_dir_all(top.join("empty/inner")).unwrap();
    symlink("../somewhere", top.join("names/link")).unwrap();
    for number in 0..300 {
        tree::put(
            top,
            format!("many/{}/{number}", number % 7),
            &tree::content(number * 17, number as u64),
        );
    }
    tree::dress(&top.join("sizes/1"), 0o4751, 1_000_000_000, 123_456_789);
    tree::dress(&top.join("empty"), 0o700, 7, 9);
}

#[test]
fn a_tree_arrives_byte_for_byte_whatever_reads_it() {
    let top = tempfile::tempdir().unwrap();
    variety(top.path());
    for (streams, readers, chunk) in [(1, 0, 65_536), (2, 0, 262_144), (3, 2, 65_536), (4, 1, 1 << 20)] {
        for is_fresh in [true, false] {
            let mut spec = with_chunk(spec(format!("{}/", top.path().display()), "/d"), chunk);
            spec.readers = Some(ThreadCount::new(readers).unwrap());
            let manner = Manner {
                is_fresh,
                ..Manner::default()
            };
            let outcome = copy(&spec, streams, manner);
            assert_all_came(top.path(), b"", &outcome);
            let report = &outcome.sent.report;
            assert_eq!(report.found.files, outcome.taken.len() as u64);
            assert_eq!(report.copied.files, 14 + 5 + 300);
            assert_eq!(report.made, 5 + 7 + 1, "folders and the link");
            assert_eq!(outcome.end.unwrap(), (report.found.files, true));
        }
    }
}

#[test]
fn a_folder_comes_before_what_is_in_it_and_its_name_goes_along_without_a_slash() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "data/a/b/c", b"x");
    let outcome = copy(&spec(top.path().join("data"), "/d"), 1, Manner::default());
    assert_all_came(&top.path().join("data"), b"data/", &outcome);
    let kind = &outcome.taken[&b"data"[..]].entry.kind;
    assert_eq!(*kind, EntryKind::Folder);
}

fn paths(outcome: &Outcome) -> Vec<String> {
    let text = |path: &Vec<u8>| String::from_utf8_lossy(path).into_owned();
    outcome.taken.keys().map(text).collect()
}

#[test]
fn of_two_sources_with_one_name_the_first_is_taken_and_the_second_named() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "one/x/same", b"first");
    tree::put(top.path(), "two/x/same", b"second");
    tree::put(top.path(), "two/x/other", b"third");
    let outcome = copy(
        &sources(top.path(), &["one/", "two/", "two/x/other"]),
        2,
        Manner::default(),
    );
    assert_eq!(paths(&outcome), ["other", "x", "x/other", "x/same"]);
    assert_eq!(outcome.taken[&b"x/same"[..]].content(), b"first");
    let failures = &outcome.sent.report.failures;
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].path, "x/same");
    assert_eq!(outcome.sent.report.found.files, 5);
}

#[test]
fn a_source_that_is_not_there_fails_by_name_and_forbids_deletion() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "there", b"x");
    let outcome = copy(&sources(top.path(), &["missing", "there"]), 1, Manner::default());
    assert_eq!(paths(&outcome), ["there"]);
    assert_eq!(outcome.end, Some((1, false)));
    assert_eq!(outcome.sent.report.failed.files, 1);
    let nothing = farline_mover::SendEnd::start(common::setup(&sources(top.path(), &["missing"]), 1, None));
    let failure = nothing.unwrap_err();
    assert!(
        failure.message.ends_with("missing: no such file or folder"),
        "{failure}"
    );
    assert_eq!(failure.kind, farline_spec::FailureKind::Usage);
}

#[test]
fn names_that_rules_leave_out_are_not_found() {
    let top = tempfile::tempdir().unwrap();
    for path in [
        "a/keep.txt",
        "a/drop.bin",
        "b/keep.txt",
        "skip/deep/keep.txt",
        ".farline-partial/x",
    ] {
        tree::put(top.path(), path, b"x");
    }
    let mut spec = sources(top.path(), &[""]);
    spec.filters = vec!["- /skip/".into(), "+ */".into(), "+ *.txt".into(), "- *".into()];
    let outcome = copy(&spec, 1, Manner::default());
    assert_eq!(paths(&outcome), ["a", "a/keep.txt", "b", "b/keep.txt"]);
    assert_eq!(outcome.sent.report.skipped.files, 1);
}

#[test]
fn without_recursion_a_folder_fails_by_name() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "folder/x", b"x");
    tree::put(top.path(), "file", b"x");
    let mut spec = sources(top.path(), &["folder", "file"]);
    spec.recursive = false;
    let outcome = copy(&spec, 1, Manner::default());
    assert_eq!(paths(&outcome), ["file"]);
    assert_eq!(outcome.sent.report.failures[0].path, "folder");
}

#[test]
fn a_list_names_what_is_taken_and_the_folders_above() {
    let top = tempfile::tempdir().unwrap();
    for path in ["s/a/b/c", "s/a/b/d", "s/e/f", "s/g"] {
        tree::put(top.path(), path, path.as_bytes());
    }
    let list = top.path().join("list");
    fs::write(&list, "a/b/c\n/./g\ne\na/b/c\nmissing\n../out\n").unwrap();
    let mut spec = sources(top.path(), &["s"]);
    spec.source_list = Some(list.to_str().unwrap().to_owned());
    let outcome = copy(&spec, 1, Manner::default());
    assert_eq!(paths(&outcome), ["a", "a/b", "a/b/c", "e", "e/f", "g"]);
    let failures: Vec<_> = outcome
        .sent
        .report
        .failures
        .iter()
        .map(|line| &line.path)
        .collect();
    assert_eq!(failures, ["missing", "../out"]);
    assert_eq!(outcome.sent.report.found.files, 8);
}

#[test]
fn links_are_kept_followed_or_left_out() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "s/inner/file", b"in");
    tree::put(top.path(), "outer/file", b"out");
    symlink("../outer", top.path().join("s/out")).unwrap();
    symlink("..", top.path().join("s/inner/up")).unwrap();
    symlink("nothing", top.path().join("s/broken")).unwrap();
    let run = |links| {
        copy(
            &CopySpec {
                links,
                ..sources(top.path(), &["s/"])
            },
            1,
            Manner::default(),
        )
    };
    let kept = run(SymbolicLinks::Keep);
    assert_eq!(paths(&kept), ["broken", "inner", "inner/file", "inner/up", "out"]);
    let skipped = run(SymbolicLinks::Skip);
    assert_eq!(paths(&skipped), ["inner", "inner/file"]);
    assert_eq!(skipped.sent.report.skipped.files, 3);
    let followed = run(SymbolicLinks::Follow);
    assert_eq!(
        paths(&followed),
        ["inner", "inner/file", "inner/up", "out", "out/file"]
    );
    assert_eq!(followed.taken[&b"out/file"[..]].content(), b"out");
    let reasons: Vec<_> = followed
        .sent
        .report
        .failures
        .iter()
        .map(|line| line.reason.clone().unwrap())
        .collect();
    assert_eq!(
        reasons,
        ["is a dangling link", "is a link to one of its parent folders"]
    );
}

#[test]
fn what_is_left_out_or_cannot_be_read_is_said_to_the_other_end() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "s/inner/file", b"in");
    tree::put(
        top.path(),
        "s/left.out",
        b"by a rule, which the other end has too",
    );
    symlink("file", top.path().join("s/inner/link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(top.path().join("s/socket")).unwrap();
    tree::put(top.path(), "t/socket", b"a file of the same name, which comes");
    tree::put(top.path(), "t/inner/file", b"a second of this name");
    let spec = CopySpec {
        links: SymbolicLinks::Skip,
        filters: vec!["- *.out".to_owned()],
        ..sources(top.path(), &["s/", "t/", "missing"])
    };
    let mut outcome = copy(&spec, 1, Manner::default());
    outcome.sent.outcome.unwrap();
    outcome.unannounced.sort_by(|one, other| one.0.cmp(&other.0));
    let missing = top.path().join("missing");
    let expected = [
        (missing.as_os_str().as_bytes(), FileStatus::Failed),
        (b"inner/file", FileStatus::Failed),
        (b"inner/link", FileStatus::Skipped),
        (b"socket", FileStatus::Skipped),
    ];
    let said = outcome
        .unannounced
        .iter()
        .map(|(path, status)| (path.as_slice(), *status));
    assert_eq!(said.collect::<Vec<_>>(), expected);
    assert_eq!(outcome.end, Some((3, false)));
}

#[test]
fn attributes_go_along_but_for_those_that_are_the_machines_own() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "s/file", b"in");
    let file = fs::File::open(top.path().join("s/file")).unwrap();
    farline_sys::file::set_xattr(file.as_fd(), b"user.a", b"1").unwrap();
    // Only the superuser may.
    let _ = farline_sys::file::set_xattr(file.as_fd(), b"trusted.b", b"2");
    let spec = CopySpec {
        xattrs: true,
        ..sources(top.path(), &["s/"])
    };
    let outcome = copy(&spec, 1, Manner::default());
    let xattrs = &outcome.taken[&b"file"[..]].entry.xattrs;
    let names: Vec<_> = xattrs.iter().map(|xattr| xattr.name.as_slice()).collect();
    assert_eq!(names, [b"user.a"]);
}

#[test]
fn names_of_one_file_are_said_to_be_that() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "s/a", b"content");
    fs::hard_link(top.path().join("s/a"), top.path().join("s/b")).unwrap();
    fs::hard_link(top.path().join("s/a"), top.path().join("s/c")).unwrap();
    let mut spec = sources(top.path(), &["s/"]);
    spec.hard_links = true;
    let outcome = copy(&spec, 1, Manner::default());
    let links = outcome
        .taken
        .values()
        .filter(|taken| taken.entry.kind == EntryKind::HardLink { to: 0 });
    assert_eq!(links.count(), 2);
    let report = &outcome.sent.report;
    assert_eq!((report.copied.files, report.made), (1, 2));
}

#[test]
fn holes_are_said_and_not_sent() {
    let top = tempfile::tempdir().unwrap();
    let file = fs::File::create(top.path().join("sparse")).unwrap();
    file.set_len(10 << 20).unwrap();
    file.write_all_at(&[7; 100], 3 << 20).unwrap();
    file.write_all_at(&[9; 100], 8_000_000).unwrap();
    let outcome = copy(
        &with_chunk(sources(top.path(), &["sparse"]), 1 << 20),
        2,
        Manner::default(),
    );
    assert_all_came(top.path(), b"", &outcome);
    let cut = message::GRAIN_BYTES;
    assert_eq!(outcome.sent.report.hole_bytes, (10 << 20) - 2 * cut);
    let file_bytes: u64 = outcome.taken[&b"sparse"[..]]
        .parts
        .values()
        .map(|part| part.len() as u64)
        .sum();
    assert_eq!(file_bytes, 2 * cut);
    let mut dense = sources(top.path(), &["sparse"]);
    dense.sparse = false;
    let outcome = copy(&dense, 1, Manner::default());
    assert_all_came(top.path(), b"", &outcome);
    assert_eq!(outcome.sent.report.hole_bytes, 0);
}

#[test]
fn what_was_proved_is_not_sent_again_and_the_hash_is_of_the_whole() {
    let top = tempfile::tempdir().unwrap();
    let content = tree::content(5_000_001, 3);
    tree::put(top.path(), "file", &content);
    let chunk = 1 << 20;
    let proved = [(0, 2 << 20), (3 << 20, 1 << 20)].map(|(offset, bytes)| Proved {
        offset: offset as u64,
        bytes: bytes as u64,
        hash: Some(chunk_sum(
            KIND,
            offset as u64,
            &content[offset..offset + bytes],
            false,
        )),
    });
    let manner = Manner {
        is_fresh: false,
        wants: Box::new(move |_, _| Wants::Rest(proved.to_vec())),
        ..Manner::default()
    };
    let outcome = copy(&with_chunk(sources(top.path(), &["file"]), chunk), 2, manner);
    outcome.sent.outcome.unwrap();
    let taken = &outcome.taken[&b"file"[..]];
    assert_eq!(
        taken.parts.keys().copied().collect::<Vec<_>>(),
        [2 << 20, 4 << 20]
    );
    assert_eq!(taken.hash, Some(content_sum(KIND, &content)));
    assert_eq!(outcome.sent.report.resumed_bytes, 3 << 20);
}

#[test]
fn a_destination_said_to_be_vacant_gets_everything_before_it_has_spoken_and_may_have_changed_its_mind() {
    let top = tempfile::tempdir().unwrap();
    let content = tree::content(5_000_001, 3);
    tree::put(top.path(), "large", &content);
    tree::put(top.path(), "small", b"small");
    let spec = with_chunk(sources(top.path(), &["large", "small"]), 1 << 20);
    for is_fresh in [true, false] {
        let end = SendEnd::start(EndSetup {
            is_vacant: true,
            ..setup(&spec, 2, None)
        });
        let hash = chunk_sum(KIND, 0, &content[..1 << 20], false);
        let proved = Proved {
            offset: 0,
            bytes: 1 << 20,
            hash: Some(hash),
        };
        let outcome = take_from(
            &end.unwrap(),
            2,
            Manner {
                is_fresh,
                is_late: true,
                // What came there meanwhile spares nothing any more.
                wants: Box::new(move |_, entry| match !is_fresh && entry.path == b"large" {
                    true => Wants::Rest(vec![proved]),
                    false => Wants::All,
                }),
                ..Manner::default()
            },
        );
        outcome.sent.outcome.unwrap();
        for (path, whole) in [(&b"large"[..], &content[..]), (b"small", b"small")] {
            let taken = &outcome.taken[path];
            assert!(taken.parts.values().flatten().eq(whole), "{is_fresh}");
            assert_eq!(taken.hash, Some(content_sum(KIND, whole)));
        }
    }
}

#[test]
fn a_file_that_changes_is_sent_as_it_is_then_or_fails_by_name() {
    let top = tempfile::tempdir().unwrap();
    for name in ["small", "large"] {
        tree::put(
            top.path(),
            name,
            &tree::content(if name == "small" { 100 } else { 3_000_000 }, 1),
        );
    }
    for (restless, is_read) in [(1_u64, true), (100, true), (1, false), (100, false)] {
        let folder = top.path().to_path_buf();
        let times = AtomicU64::new(0);
        let manner = Manner {
            is_fresh: false,
            // What is announced changes before its content is asked for.
            wants: Box::new(move |_, entry| {
                let path = folder.join(std::ffi::OsStr::from_bytes(&entry.path));
                if times.fetch_add(1, Ordering::Relaxed) < 2 * restless {
                    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
                    file.write_all(b"more").unwrap();
                }
                Wants::All
            }),
            ..Manner::default()
        };
        let spec = sources(top.path(), &["small", "large"]);
        let spec = if is_read { spec } else { straight(spec) };
        let outcome = copy(&spec, 2, manner);
        let report = &outcome.sent.report;
        assert_eq!(
            outcome.lost.iter().filter(|(_, _, again)| *again).count(),
            if restless == 1 { 2 } else { 4 }
        );
        if restless == 1 {
            assert_all_came(top.path(), b"", &outcome);
            assert_eq!((report.copied.files, report.failed.files), (2, 0));
        } else {
            assert_eq!((report.copied.files, report.failed.files), (0, 2));
            assert!(
                report.failures[0]
                    .reason
                    .as_ref()
                    .unwrap()
                    .starts_with("changed while it was read")
            );
        }
        assert_eq!(report.found.files, 2);
    }
}

#[test]
fn a_file_that_vanishes_or_may_not_be_read_fails_by_name_and_the_others_come() {
    let top = tempfile::tempdir().unwrap();
    for name in ["gone", "stays", "folder"] {
        tree::put(top.path(), name, &tree::content(400_000, 1));
    }
    let folder = top.path().to_path_buf();
    let manner = Manner {
        is_fresh: false,
        wants: Box::new(move |_, entry| {
            let path = folder.join(std::ffi::OsStr::from_bytes(&entry.path));
            if entry.path == b"gone" {
                fs::remove_file(path).unwrap();
            } else if entry.path == b"folder" {
                fs::remove_file(&path).unwrap();
                fs::create_dir(path).unwrap();
            }
            Wants::All
        }),
        ..Manner::default()
    };
    let outcome = copy(&sources(top.path(), &[""]), 2, manner);
    outcome.sent.outcome.unwrap();
    let mut failed: Vec<_> = outcome
        .sent
        .report
        .failures
        .iter()
        .map(|line| (line.path.as_str(), line.reason.clone().unwrap()))
        .collect();
    failed.sort();
    assert_eq!(failed[0], ("folder", "is no longer a file".to_owned()));
    assert_eq!(failed[1], ("gone", "disappeared while it was copied".to_owned()));
    assert_eq!(outcome.sent.report.copied.files, 1);
}

#[test]
fn a_folder_that_vanishes_before_it_is_looked_into_fails_by_name_and_forbids_no_deletion() {
    let top = tempfile::tempdir().unwrap();
    // More names than fit between the walk and the other end, behind a folder that is looked into after them.
    for number in 0..12_000 {
        tree::put(top.path(), format!("{number:05}"), b"");
    }
    for name in ["+gone/inside", "+stays/inside", "00000"] {
        tree::put(top.path(), name, b"x");
    }
    let folder = top.path().join("+gone");
    let manner = Manner {
        is_fresh: false,
        wants: Box::new(move |_, entry| {
            if entry.path == b"00000" {
                fs::remove_dir_all(&folder).unwrap();
            }
            Wants::All
        }),
        ..Manner::default()
    };
    let outcome = copy(&sources(top.path(), &[""]), 1, manner);
    outcome.sent.outcome.as_ref().unwrap();
    let failures = outcome.sent.report.failures.iter();
    let lines: Vec<_> = failures
        .map(|line| (line.path.as_str(), line.reason.as_deref()))
        .collect();
    assert_eq!(lines, [("+gone", Some("disappeared while it was copied"))]);
    assert!(paths(&outcome).contains(&"+stays/inside".to_owned()));
    assert!(
        outcome.end.unwrap().1,
        "what the source has no more forbids no deletion"
    );
}

#[test]
fn a_chunk_that_came_damaged_is_sent_again_three_times() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "small", b"content");
    tree::put(top.path(), "large", &tree::content(1_000_000, 1));
    for (times, copied) in [(1_u64, 2), (3, 2), (4, 0)] {
        let spoilt = [AtomicU64::new(0), AtomicU64::new(0)];
        let manner = Manner {
            spoils: Box::new(move |file, offset| {
                offset == 0 && spoilt[file as usize].fetch_add(1, Ordering::Relaxed) < times
            }),
            ..Manner::default()
        };
        let outcome = copy(&sources(top.path(), &["small", "large"]), 2, manner);
        outcome.sent.outcome.unwrap();
        let report = &outcome.sent.report;
        assert_eq!((report.copied.files, report.failed.files), (copied, 2 - copied));
        assert_eq!(report.repeated_chunks, 2 * times.min(3));
    }
}

#[test]
fn a_dry_run_sends_nothing() {
    let top = tempfile::tempdir().unwrap();
    variety(top.path());
    let mut spec = sources(top.path(), &[""]);
    spec.dry_run = true;
    let manner = Manner {
        is_dry: true,
        ..Manner::default()
    };
    let outcome = copy(&spec, 2, manner);
    outcome.sent.outcome.unwrap();
    assert!(outcome.taken.values().all(|taken| taken.parts.is_empty()));
    let report = &outcome.sent.report;
    assert_eq!((report.copied.files, report.made), (319, 13));
}

#[test]
fn what_is_there_or_refused_is_not_sent() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "present", b"same");
    tree::put(top.path(), "refused", b"different");
    let manner = Manner {
        is_fresh: false,
        wants: Box::new(|_, entry| match &entry.path[..] {
            b"present" => Wants::Present(None),
            _ => Wants::Refused("exists\nand differs".into()),
        }),
        ..Manner::default()
    };
    let outcome = copy(&sources(top.path(), &[""]), 1, manner);
    outcome.sent.outcome.unwrap();
    let report = &outcome.sent.report;
    assert_eq!(
        (report.present.files, report.present.bytes, report.failed.files),
        (1, 4, 1)
    );
    assert_eq!(report.failures[0].reason.as_deref(), Some("exists and differs"));
}

#[test]
fn more_bytes_than_allowed_end_the_copy() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "file", &tree::content(2_000_000, 1));
    let mut setup = common::setup(&sources(top.path(), &["file"]), 1, None);
    setup.most_bytes = Some(1_000_000);
    let end = farline_mover::SendEnd::start(setup).unwrap();
    let outcome = common::taker::take_from(&end, 1, Manner::default());
    assert_eq!(outcome.sent.outcome.unwrap_err().kind, FailureKind::Limit);
}
