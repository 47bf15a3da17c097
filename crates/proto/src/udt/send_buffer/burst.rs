//! Sending: which packets go next, as one run of bytes.

use super::super::wire::{HEADER_BYTES, stamp};
use super::{Burst, Dropped, SendBuffer};

impl SendBuffer {
    /// The packets that go next, stamped and noted as sent at `now_ns`: lost ones first, those with the smallest
    /// index first; else new ones with an index below `new_limit`. At most `max_packets` and the layout's
    /// `burst_packets`; never over a chunk's end; a packet shorter than the others only as the last one. `None` if
    /// nothing may go.
    ///
    /// `timestamp_us` is what the packets carry: microseconds since the socket was opened, wrapping. Messages whose
    /// time is over are passed by; ask [`take_dropped`](Self::take_dropped) after each call.
    pub fn next_burst(
        &mut self,
        now_ns: u64,
        timestamp_us: u32,
        max_packets: usize,
        new_limit: u64,
    ) -> Option<Burst<'_>> {
        if max_packets == 0 {
            return None;
        }
        let now_us = self.advance_clock(now_ns);
        let lost = self.next_lost(now_ns, now_us, max_packets);
        let is_repeat = lost.is_some();
        let (first, packets) = match lost {
            Some(run) => run,
            None => self.next_new(now_ns, now_us, max_packets, new_limit)?,
        };
        let (packets, bytes) = self.uniform(first, packets);
        if is_repeat {
            self.lost.take(first, packets as u64);
        } else {
            self.sent = first + packets as u64;
            self.unsent_bytes -= (bytes - packets * HEADER_BYTES) as u64;
        }
        self.ages.note(first, first + packets as u64 - 1, now_us);
        let bytes = self.seal(first, packets, bytes, now_us, timestamp_us);
        Some(Burst {
            bytes,
            packets,
            first,
            is_repeat,
        })
    }

    /// A message whose time is over, to be told to the receiver so that it does not wait for it. Found when a packet
    /// of it was to be repeated (libudt), or when the first packet of it was to be sent. Its packets stay in the
    /// window until an acknowledgement passes them. If they are marked lost again, the receiver did not get the news,
    /// and the message comes here again.
    pub fn take_dropped(&mut self, now_ns: u64) -> Option<Dropped> {
        if self.dropped.is_empty() && !self.mortals.is_empty() {
            let now_us = self.advance_clock(now_ns);
            self.next_lost(now_ns, now_us, 1);
        }
        self.dropped.pop_front()
    }

    /// Whether [`take_dropped`](Self::take_dropped) has news already found.
    pub fn has_dropped(&self) -> bool {
        !self.dropped.is_empty()
    }

    /// The next run of lost packets. Gives up messages whose time is over on the way.
    fn next_lost(&mut self, now_ns: u64, now_us: u32, max_packets: usize) -> Option<(u64, usize)> {
        let max = max_packets.min(self.burst_packets) as u64;
        loop {
            let (first, count) = self.lost.first_run(max)?;
            let Some(position) = self.mortals.first_over(first, first + count, now_ns, 0) else {
                return Some((first, count as usize));
            };
            let message = self.mortals.get(position);
            if message.first > first {
                return Some((first, (message.first - first) as usize));
            }
            let message = self.mortals.give_up(position);
            let last = message.end.min(self.sent) - 1;
            let from = message.first.max(self.acked);
            self.lost.take(from, last + 1 - from);
            self.note_passed(from, last, now_us);
            // From its beginning, even where that is acknowledged: the receiver has that part and must forget it.
            self.push_dropped(Dropped {
                message: message.number,
                first: message.first,
                last,
            });
        }
    }

    /// The next run of packets that were never sent. Passes by messages whose time was over before they were begun,
    /// as far as the limit allows: the receiver gives up no more than it has room for.
    fn next_new(&mut self, now_ns: u64, now_us: u32, max_packets: usize, limit: u64) -> Option<(u64, usize)> {
        loop {
            let first = self.sent;
            let available = self.end.min(limit).saturating_sub(first);
            if available == 0 {
                return None;
            }
            let count = self.aligned(first, available, max_packets);
            let over = self
                .mortals
                .first_over(first, first + count as u64, now_ns, first)
                .filter(|_| self.passes_unbegun);
            let Some(position) = over else {
                return Some((first, count));
            };
            let message = self.mortals.get(position);
            if message.first > first {
                return Some((first, (message.first - first) as usize));
            }
            let message = self.mortals.give_up(position);
            let last = message.end.min(first + available) - 1;
            self.skip_to(last + 1, now_us);
            self.push_dropped(Dropped {
                message: message.number,
                first,
                last,
            });
        }
    }

    /// How many of the `available` new packets go in one burst. Once bursts are out of step with the chunk's parts,
    /// every chunk would end with a short one; if there is more than enough to send, one short burst now puts an end
    /// to that.
    fn aligned(&self, first: u64, available: u64, max_packets: usize) -> usize {
        let left = self.chunks.left_in_chunk(self.chunks.place(first));
        let full = self.burst_packets;
        let count = usize::try_from(available).unwrap_or(usize::MAX).min(left);
        let to_step = match left % full {
            0 => full,
            to_step => to_step,
        };
        if max_packets >= full && count >= to_step + full {
            to_step
        } else {
            count.min(full).min(max_packets)
        }
    }

    /// Of `packets` packets from `first` on, those that go together: up to the chunk's end, and up to and with the
    /// first one that is shorter than a full one. Gives their count and their bytes.
    fn uniform(&mut self, first: u64, packets: usize) -> (usize, usize) {
        let place = self.chunks.place(first);
        let packets = packets.min(self.chunks.left_in_chunk(place));
        let (payload_bytes, packet_bytes) = (self.payload_bytes, self.packet_bytes);
        let slots = &self.chunks.chunk_mut(place).slots[place.slot..place.slot + packets];
        match slots
            .iter()
            .position(|slot| usize::from(slot.length) != payload_bytes)
        {
            Some(full) => (
                full + 1,
                full * packet_bytes + HEADER_BYTES + usize::from(slots[full].length),
            ),
            None => (packets, packets * packet_bytes),
        }
    }

    /// Stamps packets of one chunk, notes their sending, and gives their bytes.
    fn seal(&mut self, first: u64, packets: usize, length: usize, now_us: u32, timestamp_us: u32) -> &[u8] {
        let place = self.chunks.place(first);
        let packet_bytes = self.packet_bytes;
        let chunk = self.chunks.chunk_mut(place);
        let start = place.slot * packet_bytes;
        let bytes = &mut chunk.bytes[start..start + length];
        for packet in bytes.chunks_mut(packet_bytes) {
            stamp(packet, timestamp_us);
        }
        for slot in &mut chunk.slots[place.slot..place.slot + packets] {
            slot.sent_us = now_us;
            slot.sends = slot.sends.saturating_add(1);
        }
        bytes
    }

    /// Passes by packets that were never sent.
    fn skip_to(&mut self, end: u64, now_us: u32) {
        let first = self.sent;
        let bytes: u64 = (first..end)
            .map(|index| u64::from(self.chunks.slot(index).length))
            .sum();
        self.unsent_bytes -= bytes;
        self.sent = end;
        self.note_passed(first, end - 1, now_us);
    }

    /// Notes that news of these packets' end goes out now, in their place. They give no sample of the round trip.
    fn note_passed(&mut self, first: u64, last: u64, now_us: u32) {
        self.ages.note(first, last, now_us);
        for index in first..=last {
            let place = self.chunks.place(index);
            let slot = &mut self.chunks.chunk_mut(place).slots[place.slot];
            slot.sent_us = now_us;
            slot.sends = u8::MAX;
        }
    }

    /// Notes news for the receiver; parts of one message that follow each other make one.
    fn push_dropped(&mut self, dropped: Dropped) {
        match self.dropped.back_mut() {
            Some(back) if back.message == dropped.message && dropped.first <= back.last + 1 => {
                back.first = back.first.min(dropped.first);
                back.last = back.last.max(dropped.last);
            }
            _ => self.dropped.push_back(dropped),
        }
    }
}
