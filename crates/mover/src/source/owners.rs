//! Whose names are, as the other end is told: once for all that follow, until it is another.

use std::collections::HashMap;

use farline_spec::CopySpec;
use farline_sys::file::FileFacts;
use farline_sys::owner;

use crate::message::{MOST_OWNER_BYTES, Owner};

/// What was said last, and names that were looked up.
#[derive(Debug, Default)]
pub(super) struct Owners {
    is_wanted: bool,
    has_names: bool,
    said: Option<(u32, u32)>,
    users: HashMap<u32, Vec<u8>>,
    groups: HashMap<u32, Vec<u8>>,
}

impl Owners {
    /// Nothing was said yet.
    pub(super) fn new(spec: &CopySpec) -> Self {
        Self {
            is_wanted: spec.owner || spec.group,
            has_names: !spec.numeric_ids,
            ..Self::default()
        }
    }

    /// What is to be said before a name of these facts, if anything.
    pub(super) fn next(&mut self, facts: &FileFacts) -> Option<Owner> {
        let (user, group) = (facts.user, facts.group);
        if !self.is_wanted || self.said.replace((user, group)) == Some((user, group)) {
            return None;
        }
        let fits = |name: Option<Vec<u8>>| name.filter(|name| name.len() <= MOST_OWNER_BYTES);
        let named = |names: &mut HashMap<u32, Vec<u8>>, id: u32, look: fn(u32) -> Option<Vec<u8>>| {
            let look = || fits(look(id)).unwrap_or_default();
            self.has_names
                .then(|| names.entry(id).or_insert_with(look).clone())
        };
        let user_name = named(&mut self.users, user, owner::user_name).unwrap_or_default();
        let group_name = named(&mut self.groups, group, owner::group_name).unwrap_or_default();
        Some(Owner {
            user,
            group,
            user_name,
            group_name,
        })
    }
}
