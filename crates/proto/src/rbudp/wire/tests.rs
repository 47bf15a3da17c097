//! What goes in comes out, and what is not of this protocol is said to be so.

use super::*;
use crate::rbudp::PacketSet;
use proptest::prelude::*;

const MAX: u32 = 1_000;

fn done(total: Option<Total>) -> Done {
    Done {
        blast: 3,
        upto: 1_000,
        served: 2,
        total,
    }
}

fn set() -> impl Strategy<Value = PacketSet> {
    let runs = prop::collection::vec((1u32..50, 1u32..50), 0..20);
    runs.prop_map(|pairs| {
        let mut at = 0;
        let run = |(gap, count)| {
            let first = at + gap;
            at = first + count;
            (first, count)
        };
        PacketSet::from_runs(
            pairs
                .into_iter()
                .map(run)
                .take_while(|&(first, count)| first + count <= MAX),
        )
        .unwrap()
    })
}

fn message() -> impl Strategy<Value = Message> {
    let total = prop::option::of((any::<u64>(), any::<u64>()).prop_map(|(bytes, sum)| Total { bytes, sum }));
    let word = any::<u32>;
    let done = (word(), word(), word(), total).prop_map(|(blast, upto, served, total)| {
        Message::Done(Done {
            blast,
            upto,
            served,
            total,
        })
    });
    let missing =
        (word(), word(), word(), word(), set()).prop_map(|(blast, upto, served, report, packets)| {
            Message::Missing(Missing {
                blast,
                upto,
                served,
                report,
                packets,
            })
        });
    prop_oneof![
        done,
        missing,
        any::<u32>().prop_map(|blast| Message::Whole { blast }),
        any::<u32>().prop_map(|blasts| Message::End { blasts }),
        Just(Message::EndSeen),
        ".{0,40}".prop_map(Message::Failed),
    ]
}

fn decode(bytes: &[u8]) -> Result<Option<Message>, WireError> {
    let mut decoder = Decoder::new(MAX);
    decoder.push(bytes);
    decoder.next()
}

#[test]
fn a_header_stands_where_the_format_says() {
    let header = Header {
        token: 0x0102_0304,
        blast: 0x0506_0708,
        packet: 0x090A_0B0C,
        check: 0x0D0E_0F10,
    };
    let mut datagram = [0xFF; 20];
    header.write(&mut datagram);
    let expected: Vec<u8> = (1..=16).chain([0xFF; 4]).collect();
    assert_eq!(datagram[..], expected[..]);
    assert_eq!(Header::read(&datagram), Some(header));
    assert_eq!(Header::read(&datagram[..15]), None);
}

#[test]
fn a_packet_in_another_place_has_another_hash() {
    let payload = [7; 100];
    let hash = packet_hash(1, 2, &payload);
    assert_ne!(hash, packet_hash(2, 1, &payload));
    assert_ne!(hash, packet_hash(1, 3, &payload));
    assert_eq!(
        packet_hash(0, 0, b""),
        0x2D06_8005_38D3_94C2,
        "XXH3-64 of nothing, seed 0"
    );
}

#[test]
fn a_mark_with_any_bit_wrong_is_none() {
    for total in [
        None,
        Some(Total {
            bytes: 1 << 40,
            sum: 99,
        }),
    ] {
        let mut datagram = Vec::new();
        encode_mark(77, &done(total), &mut datagram);
        assert_eq!(Header::read(&datagram).unwrap().token, 77);
        assert_eq!(decode_mark(&datagram), Some(done(total)));
        for bit in 32..8 * datagram.len() {
            let mut wrong = datagram.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode_mark(&wrong), None, "bit {bit}");
        }
        assert_eq!(decode_mark(&datagram[..datagram.len() - 1]), None);
    }
}

#[test]
fn a_length_past_what_a_report_can_take_is_refused_before_it_comes() {
    let error = decode(&1_000_000u32.to_be_bytes()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a message of 1000000 bytes; allowed: 1 to 1025"
    );
    assert_eq!(
        decode(&[0; 4]).unwrap_err().to_string(),
        "a message of 0 bytes; allowed: 1 to 1025"
    );
    assert!(
        decode(&[0, 0, 0, 1, 9])
            .unwrap_err()
            .to_string()
            .contains("kind 9; allowed: 1 to 6")
    );
    assert_eq!(decode(&[0, 0, 0]), Ok(None));
}

#[test]
fn a_reason_is_cut_between_letters() {
    let mut bytes = Vec::new();
    encode(&Message::Failed("ü".repeat(1_000)), &mut bytes);
    assert_eq!(decode(&bytes), Ok(Some(Message::Failed("ü".repeat(512)))));
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in_however_the_bytes_are_cut(
        messages in prop::collection::vec(message(), 0..12), cut in 1usize..50,
    ) {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| encode(message, &mut bytes));
        let mut decoder = Decoder::new(MAX);
        let mut came = Vec::new();
        for part in bytes.chunks(cut) {
            decoder.push(part);
            while let Some(message) = decoder.next().unwrap() {
                came.push(message);
            }
        }
        prop_assert_eq!(came, messages);
    }

    #[test]
    fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..8) {
        let mut frame = (bytes.len() as u32 + 1).to_be_bytes().to_vec();
        frame.push(kind);
        frame.extend(&bytes);
        if let Ok(Some(message)) = decode(&frame) {
            let mut again = Vec::new();
            encode(&message, &mut again);
            prop_assert_eq!(decode(&again), Ok(Some(message)));
        }
        let _ = (decode(&bytes), decode_mark(&bytes), Header::read(&bytes));
    }
}
