//! Names of one file at the source, and what becomes of them.

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::pair::copy;
use common::{Weather, spec, tree};
use farline_spec::{CopySpec, Overwrite};

fn content_of(folder: &Path) -> String {
    format!("{}/", folder.display())
}

/// A file of three names, which are asked for one by one, and the spec that copies them as that.
fn three_names(top: &Path) -> CopySpec {
    tree::put(top, "x/a", &tree::content(700_000, 1));
    for (folder, name) in [("y", "b"), ("z", "c")] {
        fs::create_dir_all(top.join(folder)).unwrap();
        fs::hard_link(top.join("x/a"), top.join(folder).join(name)).unwrap();
    }
    let names = ["x/a", "y/b", "z/c"].map(|name| top.join(name).display().to_string());
    CopySpec {
        sources: names.to_vec(),
        hard_links: true,
        ..spec(top, top.join("d"))
    }
}

/// The second and the third name came, as names of one file, with what it had at some time.
fn assert_others_came(top: &Path) {
    let came = ["b", "c"].map(|name| top.join("d").join(name));
    let content = fs::read(&came[0]).unwrap();
    assert!(content == tree::content(700_000, 1) || content == tree::content(800_000, 9));
    let inodes = came.map(|name| fs::metadata(name).unwrap().ino());
    assert_eq!(inodes[0], inodes[1], "names of one file");
}

#[test]
fn the_other_names_of_a_file_come_where_the_first_cannot_be_made() {
    let top = tempfile::tempdir().unwrap();
    let spec = three_names(top.path());
    tree::put(top.path(), "d/a/in the way", b"");
    let ended = copy(&spec, 2, &Weather::fair());
    assert_others_came(top.path());
    for report in [&ended.sent.report, &ended.received] {
        let failed: Vec<_> = report.failures.iter().map(|line| line.path.as_str()).collect();
        assert_eq!((failed.as_slice(), report.failed.files), (&["a"][..], 1));
        assert_eq!((report.copied.files, report.made), (1, 1));
    }
}

#[test]
fn the_other_names_of_a_file_come_where_the_first_is_gone_or_changes() {
    use std::sync::atomic::{AtomicU32, Ordering};
    for frame in 1..5 {
        for is_gone in [true, false] {
            let top = tempfile::tempdir().unwrap();
            let spec = three_names(top.path());
            let first = top.path().join("x/a");
            let frames = AtomicU32::new(0);
            let weather = Weather::watched(move || {
                if frames.fetch_add(1, Ordering::Relaxed) + 1 == frame {
                    match is_gone {
                        true => fs::remove_file(&first).unwrap(),
                        false => fs::write(&first, tree::content(800_000, 9)).unwrap(),
                    }
                }
            });
            let ended = copy(&spec, 2, &weather);
            ended.sent.outcome.unwrap();
            ended.outcome.unwrap();
            assert_others_came(top.path());
            assert!(ended.received.failed.files <= u64::from(is_gone));
        }
    }
}

#[test]
fn names_that_a_copy_without_hard_links_made_become_names_of_one_file() {
    let top = tempfile::tempdir().unwrap();
    let spec = CopySpec {
        hard_links: false,
        ..three_names(top.path())
    };
    let inodes = || ["a", "b", "c"].map(|name| fs::metadata(top.path().join("d").join(name)).unwrap().ino());
    copy(&spec, 2, &Weather::fair()).outcome.unwrap();
    let [first, second, _] = inodes();
    assert_ne!(first, second);
    // What is not the same file as the source has stays: nothing may be overwritten.
    tree::put(&top.path().join("d"), "c", b"somebody's");
    for (dry_run, made) in [(true, 1), (false, 1), (true, 0), (false, 0)] {
        let spec = CopySpec {
            hard_links: true,
            dry_run,
            ..spec.clone()
        };
        let ended = copy(&spec, 2, &Weather::fair());
        ended.outcome.unwrap();
        let report = ended.received;
        assert_eq!((report.made, report.present.files), (made, 1), "{dry_run}");
        assert_eq!((report.failed.files, report.failures[0].path.as_str()), (1, "c"));
    }
    let [first, second, third] = inodes();
    assert!(first == second && second != third);
    assert_eq!(fs::read(top.path().join("d/c")).unwrap(), b"somebody's");
}

#[test]
fn a_dry_run_says_of_further_names_what_a_copy_does() {
    // What is at the destination: "a" and "b" alike or not, one file or two; whether the source has changed since.
    for (first, second, is_one, has_changed) in [
        (true, true, true, false),
        (true, true, true, true),
        (true, true, false, false),
        (true, true, false, true),
        (false, true, false, false),
        (false, true, false, true),
        (true, false, false, true),
        (false, false, false, false),
    ] {
        for overwrite in [Overwrite::Never, Overwrite::Different] {
            let top = tempfile::tempdir().unwrap();
            let (from, to) = (top.path().join("s"), top.path().join("d"));
            for (folder, is_there) in [(&from, true), (&to, false)] {
                fs::create_dir_all(folder).unwrap();
                if is_there || first {
                    tree::put(folder, "a", &tree::content(3_000, 1));
                    tree::dress(&folder.join("a"), 0o644, 1_000, 0);
                }
                if is_there || is_one {
                    fs::hard_link(folder.join("a"), folder.join("b")).unwrap();
                } else if second {
                    tree::put(folder, "b", &tree::content(3_000, 1));
                    tree::dress(&folder.join("b"), 0o644, 1_000, 0);
                }
            }
            if has_changed {
                tree::put(&from, "a", &tree::content(4_000, 2));
            }
            let spec = CopySpec {
                hard_links: true,
                overwrite,
                ..spec(content_of(&from), &to)
            };
            let said = |dry_run| {
                let report = copy(
                    &CopySpec {
                        dry_run,
                        ..spec.clone()
                    },
                    1,
                    &Weather::fair(),
                )
                .received;
                (
                    report.copied.files,
                    report.made,
                    report.present.files,
                    report.failed.files,
                )
            };
            let case = (first, second, is_one, has_changed, overwrite);
            assert_eq!(said(true), said(false), "{case:?}");
        }
    }
}

#[test]
fn a_file_of_another_content_is_not_taken_for_a_further_name() {
    let top = tempfile::tempdir().unwrap();
    let spec = three_names(top.path());
    for (name, seed) in [("a", 1), ("b", 1), ("c", 2)] {
        tree::put(&top.path().join("d"), name, &tree::content(700_000, seed));
        tree::dress(&top.path().join("d").join(name), 0o644, 1_000, 0);
    }
    tree::dress(&top.path().join("x/a"), 0o644, 1_000, 0);
    let ended = copy(&spec, 2, &Weather::fair());
    ended.outcome.unwrap();
    assert_eq!((ended.received.made, ended.received.failed.files), (1, 1));
    assert_eq!(ended.received.failures[0].path, "c");
    assert!(fs::read(top.path().join("d/c")).unwrap() == tree::content(700_000, 2));
}
