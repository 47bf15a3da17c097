//! What callers may rely on of files by descriptor, on whatever file system temporary files are.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use farline_sys::file::{self, FileKind, OpenFlags};
use tempfile::TempDir;

struct Place {
    folder: TempDir,
    open: OwnedFd,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().as_bytes();
        let flags = OpenFlags::READ | OpenFlags::FOLDER;
        let open = file::open_at(None, path, flags, 0).unwrap();
        Self { folder, open }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.open.as_fd()
    }

    fn make(&self, name: &str, content: &[u8]) -> File {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        File::options().read(true).write(true).open(path).unwrap()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = file::list(self.fd())
            .unwrap()
            .map(|listed| listed.unwrap())
            .collect();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        let text = |listed: file::Listed| String::from_utf8(listed.name).unwrap();
        names.into_iter().map(text).collect()
    }
}

#[test]
fn a_nameless_file_gets_its_name_once_and_replaces_nothing() {
    let place = Place::new();
    let flags = OpenFlags::NAMELESS | OpenFlags::READ_WRITE;
    let nameless = match file::open_beneath(place.fd(), b".", flags, 0o640) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
        result => result.unwrap(),
    };
    file::write_all_at(nameless.as_fd(), b"content", 0).unwrap();
    assert!(fs::read_dir(place.folder.path()).unwrap().next().is_none());
    file::link_fd(nameless.as_fd(), place.fd(), b"name").unwrap();
    assert_eq!(place.read("name"), b"content");
    let other = file::open_beneath(place.fd(), b".", flags, 0o640).unwrap();
    let error = file::link_fd(other.as_fd(), place.fd(), b"name").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(place.read("name"), b"content");
    file::make_folder(place.fd(), b"gone", 0o700).unwrap();
    let gone = file::open_at(Some(place.fd()), b"gone", OpenFlags::READ | OpenFlags::FOLDER, 0).unwrap();
    file::remove_folder(place.fd(), b"gone").unwrap();
    let error = file::link_fd(other.as_fd(), gone.as_fd(), b"name").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    file::link_fd(other.as_fd(), place.fd(), b"other").unwrap();
}

#[test]
fn a_rename_replaces_only_where_it_is_told_to() {
    let place = Place::new();
    place.make("old", b"old");
    place.make("new", b"new");
    let error = file::rename(place.fd(), b"new", place.fd(), b"old", false).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(place.read("old"), b"old");
    file::rename(place.fd(), b"new", place.fd(), b"old", true).unwrap();
    assert_eq!(place.read("old"), b"new");
    file::rename(place.fd(), b"old", place.fd(), b"free", false).unwrap();
    file::hard_link(place.fd(), b"free", place.fd(), b"twin").unwrap();
    assert_eq!(place.names(), ["free", "twin"]);
    let facts = file::stat_at(Some(place.fd()), b"twin", false).unwrap();
    assert_eq!((facts.links, facts.bytes, facts.kind), (2, 3, FileKind::File));
    file::unlink(place.fd(), b"free").unwrap();
    assert_eq!(place.read("twin"), b"new");
}

