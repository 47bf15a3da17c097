//! What was written and is not acknowledged: packets ready to go, in wire format.
//!
//! What it does: cuts the application's bytes into packets, hands them out in bursts that the kernel can take in one
//! call, keeps them until they are acknowledged, knows which are lost and how long ago each was sent.
//! What it must not do: decide when and how much may be sent; that is the connection's question.
//!
//! ```text
//!  index      acked            sent               end
//!  ────────────┼────────────────┼──────────────────┼──────────── room up to acked + capacity
//!              │ under way, or  │ written, never   │
//!              │ in `lost`      │ sent             │
//!  chunks   [ s s s s | s s s s ][ s s s s | s s . . ]      a slot is [16 bytes of header | payload]
//!               burst     burst      burst     burst
//! ```
//!
//! A payload byte is copied once, by `write`, straight to where the kernel takes it from; the header is written at
//! the same time, and sending only stamps the time. Memory comes in chunks of 16 bursts, when it is needed, and the
//! chunk that was emptied last is used first. Every call costs at most one step for each packet it moves; marking
//! losses costs one step for 64.

mod ages;
mod burst;
mod chunks;
mod messages;
#[cfg(test)]
mod tests;
mod write;

use std::collections::VecDeque;

use self::ages::{Ages, Ripe};
use self::chunks::Chunks;
use self::messages::Mortals;
use super::loss_list::{LossList, WORD_PACKETS, mask_in_word};
use super::wire::{HEADER_BYTES, Sequence, SocketKind};

/// Bursts in one chunk of memory.
const CHUNK_BURSTS: usize = 16;
const NS_PER_US: u64 = 1_000;

/// What a send buffer is made for.
#[derive(Debug, Clone)]
pub struct SendLayout {
    /// Bytes of a full packet, header included: 17 to 65,551.
    pub packet_bytes: usize,
    /// Packets that the kernel takes in one call, at least 1.
    pub burst_packets: usize,
    /// Packets that may be written and not acknowledged, at least 1.
    pub capacity_packets: u64,
    /// Sequence number of the first packet.
    pub isn: Sequence,
    /// Socket id of the receiver.
    pub destination: u32,
    /// Stream or messages.
    pub kind: SocketKind,
}

/// Packets to be sent in one call.
#[derive(Debug)]
pub struct Burst<'a> {
    /// The packets one after the other. All but the last have the full length; the last may be shorter.
    pub bytes: &'a [u8],
    /// How many there are, at least 1.
    pub packets: usize,
    /// Index of the first.
    pub first: u64,
    /// Whether they were sent before.
    pub is_repeat: bool,
}

/// What an acknowledgement brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// Packets newly acknowledged.
    pub packets: u64,
    /// When the last of them was sent; `None` if it was sent more than once, or nothing is new.
    pub sent_ns: Option<u64>,
}

/// A message, or a part of one, that is not sent any more: content of a drop request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dropped {
    /// Number of the message on the wire.
    pub message: u32,
    /// Index of the first packet that is given up.
    pub first: u64,
    /// Index of the last one.
    pub last: u64,
}

/// The packets of one direction from writing to acknowledgement.
#[derive(Debug)]
pub struct SendBuffer {
    kind: SocketKind,
    isn: Sequence,
    destination: u32,
    packet_bytes: usize,
    payload_bytes: usize,
    burst_packets: usize,
    capacity_packets: u64,
    chunks: Chunks,
    acked: u64,
    sent: u64,
    end: u64,
    unsent_bytes: u64,
    next_message: u32,
    lost: LossList,
    ages: Ages,
    /// The latest time heard of, in microseconds; times of sending are measured back from it.
    clock_us: u64,
    mortals: Mortals,
    dropped: VecDeque<Dropped>,
    /// Packets below this index are not filled up any more.
    sealed: u64,
    /// Whether a message whose time is over is passed by though it was never begun.
    passes_unbegun: bool,
}

impl SendBuffer {
    /// An empty buffer. Values outside their range are taken as the nearest possible ones.
    pub fn new(layout: SendLayout) -> Self {
        let packet_bytes = layout
            .packet_bytes
            .clamp(HEADER_BYTES + 1, HEADER_BYTES + usize::from(u16::MAX));
        let burst_packets = layout.burst_packets.max(1);
        let capacity_packets = layout.capacity_packets.max(1);
        // A small buffer needs no large chunk.
        let bursts = usize::try_from(capacity_packets.div_ceil(burst_packets as u64)).unwrap_or(CHUNK_BURSTS);
        let chunk_packets = burst_packets * bursts.min(CHUNK_BURSTS);
        Self {
            kind: layout.kind,
            isn: layout.isn,
            destination: layout.destination,
            packet_bytes,
            payload_bytes: packet_bytes - HEADER_BYTES,
            burst_packets,
            capacity_packets,
            chunks: Chunks::new(chunk_packets, packet_bytes),
            acked: 0,
            sent: 0,
            end: 0,
            unsent_bytes: 0,
            next_message: 1,
            lost: LossList::new(capacity_packets),
            ages: Ages::default(),
            clock_us: 0,
            mortals: Mortals::default(),
            dropped: VecDeque::new(),
            sealed: 0,
            passes_unbegun: false,
        }
    }

    /// The last packet stays as short as it is.
    pub fn end_packet(&mut self) {
        self.sealed = self.end;
    }

