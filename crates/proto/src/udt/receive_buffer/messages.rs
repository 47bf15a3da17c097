//! Messages: which packets belong together, which messages are whole, and which never will be.

use super::super::wire::{MessageWord, SocketKind};
use super::ReceiveBuffer;
use super::bits::Bits;
use std::collections::BTreeMap;

/// A message that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRead {
    /// Bytes of it that are in the reader's buffer.
    pub bytes: usize,
    /// Its length in bytes. Where that is more, the rest of it is lost.
    pub length: usize,
}

/// Parts of messages and whole messages: the last index of each by its first.
#[derive(Debug)]
pub(super) struct Assembly {
    /// Packets from `read_index` on that are of no more use: read, discarded or given up.
    gone: Bits,
    /// Runs of packets of messages that are not whole. What stands beside a run is missing, or another message.
    parts: BTreeMap<u64, u64>,
    /// Whole messages that wait for packets before them.
    waiting: BTreeMap<u64, u64>,
    /// Whole messages that may be read.
    ready: BTreeMap<u64, u64>,
    discarded_packets: u64,
}

impl Assembly {
    pub(super) fn new(window: u64) -> Self {
        Self {
            gone: Bits::new(window),
            parts: BTreeMap::new(),
            waiting: BTreeMap::new(),
            ready: BTreeMap::new(),
            discarded_packets: 0,
        }
    }
}

/// What stands beside a packet.
#[derive(Debug, Clone, Copy)]
enum Beside {
    Missing,
    /// It was read, discarded or given up.
    Gone,
    Here(MessageWord),
}

/// Whether two adjacent packets are of one message.
fn are_joined(before: MessageWord, after: MessageWord) -> bool {
    let is_cut = before.boundary().is_last() || after.boundary().is_first();
    !is_cut && before.number() == after.number()
}

impl ReceiveBuffer {
    /// Reads the first message that may be read; none of a stream. A message longer than `buffer` is cut off, and
    /// the rest of it is lost.
    pub fn read_message(&mut self, buffer: &mut [u8]) -> Option<MessageRead> {
        let (first, last) = self.assembly.ready.pop_first()?;
        let length = self.slots.bytes_of(first, last + 1);
        let mut filled = 0;
        let mut index = first;
        while index <= last && filled < buffer.len() {
            let rest = &mut buffer[filled..];
            let (bytes, packets) = self.slots.run(index, 0, last + 1, rest.len());
            let count = bytes.len().min(rest.len());
            rest[..count].copy_from_slice(&bytes[..count]);
            filled += count;
            index += packets;
        }
        self.readable_bytes -= length;
        self.assembly.gone.set_range(first, last + 1);
        self.settle();
        Some(MessageRead {
            bytes: filled,
            length: length as usize,
        })
    }

    /// Gives up the packets of a drop request, which its sender will not send (again): those that are missing count
    /// as received, and what there is of their message is discarded. A message that is whole nevertheless is still
    /// delivered. Gives the range that is missing no more, if any.
    ///
    /// libudt 4.11 writes a `last` that is one past its message. So that packet is given up only if nothing else of
    /// the range was missing and later packets have come, as after a second request of a peer that means what it
    /// says. No effect on streams, whose packets are never dropped.
    pub fn drop_message(&mut self, first: u64, last: u64) -> Option<(u64, u64)> {
        if first >= last {
            return self.drop_packets(first, last);
        }
        let is_missing = (self.next..self.highest).contains(&last) && !self.stored.contains(last);
        let only_last = is_missing && self.stored.is_full(first.max(self.next), last);
        self.drop_packets(first, if only_last { last } else { last - 1 })
    }

    /// Like [`ReceiveBuffer::drop_message`], for a peer of which it is known that `last` is the last of the message.
    pub fn drop_packets(&mut self, first: u64, last: u64) -> Option<(u64, u64)> {
        let first = first.max(self.read_index);
        let last = last.min(self.read_index + self.capacity - 1);
        if first > last || self.kind == SocketKind::Stream {
            return None;
        }
        let missing = first.max(self.next);
        if missing <= last {
            self.stored
                .set_missing(missing, last + 1, &mut self.assembly.gone);
            self.highest = self.highest.max(last + 1);
        }
        self.discard_parts(first, last);
        self.next += self.stored.take_run(self.next);
        self.settle();
        Some((first, last))
    }

    /// Packets that have come and never will be given to anyone, because their messages cannot become whole.
    pub fn discarded_packets(&self) -> u64 {
        self.assembly.discarded_packets
    }

    /// Takes note of a packet that is in its slot.
    pub(super) fn note_in_message(&mut self, index: u64) {
        if index == self.next {
            self.next += 1 + self.stored.take_run(index + 1);
        } else {
            self.stored.set(index);
        }
        self.assemble(index);
        self.settle();
    }

