//! What a weak file system holds: nodes in memory, and what each of its weaknesses changes about them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

/// The number of the top folder.
pub const TOP: u64 = 1;
/// Longest name of a file system that takes short ones only.
const SHORT_NAME_BYTES: usize = 143;
/// What FAT takes in no name.
const FORBIDDEN: &[u8] = b":*?\"<>|\\\n";

/// What a file system cannot do; each has a word.
#[derive(Debug, Clone, Default)]
pub struct Weak(BTreeSet<String>);

impl Weak {
    /// Weaknesses by their words, commas between them.
    pub fn of(words: &str) -> Self {
        let words = words.split(',').filter(|word| !word.is_empty());
        Self(words.map(str::to_owned).collect())
    }

    /// Whether it has one.
    pub fn is(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    /// `error` where it has one.
    pub fn refuses(&self, word: &str, error: Errno) -> Result<(), Errno> {
        if self.is(word) { Err(error) } else { Ok(()) }
    }

    /// A time as it is kept.
    fn kept(&self, ns: i128) -> i128 {
        let steps = [
            ("t100ns", 100),
            ("t1us", 1_000),
            ("t10ms", 10_000_000),
            ("t1s", 1_000_000_000),
            ("t2s", 2_000_000_000),
        ];
        let second = 1_000_000_000_i128;
        let mut ns = ns;
        if self.is("from1980") {
            ns = ns.max(315_532_800 * second);
        }
        if self.is("to2038") {
            ns = ns.min(i128::from(i32::MAX) * second);
        }
        let step = steps
            .iter()
            .find(|(word, _)| self.is(word))
            .map_or(1, |step| step.1);
        if self.is("nearest") {
            ns += step / 2;
        }
        ns.div_euclid(step) * step
    }

    /// Whether a name may be.
    pub fn check_name(&self, name: &[u8]) -> Result<(), Errno> {
        if self.is("short-names") && name.len() > SHORT_NAME_BYTES {
            return Err(Errno::ENAMETOOLONG);
        }
        let is_odd = name.iter().any(|byte| FORBIDDEN.contains(byte));
        if self.is("fat-names") && (is_odd || name.ends_with(b".") || name.ends_with(b" ")) {
            return Err(Errno::EINVAL);
        }
        if self.is("utf8-names") && std::str::from_utf8(name).is_err() {
            return Err(Errno::EILSEQ);
        }
        Ok(())
    }

    /// What names that are one have in common.
    fn folded(&self, name: &[u8]) -> Vec<u8> {
        let mut text = String::from_utf8_lossy(name).into_owned();
        if self.is("ignores-case") {
            text = text.to_lowercase();
        }
        if self.is("decomposes") {
            text = text.replace('é', "e\u{301}");
        }
        if self.is("drops-dots") {
            text.truncate(text.trim_end_matches('.').len());
        }
        if text.contains('\u{fffd}') {
            return name.to_vec();
        }
        text.into_bytes()
    }

    /// A new name as it is listed.
    fn written(&self, name: &[u8]) -> Vec<u8> {
        if self.is("decomposes") || self.is("drops-dots") {
            return self.folded(name);
        }
        name.to_vec()
    }
}

/// Names as they are listed and their nodes, by what names that are one have in common.
pub type Names = BTreeMap<Vec<u8>, (Vec<u8>, u64)>;

/// What a node is.
#[derive(Debug)]
pub enum Content {
    /// A file's bytes.
    File(Vec<u8>),
    /// A folder's names.
    Folder(Names),
    /// Where a link leads.
    Link(Vec<u8>),
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// What it is.
    pub content: Content,
    /// Permission bits.
    pub mode: u16,
    /// Time of last change, nanoseconds since 1970.
    pub mtime_ns: i128,
    /// Names that it has.
    pub links: u32,
    /// How often it is open.
    pub opens: u32,
    /// Extended attributes.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// All of it.
#[derive(Debug)]
pub struct Tree {
    /// What it cannot do.
    pub weak: Weak,
    nodes: HashMap<u64, Node>,
    next: u64,
    /// Files that were unlinked while they were open, and where they are now.
    hidden: HashMap<u64, (u64, Vec<u8>)>,
    /// Files that were unlinked while they were open, and come back once when they are closed.
    returning: HashMap<u64, (u64, Vec<u8>)>,
    returned: BTreeSet<u64>,
    looks: u64,
}

impl Tree {
    /// An empty one.
    pub fn new(weak: Weak) -> Self {
        let mut tree = Self {
            weak,
            nodes: HashMap::new(),
            next: TOP,
            hidden: HashMap::new(),
            returning: HashMap::new(),
            returned: BTreeSet::new(),
            looks: 0,
        };
        tree.add(Content::Folder(BTreeMap::new()), 0o755);
        tree
    }

