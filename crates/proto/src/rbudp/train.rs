//! What a short train of datagrams says about a path: can it carry the stated rate, and does anybody else use it?
//!
//! Blasts are for dedicated paths alone (He et al. 2002, section 2): on a path that others use they take what those use. So
//! before the first blast the sender sends a few short trains at the stated rate, and the receiver notes when they came.
//!
//! What it does: lays out a train, reads its passage from the times at both ends, and judges passages and idle
//! round-trip times together.
//! What it must not do: see `lib.rs`; decide whether a run goes on.
//!
//! In: times of bursts by the sender's clock, times of arrivals by the receiver's, round-trip times. The two clocks need
//! not agree: only differences on one clock are used. Out: a [`PathCheck`], and a line for people.
//!
//! ```text
//!  delay = arrival − departure of each packet that was stamped; the least of all three trains is the path's own
//!     path idle       .˙...˙..˙..      last quarter: the least again            stretch 1
//!     queue grows     .  .  ˙  ˙˙      last quarter: later by what has queued   stretch = time it came in / time it went in
//!     host stalls     ...˙·....˙..     the least again: a stall is shorter than a quarter, or another train is better
//! ```
//!
//! The least delay of a quarter leaves out what makes single packets late: a host off its CPU, a collected interrupt.
//! What the sender was late by is in the departures and cancels. Lost packets leave gaps between numbers and stretch nothing.
//! What is concluded from it, and what it cannot see, is in `docs/design/rbudp-path-check.md`.
//!
//! Start with [`TrainPlan`], then [`judge`].

mod passage;
#[cfg(test)]
mod tests;

pub use passage::{Arrivals, Passage};

use farline_spec::PathCheck;

use super::wire::HEADER_BYTES;

/// Trains of one check that were sent in time. The best of them counts: cold memory makes the first late, a busy host any.
pub const TRAINS: usize = 3;
/// Trains of one check at most: one that was sent late is sent again.
pub const MAX_TRAINS: usize = 6;
/// Most bursts of a train: bounds what one end has to keep of what the other says.
pub const MAX_BURSTS: u32 = 1_024;

/// How long a train is, if that is neither too few packets nor too many bytes.
const LENGTH_NS: u64 = 20_000_000;
const MIN_PACKETS: u64 = 50;
const MAX_LENGTH_NS: u64 = 100_000_000;
const MAX_BYTES: u64 = 24_000_000;
/// Fewer packets tell nothing: each quarter of a train needs one.
const FEWEST_PACKETS: u64 = 4;
/// How long a burst takes at the stated rate, unless one packet takes longer.
const BURST_NS: u64 = 100_000;
/// What every kernel takes as one burst: 64 datagrams, 65,507 bytes.
const BURST_PACKETS: u64 = 64;
const BURST_BYTES: u64 = 65_507;

/// A train that came stretched by no more than this is as it was sent.
const STRETCH: f64 = 1.05;
/// Nor is one that came this much longer than it was sent: hosts are off their CPUs for as long.
const EXCESS_NS: f64 = 1_000_000.0;
/// Idle round-trip time above the smallest from which on others keep a queue; or a quarter of the smallest.
const QUEUE_US: u64 = 2_000;
/// Fewer round-trip times have no median that means anything.
const FEWEST_ROUND_TRIPS: usize = 5;
/// A train that took this much longer to send than it should was held up by its sender, and queues drained meanwhile.
const LATE: f64 = 1.1;
/// What is left for others' control packets when people are told which rate to state.
const ADVISED: f64 = 0.95;

/// How a train is laid out; the same at both ends for the same rate and size of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainPlan {
    rate_bps: u64,
    /// Payload of one packet.
    payload_bytes: u64,
    packets: u32,
    burst_packets: u32,
}

impl TrainPlan {
    /// A train of datagrams with `packet_bytes` of UDP payload each, RBUDP's header included, whose payload goes at
    /// `rate_bps`: 20 ms, at least 50 packets, at most 4 MB and 100 ms. `None` where that is not even four packets, and
    /// for rate 0, at which the host and not the path sets the pace.
    pub fn new(rate_bps: u64, packet_bytes: usize) -> Option<Self> {
        let payload_bytes = packet_bytes.checked_sub(HEADER_BYTES)?.max(1) as u64;
        let within = |length_ns: u64| {
            let bits = u128::from(rate_bps) * u128::from(length_ns) / 1_000_000_000;
            u64::try_from(bits / u128::from(payload_bytes * 8)).unwrap_or(u64::MAX)
        };
        let packet_bytes = packet_bytes as u64;
        let most = within(MAX_LENGTH_NS)
            .min(MAX_BYTES / packet_bytes)
            .min(u64::from(MAX_BURSTS) * BURST_PACKETS);
        let packets = within(LENGTH_NS).max(MIN_PACKETS).min(most);
        let burst_packets = within(BURST_NS)
            .min(BURST_BYTES / packet_bytes)
            .clamp(1, BURST_PACKETS);
        (packets >= FEWEST_PACKETS).then_some(Self {
            rate_bps,
            payload_bytes,
            packets: packets as u32,
            burst_packets: burst_packets as u32,
        })
    }

