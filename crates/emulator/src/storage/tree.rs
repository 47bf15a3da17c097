//! Files, folders and links in memory, within a capacity.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use fuser::{Errno, FileAttr, FileType, INodeNo};

/// Files are kept in pieces of this size; a hole takes no room.
const PIECE_BYTES: u64 = 1 << 20;
/// Number of the folder at the top.
const TOP: u64 = 1;
/// What a folder is said to take.
const FOLDER_BYTES: u64 = 4096;

/// The content of a file.
#[derive(Debug, Default)]
pub struct Pieces {
    bytes: u64,
    pieces: BTreeMap<u64, Box<[u8]>>,
}

impl Pieces {
    /// What is there from `offset` on, at most `bytes` of it; holes are zeros.
    pub fn read(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let end = self.bytes.min(offset.saturating_add(bytes));
        let mut read = vec![0; end.saturating_sub(offset) as usize];
        for (place, part) in parts(offset, read.len()) {
            if let Some(piece) = self.pieces.get(&(place / PIECE_BYTES)) {
                let start = (place % PIECE_BYTES) as usize;
                let length = part.len();
                read[part].copy_from_slice(&piece[start..start + length]);
            }
        }
        read
    }

    /// Pieces that a write there would have to add.
    fn missing(&self, offset: u64, bytes: usize) -> u64 {
        let wanted = parts(offset, bytes).map(|(place, _)| place / PIECE_BYTES);
        wanted.filter(|piece| !self.pieces.contains_key(piece)).count() as u64
    }

    fn write(&mut self, offset: u64, data: &[u8]) {
        for (place, part) in parts(offset, data.len()) {
            let piece = self.pieces.entry(place / PIECE_BYTES);
            let piece = piece.or_insert_with(|| vec![0; PIECE_BYTES as usize].into_boxed_slice());
            let start = (place % PIECE_BYTES) as usize;
            piece[start..start + part.len()].copy_from_slice(&data[part]);
        }
        self.bytes = self.bytes.max(offset + data.len() as u64);
    }

    fn set_length(&mut self, bytes: u64) {
        let kept = bytes.div_ceil(PIECE_BYTES);
        self.pieces.retain(|piece, _| *piece < kept);
        if let Some(last) = self.pieces.get_mut(&(bytes / PIECE_BYTES)) {
            last[(bytes % PIECE_BYTES) as usize..].fill(0);
        }
        self.bytes = bytes;
    }

    fn taken_bytes(&self) -> u64 {
        self.pieces.len() as u64 * PIECE_BYTES
    }
}

/// A range of a file cut where pieces end: places in the file, and where in the range each part is.
fn parts(offset: u64, bytes: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let place = offset + done as u64;
        let room = (PIECE_BYTES - place % PIECE_BYTES) as usize;
        let part = done..bytes.min(done + room);
        done = part.end;
        (!part.is_empty()).then_some((place, part))
    })
}

/// What a node is.
#[derive(Debug)]
pub enum Content {
    /// A file.
    File(Pieces),
    /// A folder: names and their nodes.
    Folder(BTreeMap<Vec<u8>, u64>),
    /// A link, and where it leads.
    Link(Vec<u8>),
}

/// Who owns a node, and what is allowed.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    /// Permission bits.
    pub mode: u16,
    /// Number of the user.
    pub user: u32,
    /// Number of the group.
    pub group: u32,
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// What it is.
    pub content: Content,
    /// Who may do what.
    pub owner: Owner,
    /// Time of the last change.
    pub modified: SystemTime,
    links: u32,
    opens: u32,
}

/// All of it.
#[derive(Debug)]
pub struct Tree {
    nodes: HashMap<u64, Node>,
    next: u64,
    capacity_bytes: u64,
    used_bytes: u64,
}

impl Tree {
    /// One with a folder at its top and nothing in it.
    pub fn new(capacity_bytes: u64, owner: Owner) -> Self {
        let mut tree = Self {
            nodes: HashMap::new(),
            next: TOP,
            capacity_bytes,
            used_bytes: 0,
        };
        tree.add(Content::Folder(BTreeMap::new()), owner);
        tree
    }

    /// Bytes that files take, and that there is room for.
    pub const fn room(&self) -> (u64, u64) {
        (self.used_bytes, self.capacity_bytes)
    }

    fn add(&mut self, content: Content, owner: Owner) -> u64 {
        let number = self.next;
        self.next += 1;
        let node = Node {
            content,
            owner,
            modified: SystemTime::now(),
            links: 1,
            opens: 0,
        };
        self.nodes.insert(number, node);
        number
    }

