//! Sealed frames that are changed on their way: what of them arrives, and what is asked for again.

use super::*;
use crate::copy::spoiled::{MOST_IN_A_ROW, MOST_IN_ALL};

const CIPHER: Cipher = Cipher::Aes128Gcm;

/// What a stream of data brings where both ends heal.
#[derive(Debug, Default, PartialEq, Eq)]
struct Brought {
    /// Number and payload of each frame that opened.
    opened: Vec<(u64, Vec<u8>)>,
    unopened: Vec<u64>,
    out_of_step: Option<u64>,
    failure: Option<String>,
}

fn healed(io: &mut Memory) -> Brought {
    bring(io, &Shared::healing(), true)
}

fn bring(io: &mut Memory, shared: &Shared, is_data: bool) -> Brought {
    let mut inlet = Receiving::new(io, seal(CIPHER), shared.line(), is_data);
    let (mut frame, mut brought, mut number) = (Frame::new(CAPACITY), Brought::default(), 0);
    loop {
        match inlet.receive(&mut frame) {
            Ok(Arrived::Frame) => {
                assert_eq!(brought.out_of_step, None, "nothing comes after");
                frame.header().unwrap();
                brought.opened.push((number, frame.payload().to_vec()));
                number += 1;
            }
            Ok(Arrived::Unopened { record }) => {
                assert!(
                    frame.payload().is_empty() && frame.header().is_err(),
                    "nothing to look at"
                );
                assert_eq!(record, number);
                brought.unopened.push(record);
                number += 1;
            }
            Ok(Arrived::OutOfStep { record }) => {
                assert_eq!((record, brought.out_of_step), (number, None));
                brought.out_of_step = Some(record);
            }
            Ok(Arrived::Void) => panic!("a sealed frame is never void"),
            Ok(Arrived::Nothing) => {}
            Ok(Arrived::End) => return brought,
            Err(failure) => {
                assert_eq!(failure.kind, FailureKind::Protocol);
                assert!(!failure.permanent, "the next session goes on");
                brought.failure = Some(failure.message);
                return brought;
            }
        }
    }
}

fn contents(count: usize) -> Vec<Vec<u8>> {
    (0..count)
        .map(|number| vec![number as u8; 50 + 7 * number])
        .collect()
}

fn frame_bytes(content: &[u8]) -> usize {
    PREFIX_BYTES + HEADER_BYTES + content.len() + TRAILER_BYTES
}

/// Where each frame of `contents` begins in the stream, and where the last one ends.
fn begins(contents: &[Vec<u8>]) -> Vec<usize> {
    let mut at = 0;
    let ends = contents.iter().map(|content| {
        at += frame_bytes(content);
        at
    });
    std::iter::once(0).chain(ends).collect()
}

proptest! {
    #[test]
    fn one_changed_bit_costs_its_frame_or_what_follows_on_its_stream_and_nothing_wrong_arrives(
        count in 1usize..6,
        place in any::<prop::sample::Index>(),
        bit in 0u8..8,
        piece in 1usize..200,
    ) {
        let contents = contents(count);
        let mut io = sent(&contents, CIPHER, piece);
        let place = place.index(io.bytes.len());
        io.bytes[place] ^= 1 << bit;
        let begins = begins(&contents);
        let hit = begins.iter().rposition(|begin| *begin <= place).unwrap();
        let brought = healed(&mut io);
        let expected = contents.iter().cloned().enumerate().map(|(number, content)| (number as u64, content));
        if place - begins[hit] >= PREFIX_BYTES {
            prop_assert_eq!(brought.unopened, [hit as u64]);
            prop_assert_eq!((brought.out_of_step, brought.failure), (None, None));
            let others: Vec<_> = expected.filter(|(number, _)| *number != hit as u64).collect();
            prop_assert_eq!(brought.opened, others);
        } else {
            // A length that may be takes others with it; one that may not be is seen at once.
            let before: Vec<_> = expected.take(hit).collect();
            prop_assert_eq!(brought.opened, before);
            prop_assert!(brought.out_of_step.is_some() || brought.failure.is_some());
        }
    }

    #[test]
    fn no_bytes_make_a_healing_end_panic_or_wait_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut io = Memory { bytes: bytes.into(), piece: 7, ends: true, ..Memory::default() };
        prop_assert!(healed(&mut io).opened.is_empty());
    }
}

#[test]
fn every_bit_of_every_frame_but_the_lengths_is_healed() {
    let contents = contents(3);
    let whole = sent(&contents, CIPHER, 1000);
    for (hit, begin) in begins(&contents)[..3].iter().enumerate() {
        for place in PREFIX_BYTES..frame_bytes(&contents[hit]) {
            let mut io = Memory {
                bytes: whole.bytes.clone(),
                piece: 1000,
                ends: true,
                ..Memory::default()
            };
            io.bytes[begin + place] ^= 1 << (place % 8);
            let brought = healed(&mut io);
            assert_eq!(
                (brought.unopened.as_slice(), brought.opened.len()),
                (&[hit as u64][..], 2)
            );
        }
    }
}

