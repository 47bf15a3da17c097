//! What one may rely on, beneath real folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

const ALWAYS: &dyn Fn() -> bool = &|| true;

fn names(folder: &Path, read: bool, write: bool) -> Names {
    let root = Root::beneath(folder).unwrap();
    Names::new(root, NameRights { read, write }, None)
}

fn stat(path: &str, follow: bool) -> NameRequest {
    NameRequest::Stat {
        path: path.into(),
        follow,
        sums: vec![],
    }
}

fn remove(path: &str, recursive: bool) -> NameRequest {
    NameRequest::Remove {
        path: path.into(),
        recursive,
    }
}

fn rename(path: &str, to: &str) -> NameRequest {
    NameRequest::Rename {
        path: path.into(),
        to: to.into(),
        replace: false,
        parents: false,
    }
}

fn make(path: &str, parents: bool) -> NameRequest {
    NameRequest::MakeFolder {
        path: path.into(),
        parents,
    }
}

fn read(path: &str, offset: u64, bytes: u64) -> NameRequest {
    NameRequest::Read {
        path: path.into(),
        offset,
        bytes,
    }
}

fn reason(answer: &NameAnswer) -> NameRefusal {
    match answer {
        NameAnswer::Refused { reason, message } => {
            assert!(!message.is_empty() && !message.contains("os error"), "{message}");
            *reason
        }
        answer => panic!("not refused: {answer:?}"),
    }
}

fn facts(answer: NameAnswer) -> NameFacts {
    match answer {
        NameAnswer::Facts { facts } => facts,
        answer => panic!("no facts: {answer:?}"),
    }
}

fn listed(names: &mut Names, path: &str) -> Vec<NameFacts> {
    let (mut all, mut after) = (vec![], None);
    loop {
        let path = path.into();
        let NameAnswer::Names { names: found, more } =
            names.answer(&NameRequest::List { path, after }, ALWAYS)
        else {
            panic!("not listed");
        };
        after = found.last().map(|facts| facts.name.clone());
        all.extend(found);
        if !more {
            return all;
        }
    }
}

#[test]
fn nothing_is_done_outside_the_root() {
    let outer = tempfile::tempdir().unwrap();
    let inner = outer.path().join("root");
    fs::create_dir(&inner).unwrap();
    fs::write(outer.path().join("secret"), "secret").unwrap();
    fs::create_dir(outer.path().join("folder")).unwrap();
    fs::write(outer.path().join("folder/kept"), "kept").unwrap();
    symlink(outer.path(), inner.join("out")).unwrap();
    symlink("../secret", inner.join("link")).unwrap();
    fs::write(inner.join("own"), "own").unwrap();
    let mut names = names(&inner, true, true);
    let requests = [
        stat("../secret", true),
        stat("link", true),
        stat("out/secret", false),
        read("link", 0, 9),
        read("out/secret", 0, 9),
        remove("../secret", false),
        remove("out/folder", true),
        rename("own", "../own"),
        rename("own", "out/own"),
        rename("out/secret", "stolen"),
        make("../new", false),
        make("out/new/below", true),
        NameRequest::List {
            path: "out".into(),
            after: None,
        },
    ];
    for request in requests {
        let answer = names.answer(&request, ALWAYS);
        assert_eq!(reason(&answer), NameRefusal::Outside, "{request:?}");
    }
    // The link itself is inside, and where it leads is not looked at.
    let link = facts(names.answer(&stat("link", false), ALWAYS));
    assert_eq!(
        (link.kind, link.target.as_deref(), link.target_kind),
        (NameKind::Link, Some("../secret"), None)
    );
    assert_eq!(
        names.answer(&remove("out", true), ALWAYS),
        NameAnswer::Done { count: 1 }
    );
    assert!(outer.path().join("folder/kept").exists() && outer.path().join("secret").exists());
    assert!(inner.join("own").exists() && !outer.path().join("new").exists());
}

#[test]
fn the_root_itself_is_neither_renamed_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a")).unwrap();
    let mut names = names(folder.path(), true, true);
    for path in ["", "/", "//", ".", "a/.", "a/..", "a/../.."] {
        let removed = names.answer(&remove(path, true), ALWAYS);
        assert_eq!(reason(&removed), NameRefusal::Invalid, "{path:?}");
        assert_eq!(
            reason(&names.answer(&rename(path, "b"), ALWAYS)),
            NameRefusal::Invalid
        );
    }
    let root = facts(names.answer(&stat("", false), ALWAYS));
    assert_eq!((root.name.as_str(), root.kind), ("", NameKind::Folder));
}

