//! Both ends of a copy over links in memory: what a user can rely on whatever the link, the tree and the moment do.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::pair::{copy, copy_from};
use common::{Weather, setup, spec, straight, tree};
use farline_mover::EndSetup;
use farline_mover::message::GRAIN_BYTES;
use farline_spec::unit::{ChunkBytes, DeleteCount, ThreadCount};
use farline_spec::{CopySpec, SymbolicLinks, Verify};
use proptest::prelude::*;

/// Files of all sizes around the limits of chunks and packs, names of any bytes, empty, deep and many.
fn variety(top: &Path) {
    let sizes = [
        0, 1, 1023, 1024, 65_535, 65_536, 65_537, 262_096, 262_097, 262_144, 524_288, 700_001, 3_000_000,
    ];
    for (seed, bytes) in (1..).zip(sizes) {
        tree::put(top, format!("sizes/{bytes}"), &tree::content(bytes, seed));
    }
    for name in [
        &b"a b"[..],
        b"new\nline",
        b"\xff\xfe",
        b"back\\slash",
        b"-",
        b"...",
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
        let content = tree::content(number * 17, number as u64);
        tree::put(top, format!("many/{}/{number}", number % 7), &content);
    }
    tree::put(top, "d/".repeat(60) + "deep", b"deep");
    tree::dress(&top.join("sizes/1"), 0o751, 1_000_000_000, 123_456_789);
    tree::dress(&top.join("sizes/3000000"), 0o440, 1, 0);
    tree::dress(&top.join("empty"), 0o700, 7, 9);
}

fn content_of(folder: &Path) -> String {
    format!("{}/", folder.display())
}

fn tuned(spec: CopySpec, chunk: u64, readers: u16, writers: u16) -> CopySpec {
    CopySpec {
        chunk_bytes: Some(ChunkBytes::new(chunk).unwrap()),
        readers: Some(ThreadCount::new(readers).unwrap()),
        writers: Some(ThreadCount::new(writers).unwrap()),
        fsync: false,
        ..spec
    }
}

fn assert_alike(source: &Path, destination: &Path) {
    let (expected, found) = (tree::read(source), tree::read(destination));
    for (path, thing) in &expected {
        let name = path.escape_ascii();
        let other = found.get(path).unwrap_or_else(|| panic!("{name} is missing"));
        assert!(thing.content == other.content, "{name} differs");
        assert_eq!(
            (thing.kind, thing.mode, thing.mtime_ns),
            (other.kind, other.mode, other.mtime_ns),
            "{name}"
        );
    }
    assert_eq!(found.len(), expected.len(), "more than was sent");
}

#[test]
fn a_tree_arrives_whatever_reads_and_writes_it() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    variety(&source);
    for (streams, readers, writers, chunk) in [
        (1, 0, 0, 65_536),
        (2, 2, 2, 262_144),
        (3, 0, 2, 65_536),
        (4, 2, 0, 1 << 20),
    ] {
        let destination = top.path().join(format!("d{streams}"));
        let mut spec = tuned(spec(content_of(&source), &destination), chunk, readers, writers);
        if streams == 1 {
            // Left alone it may have help.
            (spec.readers, spec.writers) = (None, None);
        }
        let ended = copy(&spec, streams, &Weather::fair());
        ended.assert_well();
        assert_alike(&source, &destination);
        assert_eq!(ended.sent.report.copied.files, 13 + 6 + 300 + 1);
        assert_eq!(ended.sent.report.copied, ended.received.copied);
        let again = copy(&spec, streams, &Weather::fair());
        again.assert_well();
        assert_eq!(again.sent.report.copied.files, 0);
        assert_eq!(
            again.sent.report.present, ended.sent.report.copied,
            "folders are no files"
        );
    }
}

#[test]
fn a_tree_arrives_straight_cut_and_taken_up_again() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    variety(&source);
    let sparse = fs::File::create(source.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"data", 20 << 20).unwrap();
    for (streams, writers) in [(1, 0), (3, 2)] {
        let destination = top.path().join(format!("d{streams}"));
        let spec = straight(tuned(spec(content_of(&source), &destination), 65_536, 0, writers));
        let cut = copy(&spec, streams, &Weather::cut_after(60));
        assert!(cut.sent.outcome.is_err());
        let ended = copy(&spec, streams, &Weather::fair());
        ended.assert_well();
        assert_alike(&source, &destination);
        assert_eq!(ended.sent.report.sender.engine, "sendfile");
    }
}

