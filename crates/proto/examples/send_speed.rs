//! What the send buffer costs per packet: write blocks, take bursts, acknowledge, mark lost.
//!
//! ```text
//! cargo run --release -p farline-proto --example send_speed [seconds per line]
//! ```
//!
//! One line for each amount of data under way: what fits the cache costs less than what does not.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use farline_proto::udt::send_buffer::{SendBuffer, SendLayout};
use farline_proto::udt::wire::{Sequence, SocketKind};

const PACKET_BYTES: usize = 1_472;
const BURST_PACKETS: usize = 44;
const BLOCK_BYTES: usize = 65_536;
const ACK_PACKETS: u64 = 512;

fn buffer(capacity_packets: u64) -> SendBuffer {
    SendBuffer::new(SendLayout {
        packet_bytes: PACKET_BYTES,
        burst_packets: BURST_PACKETS,
        capacity_packets,
        isn: Sequence::new(1),
        destination: 1,
        kind: SocketKind::Stream,
    })
}

/// Writes, sends and acknowledges for `time` with `in_flight` packets under way; every `loss`-th burst is lost once.
fn run(in_flight: u64, loss: Option<u64>, time: Duration) -> (u64, u64, Duration) {
    let mut buffer = buffer(in_flight + 2 * ACK_PACKETS);
    let block = vec![7u8; BLOCK_BYTES];
    let (mut bursts, mut repeats) = (0u64, 0u64);
    let mut from = None;
    loop {
        // The first passage through the window pays for new memory, and is not counted.
        if from.is_none() && buffer.acked() > 2 * in_flight {
            from = Some((Instant::now(), buffer.acked()));
        }
        if let Some((start, acked)) = from {
            let elapsed = start.elapsed();
            if elapsed >= time {
                return (buffer.acked() - acked, repeats, elapsed);
            }
        }
        for _ in 0..16 {
            buffer.write(black_box(&block));
            let now_ns = bursts * 20_000;
            while let Some(burst) = buffer.next_burst(now_ns, bursts as u32, BURST_PACKETS, u64::MAX) {
                black_box(burst.bytes);
                repeats += if burst.is_repeat { burst.packets as u64 } else { 0 };
                let (first, packets) = (burst.first, burst.packets as u64);
                let is_lost = !burst.is_repeat && loss.is_some_and(|every| bursts % every == 0);
                bursts += 1;
                if is_lost {
                    buffer.mark_lost(first, first + packets - 1, now_ns, 0);
                }
            }
            if buffer.sent() - buffer.acked() >= in_flight + ACK_PACKETS {
                black_box(buffer.acknowledge(buffer.acked() + ACK_PACKETS));
            }
        }
    }
}

/// The time of a report of loss over a window of `packets`, all of it too young and half of it repeated.
fn hostile_report(packets: u64) -> Duration {
    let mut buffer = buffer(packets);
    while buffer.write(&[0; BLOCK_BYTES]) > 0 {}
    while buffer.next_burst(0, 0, BURST_PACKETS, u64::MAX).is_some() {}
    for index in (0..packets).step_by(2) {
        buffer.mark_lost(index, index, 0, 0);
    }
    while buffer.next_burst(1_000_000, 0, BURST_PACKETS, u64::MAX).is_some() {}
    let reports = 100;
    let start = Instant::now();
    for _ in 0..reports {
        black_box(buffer.mark_lost(0, u64::MAX, 1_500_000, 2_000_000));
    }
    start.elapsed() / reports
}

fn main() -> Result<(), Box<dyn Error>> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(1.0), |text| text.parse())?;
    let time = Duration::try_from_secs_f64(seconds)?;
    println!("under way  losses      MB/s  Gb/s  ns/packet");
    for (in_flight, loss) in [
        (512, None),
        (8_192, None),
        (32_768, None),
        (200_000, None),
        (8_192, Some(100)),
    ] {
        let (packets, repeats, elapsed) = run(in_flight, loss, time);
        let bytes = packets as f64 * (PACKET_BYTES - 16) as f64;
        println!(
            "{in_flight:>9} {repeats:>7} {:>9.0} {:>5.1} {:>10.1}",
            bytes / elapsed.as_secs_f64() / 1e6,
            bytes * 8.0 / elapsed.as_secs_f64() / 1e9,
            elapsed.as_nanos() as f64 / packets as f64,
        );
    }
    println!(
        "report over 740,000 packets, nothing to be repeated: {:?}",
        hostile_report(740_000)
    );
    Ok(())
}
