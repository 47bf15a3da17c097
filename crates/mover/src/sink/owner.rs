//! To whom names at the destination are to belong: what the sending end says, as far as this process may do it.

use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use farline_proto::copy::receiver::OwnerIds;
use farline_spec::{CopySpec, Failure};
use farline_sys::file::FileFacts;
use farline_sys::owner;

use super::words::{POISONED, broken};
use crate::message::{MOST_OWNER_BYTES, Owner};

/// Permission bits of a file that give nobody the rights of its owner or group.
const PLAIN_BITS: u32 = 0o777;
const SET_USER: u32 = 0o4000;
const SET_GROUP: u32 = 0o2000;
/// What a name takes that is remembered, besides its letters.
const NAME_BYTES: usize = 64;
/// What stands for no user or group in a call.
const NOBODY: u32 = u32::MAX;

/// To whom a name is to belong; what is absent stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Belongs {
    /// User.
    pub user: Option<u32>,
    /// Group.
    pub group: Option<u32>,
}

impl Belongs {
    /// Those of these numbers.
    pub const fn of_ids((user, group): OwnerIds) -> Self {
        Self { user, group }
    }

    /// Their numbers.
    pub const fn ids(self) -> OwnerIds {
        (self.user, self.group)
    }

    /// Permission bits that a file takes from another host: those that lend its owner's rights only where the owner is the
    /// source's, too.
    pub const fn file_bits(self) -> u32 {
        let user = if self.user.is_some() { SET_USER } else { 0 };
        let group = if self.group.is_some() { SET_GROUP } else { 0 };
        PLAIN_BITS | user | group
    }

    /// Whether what has these facts belongs to somebody else.
    pub fn differs(self, facts: &FileFacts) -> bool {
        let is_other = |wanted: Option<u32>, found: u32| wanted.is_some_and(|wanted| wanted != found);
        is_other(self.user, facts.user) || is_other(self.group, facts.group)
    }

    /// Gives an open file to them.
    ///
    /// # Errors
    /// The kernel's.
    pub fn give(self, file: BorrowedFd<'_>) -> io::Result<()> {
        match self == Self::default() {
            true => Ok(()),
            false => owner::set_owner(file, self.user, self.group),
        }
    }

    /// Gives a name in a folder to them, a link itself.
    ///
    /// # Errors
    /// The kernel's.
    pub fn give_at(self, folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<()> {
        match self == Self::default() {
            true => Ok(()),
            false => owner::set_owner_at(folder, name, self.user, self.group),
        }
    }
}

/// What is known of users and groups.
#[derive(Debug)]
pub struct Owners {
    owner: bool,
    group: bool,
    numeric: bool,
    may_give_away: bool,
    own_user: u32,
    /// Numbers here of names that were said; users first.
    known: Mutex<[HashMap<Vec<u8>, Option<u32>>; 2]>,
    known_bytes: AtomicUsize,
    unset: [AtomicU64; 2],
}

/// An owner as it can be set, and what of it cannot.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resolved {
    /// What is set.
    pub belongs: Belongs,
    /// The user and the group that were to be set and cannot.
    left: [Option<u32>; 2],
}

