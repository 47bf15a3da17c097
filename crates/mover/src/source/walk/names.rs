//! Names of one folder, a few bytes each.

use std::io;

use farline_sys::file::{FileKind, Listing};

/// Names to be taken one after the other.
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    /// Where each begins and how long it is; what it stands for, where known.
    places: Vec<(u32, u16, Option<FileKind>)>,
    next: usize,
}

impl Names {
    /// One name.
    pub(super) fn of_one(name: &[u8]) -> Self {
        let mut names = Self::default();
        names.add(name, None);
        names
    }

    /// Adds one. A name is at most 255 bytes long to Linux; no folder has 4 GiB of names at once here.
    pub(super) fn add(&mut self, name: &[u8], kind: Option<FileKind>) {
        let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        self.bytes.extend_from_slice(name);
        self.places.push((start, length, kind));
    }

    /// Takes up to `most` names from a listing and puts them in order, each once: some file systems list a name again while
    /// their folder changes. Whether there may be more.
    ///
    /// # Errors
    /// The kernel's; what came before it has been taken.
    pub(super) fn fetch(&mut self, listing: &mut Listing, most: usize) -> io::Result<bool> {
        let mut outcome = Ok(false);
        for listed in listing {
            match listed {
                Ok(listed) => self.add(&listed.name, listed.kind),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
            if self.places.len() == most {
                outcome = Ok(true);
                break;
            }
        }
        let bytes = &self.bytes;
        self.places
            .sort_unstable_by(|one, other| slice(bytes, one).cmp(slice(bytes, other)));
        self.places
            .dedup_by(|one, other| slice(bytes, one) == slice(bytes, other));
        outcome
    }

    /// Takes the next name.
    pub(super) fn take_next(&mut self) -> Option<&[u8]> {
        self.take_next_of_kind().map(|(name, _)| name)
    }

    /// Takes the next name with what it stands for.
    pub(super) fn take_next_of_kind(&mut self) -> Option<(&[u8], Option<FileKind>)> {
        let place = self.places.get(self.next)?;
        self.next += 1;
        Some((slice(&self.bytes, place), place.2))
    }

    /// How many there are, those taken included.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether all have been taken.
    pub(super) fn is_empty(&self) -> bool {
        self.next >= self.places.len()
    }
}

fn slice<'a>(bytes: &'a [u8], (start, length, _): &(u32, u16, Option<FileKind>)) -> &'a [u8] {
    &bytes[*start as usize..*start as usize + usize::from(*length)]
}

/// `name` in the folder `parent`; the empty path is where it begins.
pub(super) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(parent.len() + 1 + name.len());
    if !parent.is_empty() {
        path.extend_from_slice(parent);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
