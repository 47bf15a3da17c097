//! What was asked for: each name that the other end says is held against it before anything is made, and after it was deleted.
//!
//! A server that lies could else put `.bashrc` beside the file that was asked for. What an honest sending end can never say ends
//! the copy (a breach); the rules of its walk are applied here once more, by the same code.

use std::collections::HashSet;

use farline_spec::{CopySpec, Failure, SymbolicLinks};
use twox_hash::XxHash3_128;

use crate::message::{Entry, EntryKind, MAX_PATH_BYTES, Top};
use crate::path_text;
use crate::root::split;
use crate::source::expand::has_wildcard;
use crate::source::filter::{Filters, Pattern};
use crate::source::origin;

/// Letters of a path that a failure quotes.
const MOST_PATH_LETTERS: usize = 200;
/// Bytes that one remembered link takes in a set that is neither full nor empty.
const KEY_BYTES: usize = 24;

/// The request of one copy, and what of the catalogue it is held against.
#[derive(Debug)]
pub struct Request {
    /// The names that may come at the top; any where a source stands for what is in it.
    tops: Option<HashSet<Vec<u8>>>,
    /// Patterns of names that may come at the top, besides.
    patterns: Vec<(Vec<u8>, Pattern)>,
    /// The sources as they were asked for: one that is not there is called by that name.
    sources: Vec<Vec<u8>>,
    filters: Filters,
    recursive: bool,
    links: SymbolicLinks,
    hard_links: bool,
    xattrs: bool,
    /// How many names may be deleted; a dry run only counts them.
    deletes: Option<u64>,
    /// Folders may make way for files of their names, with all that is in them.
    forces: bool,
    /// Names come from a list that only the sending end has.
    has_list: bool,
    /// The one name asked for, where this end asked.
    lone: Option<Vec<u8>>,
    /// Links that were announced: nothing may go through them.
    announced_links: HashSet<u128>,
    /// The folder of the last name, whose own names all passed the filters.
    passed: Option<Vec<u8>>,
}

impl Request {
    /// The request that `spec` makes; `is_own`: made by this end.
    ///
    /// # Errors
    /// [`FailureKind::Spec`](farline_spec::FailureKind::Spec) for a source or filter that cannot be read.
    pub fn new(spec: &CopySpec, is_own: bool) -> Result<Self, Failure> {
        let mut sources = Vec::with_capacity(spec.sources.len());
        let mut names = Vec::with_capacity(spec.sources.len());
        for text in &spec.sources {
            // One that is no path is none of the sending end's either, and comes back as it is.
            let path = path_text::to_bytes(text).unwrap_or_else(|_| text.clone().into_bytes());
            names.push(origin::name(&path).filter(|_| spec.source_list.is_none()));
            sources.push(path);
        }
        let patterns: Vec<_> = names.iter().flatten().filter(|name| has_wildcard(name)).collect();
        let patterns = patterns
            .into_iter()
            .map(|name| (name.clone(), Pattern::read(name)))
            .collect();
        let lone = match names.as_slice() {
            [Some(name)] if is_own && !has_wildcard(name) => Some(name.clone()),
            _ => None,
        };
        Ok(Self {
            tops: names.into_iter().collect(),
            patterns,
            sources,
            filters: Filters::new(&spec.filters)?,
            recursive: spec.recursive,
            links: spec.links,
            hard_links: spec.hard_links,
            xattrs: spec.xattrs,
            deletes: spec
                .delete
                .map(|most| if spec.dry_run { u64::MAX } else { most.get() }),
            forces: spec.force,
            has_list: spec.source_list.is_some(),
            lone,
            announced_links: HashSet::new(),
            passed: None,
        })
    }

