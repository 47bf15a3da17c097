//! Two connections over a path of a stated delay that loses what a rule says, in virtual time.

use std::collections::VecDeque;

use farline_spec::UdtControl;

use super::{Closed, Config, Connection, Reader, State};
use crate::udt::handshake::Agreed;
use crate::udt::wire::{
    Ack, AckDetail, Control as ControlMessage, Sequence, SocketKind, is_control, write_control, write_nak,
};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const DELAY_NS: u64 = 5 * MS;
const SENDER_SOCKET: u32 = 77;
const RECEIVER_SOCKET: u32 = 88;

fn config(control: UdtControl) -> Config {
    Config {
        burst_packets: 8,
        send_buffer_packets: None,
        receive_buffer_packets: 4_096,
        flow_window_packets: 4_096,
        control,
        max_payload_bps: None,
        token: 0,
        seed: 1,
    }
}

fn agreed(kind: SocketKind, socket: u32, peer_socket: u32, isn: u32) -> Agreed {
    Agreed {
        socket,
        peer_socket,
        send_isn: Sequence::new(isn),
        receive_isn: Sequence::new(isn),
        mss_bytes: 128,
        peer_flight_packets: 4_096,
        kind,
        is_rendezvous: false,
        is_marked: true,
    }
}

/// Which datagrams are lost: number of the datagram in its direction, whether it is a control packet.
type Loses = fn(u64, bool) -> bool;

struct Way {
    under_way: VecDeque<(u64, Vec<u8>)>,
    count: u64,
    loses: Loses,
}

struct Pair {
    now_ns: u64,
    ends: [Connection; 2],
    ways: [Way; 2],
    got: Vec<u8>,
    is_reading: bool,
    /// Steps in a row in which no time passed.
    idle_steps: u32,
    /// Datagrams of data that the first end sent.
    data: Vec<Vec<u8>>,
    /// Control packets of both ends, where they are kept.
    controls: Vec<Vec<u8>>,
    keep_controls: bool,
}

impl Pair {
    fn new(kind: SocketKind, loses: Loses, configs: [Config; 2], isn: u32) -> Self {
        let [mut near, mut far] = configs;
        (near.token, far.token) = (111, 222);
        let way = |loses| Way {
            under_way: VecDeque::new(),
            count: 0,
            loses,
        };
        Self {
            now_ns: 0,
            ends: [
                Connection::new(&near, &agreed(kind, SENDER_SOCKET, RECEIVER_SOCKET, isn), 0),
                Connection::new(&far, &agreed(kind, RECEIVER_SOCKET, SENDER_SOCKET, isn), 0),
            ],
            ways: [way(loses), way(loses)],
            got: Vec::new(),
            is_reading: true,
            idle_steps: 0,
            data: Vec::new(),
            controls: Vec::new(),
            keep_controls: false,
        }
    }

    fn stream(loses: Loses, control: UdtControl) -> Self {
        Self::new(SocketKind::Stream, loses, [config(control), config(control)], 5)
    }

    fn send(&mut self, end: usize) {
        while let Some(transmit) = self.ends[end].poll_transmit(self.now_ns) {
            for datagram in transmit.bytes.chunks(transmit.segment_bytes) {
                let way = &mut self.ways[end];
                way.count += 1;
                if end == 0 && !is_control(datagram) {
                    self.data.push(datagram.to_vec());
                }
                if self.keep_controls && is_control(datagram) {
                    self.controls.push(datagram.to_vec());
                }
                if !(way.loses)(way.count, is_control(datagram)) {
                    way.under_way
                        .push_back((self.now_ns + DELAY_NS, datagram.to_vec()));
                }
            }
        }
    }

    fn deliver(&mut self, end: usize) {
        while self.ways[1 - end]
            .under_way
            .front()
            .is_some_and(|(at_ns, _)| *at_ns <= self.now_ns)
        {
            let (_, datagram) = self.ways[1 - end].under_way.pop_front().expect("looked at");
            self.hand_to(end, &datagram);
        }
    }

    fn hand_to(&mut self, end: usize, datagram: &[u8]) {
        let mut buffer = [0; 256];
        let mut reader = if end == 1 && self.is_reading {
            Reader::new(&mut buffer)
        } else {
            Reader::none()
        };
        self.ends[end].handle_datagrams(self.now_ns, datagram, datagram.len(), &mut reader);
        let filled = reader.filled;
        self.got.extend_from_slice(&buffer[..filled]);
        while end == 1 && self.is_reading {
            let bytes = self.ends[1].read(self.now_ns, &mut buffer);
            self.got.extend_from_slice(&buffer[..bytes]);
            if bytes == 0 {
                break;
            }
        }
    }

