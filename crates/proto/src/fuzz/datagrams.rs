//! Datagrams for readers and handshakes.

use std::net::SocketAddr;

use super::{OURS, PEER, THEIRS, each_datagram, offer};
use crate::udt::handshake::{Agreed, Heard, Listening, Opening, Step, late_answer};
use crate::udt::wire::{
    Control, DataHeader, HANDSHAKE_BYTES, HEADER_BYTES, LossRanges, MIN_MSS_BYTES, Sequence, SocketKind,
    destination_of, expand, is_control, read_control, stamp, write_control, write_nak,
};

/// Datagrams through every reader of the wire and into every machine of the handshake.
pub fn udt_datagrams(data: &[u8]) {
    let mut play = Play::new();
    each_datagram(data, |choice, datagram| {
        read(datagram);
        play.step(choice, datagram);
    });
}

fn read(datagram: &[u8]) {
    let is_whole = datagram.len() >= HEADER_BYTES;
    assert_eq!(destination_of(datagram).is_some(), is_whole);
    let (header, control) = (DataHeader::read(datagram), read_control(datagram));
    assert_eq!(header.is_some(), is_whole && !is_control(datagram));
    assert!(control.is_none() || is_control(datagram));
    if let Some(header) = header {
        let mut slot = datagram.to_vec();
        stamp(&mut slot, !header.timestamp_us);
        header.write(&mut slot);
        assert_eq!(slot, datagram, "what is read is all there is");
        check_index(
            header.sequence,
            header.message.0,
            u64::from(header.timestamp_us) << 16,
        );
    }
    let Some(packet) = control else { return };
    let mut out = Vec::new();
    write_control(&packet.control, packet.timestamp_us, packet.destination, &mut out);
    assert_eq!(read_control(&out), Some(packet));
    assert!(out.len() <= datagram.len() + 4, "never longer, but for padding");
    if let Control::Nak(ranges) = packet.control {
        check_ranges(ranges, datagram.len());
    }
}

fn check_index(sequence: Sequence, isn: u32, near: u64) {
    let isn = Sequence::new(isn);
    if let Some(index) = expand(isn, sequence, near) {
        assert_eq!(isn.plus(index), sequence);
        assert!(index.abs_diff(near) <= 1 << 30);
    }
}

fn check_ranges(ranges: LossRanges<'_>, datagram_bytes: usize) {
    let list: Vec<_> = ranges.collect();
    assert!(list.len() <= datagram_bytes / 4);
    assert!(list.iter().all(|&(first, last)| last.is_at_or_after(first)));
    let mut out = Vec::new();
    assert_eq!(write_nak(&list, datagram_bytes, 0, 0, &mut out), list.len());
    if let Some(Control::Nak(again)) = read_control(&out).map(|packet| packet.control) {
        assert!(again.eq(ranges));
    }
}

/// Every machine of the handshake, with time in leaps.
struct Play {
    now_ns: u64,
    openings: [Opening; 2],
    listening: Listening,
    connections: [Agreed; 2],
}

impl Play {
    fn new() -> Self {
        let agreed = Agreed {
            socket: OURS,
            peer_socket: THEIRS,
            send_isn: offer(OURS).initial_sequence,
            receive_isn: offer(THEIRS).initial_sequence,
            mss_bytes: 1500,
            peer_flight_packets: 25_600,
            kind: SocketKind::Stream,
            is_rendezvous: false,
            is_marked: true,
        };
        let rendezvous = Agreed {
            is_rendezvous: true,
            ..agreed
        };
        Self {
            now_ns: 0,
            openings: [
                Opening::caller(offer(OURS), PEER, 0),
                Opening::rendezvous(offer(OURS), PEER, 0),
            ],
            listening: Listening::new([7; 32]),
            connections: [agreed, rendezvous],
        }
    }

    fn step(&mut self, choice: u8, datagram: &[u8]) {
        self.now_ns += 1_000_000 << (choice / 20);
        for opening in &mut self.openings {
            open(opening, self.now_ns, datagram);
        }
        self.listen(datagram);
        for agreed in &self.connections {
            if let Some(answer) = late_answer(agreed, &offer(OURS), datagram) {
                let mirrored = Agreed {
                    socket: THEIRS,
                    peer_socket: OURS,
                    ..*agreed
                };
                assert_eq!(
                    late_answer(&mirrored, &offer(THEIRS), &answer),
                    None,
                    "no end to it"
                );
                assert!(datagram.len() >= answer.len());
            }
        }
    }

    fn listen(&mut self, datagram: &[u8]) {
        let from = SocketAddr::new(PEER, 9);
        match self.listening.handle(self.now_ns, from, datagram, &offer(OURS)) {
            Heard::Nothing => {}
            Heard::Answer(answer) => {
                assert!(datagram.len() >= answer.len(), "no amplification");
                self.conclude(&answer);
            }
            Heard::Wanted(_) => panic!("nobody but the listener can make a cookie"),
        }
    }

    /// The caller takes the challenge back: now the rest of what it said counts.
    fn conclude(&self, challenge: &[u8; HANDSHAKE_BYTES]) {
        let mut conclusion = *challenge;
        conclusion[12..16].fill(0);
        conclusion[36..40].fill(0xff);
        let from = SocketAddr::new(PEER, 9);
        match self
            .listening
            .handle(self.now_ns, from, &conclusion, &offer(OURS))
        {
            Heard::Nothing => panic!("the cookie is its own"),
            Heard::Answer(_) => {}
            Heard::Wanted(theirs) => check(&Listening::accept(&theirs, PEER, &offer(OURS)).0),
        }
    }
}

fn open(opening: &mut Opening, now_ns: u64, datagram: &[u8]) {
    let step = opening.handle(now_ns, datagram);
    if let Step::Done(agreed) = step {
        check(&agreed);
    }
    let is_out_of_time = now_ns >= opening.expires_ns();
    let first = opening.poll_transmit(now_ns);
    assert!(first.is_none() || step != Step::Wait || !is_out_of_time);
    assert_eq!(opening.poll_transmit(now_ns), None, "one at a time");
    assert!(
        step != Step::Wait || is_out_of_time || opening.next_timeout() > now_ns,
        "no busy loop"
    );
    if step != Step::Wait {
        assert_eq!(opening.handle(now_ns, &[]), step, "what is decided stays so");
    }
}

fn check(agreed: &Agreed) {
    assert!((MIN_MSS_BYTES..=1500).contains(&agreed.mss_bytes));
    assert!((2..=1 << 29).contains(&agreed.peer_flight_packets));
    assert!(agreed.socket == OURS && agreed.peer_socket != 0);
}
