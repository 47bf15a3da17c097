//! What the receive buffer costs per packet of 1456 bytes: inserted and read, or bypassed.
//!
//! ```text
//! cargo run --release -p farline-proto --example receive_speed
//! ```
//!
//! Times are those that the thread was running, where the system tells, so that other work beside it counts little.

use farline_proto::udt::receive_buffer::{ReceiveBuffer, ReceiveLayout};
use farline_proto::udt::wire::{Boundary, MessageWord, SocketKind};
use std::hint::black_box;
use std::time::Instant;

const PAYLOAD_BYTES: usize = 1456;
const BURST: u64 = 44;
const PACKETS: u64 = 3_000_000;
/// Packets under way at 10 Gb/s and 100 ms.
const UNDER_WAY: u64 = 86_000;
const WORD: MessageWord = MessageWord::new(Boundary::Only, false, 1);

fn buffer(kind: SocketKind) -> ReceiveBuffer {
    ReceiveBuffer::new(ReceiveLayout {
        payload_bytes: PAYLOAD_BYTES,
        burst_packets: BURST as usize,
        capacity_packets: 4 * UNDER_WAY,
        kind,
    })
}

/// Nanoseconds that this thread ran, or that passed.
fn clock_ns(start: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran_ns = text.split(' ').next().and_then(|word| word.parse().ok());
    ran_ns.unwrap_or(start.elapsed().as_nanos() as f64)
}

fn report(what: &str, run: impl FnOnce()) {
    let start = Instant::now();
    let before_ns = clock_ns(start);
    run();
    let per_packet_ns = (clock_ns(start) - before_ns) / PACKETS as f64;
    println!("{what}: {per_packet_ns:.1} ns a packet");
}

/// Inserts bursts of packets and reads after each, except that every thousandth comes `UNDER_WAY` packets late.
fn insert_and_read(buffer: &mut ReceiveBuffer, is_lossy: bool) {
    let payload = [7; PAYLOAD_BYTES];
    let mut sink = vec![0; 1 << 20];
    for first in (0..PACKETS).step_by(BURST as usize) {
        for index in first..first + BURST {
            let is_late = is_lossy && index % 1_000 == 0;
            if !is_late {
                buffer.insert(index, WORD, black_box(&payload));
            }
            if let Some(late) = index
                .checked_sub(UNDER_WAY)
                .filter(|late| is_lossy && late % 1_000 == 0)
            {
                buffer.insert(late, WORD, black_box(&payload));
            }
        }
        while buffer.readable_bytes() > 0 {
            black_box(buffer.read(&mut sink));
        }
    }
}

fn bypass(buffer: &mut ReceiveBuffer, packets: u64) {
    for index in (0..PACKETS).step_by(packets as usize) {
        assert!(buffer.can_bypass(black_box(index)));
        buffer.bypass(black_box(packets));
    }
}

fn messages(buffer: &mut ReceiveBuffer) {
    let payload = [7; PAYLOAD_BYTES];
    let mut sink = vec![0; PAYLOAD_BYTES * 4];
    for index in 0..PACKETS {
        let boundary = [
            Boundary::First,
            Boundary::Middle,
            Boundary::Middle,
            Boundary::Last,
        ][index as usize % 4];
        let word = MessageWord::new(boundary, true, index as u32 / 4);
        buffer.insert(index, word, black_box(&payload));
        black_box(buffer.read_message(&mut sink));
    }
}

fn main() {
    for _ in 0..3 {
        let mut stream = buffer(SocketKind::Stream);
        report("in order, inserted and read", || {
            insert_and_read(&mut stream, false)
        });
        let mut stream = buffer(SocketKind::Stream);
        report("every 1000th late by 86,000", || {
            insert_and_read(&mut stream, true)
        });
        let mut stream = buffer(SocketKind::Stream);
        report("bypass, one by one", || bypass(&mut stream, 1));
        let mut stream = buffer(SocketKind::Stream);
        report("bypass, 40 at once", || bypass(&mut stream, 40));
        let mut whole = buffer(SocketKind::Message);
        report("messages of 4 packets in order", || messages(&mut whole));
    }
}