#[test]
fn a_ticket_gives_its_own_rights_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "content").unwrap();
    let mut reader = names(folder.path(), true, false);
    for request in [remove("a", false), rename("a", "b"), make("c", true)] {
        assert_eq!(reason(&reader.answer(&request, ALWAYS)), NameRefusal::NotAllowed);
    }
    let mut writer = names(folder.path(), false, true);
    assert_eq!(
        reason(&writer.answer(&read("a", 0, 9), ALWAYS)),
        NameRefusal::NotAllowed
    );
    assert_eq!(facts(writer.answer(&stat("a", false), ALWAYS)).bytes, 7);
    assert_eq!(
        writer.answer(&rename("a", "b"), ALWAYS),
        NameAnswer::Done { count: 1 }
    );
}

#[test]
fn nothing_is_replaced_unless_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a"), "a").unwrap();
    fs::write(path("b"), "b").unwrap();
    fs::create_dir_all(path("d/below")).unwrap();
    let mut names = names(folder.path(), true, true);
    assert_eq!(
        reason(&names.answer(&rename("a", "b"), ALWAYS)),
        NameRefusal::Exists
    );
    assert_eq!(
        reason(&names.answer(&rename("d", "d/below/d"), ALWAYS)),
        NameRefusal::Invalid
    );
    assert_eq!(
        reason(&names.answer(&rename("none", "new/none"), ALWAYS)),
        NameRefusal::NotFound
    );
    let deep = NameRequest::Rename {
        path: "a".into(),
        to: "new/folders/a".into(),
        replace: false,
        parents: true,
    };
    assert_eq!(names.answer(&deep, ALWAYS), NameAnswer::Done { count: 1 });
    let over = NameRequest::Rename {
        path: "new/folders/a".into(),
        to: "b".into(),
        replace: true,
        parents: false,
    };
    assert_eq!(names.answer(&over, ALWAYS), NameAnswer::Done { count: 1 });
    assert_eq!(fs::read_to_string(path("b")).unwrap(), "a");
    assert_eq!(
        reason(&names.answer(&make("b", true), ALWAYS)),
        NameRefusal::Exists
    );
    assert_eq!(
        reason(&names.answer(&make("b/c", true), ALWAYS)),
        NameRefusal::NotAFolder
    );
    assert_eq!(
        reason(&names.answer(&make("d", false), ALWAYS)),
        NameRefusal::Exists
    );
    assert_eq!(
        names.answer(&make("d", true), ALWAYS),
        NameAnswer::Done { count: 0 }
    );
    assert_eq!(
        names.answer(&make("x/y/z/", true), ALWAYS),
        NameAnswer::Done { count: 3 }
    );
    assert_eq!(
        reason(&names.answer(&make("p/q", false), ALWAYS)),
        NameRefusal::NotFound
    );
}

#[test]
fn a_folder_goes_with_what_is_in_it_only_if_that_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().join("top");
    for number in 0..300 {
        let below = top.join(format!("{}/{}", number % 7, number % 5));
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join(number.to_string()), "x").unwrap();
    }
    symlink("..", top.join("up")).unwrap();
    let mut names = names(folder.path(), true, true);
    assert_eq!(
        reason(&names.answer(&remove("top", false), ALWAYS)),
        NameRefusal::NotEmpty
    );
    assert_eq!(
        reason(&names.answer(&remove("none", true), ALWAYS)),
        NameRefusal::NotFound
    );
    let stopped = names.answer(&remove("top", true), &|| false);
    assert_eq!(reason(&stopped), NameRefusal::System);
    // Files, folders of two levels, the link, the folder itself.
    let all = 300 + 35 + 7 + 1 + 1;
    assert_eq!(
        names.answer(&remove("top", true), ALWAYS),
        NameAnswer::Done { count: all }
    );
    assert!(!top.exists() && folder.path().exists());
    fs::create_dir(folder.path().join("empty")).unwrap();
    assert_eq!(
        names.answer(&remove("empty/", false), ALWAYS),
        NameAnswer::Done { count: 1 }
    );
}

#[test]
fn large_folders_come_in_parts_and_names_of_any_bytes_are_found_again() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    for number in 0..MOST_LISTED * 2 + 3 {
        fs::write(folder.path().join(format!("{number:06}")), "").unwrap();
    }
    let odd = [b"odd\xff".as_slice(), b"\n"].concat();
    fs::write(folder.path().join(std::ffi::OsStr::from_bytes(&odd)), "odd").unwrap();
    let mut names = names(folder.path(), true, false);
    let all = listed(&mut names, "");
    assert_eq!(all.len(), MOST_LISTED * 2 + 4);
    assert!(all.is_sorted_by(|a, b| a.name < b.name));
    let last = all.last().unwrap();
    assert_eq!(last.name, to_text(&odd));
    assert_eq!(facts(names.answer(&stat(&last.name, true), ALWAYS)).bytes, 3);
}

