//! Super-packets cut anywhere: every piece and every segment is what a sender would have sent.

mod packets;

use farline_emulator::packet::{Corruption, Run, append_segment, corrupt, parse};
use packets::{Source, VNET_BYTES, is_right, sources};
use proptest::prelude::*;

fn piece(packet: &[u8], run: Run) -> Vec<u8> {
    let piece = parse(packet).unwrap().form.piece(packet, run);
    [&piece.header[..], &packet[piece.payload]].concat()
}

fn segment(packet: &[u8], index: usize, marked: bool) -> Vec<u8> {
    let mut out = Vec::new();
    append_segment(
        &mut out,
        packet,
        &parse(packet).unwrap().form,
        index as u16,
        marked,
    );
    assert_eq!(out[..2], [0, 0], "nothing is left to the receiver");
    out.split_off(VNET_BYTES)
}

fn runs(segments: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..segments).flat_map(move |first| (1..=segments - first).map(move |count| (first, count)))
}

fn run((first, count): (usize, usize), marked: bool) -> Run {
    Run {
        first: first as u16,
        count: count as u16,
        marked,
    }
}

fn stream() -> Source {
    Source {
        is_v6: false,
        is_udp: false,
        network_options: Vec::new(),
        transport_options: Vec::new(),
        payload: packets::noise(5, 64_000),
        segment_payload: 1_460,
        congestion: 0,
        identification: 65_530,
        sequence: u32::MAX - 10_000,
        flags: 0x19 | packets::CWR,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn numbers_are_those_of_the_segments(source in sources(12)) {
        let packet = source.as_read(0, source.segments());
        let parsed = parse(&packet).unwrap();
        prop_assert_eq!(usize::from(parsed.form.segments()), source.segments());
        let sizes: Vec<_> = (0..source.segments()).map(|index| source.on_wire(index).len()).collect();
        prop_assert_eq!(parsed.form.last_bytes() as usize, *sizes.last().unwrap());
        prop_assert!(sizes[..sizes.len() - 1].iter().all(|&size| size == parsed.form.segment_bytes() as usize));
        prop_assert_eq!((parsed.ecn_capable, parsed.marked), (source.congestion != 0, source.congestion == 3));
    }

    #[test]
    fn every_cut_is_what_the_sender_would_have_sent(source in sources(12)) {
        let packet = source.as_read(0, source.segments());
        for (first, count) in runs(source.segments()) {
            prop_assert_eq!(piece(&packet, run((first, count), false)), source.as_read(first, count));
        }
    }

    #[test]
    fn every_segment_is_as_software_would_have_made_it(source in sources(12)) {
        let packet = source.as_read(0, source.segments());
        for index in 0..source.segments() {
            let made = segment(&packet, index, false);
            prop_assert!(is_right(&made, source.network_bytes()));
            prop_assert_eq!(made, source.on_wire(index));
        }
    }

    #[test]
    fn cutting_twice_is_cutting_once(source in sources(8)) {
        let packet = source.as_read(0, source.segments());
        for (first, count) in runs(source.segments()) {
            let part = piece(&packet, run((first, count), false));
            for (inner, less) in runs(count) {
                let twice = piece(&part, run((inner, less), false));
                prop_assert_eq!(twice, piece(&packet, run((first + inner, less), false)));
            }
        }
    }

    #[test]
    fn a_mark_changes_nothing_else(source in sources(6)) {
        let packet = source.as_read(0, source.segments());
        let marked = Source { congestion: 3, ..source.clone() };
        for (first, count) in runs(source.segments()) {
            prop_assert_eq!(piece(&packet, run((first, count), true)), marked.as_read(first, count));
        }
        prop_assert_eq!(segment(&packet, 0, true), marked.on_wire(0));
    }

    #[test]
    fn visible_corruption_is_one_bit_and_fails_the_checksum(source in sources(4), entropy: u64) {
        let packet = source.as_read(0, source.segments());
        let (form, right) = (parse(&packet).unwrap().form, source.on_wire(0));
        let mut out = Vec::new();
        prop_assert!(corrupt(&mut out, &packet, &form, (0, false), entropy, Corruption::Visible));
        let wrong = &out[VNET_BYTES..];
        prop_assert_eq!(bits_apart(wrong, &right), 1);
        prop_assert!(!is_right(wrong, source.network_bytes()));
        let start = if source.payload.is_empty() { source.network_bytes() } else { source.header_bytes() };
        prop_assert_eq!(&wrong[..start], &right[..start]);
    }

    #[test]
    fn hidden_corruption_is_one_bit_of_payload_and_passes_the_checksum(source in sources(4), entropy: u64) {
        let packet = source.as_read(0, source.segments());
        let (form, right) = (parse(&packet).unwrap().form, source.on_wire(0));
        let mut out = Vec::new();
        let hit = corrupt(&mut out, &packet, &form, (0, false), entropy, Corruption::Hidden);
        prop_assert_eq!(hit, !source.payload.is_empty());
        let wrong = &out[VNET_BYTES..];
        prop_assert!(is_right(wrong, source.network_bytes()));
        let payload = source.header_bytes();
        prop_assert_eq!(bits_apart(&wrong[payload..], &right[payload..]), u32::from(hit));
    }
}

fn bits_apart(one: &[u8], other: &[u8]) -> u32 {
    assert_eq!(one.len(), other.len());
    one.iter()
        .zip(other)
        .map(|(one, other)| (one ^ other).count_ones())
        .sum()
}

#[test]
fn a_whole_run_is_the_packet_itself() {
    let source = stream();
    let packet = source.as_read(0, source.segments());
    let piece = parse(&packet)
        .unwrap()
        .form
        .piece(&packet, run((0, source.segments()), false));
    assert!(piece.header.is_empty());
    assert_eq!(piece.payload, 0..packet.len());
}

#[test]
fn entropy_reaches_every_bit_of_the_payload() {
    let mut source = stream();
    source.payload.truncate(4);
    let packet = source.as_read(0, 1);
    let form = parse(&packet).unwrap().form;
    let mut seen = vec![0; 4];
    for entropy in 0..32 {
        let mut out = Vec::new();
        corrupt(&mut out, &packet, &form, (0, false), entropy, Corruption::Visible);
        for (seen, (now, was)) in seen
            .iter_mut()
            .zip(out[out.len() - 4..].iter().zip(&source.payload))
        {
            *seen |= now ^ was;
        }
    }
    assert_eq!(seen, [0xff; 4]);
}

#[test]
fn full_size_streams_and_batches_are_cut_right() {
    for (is_v6, is_udp) in [(false, false), (false, true), (true, false), (true, true)] {
        let source = Source {
            is_v6,
            is_udp,
            ..stream()
        };
        let packet = source.as_read(0, source.segments());
        for cut in 1..source.segments() {
            assert_eq!(piece(&packet, run((0, cut), false)), source.as_read(0, cut));
            let rest = (cut, source.segments() - cut);
            assert_eq!(piece(&packet, run(rest, false)), source.as_read(rest.0, rest.1));
        }
    }
}

#[test]
#[should_panic(expected = "of 44 segments")]
fn a_run_beyond_the_packet_is_a_defect_and_not_a_wrong_packet() {
    let source = stream();
    let packet = source.as_read(0, source.segments());
    piece(&packet, run((40, 5), false));
}
