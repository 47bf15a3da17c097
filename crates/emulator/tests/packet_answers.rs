//! Answers to packets that are too big, and capture files.

mod packets;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farline_emulator::packet::{Run, parse, pcap, too_big};
use packets::{Source, VNET_BYTES, folded};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 9));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 9));

fn source(is_v6: bool) -> Source {
    Source {
        is_v6,
        is_udp: false,
        network_options: Vec::new(),
        transport_options: vec![1; 12],
        payload: packets::noise(9, 20_000),
        segment_payload: 4_000,
        congestion: 2,
        identification: 77,
        sequence: 1_000_000,
        flags: 0x10,
    }
}

fn answer(source: &Source, segment: u16, router: IpAddr) -> Option<Vec<u8>> {
    let packet = source.as_read(0, source.segments());
    too_big(&packet, &parse(&packet).unwrap().form, segment, 1_500, router)
}

#[test]
fn fragmentation_needed_quotes_the_segment_that_was_too_big() {
    let (source, bytes) = (source(false), answer(&source(false), 2, V4).unwrap());
    let ip = &bytes[VNET_BYTES..];
    assert_eq!(bytes[..VNET_BYTES], [0; VNET_BYTES]);
    assert_eq!(ip.len(), 576);
    assert_eq!(folded([&ip[..20], &[], &[]]), 0xffff);
    assert_eq!(folded([&ip[20..], &[], &[]]), 0xffff);
    assert_eq!((ip[20], ip[21], &ip[26..28]), (3, 4, &1_500u16.to_be_bytes()[..]));
    assert_eq!(ip[28..], source.on_wire(2)[..548]);
    let parsed = parse(&bytes).unwrap();
    assert_eq!(
        (parsed.source, parsed.destination),
        (V4, Ipv4Addr::new(10, 77, 0, 1).into())
    );
}

#[test]
fn packet_too_big_quotes_as_much_as_every_host_can_take() {
    let (source, bytes) = (source(true), answer(&source(true), 0, V6).unwrap());
    let ip = &bytes[VNET_BYTES..];
    assert_eq!(ip.len(), 1_280);
    let pseudo = [&ip[8..40], &1_240u32.to_be_bytes(), &[0, 0, 0, 58]].concat();
    assert_eq!(folded([&pseudo, &ip[40..], &[]]), 0xffff);
    assert_eq!((ip[40], ip[41], &ip[44..48]), (2, 0, &1_500u32.to_be_bytes()[..]));
    assert_eq!(ip[48..], source.on_wire(0)[..1_232]);
}

#[test]
fn errors_fragments_and_groups_are_not_answered() {
    let packet = source(false).as_read(0, 1);
    let refused = |at: usize, values: &[u8]| {
        let mut packet = packet.clone();
        packet[0] = 0;
        packet[VNET_BYTES + at..VNET_BYTES + at + values.len()].copy_from_slice(values);
        too_big(&packet, &parse(&packet).unwrap().form, 0, 1_500, V4).is_none()
    };
    assert!(!refused(1, &[0]), "the packet itself is answered");
    assert!(refused(7, &[9]), "a later fragment");
    assert!(refused(16, &[224, 0, 0, 5]), "a group");
    assert!(refused(12, &[0, 0, 0, 0]), "nobody");
    let mut error = packet.clone();
    error[0] = 0;
    error[VNET_BYTES + 9] = 1;
    error[VNET_BYTES + 20] = 11;
    assert!(too_big(&error, &parse(&error).unwrap().form, 0, 1_500, V4).is_none());
    error[VNET_BYTES + 20] = 8;
    assert!(too_big(&error, &parse(&error).unwrap().form, 0, 1_500, V4).is_some());
    assert!(
        answer(&source(true), 0, V4).is_none(),
        "a router of the other family"
    );
}

#[test]
fn a_capture_holds_every_segment_with_its_time_and_its_true_length() {
    let source = source(false);
    let packet = source.as_read(0, source.segments());
    let run = Run {
        first: 1,
        count: 4,
        marked: false,
    };
    let mut file = pcap::file_header(100).to_vec();
    let at_ns = |index: u16| 1_700_000_000_000_000_007 + u64::from(index) * 1_500_000_000;
    pcap::append_records(&mut file, &packet, &parse(&packet).unwrap().form, run, 100, at_ns);
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    assert_eq!((word(0), word(16), word(20)), (0xa1b2_3c4d, 100, 101));
    let mut at = 24;
    for index in 0..4 {
        let wire = source.on_wire(1 + index);
        let time = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        assert_eq!(time, at_ns(index as u16));
        assert_eq!((word(at + 8), word(at + 12) as usize), (100, wire.len()));
        assert_eq!(file[at + 16..at + 116], wire[..100]);
        at += 116;
    }
    assert_eq!(at, file.len());
}

#[test]
fn packets_shorter_than_the_limit_are_kept_whole() {
    let mut source = source(true);
    source.payload.truncate(3);
    let packet = source.as_read(0, 1);
    let run = Run {
        first: 0,
        count: 1,
        marked: false,
    };
    let mut records = Vec::new();
    pcap::append_records(
        &mut records,
        &packet,
        &parse(&packet).unwrap().form,
        run,
        65_535,
        |_| 0,
    );
    assert_eq!(records[16..], source.on_wire(0));
}
