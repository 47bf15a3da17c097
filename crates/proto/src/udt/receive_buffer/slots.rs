//! Where payloads lie until they are read: slots of one size, in chunks that are there only while they are needed.

use super::super::wire::MessageWord;

/// Bursts whose packets one chunk holds.
const CHUNK_BURSTS: usize = 16;
/// Chunks that reading has to leave behind before memory that was free all the while is given back.
const EPOCH_CHUNKS: u64 = 1024;

/// Memory for the payloads of adjacent packets.
#[derive(Debug)]
struct Chunk {
    bytes: Vec<u8>,
    lengths: Vec<u16>,
    /// Empty in streams, which have no use for them.
    words: Vec<MessageWord>,
}

/// Payloads by index, in a window that moves up.
///
/// Free chunks are used again last in, first out, while they are still in the cache. Together with those in use
/// they are never more than the window is long. A flow that stalls and drains in turn keeps what it needs at its
/// peaks: only chunks that stayed free through a whole epoch are given back, half of them each time.
#[derive(Debug)]
pub(super) struct Slots {
    payload_bytes: usize,
    chunk_packets: u64,
    has_words: bool,
    /// The chunks of the window, each at its number modulo the length.
    ring: Vec<Option<Chunk>>,
    /// Number of the first chunk of the window.
    low_chunk: u64,
    /// The first index after that chunk.
    low_end: u64,
    free: Vec<Chunk>,
    /// Fewest free chunks since the epoch began.
    fewest_free: usize,
    epoch_end_chunk: u64,
}

impl Slots {
    pub(super) fn new(payload_bytes: usize, burst_packets: usize, window: u64, has_words: bool) -> Self {
        let chunk_packets = (burst_packets.max(1) * CHUNK_BURSTS) as u64;
        let chunk_packets = chunk_packets.min(window);
        // The window may begin and end within chunks.
        let chunks = window.div_ceil(chunk_packets) + 1;
        Self {
            payload_bytes,
            chunk_packets,
            has_words,
            ring: (0..chunks).map(|_| None).collect(),
            low_chunk: 0,
            low_end: chunk_packets,
            free: Vec::new(),
            fewest_free: 0,
            epoch_end_chunk: EPOCH_CHUNKS,
        }
    }

    /// The place of an index: of its chunk in the ring, and of its slot in the chunk.
    fn place(&self, index: u64) -> (usize, usize) {
        let chunk = index / self.chunk_packets;
        let slot = index % self.chunk_packets;
        ((chunk % self.ring.len() as u64) as usize, slot as usize)
    }

    /// The chunk of a packet that was written, and its slot there.
    fn written(&self, index: u64) -> (&Chunk, usize) {
        let (place, slot) = self.place(index);
        (
            self.ring[place].as_ref().expect("the chunk of a stored packet"),
            slot,
        )
    }

    /// Stores a payload, no longer than a slot, of a packet within the window.
    pub(super) fn write(&mut self, index: u64, word: MessageWord, payload: &[u8]) {
        let (place, slot) = self.place(index);
        if self.ring[place].is_none() {
            self.ring[place] = Some(self.take_chunk());
        }
        let Some(chunk) = &mut self.ring[place] else {
            return;
        };
        let start = slot * self.payload_bytes;
        chunk.bytes[start..start + payload.len()].copy_from_slice(payload);
        chunk.lengths[slot] = payload.len() as u16;
        if let Some(place) = chunk.words.get_mut(slot) {
            *place = word;
        }
    }

    /// The message word of a stored packet. Not for streams.
    pub(super) fn word(&self, index: u64) -> MessageWord {
        let (chunk, slot) = self.written(index);
        chunk.words[slot]
    }

    /// Payload bytes of the packets from `first` up to, but not including, `end`, all of them stored.
    pub(super) fn bytes_of(&self, first: u64, end: u64) -> u64 {
        let mut bytes = 0;
        let mut index = first;
        while index < end {
            let (chunk, slot) = self.written(index);
            let count = (end - index).min(self.chunk_packets - slot as u64);
            let lengths = &chunk.lengths[slot..slot + count as usize];
            bytes += lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
            index += count;
        }
        bytes
    }

    /// Bytes that lie without a break in memory: those of packet `first`, less the first `offset` of them, and of
    /// the packets that follow, as long as all before the last fill their slots, are before `end` and have less
    /// than `enough` bytes. Gives how many packets it took.
    pub(super) fn run(&self, first: u64, offset: usize, end: u64, enough: usize) -> (&[u8], u64) {
        let (chunk, slot) = self.written(first);
        let most = (end - first).min(self.chunk_packets - slot as u64) as usize;
        let lengths = &chunk.lengths[slot..slot + most];
        let full = |&length: &u16| usize::from(length) == self.payload_bytes;
        let wanted = (enough.saturating_add(offset) / self.payload_bytes).min(most - 1);
        let before_last = lengths[..wanted].iter().take_while(|length| full(length)).count();
        let start = slot * self.payload_bytes;
        let stop = start + before_last * self.payload_bytes + usize::from(lengths[before_last]);
        (&chunk.bytes[start + offset..stop], before_last as u64 + 1)
    }

    /// Moves the window's low end up to `index`.
    #[inline]
    pub(super) fn release_below(&mut self, index: u64) {
        if index >= self.low_end {
            self.release_chunks(index / self.chunk_packets);
        }
    }

    /// Moves the window's low end up to chunk number `chunk`.
    fn release_chunks(&mut self, chunk: u64) {
        let passed = (chunk - self.low_chunk).min(self.ring.len() as u64);
        for number in self.low_chunk..self.low_chunk + passed {
            let place = (number % self.ring.len() as u64) as usize;
            self.free.extend(self.ring[place].take());
        }
        self.low_chunk = chunk;
        self.low_end = (chunk + 1) * self.chunk_packets;
        if chunk >= self.epoch_end_chunk {
            self.free.truncate(self.free.len() - self.fewest_free.div_ceil(2));
            self.fewest_free = self.free.len();
            self.epoch_end_chunk = chunk + EPOCH_CHUNKS;
        }
    }

    fn take_chunk(&mut self) -> Chunk {
        let packets = self.chunk_packets as usize;
        let chunk = self.free.pop().unwrap_or_else(|| Chunk {
            bytes: vec![0; packets * self.payload_bytes],
            lengths: vec![0; packets],
            words: vec![MessageWord(0); if self.has_words { packets } else { 0 }],
        });
        self.fewest_free = self.fewest_free.min(self.free.len());
        chunk
    }

    /// Chunks in memory, in use or not.
    #[cfg(test)]
    pub(super) fn chunks(&self) -> usize {
        self.ring.iter().flatten().count() + self.free.len()
    }
}
