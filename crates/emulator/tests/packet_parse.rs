//! Packets that are odd, broken or hostile: one segment, or refused with a reason.

mod packets;

use farline_emulator::packet::{Corruption, Transport, append_segment, corrupt, parse};
use packets::{Source, VNET_BYTES, folded};

fn source(is_v6: bool, is_udp: bool, payload: usize) -> Source {
    Source {
        is_v6,
        is_udp,
        network_options: Vec::new(),
        transport_options: Vec::new(),
        payload: packets::noise(3, payload),
        segment_payload: 100,
        congestion: 0,
        identification: 1,
        sequence: 1,
        flags: 0x18,
    }
}

/// A packet as read, with a byte of it changed (`at` counts from the virtio-net header).
fn changed(source: &Source, at: usize, value: u8) -> Vec<u8> {
    let mut packet = source.as_read(0, source.segments());
    packet[at] = value;
    packet
}

fn refusal(packet: &[u8]) -> String {
    parse(packet).unwrap_err().to_string()
}

#[test]
fn what_is_no_packet_is_refused_with_the_reason() {
    assert!(refusal(&[0; 9]).contains("the virtio-net header is missing"));
    assert!(refusal(&[0; 10]).contains("the IP header is missing"));
    assert!(refusal(&[0; 40]).contains("neither IPv4 nor IPv6"));
    let v4 = source(false, false, 10).as_read(0, 1);
    assert!(refusal(&v4[..25]).contains("a truncated IPv4 header"));
    let v6 = source(true, false, 10).as_read(0, 1);
    assert!(refusal(&v6[..45]).contains("a truncated IPv6 header"));
    assert!(refusal(&changed(&source(false, false, 10), VNET_BYTES, 0x44)).contains("invalid length"));
}

#[test]
fn a_super_packet_that_does_not_hold_together_is_refused() {
    let tcp = source(false, false, 350);
    let cases = [
        (1, 3, "not requested"),
        (1, 4, "protocol does not match"),
        (1, 5, "protocol does not match"),
        (0, 0, "checksum is not left"),
        (6, 24, "checksum is not left"),
        (VNET_BYTES + 3, 9, "with a truncated transport header"),
        (VNET_BYTES + 32, 0x40, "with a truncated transport header"),
        (VNET_BYTES + 6, 0x20, "with a truncated transport header"),
    ];
    for (at, value, reason) in cases {
        let text = refusal(&changed(&tcp, at, value));
        assert!(text.contains(reason), "byte {at} = {value}: {text}");
    }
    let mut no_size = tcp.as_read(0, tcp.segments());
    no_size[4..6].fill(0);
    assert!(refusal(&no_size).contains("empty segments"));
}

#[test]
fn a_checksum_field_outside_the_payload_is_refused() {
    let mut packet = source(false, true, 10).as_read(0, 1);
    packet[8..10].copy_from_slice(&u16::MAX.to_le_bytes());
    assert!(refusal(&packet).contains("checksum field"));
    // Within the IP header it would make another packet of it.
    packet[6..10].fill(0);
    assert!(refusal(&packet).contains("checksum field"));
}

#[test]
fn a_fragment_is_one_packet_of_no_known_transport() {
    for (at, value) in [(VNET_BYTES + 6, 0x20), (VNET_BYTES + 7, 3)] {
        let parsed = parse(&changed(&source(false, true, 50), at, value)).unwrap();
        assert_eq!(
            (parsed.form.segments(), parsed.form.transport()),
            (1, Transport::Other)
        );
        assert_eq!(parsed.form.last_bytes(), 78);
    }
    let fragment6 = changed(&source(true, true, 50), VNET_BYTES + 6, 44);
    assert_eq!(parse(&fragment6).unwrap().form.transport(), Transport::Other);
}

#[test]
fn lengths_that_disagree_make_no_transport() {
    let longer = changed(&source(false, true, 50), VNET_BYTES + 25, 200);
    assert_eq!(parse(&longer).unwrap().form.transport(), Transport::Other);
    let shorter = changed(&source(true, false, 50), VNET_BYTES + 5, 3);
    assert_eq!(parse(&shorter).unwrap().form.transport(), Transport::Other);
}

#[test]
fn extension_headers_are_skipped_but_not_for_ever() {
    let mut options = source(true, true, 350);
    options.network_options = vec![1; 24];
    let packet = options.as_read(0, 4);
    assert_eq!(parse(&packet).unwrap().form.segments(), 4);
    // Each header says that one of its kind follows.
    let mut endless = source(true, true, 500).as_read(0, 1);
    endless[0] = 0;
    endless[VNET_BYTES + 6] = 0;
    endless[VNET_BYTES + 40..].fill(0);
    let parsed = parse(&endless).unwrap();
    assert_eq!(
        (parsed.form.segments(), parsed.form.transport()),
        (1, Transport::Other)
    );
}

#[test]
fn a_checksum_inside_a_tunnel_is_done_where_it_is() {
    // Protocol 4: IPv4 in IPv4, its inner TCP checksum left to the device.
    let inner = source(false, false, 60);
    let inner = &inner.as_read(0, 1)[VNET_BYTES..];
    let mut packet = vec![1, 0, 0, 0, 0, 0, 40, 0, 16, 0];
    let length = (20 + inner.len()) as u16;
    packet.extend([0x45, 0]);
    packet.extend(length.to_be_bytes());
    packet.extend([0, 1, 0x40, 0, 64, 4, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(inner);
    let parsed = parse(&packet).unwrap();
    let mut out = Vec::new();
    append_segment(&mut out, &packet, &parsed.form, 0, false);
    assert!(packets::is_right(&out[VNET_BYTES + 20..], 20));
    let mut broken = Vec::new();
    assert!(corrupt(
        &mut broken,
        &packet,
        &parsed.form,
        (0, false),
        477,
        Corruption::Hidden
    ));
    assert_ne!(out, broken);
    assert!(packets::is_right(&broken[VNET_BYTES + 20..], 20));
}

#[test]
fn datagrams_without_checksum_keep_none() {
    let mut packet = source(false, true, 50).as_read(0, 1);
    packet[0] = 0;
    packet[VNET_BYTES + 26..VNET_BYTES + 28].fill(0);
    let form = parse(&packet).unwrap().form;
    for corruption in [Corruption::Visible, Corruption::Hidden] {
        let mut out = Vec::new();
        assert!(corrupt(&mut out, &packet, &form, (0, false), 5, corruption));
        assert_eq!(out[VNET_BYTES + 26..VNET_BYTES + 28], [0, 0]);
    }
}

#[test]
fn an_echo_is_broken_behind_its_header() {
    let mut packet = vec![0; VNET_BYTES];
    let mut echo = vec![8, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let sum = !folded([&echo, &[], &[]]);
    echo[2..4].copy_from_slice(&sum.to_be_bytes());
    packet.extend([
        0x45, 0, 0, 33, 0, 1, 0x40, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    packet.extend(&echo);
    let form = parse(&packet).unwrap().form;
    assert_eq!(form.transport(), Transport::Icmp);
    let mut out = Vec::new();
    assert!(corrupt(
        &mut out,
        &packet,
        &form,
        (0, false),
        39,
        Corruption::Hidden
    ));
    let broken = &out[VNET_BYTES + 20..];
    assert_eq!(folded([broken, &[], &[]]), 0xffff);
    assert_eq!((broken[12], &broken[4..12]), (9 ^ 0x80, &echo[4..12]));
}
