//! Where things go, what is left alone, what is replaced and what is deleted.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use farline_spec::{Overwrite, SumKind, SyncLevel};

use super::*;
use crate::sum::content_sum;

fn refusal(session: &mut Session, number: u64) -> String {
    match session.wants(number) {
        Wants::Refused(reason) => reason,
        other => panic!("{other:?} is no refusal"),
    }
}

#[test]
fn a_lone_file_takes_a_name_that_is_not_there_and_replaces_nothing() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.sources = vec!["x/a".to_owned()];
    for round in 0..2 {
        let mut session = start(&spec).unwrap();
        assert_eq!(session.fresh, round == 0);
        let text: &[u8] = if round == 0 { b"abc" } else { b"longer" };
        let file = session.announce_file(b"a", text);
        if round == 0 {
            session.pack(0, &[(file, text)]);
            session.until_done(file);
            let second = session.announce_file(b"a/b", b"abc");
            assert!(refusal(&mut session, second).contains("not the file that was announced"));
        } else {
            assert!(refusal(&mut session, file).contains("overwrite"));
        }
        session.finish();
        assert_eq!(listing(place.path()), ["new"]);
        assert_eq!(fs::read(place.path().join("new")).unwrap(), b"abc");
    }
}

#[test]
fn a_destination_that_cannot_be_is_one_clear_failure() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("file"), b"").unwrap();
    let missing = start(&spec(&place.path().join("no/where"))).err().unwrap();
    assert!(
        missing
            .message
            .contains("only the last folder of a destination is created"),
        "{missing:?}"
    );
    let mut several = spec(&place.path().join("file"));
    several.sources.push("b".to_owned());
    assert!(start(&several).err().unwrap().message.contains("is a file"));
    let mut session = start(&spec(&place.path().join("file"))).unwrap();
    session.announce(b"d", EntryKind::Folder);
    let failures = session.failures();
    assert!(
        failures[0]
            .message
            .contains("a folder can only be copied into a folder"),
        "{failures:?}"
    );
}

#[test]
fn what_is_there_is_present_refused_or_replaced_as_asked() {
    use Overwrite::{Always, Different, Never, Older};
    let at_source = content(3, 9);
    for (sync_level, overwrite, same_size, newer, expected) in [
        (SyncLevel::Exists, Never, false, false, "present"),
        (SyncLevel::Exists, Always, false, false, "made"),
        (SyncLevel::Size, Never, true, false, "present"),
        (SyncLevel::Size, Never, false, false, "refused"),
        (SyncLevel::Time, Never, true, false, "refused"),
        (SyncLevel::Time, Older, true, false, "made"),
        (SyncLevel::Time, Older, true, true, "refused"),
        (SyncLevel::Time, Different, false, true, "made"),
        (SyncLevel::Checksum, Different, true, true, "made"),
        (SyncLevel::Checksum, Never, true, true, "refused"),
    ] {
        let place = tempfile::tempdir().unwrap();
        let mut spec = spec(place.path());
        (spec.sync_level, spec.overwrite) = (sync_level, overwrite);
        let path = place.path().join("a");
        let old: &[u8] = if same_size { b"old" } else { b"older" };
        fs::write(&path, old).unwrap();
        let seconds = if newer { 1_700_000_000 } else { 1_500_000_000 };
        let time = std::time::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        let mut session = start(&spec).unwrap();
        let hash = (sync_level == SyncLevel::Checksum).then(|| content_sum(SumKind::Blake3, &at_source));
        let file = session.announce(b"a", EntryKind::File { bytes: 3, hash });
        let found = match session.wants(file) {
            Wants::Present(_) | Wants::Updated(_) => "present",
            Wants::Refused(_) => "refused",
            Wants::All => "made",
            other => panic!("{other:?}"),
        };
        assert_eq!(
            found, expected,
            "{sync_level:?} {overwrite:?} {same_size} {newer}"
        );
        if found == "made" {
            session.pack(0, &[(file, &at_source)]);
            session.until_done(file);
        }
        session.finish();
        let expected: &[u8] = if found == "made" { &at_source } else { old };
        assert_eq!(fs::read(&path).unwrap(), expected);
    }
}

#[test]
fn the_same_content_is_present_whatever_its_time() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(place.path());
    spec.sync_level = SyncLevel::Checksum;
    fs::write(place.path().join("a"), b"abc").unwrap();
    let mut session = start(&spec).unwrap();
    let hash = Some(content_sum(SumKind::Blake3, b"abc"));
    let file = session.announce(b"a", EntryKind::File { bytes: 3, hash });
    assert_eq!(session.wants(file), Wants::Updated(hash));
    let (_, report) = session.finish();
    assert_eq!((report.updated.files, report.present.files), (1, 0));
}

