//! Packets for the tests of this room.

use farline_sys::arena::Arena;

use super::outlet::Packet;
use crate::model::Train;
use crate::packet;

/// A UDP datagram without checksum over IPv4, behind a virtio header that asks for nothing; `congestion` is the field
/// of RFC 3168.
pub fn datagram(congestion: u8, payload: &[u8]) -> Vec<u8> {
    let udp_bytes = 8 + payload.len() as u16;
    let mut bytes = vec![0; packet::VNET_BYTES];
    bytes.extend([0x45, congestion]);
    bytes.extend((20 + udp_bytes).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    bytes.extend([0, 9, 0, 9]);
    bytes.extend(udp_bytes.to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// A packet as the engine sends it into the model.
pub fn train_of(bytes: Vec<u8>) -> Train<Packet> {
    let frame = Arena::new(1, 1 << 22).unwrap().copy(&bytes).unwrap();
    let parsed = packet::parse(&frame).unwrap();
    super::engine::train(frame, &parsed)
}
