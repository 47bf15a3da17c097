//! One entry under way, and the parts of its content.

use std::collections::HashMap;

use farline_spec::{Failure, SumKind};

use super::super::message::Proved;
use super::super::ranges::{Claim, Ranges};
use super::super::tree_hash::TreeHash;
use super::table::{Event, Stage, Turn, after};
use super::{Chunk, Counted, Hash, Key, broken};

/// An entry under way. `T` is what the caller keeps of it.
#[derive(Debug)]
pub(super) struct Entry<T> {
    pub kept: T,
    pub bytes: u64,
    /// What its path and attributes take.
    pub facts_bytes: usize,
    /// What its path is known by, where further names of it may come.
    pub key: Option<Key>,
    /// What the path of the file is known by that it is a further name of.
    pub of: Option<Key>,
    pub stage: Stage,
    /// How often it came damaged in a pack.
    pub spoiled: u8,
    pub parts: Option<Box<Parts>>,
    /// The hash of what came in a pack.
    pub hash: Option<Hash>,
}

impl<T> Entry<T> {
    /// Lets an event happen; false where it comes too late.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for what no sound end lets happen.
    pub fn on(&mut self, file: u64, event: Event) -> Result<bool, Failure> {
        match after(self.stage, event) {
            Turn::To(stage) => {
                self.stage = stage;
                Ok(true)
            }
            Turn::Late => Ok(false),
            Turn::Broken(why) => Err(broken(format!("file {file} {why}"))),
        }
    }

    /// Its parts, which begin to exist here.
    pub fn parts(&mut self, sum: Option<SumKind>) -> &mut Parts {
        let bytes = self.bytes;
        self.parts
            .get_or_insert_with(|| Box::new(Parts::of_file(bytes, sum)))
    }

    /// Whether all of it is written, proved and settled.
    pub fn is_complete(&self) -> bool {
        let parts = self.parts.as_deref();
        parts.is_some_and(|parts| parts.settled.is_some() && parts.proved_bytes == self.bytes)
    }

    /// What of it was counted before it is settled.
    pub fn counted(&self) -> Counted {
        let of = |parts: &Parts| Counted {
            proved_bytes: parts.proved_bytes,
            resumed_bytes: parts.resumed_bytes,
        };
        self.parts.as_deref().map(of).unwrap_or_default()
    }
}

/// A file that comes in parts.
#[derive(Debug)]
pub(super) struct Parts {
    /// Where it is hashed.
    pub tree: Option<TreeHash>,
    /// What is written, or being written.
    pub claimed: Ranges,
    /// What of it is written and proved.
    pub proved: Ranges,
    pub proved_bytes: u64,
    /// Of them, bytes that an earlier session proved.
    pub resumed_bytes: u64,
    /// What the sending end said at its end: its hash.
    pub settled: Option<Option<Hash>>,
    /// How often a chunk came damaged, by where it begins.
    pub spoiled: HashMap<u64, u8>,
    /// Other sessions carry some of it: what comes here does not make its hash.
    pub is_shared: bool,
}

impl Parts {
    fn of_file(bytes: u64, sum: Option<SumKind>) -> Self {
        Self {
            tree: sum.map(|kind| TreeHash::new(kind, bytes)),
            claimed: Ranges::default(),
            proved: Ranges::default(),
            proved_bytes: 0,
            resumed_bytes: 0,
            settled: None,
            spoiled: HashMap::new(),
            is_shared: false,
        }
    }

    /// What an earlier session proved.
    pub fn resume(&mut self, parts: &[Proved]) {
        for part in parts {
            if self.claimed.claim(part.offset, part.bytes) != Claim::Taken {
                continue;
            }
            self.proved.claim(part.offset, part.bytes);
            self.proved_bytes += part.bytes;
            if let (Some(tree), Some(hash)) = (&mut self.tree, part.hash) {
                tree.insert(part.offset, part.bytes, hash);
            }
        }
        self.resumed_bytes = self.proved_bytes;
    }

    /// Other sessions carry what is not among the `bytes` bytes from `offset` on: here it counts as what came before.
    pub fn leave_out_all_but(&mut self, offset: u64, bytes: u64, file_bytes: u64) {
        let start = offset.min(file_bytes);
        let end = offset.saturating_add(bytes).min(file_bytes);
        for (at, length) in [(0, start), (end, file_bytes - end)] {
            for (at, length) in self.claimed.claim_gaps(at, length) {
                self.proved.claim(at, length);
                self.proved_bytes += length;
            }
        }
        self.resumed_bytes = self.proved_bytes;
        self.is_shared = true;
    }

    /// A part is written and proved.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) for a part that is none of its tree.
    pub fn prove(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let &Chunk {
            file,
            offset,
            bytes,
            hash,
        } = chunk;
        if let (Some(tree), Some(hash)) = (&mut self.tree, hash)
            && !tree.insert(offset, bytes, hash)
        {
            return Err(broken(format!("an invalid part of file {file}")));
        }
        self.proved_bytes += bytes;
        self.proved.claim(offset, bytes);
        Ok(())
    }

    /// The hash of the file, once all of it is proved; why it is not the file that was read.
    ///
    /// # Errors
    /// That its parts are not what the sending end says.
    pub fn hash(&self) -> Result<Option<Hash>, &'static str> {
        let Some(tree) = self.tree.as_ref().filter(|_| !self.is_shared) else {
            return Ok(None);
        };
        let (found, said) = (tree.root(), self.settled.flatten());
        match found {
            Some(hash) if said.is_none_or(|said| said == hash) => Ok(found),
            _ => Err("its parts do not add up to the file that was read"),
        }
    }
}
