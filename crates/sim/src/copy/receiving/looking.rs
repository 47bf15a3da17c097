//! What the destination has of an entry, and the oracles: is it what it is said to be?

use std::collections::HashMap;

use farline_proto::copy::journal::{Memory, Source, path_key};
use farline_proto::copy::message::{Entry, EntryKind, Proved, Wants};
use farline_proto::copy::receiver::Looked;

use super::super::disk::{Disk, FileId};
use super::super::source::SourceFile;
use super::{Kept, ReceivingEnd, grains_of, partial_name};

impl ReceivingEnd<'_> {
    pub(super) fn look(&mut self, number: u64, said: Entry) -> Looked<u64> {
        self.paths.insert(number, said.path.clone());
        let bytes = match said.kind {
            EntryKind::File { bytes, .. } => bytes,
            EntryKind::HardLink { to } => return self.further_name(number, said, to),
            EntryKind::Folder | EntryKind::Link { .. } => {
                return Looked::Answered {
                    wants: Wants::Made,
                    file: None,
                };
            }
        };
        let source = Source {
            path: said.path,
            bytes,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
        };
        let key = path_key(&source.path);
        let found = self.disk.look(&source.path);
        if let Some((file, found_bytes, mtime_ns)) = found {
            let is_same_time = self.options.keeps_times && mtime_ns == source.mtime_ns;
            let done = self.memory.done(&source.key());
            let is_done = done.is_some() && (is_same_time || !self.options.keeps_times);
            if found_bytes == bytes && (is_done || is_same_time) {
                self.check_content(&source, file, "is said to be present");
                return Looked::Answered {
                    wants: Wants::Present(done.flatten()),
                    file: Some((key, true)),
                };
            }
        }
        let proved = self.resume(&source);
        let mut kept = Kept {
            source,
            replaces: found.is_some(),
            link_to: None,
            partial: None,
            small: None,
            is_over: false,
        };
        let proved = proved.map_or_else(Vec::new, |(id, proved)| {
            kept.partial = Some(id);
            proved
        });
        self.entries.insert(number, kept);
        Looked::Wanted {
            kept: number,
            bytes,
            facts_bytes: 10,
            key: Some(key),
            proved,
        }
    }

    pub(super) fn resume(&mut self, source: &Source) -> Option<(u64, Vec<Proved>)> {
        let left = self.left.remove(&path_key(&source.path))?;
        if left.source != *source {
            self.disk.unlink(&partial_name(left.id));
            return None;
        }
        self.notes.resumed(left.id);
        Some((left.id, left.proved(self.options.sum())))
    }

    pub(super) fn further_name(&mut self, number: u64, said: Entry, to: u64) -> Looked<u64> {
        let Some(target) = self.paths.get(&to).filter(|_| to < number).cloned() else {
            return Looked::Answered {
                wants: Wants::Refused("a further name of nothing".to_owned()),
                file: None,
            };
        };
        let of = path_key(&target);
        let source = Source {
            path: said.path,
            bytes: 0,
            mtime_ns: said.mtime_ns,
            ctime_ns: said.ctime_ns,
        };
        let kept = Kept {
            source,
            replaces: false,
            link_to: Some(target),
            partial: None,
            small: None,
            is_over: false,
        };
        self.entries.insert(number, kept);
        Looked::FurtherName {
            kept: number,
            facts_bytes: 10,
            of,
        }
    }

    /// The oracle of names: all of the content is what was announced, and on the device where that was asked for.
    pub(super) fn check_content(&mut self, source: &Source, file: FileId, what: &str) {
        if self.options.is_hostile {
            // Whose content it is nobody knows; that all of it came can be seen.
            if self.disk.content(file).0.contains(&0) {
                self.wrong(format!("{:?} {what} without all of its content", source.path));
            }
            return;
        }
        let Some(state) = self.announced(source) else {
            return self.wrong(format!("{:?} {what} and was never announced", source.path));
        };
        let tags = state.tags();
        let (now, device) = self.disk.content(file);
        let path = String::from_utf8_lossy(&source.path).into_owned();
        if now != tags {
            self.wrong(format!("{path} {what} with content that is not its own"));
        } else if self.options.is_durable && device != tags && what == "is named" {
            self.wrong(format!("{path} {what} before it is on the device"));
        }
    }
}

/// The oracle of proofs: what a journal says of a partial is there. Of a file that has changed since it was announced a reader may
/// have met the next state: that is never taken up, because the file is announced as something else from then on.
pub(super) fn check_memory(
    disk: &Disk,
    memory: &Memory,
    history: &HashMap<Vec<u8>, Vec<SourceFile>>,
    sources: &[SourceFile],
) -> Result<(), String> {
    for left in memory.partials.values() {
        let states = history.get(&left.source.path);
        let state = states.and_then(|states| {
            let mut states = states.iter();
            states.find(|state| state.mtime_ns() == left.source.mtime_ns)
        });
        let (Some(state), Some((file, _, _))) = (state, disk.look(&partial_name(left.id))) else {
            return Err(format!("partial {} is of nothing that was announced", left.id));
        };
        if !sources.contains(state) {
            continue;
        }
        let (now, _) = disk.content(file);
        for (offset, bytes, _) in &left.parts {
            for grain in grains_of(*offset, *bytes) {
                if now.get(grain) != Some(&state.tag(grain)) {
                    let path = String::from_utf8_lossy(&left.source.path);
                    return Err(format!(
                        "grain {grain} of {path} is said to be proved and is not there"
                    ));
                }
            }
        }
    }
    Ok(())
}
