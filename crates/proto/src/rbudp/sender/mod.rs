//! The sending end of a stream of blasts.
//!
//! What it does: cuts payload into blasts and packets, sends gaps before new packets, says what it has sent (a DONE for
//! each pass, or several while a blast goes on), takes reports, and lowers the rate where a loss bound asks for it.
//! What it must not do: pace. The driver sends bursts at `rate_bps`.
//!
//! In: payload byte counts, messages of the receiver, the time. Out: packet numbers, DONEs, messages.
//!
//! Files: `outgoing` one blast, `repeats` what is to be sent again, `bursts` which packets go now, `statements` when a
//! DONE is due, `answers` what the receiver says. Start with [`Sender`].

mod answers;
mod bursts;
mod outgoing;
mod repeats;
mod statements;

use std::collections::VecDeque;

use farline_spec::Blast;

use self::outgoing::Outgoing;
use super::adapt::Adapt;
use super::packet_count;
use super::wire::{MAX_PACKETS, Message};
use crate::Pacer;

/// What a sender is told before it starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenderOptions {
    /// Payload bytes of a packet, the header left out; at least 1.
    pub packet_bytes: usize,
    /// Payload bytes of a full blast; at least 1, and at most `MAX_PACKETS` packets.
    pub payload_bytes: u64,
    /// Blasts under way at once; at least 1.
    pub in_flight: u32,
    /// Ask for reports while a blast goes on.
    pub early: bool,
    /// Round-trip time, as measured.
    pub rtt_ns: u64,
    /// Stated payload rate; 0 is without limit.
    pub rate_bps: u64,
    /// Share of packets that may be lost before the rate is lowered; never if absent.
    pub loss_bound: Option<f64>,
    /// Most new payload that goes without a report of it, with `early`: for a sender that is held to no rate. Gaps go
    /// whatever it is. Without limit if absent, as in the paper.
    pub window_bytes: Option<u64>,
    /// Whether a blast's sum of hashes is stated.
    pub checksum: bool,
}

/// Packets to be sent now. The driver keeps one and hands it in again and again.
#[derive(Debug, Clone, Default)]
pub struct Burst {
    /// Which blast.
    pub blast: u32,
    /// Where the blast begins in the stream's payload.
    pub offset: u64,
    /// Numbers of the packets, ascending; packet p holds the blast's bytes from `p * packet_bytes` on.
    pub packets: Vec<u32>,
    /// Payload bytes of each packet but the last.
    pub packet_bytes: usize,
    /// Payload bytes of the last packet.
    pub last_bytes: usize,
    /// Whether these have been sent before. First transmissions and repetitions never mix.
    pub is_repeat: bool,
}

/// What a sender has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderStatistics {
    /// Packets sent, repeated ones included.
    pub sent_packets: u64,
    /// Packets sent again.
    pub repeated_packets: u64,
    /// DONE datagrams, every copy counted.
    pub sent_marks: u64,
    /// Reports that came.
    pub received_reports: u64,
    /// Packets that they named.
    pub reported_lost_packets: u64,
    /// Packets under way: sent at least once, and no report since has left them out.
    pub unacknowledged_packets: u64,
}

/// The sending end: which packets go now, and when a DONE is due.
///
/// Give it payload (`room`, `give`, `close_blast`, `finish`), take bursts (`next_burst`, then `not_sent` and `add_hashes` as they went),
/// and after each burst, message and time-out ask for `poll_mark` and `poll_message`.
#[derive(Debug)]
pub struct Sender {
    options: SenderOptions,
    /// Those under way, in order; what is whole waits for those before it.
    blasts: VecDeque<Outgoing>,
    /// Number of the next one, and payload bytes given in all: where it begins.
    next_blast: u32,
    given_bytes: u64,
    is_complete: bool,
    has_ended: bool,
    is_finished: bool,
    messages: VecDeque<Message>,
    whole: VecDeque<Blast>,
    /// Since when the other end has said nothing, although it owes an answer.
    owed_since_ns: Option<u64>,
    adapt: Option<Adapt>,
    statistics: SenderStatistics,
}

