//! What users of the send buffer can rely on, and a model of it packet by packet.

mod messages;

use proptest::prelude::*;

use super::super::wire::{Boundary, DataHeader};
use super::*;

const PACKET_BYTES: usize = 116;
const BURST_PACKETS: usize = 7;
const ISN: Sequence = Sequence::new(0x7fff_ff00);
const US: u64 = 1_000;

fn layout(capacity_packets: u64, kind: SocketKind) -> SendLayout {
    SendLayout {
        packet_bytes: PACKET_BYTES,
        burst_packets: BURST_PACKETS,
        capacity_packets,
        isn: ISN,
        destination: 77,
        kind,
    }
}

fn stream(capacity_packets: u64) -> SendBuffer {
    SendBuffer::new(layout(capacity_packets, SocketKind::Stream))
}

fn messages(capacity_packets: u64) -> SendBuffer {
    let mut buffer = SendBuffer::new(layout(capacity_packets, SocketKind::Message));
    buffer.pass_unbegun();
    buffer
}

/// Bytes of a stream from position `start` on: every one tells where it belongs.
fn text(start: u64, length: usize) -> Vec<u8> {
    (start..start + length as u64)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16)) as u8)
        .collect()
}

/// Sends all that may go; gives index and packet count of each burst, and whether it was a repetition.
fn send_all(buffer: &mut SendBuffer, now_ns: u64) -> Vec<(u64, usize, bool)> {
    let mut bursts = Vec::new();
    while let Some(burst) = buffer.next_burst(now_ns, 0, BURST_PACKETS, u64::MAX) {
        bursts.push((burst.first, burst.packets, burst.is_repeat));
    }
    bursts
}

/// Headers and payload lengths of all that may go.
fn headers(buffer: &mut SendBuffer) -> Vec<(DataHeader, usize)> {
    let mut headers = Vec::new();
    while let Some(burst) = buffer.next_burst(0, 9, BURST_PACKETS, u64::MAX) {
        for packet in burst.bytes.chunks(PACKET_BYTES) {
            let header = DataHeader::read(packet).expect("a data packet");
            headers.push((header, packet.len() - HEADER_BYTES));
        }
    }
    headers
}

#[test]
fn packets_are_in_wire_format_and_sequence_numbers_wrap() {
    let mut buffer = stream(1_000);
    assert_eq!(buffer.write(&text(0, 30_050)), 30_050);
    let sent = headers(&mut buffer);
    assert_eq!(sent.len(), 301);
    for (index, (header, length)) in sent.iter().enumerate() {
        assert_eq!(header.sequence, ISN.plus(index as u64));
        assert_eq!(
            header.message,
            super::super::wire::MessageWord::new(Boundary::Only, false, index as u32 + 1)
        );
        assert_eq!((header.timestamp_us, header.destination), (9, 77));
        assert_eq!(*length, if index == 300 { 50 } else { 100 });
    }
    assert_eq!(sent[256].0.sequence.get(), 0);
}

#[test]
fn small_writes_fill_up_the_last_packet_until_it_is_sent() {
    let mut buffer = stream(10);
    for _ in 0..5 {
        assert_eq!(buffer.write(&[1; 30]), 30);
    }
    assert_eq!(
        (buffer.end(), buffer.unsent_bytes(), buffer.free_bytes()),
        (2, 150, 850)
    );
    assert_eq!(send_all(&mut buffer, 0), [(0, 2, false)]);
    assert_eq!(buffer.free_bytes(), 800, "what was sent does not change any more");
    buffer.write(&[1; 10]);
    assert_eq!((buffer.end(), buffer.unsent_bytes()), (3, 10));
}

