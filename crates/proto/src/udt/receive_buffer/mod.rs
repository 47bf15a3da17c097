//! Packets that have come: in what order, and their payloads until the application reads them.
//!
//! What it does: refuses what it has already and what lies beyond its window, knows the first packet that is
//! missing, gives a stream's bytes in order and messages whole.
//! What it must not do: report gaps ([`super::gaps`]), answer, look at a clock.
//!
//! Two ways lead to the application. In the first, the reader waits and nothing lies here that it would have to
//! have before: the connection copies the payload straight to it and only says so ([`ReceiveBuffer::bypass`]). In
//! the second the payload is copied into a slot, and out of it when it is read.
//!
//! ```text
//!   read_index          next                 highest        read_index + capacity
//!       │ to be read     │ ▒ ▒▒▒   ▒▒  ▒▒▒▒▒▒▒▒▒│ nothing yet    │ refused
//! ```
//!
//! Streams ignore message words. Of messages, all that a peer may send is given a meaning:
//!
//! - A message without the in-order flag is given as soon as it is whole, even if packets before it are missing.
//!   One with the flag is given when nothing before it is missing. Of several, the one with the smallest index.
//! - Packets belong together if they are adjacent, have one number, and neither an end nor a beginning is between
//!   them. Where that breaks off, before an end or after no beginning, what there is of the message is discarded.
//! - A message that fills the whole window and still has not ended is discarded, and so is its rest: half of one
//!   is never given. That needs a peer whose messages are longer than what it was told there is room for.
//!
//! All memory, and the work of any call, is limited by the window.

mod bits;
mod messages;
mod slots;
#[cfg(test)]
mod tests;

pub use messages::MessageRead;

use super::wire::{MessageWord, SocketKind};
use bits::Bits;
use messages::Assembly;
use slots::Slots;

/// No window is longer, whatever is asked for: 2^26 packets.
const MAX_CAPACITY_PACKETS: u64 = 1 << 26;

/// The form of a receive buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveLayout {
    /// Longest payload of a packet, bytes: 1 to 65,535.
    pub payload_bytes: usize,
    /// Packets in a burst; memory is taken for 16 of them at a time.
    pub burst_packets: usize,
    /// How many packets may lie between the first that was not read and the last that is kept; at most 2^26.
    pub capacity_packets: u64,
    /// Bytes in order, or messages.
    pub kind: SocketKind,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It is kept.
    Fresh,
    /// It had come before, or was given up. Nothing changed.
    Duplicate,
    /// It lies beyond the window, or its payload is longer than was agreed on. Nothing changed.
    TooFar,
}

/// Packets that were received, by index.
#[derive(Debug)]
pub struct ReceiveBuffer {
    kind: SocketKind,
    payload_bytes: usize,
    capacity: u64,
    read_index: u64,
    /// Bytes of the packet at `read_index` that were read already.
    read_offset: usize,
    next: u64,
    highest: u64,
    readable_bytes: u64,
    /// Packets after `next` that have come, or were given up. Never has `next` itself or what is before it.
    stored: Bits,
    slots: Slots,
    assembly: Assembly,
}

impl ReceiveBuffer {
    /// An empty buffer. Values of the layout outside their limits are brought into them.
    pub fn new(layout: ReceiveLayout) -> Self {
        let payload_bytes = layout.payload_bytes.clamp(1, usize::from(u16::MAX));
        let capacity = layout.capacity_packets.clamp(1, MAX_CAPACITY_PACKETS);
        let has_messages = layout.kind == SocketKind::Message;
        Self {
            kind: layout.kind,
            payload_bytes,
            capacity,
            read_index: 0,
            read_offset: 0,
            next: 0,
            highest: 0,
            readable_bytes: 0,
            stored: Bits::new(capacity),
            slots: Slots::new(payload_bytes, layout.burst_packets, capacity, has_messages),
            assembly: Assembly::new(if has_messages { capacity } else { 1 }),
        }
    }

    /// Index of the first packet that has not come.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Index of the first packet that the application has not read.
    #[inline]
    pub fn read_index(&self) -> u64 {
        self.read_index
    }