#[test]
fn a_chunk_that_is_spoilt_on_its_way_is_sent_again() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    tree::put(&source, "large", &tree::content(2_000_000, 1));
    tree::put(&source, "small", &tree::content(1_000, 1));
    for frame in 1..9 {
        let destination = top.path().join(format!("d{frame}"));
        let ended = copy(
            &tuned(spec(content_of(&source), &destination), 262_144, 0, 0),
            2,
            &Weather::spoils(frame),
        );
        ended.assert_well();
        assert_alike(&source, &destination);
        assert_eq!(ended.sent.report.repeated_chunks, 1);
    }
}

#[test]
fn holes_and_names_of_one_file_stay_what_they_are() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    tree::put(&source, "a", &tree::content(400_000, 1));
    fs::hard_link(source.join("a"), source.join("b")).unwrap();
    let sparse = fs::File::create(source.join("sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(b"data", 20 << 20).unwrap();
    let destination = top.path().join("d");
    let spec = CopySpec {
        hard_links: true,
        ..tuned(spec(content_of(&source), &destination), 262_144, 0, 0)
    };
    let ended = copy(&spec, 2, &Weather::fair());
    ended.assert_well();
    assert_alike(&source, &destination);
    let inode = |name: &str| fs::metadata(destination.join(name)).unwrap().ino();
    assert_eq!(inode("a"), inode("b"));
    assert!(fs::metadata(destination.join("sparse")).unwrap().blocks() * 512 < 2 << 20);
    assert!(ended.sent.report.hole_bytes > 60 << 20);
}

#[test]
fn the_destination_folder_is_like_the_source_folder_whose_content_it_gets() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    tree::put(&source, "a", b"content");
    let empty = top.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let there = top.path().join("there");
    tree::put(&there, "b", b"was here");
    for folder in [&source, &empty] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o710)).unwrap();
        let opened = fs::File::open(folder).unwrap();
        opened
            .set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000))
            .unwrap();
    }
    fs::set_permissions(&there, fs::Permissions::from_mode(0o777)).unwrap();
    for (from, to, mode) in [
        (&source, "new", 0o710),
        (&empty, "none", 0o710),
        (&source, "there", 0o777),
    ] {
        let destination = top.path().join(to);
        copy(
            &tuned(spec(content_of(from), &destination), 262_144, 0, 0),
            1,
            &Weather::fair(),
        )
        .assert_well();
        let facts = fs::metadata(&destination).unwrap();
        assert_eq!(
            (facts.mode() & 0o7777, facts.mtime()),
            (mode, 1_000_000_000),
            "{to}"
        );
    }
    let untimed = CopySpec {
        times: false,
        modes: false,
        ..tuned(spec(content_of(&source), top.path().join("own")), 262_144, 0, 0)
    };
    copy(&untimed, 1, &Weather::fair()).assert_well();
    assert_ne!(
        fs::metadata(top.path().join("own")).unwrap().mtime(),
        1_000_000_000
    );
}

#[test]
fn one_file_takes_the_name_it_is_given() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "file", b"content");
    let destination = top.path().join("other");
    let spec = tuned(spec(top.path().join("file"), &destination), 262_144, 0, 0);
    copy(&spec, 1, &Weather::fair()).assert_well();
    assert_eq!(fs::read(&destination).unwrap(), b"content");
}

#[test]
fn what_does_not_come_is_counted_and_named_at_both_ends() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    tree::put(&source, "file", b"content");
    tree::put(top.path(), "other/file", b"a second of this name");
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).unwrap();
    tree::put(top.path(), "d/old", b"not deleted");
    let destination = top.path().join("d");
    let mut spec = tuned(spec(content_of(&source), &destination), 262_144, 0, 0);
    let other = content_of(&top.path().join("other"));
    let missing = top.path().join("missing").display().to_string();
    spec.sources.extend([other, missing.clone()]);
    spec.delete = Some(DeleteCount::new(1).unwrap());
    let ended = copy(&spec, 1, &Weather::fair());
    ended.sent.outcome.as_ref().unwrap();
    for report in [&ended.sent.report, &ended.received] {
        let mut failed: Vec<(&str, &str)> = report
            .failures
            .iter()
            .map(|line| (line.path.as_str(), line.reason.as_deref().unwrap_or_default()))
            .collect();
        failed.sort_unstable();
        let told = |place: usize, path: &str, reason: &str| {
            assert_eq!(failed[place].0, path);
            assert!(failed[place].1.contains(reason), "{failed:?}");
        };
        told(0, &missing, "no such file or folder");
        told(1, "file", "two sources give this name");
        assert!(report.problems[0].starts_with("nothing was deleted"));
        assert_eq!(
            (report.failed.files, report.skipped.files, report.copied.files),
            (3, 1, 1)
        );
        assert_eq!(report.found.files, 4, "found, skipped, missing, and once more");
    }
    assert!(destination.join("old").exists());
}

