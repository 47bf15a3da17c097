//! One segment as a whole packet with every checksum done, as it would be on a wire.

use super::checksum;
use super::form::Form;
use super::network::put_u16;
use super::run::Run;
use super::vnet::{self, VNET_BYTES};

/// Appends segment `segment` of `packet` to `out`: a virtio-net header that asks for nothing, so that a receiver
/// verifies the checksum, then the IP packet. `marked` sets congestion experienced.
///
/// # Panics
/// If there is no such segment, or `packet` is not the one that `form` belongs to.
pub fn append_segment(out: &mut Vec<u8>, packet: &[u8], form: &Form, segment: u16, marked: bool) {
    let run = Run {
        first: segment,
        count: 1,
        marked,
    };
    let piece = form.piece(packet, run);
    let start = out.len();
    out.extend_from_slice(&piece.header);
    out.extend_from_slice(&packet[piece.payload]);
    let (vnet, ip) = out[start..].split_at_mut(VNET_BYTES);
    vnet::set_whole(vnet);
    vnet::set_checked(vnet);
    if form.needs_checksum {
        complete(ip, form.checksum_start.into(), form.checksum_offset.into());
    }
}

/// Turns the sum over the pseudo-header in the checksum field into the checksum.
fn complete(ip: &mut [u8], start: usize, offset: usize) {
    let value = checksum::finish(checksum::sum(0, &ip[start..]));
    put_u16(ip, start + offset, value);
}
