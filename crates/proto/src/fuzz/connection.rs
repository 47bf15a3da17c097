//! A connection and its peer, with datagrams of somebody else's between theirs.

use std::collections::VecDeque;

use farline_spec::UdtControl;

use super::{FIRST, OURS, THEIRS, next_datagram};
use crate::udt::handshake::Agreed;
use crate::udt::wire::SocketKind;
use crate::udt::{Config, Connection, Reader, State};

/// Datagrams in a row that a connection may want to send at one moment.
const MOST_TRANSMITS: usize = 2000;
/// Wake-ups within which a connection without a peer comes to its end.
const MOST_TIMEOUTS: usize = 200_000;
/// Time in which it does, and what is added for each nanosecond of play: no measured round-trip time is longer than
/// the play, and the 17 expirations of libudt take 1 + 2 + ... + 17 times five of it at most.
const PATIENCE_NS: u64 = 600_000_000_000;
const PATIENCE_PER_NS: u64 = 5 * 17 * 18 / 2;
/// Wake-ups at one moment: after a leap in time, intervals that double are caught up with.
const MOST_IN_A_ROW: usize = 64;
/// Datagrams that are under way at most, in each direction.
const MOST_IN_FLIGHT: usize = 1000;

/// The first byte is the kind and the congestion control, every pair after that an operation: writes, reads, time,
/// loss, doubles, disorder, the end, and datagrams for us that the peer has not sent.
///
/// What we send reaches the peer unforged, so the peer reads nothing but what we wrote, in order; and however the
/// game went, we are at rest when nothing happens and at an end when the peer is silent for long enough.
pub fn udt_connection(data: &[u8]) {
    let Some((&first, mut data)) = data.split_first() else {
        return;
    };
    let mut play = Play::new(first);
    while let [operation, choice, rest @ ..] = data {
        data = rest;
        if operation % 8 == 6 {
            let Some((_, datagram, rest)) = next_datagram(data) else {
                break;
            };
            play.forge(&datagram);
            data = rest;
        } else {
            play.step(*operation, *choice);
        }
    }
    play.end();
}

struct Play {
    now_ns: u64,
    /// We, and the peer.
    ends: [Connection; 2],
    /// What is under way to us, and to the peer.
    in_flight: [VecDeque<Vec<u8>>; 2],
    is_stream: bool,
    written: u64,
    read: u64,
}

fn config(control: u8) -> Config {
    Config {
        burst_packets: 4,
        send_buffer_packets: Some(64),
        receive_buffer_packets: 64,
        flow_window_packets: 64,
        control: [
            UdtControl::Bbr,
            UdtControl::Native,
            UdtControl::Reno,
            UdtControl::Fixed,
        ][usize::from(control) % 4],
        max_payload_bps: Some(100_000_000),
        token: 7,
        seed: 1,
    }
}

impl Play {
    fn new(first: u8) -> Self {
        let is_stream = first & 1 == 0;
        let ours = Agreed {
            socket: OURS,
            peer_socket: THEIRS,
            send_isn: FIRST,
            receive_isn: FIRST,
            mss_bytes: 144,
            peer_flight_packets: 64,
            kind: if is_stream {
                SocketKind::Stream
            } else {
                SocketKind::Message
            },
            is_rendezvous: false,
            is_marked: true,
        };
        let theirs = Agreed {
            socket: THEIRS,
            peer_socket: OURS,
            ..ours
        };
        let config = config(first / 2);
        Self {
            now_ns: 0,
            ends: [
                Connection::new(&config, &ours, 0),
                Connection::new(&config, &theirs, 0),
            ],
            in_flight: [VecDeque::new(), VecDeque::new()],
            is_stream,
            written: 0,
            read: 0,
        }
    }

    fn step(&mut self, operation: u8, choice: u8) {
        let end = usize::from(choice & 1);
        match operation % 8 {
            0 => self.write(usize::from(choice & 3 == 3), 13 * usize::from(choice)),
            1 => self.pass(1 << (choice % 36)),
            2 => self.read_all(choice),
            3 => drop(self.in_flight[end].pop_front()),
            4 => self.in_flight[end].extend(self.in_flight[end].front().cloned()),
            5 => self.in_flight[end].rotate_left(self.in_flight[end].len().min(1)),
            _ if choice == 0 => self.ends[0].close(self.now_ns),
            _ if choice < 4 => self.ends[end].finish(),
            _ => self.ends[end].flush(),
        }
        self.exchange();
    }

