//! A set of packet numbers, as runs.

mod coding;

/// Packet numbers of one blast, kept as runs: losses come in runs, and a report of none takes no room.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PacketSet {
    /// First number and length of each run; ascending, none empty, none next to another.
    runs: Vec<(u32, u32)>,
    len: u64,
}

impl PacketSet {
    /// The set of these runs, each a first number and a length; `None` unless they ascend and none is empty, next to the
    /// one before or past the last number there is.
    pub fn from_runs(runs: impl IntoIterator<Item = (u32, u32)>) -> Option<Self> {
        let mut set = Self::default();
        for (first, count) in runs {
            set.push(first, count)?;
        }
        Some(set)
    }

    /// The set of runs in any order, which may touch.
    pub(super) fn from_unsorted(mut runs: Vec<(u32, u32)>) -> Self {
        runs.sort_unstable();
        let mut set = Self::default();
        for (first, count) in runs {
            let joined = first.max(set.end());
            let more = (first + count).saturating_sub(joined);
            match set.runs.last_mut() {
                Some(last) if joined == last.0 + last.1 => last.1 += more,
                _ if more == 0 => continue,
                _ => set.runs.push((first, count)),
            }
            set.len += u64::from(more);
        }
        set
    }

    /// The runs, ascending: first number and length.
    pub fn runs(&self) -> &[(u32, u32)] {
        &self.runs
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().flat_map(|&(first, count)| first..first + count)
    }

    /// How many numbers are in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// One past the highest number; 0 if the set is empty.
    pub fn end(&self) -> u32 {
        self.runs.last().map_or(0, |&(first, count)| first + count)
    }

    /// Puts a run above all that are there; `None` if it is not, or is next to the last.
    fn push(&mut self, first: u32, count: u32) -> Option<()> {
        let is_above = self.runs.is_empty() || first > self.end();
        if count == 0 || !is_above || first.checked_add(count).is_none() {
            return None;
        }
        self.runs.push((first, count));
        self.len += u64::from(count);
        Some(())
    }
}

#[cfg(test)]
mod tests;
