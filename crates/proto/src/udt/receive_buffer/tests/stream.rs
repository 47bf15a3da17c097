//! Streams.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const WORD: MessageWord = MessageWord(0);

fn stream(capacity_packets: u64) -> ReceiveBuffer {
    buffer(SocketKind::Stream, capacity_packets)
}

fn read(buffer: &mut ReceiveBuffer, most: usize) -> Vec<u8> {
    let mut bytes = vec![0; most];
    let count = buffer.read(&mut bytes);
    bytes.truncate(count);
    bytes
}

#[test]
fn bytes_are_read_in_order_whatever_order_they_came_in() {
    let mut buffer = stream(100);
    for index in [3, 1, 0, 2] {
        assert_eq!(buffer.insert(index, WORD, &[index as u8; 10]), Inserted::Fresh);
    }
    assert_eq!(buffer.next(), 4);
    assert_eq!(buffer.readable_bytes(), 40);
    let want: Vec<u8> = (0..40).map(|place| place / 10).collect();
    assert_eq!(read(&mut buffer, 100), want);
    assert_eq!((buffer.read_index(), buffer.readable_bytes()), (4, 0));
}

#[test]
fn duplicates_and_packets_beyond_the_window_change_nothing() {
    let mut buffer = stream(4);
    for index in [0, 1, 3] {
        buffer.insert(index, WORD, b"first");
    }
    for (index, want) in [
        (0, Inserted::Duplicate),
        (3, Inserted::Duplicate),
        (4, Inserted::TooFar),
        (u64::MAX, Inserted::TooFar),
    ] {
        assert_eq!(buffer.insert(index, WORD, b"other"), want);
    }
    assert_eq!(buffer.insert(2, WORD, &[0; 11]), Inserted::TooFar);
    assert_eq!(
        (buffer.next(), buffer.highest(), buffer.free_packets()),
        (2, 4, 2)
    );
    assert_eq!(read(&mut buffer, 100), b"firstfirst");
    assert_eq!(buffer.insert(5, WORD, b"now"), Inserted::Fresh);
}

#[test]
fn a_reader_that_waits_is_given_packets_past_the_buffer() {
    let mut buffer = stream(100);
    assert!(buffer.can_bypass(0) && !buffer.can_bypass(1));
    buffer.bypass(44);
    assert_eq!(
        (buffer.next(), buffer.read_index(), buffer.highest()),
        (44, 44, 44)
    );
    buffer.insert(44, WORD, b"kept");
    assert!(!buffer.can_bypass(45));
    assert_eq!(read(&mut buffer, 2), b"ke");
    assert!(!buffer.can_bypass(45));
    assert_eq!(read(&mut buffer, 9), b"pt");
    assert!(buffer.can_bypass(45));
    assert_eq!(buffer.slots.chunks(), 1);
}

#[test]
fn what_came_too_early_is_readable_after_the_bypass_that_fills_its_gap() {
    let mut buffer = stream(100);
    for index in [2, 3, 5, 9] {
        buffer.insert(index, WORD, &[index as u8]);
    }
    buffer.bypass(2);
    assert_eq!((buffer.next(), buffer.read_index()), (4, 2));
    assert_eq!(read(&mut buffer, 9), [2, 3]);
    // A run over packets that are there already replaces them.
    buffer.bypass(3);
    assert_eq!((buffer.next(), buffer.readable_bytes()), (7, 0));
    assert!(buffer.can_bypass(7));
    buffer.bypass(2);
    assert_eq!(read(&mut buffer, 9), [9]);
}

#[test]
fn packets_without_payload_are_not_waited_for() {
    let mut buffer = stream(4);
    for index in 0..20 {
        assert_eq!(buffer.insert(index, WORD, b""), Inserted::Fresh);
    }
    assert!(buffer.can_bypass(20));
    for (index, payload) in [(22, b"".as_slice()), (20, b"a"), (21, b"")] {
        buffer.insert(index, WORD, payload);
    }
    assert_eq!(read(&mut buffer, 1), b"a");
    assert!(buffer.can_bypass(23));
}

#[test]
fn a_stream_has_no_holes_whatever_the_peer_asks_for() {
    let mut buffer = stream(10);
    buffer.insert(0, WORD, b"a");
    assert_eq!(buffer.drop_message(0, 5), None);
    assert_eq!(buffer.read_message(&mut [0; 9]), None);
    assert_eq!((buffer.next(), buffer.highest()), (1, 1));
}