    /// Lets time pass until something happens; false when nothing ever will.
    fn step(&mut self) -> bool {
        for end in [0, 1] {
            self.send(end);
        }
        let timeouts = self.ends.iter().filter_map(Connection::next_timeout);
        let arrivals = self.ways.iter().filter_map(|way| Some(way.under_way.front()?.0));
        let Some(next_ns) = timeouts.chain(arrivals).min() else {
            return false;
        };
        self.idle_steps = if next_ns > self.now_ns {
            0
        } else {
            self.idle_steps + 1
        };
        assert!(self.idle_steps < 1_000, "time stands still at {}", self.now_ns);
        self.now_ns = self.now_ns.max(next_ns);
        for end in [0, 1] {
            self.deliver(end);
            if self.ends[end]
                .next_timeout()
                .is_some_and(|due_ns| due_ns <= self.now_ns)
            {
                self.ends[end].handle_timeout(self.now_ns);
            }
        }
        true
    }

    fn run_for(&mut self, time_ns: u64) {
        let end_ns = self.now_ns + time_ns;
        let mut steps = 0;
        while self.now_ns < end_ns && self.step() {
            steps += 1;
            assert!(steps < 5_000_000, "too many steps by {} ns", self.now_ns);
        }
    }

    /// Sends `bytes` whole, finishes, and runs until both ends are closed or `limit_ns` has passed.
    fn transfer(&mut self, bytes: &[u8], limit_ns: u64) {
        let mut sent = 0;
        while sent < bytes.len() && self.now_ns < limit_ns {
            sent += self.ends[0].write(self.now_ns, &bytes[sent..]);
            assert!(self.step());
        }
        self.ends[0].finish();
        while self.now_ns < limit_ns
            && self
                .ends
                .iter()
                .any(|end| !matches!(end.state(), State::Closed(_)))
        {
            assert!(self.step());
        }
    }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count as u32)
        .map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

const ALL_CONTROLS: [UdtControl; 3] = [UdtControl::Bbr, UdtControl::Native, UdtControl::Reno];

#[test]
fn every_byte_arrives_in_order_and_both_ends_close() {
    for control in ALL_CONTROLS {
        let mut pair = Pair::stream(|_, _| false, control);
        let want = bytes(300_001);
        pair.transfer(&want, 100 * S);
        assert!(
            pair.got == want,
            "{control:?}: {} of {}",
            pair.got.len(),
            want.len()
        );
        assert_eq!(pair.ends[0].state(), State::Closed(Closed::ByUs), "{control:?}");
        assert_eq!(pair.ends[1].state(), State::Closed(Closed::ByPeer));
        let sender = pair.ends[0].statistics(pair.now_ns);
        assert_eq!(sender.repeated_packets, 0, "{control:?} at {}", pair.now_ns);
        assert!(sender.min_rtt_ns >= 2 * DELAY_NS && sender.min_rtt_ns < 3 * DELAY_NS);
    }
}

#[test]
fn losses_of_data_and_control_packets_are_repaired() {
    let rules: [Loses; 4] = [
        |number, _| number % 10 == 3,
        |number, is_control| is_control && number % 2 == 0,
        |number, _| (100..160).contains(&number),
        |number, _| number.wrapping_mul(2_654_435_761) % 100 < 25,
    ];
    for (rule, loses) in rules.into_iter().enumerate() {
        for control in ALL_CONTROLS {
            let mut pair = Pair::stream(loses, control);
            let want = bytes(60_000);
            pair.transfer(&want, 500 * S);
            assert!(
                pair.got == want,
                "rule {rule}, {control:?}: {} bytes",
                pair.got.len()
            );
            assert_eq!(pair.ends[1].state(), State::Closed(Closed::ByPeer), "rule {rule}");
        }
    }
}

#[test]
fn sequence_numbers_wrap() {
    let both = [config(UdtControl::Bbr), config(UdtControl::Bbr)];
    let loses: Loses = |number, _| number % 17 == 0;
    let mut pair = Pair::new(SocketKind::Stream, loses, both, 0x7fff_ffff - 100);
    let want = bytes(100_000);
    pair.transfer(&want, 100 * S);
    assert!(pair.got == want);
}