#[test]
fn paths_are_held_below_a_folder_and_links_are_refused_where_there_may_be_none() {
    let place = Place::new();
    fs::create_dir_all(place.folder.path().join("in/deep")).unwrap();
    place.make("in/deep/file", b"x");
    symlink("deep", place.folder.path().join("in/link")).unwrap();
    symlink("/etc", place.folder.path().join("in/out")).unwrap();
    symlink("/proc/self/root", place.folder.path().join("in/magic")).unwrap();
    let open = |path: &[u8]| file::open_beneath(place.fd(), path, OpenFlags::READ, 0).map(drop);
    open(b"in/deep/file").unwrap();
    open(b"in/link/file").unwrap();
    for path in [&b"../x"[..], b"/etc/hosts", b"in/out/hosts", b"in/magic/etc"] {
        assert_eq!(open(path).unwrap_err().kind(), io::ErrorKind::CrossesDevices);
    }
    let strict = |path: &[u8]| file::open_without_links(place.fd(), path, OpenFlags::READ, 0).map(drop);
    strict(b"in/deep/file").unwrap();
    for path in [&b"in/link/file"[..], b"in/link"] {
        assert_eq!(strict(path).unwrap_err().raw_os_error(), Some(40), "ELOOP");
    }
    assert_eq!(open(b"a\0b").unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn a_folder_of_many_names_of_any_bytes_is_listed_whole() {
    let place = Place::new();
    let mut made: Vec<Vec<u8>> = (0..5000).map(|n| format!("{n:0>200}").into_bytes()).collect();
    made.extend([b"\xff\xfe\n".to_vec(), b"...".to_vec(), vec![b'x'; 255]]);
    for name in &made {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUSIVE;
        file::open_at(Some(place.fd()), name, flags, 0o600).unwrap();
    }
    file::make_link(b"no/where", place.fd(), b"link").unwrap();
    file::make_folder(place.fd(), b"folder", 0o755).unwrap();
    let listed: Vec<_> = file::list(place.fd())
        .unwrap()
        .map(|listed| listed.unwrap())
        .collect();
    let kind_of = |name: &[u8]| listed.iter().find(|listed| listed.name == name).unwrap().kind;
    assert!([None, Some(FileKind::Link)].contains(&kind_of(b"link")));
    assert!([None, Some(FileKind::Folder)].contains(&kind_of(b"folder")));
    assert!([None, Some(FileKind::File)].contains(&kind_of(b"...")));
    // Whoever lists a folder finds all of it, whatever was listed through the same descriptor before.
    assert_eq!(file::list(place.fd()).unwrap().count(), listed.len());
    made.extend([b"link".to_vec(), b"folder".to_vec()]);
    let mut names: Vec<_> = listed.into_iter().map(|listed| listed.name).collect();
    names.sort();
    made.sort();
    assert_eq!(names, made);
    assert_eq!(file::read_link(place.fd(), b"link").unwrap(), b"no/where");
    let flags = OpenFlags::PATH | OpenFlags::NO_FOLLOW;
    let link = file::open_at(Some(place.fd()), b"link", flags, 0).unwrap();
    assert_eq!(file::read_link(link.as_fd(), b"").unwrap(), b"no/where");
    assert_eq!(file::stat_fd(link.as_fd()).unwrap().kind, FileKind::Link);
}

#[test]
fn facts_are_those_that_the_standard_library_finds() {
    let place = Place::new();
    let file = place.make("file", &[7; 10_000]);
    symlink("file", place.folder.path().join("link")).unwrap();
    let (facts, known) = (file::stat_fd(file.as_fd()).unwrap(), file.metadata().unwrap());
    assert_eq!(facts.mtime_ns, known.mtime() * 1_000_000_000 + known.mtime_nsec());
    assert_eq!(facts.ctime_ns, known.ctime() * 1_000_000_000 + known.ctime_nsec());
    assert_eq!((facts.device, facts.inode), (known.dev(), known.ino()));
    assert_eq!((facts.bytes, facts.blocks_512), (10_000, known.blocks()));
    assert_eq!(facts.mode, known.mode() & 0o7777);
    assert_eq!(file::stat_at(Some(place.fd()), b"link", true).unwrap(), facts);
    let link = file::stat_at(Some(place.fd()), b"link", false).unwrap();
    assert_eq!(link.kind, FileKind::Link);
    let folder = file::stat_fd(place.fd()).unwrap();
    assert_eq!(folder.kind, FileKind::Folder);
}

#[test]
fn times_and_modes_are_set_to_the_nanosecond_and_bit() {
    let place = Place::new();
    let open = place.make("file", b"");
    file::make_link(b"file", place.fd(), b"link").unwrap();
    for mtime_ns in [-1, 0, 1_700_000_000_123_456_789] {
        file::set_times(open.as_fd(), mtime_ns).unwrap();
        file::set_times_at(place.fd(), b"link", mtime_ns + 1).unwrap();
        let facts = file::stat_fd(open.as_fd()).unwrap();
        assert_eq!(facts.mtime_ns, mtime_ns);
        let link = file::stat_at(Some(place.fd()), b"link", false).unwrap();
        assert_eq!(link.mtime_ns, mtime_ns + 1);
    }
    let only_a_path = file::open_at(Some(place.fd()), b"file", OpenFlags::PATH, 0).unwrap();
    for (fd, mode) in [(open.as_fd(), 0o604), (only_a_path.as_fd(), 0o4711)] {
        file::set_mode(fd, mode).unwrap();
        file::set_times(fd, 5).unwrap();
        let facts = file::stat_fd(fd).unwrap();
        assert_eq!((facts.mode, facts.mtime_ns), (mode, 5));
        assert_eq!(open.metadata().unwrap().permissions().mode() & 0o7777, mode);
    }
}

#[test]
fn extended_attributes_come_back_and_have_a_limit() {
    let place = Place::new();
    let open = place.make("file", b"");
    let all = |most_bytes| file::get_xattrs(open.as_fd(), |_| true, most_bytes);
    assert_eq!(all(100).unwrap(), []);
    let value = vec![0xff; 1000];
    match file::set_xattr(open.as_fd(), b"user.one", &value) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
        result => result.unwrap(),
    }
    file::set_xattr(open.as_fd(), b"user.empty", b"").unwrap();
    let mut found = all(64 << 10).unwrap();
    found.sort();
    let expected = [
        (b"user.empty".to_vec(), Vec::new()),
        (b"user.one".to_vec(), value),
    ];
    assert_eq!(found, expected);
    let whole = b"user.oneuser.empty".len() + 1000;
    assert_eq!(all(whole).unwrap().len(), 2);
    let wanted = file::get_xattrs(open.as_fd(), |name| name == b"user.empty", 10).unwrap();
    assert_eq!(wanted, expected[..1], "what is not wanted takes no room");
    for too_few in [0, 5, whole - 1] {
        let error = all(too_few).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{too_few}");
    }
}

#[test]
fn holes_are_found_and_made() {
    let place = Place::new();
    let open = place.make("file", b"");
    let fd = open.as_fd();
    file::set_length(fd, 4 << 20).unwrap();
    file::write_all_at(fd, &[1; 65_536], 1 << 20).unwrap();
    let first = file::data_after(fd, 0).unwrap();
    // A file system that knows no holes says that all is data.
    if first == Some(1 << 20) {
        assert_eq!(file::hole_after(fd, 1 << 20).unwrap(), (1 << 20) + 65_536);
        assert_eq!(file::data_after(fd, 2 << 20).unwrap(), None);
        file::punch(fd, 1 << 20, 65_536).unwrap();
        assert_eq!(file::data_after(fd, 0).unwrap(), None);
    } else {
        assert_eq!(first, Some(0));
    }
    assert!(file::hole_after(fd, 4 << 20).is_err(), "behind the end");
    assert_eq!(file::stat_fd(fd).unwrap().bytes, 4 << 20);
    let mut room = vec![9; 5 << 20];
    assert_eq!(file::read_at(fd, &mut room, 0).unwrap(), 4 << 20);
    assert_eq!(file::read_at(fd, &mut room[..10], 4 << 20).unwrap(), 0);
}

#[test]
fn room_that_there_is_not_is_refused_before_anything_is_written() {
    let place = Place::new();
    let open = place.make("file", b"x");
    match file::allocate(open.as_fd(), 0, 1 << 20) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
        result => result.unwrap(),
    }
    assert!(file::stat_fd(open.as_fd()).unwrap().blocks_512 >= 2048);
    assert_eq!(open.metadata().unwrap().len(), 1);
    let error = file::allocate(open.as_fd(), 0, 1 << 50).unwrap_err();
    let kinds = [io::ErrorKind::StorageFull, io::ErrorKind::FileTooLarge];
    assert!(kinds.contains(&error.kind()), "{error}");
    file::allocate(open.as_fd(), 0, 0).unwrap();
}