#[test]
fn a_file_that_is_there_gets_its_mode_and_time_unless_only_its_name_was_looked_at() {
    for (sync_level, is_asked, is_dressed) in [
        (SyncLevel::Size, true, true),
        (SyncLevel::Checksum, true, true),
        (SyncLevel::Exists, true, false),
        (SyncLevel::Size, false, false),
    ] {
        let place = tempfile::tempdir().unwrap();
        let mut spec = spec(place.path());
        (spec.sync_level, spec.modes, spec.times) = (sync_level, is_asked, is_asked);
        let path = place.path().join("a");
        fs::write(&path, b"abc").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let mut session = start(&spec).unwrap();
        let hash = Some(content_sum(SumKind::Blake3, b"abc"));
        let file = session.announce(b"a", EntryKind::File { bytes: 3, hash });
        let is_updated = matches!(session.wants(file), Wants::Updated(_));
        assert_eq!(is_updated, is_dressed, "{sync_level:?}");
        let (problems, _) = session.finish();
        assert!(problems.is_empty(), "{problems:?}");
        let facts = fs::metadata(&path).unwrap();
        let mode = if is_dressed { 0o640 } else { 0o600 };
        assert_eq!(facts.mode() & 0o7777, mode, "{sync_level:?}");
        let mtime_ns = facts.mtime() * 1_000_000_000 + facts.mtime_nsec();
        assert_eq!(mtime_ns == MTIME_NS, is_dressed, "{sync_level:?}");
    }
}

#[test]
fn files_and_folders_take_each_others_place_where_that_was_asked_for() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir_all(place.path().join("folder/full")).unwrap();
    fs::create_dir(place.path().join("empty")).unwrap();
    fs::write(place.path().join("file"), b"old").unwrap();
    let mut spec = spec(place.path());
    (spec.overwrite, spec.force) = (Overwrite::Never, true);
    let mut session = start(&spec).unwrap();
    for number in [
        session.announce_file(b"folder", b"abc"),
        session.announce_file(b"empty", b"abc"),
        session.announce(b"file", EntryKind::Folder),
    ] {
        assert!(refusal(&mut session, number).contains("has this name at the destination"));
    }
    let inside = session.announce_file(b"file/a", b"abc");
    assert_eq!(
        refusal(&mut session, inside),
        "a file with this name is in the way"
    );
    session.finish();
    (spec.overwrite, spec.force) = (Overwrite::Older, false);
    let mut session = start(&spec).unwrap();
    let full = session.announce_file(b"folder", b"abc");
    assert!(refusal(&mut session, full).contains("--force"));
    let empty = session.announce_file(b"empty", b"abc");
    let folder = session.announce(b"file", EntryKind::Folder);
    let inside = session.announce_file(b"file/a", b"abc");
    assert_eq!(session.wants(folder), Wants::Made);
    session.pack(0, &[(empty, b"abc"), (inside, b"abc")]);
    session.until_done(inside);
    session.finish();
    assert_eq!(fs::read(place.path().join("empty")).unwrap(), b"abc");
    assert_eq!(fs::read(place.path().join("file/a")).unwrap(), b"abc");
    assert!(place.path().join("folder/full").is_dir());
    spec.force = true;
    let mut session = start(&spec).unwrap();
    let full = session.announce_file(b"folder", b"abc");
    session.pack(0, &[(full, b"abc")]);
    session.until_done(full);
    let (_, report) = session.finish();
    assert_eq!(report.deleted.files, 2, "what was in the way is told");
    assert_eq!(fs::read(place.path().join("folder")).unwrap(), b"abc");
    assert_eq!(listing(place.path()), ["empty", "file", "folder"]);
}

#[test]
fn links_at_the_destination_do_not_lead_out_of_it() {
    let outside = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    symlink(outside.path(), place.path().join("absolute")).unwrap();
    symlink("..", place.path().join("up")).unwrap();
    let mut session = start(&spec(place.path())).unwrap();
    let mut numbers = Vec::new();
    for path in [&b"absolute/a"[..], b"up/a", b"absolute", b"up/b/c"] {
        let kind = if path == b"absolute" {
            EntryKind::Folder
        } else {
            EntryKind::File { bytes: 3, hash: None }
        };
        numbers.push(session.announce(path, kind));
    }
    let sent = session.announce(
        b"mine",
        EntryKind::Link {
            target: outside.path().to_str().unwrap().into(),
        },
    );
    assert_eq!(session.wants(sent), Wants::Made);
    for number in numbers {
        let reason = refusal(&mut session, number);
        assert!(
            reason.starts_with("a symbolic link is in the way")
                || reason.starts_with("a symbolic link to a folder has this name"),
            "{reason}"
        );
    }
    session.finish();
    assert!(listing(outside.path()).is_empty());
}

/// Whether the end asks for this name by itself.
fn until_apart(session: &mut Session, number: u64) {
    session.until(|said| *said == Feedback::Apart { file: number });
}

fn lost(file: u64, again: bool) -> Catalogue {
    let reason = "it cannot be read".to_owned();
    Catalogue::Lost { file, reason, again }
}

