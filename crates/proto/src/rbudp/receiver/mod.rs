//! The receiving end of a stream of blasts.
//!
//! What it does: keeps account of the packets of the blasts under way, says which come next, answers what the sender
//! states with what is missing, and says which blast is whole, in order.
//! What it must not do: touch a payload. The driver puts each packet in place before it notes it, and says when a blast
//! is out of the way.
//!
//! In: numbers and hashes of packets, DONEs, messages of the sender, the time. Out: messages, whole blasts. Nothing that
//! a sender says makes it take more memory than a bit, two counters and a run for each packet of `in_flight` blasts.
//!
//! Files: `incoming` one blast, `statements` what the sender says and the reports that answer, `prediction` what comes
//! next. Start with [`Receiver`].

mod incoming;
mod prediction;
mod statements;
mod waiting;

use std::collections::VecDeque;

use farline_spec::Blast;

use self::incoming::Incoming;
use super::wire::{MAX_PACKETS, Message};
use super::{Violation, packet_count};

/// What a receiver is told before it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiverOptions {
    /// Payload bytes of a packet, the header left out; at least 1.
    pub packet_bytes: usize,
    /// Payload bytes of a full blast; at least 1, and at most `MAX_PACKETS` packets.
    pub payload_bytes: u64,
    /// Blasts under way at once; at least 1.
    pub in_flight: u32,
    /// How long overtaken packets are waited for before a DONE is answered ([`super::settle_ns`]).
    pub settle_ns: u64,
    /// Whether each blast is held against the sum of hashes that its DONE states.
    pub checksum: bool,
}

/// What a packet that came is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Missing until now.
    Fresh,
    /// It has come before, or its blast is whole.
    Duplicate,
    /// Outside the window, or of a length that it cannot have.
    Foreign,
}

/// What a receiver has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverStatistics {
    /// Packets that were missing until they came.
    pub fresh_packets: u64,
    /// Packets that came again.
    pub duplicate_packets: u64,
    /// Packets outside the window or of a wrong length.
    pub foreign_packets: u64,
    /// Packets that were missing after they had been sent once.
    pub first_pass_lost_packets: u64,
    /// Reports sent.
    pub sent_reports: u64,
    /// DONE datagrams that came.
    pub received_marks: u64,
    /// Packets below the highest that is known to have been sent which are missing now.
    pub missing_now: u64,
}

/// The receiving end: what came, what is missing, what is whole.
///
/// Ask `look` whether a packet is missing, put it in place, and `note` it; hand DONEs to `handle_done` and messages to
/// `handle_message`; after either, and at `poll_timeout`, take `poll_whole`, `release` what is out of the way, and send
/// what `poll_message` says.
#[derive(Debug)]
pub struct Receiver {
    options: ReceiverOptions,
    /// Packets of a full blast.
    max_packets: u32,
    /// The lowest blast that is not released.
    base: u32,
    /// Blasts from `base` on that may be under way.
    window: u32,
    /// Blast b at `b % in_flight`, from its first packet or DONE until it is released.
    slots: Vec<Option<Incoming>>,
    /// The next blast for `poll_whole`.
    next_whole: u32,
    /// The last packet noted: blast and number.
    last: (u32, u32),
    /// When it came.
    fresh_ns: u64,
    is_ended: bool,
    messages: VecDeque<Message>,
    whole: VecDeque<Blast>,
    statistics: ReceiverStatistics,
}

impl Receiver {
    /// A receiver to which nothing has come yet.
    ///
    /// # Panics
    /// If the options are not as [`ReceiverOptions`] says.
    pub fn new(options: ReceiverOptions) -> Self {
        assert!(options.packet_bytes > 0 && options.payload_bytes > 0 && options.in_flight > 0);
        let max_packets = packet_count(options.payload_bytes, options.packet_bytes);
        assert!(max_packets <= MAX_PACKETS);
        Self {
            options,
            max_packets,
            base: 0,
            window: options.in_flight,
            slots: (0..options.in_flight).map(|_| None).collect(),
            next_whole: 0,
            last: (0, u32::MAX),
            fresh_ns: 0,
            is_ended: false,
            messages: VecDeque::new(),
            whole: VecDeque::new(),
            statistics: ReceiverStatistics::default(),
        }
    }

