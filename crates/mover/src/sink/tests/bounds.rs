//! What another host can make this end keep, in memory and on disk, without sending it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use farline_spec::Verify;

use super::*;

/// Bytes that all files of the staging folder take on the disk, and how many partials there are.
fn kept(destination: &Path) -> (u64, usize) {
    let (mut bytes, mut partials) = (0, 0);
    for copy in fs::read_dir(destination.join(".farline-partial")).unwrap() {
        for file in fs::read_dir(copy.unwrap().path()).unwrap() {
            let file = file.unwrap();
            let is_partial = file.file_name().to_string_lossy().ends_with(".part");
            partials += usize::from(is_partial);
            bytes += 512 * file.metadata().unwrap().blocks();
        }
    }
    (bytes, partials)
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_there() {
        assert!(since.elapsed() < PATIENCE, "{what} does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_breaks_off_leaves_no_more_on_disk_than_it_proved() {
    const JOURNAL_BYTES: u64 = 64 * 1024;
    for place in places() {
        let destination = place.path().join("new");
        let all = content(300 * CHUNK as usize, 5);
        let mut session = start_limited(&spec(&destination), 2, None, Some(3 * all.len() as u64)).unwrap();
        let begun = session.announce_file(b"begun", &all);
        let untouched = session.announce_file(b"untouched", &all);
        assert_eq!(session.wants(untouched), Wants::All);
        // Nothing of it ever comes: no room is taken for it.
        session.settle(untouched, &all);
        for offset in [0, 7 * CHUNK] {
            session.chunk(0, begun, &all, offset, false);
        }
        session.chunk(1, begun, &all, 9 * CHUNK, true);
        let gauges = Arc::clone(&session.gauges);
        wait_for("what is proved", || gauges.settled_bytes.get() == 2 * CHUNK);
        wait_for("the room of what came", || kept(&destination).1 == 1);
        session.cut();
        let (bytes, partials) = kept(&destination);
        assert!(bytes <= 2 * CHUNK + JOURNAL_BYTES, "{bytes} bytes are kept");
        assert_eq!(partials, 1, "of what nothing came nothing is left");

        let mut session = start(&spec(&destination)).unwrap();
        let files = [b"begun".as_slice(), b"untouched"].map(|name| session.announce_file(name, &all));
        for file in files {
            let sent = send_wanted(&mut session, file, &all);
            let proved = if file == files[0] { 2 * CHUNK } else { 0 };
            assert_eq!(sent, all.len() as u64 - proved);
        }
        session.finish();
        for name in ["begun", "untouched"] {
            assert!(fs::read(destination.join(name)).unwrap() == all, "{name}");
        }
    }
}

#[test]
fn parts_that_do_not_touch_are_bounded_though_no_byte_of_them_is_sent() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.verify = Verify::None;
    let mut session = start(&spec).unwrap();
    let many = 2_000;
    let bytes = 2 * many * CHUNK;
    let file = session.announce(b"a", EntryKind::File { bytes, hash: None });
    for part in 0..many {
        let (offset, bytes) = (2 * part * CHUNK, CHUNK);
        session.say(&Catalogue::Hole { file, offset, bytes });
    }
    let failure = session.failures().remove(0);
    assert_eq!(failure.kind, FailureKind::Limit, "{failure}");
    assert!(failure.message.contains("do not touch"), "{failure}");
}

/// Says things until the end has had enough.
fn too_much(spec: &CopySpec, say: impl Fn(&mut Session, u32)) {
    let mut session = start(spec).unwrap();
    for number in 0..40_000 {
        say(&mut session, number);
        if number % 64 == 0 && session.end.inner.run.check().is_err() {
            break;
        }
    }
    let failure = session.failures().remove(0);
    assert_eq!(failure.kind, FailureKind::Limit, "{failure}");
    assert!(failure.message.contains("names to remember"), "{failure}");
}

#[test]
fn folders_are_bounded() {
    let place = tempfile::tempdir().unwrap();
    let deep = vec!["d".repeat(200); 18].join("/");
    too_much(&spec(&place.path().join("new")), |session, number| {
        session.announce(format!("{deep}/{number}").as_bytes(), EntryKind::Folder);
    });
}

#[test]
fn tries_of_files_with_further_names_are_bounded() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.hard_links = true;
    too_much(&spec, |session, number| {
        let again = number % 2 == 0;
        let path = format!("{}{number}", "a".repeat(200));
        let file = session.announce_file(path.as_bytes(), b"abc");
        let reason = String::new();
        session.say(&Catalogue::Lost { file, reason, again });
    });
}

#[test]
fn names_of_owners_are_bounded() {
    let place = tempfile::tempdir().unwrap();
    let mut spec = spec(&place.path().join("new"));
    spec.owner = true;
    too_much(&spec, |session, number| {
        session.say(&Catalogue::Owner(message::Owner {
            user: 1_000 + number,
            group: 0,
            user_name: format!("{number:x>200}").into_bytes(),
            group_name: Vec::new(),
        }));
    });
}