#[test]
fn further_names_come_by_themselves_where_their_file_does_not() {
    for place in places() {
        let mut spec = spec(&place.path().join("new"));
        spec.hard_links = true;
        let mut session = start(&spec).unwrap();
        let first = session.announce_file(b"a", b"abc");
        let names: Vec<_> = [&b"b"[..], b"c", b"d", b"e"]
            .map(|name| session.announce(name, EntryKind::HardLink { to: first }))
            .into();
        session.say(&lost(first, false));
        names.iter().for_each(|number| until_apart(&mut session, *number));
        // One takes its place, others are further names of it, and one is gone as well.
        session.say(&lost(names[0], true));
        let second = session.announce_file(b"b", b"abc");
        session.say(&lost(names[3], false));
        for (number, name) in [(names[1], &b"c"[..]), (names[2], b"d")] {
            session.say(&lost(number, true));
            let again = session.announce(name, EntryKind::HardLink { to: second });
            assert!(!session.answers.contains_key(&again));
        }
        session.pack(0, &[(second, b"abc")]);
        session.until_done(second);
        let (_, report) = session.finish();
        let new = place.path().join("new");
        assert_eq!(listing(&new), ["b", "c", "d"]);
        let inode = |name: &str| fs::metadata(new.join(name)).unwrap().ino();
        assert!(inode("b") == inode("c") && inode("c") == inode("d"));
        assert_eq!((report.failed.files, report.copied.files, report.made), (2, 1, 2));
    }
}

#[test]
fn further_names_wait_for_their_file_and_fail_with_it_where_the_other_end_is_older() {
    for place in places() {
        let mut spec = spec(&place.path().join("new"));
        spec.hard_links = true;
        let mut session = start_as(EndSetup {
            takes_names_apart: false,
            streams: 2,
            ..setup_of(&spec)
        })
        .unwrap();
        let all = content(CHUNK as usize + 1, 3);
        let file = session.announce_file(b"a", &all);
        let further = session.announce(b"d/b", EntryKind::HardLink { to: file });
        let lost = session.announce_file(b"lost", &all);
        let further_lost = session.announce(b"c", EntryKind::HardLink { to: lost });
        let nothing = session.announce(b"e", EntryKind::HardLink { to: 99 });
        refusal(&mut session, nothing);
        assert!(!session.answers.contains_key(&further));
        session.say(&Catalogue::Lost {
            file,
            reason: String::new(),
            again: true,
        });
        session.say(&Catalogue::Lost {
            file: lost,
            reason: "vanished".to_owned(),
            again: false,
        });
        session.until_failed(further_lost);
        let again = session.announce_file(b"a", &all);
        send_wanted(&mut session, again, &all);
        assert_eq!(session.wants(further), Wants::Made);
        let small = session.announce_file(b"s", b"abc");
        session.pack(0, &[(small, b"abc")]);
        session.until_done(small);
        let late = session.announce(b"t", EntryKind::HardLink { to: small });
        assert_eq!(session.wants(late), Wants::Made);
        session.finish();
        let inode = |name: &str| fs::metadata(place.path().join("new").join(name)).unwrap().ino();
        assert_eq!(inode("a"), inode("d/b"));
        assert_eq!(inode("s"), inode("t"));
        assert_eq!(listing(&place.path().join("new")), ["a", "d", "s", "t"]);
    }
}

#[test]
fn links_are_present_refused_or_replaced() {
    let place = tempfile::tempdir().unwrap();
    symlink("same", place.path().join("same")).unwrap();
    symlink("old", place.path().join("other")).unwrap();
    for overwrite in [Overwrite::Never, Overwrite::Different] {
        let mut spec = spec(place.path());
        spec.overwrite = overwrite;
        let mut session = start(&spec).unwrap();
        let same = session.announce(
            b"same",
            EntryKind::Link {
                target: b"same".to_vec(),
            },
        );
        let other = session.announce(
            b"other",
            EntryKind::Link {
                target: b"new".to_vec(),
            },
        );
        // Its time is the source's after the first session.
        match overwrite {
            Overwrite::Never => assert_eq!(session.wants(same), Wants::Updated(None)),
            _ => assert_eq!(session.wants(same), Wants::Present(None)),
        }
        match overwrite {
            Overwrite::Never => assert!(matches!(session.wants(other), Wants::Refused(_))),
            _ => assert_eq!(session.wants(other), Wants::Made),
        }
        session.finish();
    }
    assert_eq!(
        fs::read_link(place.path().join("other")).unwrap(),
        Path::new("new")
    );
}

#[test]
fn a_dry_run_answers_and_makes_nothing() {
    let place = tempfile::tempdir().unwrap();
    for destination in [place.path().join("new"), place.path().to_path_buf()] {
        let mut spec = spec(&destination);
        spec.dry_run = true;
        let mut session = start(&spec).unwrap();
        let folder = session.announce(b"d", EntryKind::Folder);
        let file = session.announce_file(b"d/a", b"abc");
        assert_eq!(session.wants(folder), Wants::Made);
        assert_eq!(session.wants(file), Wants::All);
        let (_, report) = session.finish();
        assert_eq!(
            (report.copied.files, report.made),
            (1, 1),
            "what would be done counts as done"
        );
        assert!(listing(place.path()).is_empty());
    }
}