    /// Joins a packet that has come with what is beside it.
    fn assemble(&mut self, index: u64) {
        let word = self.slots.word(index);
        let before = index
            .checked_sub(1)
            .map_or(Beside::Gone, |index| self.beside(index));
        let after = self.beside(index + 1);
        let (mut first, mut last) = (index, index);
        let (mut is_open_before, mut is_open_after) = (false, false);
        match before {
            Beside::Here(other) if are_joined(other, word) => first = self.take_part_before(index),
            Beside::Here(other) => {
                if !other.boundary().is_last() {
                    let first = self.take_part_before(index);
                    self.discard(first, index - 1);
                }
                is_open_before = true;
            }
            Beside::Gone => is_open_before = true,
            Beside::Missing => {}
        }
        match after {
            Beside::Here(other) if are_joined(word, other) => last = self.take_part(index + 1),
            Beside::Here(other) => {
                if !other.boundary().is_first() {
                    let last = self.take_part(index + 1);
                    self.discard(index + 1, last);
                }
                is_open_after = true;
            }
            Beside::Gone => is_open_after = true,
            Beside::Missing => {}
        }
        let is_broken =
            is_open_before && !word.boundary().is_first() || is_open_after && !word.boundary().is_last();
        if is_broken {
            self.discard(first, last);
        } else {
            self.file(first, last);
        }
    }

    /// Puts a run of packets where it belongs.
    fn file(&mut self, first: u64, last: u64) {
        let word = self.slots.word(first);
        let is_whole = word.boundary().is_first() && self.slots.word(last).boundary().is_last();
        if !is_whole {
            self.assembly.parts.insert(first, last);
        } else if word.in_order() {
            self.assembly.waiting.insert(first, last);
        } else {
            self.make_ready(first, last);
        }
    }

    fn make_ready(&mut self, first: u64, last: u64) {
        self.readable_bytes += self.slots.bytes_of(first, last + 1);
        self.assembly.ready.insert(first, last);
    }

    /// What follows from a change: messages need not wait any longer, one is too long, slots are free.
    fn settle(&mut self) {
        while let Some(entry) = self.assembly.waiting.first_entry() {
            if *entry.get() >= self.next {
                break;
            }
            let (first, last) = entry.remove_entry();
            self.make_ready(first, last);
        }
        if self.next == self.read_index + self.capacity {
            // Nothing is missing: a part at the very beginning is as long as the window.
            if let Some(last) = self.assembly.parts.remove(&self.read_index) {
                self.discard(self.read_index, last);
            }
        }
        let read = self.assembly.gone.take_run(self.read_index);
        self.move_read_index(self.read_index + read);
    }

    fn beside(&self, index: u64) -> Beside {
        if index < self.read_index {
            Beside::Gone
        } else if index >= self.highest || index >= self.next && !self.stored.contains(index) {
            Beside::Missing
        } else if self.assembly.gone.contains(index) {
            Beside::Gone
        } else {
            Beside::Here(self.slots.word(index))
        }
    }

    /// Takes out the part that ends just before `index`. Gives its first index.
    fn take_part_before(&mut self, index: u64) -> u64 {
        let part = self.assembly.parts.range(..index).next_back();
        let first = part.map_or(index - 1, |(&first, _)| first);
        self.assembly.parts.remove(&first);
        first
    }

    /// Takes out the part that begins with `first`. Gives its last index.
    fn take_part(&mut self, first: u64) -> u64 {
        self.assembly.parts.remove(&first).unwrap_or(first)
    }

    fn discard(&mut self, first: u64, last: u64) {
        self.assembly.discarded_packets += last - first + 1;
        self.assembly.gone.set_range(first, last + 1);
    }

    /// Discards all parts that have packets from `first` to `last`, or would have to go on into gone ones there.
    fn discard_parts(&mut self, first: u64, last: u64) {
        let from = match self.assembly.parts.range(..first).next_back() {
            Some((&start, &end)) if end >= first || end + 1 == first && self.ends_at_gone(end) => start,
            _ => first,
        };
        while let Some((&start, &end)) = self.assembly.parts.range(from..=last).next() {
            self.assembly.parts.remove(&start);
            self.discard(start, end);
        }
        let follows = last + 1;
        let is_cut_off = matches!(self.beside(last), Beside::Gone)
            && matches!(self.beside(follows), Beside::Here(word) if !word.boundary().is_first());
        if is_cut_off {
            let end = self.take_part(follows);
            self.discard(follows, end);
        }
    }

    /// Whether a part that ends with `last` and has no end there would have to go on into a gone packet.
    fn ends_at_gone(&self, last: u64) -> bool {
        !self.slots.word(last).boundary().is_last() && matches!(self.beside(last + 1), Beside::Gone)
    }
}
