//! Bodies of the fuzz targets: bytes in, a panic for whatever must not happen.
//!
//! What it does: plays a peer, and whoever else can send a datagram, against what reads datagrams. `fuzz/` runs it
//! under libFuzzer for as long as one likes; `cargo test` runs each target briefly on random bytes, so that they hold
//! together and a regression shows at once.
//! What it must not do: know more than a peer can. It looks at results, never inside.
//!
//! In the targets for UDT most of what goes in is almost right: a valid datagram of each form ([`each_datagram`]) with a few
//! bytes changed. Random bytes alone hardly ever get past a header.

mod blasts;
mod connection;
mod copies;
mod datagrams;
mod iperf3;
mod sends;

pub use blasts::{rbudp_machines, rbudp_wire};
pub use connection::udt_connection;
pub use copies::copy_receiver;
pub use datagrams::udt_datagrams;
pub use iperf3::{iperf3_documents, iperf3_machines};
pub use sends::copy_sender;

use crate::udt::handshake::{Offer, Opening};
use crate::udt::wire::{
    Ack, AckDetail, Boundary, Control, DataHeader, MessageWord, Rates, Sequence, SocketKind, write_control,
    write_nak,
};

use std::net::{IpAddr, Ipv4Addr};

const OURS: u32 = 1;
const THEIRS: u32 = 2;
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The wrap of sequence numbers is near.
const FIRST: Sequence = Sequence::new(0x7fff_fff0);

fn offer(socket: u32) -> Offer {
    Offer {
        socket,
        initial_sequence: FIRST,
        mss_bytes: 1500,
        flight_packets: 25_600,
        kind: SocketKind::Stream,
    }
}

/// Takes datagrams off the front until none is left. Each is a form, a length and so many bytes, which are laid over
/// the valid datagram of that form by exclusive or.
fn each_datagram(mut data: &[u8], mut take: impl FnMut(u8, &[u8])) {
    while let Some((form, datagram, rest)) = next_datagram(data) {
        take(form, &datagram);
        data = rest;
    }
}

fn next_datagram(data: &[u8]) -> Option<(u8, Vec<u8>, &[u8])> {
    let [form, length, rest @ ..] = data else {
        return None;
    };
    let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*length)));
    let mut datagram = valid(*form);
    datagram.resize(datagram.len().max(bytes.len()), 0);
    for (place, byte) in datagram.iter_mut().zip(bytes) {
        *place ^= byte;
    }
    Some((*form, datagram, rest))
}

/// A valid datagram of each form; of the last two forms there is none, so that the bytes alone count.
fn valid(form: u8) -> Vec<u8> {
    let (next, last) = (FIRST.plus(5), FIRST.plus(20));
    let ack = |detail: Option<AckDetail>| {
        let number = u32::from(detail.is_some());
        Control::Ack(Ack { number, next, detail })
    };
    let control = match form % 20 {
        0 => Control::KeepAlive,
        1 => ack(None),
        2 => ack(Some(detail())),
        3 => {
            let mut out = Vec::new();
            write_nak(&[(next, next), (next, last)], 100, 0, OURS, &mut out);
            return out;
        }
        4 => Control::DelayWarning,
        5 => Control::Shutdown { token: 0 },
        6 => Control::Ack2 { number: 1 },
        7 => Control::DropRequest {
            message: 1,
            first: next,
            last,
        },
        8 => Control::PeerError { code: 4000 },
        9 => Control::Custom {
            kind: 0x4641,
            body: &[0, 0, 0, 1, 0, 0, 0, 1],
        },
        10 => return handshake(1, 0),
        11 => return handshake(-1, 0),
        12 => return handshake(0, 0),
        13 => return handshake(1, OURS),
        14 => return handshake(-1, OURS),
        15 => return handshake(-2, OURS),
        16 => return handshake(1002, OURS),
        17 => return data_packet(next),
        _ => return Vec::new(),
    };
    let mut out = Vec::new();
    write_control(&control, 0, OURS, &mut out);
    out
}

fn handshake(request: i32, destination: u32) -> Vec<u8> {
    let mut caller = Opening::caller(offer(THEIRS), PEER, 0);
    let mut datagram = caller.poll_transmit(0).expect("a request is due at once");
    datagram[12..16].copy_from_slice(&destination.to_be_bytes());
    datagram[36..40].copy_from_slice(&request.to_be_bytes());
    datagram.to_vec()
}

fn detail() -> AckDetail {
    AckDetail {
        rtt_us: 1000,
        rtt_variance_us: 10,
        window_packets: 100,
        rates: Some(Rates {
            arrival_pps: 1000,
            capacity_pps: 1000,
        }),
        received: Some(1),
    }
}

fn data_packet(sequence: Sequence) -> Vec<u8> {
    let mut datagram = vec![0; 100];
    let header = DataHeader {
        sequence,
        message: MessageWord::new(Boundary::Only, false, 1),
        timestamp_us: 0,
        destination: OURS,
    };
    header.write(&mut datagram);
    datagram
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn changes() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
        prop::collection::vec((any::<u8>(), 0u8..80, 0u8..4), 0..30)
    }

    /// Datagrams of the forms, each with at most one byte changed.
    fn almost_right(changes: &[(u8, u8, u8)], before_each: &[u8]) -> Vec<u8> {
        let mut data = Vec::new();
        for &(form, place, byte) in changes {
            data.extend(before_each);
            data.extend([form, place + 1]);
            data.resize(data.len() + usize::from(place), 0);
            data.push(byte);
        }
        data
    }

    #[test]
    fn datagrams_as_they_should_be() {
        for form in 0..20 {
            udt_datagrams(&[form, 0]);
            udt_connection(&[0, 0, 200, 6, 0, form, 0, 1, 90, 2, 0]);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..600)) {
            udt_datagrams(&data);
            udt_connection(&data);
        }

        #[test]
        fn datagrams_that_are_almost_right_never_panic(changes in changes(), first: u8, write: u8) {
            udt_datagrams(&almost_right(&changes, &[]));
            let mut data = vec![first];
            data.extend(almost_right(&changes, &[0, write, 2, 0, 6, 0]));
            udt_connection(&data);
        }
    }
}
