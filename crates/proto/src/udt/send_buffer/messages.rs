//! Messages whose time can be over. Others need no record: all that is known of them stands in their packets.

use std::collections::VecDeque;

/// A message with a time to live.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mortal {
    /// Index of its first packet.
    pub first: u64,
    /// One past its last packet.
    pub end: u64,
    /// Its number on the wire.
    pub number: u32,
    expires_ns: u64,
    /// Was given up: no packet of it goes any more.
    is_dropped: bool,
}

/// Messages with a time to live that are not wholly acknowledged, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Mortals {
    messages: VecDeque<Mortal>,
}

impl Mortals {
    /// A message was written in packets `first .. end`, after all others.
    pub(super) fn push(&mut self, first: u64, end: u64, number: u32, expires_ns: u64) {
        self.messages.push_back(Mortal {
            first,
            end,
            number,
            expires_ns,
            is_dropped: false,
        });
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Forgets messages that end at or before `index`.
    pub(super) fn remove_below(&mut self, index: u64) {
        while self.messages.front().is_some_and(|message| message.end <= index) {
            self.messages.pop_front();
        }
    }

    /// The first message with a packet in `first .. end` that is not to be sent (again): given up, or over at
    /// `now_ns`. Of one that begins before `begun` some has gone out for the first time, and the rest follows even if
    /// its time is over; 0 makes no such exception.
    pub(super) fn first_over(&self, first: u64, end: u64, now_ns: u64, begun: u64) -> Option<usize> {
        if self.messages.is_empty() {
            return None;
        }
        let start = self.messages.partition_point(|message| message.end <= first);
        let mut seen = self
            .messages
            .range(start..)
            .take_while(|message| message.first < end);
        let is_over =
            |message: &Mortal| message.is_dropped || message.first >= begun && message.expires_ns <= now_ns;
        seen.position(is_over).map(|position| start + position)
    }

    /// A message found by `first_over`.
    pub(super) fn get(&self, position: usize) -> &Mortal {
        &self.messages[position]
    }

    /// Gives up a message found by `first_over`.
    pub(super) fn give_up(&mut self, position: usize) -> Mortal {
        let message = &mut self.messages[position];
        message.is_dropped = true;
        *message
    }
}
