//! Writing: the application's bytes become packets, and are copied here and nowhere else.

use super::super::wire::{Boundary, DataHeader, HEADER_BYTES, MessageWord, SocketKind};
use super::SendBuffer;

/// The largest message number; 1 comes after it (libudt).
pub(super) const LAST_MESSAGE: u32 = (1 << 29) - 1;

/// The message number that follows.
pub(super) fn next_message(number: u32) -> u32 {
    if number >= LAST_MESSAGE { 1 } else { number + 1 }
}

impl SendBuffer {
    /// Takes as many of `data` as there is room for, and says how many. First it fills up the last packet if that is
    /// short and was never sent: libudt would make every write end with a short packet, each of which costs its
    /// receiver an acknowledgement. Each packet counts as a message of its own, which receivers of streams ignore.
    /// 0 if this buffer is for messages.
    pub fn write(&mut self, data: &[u8]) -> usize {
        if self.kind != SocketKind::Stream {
            return 0;
        }
        let filled = self.fill_tail(data);
        let room = usize::try_from(self.free_packets())
            .unwrap_or(usize::MAX)
            .saturating_mul(self.payload_bytes);
        let rest = &data[filled..];
        let rest = &rest[..rest.len().min(room)];
        let mut number = self.next_message;
        self.append(rest, || {
            let word = MessageWord::new(Boundary::Only, false, number);
            number = next_message(number);
            word
        });
        self.next_message = number;
        filled + rest.len()
    }

    /// Takes a message, all of it or, if there is no room for all of it now, nothing and gives `false`. With
    /// `in_order` it is delivered only after those before it. After `expires_ns` it is not repeated, nor begun; see
    /// [`take_dropped`](Self::take_dropped). An empty message is nothing that a receiver could notice, and nothing is
    /// sent for it. Always `false` if it is larger than [`capacity_bytes`](Self::capacity_bytes) or if this buffer
    /// is for a stream.
    pub fn write_message(&mut self, data: &[u8], in_order: bool, expires_ns: Option<u64>) -> bool {
        let packets = data.len().div_ceil(self.payload_bytes) as u64;
        if self.kind != SocketKind::Message || packets > self.free_packets() {
            return false;
        }
        if packets == 0 {
            return true;
        }
        let (first, number) = (self.end, self.next_message);
        let mut position = 0;
        self.append(data, || {
            position += 1;
            let boundary = match (position == 1, position == packets) {
                (true, true) => Boundary::Only,
                (true, false) => Boundary::First,
                (false, true) => Boundary::Last,
                (false, false) => Boundary::Middle,
            };
            MessageWord::new(boundary, in_order, number)
        });
        self.next_message = next_message(number);
        if let Some(expires_ns) = expires_ns {
            self.mortals.push(first, self.end, number, expires_ns);
        }
        true
    }

    /// Adds to the last packet what it has room for, if it may still change.
    fn fill_tail(&mut self, data: &[u8]) -> usize {
        if self.end == self.sent || self.end == self.sealed {
            return 0;
        }
        let place = self.chunks.place(self.end - 1);
        let (payload_bytes, packet_bytes) = (self.payload_bytes, self.packet_bytes);
        let chunk = self.chunks.chunk_mut(place);
        let length = usize::from(chunk.slots[place.slot].length);
        let count = data.len().min(payload_bytes - length);
        if count == 0 {
            return 0;
        }
        let start = place.slot * packet_bytes + HEADER_BYTES + length;
        chunk.bytes[start..start + count].copy_from_slice(&data[..count]);
        chunk.slots[place.slot].length = (length + count) as u16;
        self.unsent_bytes += count as u64;
        count
    }

    /// Makes packets of all of `data`, for which there must be room.
    fn append(&mut self, data: &[u8], mut next_word: impl FnMut() -> MessageWord) {
        let (payload_bytes, packet_bytes) = (self.payload_bytes, self.packet_bytes);
        let mut header = DataHeader {
            sequence: self.isn.plus(self.end),
            message: MessageWord(0),
            timestamp_us: 0,
            destination: self.destination,
        };
        let mut rest = data;
        while !rest.is_empty() {
            let place = self.chunks.place(self.end);
            let run_bytes = rest.len().min(self.chunks.left_in_chunk(place) * payload_bytes);
            let (run, after) = rest.split_at(run_bytes);
            rest = after;
            let chunk = self.chunks.chunk_or_new(place);
            let packets = chunk.bytes[place.slot * packet_bytes..].chunks_exact_mut(packet_bytes);
            let slots = chunk.slots[place.slot..].iter_mut();
            for ((payload, packet), slot) in run.chunks(payload_bytes).zip(packets).zip(slots) {
                header.message = next_word();
                header.write(packet);
                header.sequence = header.sequence.plus(1);
                packet[HEADER_BYTES..HEADER_BYTES + payload.len()].copy_from_slice(payload);
                slot.length = payload.len() as u16;
                slot.sends = 0;
            }
            self.end += run_bytes.div_ceil(payload_bytes) as u64;
        }
        self.unsent_bytes += data.len() as u64;
    }
}
