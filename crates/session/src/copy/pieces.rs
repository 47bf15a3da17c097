//! What has moved of frames that are not whole yet.

use std::sync::atomic::{AtomicU64, Ordering};

use farline_spec::CopyProgress;

/// Frames of data that are on a stream in part. The mover counts whole ones: those that go when they begin, those that come
/// when they are there. At a low rate that is a long time.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Bytes of the frames that go.
    begun_bytes: AtomicU64,
    /// Bytes of them, and of the frames that come, that have moved.
    moved_bytes: AtomicU64,
}

impl Pieces {
    /// Makes whole frames of `seen` what has moved, and takes what is under way to the other end from what is settled.
    pub fn correct(&self, seen: &mut CopyProgress, under_way_bytes: u64) {
        let moved = self.moved_bytes.load(Ordering::Relaxed);
        let begun = self.begun_bytes.load(Ordering::Relaxed);
        seen.moved_bytes = (seen.moved_bytes + moved).saturating_sub(begun);
        // What a stream has of a frame that is not whole is not counted as settled yet.
        seen.settled_bytes = seen
            .settled_bytes
            .saturating_sub(under_way_bytes.saturating_sub(moved));
    }
}

/// One frame that is on a stream in part, until it is dropped.
pub struct Piece<'a> {
    /// Where it counts, if it does.
    pieces: Option<&'a Pieces>,
    /// All of it, of one that goes.
    begun: u64,
    pub moved: usize,
}

impl<'a> Piece<'a> {
    /// One that comes, or one that goes with `begun` bytes.
    pub fn of(pieces: &'a Pieces, is_data: bool, begun: usize) -> Self {
        let pieces = is_data.then_some(pieces);
        let begun = begun as u64;
        if let Some(pieces) = pieces {
            pieces.begun_bytes.fetch_add(begun, Ordering::Relaxed);
        }
        Self {
            pieces,
            begun,
            moved: 0,
        }
    }

    /// So much more of it has moved.
    pub fn note(&mut self, bytes: usize) {
        self.moved += bytes;
        if let Some(pieces) = self.pieces {
            pieces.moved_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        if let Some(pieces) = self.pieces {
            pieces.begun_bytes.fetch_sub(self.begun, Ordering::Relaxed);
            pieces.moved_bytes.fetch_sub(self.moved as u64, Ordering::Relaxed);
        }
    }
}