#[test]
fn memory_is_used_again_and_given_back_when_it_was_free_for_long() {
    let mut buffer = stream(1_600);
    let mut sink = [0; 1_000];
    for index in 0..1_600 {
        buffer.insert(index, WORD, &[0; 10]);
    }
    assert_eq!(buffer.insert(1_600, WORD, &[0; 10]), Inserted::TooFar);
    let full = buffer.slots.chunks();
    assert_eq!(full, 100);
    while buffer.read(&mut sink) > 0 {}
    assert_eq!(buffer.slots.chunks(), full);
    for index in 1_600..200_000 {
        buffer.insert(index, WORD, &[0; 10]);
        buffer.read(&mut sink);
    }
    assert!(buffer.slots.chunks() <= 2, "{}", buffer.slots.chunks());
}

#[test]
fn a_layout_of_zeros_is_a_small_buffer() {
    let mut buffer = ReceiveBuffer::new(ReceiveLayout {
        payload_bytes: 0,
        burst_packets: 0,
        capacity_packets: 0,
        kind: SocketKind::Stream,
    });
    assert_eq!(buffer.capacity_bytes(), 1);
    assert_eq!(buffer.insert(0, WORD, b"a"), Inserted::Fresh);
    assert_eq!(buffer.free_packets(), 0);
    assert_eq!(read(&mut buffer, 9), b"a");
}

#[derive(Debug, Clone)]
enum Action {
    /// At this distance from the next packet.
    Insert(u64),
    /// Some packets at the next one's place, if that is allowed.
    Bypass(u64),
    Read(usize),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => (0u64..70).prop_map(Action::Insert),
        4 => Just(Action::Insert(0)),
        2 => (1u64..60).prop_map(Action::Bypass),
        3 => (0usize..300).prop_map(Action::Read),
    ]
}

/// The whole stream, and which of its packets have come.
struct Model {
    bytes: Vec<u8>,
    /// Where in the stream each packet begins.
    starts: Vec<usize>,
    came: BTreeSet<u64>,
    next: u64,
    read_bytes: usize,
}

impl Model {
    fn new(packets: u64) -> Self {
        let (mut bytes, mut starts) = (vec![], vec![]);
        for index in 0..packets {
            starts.push(bytes.len());
            bytes.extend(payload(index));
        }
        Self {
            bytes,
            starts,
            came: BTreeSet::new(),
            next: 0,
            read_bytes: 0,
        }
    }

    fn bytes_before(&self, index: u64) -> usize {
        self.starts[index as usize]
    }

    fn note(&mut self, index: u64) {
        self.came.insert(index);
        while self.came.contains(&self.next) {
            self.next += 1;
        }
    }

    fn read(&mut self, most: usize) -> &[u8] {
        let start = self.read_bytes;
        self.read_bytes = self.bytes_before(self.next).min(start + most);
        &self.bytes[start..self.read_bytes]
    }
}

proptest! {
    #[test]
    fn every_byte_is_read_once_and_in_order(
        capacity in 1u64..80, actions in prop::collection::vec(action(), 1..150),
    ) {
        let (mut buffer, mut model) = (stream(capacity), Model::new(10_000));
        for action in actions {
            match action {
                Action::Insert(ahead) => {
                    let index = (model.next + ahead).saturating_sub(3);
                    let want = if model.came.contains(&index) {
                        Inserted::Duplicate
                    } else if index >= buffer.read_index() + capacity {
                        Inserted::TooFar
                    } else {
                        model.note(index);
                        Inserted::Fresh
                    };
                    prop_assert_eq!(buffer.insert(index, WORD, &payload(index)), want);
                }
                Action::Bypass(packets) => {
                    let is_allowed = model.bytes_before(model.next) == model.read_bytes;
                    prop_assert_eq!(buffer.can_bypass(model.next), is_allowed);
                    if is_allowed {
                        let first = model.next;
                        buffer.bypass(packets);
                        (first..first + packets).for_each(|index| model.note(index));
                        model.read_bytes = model.bytes_before(first + packets);
                    }
                }
                Action::Read(most) => prop_assert_eq!(read(&mut buffer, most), model.read(most)),
            }
            prop_assert_eq!(buffer.next(), model.next);
            prop_assert_eq!(buffer.highest(), model.came.last().map_or(0, |index| index + 1));
            let readable = model.bytes_before(model.next) - model.read_bytes;
            prop_assert_eq!(buffer.readable_bytes(), readable as u64);
            prop_assert_eq!(buffer.free_packets(), capacity - (model.next - buffer.read_index()));
            prop_assert!(model.bytes_before(buffer.read_index()) <= model.read_bytes);
            prop_assert!(readable > 0 || buffer.read_index() == model.next);
        }
    }
}