impl Owners {
    /// For a copy of `spec`.
    pub fn new(spec: &CopySpec) -> Self {
        Self {
            owner: spec.owner,
            group: spec.group,
            numeric: spec.numeric_ids,
            may_give_away: owner::may_give_away(),
            own_user: owner::own_user(),
            known: Mutex::default(),
            known_bytes: AtomicUsize::new(0),
            unset: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// What the sending end says of the entries that follow.
    ///
    /// # Errors
    /// [`FailureKind::Protocol`](farline_spec::FailureKind::Protocol) where nobody asked for it, and for what is no owner.
    pub fn resolve(&self, said: &Owner) -> Result<Resolved, Failure> {
        let is_name = |name: &[u8]| name.len() <= MOST_OWNER_BYTES && !name.contains(&0);
        if !(self.owner || self.group) || !is_name(&said.user_name) || !is_name(&said.group_name) {
            return Err(broken("owners that were not requested, or invalid owner names"));
        }
        if said.user == NOBODY || said.group == NOBODY {
            return Err(broken("an invalid user or group"));
        }
        let mut resolved = Resolved::default();
        if self.owner {
            let user = self.number(0, said.user, &said.user_name);
            match self.may_give_away || user == self.own_user {
                true => resolved.belongs.user = Some(user),
                false => resolved.left[0] = Some(user),
            }
        }
        if self.group {
            let group = self.number(1, said.group, &said.group_name);
            match self.may_give_away || owner::is_in_group(group) {
                true => resolved.belongs.group = Some(group),
                false => resolved.left[1] = Some(group),
            }
        }
        Ok(resolved)
    }

    /// As with rsync, root is root everywhere, and who has no name here goes by number.
    fn number(&self, kind: usize, id: u32, name: &[u8]) -> u32 {
        if self.numeric || id == 0 || name.is_empty() {
            return id;
        }
        let look = || match kind {
            0 => owner::user_id(name),
            _ => owner::group_id(name),
        };
        let mut known = self.known.lock().expect(POISONED);
        if let Some(known) = known[kind].get(name) {
            return known.unwrap_or(id);
        }
        let found = look();
        known[kind].insert(name.to_vec(), found);
        self.known_bytes
            .fetch_add(NAME_BYTES + name.len(), Ordering::Relaxed);
        found.unwrap_or(id)
    }

    /// Bytes that the names take, about.
    pub fn bytes(&self) -> usize {
        self.known_bytes.load(Ordering::Relaxed)
    }

    /// Counts a name of which something cannot be set.
    pub fn count(&self, resolved: &Resolved) {
        for (count, left) in self.unset.iter().zip(resolved.left) {
            count.fetch_add(u64::from(left.is_some()), Ordering::Relaxed);
        }
    }

    /// Names whose user could not be set, and whose group could not be.
    pub fn unset(&self) -> (u64, u64) {
        let [users, groups] = &self.unset;
        (users.load(Ordering::Relaxed), groups.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owners(owner: bool, numeric: bool, may_give_away: bool) -> Owners {
        let spec = CopySpec {
            owner,
            group: owner,
            numeric_ids: numeric,
            ..CopySpec::default()
        };
        Owners {
            may_give_away,
            own_user: 77,
            ..Owners::new(&spec)
        }
    }

    fn said(user: u32, name: &[u8]) -> Owner {
        Owner {
            user,
            group: 4_000_000_001,
            user_name: name.to_vec(),
            group_name: Vec::new(),
        }
    }

    #[test]
    fn names_count_before_numbers_unless_numbers_are_asked_for() {
        let user = |owners: &Owners, said: &Owner| owners.resolve(said).unwrap().belongs.user;
        let root = said(4_711, b"root");
        assert_eq!(user(&owners(true, false, true), &root), Some(0));
        assert_eq!(user(&owners(true, true, true), &root), Some(4_711));
        // Who is not known here goes by number, and root is root whatever it is called.
        assert_eq!(
            user(&owners(true, false, true), &said(4_711, b"no such user")),
            Some(4_711)
        );
        assert_eq!(
            user(&owners(true, false, true), &said(0, b"no such user")),
            Some(0)
        );
    }

    #[test]
    fn without_root_files_stay_ones_own_and_that_is_counted() {
        let owners = owners(true, true, false);
        let other = owners.resolve(&said(78, b"")).unwrap();
        assert_eq!(other.belongs, Belongs::default());
        owners.count(&other);
        owners.count(&owners.resolve(&said(77, b"")).unwrap());
        assert_eq!(owners.unset(), (1, 2));
    }

    #[test]
    fn bits_that_lend_rights_go_with_their_owner() {
        let belongs = |user, group| Belongs { user, group };
        assert_eq!(belongs(None, None).file_bits(), 0o777);
        assert_eq!(belongs(Some(1), None).file_bits(), 0o4777);
        assert_eq!(belongs(Some(1), Some(1)).file_bits(), 0o6777);
    }

    #[test]
    fn what_is_no_owner_breaks_the_protocol() {
        assert!(owners(false, false, true).resolve(&said(1, b"")).is_err());
        assert!(owners(true, false, true).resolve(&said(u32::MAX, b"")).is_err());
        assert!(owners(true, false, true).resolve(&said(1, &[b'a'; 257])).is_err());
        assert!(owners(true, false, true).resolve(&said(1, b"a\0b")).is_err());
    }
}