#[test]
fn a_full_buffer_takes_nothing_until_something_is_acknowledged() {
    let mut buffer = stream(10);
    assert_eq!(buffer.write(&[0; 5_000]), 1_000);
    assert_eq!(buffer.write(&[0; 5_000]), 0);
    send_all(&mut buffer, 0);
    assert_eq!(buffer.write(&[0; 1]), 0);
    assert_eq!(buffer.acknowledge(3).packets, 3);
    assert_eq!(buffer.write(&[0; 5_000]), 300);
    assert_eq!(buffer.capacity_bytes(), 1_000);
}

#[test]
fn a_short_packet_ends_its_burst_and_bursts_fall_into_step_again() {
    let mut buffer = stream(1_000);
    buffer.write(&[0; 250]);
    assert_eq!(send_all(&mut buffer, 0), [(0, 3, false)]);
    buffer.write(&[0; 3_000]);
    // 4 to the end of the first part, full ones after that.
    assert_eq!(
        send_all(&mut buffer, 0),
        [
            (3, 4, false),
            (7, 7, false),
            (14, 7, false),
            (21, 7, false),
            (28, 5, false)
        ]
    );
    // Repeated, the short packet in the middle still ends a burst.
    assert_eq!(buffer.mark_lost(0, 10, 0, 0), 11);
    assert_eq!(
        send_all(&mut buffer, 0),
        [(0, 3, true), (3, 7, true), (10, 1, true)]
    );
}

#[test]
fn new_packets_stop_at_the_limit_and_lost_ones_do_not() {
    let mut buffer = stream(100);
    buffer.write(&[0; 5_000]);
    let first = buffer
        .next_burst(0, 0, 100, 5)
        .map(|burst| (burst.first, burst.packets));
    assert_eq!(first, Some((0, 5)));
    assert!(buffer.next_burst(0, 0, 100, 5).is_none());
    buffer.mark_lost(1, 1, 0, 0);
    assert!(buffer.next_burst(0, 0, 0, 100).is_none());
    let lost = buffer
        .next_burst(0, 0, 100, 0)
        .map(|burst| (burst.first, burst.packets, burst.is_repeat));
    assert_eq!(lost, Some((1, 1, true)));
}

#[test]
fn the_time_of_sending_comes_back_unless_the_packet_was_repeated() {
    let start_ns = 5_000_000_000_000_000;
    let mut buffer = stream(100);
    buffer.write(&[0; 2_000]);
    buffer.next_burst(start_ns, 0, 4, u64::MAX);
    buffer.next_burst(start_ns + 10 * US, 0, 4, u64::MAX);
    assert_eq!(buffer.sent_ns(3), Some(start_ns));
    assert_eq!(buffer.sent_ns(8), None, "never sent");
    buffer.mark_lost(2, 2, start_ns + 50 * US, 0);
    buffer.next_burst(start_ns + 60 * US, 0, 4, u64::MAX);
    assert_eq!(buffer.sent_ns(2), Some(start_ns + 60 * US));
    assert_eq!(
        buffer.acknowledge(2),
        Acked {
            packets: 2,
            sent_ns: Some(start_ns)
        }
    );
    assert_eq!(
        buffer.acknowledge(3),
        Acked {
            packets: 1,
            sent_ns: None
        }
    );
    assert_eq!(
        buffer.acknowledge(3),
        Acked {
            packets: 0,
            sent_ns: None
        }
    );
    assert_eq!(buffer.sent_ns(2), None, "acknowledged");
}

#[test]
fn impossible_acknowledgements_and_losses_do_no_harm() {
    let mut buffer = stream(100);
    assert_eq!(buffer.acknowledge(u64::MAX).packets, 0);
    assert_eq!(buffer.mark_lost(0, u64::MAX, 0, 0), 0);
    buffer.write(&[0; 1_000]);
    buffer.next_burst(0, 0, 4, u64::MAX);
    assert_eq!(buffer.mark_lost(5, 2, 0, 0), 0);
    assert_eq!(buffer.mark_lost(4, u64::MAX, 0, 0), 0);
    assert_eq!(buffer.mark_lost(0, u64::MAX, 0, 0), 4);
    assert_eq!(buffer.mark_lost(0, u64::MAX, 0, 0), 0, "marked already");
    assert_eq!(buffer.acknowledge(u64::MAX).packets, 4);
    assert_eq!(
        (buffer.acked(), buffer.sent(), buffer.end(), buffer.lost_packets()),
        (4, 4, 10, 0)
    );
}