    /// Whether this entry may come at all; a reason for which an honest end's may not be made.
    ///
    /// # Errors
    /// A breach that names the entry.
    pub fn check(&mut self, said: &Entry) -> Result<Option<&'static str>, Failure> {
        let wrong = self
            .wrong_path(&said.path)
            .or_else(|| self.wrong_kind(said))
            .or_else(|| self.wrong_place(said));
        if let Some(why) = wrong {
            return Err(breach(&said.path, why));
        }
        let is_behind_link = self.is_behind_link(said);
        if is_behind_link && !self.may_conflict() {
            return Err(breach(&said.path, "through a symbolic link that it sent earlier"));
        }
        if is_behind_link {
            return Ok(Some("a symbolic link of another source is in the way"));
        }
        if let EntryKind::Link { target } = &said.kind {
            if self.lone.as_ref() == Some(&said.path) && leads_out(target) {
                return Ok(Some(
                    "is a symbolic link that leads outside the destination; --links follow copies its target",
                ));
            }
            self.announced_links.insert(XxHash3_128::oneshot(&said.path));
        }
        Ok(None)
    }

    /// Whether a name that does not come may be spoken of.
    ///
    /// # Errors
    /// A breach that names it.
    pub fn check_unannounced(&self, path: &[u8]) -> Result<(), Failure> {
        let is_source = self.sources.iter().any(|source| source == path);
        if self.has_list || is_source || path == b"." {
            return Ok(());
        }
        let is_excluded = || {
            let (parent, _) = split(path);
            !(self.filters.takes(path, false) || self.filters.takes(path, true))
                || !self.takes_all_above(parent)
        };
        let why = self
            .wrong_path(path)
            .or_else(|| is_excluded().then_some(EXCLUDED));
        why.map_or(Ok(()), |why| Err(breach(path, why)))
    }

    /// Whether this name may have been deleted, as the `count`th of them; where it was not, the receiving end says what it would do.
    ///
    /// # Errors
    /// A breach that names it.
    pub fn check_deleted(&self, path: &[u8], count: u64) -> Result<(), Failure> {
        let (parent, _) = split(path);
        let is_beside = self.tops.is_some() && parent.is_empty();
        let is_excluded = || !self.may_take(path);
        let why = match self.deletes {
            // What makes way is not among the names that were counted.
            _ if self.forces => self
                .wrong_path(path)
                .or_else(|| is_excluded().then_some(EXCLUDED)),
            None => Some("although deleting was not requested"),
            Some(most) if count > most => Some("which exceeds the number of names allowed to be deleted"),
            Some(_) if is_beside => Some("which is not below any of the sources"),
            Some(_) => self
                .wrong_path(path)
                .or_else(|| is_excluded().then_some(EXCLUDED)),
        };
        why.map_or(Ok(()), |why| {
            let path = quoted(path);
            let line = format!("the other end deleted {path}, {why}: the copy was stopped; {ADVICE}");
            Err(Failure::breach(line))
        })
    }

    /// Whether the destination folder itself may be said to be like a source.
    ///
    /// # Errors
    /// A breach.
    pub fn check_top(&self, top: Option<&Top>) -> Result<(), Failure> {
        if top.is_none() || (self.tops.is_none() && !self.has_list) {
            return Ok(());
        }
        Err(breach(
            b".",
            "the time and mode of the destination itself, which were not requested",
        ))
    }

    /// Bytes that what is remembered takes.
    pub fn bytes(&self) -> usize {
        self.announced_links.len() * KEY_BYTES
    }

    /// Two sources may give one name two meanings.
    fn may_conflict(&self) -> bool {
        self.sources.len() > 1 || self.sources.iter().any(|source| has_wildcard(source))
    }

    /// A name that begins with a dot is only meant by a pattern that does.
    fn fits_pattern(&self, name: &[u8]) -> bool {
        let is_meant = |pattern: &[u8]| !name.starts_with(b".") || pattern.starts_with(b".");
        self.patterns
            .iter()
            .any(|(text, pattern)| is_meant(text) && pattern.fits(name))
    }

    fn wrong_path(&self, path: &[u8]) -> Option<&'static str> {
        let mut names = path.split(|byte| *byte == b'/');
        if path.len() > MAX_PATH_BYTES || path.contains(&0) {
            return Some("which is not a valid path");
        }
        if names.clone().any(|name| matches!(name, b"" | b"." | b"..")) {
            return Some("which may lead outside the destination");
        }
        let first = names.next().unwrap_or_default();
        let is_named = self.tops.as_ref().is_none_or(|tops| tops.contains(first));
        let is_asked_for = is_named || self.fits_pattern(first);
        (!is_asked_for).then_some("which is not among the sources")
    }

    fn wrong_kind(&self, said: &Entry) -> Option<&'static str> {
        if !self.xattrs && !said.xattrs.is_empty() {
            return Some("with extended attributes, which are requested only by -X");
        }
        match (&said.kind, self.links) {
            (EntryKind::HardLink { .. }, _) if !self.hard_links => {
                Some("as a hard link, which is requested only by -H")
            }
            (EntryKind::Link { .. }, SymbolicLinks::Skip) => {
                Some("as a symbolic link, although --links skip was given")
            }
            (EntryKind::Link { .. }, SymbolicLinks::Follow) => {
                Some("as a symbolic link, although --links follow was given")
            }
            (EntryKind::Folder, _) if !self.recursive && !self.has_list => {
                Some("as a folder, although the copy is not recursive")
            }
            _ => None,
        }
    }

    /// Whether a rule leaves out the name or a folder that it is in. Folders above listed names come whatever the rules say.
    fn wrong_place(&mut self, said: &Entry) -> Option<&'static str> {
        let (parent, _) = split(&said.path);
        if self.has_list {
            return None;
        }
        if !self.recursive && !parent.is_empty() {
            return Some("which is in a folder, although the copy is not recursive");
        }
        if self.passed.as_deref() != Some(parent) {
            if !self.takes_all_above(parent) {
                return Some(EXCLUDED);
            }
            self.passed = Some(parent.to_vec());
        }
        let is_folder = said.kind == EntryKind::Folder;
        (!self.filters.takes(&said.path, is_folder)).then_some(EXCLUDED)
    }

    /// Whether the rules take a name of which it is not known what it is.
    fn may_take(&self, path: &[u8]) -> bool {
        let (parent, _) = split(path);
        let itself = [false, true]
            .into_iter()
            .any(|kind| self.filters.takes(path, kind));
        itself && self.takes_all_above(parent)
    }

    /// Whether the rules take `folder` and all that it is in.
    fn takes_all_above(&self, folder: &[u8]) -> bool {
        folders_above(folder).all(|folder| self.filters.takes(folder, true))
    }

    fn is_behind_link(&self, said: &Entry) -> bool {
        let is_link = |path: &[u8]| self.announced_links.contains(&XxHash3_128::oneshot(path));
        let (parent, _) = split(&said.path);
        !self.announced_links.is_empty()
            && (folders_above(parent).any(is_link) || (said.kind == EntryKind::Folder && is_link(&said.path)))
    }
}

