//! Copies to file systems that are weaker than a disk of Linux: what they cannot do is found out, and the content arrives.

mod common;
#[path = "../examples/weak_fs/fs.rs"]
mod weak;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::Weather;
use common::pair::{Ended, copy};
use farline_spec::unit::{DeleteCount, ModifyWindowS};
use farline_spec::{Attribute, CopySpec, Overwrite};

/// A source with some of everything, a weak destination, and whoever holds the mount.
struct Place {
    source: tempfile::TempDir,
    mounted: Option<fuser::BackgroundSession>,
    destination: tempfile::TempDir,
}

impl Place {
    fn new(words: &str) -> Self {
        let (source, destination) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(source.path().join("small"), "small").unwrap();
        fs::write(source.path().join("empty"), "").unwrap();
        fs::create_dir(source.path().join("folder")).unwrap();
        fs::create_dir(source.path().join("links")).unwrap();
        fs::write(source.path().join("links/one"), "one").unwrap();
        fs::write(source.path().join("folder/large"), vec![7; 3 << 20]).unwrap();
        if words == "zero-is-now" {
            let empty = fs::File::options().write(true).open(source.path().join("empty"));
            empty.unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        fs::set_permissions(source.path().join("small"), fs::Permissions::from_mode(0o640)).unwrap();
        let mounted = Some(weak::mount(destination.path(), words).expect("a mount, which needs /dev/fuse"));
        Self {
            source,
            mounted,
            destination,
        }
    }

    fn spec(&self) -> CopySpec {
        CopySpec {
            sources: vec![format!("{}/", self.source.path().display())],
            destination: format!("{}/to/", self.destination.path().display()),
            ..CopySpec::default()
        }
    }

    fn copy(&self, spec: &CopySpec) -> Ended {
        copy(spec, 2, &Weather::fair())
    }

    /// How many names lost something.
    fn lost(ended: &Ended, attribute: Attribute) -> u64 {
        let lost = ended.received.not_kept.iter();
        lost.filter(|lost| lost.attribute == attribute)
            .map(|lost| lost.names)
            .sum()
    }

    fn to(&self, name: &str) -> std::path::PathBuf {
        self.destination.path().join("to").join(name)
    }

    fn assert_content(&self) {
        for name in ["small", "empty", "folder/large"] {
            assert_eq!(
                fs::read(self.source.path().join(name)).unwrap(),
                fs::read(self.to(name)).unwrap()
            );
        }
        assert!(
            !self.to(".farline-partial").exists(),
            "nothing is left beside the files"
        );
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Unmounted before the folder that it is mounted at goes.
        drop(self.mounted.take());
    }
}

/// Weaknesses alone and together; whatever they are, the content arrives and a repeat finds it.
const WEAKNESSES: [&str; 39] = [
    "",
    "hides",
    "brings-back",
    "t100ns",
    "t1us",
    "t10ms",
    "t1s",
    "t2s",
    "t2s,nearest",
    "from1980",
    "to2038",
    "refuses-times",
    "ignores-times",
    "both-times",
    "refuses-modes",
    "fixed-modes",
    "no-hard-links",
    "no-rename-flags",
    "no-rename-flags,no-hard-links",
    "no-rename-flags,links-io",
    "no-sync",
    "no-folder-sync",
    "no-direct",
    "no-direct-use",
    "no-locks",
    "short-names",
    "utf8-names",
    "fat-names",
    "ignores-case",
    "no-xattrs",
    "no-growing",
    "changes-numbers",
    "odd-blocks",
    "odd-space",
    "follows-links",
    "lists-twice",
    "zero-is-now",
    "hides,t2s,fixed-modes,no-hard-links,no-rename-flags,fat-names,ignores-case,no-xattrs,no-symlinks",
    "hides,t1s,refuses-modes,no-locks,no-sync,changes-numbers,no-growing,no-link-times",
];

/// Every weakness, in turn on its own mount.
fn each(work: impl Fn(&Place, &str)) {
    for words in WEAKNESSES {
        let place = Place::new(words);
        work(&place, words);
    }
}

fn assert_well(ended: &Ended, words: &str, step: &str) {
    let failures = (&ended.sent.report.failures, &ended.received.failures);
    assert!(
        ended.outcome.is_ok() && ended.sent.outcome.is_ok() && ended.received.failed.files == 0,
        "{words}: {step}: {:?} {:?} {failures:?}",
        ended.outcome,
        ended.sent.outcome
    );
}

#[test]
fn whatever_a_destination_cannot_do_the_content_arrives_and_a_repeat_finds_it() {
    each(|place, words| {
        assert_well(&place.copy(&place.spec()), words, "first");
        place.assert_content();
        let again = place.copy(&place.spec());
        assert_well(&again, words, "again");
        assert_eq!(
            (again.received.present.files, again.received.copied.files),
            (4, 0),
            "{words}"
        );
        place.assert_content();
    });
}

#[test]
fn whatever_a_destination_cannot_do_a_copy_that_was_cut_goes_on() {
    each(|place, words| {
        let cut = copy(&place.spec(), 2, &Weather::cut_after(7));
        assert!(cut.outcome.is_err(), "{words}: it was cut");
        assert_well(&place.copy(&place.spec()), words, "after a cut");
        place.assert_content();
        assert_well(&place.copy(&place.spec()), words, "again after a cut");
    });
}

#[test]
fn whatever_a_destination_cannot_do_what_changed_is_replaced_and_what_went_is_deleted() {
    each(|place, words| {
        assert_well(&place.copy(&place.spec()), words, "first");
        let small = place.source.path().join("small");
        fs::write(&small, "SMALL").unwrap();
        let later = SystemTime::now() + Duration::from_secs(10);
        fs::File::options()
            .write(true)
            .open(&small)
            .unwrap()
            .set_modified(later)
            .unwrap();
        fs::write(place.to("more"), "not of the source").unwrap();
        let spec = CopySpec {
            overwrite: Overwrite::Different,
            delete: DeleteCount::new(1).ok(),
            ..place.spec()
        };
        let ended = place.copy(&spec);
        assert_well(&ended, words, "different, delete");
        assert_eq!(
            (ended.received.copied.files, ended.received.deleted.files),
            (1, 1),
            "{words}"
        );
        assert!(!place.to("more").exists());
        place.assert_content();
    });
}

#[test]
fn nothing_is_left_where_an_unlinked_open_file_lives_on_under_another_name() {
    let place = Place::new("hides");
    place.copy(&place.spec()).assert_well();
    let names = fs::read_dir(place.to("")).unwrap().count();
    assert_eq!(names, 4, "small, empty, folder, links");
    assert!(!Path::new(&place.to(".farline-partial")).exists());
}

#[test]
fn what_could_not_be_kept_is_said_by_kind_and_counted() {
    let of = |words: &str, attribute| {
        let place = Place::new(words);
        Place::lost(&place.copy(&place.spec()), attribute)
    };
    assert_eq!(
        of("", Attribute::Time) + of("", Attribute::Mode) + of("", Attribute::Sync),
        0
    );
    assert_eq!(
        of("t2s", Attribute::Time),
        7,
        "four files, two folders, and the top"
    );
    assert_eq!(of("both-times", Attribute::Time), 0, "they are set together");
    assert_eq!(of("refuses-times", Attribute::Time), 7);
    assert!(of("refuses-modes", Attribute::Mode) > 0 && of("fixed-modes", Attribute::Mode) > 0);
    assert_eq!(of("no-sync", Attribute::Sync), 4);
    assert_eq!(of("no-locks", Attribute::Lock), 1);
}

#[test]
fn a_change_within_a_second_is_one_where_times_are_kept_finely_and_the_window_says_otherwise() {
    let place = Place::new("");
    place.copy(&place.spec()).assert_well();
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let set = |path: &Path, time| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    };
    set(&place.to("small"), second);
    set(
        &place.source.path().join("small"),
        second + Duration::from_millis(300),
    );
    let ended = place.copy(&place.spec());
    assert_eq!(ended.received.failed.files, 1, "{:?}", ended.received.failures);
    let spec = CopySpec {
        modify_window_s: ModifyWindowS::new(0.5).ok(),
        ..place.spec()
    };
    let ended = place.copy(&spec);
    assert_eq!(
        (ended.received.failed.files, ended.received.present.files),
        (0, 4)
    );
}