    /// From now on messages whose time is over are dropped even if nothing of them was sent. Not every receiver
    /// understands that: libudt waits for packets that it was told to drop before it knew of them.
    pub fn pass_unbegun(&mut self) {
        self.passes_unbegun = true;
    }

    /// Index of the first packet that is not acknowledged.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// Index of the next packet that was never sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// One past the index of the last packet written.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Payload bytes that a write would find room for now, at most. A message needs whole packets.
    pub fn free_bytes(&self) -> u64 {
        let tail_bytes = match self.kind {
            SocketKind::Stream if self.end > self.sent => {
                self.payload_bytes as u64 - u64::from(self.chunks.slot(self.end - 1).length)
            }
            _ => 0,
        };
        self.free_packets() * self.payload_bytes as u64 + tail_bytes
    }

    /// Payload bytes that the empty buffer has room for.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_packets * self.payload_bytes as u64
    }

    /// Payload bytes written and never sent.
    pub fn unsent_bytes(&self) -> u64 {
        self.unsent_bytes
    }

    /// Packets marked lost and not sent again yet.
    pub fn lost_packets(&self) -> u64 {
        self.lost.len()
    }

    /// When the packet was last sent, to the microsecond, rounded down; `None` if it is not under way.
    pub fn sent_ns(&self, index: u64) -> Option<u64> {
        if !(self.acked..self.sent).contains(&index) {
            return None;
        }
        Some(self.time_ns(self.chunks.slot(index).sent_us))
    }

    /// Everything below `next` has arrived. An index beyond what was sent acknowledges all that was sent.
    pub fn acknowledge(&mut self, next: u64) -> Acked {
        let next = next.min(self.sent);
        if next <= self.acked {
            return Acked {
                packets: 0,
                sent_ns: None,
            };
        }
        let newest = self.chunks.slot(next - 1);
        let sent_ns = (newest.sends == 1).then(|| self.time_ns(newest.sent_us));
        let packets = next - self.acked;
        self.acked = next;
        self.chunks.release_below(next);
        self.lost.remove_below(next);
        self.ages.remove_below(next);
        self.mortals.remove_below(next);
        Acked { packets, sent_ns }
    }

    /// Marks those of `first ..= last` that are under way and were last sent at least `min_age_ns` before `now_ns`, so
    /// that they are sent again; gives how many were not marked before. Costs one step for 64 packets of the window.
    pub fn mark_lost(&mut self, first: u64, last: u64, now_ns: u64, min_age_ns: u64) -> u64 {
        let first = first.max(self.acked);
        let last = last.min(self.sent.saturating_sub(1));
        if first > last || first >= self.sent {
            return 0;
        }
        let now_us = self.advance_clock(now_ns);
        let min_age_us = u32::try_from(min_age_ns.div_ceil(NS_PER_US)).unwrap_or(u32::MAX);
        let words = first / WORD_PACKETS..=last / WORD_PACKETS;
        words
            .map(|word| {
                let asked = mask_in_word(word, first, last) & !self.lost.word(word);
                let ripe = if asked == 0 {
                    0
                } else {
                    asked & self.ripe(word, now_us, min_age_us)
                };
                self.lost.insert_in_word(word, ripe)
            })
            .sum()
    }

    /// The bits of those packets of `word` that were sent at least so long ago.
    fn ripe(&mut self, word: u64, now_us: u32, min_age_us: u32) -> u64 {
        match self.ages.ripe(word, now_us, min_age_us) {
            Ripe::All => u64::MAX,
            Ripe::None => 0,
            Ripe::Some => self.ripe_one_by_one(word, now_us, min_age_us),
        }
    }

    /// The same with a look at each packet. What is not marked yet is what the next look is about: the oldest of
    /// these is noted, so that a report that comes again and again does not cause this again and again.
    fn ripe_one_by_one(&mut self, word: u64, now_us: u32, min_age_us: u32) -> u64 {
        let start = word * WORD_PACKETS;
        let marked = self.lost.word(word);
        let mut ripe = 0;
        let mut oldest_us = now_us;
        for index in start.max(self.acked)..(start + WORD_PACKETS).min(self.sent) {
            let bit = 1 << (index - start);
            let sent_us = self.chunks.slot(index).sent_us;
            let age_us = now_us.wrapping_sub(sent_us);
            if age_us >= min_age_us {
                ripe |= bit;
            }
            if marked & bit == 0 && age_us > now_us.wrapping_sub(oldest_us) {
                oldest_us = sent_us;
            }
        }
        self.ages.set_oldest(word, oldest_us);
        ripe
    }

    /// Packets that there is room for.
    fn free_packets(&self) -> u64 {
        self.capacity_packets - (self.end - self.acked)
    }

    /// Notes the time, which never goes back; gives the lower bits of it in microseconds.
    fn advance_clock(&mut self, now_ns: u64) -> u32 {
        self.clock_us = self.clock_us.max(now_ns / NS_PER_US);
        self.clock_us as u32
    }

    /// The time whose lower bits these are, at or before the latest time heard of.
    fn time_ns(&self, sent_us: u32) -> u64 {
        let age_us = (self.clock_us as u32).wrapping_sub(sent_us);
        self.clock_us.saturating_sub(u64::from(age_us)) * NS_PER_US
    }
}
