//! Files that the sending end does not read: what is written into them meanwhile is noticed all the same.

mod common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

use common::taker::{Manner, assert_all_came, copy};
use common::{sources, straight, tree, with_chunk};

#[test]
fn a_file_that_goes_straight_is_not_settled_before_it_has_arrived_and_is_still_the_same() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "large", &tree::content(3_000_000, 1));
    let path = top.path().join("large");
    for (restless, copied) in [(0, 1), (1, 1), (100, 0)] {
        let (path, times) = (path.clone(), AtomicU64::new(0));
        let manner = Manner {
            // All of it has been sent, and then one byte of it becomes another.
            arrived: Box::new(move |_| {
                if times.fetch_add(1, Ordering::Relaxed) < restless {
                    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                    file.write_all_at(&[times.load(Ordering::Relaxed) as u8], 5)
                        .unwrap();
                }
            }),
            ..Manner::default()
        };
        let outcome = copy(&straight(sources(top.path(), &[""])), 2, manner);
        let report = &outcome.sent.report;
        assert_eq!((report.copied.files, report.failed.files), (copied, 1 - copied));
        assert_eq!(report.sender.engine, "sendfile");
        match copied {
            1 => assert_all_came(top.path(), b"", &outcome),
            _ => assert!(outcome.taken.is_empty(), "it has no name"),
        }
    }
}

#[test]
fn a_file_that_becomes_shorter_while_it_goes_straight_is_lost_and_never_settled() {
    let top = tempfile::tempdir().unwrap();
    tree::put(top.path(), "large", &tree::content(3_000_000, 1));
    let (path, times) = (top.path().join("large"), AtomicU64::new(0));
    let manner = Manner {
        // When its first chunk has come, the rest of it is gone.
        spoils: Box::new(move |_, _| {
            if times.fetch_add(1, Ordering::Relaxed) == 0 {
                let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
                file.set_len(70_000).unwrap();
            }
            false
        }),
        ..Manner::default()
    };
    let spec = with_chunk(straight(sources(top.path(), &[""])), 65_536);
    let outcome = copy(&spec, 1, manner);
    assert!(
        outcome
            .lost
            .iter()
            .all(|(_, reason, _)| reason == "changed while it was read")
    );
    assert!(!outcome.lost.is_empty());
    assert_all_came(top.path(), b"", &outcome);
}

#[test]
fn more_files_than_may_be_open_go_straight_as_far_as_they_may() {
    let top = tempfile::tempdir().unwrap();
    for number in 0..300 {
        tree::put(top.path(), format!("{number}"), &tree::content(300_000, number));
    }
    let outcome = copy(
        &with_chunk(straight(sources(top.path(), &[""])), 65_536),
        2,
        Manner::default(),
    );
    assert_all_came(top.path(), b"", &outcome);
    assert_eq!(outcome.sent.report.copied.files, 300);
}
