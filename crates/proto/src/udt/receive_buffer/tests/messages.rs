//! Messages.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn messages(capacity_packets: u64) -> ReceiveBuffer {
    buffer(SocketKind::Message, capacity_packets)
}

fn insert(buffer: &mut ReceiveBuffer, packets: &[(u64, Boundary, u32)]) {
    for &(index, boundary, number) in packets {
        assert_eq!(
            buffer.insert(index, word(boundary, number), &[index as u8; 2]),
            Inserted::Fresh
        );
    }
}

fn read(buffer: &mut ReceiveBuffer) -> Option<Vec<u8>> {
    let mut bytes = [0; 1_000];
    let message = buffer.read_message(&mut bytes)?;
    assert_eq!(message.bytes, message.length);
    Some(bytes[..message.bytes].to_vec())
}

use Boundary::{First, Last, Middle, Only};

#[test]
fn a_message_is_given_when_it_is_whole() {
    let mut buffer = messages(100);
    insert(&mut buffer, &[(0, First, 1), (2, Last, 1)]);
    assert_eq!((read(&mut buffer), buffer.readable_bytes()), (None, 0));
    insert(&mut buffer, &[(1, Middle, 1)]);
    assert_eq!(buffer.readable_bytes(), 6);
    assert_eq!(read(&mut buffer), Some(vec![0, 0, 1, 1, 2, 2]));
    assert_eq!(
        (buffer.read_index(), buffer.next(), buffer.readable_bytes()),
        (3, 3, 0)
    );
    assert!(!buffer.can_bypass(3));
    assert_eq!(buffer.read(&mut [0; 9]), 0);
}

#[test]
fn messages_without_the_flag_are_given_before_the_gaps_before_them_are_filled() {
    let mut buffer = messages(100);
    insert(
        &mut buffer,
        &[(0, First, 1), (5, Last, 3), (3, Only, 2), (4, First, 3)],
    );
    assert_eq!(read(&mut buffer), Some(vec![3, 3]));
    assert_eq!(read(&mut buffer), Some(vec![4, 4, 5, 5]));
    assert_eq!(read(&mut buffer), None);
    assert_eq!((buffer.next(), buffer.read_index(), buffer.highest()), (1, 0, 6));
    assert_eq!(buffer.insert(4, word(Only, 7), b"again"), Inserted::Duplicate);
    insert(&mut buffer, &[(1, Middle, 1), (2, Last, 1)]);
    assert_eq!(read(&mut buffer), Some(vec![0, 0, 1, 1, 2, 2]));
    assert_eq!((buffer.next(), buffer.read_index()), (6, 6));
}

#[test]
fn messages_with_the_flag_wait_for_all_before_them() {
    let mut buffer = messages(100);
    let in_order = |boundary| MessageWord::new(boundary, true, 2);
    buffer.insert(1, in_order(Only), b"two");
    assert_eq!(read(&mut buffer), None);
    buffer.insert(0, word(Only, 1), b"one");
    assert_eq!(read(&mut buffer), Some(b"one".to_vec()));
    assert_eq!(read(&mut buffer), Some(b"two".to_vec()));
}

#[test]
fn what_does_not_fit_the_reader_is_lost_and_its_length_is_told() {
    let mut buffer = messages(100);
    insert(&mut buffer, &[(0, First, 1), (1, Last, 1), (2, Only, 2)]);
    let mut small = [9; 3];
    let message = buffer.read_message(&mut small);
    assert_eq!(message, Some(MessageRead { bytes: 3, length: 4 }));
    assert_eq!(small, [0, 0, 1]);
    assert_eq!(
        buffer.read_message(&mut []),
        Some(MessageRead { bytes: 0, length: 2 })
    );
    assert_eq!(buffer.read_index(), 3);
}

#[test]
fn an_empty_message_is_a_message() {
    let mut buffer = messages(100);
    buffer.insert(0, word(Only, 1), b"");
    assert_eq!(read(&mut buffer), Some(vec![]));
    assert_eq!(read(&mut buffer), None);
}