#[test]
fn small_writes_leave_in_full_packets() {
    let mut pair = Pair::stream(|_, _| false, UdtControl::Bbr);
    for _ in 0..100 {
        assert_eq!(pair.ends[0].write(0, &[7; 10]), 10);
    }
    pair.run_for(20 * MS);
    assert_eq!(pair.got.len(), 1_000);
    assert_eq!(pair.data.len(), 1_000usize.div_ceil(pair.ends[0].payload_bytes()));
}

#[test]
fn a_single_small_write_does_not_wait_long() {
    let mut pair = Pair::stream(|_, _| false, UdtControl::Bbr);
    pair.ends[0].write(0, b"x");
    while pair.got.is_empty() {
        assert!(pair.step());
    }
    assert_eq!(pair.got, b"x");
    assert!(pair.now_ns < DELAY_NS + 2 * MS);
}

#[test]
fn a_reader_that_does_not_read_stops_the_sender_and_loses_nothing() {
    let mut narrow = config(UdtControl::Bbr);
    narrow.receive_buffer_packets = 64;
    let mut pair = Pair::new(
        SocketKind::Stream,
        |_, _| false,
        [config(UdtControl::Bbr), narrow],
        5,
    );
    pair.is_reading = false;
    let want = bytes(100_000);
    let mut sent = 0;
    for _ in 0..2_000 {
        sent += pair.ends[0].write(pair.now_ns, &want[sent..]);
        pair.step();
    }
    assert!(sent < want.len() / 2, "{sent} bytes were taken");
    pair.is_reading = true;
    pair.transfer(&want[sent..], pair.now_ns + 100 * S);
    assert!(pair.got == want, "{} of {}", pair.got.len(), want.len());
}

#[test]
fn a_stated_rate_is_kept() {
    for control in [UdtControl::Bbr, UdtControl::Fixed] {
        let mut stated = config(control);
        stated.max_payload_bps = Some(800_000);
        let mut pair = Pair::new(SocketKind::Stream, |_, _| false, [stated, config(control)], 5);
        let want = bytes(300_000);
        pair.transfer(&want, 100 * S);
        assert!(pair.got == want);
        let seconds = pair.now_ns as f64 / 1e9;
        assert!((2.9..3.3).contains(&seconds), "{control:?}: {seconds} s");
    }
}

/// Words of every control packet that two ends say to each other in a transfer and after it, `knows` telling whether the
/// handshake of either's peer was farline's.
fn control_words(knows: [bool; 2]) -> Vec<Vec<u32>> {
    let mut pair = Pair::stream(|_, _| false, UdtControl::Bbr);
    for (end, is_marked) in knows.into_iter().enumerate() {
        let mut config = config(UdtControl::Bbr);
        config.token = 111 * (end as u32 + 1);
        let (own, other) = [(SENDER_SOCKET, RECEIVER_SOCKET), (RECEIVER_SOCKET, SENDER_SOCKET)][end];
        let agreed = Agreed {
            is_marked,
            ..agreed(SocketKind::Stream, own, other, 5)
        };
        pair.ends[end] = Connection::new(&config, &agreed, 0);
    }
    pair.keep_controls = true;
    let want = bytes(50_000);
    pair.transfer(&want, 10 * S);
    assert!(pair.got == want);
    pair.run_for(5 * S);
    let words = |datagram: &Vec<u8>| {
        let word = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
        datagram.chunks_exact(4).map(word).collect()
    };
    pair.controls.iter().map(words).collect()
}

#[test]
fn a_peer_that_has_not_shown_that_it_is_farline_hears_only_what_every_udt_knows() {
    let heard = control_words([false, false]);
    assert!(heard.len() > 10);
    for words in heard {
        let kind = (words[0] & 0x7fff_ffff) >> 16;
        assert!([1, 2, 3, 5, 6].contains(&kind), "{words:x?}");
        match kind {
            2 => assert_eq!(
                words.len(),
                4 + 6,
                "an ACK with all that the draft has: {words:x?}"
            ),
            5 => assert_eq!(words[4..], [0], "padding"),
            _ => {}
        }
    }
}

#[test]
fn who_is_greeted_by_farline_answers_though_its_handshake_did_not_say_so() {
    let is_greeting = |words: &&Vec<u32>| words[0] >> 16 == 0xffff;
    let heard = control_words([true, false]);
    let greeters: Vec<_> = heard.iter().filter(is_greeting).map(|words| words[4]).collect();
    assert!(greeters.contains(&111) && greeters.contains(&222), "{greeters:?}");
}