    fn add(&mut self, content: Content, mode: u16) -> u64 {
        let number = self.next;
        self.next += 1;
        let node = Node {
            content,
            mode,
            mtime_ns: now_ns(),
            links: 1,
            opens: 0,
            xattrs: BTreeMap::new(),
        };
        self.nodes.insert(number, node);
        number
    }

    /// A node.
    pub fn node(&mut self, number: u64) -> Result<&mut Node, Errno> {
        self.nodes.get_mut(&number).ok_or(Errno::ENOENT)
    }

    /// A file's bytes.
    pub fn bytes(&mut self, number: u64) -> Result<&mut Vec<u8>, Errno> {
        match &mut self.node(number)?.content {
            Content::File(bytes) => Ok(bytes),
            _ => Err(Errno::EISDIR),
        }
    }

    /// The names in a folder.
    pub fn names(&mut self, folder: u64) -> Result<&mut Names, Errno> {
        match &mut self.node(folder)?.content {
            Content::Folder(names) => Ok(names),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// What has a name.
    pub fn find(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        let key = self.weak.folded(name);
        let found = self.names(folder)?.get(&key).map(|(_, number)| *number);
        found.ok_or(Errno::ENOENT)
    }

    /// Gives a node a name that nothing has.
    pub fn name(&mut self, folder: u64, name: &[u8], number: u64) -> Result<(), Errno> {
        self.weak.check_name(name)?;
        if self.find(folder, name).is_ok() {
            return Err(Errno::EEXIST);
        }
        let (key, written) = (self.weak.folded(name), self.weak.written(name));
        self.names(folder)?.insert(key, (written, number));
        self.node(folder)?.mtime_ns = now_ns();
        Ok(())
    }

    /// What a link in one folder leads to by a name in that folder.
    pub fn led_to(&mut self, link: u64) -> Result<u64, Errno> {
        let has_it = |node: &Node| match &node.content {
            Content::Folder(names) => names.values().any(|(_, number)| *number == link),
            _ => false,
        };
        let folder = self.nodes.iter().find(|(_, node)| has_it(node));
        let folder = folder.map(|(number, _)| *number).ok_or(Errno::ENOENT)?;
        let Content::Link(target) = &self.node(link)?.content else {
            return Err(Errno::EINVAL);
        };
        let target = target.clone();
        self.find(folder, &target)
    }

    /// A new node with a name.
    pub fn make(&mut self, folder: u64, name: &[u8], content: Content, mode: u32) -> Result<u64, Errno> {
        let mode = if self.weak.is("fixed-modes") {
            0o755
        } else {
            mode as u16 & 0o7777
        };
        let number = self.next;
        self.name(folder, name, number)?;
        Ok(self.add(content, mode))
    }

    /// Takes a name away. An open file lives on under another one where that is the weakness.
    pub fn unname(&mut self, folder: u64, name: &[u8], as_folder: bool) -> Result<(), Errno> {
        let number = self.find(folder, name)?;
        let hides = self.weak.is("hides");
        let node = self.node(number)?;
        match &node.content {
            Content::Folder(_) if !as_folder => return Err(Errno::EISDIR),
            Content::Folder(names) if !names.is_empty() => return Err(Errno::ENOTEMPTY),
            Content::Folder(_) => {}
            _ if as_folder => return Err(Errno::ENOTDIR),
            _ if hides && node.opens > 0 && node.links == 1 => {
                if name.starts_with(b".nfs") {
                    return Err(Errno::EBUSY);
                }
                let hidden = format!(".nfs{number:024x}").into_bytes();
                self.drop_name(folder, name)?;
                self.name(folder, &hidden, number)?;
                self.hidden.insert(number, (folder, hidden));
                return Ok(());
            }
            _ => {}
        }
        let is_open = node.opens > 0;
        self.drop_name(folder, name)?;
        self.node(number)?.links -= 1;
        if is_open && self.weak.is("brings-back") && self.returned.insert(number) {
            self.returning.insert(number, (folder, name.to_vec()));
        }
        self.forget_if_gone(number);
        Ok(())
    }

    fn drop_name(&mut self, folder: u64, name: &[u8]) -> Result<(), Errno> {
        let key = self.weak.folded(name);
        self.names(folder)?.remove(&key);
        self.node(folder)?.mtime_ns = now_ns();
        Ok(())
    }

    /// Gives a node another name, in the place of what has it.
    pub fn rename(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), keep: bool) -> Result<(), Errno> {
        let number = self.find(from.0, from.1)?;
        self.weak.check_name(to.1)?;
        if let Ok(there) = self.find(to.0, to.1)
            && there != number
        {
            if keep {
                return Err(Errno::EEXIST);
            }
            let is_folder = matches!(self.node(there)?.content, Content::Folder(_));
            self.unname(to.0, to.1, is_folder)?;
        }
        self.drop_name(from.0, from.1)?;
        self.name(to.0, to.1, number)
    }

    /// A file is not open as often any more.
    pub fn closed(&mut self, number: u64) {
        let Some(node) = self.nodes.get_mut(&number) else {
            return;
        };
        node.opens = node.opens.saturating_sub(1);
        if node.opens > 0 {
            return;
        }
        if let Some((folder, hidden)) = self.hidden.remove(&number) {
            // Whoever renamed it meanwhile has it.
            let _ = self.unname(folder, &hidden, false);
        }
        if let Some((folder, name)) = self.returning.remove(&number)
            && self.name(folder, &name, number).is_ok()
            && let Ok(node) = self.node(number)
        {
            node.links = 1;
        }
        self.forget_if_gone(number);
    }

    fn forget_if_gone(&mut self, number: u64) {
        if self
            .nodes
            .get(&number)
            .is_some_and(|node| node.links == 0 && node.opens == 0)
        {
            self.nodes.remove(&number);
        }
    }

    /// Sets the time of a node.
    pub fn set_time(&mut self, number: u64, ns: i128) -> Result<(), Errno> {
        self.weak.refuses("refuses-times", Errno::EPERM)?;
        let ns = if self.weak.is("zero-is-now") && ns == 0 {
            now_ns()
        } else {
            ns
        };
        if !self.weak.is("ignores-times") {
            self.node(number)?.mtime_ns = ns;
        }
        Ok(())
    }

    /// What is known of a node.
    pub fn attributes(&mut self, number: u64) -> Result<FileAttr, Errno> {
        self.looks += 1;
        let (weak, looks) = (self.weak.clone(), self.looks);
        let node = self.node(number)?;
        let (kind, size) = match &node.content {
            Content::File(bytes) => (FileType::RegularFile, bytes.len() as u64),
            Content::Folder(_) => (FileType::Directory, 4096),
            Content::Link(target) => (FileType::Symlink, target.len() as u64),
        };
        let mtime = time_of(weak.kept(node.mtime_ns));
        let odd_number = number
            + if weak.is("changes-numbers") {
                looks << 32
            } else {
                0
            };
        Ok(FileAttr {
            ino: INodeNo(odd_number),
            size,
            blocks: if weak.is("odd-blocks") {
                0
            } else {
                size.div_ceil(512)
            },
            atime: mtime,
            mtime,
            ctime: mtime,
            crtime: mtime,
            kind,
            perm: node.mode,
            nlink: node.links,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

fn now_ns() -> i128 {
    ns_of(SystemTime::now())
}

/// A time in nanoseconds since 1970.
pub fn ns_of(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_nanos() as i128,
        Err(before) => -(before.duration().as_nanos() as i128),
    }
}

fn time_of(ns: i128) -> SystemTime {
    let length = Duration::from_nanos(ns.unsigned_abs() as u64);
    if ns < 0 {
        UNIX_EPOCH - length
    } else {
        UNIX_EPOCH + length
    }
}