#[test]
fn a_report_that_comes_again_too_early_causes_no_repetition() {
    let mut buffer = stream(1_000);
    buffer.write(&[0; 50_000]);
    send_all(&mut buffer, 0);
    assert_eq!(buffer.mark_lost(100, 199, 100 * US, 100 * US), 100);
    send_all(&mut buffer, 120 * US);
    assert_eq!(
        buffer.mark_lost(0, 499, 130 * US, 100 * US),
        400,
        "those repeated 10 us ago are not due"
    );
    assert_eq!(buffer.mark_lost(100, 199, 219 * US, 100 * US), 0);
    assert_eq!(buffer.mark_lost(100, 199, 220 * US, 100 * US), 100);
}

#[test]
fn memory_follows_the_data_and_is_given_back() {
    let chunk = 16 * BURST_PACKETS as u64;
    let mut buffer = stream(200 * chunk);
    while buffer.write(&[0; 60_000]) > 0 {}
    assert_eq!(buffer.chunks.counts(), (200, 0));
    send_all(&mut buffer, 0);
    buffer.acknowledge(150 * chunk + 1);
    assert_eq!(buffer.chunks.counts(), (50, 64), "a bounded number is kept");
    buffer.write(&[0; 100]);
    assert_eq!(buffer.chunks.counts(), (51, 63));
    assert_eq!(
        stream(3)
            .chunks
            .left_in_chunk(chunks::Place { chunk: 0, slot: 0 }),
        BURST_PACKETS
    );
}

#[test]
fn strange_layouts_work() {
    let mut buffer = SendBuffer::new(SendLayout {
        packet_bytes: 0,
        burst_packets: 0,
        capacity_packets: 0,
        ..layout(0, SocketKind::Stream)
    });
    assert_eq!(buffer.write(b"ab"), 1);
    assert_eq!(
        buffer.next_burst(0, 0, 9, 9).map(|burst| burst.bytes.len()),
        Some(17)
    );
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Send { max: usize, window: u64 },
    Acknowledge(u64),
    Lose { first: u64, count: u64, min_age_us: u64 },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop_oneof![1usize..150, 1usize..20_000].prop_map(Step::Write),
        5 => (0usize..12, 0u64..300).prop_map(|(max, window)| Step::Send { max, window }),
        2 => (0u64..200).prop_map(Step::Acknowledge),
        3 => (0u64..300, 1u64..200, 0u64..60)
            .prop_map(|(first, count, min_age_us)| Step::Lose { first, count, min_age_us }),
        3 => (0u64..30).prop_map(Step::Wait),
    ]
}

/// What is known of a packet that was sent: when last, its place in the stream, whether it waits for its repetition.
struct Sent {
    at_us: u64,
    start: u64,
    length: usize,
    is_lost: bool,
}

/// The same buffer, packet by packet.
#[derive(Default)]
struct Model {
    packets: Vec<Sent>,
    acked: usize,
    sent_bytes: u64,
}

impl Model {
    fn lose(&mut self, first: u64, count: u64, now_us: u64, min_age_us: u64) -> u64 {
        let from = (first as usize).max(self.acked).min(self.packets.len());
        let to = ((first + count) as usize).clamp(from, self.packets.len());
        let due = self.packets[from..to]
            .iter_mut()
            .filter(|packet| !packet.is_lost && packet.at_us + min_age_us <= now_us);
        due.map(|packet| packet.is_lost = true).count() as u64
    }