#[test]
fn forged_datagrams_neither_end_nor_move_a_connection() {
    let mut pair = Pair::stream(|_, _| false, UdtControl::Bbr);
    pair.ends[0].write(0, &bytes(1_000));
    pair.run_for(100 * MS);
    assert!(pair.ends[0].is_peer_farline() && pair.ends[1].is_peer_farline());
    let detail = AckDetail {
        rtt_us: 1,
        rtt_variance_us: 1,
        window_packets: u32::MAX,
        rates: None,
        received: Some(u32::MAX / 3),
    };
    let ack = Ack {
        number: 9,
        next: Sequence::new(5_000),
        detail: Some(detail),
    };
    let forged = [
        ControlMessage::Ack(ack),
        ControlMessage::Shutdown { token: 0 },
        ControlMessage::Shutdown { token: 1 },
        ControlMessage::PeerError { code: 4_000 },
        ControlMessage::Ack2 { number: 3 },
    ];
    let before = pair.ends[0].statistics(pair.now_ns);
    let mut datagram = Vec::new();
    for control in &forged {
        write_control(control, 0, SENDER_SOCKET, &mut datagram);
        pair.hand_to(0, &datagram);
    }
    let ranges = [
        (Sequence::new(6), Sequence::new(70_000)),
        (Sequence::new(9), Sequence::new(2)),
    ];
    write_nak(&ranges, 100, 0, SENDER_SOCKET, &mut datagram);
    pair.hand_to(0, &datagram);
    assert_eq!(pair.ends[0].state(), State::Open);
    let after = pair.ends[0].statistics(pair.now_ns);
    assert_eq!(after.repeated_packets, before.repeated_packets);
    assert!(after.invalid_datagrams >= before.invalid_datagrams + 4);
    let want = bytes(5_000);
    pair.transfer(&want, pair.now_ns + 10 * S);
    assert!(pair.got.ends_with(&want));
}

#[test]
fn a_silent_peer_is_dead_after_a_while() {
    let mut pair = Pair::stream(|_, _| true, UdtControl::Native);
    pair.ends[0].write(0, b"anybody there?");
    pair.run_for(70 * S);
    assert_eq!(pair.ends[0].state(), State::Closed(Closed::PeerDead));
    assert!(pair.now_ns > 20 * S);
}

#[test]
fn an_idle_connection_stays_open() {
    let mut pair = Pair::stream(|_, _| false, UdtControl::Bbr);
    pair.run_for(300 * S);
    assert_eq!(pair.ends[0].state(), State::Open);
    pair.transfer(b"still here", pair.now_ns + 10 * S);
    assert_eq!(pair.got, b"still here");
}

#[test]
fn giving_up_in_the_middle_is_told_from_the_end() {
    let mut pair = Pair::stream(|_, _| false, UdtControl::Bbr);
    pair.run_for(30 * MS);
    pair.ends[0].write(pair.now_ns, &bytes(50_000));
    pair.ends[0].close(pair.now_ns);
    pair.run_for(30 * MS);
    assert_eq!(pair.ends[1].state(), State::Closed(Closed::Aborted));
}

#[test]
fn messages_arrive_whole_and_expired_ones_do_not_hold_up_the_rest() {
    let both = [config(UdtControl::Bbr), config(UdtControl::Bbr)];
    let mut pair = Pair::new(SocketKind::Message, |number, _| number % 4 == 1, both, 5);
    pair.is_reading = false;
    let sizes = [1, 84, 85, 1_000, 7];
    for (place, size) in sizes.into_iter().enumerate() {
        let is_in_order = place % 2 == 0;
        let ttl_ns = (place == 3).then_some(MS);
        assert!(pair.ends[0].write_message(0, &vec![place as u8; size], is_in_order, ttl_ns));
    }
    pair.run_for(10 * S);
    let mut got = Vec::new();
    let mut buffer = [0; 2_000];
    while let Some(message) = pair.ends[1].read_message(pair.now_ns, &mut buffer) {
        assert!(buffer[..message.bytes].iter().all(|&byte| byte == buffer[0]));
        got.push((buffer[0], message.bytes));
    }
    got.retain(|&(place, _)| place != 3);
    got.sort_unstable();
    assert_eq!(got, [(0, 1), (1, 84), (2, 85), (4, 7)]);
}
