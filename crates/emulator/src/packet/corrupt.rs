//! Bits turned over on the way.

use std::ops::Range;

use super::checksum;
use super::form::Form;
use super::network::{put_u16, u16_at};
use super::segment::append_segment;
use super::vnet::VNET_BYTES;

/// Whether the receiving kernel can find out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corruption {
    /// The checksum is that of the packet as it was sent: a line's noise. (UDP over IPv4 may have none.)
    Visible,
    /// The checksum is that of the packet as it is now: a device that works it out anew over broken memory. Only an
    /// end-to-end check can see it.
    Hidden,
}

/// Appends segment `segment` of `packet` to `out` as [`append_segment`] does, with one bit turned over, chosen by
/// `entropy`; gives whether there was such a bit.
///
/// The bit is one of the transport payload. A packet without payload loses one of its transport header when the
/// corruption is visible, so that its receiver drops it as well, and is left as it is when it is hidden: there is
/// nothing that an end-to-end check looks at.
///
/// # Panics
/// As [`append_segment`].
pub fn corrupt(
    out: &mut Vec<u8>,
    packet: &[u8],
    form: &Form,
    segment: (u16, bool),
    entropy: u64,
    corruption: Corruption,
) -> bool {
    let start = out.len() + VNET_BYTES;
    append_segment(out, packet, form, segment.0, segment.1);
    let ip = &mut out[start..];
    let Some(bytes) = target(ip, form, corruption) else {
        return false;
    };
    let bit = (entropy % (bytes.len() as u64 * 8)) as usize;
    let (at, mask) = (bytes.start + bit / 8, 1 << (bit % 8));
    match (corruption, checksum_place(form)) {
        (Corruption::Hidden, Some(place)) => flip_and_mend(ip, at, mask, place),
        _ => ip[at] ^= mask,
    }
    true
}

/// Bytes of which one is hit.
fn target(ip: &[u8], form: &Form, corruption: Corruption) -> Option<Range<usize>> {
    let (network, header) = (usize::from(form.network_bytes), usize::from(form.header_bytes));
    let candidates = match corruption {
        Corruption::Hidden => [header, ip.len()],
        Corruption::Visible => [header, network],
    };
    let mut ranges = candidates.into_iter().map(|start| start..ip.len());
    ranges.find(|range| !range.is_empty())
}

/// Where the sum starts and where the checksum is.
fn checksum_place(form: &Form) -> Option<(usize, usize)> {
    if form.needs_checksum {
        let start = usize::from(form.checksum_start);
        return Some((start, start + usize::from(form.checksum_offset)));
    }
    let start = usize::from(form.network_bytes);
    Some((start, start + form.transport.checksum_offset()?))
}

fn flip_and_mend(ip: &mut [u8], at: usize, mask: u8, (start, field): (usize, usize)) {
    let is_summed = at >= start;
    let word = |ip: &[u8]| {
        let even = at - (at - start) % 2;
        u16::from_be_bytes([ip[even], ip.get(even + 1).copied().unwrap_or(0)])
    };
    let before = if is_summed { word(ip) } else { 0 };
    ip[at] ^= mask;
    let value = u16_at(ip, field);
    // 0 in a UDP header is no checksum at all, and stays so.
    if is_summed && value != 0 {
        let sum = checksum::replace(!value, before, word(ip));
        put_u16(ip, field, checksum::finish(sum.into()));
    }
}
