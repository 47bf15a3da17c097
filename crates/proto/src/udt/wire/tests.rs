//! Bytes of every packet, and codecs against whatever comes.

use std::net::{IpAddr, Ipv4Addr};

use proptest::prelude::*;

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits
        .chunks(2)
        .map(|pair| (pair[0] << 4 | pair[1]) as u8)
        .collect()
}

fn written(control: &Control<'_>, timestamp_us: u32, destination: u32) -> Vec<u8> {
    let mut out = vec![0xAA; 3];
    write_control(control, timestamp_us, destination, &mut out);
    out
}

/// What libudt 4.11 sends is read as it is meant, and what we write is what it sends.
#[track_caller]
fn same_both_ways(captured: &str, destination: u32, control: Control<'_>) {
    let captured = bytes(captured);
    let expected = ControlPacket {
        timestamp_us: 0,
        destination,
        control,
    };
    assert_eq!(read_control(&captured), Some(expected));
    assert_eq!(written(&control, 0, destination), captured);
    assert_eq!(destination_of(&captured), Some(destination));
    assert!(is_control(&captured));
    assert_eq!(DataHeader::read(&captured), None);
}

/// From captures of libudt 4.11 over loopback, and after its source where it sent none.
mod captured {
    use super::*;

    const CALLER: u32 = 0x0e7d_0e43;
    const LISTENER: u32 = 0x0320_5e28;