#[test]
fn further_names_become_files_of_their_own_where_a_file_has_one_name_only() {
    for words in [
        "no-hard-links",
        "no-hard-links,no-rename-flags,t2s",
        "links-io",
        "changes-numbers",
        "",
    ] {
        let place = Place::new(words);
        let further = place.source.path().join("folder/further");
        fs::hard_link(place.source.path().join("folder/large"), &further).unwrap();
        let spec = CopySpec {
            hard_links: true,
            ..place.spec()
        };
        let first = place.copy(&spec);
        assert_well(&first, words, "first");
        assert_eq!(
            fs::read(place.to("folder/further")).unwrap(),
            fs::read(further).unwrap()
        );
        let own = u64::from(words.contains("no-hard-links") || words.contains("links-io"));
        assert_eq!(Place::lost(&first, Attribute::HardLink), own, "{words}");
        assert_well(&place.copy(&spec), words, "again");
    }
}

#[test]
fn a_name_that_the_file_system_does_not_take_fails_alone_and_by_name() {
    for (words, name) in [
        ("fat-names", "a:b"),
        ("fat-names", "dot."),
        ("short-names", "long"),
    ] {
        let place = Place::new(words);
        let name = if name == "long" {
            "n".repeat(150)
        } else {
            name.to_owned()
        };
        fs::write(place.source.path().join(&name), "odd").unwrap();
        fs::write(place.source.path().join("n".repeat(140)), vec![1; 2 << 20]).unwrap();
        let ended = place.copy(&place.spec());
        let failures = &ended.received.failures;
        assert_eq!(failures.len(), 1, "{words}: {failures:?}");
        assert!(failures[0].path.ends_with(&name));
        assert_eq!(
            failures[0].reason.as_deref(),
            Some("the file system does not accept this name")
        );
        place.assert_content();
    }
}

