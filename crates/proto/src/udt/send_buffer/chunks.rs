//! Memory for packets: runs of slots in wire format, taken when needed and reused while still in the cache.

use std::collections::VecDeque;

/// How many chunks without packets are kept for the next writes, about 64 MiB; more go back to the allocator.
const FREE_CHUNKS: usize = 64;

/// What is known of a packet beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot {
    /// When it was last sent: microseconds, the lower 32 bits.
    pub sent_us: u32,
    /// Bytes of payload.
    pub length: u16,
    /// How often it was sent; stays at its largest value.
    pub sends: u8,
}

/// One piece of memory for adjacent packets.
#[derive(Debug)]
pub(super) struct Chunk {
    pub bytes: Box<[u8]>,
    pub slots: Box<[Slot]>,
}

/// Where packets are: which chunk, and the packet's number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub chunk: usize,
    pub slot: usize,
}

/// The chunks of the window, the oldest first.
#[derive(Debug)]
pub(super) struct Chunks {
    chunks: VecDeque<Chunk>,
    /// Number of the oldest chunk: index of its first packet divided by `chunk_packets`.
    first: u64,
    /// Chunks without packets. The one emptied last is used first: it is the one most likely still in a cache.
    free: Vec<Chunk>,
    chunk_packets: usize,
    packet_bytes: usize,
}

impl Chunks {
    pub(super) fn new(chunk_packets: usize, packet_bytes: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            first: 0,
            free: Vec::new(),
            chunk_packets,
            packet_bytes,
        }
    }

    /// How many packets from this one on lie in the same chunk, it included.
    #[inline]
    pub(super) fn left_in_chunk(&self, place: Place) -> usize {
        self.chunk_packets - place.slot
    }

    /// Where the packet `index` is, which must not be below the oldest chunk.
    #[inline]
    pub(super) fn place(&self, index: u64) -> Place {
        let packets = self.chunk_packets as u64;
        Place {
            chunk: (index / packets - self.first) as usize,
            slot: (index % packets) as usize,
        }
    }

    /// What is known of the packet at `index`.
    #[inline]
    pub(super) fn slot(&self, index: u64) -> &Slot {
        let place = self.place(index);
        &self.chunks[place.chunk].slots[place.slot]
    }

    /// The chunk at a place.
    #[inline]
    pub(super) fn chunk_mut(&mut self, place: Place) -> &mut Chunk {
        &mut self.chunks[place.chunk]
    }

    /// The chunk at a place; the next one if there is none yet.
    pub(super) fn chunk_or_new(&mut self, place: Place) -> &mut Chunk {
        if place.chunk >= self.chunks.len() {
            let chunk = self.free.pop().unwrap_or_else(|| Chunk {
                bytes: vec![0; self.chunk_packets * self.packet_bytes].into(),
                slots: vec![Slot::default(); self.chunk_packets].into(),
            });
            self.chunks.push_back(chunk);
        }
        &mut self.chunks[place.chunk]
    }

    /// Gives up the chunks all of whose packets are below `index`.
    pub(super) fn release_below(&mut self, index: u64) {
        let first = index / self.chunk_packets as u64;
        while self.first < first {
            self.first += 1;
            let Some(chunk) = self.chunks.pop_front() else {
                continue;
            };
            if self.free.len() < FREE_CHUNKS {
                self.free.push(chunk);
            }
        }
    }

    /// Chunks with packets, and chunks kept for later.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.chunks.len(), self.free.len())
    }
}