    fn lost(&self) -> impl Iterator<Item = usize> {
        (self.acked..self.packets.len()).filter(|&index| self.packets[index].is_lost)
    }

    /// Checks a burst against what should go, and notes it.
    fn send(&mut self, burst: &Burst<'_>, max: usize, limit: u64, now_us: u64) -> Result<(), TestCaseError> {
        let lost = self.lost().next();
        prop_assert_eq!(burst.is_repeat, lost.is_some());
        prop_assert_eq!(burst.first, lost.unwrap_or(self.packets.len()) as u64);
        prop_assert!((1..=max.min(BURST_PACKETS)).contains(&burst.packets));
        let last = burst.first + burst.packets as u64 - 1;
        prop_assert!(burst.is_repeat || last < limit);
        let chunk = 16 * BURST_PACKETS as u64;
        prop_assert_eq!(burst.first / chunk, last / chunk);
        prop_assert_eq!(burst.bytes.chunks(PACKET_BYTES).count(), burst.packets);
        for (packet, index) in burst.bytes.chunks(PACKET_BYTES).zip(burst.first as usize..) {
            let length = packet.len() - HEADER_BYTES;
            if !burst.is_repeat {
                self.packets.push(Sent {
                    at_us: 0,
                    start: self.sent_bytes,
                    length,
                    is_lost: true,
                });
                self.sent_bytes += length as u64;
            }
            let known = &mut self.packets[index];
            prop_assert!(known.is_lost);
            prop_assert_eq!(known.length, length);
            prop_assert_eq!(&packet[HEADER_BYTES..], &text(known.start, length)[..]);
            let header = DataHeader::read(packet).expect("a data packet");
            prop_assert_eq!(header.sequence, ISN.plus(index as u64));
            prop_assert_eq!(header.timestamp_us, now_us as u32);
            known.is_lost = false;
            known.at_us = now_us;
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn whatever_happens_each_packet_keeps_its_bytes_and_repeats_only_when_due(
        steps in proptest::collection::vec(step(), 1..200),
        start_us in prop_oneof![Just(0u64), Just(u64::from(u32::MAX) - 200), Just(1 << 50)],
    ) {
        let capacity = 400;
        let mut buffer = stream(capacity);
        let mut model = Model::default();
        let (mut now_us, mut written) = (start_us, 0);
        for step in steps {
            match step {
                Step::Write(length) => {
                    let free = buffer.free_bytes();
                    let count = buffer.write(&text(written, length));
                    prop_assert_eq!(count as u64, free.min(length as u64));
                    written += count as u64;
                }
                Step::Send { max, window } => {
                    let limit = buffer.acked() + window;
                    let may_send = max > 0 && (model.lost().next().is_some() || buffer.sent() < limit.min(buffer.end()));
                    let burst = buffer.next_burst(now_us * US, now_us as u32, max, limit);
                    prop_assert_eq!(burst.is_some(), may_send);
                    if let Some(burst) = burst {
                        model.send(&burst, max, limit, now_us)?;
                    }
                }
                Step::Acknowledge(more) => {
                    let next = (buffer.acked() + more).min(buffer.sent());
                    prop_assert_eq!(buffer.acknowledge(next).packets, next - model.acked as u64);
                    model.acked = next as usize;
                }
                Step::Lose { first, count, min_age_us } => {
                    let first = buffer.acked() + first;
                    let marked = buffer.mark_lost(first, first + count - 1, now_us * US, min_age_us * US);
                    prop_assert_eq!(marked, model.lose(first, count, now_us, min_age_us));
                }
                Step::Wait(us) => now_us += us,
            }
            prop_assert_eq!(buffer.lost_packets(), model.lost().count() as u64);
            prop_assert_eq!(buffer.sent(), model.packets.len() as u64);
            prop_assert_eq!(buffer.unsent_bytes(), written - model.sent_bytes);
            prop_assert!(buffer.end() - buffer.acked() <= capacity);
        }
    }
}