    /// What we write counts its bytes, so that the peer can tell whether any is missing.
    fn write(&mut self, end: usize, length: usize) {
        let bytes: Vec<u8> = (self.written..).take(length).map(|place| place as u8).collect();
        if !self.is_stream {
            let ttl_ns = (length % 2 == 0).then_some(length as u64 * 100_000);
            self.ends[end].write_message(self.now_ns, &bytes, length % 3 == 0, ttl_ns);
            return;
        }
        let count = self.ends[end].write(self.now_ns, &bytes);
        assert!(count <= length);
        if end == 0 {
            self.written += count as u64;
        }
    }

    fn read_all(&mut self, choice: u8) {
        let mut into = vec![0; 32 + 16 * usize::from(choice)];
        for end in 0..2 {
            if !self.is_stream {
                while self.ends[end].read_message(self.now_ns, &mut into).is_some() {}
                continue;
            }
            loop {
                let count = self.ends[end].read(self.now_ns, &mut into);
                if count == 0 {
                    break;
                }
                self.check(end, &into[..count]);
            }
        }
    }

    fn check(&mut self, end: usize, bytes: &[u8]) {
        if end == 1 {
            for &byte in bytes {
                assert_eq!(byte, self.read as u8, "the peer reads what we wrote, in order");
                self.read += 1;
            }
            assert!(self.read <= self.written);
        }
    }

    fn pass(&mut self, ns: u64) {
        self.now_ns += ns;
        for connection in &mut self.ends {
            connection.handle_timeout(self.now_ns);
        }
    }

    fn forge(&mut self, datagram: &[u8]) {
        let mut memory = [0; 300];
        self.ends[0].handle_datagrams(
            self.now_ns,
            datagram,
            datagram.len(),
            &mut Reader::new(&mut memory),
        );
        self.exchange();
    }

    /// Half of what is under way arrives, and both say what they have to say.
    fn exchange(&mut self) {
        for end in 0..2 {
            for _ in 0..self.in_flight[end].len().div_ceil(2) {
                self.deliver(end);
            }
        }
        for end in 0..2 {
            self.poll(end);
        }
    }

    fn deliver(&mut self, end: usize) {
        let Some(datagram) = self.in_flight[end].pop_front() else {
            return;
        };
        let mut memory = [0; 300];
        let mut reader = Reader::new(&mut memory);
        self.ends[end].handle_datagrams(self.now_ns, &datagram, datagram.len(), &mut reader);
        let filled = reader.filled;
        self.check(end, &memory[..filled]);
    }

    fn poll(&mut self, end: usize) {
        for count in 0.. {
            let Some(transmit) = self.ends[end].poll_transmit(self.now_ns) else {
                break;
            };
            assert!(count < MOST_TRANSMITS, "it never stops sending");
            assert_eq!(
                transmit.bytes.chunks(transmit.segment_bytes).len(),
                transmit.packets
            );
            for datagram in transmit.bytes.chunks(transmit.segment_bytes) {
                if self.in_flight[1 - end].len() < MOST_IN_FLIGHT {
                    self.in_flight[1 - end].push_back(datagram.to_vec());
                }
            }
        }
    }

    /// The peer falls silent: time alone ends us.
    fn end(mut self) {
        let until_ns = self.now_ns + PATIENCE_NS + self.now_ns * PATIENCE_PER_NS;
        let mut in_a_row = 0;
        for _ in 0..MOST_TIMEOUTS {
            self.ends[0].handle_timeout(self.now_ns);
            self.poll(0);
            let Some(next_ns) = self.ends[0].next_timeout() else {
                break;
            };
            in_a_row = if next_ns > self.now_ns { 0 } else { in_a_row + 1 };
            assert!(in_a_row < MOST_IN_A_ROW, "wake-ups that change nothing");
            self.now_ns = self.now_ns.max(next_ns);
            assert!(self.now_ns < until_ns, "it waits for ever");
        }
        assert!(matches!(self.ends[0].state(), State::Closed(_)), "it never ends");
    }
}
