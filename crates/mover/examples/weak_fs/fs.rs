//! A file system in memory that can be told what it cannot do: for trials of what a copy makes of destinations and sources that
//! are weaker than a disk of Linux.
//!
//! Start with [`mount`]; the words of the weaknesses are in `tree.rs` and below, each where it bites.

#[path = "tree.rs"]
mod tree;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
    Request, TimeOrNow, WriteFlags,
};

use tree::{Content, Tree, Weak};

/// Nothing is remembered by the kernel: each look comes here.
const NOT_KEPT: Duration = Duration::ZERO;
/// `O_DIRECT` of this architecture's asm/fcntl.h.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") {
    0x10000
} else {
    0x4000
};
const O_TRUNC: i32 = 0o1000;
/// Largest file of a file system that has such a limit.
const MOST_BYTES: u64 = 1 << 20;

/// Mounts one at `place` until what is given is dropped.
///
/// # Errors
/// The kernel's.
pub fn mount(place: &Path, words: &str) -> io::Result<BackgroundSession> {
    let weak = Weak::of(words);
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("weak".to_owned())];
    let file_system = WeakFs {
        tree: Mutex::new(Tree::new(weak.clone())),
        weak,
    };
    fuser::spawn_mount(file_system, place, &config)
}

struct WeakFs {
    tree: Mutex<Tree>,
    weak: Weak,
}