#[test]
fn parts_that_can_never_be_whole_are_discarded() {
    let cases: [&[(u64, Boundary, u32)]; 5] = [
        // A middle after nothing, and after an end.
        &[(0, Middle, 1), (1, Only, 2), (2, Middle, 3)],
        // A beginning after a message that has not ended.
        &[(0, First, 1), (1, Middle, 1), (2, Only, 2)],
        // A number that changes within a message.
        &[(0, First, 1), (1, Last, 2), (2, Only, 3)],
        // An end without a beginning, found backwards.
        &[(2, Only, 3), (1, Last, 1), (0, Only, 1)],
        // Both sides of a packet that fits neither.
        &[(0, First, 1), (2, Last, 1), (1, Only, 2)],
    ];
    for packets in cases {
        let mut buffer = messages(100);
        insert(&mut buffer, packets);
        let read = std::iter::from_fn(|| read(&mut buffer)).count() as u64;
        insert(&mut buffer, &[(3, Only, 9)]);
        assert_eq!(
            buffer.read_message(&mut [0; 9]).map(|message| message.length),
            Some(2),
            "{packets:?}"
        );
        assert_eq!((buffer.read_index(), buffer.next()), (4, 4), "{packets:?}");
        assert_eq!(buffer.discarded_packets(), 3 - read, "{packets:?}");
    }
}

#[test]
fn a_message_longer_than_the_window_is_discarded_and_the_next_one_is_given() {
    let mut buffer = messages(8);
    insert(&mut buffer, &[(0, First, 1)]);
    for index in 1..19 {
        insert(&mut buffer, &[(index, Middle, 1)]);
    }
    insert(&mut buffer, &[(19, Last, 1), (20, Only, 2)]);
    assert_eq!(read(&mut buffer), Some(vec![20, 20]));
    assert_eq!(buffer.discarded_packets(), 20);
    assert_eq!(buffer.free_packets(), 8);
}

#[test]
fn a_message_of_exactly_the_window_is_given() {
    let mut buffer = messages(3);
    insert(&mut buffer, &[(1, Middle, 1), (2, Last, 1), (0, First, 1)]);
    assert_eq!((buffer.next(), buffer.free_packets()), (3, 0));
    assert_eq!(read(&mut buffer).map(|bytes| bytes.len()), Some(6));
}

#[test]
fn a_dropped_message_counts_as_received_and_is_never_given() {
    let mut buffer = messages(100);
    insert(
        &mut buffer,
        &[(0, Only, 1), (1, First, 2), (3, Last, 2), (4, Only, 3)],
    );
    assert_eq!(buffer.drop_packets(1, 3), Some((1, 3)));
    assert_eq!((buffer.next(), buffer.highest()), (5, 5));
    assert_eq!(read(&mut buffer), Some(vec![0, 0]));
    assert_eq!(read(&mut buffer), Some(vec![4, 4]));
    assert_eq!((read(&mut buffer), buffer.read_index()), (None, 5));
    assert_eq!(buffer.insert(2, word(Middle, 2), b"late"), Inserted::Duplicate);
}

#[test]
fn a_request_that_ends_one_too_late_does_not_take_the_next_message() {
    let mut buffer = messages(100);
    insert(&mut buffer, &[(0, First, 1), (3, Last, 2)]);
    assert_eq!(buffer.drop_message(1, 2), Some((1, 1)));
    assert_eq!((buffer.next(), buffer.discarded_packets()), (2, 1));
    insert(&mut buffer, &[(2, First, 2)]);
    assert_eq!(read(&mut buffer), Some(vec![2, 2, 3, 3]));
    // Nor does it take what was never sent.
    assert_eq!(buffer.drop_message(4, 6), Some((4, 5)));
    assert_eq!(buffer.drop_message(4, 6), None);
    assert_eq!((buffer.next(), buffer.highest()), (6, 6));
}

#[test]
fn a_request_that_ends_one_too_late_leaves_the_beginning_of_the_next_message() {
    let mut buffer = messages(100);
    insert(&mut buffer, &[(0, First, 1), (2, First, 2)]);
    assert_eq!(buffer.drop_message(0, 2), Some((0, 1)));
    assert_eq!(buffer.next(), 3);
    assert_eq!(buffer.drop_message(0, 2), None);
    insert(&mut buffer, &[(3, Last, 2)]);
    assert_eq!(read(&mut buffer), Some(vec![2, 2, 3, 3]));
}

#[test]
fn a_request_that_means_its_last_packet_is_heeded_the_second_time() {
    let mut buffer = messages(100);
    insert(&mut buffer, &[(0, First, 1), (3, Only, 2)]);
    buffer.drop_message(0, 2);
    assert_eq!(buffer.next(), 2);
    assert_eq!(buffer.drop_message(0, 2), Some((2, 2)));
    assert_eq!(buffer.next(), 4);
    assert_eq!(read(&mut buffer), Some(vec![3, 3]));
}

