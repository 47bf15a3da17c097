//! RBUDP: bytes for its readers, and two ends with a path and a liar between them.

use std::collections::VecDeque;

use crate::rbudp::wire::{
    Decoder, Done, HEADER_BYTES, Header, MARK, Message, Missing, Total, decode_mark, encode, encode_mark,
};
use crate::rbudp::{Arrival, Burst, PacketSet, Receiver, ReceiverOptions, Sender, SenderOptions};

const TOKEN: u32 = 7;
const PACKET_BYTES: usize = 10;
const BLAST_BYTES: u64 = 125;
const BLAST_PACKETS: u32 = 13;
const IN_FLIGHT: u32 = 2;
const MS: u64 = 1_000_000;
/// Payload that is given at most, and datagrams that are under way at most.
const MOST_GIVEN: u64 = 5_000;
const MOST_UNDER_WAY: usize = 1_000;
/// Rounds within which two ends that nobody disturbs are done.
const MOST_ROUNDS: usize = 20_000;

/// Bytes through every reader of the wire: what is read is written again and read the same.
pub fn rbudp_wire(data: &[u8]) {
    if let Some(header) = Header::read(data) {
        let mut again = data.to_vec();
        header.write(&mut again);
        assert_eq!(again, data);
        if let Some(done) = decode_mark(data) {
            encode_mark(header.token, &done, &mut again);
            assert_eq!(again, data);
        }
    }
    let mut decoder = Decoder::new(BLAST_PACKETS);
    for part in data.chunks(3) {
        decoder.push(part);
        while let Ok(Some(message)) = decoder.next() {
            if let Message::Missing(missing) = &message {
                assert!(missing.packets.end() <= BLAST_PACKETS);
            }
            assert_eq!(read(&written(&message)), Some(message));
        }
    }
}

fn written(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, &mut bytes);
    bytes
}

fn read(bytes: &[u8]) -> Option<Message> {
    let mut decoder = Decoder::new(BLAST_PACKETS);
    decoder.push(bytes);
    decoder.next().ok().flatten()
}

/// The first byte is the kind of stream, every pair after that an operation: payload, time, loss, doubles, disorder,
/// what the kernel does not take, and messages that nobody sent.
///
/// Neither end panics or takes a packet for what it cannot be. If nobody lied, everything arrives.
pub fn rbudp_machines(data: &[u8]) {
    let Some((&first, mut data)) = data.split_first() else {
        return;
    };
    let mut play = Play::new(first);
    while let [operation, choice, rest @ ..] = data {
        data = rest;
        match operation % 8 {
            6 | 7 => {
                let (lie, rest) = rest.split_at(rest.len().min(usize::from(*choice % 32)));
                play.lie(operation % 8 == 6, *choice, lie);
                data = rest;
            }
            operation => play.step(operation, *choice),
        }
    }
    play.end();
}

struct Play {
    now_ns: u64,
    sender: Sender,
    receiver: Receiver,
    datagrams: VecDeque<Vec<u8>>,
    to_receiver: VecDeque<Message>,
    to_sender: VecDeque<Message>,
    given: u64,
    came: u64,
    burst: Burst,
    /// Somebody lied, or an end found out.
    is_spoilt: bool,
}

impl Play {
    fn new(first: u8) -> Self {
        let options = SenderOptions {
            packet_bytes: PACKET_BYTES,
            payload_bytes: BLAST_BYTES,
            in_flight: IN_FLIGHT,
            early: first & 1 == 0,
            rtt_ns: u64::from(first) * MS,
            rate_bps: u64::from(first / 64) * 1_000_000,
            loss_bound: (first & 2 == 0).then_some(0.1),
            window_bytes: (first & 8 == 0).then_some(5_000),
            checksum: false,
        };
        Self {
            now_ns: 0,
            sender: Sender::new(options),
            receiver: Receiver::new(ReceiverOptions {
                packet_bytes: PACKET_BYTES,
                payload_bytes: BLAST_BYTES,
                in_flight: IN_FLIGHT,
                settle_ns: MS,
                checksum: false,
            }),
            datagrams: VecDeque::new(),
            to_receiver: VecDeque::new(),
            to_sender: VecDeque::new(),
            given: 0,
            came: 0,
            burst: Burst::default(),
            is_spoilt: false,
        }
    }

    fn step(&mut self, operation: u8, choice: u8) {
        match operation {
            0 => self.give(u64::from(choice)),
            1 => self.now_ns += 1 << (choice % 30),
            2 => drop(self.datagrams.pop_front()),
            3 => self.datagrams.extend(self.datagrams.front().cloned()),
            4 => self.datagrams.rotate_left(self.datagrams.len().min(1)),
            _ if choice >= 240 => self.sender.close_blast(),
            _ => self.send(usize::from(choice % 4)),
        }
        self.exchange(usize::from(choice % 8));
    }

    fn give(&mut self, bytes: u64) {
        let bytes = bytes.min(self.sender.room()).min(MOST_GIVEN - self.given);
        self.sender.give(bytes);
        self.given += bytes;
    }

