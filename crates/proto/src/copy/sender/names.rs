//! Which names are of one file: each gets the number of the first.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;

use super::Announcement;

/// What tells a file that has several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Inode {
    /// The device it is on.
    pub device: u64,
    /// Its number there.
    pub number: u64,
}

/// Files with names still to come.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Number of the first entry, names left.
    files: HashMap<Inode, (u64, u64)>,
}

impl Names {
    /// The entry `number` is about to be announced: gives the number of the file that it is one more name of.
    pub fn joined(&mut self, about: &Announcement, number: u64) -> Option<u64> {
        let (inode, links) = about.names?;
        if about.tries > 1 {
            // The first name comes again, or another one in its place: the names to come are those of the new entry. Of names
            // that come again because the first could not be copied, one is the first.
            let first = &mut self.files.entry(inode).or_insert((number, links - 1)).0;
            let is_first = about
                .apart_from
                .is_none_or(|failed| *first == failed || *first == number);
            if !is_first {
                return Some(*first);
            }
            *first = number;
            return None;
        }
        match self.files.entry(inode) {
            Place::Vacant(place) => {
                place.insert((number, links - 1));
                None
            }
            Place::Occupied(mut place) => {
                let (to, left) = place.get_mut();
                let to = *to;
                *left = left.saturating_sub(1);
                if *left == 0 {
                    place.remove();
                }
                Some(to)
            }
        }
    }
}