impl WeakFs {
    fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entry(reply: ReplyEntry, made: Result<FileAttr, Errno>) {
        match made {
            Ok(attributes) => reply.entry(&NOT_KEPT, &attributes, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn made(&self, parent: INodeNo, name: &OsStr, content: Content, mode: u32) -> Result<FileAttr, Errno> {
        let mut tree = self.tree();
        let number = tree.make(number_of(parent), name.as_bytes(), content, mode)?;
        tree.attributes(number)
    }

    fn opened(&self, ino: INodeNo, flags: i32) -> Result<u64, Errno> {
        if flags & O_DIRECT != 0 {
            self.weak.refuses("no-direct", Errno::EINVAL)?;
        }
        let mut tree = self.tree();
        let number = number_of(ino);
        tree.node(number)?.opens += 1;
        if flags & O_TRUNC != 0 {
            tree.bytes(number)?.clear();
        }
        Ok(number)
    }

    fn resize(&self, tree: &mut Tree, number: u64, bytes: u64) -> Result<(), Errno> {
        if self.weak.is("small-files") && bytes > MOST_BYTES {
            return Err(Errno::EFBIG);
        }
        let content = tree.bytes(number)?;
        if bytes > content.len() as u64 {
            self.weak.refuses("no-growing", Errno::EOPNOTSUPP)?;
        }
        content.resize(bytes as usize, 0);
        Ok(())
    }

    fn write_to(&self, number: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        if self.weak.is("small-files") && offset + data.len() as u64 > MOST_BYTES {
            return Err(Errno::EFBIG);
        }
        let mut tree = self.tree();
        let content = tree.bytes(number)?;
        let (start, end) = (offset as usize, offset as usize + data.len());
        if end > content.len() {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(data);
        tree.node(number)?.mtime_ns = tree::ns_of(SystemTime::now());
        Ok(())
    }

    fn set(
        &self,
        ino: INodeNo,
        mode: Option<u32>,
        size: Option<u64>,
        mtime: Option<TimeOrNow>,
    ) -> Result<FileAttr, Errno> {
        let number = number_of(ino);
        let mut tree = self.tree();
        if let Some(mode) = mode {
            self.weak.refuses("refuses-modes", Errno::EPERM)?;
            if !self.weak.is("fixed-modes") {
                tree.node(number)?.mode = mode as u16 & 0o7777;
            }
        }
        if let Some(size) = size {
            self.resize(&mut tree, number, size)?;
        }
        if let Some(mtime) = mtime {
            let time = match mtime {
                TimeOrNow::SpecificTime(time) => time,
                TimeOrNow::Now => SystemTime::now(),
            };
            let is_link = matches!(tree.node(number)?.content, Content::Link(_));
            if is_link {
                self.weak.refuses("no-link-times", Errno::EOPNOTSUPP)?;
            }
            let follows = is_link && self.weak.is("follows-links");
            let whose = if follows { tree.led_to(number)? } else { number };
            tree.set_time(whose, tree::ns_of(time))?;
        }
        tree.attributes(number)
    }
}

/// The number of a node: above it may be how often it was looked at.
fn number_of(ino: INodeNo) -> u64 {
    ino.0 & 0xffff_ffff
}

fn done(reply: ReplyEmpty, result: Result<(), Errno>) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for WeakFs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        if self.weak.is("no-locks") {
            // Locks come here, and nobody answers for them.
            let _ = config.add_capabilities(InitFlags::FUSE_FLOCK_LOCKS | InitFlags::FUSE_POSIX_LOCKS);
        }
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = self.tree();
        let found = tree.find(number_of(parent), name.as_bytes());
        Self::entry(reply, found.and_then(|number| tree.attributes(number)));
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.tree().attributes(number_of(ino)) {
            Ok(attributes) => reply.attr(&NOT_KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        // As of old, where a file system of users is told both times or none.
        let is_told = atime.is_some() || !self.weak.is("both-times");
        match self.set(ino, mode, size, mtime.filter(|_| is_told)) {
            Ok(attributes) => reply.attr(&NOT_KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        match self.tree().node(number_of(ino)).map(|node| &node.content) {
            Ok(Content::Link(target)) => reply.data(target),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let folder = Content::Folder(std::collections::BTreeMap::new());
        Self::entry(reply, self.made(parent, name, folder, mode & !umask));
    }

    fn unlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let may = self.weak.refuses("keeps-all", Errno::EPERM);
        let unnamed = || self.tree().unname(number_of(parent), name.as_bytes(), false);
        done(reply, may.and_then(|()| unnamed()));
    }

    fn rmdir(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let may = self.weak.refuses("keeps-all", Errno::EPERM);
        let unnamed = || self.tree().unname(number_of(parent), name.as_bytes(), true);
        done(reply, may.and_then(|()| unnamed()));
    }

    fn symlink(&self, _req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let refused = self.weak.refuses("no-symlinks", Errno::EPERM);
        let refused = refused.and_then(|()| self.weak.refuses("links-io", Errno::EIO));
        let link = Content::Link(target.as_os_str().as_bytes().to_vec());
        Self::entry(reply, refused.and_then(|()| self.made(parent, name, link, 0o777)));
    }

    fn rename(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        if !flags.is_empty() && self.weak.is("no-rename-flags") {
            return reply.error(Errno::EINVAL);
        }
        let from = (number_of(parent), name.as_bytes());
        let into = (number_of(to), new_name.as_bytes());
        let keep = flags.contains(RenameFlags::RENAME_NOREPLACE);
        done(reply, self.tree().rename(from, into, keep));
    }

    fn link(&self, _req: &Request, ino: INodeNo, to: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut tree = self.tree();
        let number = number_of(ino);
        let named = self.weak.refuses("no-hard-links", Errno::EPERM);
        let named = named.and_then(|()| self.weak.refuses("links-io", Errno::EIO));
        let named = named.and_then(|()| tree.name(number_of(to), name.as_bytes(), number));
        let counted = named.and_then(|()| {
            tree.node(number)?.links += 1;
            tree.attributes(number)
        });
        Self::entry(reply, counted);
    }

    fn open(&self, _req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.opened(ino, flags.0) {
            Ok(number) => reply.opened(FileHandle(number), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        _req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let made = self.made(parent, name, Content::File(Vec::new()), mode & !umask);
        let opened = made.and_then(|attributes| Ok((attributes, self.opened(attributes.ino, 0)?)));
        match opened {
            Ok((attributes, number)) => reply.created(
                &NOT_KEPT,
                &attributes,
                Generation(0),
                FileHandle(number),
                FopenFlags::empty(),
            ),
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if flags.0 & O_DIRECT != 0 && self.weak.is("no-direct-use") {
            return reply.error(Errno::EINVAL);
        }
        match self.tree().bytes(fh.0) {
            Ok(bytes) => {
                let start = bytes.len().min(offset as usize);
                let end = bytes.len().min(start + size as usize);
                reply.data(&bytes[start..end]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if flags.0 & O_DIRECT != 0 && self.weak.is("no-direct-use") {
            return reply.error(Errno::EINVAL);
        }
        match self.write_to(fh.0, offset, data) {
            Ok(()) => reply.written(data.len() as u32),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        let has_content = self.tree().bytes(fh.0).is_ok_and(|bytes| !bytes.is_empty());
        let word = if has_content { "broken-close" } else { "" };
        done(reply, self.weak.refuses(word, Errno::EIO));
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.tree().closed(fh.0);
        reply.ok();
    }

    fn fsync(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _data: bool, reply: ReplyEmpty) {
        let refused = self.weak.refuses("no-sync", Errno::EINVAL);
        done(
            reply,
            refused.and_then(|()| self.weak.refuses("broken-sync", Errno::EIO)),
        );
    }

    fn fsyncdir(&self, _req: &Request, _ino: INodeNo, _fh: FileHandle, _data: bool, reply: ReplyEmpty) {
        done(reply, self.weak.refuses("no-folder-sync", Errno::EINVAL));
    }

    fn readdir(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut tree = self.tree();
        let found = tree
            .names(number_of(ino))
            .map(|names| names.values().cloned().collect::<Vec<_>>());
        let found = match found {
            Ok(found) => found,
            Err(error) => return reply.error(error),
        };
        let times = if self.weak.is("lists-twice") { 2 } else { 1 };
        let listed = std::iter::repeat_n(&found, times).flatten();
        for (place, (name, number)) in listed.enumerate().skip(offset as usize) {
            let kind = match tree.attributes(*number) {
                Ok(attributes) => attributes.kind,
                Err(_) => continue,
            };
            if reply.add(INodeNo(*number), place as u64 + 1, kind, OsStr::from_bytes(name)) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = if self.weak.is("odd-space") { 0 } else { 1 << 30 };
        reply.statfs(blocks, blocks, blocks, 0, 0, 4096, 255, 4096);
    }

    fn setxattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        if self.weak.is("no-xattrs") {
            return reply.error(Errno::EOPNOTSUPP);
        }
        if self.weak.is("links-io") {
            return reply.error(Errno::EIO);
        }
        let mut tree = self.tree();
        let set = tree.node(number_of(ino)).map(|node| {
            node.xattrs.insert(name.as_bytes().to_vec(), value.to_vec());
        });
        done(reply, set);
    }

    fn getxattr(&self, _req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let mut tree = self.tree();
        match tree
            .node(number_of(ino))
            .map(|node| node.xattrs.get(name.as_bytes()))
        {
            Ok(Some(value)) if size == 0 => reply.size(value.len() as u32),
            Ok(Some(value)) => reply.data(value),
            Ok(None) => reply.error(Errno::ENODATA),
            Err(error) => reply.error(error),
        }
    }

    fn listxattr(&self, _req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        if self.weak.is("links-io") {
            return reply.error(Errno::EIO);
        }
        let mut tree = self.tree();
        let names = tree.node(number_of(ino)).map(|node| {
            let names = node.xattrs.keys().map(|name| [name.as_slice(), b"\0"].concat());
            names.collect::<Vec<_>>().concat()
        });
        match names {
            Ok(names) if size == 0 => reply.size(names.len() as u32),
            Ok(names) => reply.data(&names),
            Err(error) => reply.error(error),
        }
    }
}