impl Sender {
    /// A sender that has nothing to send yet.
    ///
    /// # Panics
    /// If the options are not as [`SenderOptions`] says.
    pub fn new(options: SenderOptions) -> Self {
        assert!(options.packet_bytes > 0 && options.payload_bytes > 0 && options.in_flight > 0);
        assert!(packet_count(options.payload_bytes, options.packet_bytes) <= MAX_PACKETS);
        Self {
            options,
            blasts: VecDeque::new(),
            next_blast: 0,
            given_bytes: 0,
            is_complete: false,
            has_ended: false,
            is_finished: false,
            messages: VecDeque::new(),
            whole: VecDeque::new(),
            owed_since_ns: None,
            adapt: options.loss_bound.map(|bound| Adapt::new(&options, bound)),
            statistics: SenderStatistics::default(),
        }
    }

    /// Which pacer holds the driver to `rate_bps`: one that makes up for little, or for more where the rate gives way to
    /// losses anyway.
    pub fn pacer(&self) -> fn(rate_bps: u64, start_ns: u64) -> Pacer {
        if self.adapt.is_some() {
            Pacer::following
        } else {
            Pacer::strict
        }
    }

    /// New payload bytes that may be given now: what fits the newest blast, or a whole blast if that is full; 0 while it
    /// is and `in_flight` blasts are under way, and after `finish`. A stream has at most 2^32 - 1 blasts.
    pub fn room(&self) -> u64 {
        if self.is_complete {
            return 0;
        }
        match self.blasts.back() {
            Some(newest) if !newest.is_closed => self.options.payload_bytes - newest.bytes,
            _ if self.blasts.len() < self.options.in_flight as usize && self.next_blast < u32::MAX => {
                self.options.payload_bytes
            }
            _ => 0,
        }
    }

    /// Adds new payload to the newest blast, or opens one if that takes no more. At most `room` bytes are taken. Gives the
    /// number of the blast that they belong to; `None` if none were taken.
    pub fn give(&mut self, bytes: u64) -> Option<u32> {
        let bytes = bytes.min(self.room());
        if bytes == 0 {
            return None;
        }
        if self.blasts.back().is_none_or(|newest| newest.is_closed) {
            self.blasts
                .push_back(Outgoing::new(self.next_blast, self.given_bytes));
            self.next_blast += 1;
        }
        self.given_bytes += bytes;
        let newest = self.blasts.back_mut()?;
        newest.bytes += bytes;
        newest.is_closed = newest.bytes == self.options.payload_bytes;
        Some(newest.number)
    }

    /// Nothing may be given for a while: the newest blast ends where it is, and what is given next opens another. A blast
    /// without a byte is none.
    pub fn close_blast(&mut self) {
        if let Some(newest) = self.blasts.back_mut() {
            newest.is_closed = true;
        }
    }

    /// No more payload comes.
    pub fn finish(&mut self, now_ns: u64) {
        self.is_complete = true;
        self.close_blast();
        self.end_if_done(now_ns);
    }

    /// A message for the TCP connection. Call until `None`, after `poll_mark`.
    pub fn poll_message(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Since when the other end has said nothing, although it owes an answer; `None` if it owes none. A receiver that has
    /// a whole blast and does not get rid of it owes one too.
    pub fn waiting_since(&self) -> Option<u64> {
        self.owed_since_ns
    }

    /// Nothing to send now, and answers are owed.
    pub fn is_idle(&self) -> bool {
        self.has_nothing_to_send() && self.owed_since_ns.is_some()
    }

    /// Whether the other end has all there was.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// The next blast, in order, that is whole at the other end.
    pub fn poll_blast(&mut self) -> Option<Blast> {
        self.whole.pop_front()
    }

    /// Payload rate to send at now: the stated one, or less while too much is lost; 0 is without limit.
    pub fn rate_bps(&self) -> u64 {
        self.adapt.as_ref().map_or(self.options.rate_bps, Adapt::rate_bps)
    }

    /// What has been counted.
    pub fn statistics(&self) -> SenderStatistics {
        SenderStatistics {
            unacknowledged_packets: self.blasts.iter().map(Outgoing::unacknowledged_packets).sum(),
            ..self.statistics
        }
    }

    fn has_nothing_to_send(&self) -> bool {
        self.blasts.iter().all(|blast| blast.is_idle(&self.options))
    }

    fn packets_per_blast(&self) -> u32 {
        packet_count(self.options.payload_bytes, self.options.packet_bytes)
    }

    /// Says END once all is whole and no more comes.
    fn end_if_done(&mut self, now_ns: u64) {
        if self.is_complete && self.blasts.is_empty() && !self.has_ended {
            self.has_ended = true;
            self.owed_since_ns.get_or_insert(now_ns);
            self.say(Message::End {
                blasts: self.next_blast,
            });
        }
    }
}