#[test]
fn one_answer_with_the_longest_names_fits_in_a_frame() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..MOST_LISTED {
        // Each byte takes four letters, and a backslash of them two in JSON.
        let name = [format!("{number:05}").as_bytes(), &[0x01; 250]].concat();
        use std::os::unix::ffi::OsStrExt;
        fs::write(folder.path().join(std::ffi::OsStr::from_bytes(&name)), "").unwrap();
    }
    let mut names = names(folder.path(), true, false);
    let answer = names.answer(
        &NameRequest::List {
            path: String::new(),
            after: None,
        },
        ALWAYS,
    );
    assert!(serde_json::to_string(&answer).unwrap().len() < 1 << 20);
    assert_eq!(listed(&mut names, "").len(), MOST_LISTED);
}

#[test]
fn ranges_are_read_as_they_are_and_within_the_ticket() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..MOST_READ_BYTES + 5).map(|at| (at % 251) as u8).collect();
    fs::write(folder.path().join("a"), &content).unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    let root = Root::beneath(folder.path()).unwrap();
    let rights = NameRights {
        read: true,
        write: false,
    };
    let mut names = Names::new(root, rights, Some(MOST_READ_BYTES + 100));
    let bytes = |answer| match answer {
        NameAnswer::Bytes { data, file_bytes } => {
            assert_eq!(file_bytes, content.len() as u64);
            data
        }
        answer => panic!("{answer:?}"),
    };
    assert_eq!(
        bytes(names.answer(&read("a", 0, u64::MAX), ALWAYS)),
        content[..MOST_READ_BYTES as usize]
    );
    assert_eq!(
        bytes(names.answer(&read("a", MOST_READ_BYTES, 99), ALWAYS)).len(),
        5
    );
    assert!(bytes(names.answer(&read("a", u64::MAX, 9), ALWAYS)).is_empty());
    assert_eq!(
        reason(&names.answer(&read("a", 0, 200), ALWAYS)),
        NameRefusal::Limit
    );
    assert_eq!(
        reason(&names.answer(&read("d", 0, 1), ALWAYS)),
        NameRefusal::IsAFolder
    );
    assert_eq!(
        reason(&names.answer(&read("none", 0, 1), ALWAYS)),
        NameRefusal::NotFound
    );
}

#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.path().join("pipe"))
        .status();
    assert!(made.unwrap().success());
    let mut names = names(folder.path(), true, false);
    assert_eq!(
        reason(&names.answer(&read("pipe", 0, 1), ALWAYS)),
        NameRefusal::Invalid
    );
    assert_eq!(
        facts(names.answer(&stat("pipe", true), ALWAYS)).kind,
        NameKind::Other
    );
}

#[test]
fn sums_are_those_of_the_usual_tools() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "Wikipedia").unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    let mut names = names(folder.path(), false, true);
    let sums = |path: &str, names: &mut Names| {
        let request = NameRequest::Stat {
            path: path.into(),
            follow: false,
            sums: vec![NameSum::Md5, NameSum::Adler32, NameSum::Blake3],
        };
        facts(names.answer(&request, ALWAYS)).sums
    };
    let a = sums("a", &mut names);
    // RFC 1950's own example in many texts; md5sum's and b3sum's word.
    assert_eq!(a[&NameSum::Adler32], "11e60398");
    assert_eq!(a[&NameSum::Md5], "9c677286866aad38f8e9b660f5411814");
    assert_eq!(a[&NameSum::Blake3], blake3::hash(b"Wikipedia").to_hex().as_str());
    let empty = sums("empty", &mut names);
    assert_eq!(empty[&NameSum::Adler32], "00000001");
    assert_eq!(empty[&NameSum::Md5], "d41d8cd98f00b204e9800998ecf8427e");
    let wanted = NameRequest::Stat {
        path: "a".into(),
        follow: false,
        sums: vec![NameSum::Md5],
    };
    assert_eq!(reason(&names.answer(&wanted, &|| false)), NameRefusal::System);
}

#[test]
fn what_the_system_forbids_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let shut = folder.path().join("shut");
    fs::create_dir(&shut).unwrap();
    fs::write(shut.join("a"), "a").unwrap();
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o500)).unwrap();
    let mut names = names(folder.path(), true, true);
    let answer = names.answer(&remove("shut/a", false), ALWAYS);
    fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
    // Root may do everything.
    if shut.join("a").exists() {
        assert_eq!(reason(&answer), NameRefusal::NoPermission);
    }
    let long = "x".repeat(300);
    assert_eq!(
        reason(&names.answer(&make(&long, false), ALWAYS)),
        NameRefusal::Invalid
    );
    assert_eq!(
        reason(&names.answer(&make("a\\q", false), ALWAYS)),
        NameRefusal::Invalid
    );
    assert_eq!(
        reason(&names.answer(&stat(&"x/".repeat(4000), true), ALWAYS)),
        NameRefusal::Invalid
    );
}