#[test]
fn two_names_that_are_one_at_the_destination_never_replace_each_other() {
    for words in [
        "ignores-case",
        "ignores-case,no-rename-flags",
        "ignores-case,no-rename-flags,no-hard-links",
    ] {
        let place = Place::new(words);
        fs::write(place.source.path().join("SMALL"), "LARGE").unwrap();
        for overwrite in [Overwrite::Never, Overwrite::Different, Overwrite::Always] {
            let spec = CopySpec {
                overwrite,
                ..place.spec()
            };
            let ended = place.copy(&spec);
            assert_eq!(
                ended.received.failed.files, 1,
                "{words} {overwrite:?} {:?}",
                ended.received.failures
            );
            let kept = fs::read_to_string(place.to("small")).unwrap();
            assert!(["small", "LARGE"].contains(&kept.as_str()));
        }
    }
}

#[test]
fn a_device_that_fails_to_sync_is_an_error_and_nothing_gets_its_name() {
    let place = Place::new("broken-sync");
    let ended = place.copy(&place.spec());
    assert!(ended.outcome.is_err() || ended.received.failed.files > 0);
    assert!(!place.to("folder/large").exists());
}

#[test]
fn what_only_closing_a_file_says_is_an_error_and_nothing_gets_its_name() {
    for fsync in [true, false] {
        let place = Place::new("broken-close");
        let spec = CopySpec {
            fsync,
            ..place.spec()
        };
        let ended = place.copy(&spec);
        assert!(ended.outcome.is_err() || ended.received.failed.files == 3);
        for name in ["small", "links/one", "folder/large"] {
            assert!(!place.to(name).exists(), "{name}");
        }
    }
}

#[test]
fn files_arrive_in_a_folder_that_is_another_file_system_than_the_destination() {
    for words in ["", "no-rename-flags,no-hard-links"] {
        let place = Place::new(words);
        fs::write(place.source.path().join("folder/little"), "little").unwrap();
        fs::create_dir_all(place.to("folder")).unwrap();
        let inside = weak::mount(&place.to("folder"), words).unwrap();
        assert_well(&place.copy(&place.spec()), words, "first");
        place.assert_content();
        let again = place.copy(&place.spec());
        assert_eq!(again.received.present.files, 5, "{words}");
        let spec = CopySpec {
            overwrite: Overwrite::Always,
            verify: farline_spec::Verify::ReadBack,
            ..place.spec()
        };
        let ended = place.copy(&spec);
        assert_well(&ended, words, "always");
        assert_eq!(ended.received.copied.files, 5, "{words}");
        place.assert_content();
        let names = fs::read_dir(place.to("folder")).unwrap().count();
        assert_eq!(names, 2, "{words}: large and little alone");
        drop(inside);
    }
}

#[test]
fn a_file_that_is_too_long_for_the_file_system_fails_alone() {
    let place = Place::new("small-files");
    let ended = place.copy(&place.spec());
    assert_eq!(ended.received.failed.files, 1, "{:?}", ended.received.failures);
    assert!(ended.received.failures[0].path.ends_with("large"));
    assert!(place.to("small").exists());
}