    /// One past the highest index that has come or was given up.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// How many packets, counted from [`ReceiveBuffer::next`], there is room for: the window to tell the peer.
    #[inline]
    pub fn free_packets(&self) -> u64 {
        self.capacity - (self.next - self.read_index)
    }

    /// Payload bytes that can be read now; of messages, those of whole messages.
    #[inline]
    pub fn readable_bytes(&self) -> u64 {
        self.readable_bytes
    }

    /// Payload bytes that there is room for if every packet is full.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity * self.payload_bytes as u64
    }

    /// Takes in a packet that cannot be bypassed. The index may be any that a peer can send.
    #[inline]
    pub fn insert(&mut self, index: u64, word: MessageWord, payload: &[u8]) -> Inserted {
        if index < self.next {
            return Inserted::Duplicate;
        }
        if index - self.read_index >= self.capacity || payload.len() > self.payload_bytes {
            return Inserted::TooFar;
        }
        if index < self.highest && self.stored.contains(index) {
            return Inserted::Duplicate;
        }
        self.slots.write(index, word, payload);
        self.highest = self.highest.max(index + 1);
        match self.kind {
            SocketKind::Stream => self.note_in_stream(index, payload.len()),
            SocketKind::Message => self.note_in_message(index),
        }
        Inserted::Fresh
    }

    fn note_in_stream(&mut self, index: u64, bytes: usize) {
        if index > self.next {
            self.stored.set(index);
            return;
        }
        self.next += 1;
        self.readable_bytes += bytes as u64;
        self.advance_stream();
    }

    /// Goes on over packets that had come before the one that was missing.
    fn advance_stream(&mut self) {
        if self.highest > self.next {
            let end = self.next + self.stored.take_run(self.next);
            self.readable_bytes += self.slots.bytes_of(self.next, end);
            self.next = end;
        }
        // Packets without a payload are nothing to wait for.
        if self.readable_bytes == 0 {
            self.move_read_index(self.next);
        }
    }

    fn move_read_index(&mut self, index: u64) {
        self.read_index = index;
        self.read_offset = 0;
        self.slots.release_below(index);
    }

    /// Whether the payload of packet `index` may be given to a stream's reader right away: it is the next one, and
    /// nothing waits to be read before it. The same then holds for any run of adjacent packets that it begins.
    #[inline]
    pub fn can_bypass(&self, index: u64) -> bool {
        index == self.next && self.next == self.read_index && self.kind == SocketKind::Stream
    }

    /// Notes that the next `packets` packets have come and were read, none of them through this buffer. Only right
    /// after [`ReceiveBuffer::can_bypass`] said yes to the first one. What the buffer has of them already is
    /// discarded; what follows on them becomes readable.
    #[inline]
    pub fn bypass(&mut self, packets: u64) {
        debug_assert!(self.can_bypass(self.next), "something waits to be read");
        let end = self.next + packets;
        if self.highest > self.next {
            self.stored.clear(self.next, end.min(self.highest));
        }
        self.next = end;
        self.highest = self.highest.max(end);
        self.move_read_index(end);
        self.advance_stream();
    }

    /// Reads a stream's bytes into `buffer`. Gives how many: 0 if there are none, and of messages.
    pub fn read(&mut self, buffer: &mut [u8]) -> usize {
        if self.kind == SocketKind::Message {
            return 0;
        }
        let mut filled = 0;
        while self.read_index < self.next && filled < buffer.len() {
            let rest = &mut buffer[filled..];
            let (bytes, packets) = self
                .slots
                .run(self.read_index, self.read_offset, self.next, rest.len());
            let count = bytes.len().min(rest.len());
            rest[..count].copy_from_slice(&bytes[..count]);
            filled += count;
            if count == bytes.len() {
                self.move_read_index(self.read_index + packets);
            } else {
                // All packets of the run before its last one are full.
                let end = self.read_offset + count;
                self.move_read_index(self.read_index + (end / self.payload_bytes) as u64);
                self.read_offset = end % self.payload_bytes;
            }
        }
        self.readable_bytes -= filled as u64;
        if self.readable_bytes == 0 {
            self.move_read_index(self.next);
        }
        filled
    }
}
