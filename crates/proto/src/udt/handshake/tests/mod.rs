//! Handshakes between machines in virtual time.

mod calls;
mod late;
mod meetings;
mod network;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::*;

pub const MS: u64 = 1_000_000;
pub const S: u64 = 1000 * MS;

pub fn peer() -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))
}

pub fn address(port: u16) -> SocketAddr {
    (Ipv4Addr::new(192, 0, 2, 2), port).into()
}

pub fn offer(socket: u32) -> Offer {
    Offer {
        socket,
        initial_sequence: Sequence::new(0x7fff_fff0 + socket),
        mss_bytes: 1400 + socket,
        flight_packets: 10_000 + socket,
        kind: SocketKind::Stream,
    }
}

/// What a datagram of ours says.
pub fn said(datagram: &[u8]) -> (u32, Handshake) {
    read(datagram).expect("a handshake")
}

/// A handshake of the end with this offer, in whatever words.
pub fn word(
    from: &Offer,
    request: i32,
    destination: u32,
    change: impl Fn(&mut Handshake),
) -> [u8; HANDSHAKE_BYTES] {
    let mut handshake = introduce(from, request, [0; 4]);
    change(&mut handshake);
    handshake.datagram(destination)
}

/// Two ends that have agreed say the same about each other.
#[track_caller]
pub fn assert_mirrored(one: &Agreed, other: &Agreed) {
    let mirrored = Agreed {
        socket: other.peer_socket,
        peer_socket: other.socket,
        send_isn: other.receive_isn,
        receive_isn: other.send_isn,
        peer_flight_packets: one.peer_flight_packets,
        ..*other
    };
    assert_eq!(*one, mirrored);
}