#[test]
fn what_links_lead_to_is_left_alone_where_the_file_system_would_set_times_of_that() {
    for words in ["follows-links", "follows-links,both-times"] {
        assert_links_are_not_followed(words);
    }
}

fn assert_links_are_not_followed(words: &str) {
    let place = Place::new(words);
    symlink("small", place.source.path().join("to-small")).unwrap();
    symlink("nowhere", place.source.path().join("to-nowhere")).unwrap();
    let small = place.source.path().join("small");
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_500_000_000);
    let set = fs::File::options().write(true).open(&small).unwrap();
    set.set_modified(old).unwrap();
    for step in ["first", "again"] {
        let ended = place.copy(&place.spec());
        assert_well(&ended, words, step);
        assert_eq!(Place::lost(&ended, Attribute::LinkTime), 2, "{step}");
        assert_eq!(ended.received.updated.files, 0, "{step}");
        let kept = fs::metadata(place.to("small")).unwrap().modified().unwrap();
        assert_eq!(kept, old, "{step}");
    }
}

#[test]
fn a_link_gets_its_time_where_both_times_are_set_or_none() {
    let place = Place::new("both-times");
    symlink("small", place.source.path().join("to-small")).unwrap();
    assert_well(&place.copy(&place.spec()), "both-times", "first");
    let time = |link: &Path| fs::symlink_metadata(link).unwrap().modified().unwrap();
    let wanted = time(&place.source.path().join("to-small"));
    assert_eq!(time(&place.to("to-small")), wanted);
    assert_eq!(place.copy(&place.spec()).received.updated.files, 0);
}

#[test]
fn where_nothing_may_be_deleted_a_copy_ends_well_and_says_what_stays() {
    let place = Place::new("keeps-all");
    for step in ["first", "again"] {
        let ended = place.copy(&place.spec());
        assert_well(&ended, "keeps-all", step);
        assert_eq!(Place::lost(&ended, Attribute::Staging), 1, "{step}");
        assert!(
            ended.received.problems.is_empty(),
            "{step}: {:?}",
            ended.received.problems
        );
    }
    let small = place.source.path().join("folder/large");
    fs::write(&small, vec![9; 4 << 20]).unwrap();
    let spec = CopySpec {
        overwrite: Overwrite::Different,
        ..place.spec()
    };
    assert_well(&place.copy(&spec), "keeps-all", "different");
    assert_eq!(
        fs::read(place.to("folder/large")).unwrap(),
        fs::read(&small).unwrap()
    );
}

#[test]
fn a_link_fails_with_what_to_do_where_links_are_refused_with_an_input_output_error() {
    let place = Place::new("links-io");
    symlink("small", place.source.path().join("to-small")).unwrap();
    let ended = place.copy(&place.spec());
    let failures = &ended.received.failures;
    assert_eq!(failures.len(), 1, "{failures:?}");
    assert!(failures[0].reason.as_deref().unwrap().contains("--links skip"));
    place.assert_content();
}

#[test]
fn attributes_that_a_file_system_has_not_are_left_out_and_counted() {
    for words in ["no-xattrs", "links-io"] {
        assert_xattrs_are_left_out(words);
    }
}

fn assert_xattrs_are_left_out(words: &str) {
    let place = Place::new(words);
    let folder = Place::new("");
    let from = folder.destination.path().join("a");
    fs::write(&from, "content").unwrap();
    let file = fs::File::open(&from).unwrap();
    farline_sys::file::set_xattr(std::os::fd::AsFd::as_fd(&file), b"user.note", b"value").unwrap();
    let spec = CopySpec {
        sources: vec![format!("{}/", folder.destination.path().display())],
        xattrs: true,
        ..place.spec()
    };
    let ended = place.copy(&spec);
    assert_well(&ended, words, "first");
    assert_eq!(Place::lost(&ended, Attribute::Xattr), 1);
    assert_well(&place.copy(&spec), words, "again");
}

#[test]
fn a_weak_file_system_is_read_as_any_other() {
    for words in WEAKNESSES {
        let place = Place::new("");
        let from = Place::new(words);
        let file = from.destination.path().join("file");
        if fs::write(&file, vec![3; 1 << 20]).is_err() {
            continue;
        }
        let spec = CopySpec {
            sources: vec![format!("{}/", from.destination.path().display())],
            ..place.spec()
        };
        assert_well(&place.copy(&spec), words, "read");
        assert_eq!(fs::read(place.to("file")).unwrap().len(), 1 << 20, "{words}");
        assert_well(&place.copy(&spec), words, "read again");
    }
}