#[test]
fn a_length_that_cannot_be_ends_its_stream_and_one_that_can_be_the_next_frame() {
    let contents = contents(4);
    let second = begins(&contents)[1];
    let long = CAPACITY as u32 + HEADER_BYTES as u32 + 1;
    for (length, unopened, record) in [
        (u32::MAX, vec![], 1),
        (long, vec![], 1),
        (HEADER_BYTES as u32 - 1, vec![], 1),
        (HEADER_BYTES as u32 + 11, vec![1], 2),
        (HEADER_BYTES as u32 + 90, vec![1], 2),
    ] {
        let mut io = sent(&contents, CIPHER, 1000);
        for (place, byte) in length.to_le_bytes().into_iter().enumerate() {
            io.bytes[second + place] = byte;
        }
        let brought = healed(&mut io);
        assert_eq!(brought.opened, [(0, contents[0].clone())], "{length}");
        assert_eq!(
            (brought.unopened, brought.out_of_step, brought.failure),
            (unopened, Some(record), None),
            "{length}"
        );
    }
}

#[test]
fn a_frame_that_comes_twice_or_not_at_all_is_none_and_nor_is_any_after_it() {
    let contents = vec![vec![3; 40]; 6];
    let bytes = frame_bytes(&contents[0]);
    let all: Vec<u8> = sent(&contents, CIPHER, 1000).bytes.into();
    let doubled = [&all[..2 * bytes], &all[bytes..]].concat();
    let dropped = [&all[..2 * bytes], &all[3 * bytes..]].concat();
    for (what, changed, opened, unopened) in [("doubled", doubled, 2, 5), ("dropped", dropped, 2, 3)] {
        let mut io = Memory {
            bytes: changed.into(),
            piece: 1000,
            ends: true,
            ..Memory::default()
        };
        let brought = healed(&mut io);
        assert_eq!(
            (brought.opened.len(), brought.unopened.len()),
            (opened, unopened),
            "{what}"
        );
    }
}

#[test]
fn a_number_that_was_used_up_is_not_tried_once_more() {
    let contents = vec![vec![3; 40]; 3];
    let bytes = frame_bytes(&contents[0]);
    let good: Vec<u8> = sent(&contents, CIPHER, 1000).bytes.into();
    let mut forged = good[..bytes].to_vec();
    forged[bytes - 1] ^= 1;
    // A forgery, and then what was kept back while it came.
    let mut io = Memory {
        bytes: [&forged[..], &good[..]].concat().into(),
        piece: 1000,
        ends: true,
        ..Memory::default()
    };
    let brought = healed(&mut io);
    assert_eq!(
        (brought.opened.len(), brought.unopened),
        (0, (0..4).collect::<Vec<_>>())
    );
}

#[test]
fn a_stream_on_which_nothing_opens_is_given_up_and_so_is_a_session() {
    let count = MOST_IN_A_ROW as usize + 3;
    let contents = vec![vec![1; 10]; count];
    let mut all = sent(&contents, CIPHER, 1000);
    for begin in &begins(&contents)[..count] {
        all.bytes[begin + PREFIX_BYTES] ^= 1;
    }
    let brought = healed(&mut Memory {
        bytes: all.bytes.clone(),
        piece: 1000,
        ends: true,
        ..Memory::default()
    });
    assert_eq!(brought.unopened.len(), MOST_IN_A_ROW as usize);
    assert_eq!(brought.out_of_step, Some(u64::from(MOST_IN_A_ROW)));

    let shared = Shared::healing();
    (0..MOST_IN_ALL).for_each(|_| shared.spoiled.one_more().unwrap());
    let brought = bring(&mut all, &shared, true);
    assert!(brought.failure.unwrap().contains("more than 4096 frames"));
}

#[test]
fn frames_that_open_in_between_keep_a_stream_alive() {
    let count = 3 * MOST_IN_A_ROW as usize;
    let contents = vec![vec![1; 10]; count];
    let mut io = sent(&contents, CIPHER, 1000);
    for begin in begins(&contents)[..count].iter().step_by(2) {
        io.bytes[begin + PREFIX_BYTES] ^= 1;
    }
    let brought = healed(&mut io);
    assert_eq!(
        (brought.opened.len(), brought.unopened.len(), brought.out_of_step),
        (count / 2, count / 2, None)
    );
}

#[test]
fn messages_and_peers_that_do_not_heal_end_the_session_at_the_first() {
    for (what, shared, is_data) in [
        ("messages", Shared::healing(), false),
        ("an older peer", Shared::default(), true),
    ] {
        for place in [0, PREFIX_BYTES + 3] {
            let mut io = sent(&contents(2), CIPHER, 1000);
            io.bytes[place] ^= 0x80;
            let brought = bring(&mut io, &shared, is_data);
            assert!(
                brought.failure.is_some() && brought.opened.is_empty(),
                "{what} {place}"
            );
            assert_eq!((brought.unopened.len(), brought.out_of_step), (0, None), "{what}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_is_no_shorter_copy() {
    let contents = contents(3);
    let all: Vec<u8> = sent(&contents, CIPHER, 1000).bytes.into();
    let begins = begins(&contents);
    for kept in (1..all.len()).filter(|kept| !begins.contains(kept)) {
        let mut io = Memory {
            bytes: all[..kept].to_vec().into(),
            piece: 1000,
            ends: true,
            ..Memory::default()
        };
        let brought = healed(&mut io);
        assert_eq!(
            brought.failure.as_deref(),
            Some("the stream ended within a frame"),
            "{kept} bytes"
        );
    }
}