    /// A node.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn node(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    fn folder(&mut self, number: u64) -> Result<&mut BTreeMap<Vec<u8>, u64>, Errno> {
        match &mut self.node(number)?.content {
            Content::Folder(names) => Ok(names),
            _ => Err(Errno::ENOTDIR),
        }
    }

    fn file(&mut self, number: u64) -> Result<&mut Pieces, Errno> {
        match &mut self.node(number)?.content {
            Content::File(pieces) => Ok(pieces),
            _ => Err(Errno::EISDIR),
        }
    }

    /// Names in a folder with their nodes.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn names(&mut self, number: u64) -> Result<Vec<(Vec<u8>, u64)>, Errno> {
        let names = self.folder(number)?;
        Ok(names.iter().map(|(name, node)| (name.clone(), *node)).collect())
    }

    /// What has a name.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`.
    pub fn find(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        self.folder(folder)?.get(name).copied().ok_or(Errno::ENOENT)
    }

    /// A new node under a name that nothing has.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`.
    pub fn make(
        &mut self,
        folder: u64,
        name: &[u8],
        content: Content,
        owner: Owner,
    ) -> Result<FileAttr, Errno> {
        if self.folder(folder)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        let number = self.add(content, owner);
        self.give_name(folder, name, number)?;
        self.attributes(number)
    }

    /// One more name for a file or link.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT`, `ENOTDIR`; `EPERM` for a folder.
    pub fn link(&mut self, number: u64, folder: u64, name: &[u8]) -> Result<FileAttr, Errno> {
        if matches!(self.node(number)?.content, Content::Folder(_)) {
            return Err(Errno::EPERM);
        }
        if self.folder(folder)?.contains_key(name) {
            return Err(Errno::EEXIST);
        }
        self.give_name(folder, name, number)?;
        self.node(number)?.links += 1;
        self.attributes(number)
    }

    fn give_name(&mut self, folder: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        self.folder(folder)?.insert(name.to_vec(), number);
        self.node(folder)?.modified = SystemTime::now();
        Ok(())
    }

    /// Takes a name away; `of_folder` says what it must be the name of.
    ///
    /// # Errors
    /// `ENOENT`, `ENOTDIR`, `EISDIR`, `ENOTEMPTY`.
    pub fn remove_name(&mut self, folder: u64, name: &[u8], of_folder: bool) -> Result<(), Errno> {
        let number = self.find(folder, name)?;
        match &self.node(number)?.content {
            Content::Folder(names) if of_folder && !names.is_empty() => return Err(Errno::ENOTEMPTY),
            Content::Folder(_) if !of_folder => return Err(Errno::EISDIR),
            Content::Folder(_) => {}
            _ if of_folder => return Err(Errno::ENOTDIR),
            _ => {}
        }
        self.folder(folder)?.remove(name);
        self.node(folder)?.modified = SystemTime::now();
        self.node(number)?.links -= 1;
        self.drop_unused(number);
        Ok(())
    }

    /// Gives what has a name another one, in the place of what has that, unless `keep`.
    ///
    /// # Errors
    /// As [`Self::remove_name`]; `EEXIST`.
    pub fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), keep: bool) -> Result<(), Errno> {
        let number = self.find(from.0, from.1)?;
        match self.find(to.0, to.1) {
            Ok(there) if there == number => return Ok(()),
            Ok(_) if keep => return Err(Errno::EEXIST),
            Ok(_) => {
                let is_folder = matches!(self.node(number)?.content, Content::Folder(_));
                self.remove_name(to.0, to.1, is_folder)?;
            }
            Err(_) => {}
        }
        self.folder(from.0)?.remove(from.1);
        self.node(from.0)?.modified = SystemTime::now();
        self.give_name(to.0, to.1, number)
    }

    /// A node is open once more.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn opened(&mut self, number: u64) -> Result<(), Errno> {
        self.node(number)?.opens += 1;
        Ok(())
    }

    /// A node is open once less.
    pub fn closed(&mut self, number: u64) {
        if let Some(node) = self.nodes.get_mut(&number) {
            node.opens = node.opens.saturating_sub(1);
            self.drop_unused(number);
        }
    }

    fn drop_unused(&mut self, number: u64) {
        let node = self.nodes.get(&number);
        if node.is_some_and(|node| node.links == 0 && node.opens == 0)
            && let Some(Content::File(pieces)) = self.nodes.remove(&number).map(|node| node.content)
        {
            self.used_bytes -= pieces.taken_bytes();
        }
    }

    /// What a file has there; see [`Pieces::read`].
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn read(&mut self, number: u64, offset: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        Ok(self.file(number)?.read(offset, bytes))
    }

    /// Writes into a file.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`; `ENOSPC` beyond the capacity.
    pub fn write(&mut self, number: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let more = self.file(number)?.missing(offset, data.len()) * PIECE_BYTES;
        if self.used_bytes + more > self.capacity_bytes {
            return Err(Errno::ENOSPC);
        }
        self.file(number)?.write(offset, data);
        self.used_bytes += more;
        self.node(number)?.modified = SystemTime::now();
        Ok(())
    }

    /// Makes a file so long.
    ///
    /// # Errors
    /// `ENOENT`, `EISDIR`.
    pub fn set_length(&mut self, number: u64, bytes: u64) -> Result<(), Errno> {
        let file = self.file(number)?;
        let before = file.taken_bytes();
        file.set_length(bytes);
        let after = file.taken_bytes();
        self.used_bytes -= before - after;
        self.node(number)?.modified = SystemTime::now();
        Ok(())
    }

    /// What is known of a node.
    ///
    /// # Errors
    /// `ENOENT`.
    pub fn attributes(&mut self, number: u64) -> Result<FileAttr, Errno> {
        let node = self.node(number)?;
        let (kind, size, taken) = match &node.content {
            Content::File(pieces) => (FileType::RegularFile, pieces.bytes, pieces.taken_bytes()),
            Content::Folder(_) => (FileType::Directory, FOLDER_BYTES, FOLDER_BYTES),
            Content::Link(target) => (FileType::Symlink, target.len() as u64, 0),
        };
        Ok(FileAttr {
            ino: INodeNo(number),
            size,
            blocks: taken.div_ceil(512),
            atime: node.modified,
            mtime: node.modified,
            ctime: node.modified,
            crtime: node.modified,
            kind,
            perm: node.owner.mode,
            nlink: node.links,
            uid: node.owner.user,
            gid: node.owner.group,
            rdev: 0,
            blksize: PIECE_BYTES as u32,
            flags: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner {
        mode: 0o644,
        user: 0,
        group: 0,
    };

    fn with_file(capacity_bytes: u64) -> (Tree, u64) {
        let mut tree = Tree::new(capacity_bytes, OWNER);
        let made = tree
            .make(TOP, b"a", Content::File(Pieces::default()), OWNER)
            .unwrap();
        (tree, made.ino.0)
    }

    #[test]
    fn what_is_written_is_read_across_pieces_and_holes_are_zeros() {
        let (mut tree, file) = with_file(8 << 20);
        tree.write(file, PIECE_BYTES - 2, b"abcd").unwrap();
        assert_eq!(tree.read(file, PIECE_BYTES - 3, 9).unwrap(), b"\0abcd");
        tree.set_length(file, PIECE_BYTES - 1).unwrap();
        tree.set_length(file, PIECE_BYTES + 2).unwrap();
        assert_eq!(tree.read(file, PIECE_BYTES - 2, 9).unwrap(), b"a\0\0\0");
        assert!(tree.read(file, 1 << 40, 9).unwrap().is_empty());
    }

    #[test]
    fn the_capacity_holds_and_what_nobody_can_reach_gives_its_room_back() {
        let (mut tree, file) = with_file(2 << 20);
        tree.write(file, 0, &[1; 2 << 20]).unwrap();
        assert!(tree.write(file, 2 << 20, b"x").is_err());
        tree.opened(file).unwrap();
        tree.remove_name(TOP, b"a", false).unwrap();
        assert_eq!(tree.room().0, 2 << 20);
        tree.closed(file);
        assert_eq!(tree.room().0, 0);
    }

    #[test]
    fn names_are_taken_given_and_replaced() {
        let (mut tree, file) = with_file(1 << 20);
        tree.make(TOP, b"d", Content::Folder(BTreeMap::new()), OWNER)
            .unwrap();
        assert!(tree.make(TOP, b"d", Content::Link(Vec::new()), OWNER).is_err());
        tree.link(file, TOP, b"b").unwrap();
        assert!(tree.rename((TOP, b"a"), (TOP, b"d"), false).is_err());
        assert!(
            tree.rename((TOP, b"a"), (TOP, b"b"), true).is_ok(),
            "two names of one file"
        );
        tree.make(TOP, b"c", Content::Link(b"x".to_vec()), OWNER).unwrap();
        assert!(tree.rename((TOP, b"a"), (TOP, b"c"), true).is_err());
        tree.rename((TOP, b"a"), (TOP, b"c"), false).unwrap();
        assert_eq!(tree.find(TOP, b"c").unwrap(), file);
        let folder = tree.find(TOP, b"d").unwrap();
        tree.rename((TOP, b"c"), (folder, b"e"), false).unwrap();
        assert!(tree.remove_name(TOP, b"d", true).is_err());
        tree.remove_name(folder, b"e", false).unwrap();
        tree.remove_name(TOP, b"d", true).unwrap();
        assert_eq!(tree.names(TOP).unwrap(), [(b"b".to_vec(), file)]);
    }
}
