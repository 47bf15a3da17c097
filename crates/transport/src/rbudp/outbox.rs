//! Files on their way out: what was given of them is kept until the other end has it.

use std::collections::VecDeque;

use farline_sys::page_buffer::PageBuffer;

/// The bytes of the blasts under way, which a sender's machine numbers from 0 and in order.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Room of a blast.
    payload_bytes: usize,
    blasts: VecDeque<Held>,
    /// Memory of blasts that the other end has.
    free: Vec<PageBuffer>,
}

#[derive(Debug)]
struct Held {
    number: u32,
    memory: PageBuffer,
    filled: usize,
}

impl Outbox {
    /// For blasts of up to `payload_bytes`. Memory is taken when a blast begins.
    pub(super) fn new(payload_bytes: usize) -> Self {
        Self {
            payload_bytes,
            blasts: VecDeque::new(),
            free: Vec::new(),
        }
    }

    /// Adds `bytes` to blast `number`, the newest or the one after it; no more than it has room for.
    pub(super) fn put(&mut self, number: u32, bytes: &[u8]) {
        if self.blasts.back().is_none_or(|newest| newest.number != number) {
            let memory = self.free.pop();
            self.blasts.push_back(Held {
                number,
                memory: memory.unwrap_or_else(|| PageBuffer::new(self.payload_bytes)),
                filled: 0,
            });
        }
        if let Some(newest) = self.blasts.back_mut() {
            let end = newest.filled + bytes.len();
            newest.memory[newest.filled..end].copy_from_slice(bytes);
            newest.filled = end;
        }
    }

    /// The bytes of blast `number` from `offset` on, into `place`; false if they are not here.
    pub(super) fn fill(&self, number: u32, offset: usize, place: &mut [u8]) -> bool {
        let held = self.blasts.iter().find(|held| held.number == number);
        let bytes = held.and_then(|held| held.memory[..held.filled].get(offset..offset + place.len()));
        bytes.map(|bytes| place.copy_from_slice(bytes)).is_some()
    }

    /// The other end has the oldest blast.
    pub(super) fn release_oldest(&mut self) {
        self.free.extend(self.blasts.pop_front().map(|held| held.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blasts_are_kept_until_the_other_end_has_them() {
        let mut outbox = Outbox::new(8);
        outbox.put(0, b"abc");
        outbox.put(0, b"defgh");
        outbox.put(1, b"x");
        let read = |outbox: &Outbox, number, offset, length| {
            let mut place = vec![0; length];
            outbox.fill(number, offset, &mut place).then_some(place)
        };
        assert_eq!(read(&outbox, 0, 2, 4), Some(b"cdef".to_vec()));
        assert_eq!(read(&outbox, 1, 0, 2), None, "only what was given");
        outbox.release_oldest();
        assert_eq!(read(&outbox, 0, 0, 1), None);
        outbox.put(2, b"yz");
        assert_eq!(read(&outbox, 1, 0, 1), Some(b"x".to_vec()));
        assert_eq!(read(&outbox, 2, 0, 2), Some(b"yz".to_vec()));
        assert!(outbox.free.is_empty(), "memory is used again");
    }
}