#[test]
fn a_message_that_came_whole_is_given_although_its_sender_dropped_it() {
    let mut buffer = messages(100);
    insert(&mut buffer, &[(1, First, 2), (2, Last, 2)]);
    buffer.drop_packets(0, 2);
    assert_eq!(read(&mut buffer), Some(vec![1, 1, 2, 2]));
    assert_eq!(buffer.read_index(), 3);
}

#[test]
fn requests_for_anything_else_stay_within_the_window() {
    let mut buffer = messages(8);
    insert(&mut buffer, &[(0, Only, 1)]);
    read(&mut buffer);
    assert_eq!(buffer.drop_message(0, 0), None);
    assert_eq!(buffer.drop_message(5, 3), None);
    assert_eq!(buffer.drop_message(9, u64::MAX), None);
    assert_eq!(buffer.drop_message(0, u64::MAX), Some((1, 8)));
    assert_eq!(
        (buffer.next(), buffer.read_index(), buffer.free_packets()),
        (9, 9, 8)
    );
}

/// A packet of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Missing,
    Gone,
    Here(MessageWord),
}

/// The rules of the room's first file, applied to all packets anew after each step.
struct Model {
    places: Vec<Place>,
    capacity: usize,
}

impl Model {
    fn next(&self) -> usize {
        let is_there = |place: &&Place| **place != Place::Missing;
        self.places.iter().take_while(is_there).count()
    }

    fn read_index(&self) -> usize {
        self.places
            .iter()
            .take_while(|place| **place == Place::Gone)
            .count()
    }

    fn place(&self, index: usize) -> Place {
        self.places.get(index).copied().unwrap_or(Place::Missing)
    }

    /// Runs of packets of one message: from, to, first word, last word.
    fn runs(&self) -> Vec<(usize, usize, MessageWord, MessageWord)> {
        let mut runs: Vec<(usize, usize, MessageWord, MessageWord)> = vec![];
        for (index, place) in self.places.iter().enumerate() {
            let Place::Here(word) = *place else { continue };
            match runs.last_mut() {
                Some((_, end, _, last))
                    if *end + 1 == index
                        && !last.boundary().is_last()
                        && !word.boundary().is_first()
                        && last.number() == word.number() =>
                {
                    (*end, *last) = (index, word);
                }
                _ => runs.push((index, index, word, word)),
            }
        }
        runs
    }

    fn discard(&mut self, first: usize, last: usize) {
        self.places[first..=last].fill(Place::Gone);
    }

    fn settle(&mut self) {
        loop {
            let before = self.places.clone();
            for (first, last, first_word, last_word) in self.runs() {
                let has_begin = first_word.boundary().is_first();
                let has_end = last_word.boundary().is_last();
                let is_after_something = first == 0 || before[first - 1] != Place::Missing;
                let is_before_something = before.get(last + 1).is_some_and(|place| *place != Place::Missing);
                let is_too_long = last + 1 - first == self.capacity && !(has_begin && has_end);
                if !has_begin && is_after_something || !has_end && is_before_something || is_too_long {
                    self.discard(first, last);
                }
            }
            if self.places == before {
                return;
            }
        }
    }

    fn drop_packets(&mut self, first: usize, last: usize) {
        for (start, end, first_word, last_word) in self.runs() {
            let is_whole = first_word.boundary().is_first() && last_word.boundary().is_last();
            if !is_whole && start <= last && end >= first {
                self.discard(start, end);
            }
        }
        for place in &mut self.places[first..=last] {
            if *place == Place::Missing {
                *place = Place::Gone;
            }
        }
        self.settle();
    }

    fn ready(&self) -> Vec<(usize, usize)> {
        let next = self.next();
        let is_ready = |&(_, last, begin, end): &(usize, usize, MessageWord, MessageWord)| {
            let is_whole = begin.boundary().is_first() && end.boundary().is_last();
            is_whole && (!begin.in_order() || last < next)
        };
        let ready = self.runs().into_iter().filter(is_ready);
        ready.map(|(first, last, ..)| (first, last)).collect()
    }
}