    /// Sends a burst, of which the kernel takes `taken` packets.
    fn send(&mut self, taken: usize) {
        if !self.sender.next_burst(self.now_ns, 4, &mut self.burst) {
            return;
        }
        let burst = &self.burst;
        assert!(!burst.packets.is_empty() && burst.packets.len() <= 4);
        assert!(burst.packets.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((1..=PACKET_BYTES).contains(&burst.last_bytes));
        for (index, &packet) in burst.packets.iter().take(taken).enumerate() {
            let is_last = index + 1 == burst.packets.len();
            let bytes = if is_last { burst.last_bytes } else { PACKET_BYTES };
            let mut datagram = vec![0; HEADER_BYTES + bytes];
            let header = Header {
                token: TOKEN,
                blast: burst.blast,
                packet,
                check: 0,
            };
            header.write(&mut datagram);
            if self.datagrams.len() < MOST_UNDER_WAY {
                self.datagrams.push_back(datagram);
            }
        }
        self.sender.not_sent(burst, taken);
    }

    /// Both say what they have to say, and some of what is under way arrives.
    fn exchange(&mut self, datagrams: usize) {
        if self
            .sender
            .poll_timeout()
            .is_some_and(|at_ns| at_ns <= self.now_ns)
        {
            self.sender.handle_timeout(self.now_ns);
        }
        for count in 0.. {
            let Some((done, copies)) = self.sender.poll_mark(self.now_ns) else {
                break;
            };
            assert!(count < 2 * IN_FLIGHT && (1..=8).contains(&copies));
            let mut datagram = Vec::new();
            encode_mark(TOKEN, &done, &mut datagram);
            self.datagrams.push_back(datagram);
        }
        while let Some(message) = self.sender.poll_message() {
            self.to_receiver.push_back(message);
        }
        for datagram in self
            .datagrams
            .drain(..datagrams.min(self.datagrams.len()))
            .collect::<Vec<_>>()
        {
            self.arrive(&datagram);
        }
        if let Some(message) = self.to_receiver.pop_front() {
            self.is_spoilt |= self.receiver.handle_message(self.now_ns, message).is_err();
        }
        while let Ok(Some((blast, bytes))) = self.receiver.poll_whole() {
            self.came += bytes;
            self.receiver.release(blast);
        }
        while let Some(message) = self.receiver.poll_message(self.now_ns) {
            self.to_sender.push_back(message);
        }
        if let Some(message) = self.to_sender.pop_front() {
            self.is_spoilt |= self.sender.handle_message(self.now_ns, message).is_err();
        }
    }

    fn arrive(&mut self, datagram: &[u8]) {
        let Some(header) = Header::read(datagram) else {
            return;
        };
        if header.packet == MARK {
            let done = decode_mark(datagram);
            self.is_spoilt |= done.is_none_or(|done| self.receiver.handle_done(self.now_ns, done).is_err());
            return;
        }
        let arrival = self.receiver.note(
            self.now_ns,
            header.blast,
            header.packet,
            datagram.len() - HEADER_BYTES,
            0,
        );
        assert!(self.is_spoilt || arrival != Arrival::Foreign);
    }

    /// A message of either end's that it has not sent: a form, and bytes laid over it.
    fn lie(&mut self, is_to_sender: bool, choice: u8, lie: &[u8]) {
        let mut bytes = written(&valid(choice));
        for (place, byte) in bytes.iter_mut().skip(4).zip(lie) {
            *place ^= byte;
        }
        let Some(message) = read(&bytes) else {
            return;
        };
        self.is_spoilt = true;
        // A driver would stop at an error; going on must do no harm either.
        let _ = if is_to_sender {
            self.sender.handle_message(self.now_ns, message)
        } else {
            self.receiver.handle_message(self.now_ns, message)
        };
        self.exchange(1);
    }

    /// Nobody disturbs any more.
    fn end(mut self) {
        self.sender.finish(self.now_ns);
        for _ in 0..MOST_ROUNDS {
            if self.is_spoilt || self.sender.is_finished() {
                break;
            }
            self.send(4);
            self.exchange(8);
            self.now_ns += MS;
        }
        assert!(
            self.is_spoilt || (self.sender.is_finished() && self.came == self.given),
            "it never ends"
        );
    }
}

/// A message of each form.
fn valid(choice: u8) -> Message {
    let packets = PacketSet::from_runs([(1, 2), (5, 1)]).unwrap_or_default();
    let total = (choice & 8 != 0).then_some(Total {
        bytes: BLAST_BYTES,
        sum: 0,
    });
    match choice % 8 {
        0 => Message::Missing(Missing {
            blast: 0,
            upto: BLAST_PACKETS,
            served: 0,
            report: 1,
            packets,
        }),
        1 => Message::Missing(Missing {
            blast: 1,
            upto: 8,
            served: 1,
            report: 2,
            packets,
        }),
        2 => Message::Whole { blast: 0 },
        3 => Message::EndSeen,
        4 => Message::End { blasts: 1 },
        5 => Message::Done(Done {
            blast: 0,
            upto: BLAST_PACKETS,
            served: 0,
            total,
        }),
        6 => Message::Done(Done {
            blast: 1,
            upto: 4,
            served: 1,
            total,
        }),
        _ => Message::Failed("disk full".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..400)) {
            rbudp_wire(&data);
            rbudp_machines(&data);
        }

        #[test]
        fn messages_that_are_almost_right_never_panic(choice: u8, place in 0usize..40, byte: u8, kind: u8) {
            let mut bytes = written(&valid(choice));
            let place = place % bytes.len();
            bytes[place] ^= byte;
            rbudp_wire(&bytes);
            let lie: Vec<u8> = std::iter::repeat_n(0, place).chain([byte]).collect();
            let mut data = vec![kind, 0, 125, 5, 3, 5, 3, 0, 70, 5, 3, 6 + (kind & 1), lie.len() as u8];
            data.extend(lie);
            rbudp_machines(&data);
        }

        #[test]
        fn what_nobody_lies_about_arrives(first: u8, steps in prop::collection::vec((0u8..6, any::<u8>()), 0..200)) {
            let steps = steps.into_iter().flat_map(|(operation, choice)| [operation, choice]);
            rbudp_machines(&std::iter::once(first).chain(steps).collect::<Vec<_>>());
        }
    }
}