    /// Packets of a train.
    pub fn packets(&self) -> u32 {
        self.packets
    }

    /// Packets that are sent at once; the last burst may be shorter.
    pub fn burst_packets(&self) -> u32 {
        self.burst_packets
    }

    /// Bursts of a train.
    pub fn bursts(&self) -> u32 {
        self.packets.div_ceil(self.burst_packets)
    }

    /// Payload bytes of one packet.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Whether a train whose bursts were sent at `sent_ns` was held up by its sender.
    pub fn is_late(&self, sent_ns: &[u64]) -> bool {
        let (Some(begin_ns), Some(end_ns)) = (sent_ns.first(), sent_ns.last()) else {
            return false;
        };
        let planned_ns = self.burst_ns() * u64::from(self.bursts() - 1);
        end_ns.saturating_sub(*begin_ns) as f64 > planned_ns as f64 * LATE
    }

    /// Time from one burst to the next.
    pub fn burst_ns(&self) -> u64 {
        let bits = u64::from(self.burst_packets) * self.payload_bytes * 8;
        (u128::from(bits) * 1_000_000_000 / u128::from(self.rate_bps)) as u64
    }
}

/// Round-trip times before the trains, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoundTrips {
    /// The smallest.
    pub min_us: u64,
    /// The median.
    pub median_us: u64,
    /// How many there were.
    pub count: usize,
}

impl RoundTrips {
    /// Of `times_us`, in any order; `None` of none.
    pub fn of(times_us: &[u64]) -> Option<Self> {
        let mut sorted = times_us.to_vec();
        sorted.sort_unstable();
        Some(Self {
            min_us: *sorted.first()?,
            median_us: sorted[sorted.len() / 2],
            count: sorted.len(),
        })
    }

    /// Whether the path was not idle: most packets waited in somebody else's queue.
    fn show_a_queue(&self) -> bool {
        self.count >= FEWEST_ROUND_TRIPS && is_queue(self.min_us, self.median_us)
    }
}

fn is_queue(min_us: u64, median_us: u64) -> bool {
    median_us.saturating_sub(min_us) > QUEUE_US.max(min_us / 4)
}

/// Whether clearly more than half of `sent` are missing: by two standard deviations more, for short trains that lose a
/// third by chance may lose half.
fn is_mostly_lost(sent: u64, came: u64) -> bool {
    let (sent, came) = (sent as f64, came as f64);
    sent > 0.0 && sent - came > sent / 2.0 + sent.sqrt()
}

/// What the trains at `rate_bps` and the round-trip times before them say together.
///
/// `passages` are those of the trains that can be read, best or not; `sent` and `came` are the packets of all trains.
pub fn judge(rate_bps: u64, passages: &[Passage], trips: RoundTrips, sent: u64, came: u64) -> PathCheck {
    let best = passages.iter().min_by(|one, other| one.compare(other));
    let is_stretched = best.is_some_and(Passage::is_stretched);
    let lost = sent.saturating_sub(came);
    PathCheck {
        rate_bps,
        carried_bps: best.map_or(0, |best| best.carried_bps()),
        min_rtt_us: trips.min_us,
        idle_rtt_us: trips.median_us,
        lost_share: if sent > 0 { lost as f64 / sent as f64 } else { 0.0 },
        shared: is_stretched || trips.show_a_queue() || is_mostly_lost(sent, came),
    }
}

/// What to tell people of a path that is shared; `None` of one that is not.
pub fn advice(check: &PathCheck) -> Option<String> {
    if !check.shared {
        return None;
    }
    let rate = in_words(check.rate_bps as f64);
    if check.lost_share > 0.5 {
        let lost = check.lost_share * 100.0;
        return Some(format!(
            "the path lost {lost:.0} % of the packets sent at the stated {rate}: use a lower rate"
        ));
    }
    if (check.carried_bps as f64) * STRETCH < check.rate_bps as f64 && check.carried_bps > 0 {
        let carried = in_words(check.carried_bps as f64);
        let advised = in_words(check.carried_bps as f64 * ADVISED);
        return Some(format!(
            "the path carried {carried} of the stated {rate}: at this rate the blast displaces other traffic; use at most {advised}"
        ));
    }
    let (idle, least) = (check.idle_rtt_us as f64 / 1e3, check.min_rtt_us as f64 / 1e3);
    Some(format!(
        "other traffic fills a queue on the path: round-trip time {idle:.1} ms before the blast, minimum {least:.1} ms; the blast displaces that traffic"
    ))
}

/// `rate_bps` with its unit, rounded down to three digits: a rate that is advised must not grow by being written.
fn in_words(rate_bps: f64) -> String {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    let (unit, name) = units
        .into_iter()
        .find(|(unit, _)| rate_bps >= *unit)
        .unwrap_or(units[3]);
    let value = rate_bps / unit;
    match value {
        100.0.. => format!("{:.0} {name}", value.floor()),
        10.0.. => format!("{:.1} {name}", (value * 10.0).floor() / 10.0),
        _ => format!("{:.2} {name}", (value * 100.0).floor() / 100.0),
    }
}