const EXCLUDED: &str = "which the filters exclude";

/// `folder` and the folders that it is in, below the destination.
fn folders_above(folder: &[u8]) -> impl Iterator<Item = &[u8]> {
    let ends = folder.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let whole = (!folder.is_empty()).then_some(folder);
    ends.map(|(end, _)| &folder[..end]).chain(whole)
}

/// Whether a link at the top of the destination leads out of it.
fn leads_out(target: &[u8]) -> bool {
    let mut depth = 0_i64;
    let mut leaves = target.first() == Some(&b'/');
    for name in target.split(|byte| *byte == b'/') {
        depth += match name {
            b"" | b"." => 0,
            b".." => -1,
            _ => 1,
        };
        leaves |= depth < 0;
    }
    leaves
}

fn quoted(path: &[u8]) -> String {
    let mut text = path_text::to_text(path);
    if let Some((cut, _)) = text.char_indices().nth(MOST_PATH_LETTERS) {
        text.truncate(cut);
        text.push('…');
    }
    format!("\"{text}\"")
}

const ADVICE: &str = "check that host before copying with it again";

fn breach(path: &[u8], why: &str) -> Failure {
    let path = quoted(path);
    Failure::breach(format!(
        "the other end sent {path}, {why}: it was not written and the copy was stopped; {ADVICE}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(sources: &[&str]) -> CopySpec {
        CopySpec {
            sources: sources.iter().map(|source| (*source).to_owned()).collect(),
            destination: "d".to_owned(),
            ..CopySpec::default()
        }
    }

    fn entry(path: &str, kind: EntryKind) -> Entry {
        Entry {
            path: path.as_bytes().to_vec(),
            kind,
            mode: 0o644,
            mtime_ns: 0,
            ctime_ns: 0,
            xattrs: Vec::new(),
        }
    }

    fn file(path: &str) -> Entry {
        entry(path, EntryKind::File { bytes: 1, hash: None })
    }

    fn folder(path: &str) -> Entry {
        entry(path, EntryKind::Folder)
    }

    fn link(path: &str, target: &str) -> Entry {
        let target = target.as_bytes().to_vec();
        entry(path, EntryKind::Link { target })
    }

    /// What the request says of the last of `entries`; the others pass.
    fn last(spec: &CopySpec, entries: &[Entry]) -> Result<Option<&'static str>, Failure> {
        let mut request = Request::new(spec, true).unwrap();
        let (last, others) = entries.split_last().unwrap();
        for other in others {
            assert_eq!(request.check(other).unwrap(), None, "{other:?}");
        }
        request.check(last)
    }

    fn assert_breach(spec: &CopySpec, entries: &[Entry], why: &str) {
        let failure = last(spec, entries).unwrap_err();
        let path = path_text::to_text(&entries.last().unwrap().path);
        assert!(failure.permanent, "{failure}");
        assert!(failure.message.contains(&format!("\"{path}\"")), "{failure}");
        assert!(failure.message.contains(why), "{failure}");
    }

    #[test]
    fn of_a_pattern_come_the_names_that_fit() {
        let spec = spec(&["x/*.dat"]);
        assert_eq!(
            last(&spec, &[file("a.dat"), folder("b.dat"), file("b.dat/any")]),
            Ok(None)
        );
        for other in ["a.txt", ".hidden.dat", ".bashrc", "c/a.dat"] {
            assert_breach(&spec, &[file(other)], "not among the sources");
        }
    }

    #[test]
    fn only_the_sources_come() {
        for source in ["x", "a/x", "/a//x", "./x", "a/../x"] {
            let spec = spec(&[source]);
            assert_eq!(last(&spec, &[file("x")]), Ok(None), "{source}");
            assert_eq!(last(&spec, &[folder("x"), file("x/y/z")]), Ok(None), "{source}");
            for other in [".bashrc", ".ssh/authorized_keys", "y", "X", "xx", "x.", "a/x"] {
                assert_breach(&spec, &[file(other)], "not among the sources");
            }
        }
        assert_eq!(last(&spec(&["x", "b/y"]), &[file("y")]), Ok(None));
        assert_breach(&spec(&["x", "b/y"]), &[file("b")], "not among the sources");
        for content in ["x/", ".", "x/.", "..", "/"] {
            assert_eq!(
                last(&spec(&[content, "q"]), &[file("any/thing")]),
                Ok(None),
                "{content}"
            );
        }
    }

    #[test]
    fn nothing_comes_that_may_lead_out() {
        for path in ["../x", "/x", "x/../../y", "x//y", "x/", "", ".", "x/."] {
            assert_breach(&spec(&["x", "a/"]), &[file(path)], "lead outside the destination");
        }
        assert_breach(&spec(&["a/"]), &[file("a\0b")], "not a valid path");
        assert_breach(&spec(&["a/"]), &[link("a\0b", "x")], "not a valid path");
        let long = "a".repeat(MAX_PATH_BYTES + 1);
        let failure = last(&spec(&["a/"]), &[file(&long)]).unwrap_err();
        assert!(failure.message.len() < 500, "{failure}");
    }

    #[test]
    fn what_a_filter_leaves_out_does_not_come_nor_what_is_in_it() {
        let mut spec = spec(&["x"]);
        spec.filters = vec!["- *.secret".to_owned(), "- /x/no/".to_owned()];
        assert_eq!(last(&spec, &[folder("x"), file("x/no")]), Ok(None));
        assert_eq!(
            last(&spec, &[folder("x"), folder("x/a"), file("x/a/b")]),
            Ok(None)
        );
        for wrong in [
            file("x/a.secret"),
            folder("x/no"),
            file("x/no/deep/y"),
            file("x/b.secret/c"),
        ] {
            assert_breach(&spec, &[folder("x"), file("x/1"), wrong], EXCLUDED);
        }
    }

    #[test]
    fn kinds_come_as_they_were_asked_for() {
        let plain = spec(&["x"]);
        assert_breach(
            &plain,
            &[entry("x/h", EntryKind::HardLink { to: 0 })],
            "only by -H",
        );
        let mut with_xattr = file("x");
        with_xattr.xattrs.push(crate::message::Xattr {
            name: b"user.a".to_vec(),
            value: vec![],
        });
        assert_breach(&plain, &[with_xattr.clone()], "only by -X");
        let all = CopySpec {
            hard_links: true,
            xattrs: true,
            ..plain.clone()
        };
        assert_eq!(
            last(&all, &[entry("x/h", EntryKind::HardLink { to: 0 })]),
            Ok(None)
        );
        assert_eq!(last(&all, &[with_xattr]), Ok(None));
        for links in [SymbolicLinks::Skip, SymbolicLinks::Follow] {
            let spec = CopySpec {
                links,
                ..plain.clone()
            };
            assert_breach(&spec, &[link("x/l", "a")], "as a symbolic link");
        }
        let flat = CopySpec {
            recursive: false,
            ..spec(&["x", "a/"])
        };
        assert_eq!(last(&flat, &[file("x")]), Ok(None));
        assert_breach(&flat, &[folder("x")], "the copy is not recursive");
        assert_breach(&flat, &[file("x/y")], "the copy is not recursive");
    }

    #[test]
    fn nothing_comes_through_a_link_of_the_same_copy() {
        let spec_of_one = spec(&["x"]);
        let here = link("x/l", ".");
        for wrong in [
            file("x/l/y"),
            folder("x/l"),
            folder("x/l/a"),
            link("x/l/b/c", "d"),
        ] {
            assert_breach(
                &spec_of_one,
                &[folder("x"), here.clone(), wrong],
                "symbolic link that it sent earlier",
            );
        }
        assert_eq!(
            last(&spec_of_one, &[folder("x"), here.clone(), file("x/ll/y")]),
            Ok(None)
        );
        // Two sources can say this honestly.
        let refused = last(&spec(&["a/", "b/"]), &[link("l", "."), file("l/y")]);
        assert!(refused.unwrap().is_some());
    }

    #[test]
    fn the_one_name_asked_for_is_no_link_to_elsewhere() {
        let spec = spec(&["x"]);
        for out in ["/etc/passwd", "..", "../a", "a/../../b", "./../x"] {
            assert!(last(&spec, &[link("x", out)]).unwrap().is_some(), "{out}");
        }
        for inside in ["a", "a/../b", "./a"] {
            assert_eq!(last(&spec, &[link("x", inside)]), Ok(None), "{inside}");
        }
        assert_eq!(last(&spec, &[folder("x"), link("x/l", "/etc")]), Ok(None));
        let mut pushed = Request::new(&spec, false).unwrap();
        assert_eq!(pushed.check(&link("x", "/etc")), Ok(None));
    }

    #[test]
    fn names_that_do_not_come_were_asked_for_too() {
        let mut spec = spec(&["a/x", "/gone/y"]);
        spec.filters = vec!["- *.secret".to_owned()];
        let request = Request::new(&spec, true).unwrap();
        for fine in ["x", "x/deep", "/gone/y", ".", "y"] {
            assert_eq!(request.check_unannounced(fine.as_bytes()), Ok(()), "{fine}");
        }
        for wrong in [".bashrc", "x/a.secret", "x/a.secret/b", "../y", "/gone/z"] {
            assert!(request.check_unannounced(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_deleted_was_in_a_source_and_no_more_than_was_confirmed() {
        let mut spec = spec(&["a/x"]);
        spec.filters = vec!["- *.keep".to_owned()];
        let check = |spec: &CopySpec, path: &str, count| {
            let request = Request::new(spec, true).unwrap();
            request
                .check_deleted(path.as_bytes(), count)
                .map_err(|failure| failure.permanent)
        };
        assert_eq!(check(&spec, "x/old", 1), Err(true));
        spec.delete = Some(farline_spec::unit::DeleteCount::new(2).unwrap());
        assert_eq!(check(&spec, "x/old", 2), Ok(()));
        assert_eq!(check(&spec, "x/old", 3), Err(true));
        for wrong in [
            "x",
            ".bashrc",
            ".ssh/keys",
            "x/../y",
            "x/a.keep",
            "x/a.keep/b",
            "",
        ] {
            assert_eq!(check(&spec, wrong, 1), Err(true), "{wrong}");
        }
        let forced = CopySpec {
            force: true,
            ..spec.clone()
        };
        assert_eq!(check(&forced, "x", 9), Ok(()));
        assert_eq!(check(&forced, ".bashrc", 1), Err(true));
        let content = CopySpec {
            sources: vec!["a/".to_owned()],
            dry_run: true,
            ..spec
        };
        assert_eq!(check(&content, "old", 9), Ok(()));
    }

    #[test]
    fn the_destination_itself_changes_only_for_what_is_in_a_folder() {
        let top = Top {
            mode: 0o777,
            mtime_ns: 0,
        };
        let check = |sources: &[&str]| Request::new(&spec(sources), true).unwrap().check_top(Some(&top));
        assert!(check(&["x/"]).is_ok() && check(&["x/", "gone"]).is_ok());
        assert!(check(&["x"]).unwrap_err().permanent);
    }

    #[test]
    fn a_list_of_names_is_the_sending_end_s() {
        let spec = CopySpec {
            source_list: Some("list".to_owned()),
            recursive: false,
            filters: vec!["- a/".to_owned()],
            ..spec(&["x"])
        };
        assert_eq!(last(&spec, &[folder("a"), file("a/b")]), Ok(None));
    }
}
