//! Files that go straight from the page cache to their streams: nobody reads them here (`sendfile`).
//!
//! The kernel takes their bytes when they leave, or later: what another program writes into such a file meanwhile arrives.
//! Whether a file was the same to the end is therefore seen only once the other end has all of it ([`Feedback::Whole`]);
//! until then it stays open, and it is not settled.
//!
//! [`Feedback::Whole`]: crate::message::Feedback::Whole

use std::sync::Arc;

use farline_proto::copy::sender::Piece;

use crate::engine::OpenFile;

/// Files that may be open because the other end has not said yet that it has them, at most; others are read meanwhile.
const MOST_FILES: u64 = 256;
/// One copy has for them this part of what the process may open.
const PART_OF_OPEN_FILES: u64 = 16;

/// The files of one copy that go straight to streams.
#[derive(Debug)]
pub(super) struct Straight {
    among: Arc<()>,
    most: usize,
    /// They are on this device; `None` where it was asked for, whatever that is.
    device: Option<u64>,
}

/// The place of one of them, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _among: Arc<()>,
}

impl Straight {
    /// None yet, of a process that may have so many files open; only files on `device`, if one is given.
    pub(super) fn new(open_files: u64, device: Option<u64>) -> Self {
        Self {
            among: Arc::default(),
            // Bounded: fits into memory.
            most: (open_files / PART_OF_OPEN_FILES).min(MOST_FILES) as usize,
            device,
        }
    }

    /// A place for one more file, which is on `device`, if there is one.
    pub(super) fn place(&self, device: u64) -> Option<Place> {
        let is_there = self.device.is_none_or(|there| there == device);
        let has_room = Arc::strong_count(&self.among) <= self.most;
        (is_there && has_room).then(|| Place {
            _among: Arc::clone(&self.among),
        })
    }
}

/// Where the payload of a frame is.
#[derive(Debug)]
pub(super) struct Pointer {
    /// The file, open.
    pub(super) open: Arc<OpenFile>,
    /// The part of it.
    pub(super) piece: Piece,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_for_one_device_where_nobody_asked_and_are_given_back() {
        let straight = Straight::new(2 * PART_OF_OPEN_FILES, Some(7));
        assert!(straight.place(8).is_none());
        let places = [straight.place(7).unwrap(), straight.place(7).unwrap()];
        assert!(straight.place(7).is_none());
        drop(places);
        assert!(straight.place(7).is_some());
        assert!(Straight::new(1 << 20, None).place(8).is_some());
        assert!(Straight::new(0, None).place(8).is_none());
    }
}