    fn handshake(request: i32, socket: u32, cookie: u32) -> Handshake {
        Handshake {
            mark: 0,
            version: 4,
            kind: SocketKind::Stream as u32,
            initial_sequence: Sequence::new(0x62ed_484a),
            mss_bytes: 1500,
            flight_packets: 8192,
            request,
            socket,
            cookie,
            peer_ip: ip_words(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        }
    }

    #[test]
    fn the_four_steps_of_a_call() {
        let steps = [
            (
                "80000000 00000000 00000000 00000000 00000004 00000001 62ed484a 000005dc 00002000 00000001 0e7d0e43 \
                 00000000 0100007f 00000000 00000000 00000000",
                0,
                handshake(1, CALLER, 0),
            ),
            (
                "80000000 00000000 00000000 0e7d0e43 00000004 00000001 62ed484a 000005dc 00002000 00000001 0e7d0e43 \
                 7dee58cf 0100007f 00000000 00000000 00000000",
                CALLER,
                handshake(1, CALLER, 0x7dee_58cf),
            ),
            (
                "80000000 00000000 00000000 00000000 00000004 00000001 62ed484a 000005dc 00002000 ffffffff 0e7d0e43 \
                 7dee58cf 0100007f 00000000 00000000 00000000",
                0,
                handshake(-1, CALLER, 0x7dee_58cf),
            ),
            (
                "80000000 00000000 00000000 0e7d0e43 00000004 00000001 62ed484a 000005dc 00002000 ffffffff 03205e28 \
                 7dee58cf 0100007f 00000000 00000000 00000000",
                CALLER,
                handshake(-1, LISTENER, 0x7dee_58cf),
            ),
        ];
        for (captured, destination, handshake) in steps {
            same_both_ways(captured, destination, Control::Handshake(handshake));
            assert_eq!(handshake.datagram(destination).to_vec(), bytes(captured));
        }
    }

    #[test]
    fn acknowledgements_of_four_lengths() {
        let next = Sequence::new(0x62ed_484e);
        let mut detail = AckDetail {
            rtt_us: 100_000,
            rtt_variance_us: 50_000,
            window_packets: 8187,
            rates: Some(Rates {
                arrival_pps: 1,
                capacity_pps: 1000,
            }),
            received: None,
        };
        let ack = |number, detail| Control::Ack(Ack { number, next, detail });
        let full =
            "80020000 00000001 00000000 0e7d0e43 62ed484e 000186a0 0000c350 00001ffb 00000001 000003e8";
        same_both_ways(full, CALLER, ack(1, Some(detail)));
        detail.received = Some(5);
        same_both_ways(&format!("{full} 00000005"), CALLER, ack(1, Some(detail)));
        (detail.received, detail.rates) = (None, None);
        let plain = "80020000 00000001 00000000 0e7d0e43 62ed484e 000186a0 0000c350 00001ffb";
        same_both_ways(plain, CALLER, ack(1, Some(detail)));
        same_both_ways(
            "80020000 00000000 00000000 0e7d0e43 62ed484e",
            CALLER,
            ack(0, None),
        );
    }

    #[test]
    fn everything_that_has_padding() {
        let keep_alive = "80010000 00000000 00000000 0e7d0e43 00000000";
        same_both_ways(keep_alive, CALLER, Control::KeepAlive);
        let ack2 = "80060000 00000002 00000000 03205e28 00000000";
        same_both_ways(ack2, LISTENER, Control::Ack2 { number: 2 });
        let shutdown = "80050000 00000000 00000000 03205e28 00000000";
        same_both_ways(shutdown, LISTENER, Control::Shutdown { token: 0 });
        let warning = "80040000 00000000 00000000 03205e28 00000000";
        same_both_ways(warning, LISTENER, Control::DelayWarning);
        let error = "80080000 00000fa0 00000000 03205e28 00000000";
        same_both_ways(error, LISTENER, Control::PeerError { code: 4000 });
    }

    #[test]
    fn loss_lists_drop_requests_and_user_defined_packets() {
        let body = bytes("80000005 00000007 0000000a");
        let nak = "80030000 00000000 00000000 03205e28 80000005 00000007 0000000a";
        same_both_ways(nak, LISTENER, Control::Nak(LossRanges::new(&body)));
        let drop = Control::DropRequest {
            message: 3,
            first: Sequence::new(0x7fff_ffff),
            last: Sequence::new(1),
        };
        let captured = "80070000 00000003 00000000 03205e28 7fffffff 00000001";
        same_both_ways(captured, LISTENER, drop);
        let custom = Control::Custom {
            kind: 0x4641,
            body: &[1, 2, 3, 4, 0, 0, 0, 1],
        };
        let captured = "ffff4641 00000000 00000000 03205e28 01020304 00000001";
        same_both_ways(captured, LISTENER, custom);
    }

    #[test]
    fn the_four_packets_of_one_send() {
        let headers = [
            ("62ed484a 80000001 00000574 03205e28", Boundary::First, false),
            ("62ed484b 00000001 00000588 03205e28", Boundary::Middle, false),
            ("62ed484d 40000001 00000596 03205e28", Boundary::Last, false),
            ("62ed484d e0000001 00000596 03205e28", Boundary::Only, true),
        ];
        for (captured, boundary, in_order) in headers {
            let mut captured = bytes(captured);
            let header = DataHeader::read(&captured).unwrap();
            assert_eq!(header.message, MessageWord::new(boundary, in_order, 1));
            assert_eq!(
                (header.message.boundary(), header.message.in_order()),
                (boundary, in_order)
            );
            assert_eq!((header.message.number(), header.destination), (1, LISTENER));
            assert!(!is_control(&captured));
            let mut slot = [0xAA; 20];
            header.write(&mut slot);
            assert_eq!(slot[..16], captured);
            assert_eq!(slot[16..], [0xAA; 4]);
            stamp(&mut captured, 0x0102_0304);
            let stamped = DataHeader::read(&captured).unwrap();
            assert_eq!(
                stamped,
                DataHeader {
                    timestamp_us: 0x0102_0304,
                    ..header
                }
            );
        }
    }
}

#[test]
fn padding_may_be_missing_and_extra_bytes_do_no_harm() {
    let controls = [
        Control::KeepAlive,
        Control::DelayWarning,
        Control::Shutdown { token: 0 },
        Control::Ack2 { number: 9 },
        Control::PeerError { code: 4000 },
    ];
    for control in controls {
        let mut datagram = written(&control, 7, 8);
        datagram.extend([0xAA; 5]);
        for length in [16, 20, 25] {
            assert_eq!(
                read_control(&datagram[..length]).unwrap().control,
                control,
                "{length} bytes"
            );
        }
    }
    let ack =
        bytes("80020000 00000001 00000000 00000002 00000003 00000004 00000005 00000006 00000007 00000008");
    let read = |length| match read_control(&ack[..length]).unwrap().control {
        Control::Ack(ack) => ack.detail.map(|detail| detail.rates.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!([read(20), read(28), read(31)], [None; 3], "light");
    assert_eq!([read(32), read(36), read(39)], [Some(false); 3], "without rates");
    assert_eq!(read(40), Some(true));
}

#[test]
fn what_is_too_short_or_unknown_is_nothing() {
    assert_eq!(read_control(&bytes("80010000 00000000 00000000 000000")), None);
    assert_eq!(
        read_control(&bytes("80020000 00000001 00000000 00000000 000000")),
        None
    );
    assert_eq!(
        read_control(&bytes("80070000 00000001 00000000 00000000 00000001 000000")),
        None
    );
    assert_eq!(
        read_control(&bytes("80090000 00000001 00000000 00000000 00000001 00000000")),
        None
    );
    let mut handshake = [0; 63];
    handshake[0] = 0x80;
    assert_eq!(read_control(&handshake), None);
    assert_eq!((destination_of(&[0; 15]), is_control(&[0x80; 15])), (None, false));
    assert_eq!(DataHeader::read(&[0; 15]), None);
}

#[test]
fn malformed_loss_lists_end_where_they_go_wrong() {
    let ranges = |hex: &str| -> Vec<(u32, u32)> {
        let body = bytes(hex);
        let pairs = LossRanges::new(&body).map(|(first, last)| (first.get(), last.get()));
        pairs.collect()
    };
    assert_eq!(ranges("00000001 80000005"), [(1, 1)], "a range without an end");
    assert_eq!(
        ranges("00000001 80000005 80000007 00000009"),
        [(1, 1)],
        "an end that is a beginning"
    );
    assert_eq!(
        ranges("00000001 80000005 00000004 00000009"),
        [(1, 1)],
        "an end before its beginning"
    );
    assert_eq!(ranges("00000001 0000"), [(1, 1)], "half a word");
    assert_eq!(
        ranges("ffffffff 00000002"),
        [(0x7fff_ffff, 2)],
        "a range over the wrap is well formed"
    );
    assert_eq!(ranges(""), []);
}

#[test]
fn addresses_are_reversed_as_libudt_reverses_them() {
    let words = |text: &str| ip_words(text.parse().unwrap());
    assert_eq!(words("192.0.2.7"), [0x0702_00c0, 0, 0, 0]);
    assert_eq!(words("::ffff:192.0.2.7"), words("192.0.2.7"));
    assert_eq!(words("2001:db8::1"), [0xb80d_0120, 0, 0, 0x0100_0000]);
}

#[test]
fn indices_are_found_on_both_sides_of_the_wrap() {
    let isn = Sequence::new(0x7fff_ff9c);
    let at = |number| Sequence::new(number);
    assert_eq!(expand(isn, isn, 0), Some(0));
    assert_eq!(expand(isn, at(0), 0), Some(100));
    assert_eq!(expand(isn, at(0x7fff_ff9b), 0), None, "before the first");
    assert_eq!(expand(isn, at(0x7fff_ff9b), 1 << 31), Some((1 << 31) - 1));
    assert_eq!(expand(isn, at(0x7fff_ff9c), (1 << 31) - 1), Some(1 << 31));
    assert_eq!(
        expand(at(0), at(1 << 30), 0),
        None,
        "of two equally near ones, the smaller"
    );
    assert_eq!(expand(at(0), at(0), u64::MAX), None, "after the last");
}

fn sequences() -> impl Strategy<Value = Sequence> {
    any::<u32>().prop_map(Sequence::new)
}

fn details() -> impl Strategy<Value = AckDetail> {
    let rates = prop::option::of((1u32.., any::<u32>()));
    (any::<[u32; 3]>(), rates, prop::option::of(any::<u32>())).prop_map(
        |([rtt_us, rtt_variance_us, window_packets], rates, received)| AckDetail {
            rtt_us,
            rtt_variance_us,
            window_packets,
            rates: rates.map(|(arrival_pps, capacity_pps)| Rates {
                arrival_pps,
                capacity_pps,
            }),
            received,
        },
    )
}

fn handshakes() -> impl Strategy<Value = Handshake> {
    (any::<[u32; 7]>(), sequences(), any::<i32>(), any::<[u32; 4]>()).prop_map(
        |(
            [mark, version, kind, mss_bytes, flight_packets, socket, cookie],
            initial_sequence,
            request,
            peer_ip,
        )| {
            Handshake {
                mark,
                version,
                kind,
                initial_sequence,
                mss_bytes,
                flight_packets,
                request,
                socket,
                cookie,
                peer_ip,
            }
        },
    )
}

fn controls() -> impl Strategy<Value = Control<'static>> {
    const BODY: [u8; 12] = [0x80, 0, 0, 5, 0, 0, 0, 7, 0, 0, 0, 9];
    prop_oneof![
        handshakes().prop_map(Control::Handshake),
        Just(Control::KeepAlive),
        (any::<u32>(), sequences(), prop::option::of(details()))
            .prop_map(|(number, next, detail)| Control::Ack(Ack { number, next, detail })),
        Just(Control::Nak(LossRanges::new(&BODY))),
        Just(Control::DelayWarning),
        any::<u32>().prop_map(|token| Control::Shutdown { token }),
        any::<u32>().prop_map(|number| Control::Ack2 { number }),
        (any::<u32>(), sequences(), sequences()).prop_map(|(message, first, last)| Control::DropRequest {
            message,
            first,
            last
        }),
        any::<u32>().prop_map(|code| Control::PeerError { code }),
        any::<u16>().prop_map(|kind| Control::Custom { kind, body: &BODY }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(control in controls(), timestamp_us: u32, destination: u32) {
        let datagram = written(&control, timestamp_us, destination);
        let packet = ControlPacket { timestamp_us, destination, control };
        prop_assert_eq!(read_control(&datagram), Some(packet));
    }

    #[test]
    fn data_headers_are_read_as_written(words: [u32; 4]) {
        let [sequence, message, timestamp_us, destination] = words;
        let (sequence, message) = (Sequence::new(sequence), MessageWord(message));
        let header = DataHeader { sequence, message, timestamp_us, destination };
        let mut slot = [0; HEADER_BYTES];
        header.write(&mut slot);
        prop_assert_eq!(DataHeader::read(&slot), Some(header));
        let again = MessageWord::new(message.boundary(), message.in_order(), message.number());
        prop_assert_eq!(again, message);
    }

    #[test]
    fn an_index_near_enough_is_always_found(isn in sequences(), near: u32, distance in -(1i64 << 30)..1 << 30) {
        let near = u64::from(near) << 10;
        let index = near.checked_add_signed(distance);
        let sequence = isn.plus(near.wrapping_add_signed(distance));
        prop_assert_eq!(expand(isn, sequence, near), index);
    }

    #[test]
    fn a_nak_holds_what_fits_and_no_more(
        ranges in prop::collection::vec((sequences(), 0u64..1 << 30), 0..60),
        max_bytes in 0usize..400,
    ) {
        let ranges: Vec<_> = ranges.iter().map(|&(first, more)| (first, first.plus(more))).collect();
        let mut out = vec![1; 7];
        let count = write_nak(&ranges, max_bytes, 5, 6, &mut out);
        prop_assert!(out.len() <= max_bytes);
        if count == 0 {
            prop_assert!(out.is_empty());
            return Ok(());
        }
        prop_assert!(count == ranges.len() || out.len() + 8 > max_bytes);
        let Some(Control::Nak(read)) = read_control(&out).map(|packet| packet.control) else {
            return Err(TestCaseError::fail("no NAK"));
        };
        prop_assert_eq!(read.collect::<Vec<_>>(), &ranges[..count]);
    }
}