#[derive(Debug, Clone)]
enum Action {
    Insert(u64, MessageWord),
    Drop(u64, u64),
    Read(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let any_word = (0u32..4, any::<bool>(), 0u32..2).prop_map(|(boundary, in_order, number)| {
        MessageWord(boundary << 30 | u32::from(in_order) << 29 | number)
    });
    // Packets of one good sender: messages of three packets.
    let good = |index: u64| {
        MessageWord::new(
            [First, Middle, Last][index as usize % 3],
            index % 2 == 0,
            index as u32 / 3,
        )
    };
    prop_oneof![
        3 => (0u64..20, any_word).prop_map(|(ahead, word)| Action::Insert(ahead, word)),
        9 => (0u64..90).prop_map(move |index| Action::Insert(index, good(index))),
        1 => (0u64..90, 0u64..9).prop_map(|(first, more)| Action::Drop(first, first + more)),
        3 => (0usize..60).prop_map(Action::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn any_packets_whatever_give_the_messages_that_the_rules_give(
        capacity in 1u64..60, actions in prop::collection::vec(action(), 1..150),
    ) {
        let mut buffer = messages(capacity);
        let mut model = Model { places: vec![Place::Missing; 160], capacity: capacity as usize };
        for action in actions {
            let (read_index, next) = (model.read_index() as u64, model.next() as u64);
            match action {
                Action::Insert(index, word) => {
                    let want = match model.place(index as usize) {
                        Place::Missing if index >= read_index + capacity => Inserted::TooFar,
                        Place::Missing => Inserted::Fresh,
                        _ => Inserted::Duplicate,
                    };
                    prop_assert_eq!(buffer.insert(index, word, &payload(index)), want);
                    if want == Inserted::Fresh {
                        model.places[index as usize] = Place::Here(word);
                        model.settle();
                    }
                }
                Action::Drop(first, last) => {
                    let (low, high) = (first.max(read_index), last.min(read_index + capacity - 1));
                    let dropped = buffer.drop_packets(first, last);
                    prop_assert_eq!(dropped, (low <= high).then_some((low, high)));
                    if low <= high {
                        model.drop_packets(low as usize, high as usize);
                    }
                }
                Action::Read(most) => {
                    let want = model.ready().first().copied().map(|(first, last)| {
                        model.discard(first, last);
                        model.settle();
                        (first as u64..=last as u64).flat_map(payload).collect::<Vec<u8>>()
                    });
                    let mut bytes = vec![0; most];
                    let got = buffer.read_message(&mut bytes);
                    prop_assert_eq!(got.map(|message| message.length), want.as_ref().map(Vec::len));
                    if let (Some(got), Some(want)) = (got, want) {
                        prop_assert_eq!(got.bytes, want.len().min(most));
                        prop_assert_eq!(&bytes[..got.bytes], &want[..got.bytes]);
                    }
                }
            }
            prop_assert!(model.next() as u64 >= next);
            prop_assert_eq!(buffer.next(), model.next() as u64);
            prop_assert_eq!(buffer.read_index(), model.read_index() as u64);
            let ready = model.ready().into_iter().flat_map(|(first, last)| first as u64..=last as u64);
            let readable: usize = ready.map(|index| payload(index).len()).sum();
            prop_assert_eq!(buffer.readable_bytes(), readable as u64);
        }
    }

    #[test]
    fn every_message_of_a_good_sender_is_given_once_and_flagged_ones_in_order(
        lengths in prop::collection::vec((1u64..6, any::<bool>()), 1..40),
        order in prop::collection::vec(0usize..20, 200),
    ) {
        let mut packets = VecDeque::new();
        let mut want = vec![];
        for (number, &(length, in_order)) in lengths.iter().enumerate() {
            let first = packets.len() as u64;
            for place in 0..length {
                let boundary = match (place == 0, place + 1 == length) {
                    (true, true) => Only,
                    (true, false) => First,
                    (false, true) => Last,
                    (false, false) => Middle,
                };
                packets.push_back((first + place, MessageWord::new(boundary, in_order, number as u32)));
            }
            want.push((first..first + length).flat_map(|index| [index as u8; 2]).collect::<Vec<u8>>());
        }
        let (mut buffer, mut got) = (messages(1_000), vec![]);
        for turn in order.iter().cycle() {
            let Some((index, word)) = packets.remove(*turn).or_else(|| packets.pop_front()) else { break };
            buffer.insert(index, word, &[index as u8; 2]);
            buffer.insert(index, word, &[0; 2]);
            got.extend(read(&mut buffer));
        }
        got.extend(std::iter::from_fn(|| read(&mut buffer)));
        let flagged = |message: &&Vec<u8>| lengths[want.iter().position(|other| other == *message).expect("one of them")].1;
        let of_flagged: Vec<&Vec<u8>> = got.iter().filter(flagged).collect();
        prop_assert_eq!(of_flagged, want.iter().filter(flagged).collect::<Vec<_>>());
        got.sort_by_key(|message| message[0]);
        prop_assert_eq!(got, want);
        prop_assert_eq!(buffer.discarded_packets(), 0);
    }
}
