//! What a connection and an application can rely on.

mod messages;
mod stream;

use super::*;
use crate::udt::wire::Boundary;

const PAYLOAD_BYTES: usize = 10;

fn buffer(kind: SocketKind, capacity_packets: u64) -> ReceiveBuffer {
    ReceiveBuffer::new(ReceiveLayout {
        payload_bytes: PAYLOAD_BYTES,
        burst_packets: 1,
        capacity_packets,
        kind,
    })
}

fn word(boundary: Boundary, number: u32) -> MessageWord {
    MessageWord::new(boundary, false, number)
}

/// The payload of a packet: a length and bytes of its own.
fn payload(index: u64) -> Vec<u8> {
    let length = (index * 7 % 13).min(PAYLOAD_BYTES as u64);
    (0..length).map(|place| (index * 31 + place) as u8).collect()
}
