//! What must hold for any bytes read as a packet; `fuzz/` runs it under libFuzzer, `cargo test` briefly.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Corruption, Parsed, Run, VNET_BYTES, append_segment, corrupt, parse, pcap, too_big};

/// More segments than a real device makes need not all be looked at.
const MOST_SEGMENTS: u16 = 64;

/// Bytes as a device might give them: whatever is done with a packet that is accepted, its bytes stay together.
pub fn packets(data: &[u8]) {
    let Some((choice, packet)) = data.split_first_chunk::<4>() else {
        return;
    };
    let Ok(parsed) = parse(packet) else { return };
    let total = parsed.form.segments();
    let first = u16::from_le_bytes([choice[0], choice[1]]) % total;
    let run = Run {
        first,
        count: 1 + u16::from(choice[2]) % (total - first),
        marked: choice[3] & 1 == 1,
    };
    check_lengths(&parsed, packet);
    check_piece(&parsed, packet, run);
    check_segment(&parsed, packet, first, choice[3]);
}

fn check_lengths(parsed: &Parsed, packet: &[u8]) {
    let form = &parsed.form;
    let headers = u32::from(form.header_bytes);
    let payload =
        (form.segment_bytes() - headers) * u32::from(form.segments() - 1) + (form.last_bytes() - headers);
    assert_eq!(VNET_BYTES + (headers + payload) as usize, packet.len());
}

/// A piece is as long as its segments together, and reads as the same kind of packet.
fn check_piece(parsed: &Parsed, packet: &[u8], run: Run) {
    let piece = parsed.form.piece(packet, run);
    let bytes = [&piece.header[..], &packet[piece.payload]].concat();
    let again = parse(&bytes).expect("a piece is a packet");
    assert_eq!(again.form.segments(), run.count);
    assert_eq!(
        (again.source, again.destination),
        (parsed.source, parsed.destination)
    );
    assert_eq!(again.form.transport(), parsed.form.transport());
    assert_eq!(again.marked, parsed.marked || run.marked);
}

fn check_segment(parsed: &Parsed, packet: &[u8], segment: u16, choice: u8) {
    let form = &parsed.form;
    let (mut plain, mut broken) = (Vec::new(), Vec::new());
    append_segment(&mut plain, packet, form, segment, false);
    let corruption = if choice & 2 == 0 {
        Corruption::Visible
    } else {
        Corruption::Hidden
    };
    let entropy = u64::from(choice).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hit = corrupt(&mut broken, packet, form, (segment, false), entropy, corruption);
    assert_eq!(plain.len(), broken.len());
    assert!(hit || plain == broken);
    let routers = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    for answer in routers
        .into_iter()
        .filter_map(|router| too_big(packet, form, segment, 1280, router))
    {
        assert_eq!(
            parse(&answer).expect("an answer is a packet").destination,
            parsed.source
        );
    }
    let run = Run {
        first: segment,
        count: MOST_SEGMENTS.min(form.segments() - segment),
        marked: false,
    };
    pcap::append_records(&mut plain, packet, form, run, 96, u64::from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The start of a TCP super-packet over IPv4, so that mischief gets past the first checks.
    const ALMOST: [u8; 54] = [
        0, 0, 200, 0, 1, 1, 0, 0, 7, 0, 20, 0, 16, 0, 0x45, 0, 0, 80, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 77, 0,
        1, 10, 77, 0, 2, 0, 80, 1, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x18, 0, 99, 0, 0, 0, 0,
    ];

    #[test]
    fn the_packet_that_mischief_begins_with_is_accepted() {
        let mut bytes = ALMOST.to_vec();
        bytes.resize(4 + VNET_BYTES + 80, 1);
        assert_eq!(parse(&bytes[4..]).unwrap().form.segments(), 6);
        packets(&bytes);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn bytes_never_panic(data in prop::collection::vec(any::<u8>(), 0..200)) {
            packets(&data);
        }

        #[test]
        fn almost_packets_never_panic(
            changes in prop::collection::vec((0usize..54, any::<u8>()), 0..6),
            length in 0usize..200,
        ) {
            let mut bytes = ALMOST.to_vec();
            for (at, value) in changes {
                bytes[at] = value;
            }
            bytes.resize(length, 1);
            packets(&bytes);
        }
    }
}