#[test]
fn what_was_written_can_be_synced_forgotten_and_read_again() {
    let place = Place::new();
    let open = place.make("file", &[3; 100_000]);
    let fd = open.as_fd();
    file::start_writeback(fd, 0, 100_000).unwrap();
    file::sync_data(fd).unwrap();
    file::sync_file(place.fd()).unwrap();
    file::sync_file_system(fd).unwrap();
    // Kernels before 6.5 do not tell.
    if let Ok(bytes) = file::cached_bytes(fd) {
        assert!(bytes >= 100_000, "{bytes}");
    }
    file::forget(fd, 0, 0).unwrap();
    let again = file::reopen(fd, OpenFlags::READ).unwrap();
    assert_eq!(file::stat_fd(again.as_fd()).unwrap(), file::stat_fd(fd).unwrap());
    file::sequential(fd).unwrap();
    file::will_read(fd, 0, 50_000).unwrap();
    assert_eq!(place.read("file"), [3; 100_000]);
    assert!(file::start_writeback(fd, u64::MAX, 1).is_err());
}

#[test]
fn a_lock_is_held_by_one_and_goes_with_it() {
    let place = Place::new();
    let (one, other) = (place.make("lock", b""), place.make("lock", b""));
    assert!(file::lock_exclusive(one.as_fd()).unwrap());
    assert!(!file::lock_exclusive(other.as_fd()).unwrap());
    drop(one);
    assert!(file::lock_exclusive(other.as_fd()).unwrap());
}

#[test]
fn file_systems_have_their_names() {
    let proc = File::open("/proc/self/status").unwrap();
    assert_eq!(file::file_system(proc.as_fd()).unwrap(), "proc");
    let place = Place::new();
    let name = file::file_system(place.fd()).unwrap();
    let table = fs::read_to_string(format!("/proc/self/fdinfo/{}", place.open.as_raw_fd())).unwrap();
    let mount = table
        .lines()
        .find_map(|line| line.strip_prefix("mnt_id:"))
        .unwrap()
        .trim();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts
        .lines()
        .find(|line| line.split(' ').next() == Some(mount))
        .unwrap();
    let known = line.split(" - ").nth(1).unwrap().split(' ').next().unwrap();
    // One number for all of the ext family, one for everything through FUSE.
    let family = |name: &str| {
        name.trim_end_matches(|c: char| c.is_ascii_digit())
            .split('.')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(family(&name), family(known));
}