#[test]
fn followed_links_arrive_as_what_they_lead_to() {
    let top = tempfile::tempdir().unwrap();
    let source = top.path().join("source");
    tree::put(&source, "inner/file", b"in");
    tree::put(top.path(), "outer/file", b"out");
    symlink("../outer", source.join("out")).unwrap();
    let destination = top.path().join("d");
    let spec = CopySpec {
        links: SymbolicLinks::Follow,
        ..tuned(spec(content_of(&source), &destination), 262_144, 0, 0)
    };
    copy(&spec, 1, &Weather::fair()).assert_well();
    assert_eq!(fs::read(destination.join("out/file")).unwrap(), b"out");
}

/// A file of `grains` grains and a few bytes with data in these alone.
fn put_sparse(path: &Path, grains: u64, with_data: &BTreeSet<u64>) {
    let file = fs::File::create(path).unwrap();
    file.set_len(grains * GRAIN_BYTES + 5).unwrap();
    for grain in with_data {
        let content = tree::content(100, *grain);
        file.write_all_at(&content, grain * GRAIN_BYTES + 4096).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn holes_of_any_size_stay_holes_whatever_the_chunk_and_the_link(
        with_data in prop::collection::btree_set(0_u64..80, 1..20),
        chunk_bits in 16_u32..23,
        later_chunk_bits in 16_u32..23,
        streams in 1_u16..4,
        hashes in any::<bool>(),
        cut in 1_i64..60,
        spoilt in 0_i64..12,
    ) {
        let top = tempfile::tempdir().unwrap();
        let (source, destination) = (top.path().join("source"), top.path().join("d"));
        fs::create_dir(&source).unwrap();
        put_sparse(&source.join("sparse"), 80, &with_data);
        let mut spec = tuned(spec(content_of(&source), &destination), 1 << chunk_bits, 0, 0);
        if hashes {
            let _ = copy(&spec, streams, &Weather::cut_after(cut));
            spec.chunk_bytes = Some(ChunkBytes::new(1 << later_chunk_bits).unwrap());
        } else {
            spec.verify = Verify::None;
        }
        let weather = if hashes && spoilt > 0 { Weather::spoils(spoilt) } else { Weather::fair() };
        let ended = copy(&spec, streams, &weather);
        ended.assert_well();
        assert_alike(&source, &destination);
        let taken = fs::metadata(destination.join("sparse")).unwrap().blocks() * 512;
        // A file system may need blocks to say where the others are.
        prop_assert!(taken <= with_data.len() as u64 * GRAIN_BYTES + 8192, "{taken} bytes of {with_data:?}");
    }

    #[test]
    fn a_copy_that_was_cut_goes_on_and_ends_whole(cuts in prop::collection::vec(1_i64..120, 1..4), streams in 1_u16..4, seed in any::<u64>()) {
        let top = tempfile::tempdir().unwrap();
        let source = top.path().join("source");
        for number in 0..40 {
            tree::put(&source, format!("{}/{number}", number % 3), &tree::content((seed as usize >> (number % 8)) % 90_000, number as u64));
        }
        tree::put(&source, "large", &tree::content(3_000_000, seed));
        let destination = top.path().join("d");
        let mut spec = tuned(spec(content_of(&source), &destination), 65_536, 0, 0);
        (spec.readers, spec.writers) = (None, None);
        for cut in cuts {
            let _ = copy(&spec, streams, &Weather::cut_after(cut));
            for (path, thing) in if destination.exists() { tree::read(&destination) } else { Default::default() } {
                if thing.kind == 'f' && !path.starts_with(b".farline-partial") {
                    let original = fs::read(source.join(std::ffi::OsStr::from_bytes(&path))).unwrap();
                    prop_assert!(thing.content.unwrap() == original, "a wrong file under a final name");
                }
            }
        }
        let ended = copy(&spec, streams, &Weather::fair());
        ended.assert_well();
        assert_alike(&source, &destination);
    }
}

#[test]
fn bits_that_lend_rights_go_from_what_is_there_where_the_source_has_none() {
    let top = tempfile::tempdir().unwrap();
    let (source, destination) = (top.path().join("source"), top.path().join("d"));
    for (folder, mode) in [(&source, 0o755), (&destination, 0o6755)] {
        tree::put(folder, "tool", b"content");
        tree::dress(&folder.join("tool"), mode, 1_000_000_000, 0);
    }
    for updated in [1, 0] {
        let ended = copy(&spec(content_of(&source), &destination), 1, &Weather::fair());
        ended.assert_well();
        assert_eq!(ended.received.updated.files, updated);
        let mode = fs::metadata(destination.join("tool"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o755);
    }
    // And are not taken from a source whose owner the file does not get, nor from a file that has them as the source has.
    tree::dress(&source.join("tool"), 0o4755, 1_000_000_000, 0);
    for mode in [0o755, 0o4755] {
        tree::dress(&destination.join("tool"), mode, 1_000_000_000, 0);
        let ended = copy(&spec(content_of(&source), &destination), 1, &Weather::fair());
        assert_eq!(ended.received.updated.files, 0, "{mode:o}");
    }
}

/// An access control list that gives one more user all rights (acl(5); linux/posix_acl_xattr.h: version, then tag, rights, id).
fn list_for(user: u32) -> Vec<u8> {
    let entries = [
        (1_u16, 7_u16, u32::MAX),
        (2, 7, user),
        (4, 5, u32::MAX),
        (16, 7, u32::MAX),
        (32, 0, u32::MAX),
    ];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(rights.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

fn attributes_of(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let file = fs::File::open(path).unwrap();
    let mut found = farline_sys::file::get_xattrs(std::os::fd::AsFd::as_fd(&file), |_| true, 65_536).unwrap();
    found.sort();
    found
}

fn give(path: &Path, name: &[u8], list: &[u8]) {
    let file = fs::File::open(path).unwrap();
    farline_sys::file::set_xattr(std::os::fd::AsFd::as_fd(&file), name, list).unwrap();
}

#[test]
fn with_attributes_new_names_have_those_of_the_source_and_inherit_none() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, bytes) in [
        ("small", 100),
        ("in/large", 3_000_000),
        ("in/empty", 0),
        ("in/own", 10),
    ] {
        tree::put(from.path(), name, &tree::content(bytes, 1));
        tree::dress(&from.path().join(name), 0o640, 1_000_000_000, 0);
    }
    let (access, default) = (b"system.posix_acl_access", b"system.posix_acl_default");
    give(&from.path().join("in/own"), access, &list_for(1111));
    give(to.path(), default, &list_for(2222));
    let spec = CopySpec {
        xattrs: true,
        ..spec(content_of(from.path()), to.path())
    };
    let ended = copy(&spec, 2, &Weather::fair());
    ended.outcome.unwrap();
    assert_eq!(ended.received.problems, Vec::<String>::new());
    for name in ["small", "in", "in/large", "in/empty", "in/own"] {
        let (there, wanted) = (to.path().join(name), from.path().join(name));
        assert_eq!(attributes_of(&there), attributes_of(&wanted), "{name}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&there), mode(&wanted), "{name}");
    }
    let again = copy(&spec, 2, &Weather::fair());
    assert_eq!((again.received.updated.files, again.received.made), (0, 0));
    let new = CopySpec {
        destination: to.path().join("new").display().to_string(),
        ..spec
    };
    copy(&new, 2, &Weather::fair()).outcome.unwrap();
    for name in ["new", "new/small", "new/in"] {
        assert!(attributes_of(&to.path().join(name)).is_empty(), "{name}");
    }
}

#[test]
fn a_new_destination_folder_has_the_attributes_of_the_source_folder_and_one_that_is_there_keeps_its_own() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    tree::put(from.path(), "in/file", &tree::content(100, 1));
    let (access, default) = (b"system.posix_acl_access", b"system.posix_acl_default");
    give(from.path(), b"user.project", b"north");
    give(from.path(), access, &list_for(1111));
    give(from.path(), default, &list_for(1112));
    // What was not there when the list was set does not have it.
    let spec = |name: &str| CopySpec {
        xattrs: true,
        ..spec(content_of(from.path()), to.path().join(name))
    };
    for name in ["new", "again"] {
        copy(&spec("new"), 2, &Weather::fair()).outcome.unwrap();
        let there = to.path().join("new");
        assert_eq!(attributes_of(&there), attributes_of(from.path()), "{name}");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&there), mode(from.path()), "{name}");
        for inside in ["in", "in/file"] {
            assert!(attributes_of(&there.join(inside)).is_empty(), "{name} {inside}");
        }
    }
    // An end of version 6 does not know the word.
    let older = EndSetup {
        takes_top_xattrs: false,
        ..setup(&spec("older"), 1, None)
    };
    copy_from(older, &Weather::fair()).assert_well();
    assert!(attributes_of(&to.path().join("older")).is_empty());
    fs::create_dir(to.path().join("own")).unwrap();
    give(&to.path().join("own"), default, &list_for(2222));
    let before = attributes_of(&to.path().join("own"));
    copy(&spec("own"), 2, &Weather::fair()).outcome.unwrap();
    assert_eq!(attributes_of(&to.path().join("own")), before);
    let without = CopySpec {
        xattrs: false,
        ..spec("without")
    };
    copy(&without, 2, &Weather::fair()).outcome.unwrap();
    assert!(attributes_of(&to.path().join("without")).is_empty());
}