    /// What `note` would say of a packet of `bytes` of payload, without noting it: only a fresh one may be put in place.
    #[inline]
    pub fn look(&self, blast: u32, packet: u32, bytes: usize) -> Arrival {
        if blast < self.base {
            return Arrival::Duplicate;
        }
        if !self.is_in_window(blast) {
            return Arrival::Foreign;
        }
        match self.slot(blast) {
            Some(incoming) => incoming.look(packet, bytes, &self.options),
            None => Incoming::new(0).look(packet, bytes, &self.options),
        }
    }

    /// Notes a packet that is in place. `hash`: [`super::wire::packet_hash`] of what stands there; 0 without checksum.
    #[inline]
    pub fn note(&mut self, now_ns: u64, blast: u32, packet: u32, bytes: usize, hash: u64) -> Arrival {
        let arrival = self.look(blast, packet, bytes);
        match arrival {
            Arrival::Fresh => {
                let (max_packets, options) = (self.max_packets, self.options);
                let incoming = self
                    .slot_mut(blast)
                    .get_or_insert_with(|| Incoming::new(max_packets));
                incoming.note(now_ns, packet, bytes, hash, &options);
                self.last = (blast, packet);
                self.fresh_ns = now_ns;
                self.statistics.fresh_packets += 1;
            }
            Arrival::Duplicate => self.statistics.duplicate_packets += 1,
            Arrival::Foreign => self.statistics.foreign_packets += 1,
        }
        arrival
    }

    /// The next blast, in order, that is whole: its number and its bytes. Its slot stays taken until `release`.
    ///
    /// # Errors
    /// If all packets came and their hashes do not add up. The stream is of no use after that.
    pub fn poll_whole(&mut self) -> Result<Option<(u32, u64)>, Violation> {
        let number = self.next_whole;
        let checksum = self.options.checksum;
        if !self.is_in_window(number) {
            return Ok(None);
        }
        let whole = self
            .slot_mut(number)
            .as_mut()
            .filter(|blast| blast.whole_ns.is_some());
        let Some((blast, total)) = whole.and_then(|blast| blast.total.map(|total| (blast, total))) else {
            return Ok(None);
        };
        if checksum && blast.sum != total.sum {
            return Err(Violation(format!(
                "blast {number} is corrupted: all packets arrived, but their hashes sum to {:016x} instead of {:016x}",
                blast.sum, total.sum
            )));
        }
        blast.is_given = true;
        let record = blast.record();
        self.whole.push_back(record);
        self.next_whole += 1;
        Ok(Some((number, total.bytes)))
    }

    /// A blast that `poll_whole` gave is out of the way: its slot is free, and the sender is told so. Nothing happens for
    /// any other.
    pub fn release(&mut self, blast: u32) {
        if !self.is_in_window(blast) {
            return;
        }
        let Some(incoming) = self.slot_mut(blast).as_mut().filter(|incoming| incoming.is_given) else {
            return;
        };
        if std::mem::replace(&mut incoming.is_released, true) {
            return;
        }
        self.messages.push_back(Message::Whole { blast });
        while self.slot(self.base).is_some_and(|incoming| incoming.is_released) {
            let base = self.base;
            *self.slot_mut(base) = None;
            self.base += 1;
        }
    }

    /// Whether the sender said that no more comes, and all that came is whole and released.
    pub fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// The next blast that is whole, in order.
    pub fn poll_blast(&mut self) -> Option<Blast> {
        self.whole.pop_front()
    }

    /// What has been counted.
    pub fn statistics(&self) -> ReceiverStatistics {
        let under_way = self.slots.iter().flatten();
        ReceiverStatistics {
            missing_now: under_way.map(Incoming::missing_packets).sum(),
            ..self.statistics
        }
    }

    #[inline]
    fn is_in_window(&self, blast: u32) -> bool {
        blast >= self.base && blast - self.base < self.window
    }

    /// Numbers of the blasts that may be under way.
    fn window(&self) -> impl Iterator<Item = u32> + use<> {
        self.base..self.base.saturating_add(self.window)
    }

    fn slot(&self, blast: u32) -> Option<&Incoming> {
        self.slots[(blast % self.options.in_flight) as usize].as_ref()
    }

    fn slot_mut(&mut self, blast: u32) -> &mut Option<Incoming> {
        &mut self.slots[(blast % self.options.in_flight) as usize]
    }
}
