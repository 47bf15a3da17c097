//! The validity stamp: what happened between two accounts, and whether it can be trusted.

use std::time::Duration;

use farline_spec::ValidityStamp;
use farline_spec::unit::counted;

use super::lateness::Lateness;
use super::wait::Priority;

/// Packets may always be this late, however short the path is.
const LATENESS_FLOOR_NS: u64 = 500_000;
/// Share of a path's round trip that packets may be late by.
const LATENESS_SHARE_OF_RTT: f64 = 0.01;
/// Share of the time for which the hypervisor may take a CPU away. The engine is one thread, so that the CPU that was
/// taken most counts, and not all of them together.
const STEAL_SHARE: f64 = 0.05;
/// Share of the time that the engine may spend held up.
const STALLED_SHARE: f64 = 0.01;

/// Everything a stamp is made of, as counted since the emulator started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// Time of the account since the emulator started.
    pub at_ns: u64,
    /// Lateness of every hand-over.
    pub lateness: Lateness,
    /// How late the engine's waits ended while packets came.
    pub wait_lateness: Lateness,
    /// How the scheduler treats the engine.
    pub priority: Priority,
    /// Time the engine spent in turns and waits that took far too long.
    pub stalled_ns: u64,
    /// CPU time the hypervisor gave to others.
    pub steal: Duration,
    /// The same by CPU.
    pub cpu_steal: Vec<Duration>,
    /// Packets the kernel dropped before the emulator could read them.
    pub ring_drops: u64,
    /// Packets the emulator could not hold or hand over.
    pub emulator_drops: u64,
    /// Datagrams that found a socket's receive buffer full.
    pub receive_buffer_drops: u64,
    /// Times a host gave up data, or came into memory pressure, for want of memory.
    pub memory_prunes: u64,
    /// Packets nobody accounts for.
    pub unexplained_packets: i64,
}

/// What a stamp is judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Shortest round trip of any path.
    pub rtt_s: f64,
}

/// The stamp of the time from one account to a later one.
pub fn stamp(from: &Account, to: &Account, limits: Limits) -> ValidityStamp {
    let lateness = to.lateness.since(&from.lateness);
    let mut stamp = ValidityStamp {
        valid: false,
        reasons: Vec::new(),
        wall_s: (to.at_ns - from.at_ns) as f64 / 1e9,
        deliveries: lateness.count(),
        lateness_p50_us: lateness.quantile_ns(0.5) as f64 / 1e3,
        lateness_p99_us: lateness.quantile_ns(0.99) as f64 / 1e3,
        lateness_max_us: lateness.max_ns() as f64 / 1e3,
        steal_s: to.steal.saturating_sub(from.steal).as_secs_f64(),
        ring_drops: to.ring_drops - from.ring_drops,
        emulator_drops: to.emulator_drops - from.emulator_drops,
        receive_buffer_drops: to.receive_buffer_drops - from.receive_buffer_drops,
        memory_prunes: to.memory_prunes - from.memory_prunes,
        unexplained_packets: to.unexplained_packets - from.unexplained_packets,
    };
    stamp.reasons = timing_reasons(&stamp, from, to, limits);
    stamp.reasons.extend(loss_reasons(&stamp));
    stamp.valid = stamp.reasons.is_empty();
    stamp
}

fn timing_reasons(stamp: &ValidityStamp, from: &Account, to: &Account, limits: Limits) -> Vec<String> {
    let mut reasons = Vec::new();
    let late_us = (LATENESS_FLOOR_NS as f64 / 1e3).max(limits.rtt_s * 1e6 * LATENESS_SHARE_OF_RTT);
    if stamp.lateness_p99_us > late_us {
        let p99_us = stamp.lateness_p99_us;
        reasons.push(format!(
            "1 % of packets were more than {p99_us:.0} us late; allowed: {late_us:.0} us"
        ));
    }
    let wait_us = to.wait_lateness.since(&from.wait_lateness).quantile_ns(0.99) as f64 / 1e3;
    if wait_us > late_us {
        let why = match to.priority {
            Priority::Ordinary => ": the machine does not give it priority",
            Priority::RealTime | Priority::Nice => "",
        };
        reasons.push(format!(
            "1 % of the emulator's waits ended more than {wait_us:.0} us late; allowed: {late_us:.0} us{why}"
        ));
    }
    let steal_s = stamp.wall_s * STEAL_SHARE;
    let stolen_s = most_stolen(&from.cpu_steal, &to.cpu_steal).as_secs_f64();
    if stolen_s > steal_s {
        reasons.push(format!(
            "the hypervisor took {stolen_s:.2} s of one CPU's time; allowed: {steal_s:.2} s"
        ));
    }
    let stall_s = stamp.wall_s * STALLED_SHARE;
    let stalled_s = (to.stalled_ns - from.stalled_ns) as f64 / 1e9;
    if stalled_s > stall_s {
        reasons.push(format!(
            "the emulator was stalled for {stalled_s:.2} s; allowed: {stall_s:.2} s"
        ));
    }
    reasons
}

/// Time taken from the CPU from which most was taken. One that came since has lost all it lost in between.
fn most_stolen(from: &[Duration], to: &[Duration]) -> Duration {
    let before = from.iter().chain(std::iter::repeat(&Duration::ZERO));
    let stolen = to.iter().zip(before).map(|(to, from)| to.saturating_sub(*from));
    stolen.max().unwrap_or_default()
}

fn loss_reasons(stamp: &ValidityStamp) -> Vec<String> {
    let counts = [
        (
            stamp.ring_drops,
            "packets dropped between a host and the emulator",
        ),
        (
            stamp.emulator_drops,
            "packets that the emulator could not store or deliver",
        ),
        (
            stamp.memory_prunes,
            "times a host dropped data because memory was short",
        ),
    ];
    let counts = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}; allowed: 0"));
    let unexplained = (stamp.unexplained_packets != 0).then(|| {
        format!(
            "{} unexplained; allowed: 0",
            counted(stamp.unexplained_packets.unsigned_abs(), "packet")
        )
    });
    counts.chain(unexplained).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { rtt_s: 0.1 };

    fn after(change: impl FnOnce(&mut Account)) -> ValidityStamp {
        let start = Account::default();
        let mut end = Account {
            at_ns: 10_000_000_000,
            ..start.clone()
        };
        change(&mut end);
        stamp(&start, &end, LIMITS)
    }

    #[test]
    fn a_quiet_interval_is_valid() {
        let stamp = after(|end| end.lateness.add(900_000));
        assert!(stamp.valid, "{:?}", stamp.reasons);
        assert_eq!((stamp.wall_s, stamp.deliveries), (10.0, 1));
    }

    #[test]
    fn full_receive_buffers_are_listed_and_no_reason() {
        let stamp = after(|end| end.receive_buffer_drops = 7);
        assert!(stamp.valid && stamp.receive_buffer_drops == 7);
    }

    #[test]
    fn each_cause_alone_makes_it_invalid() {
        type Cause = fn(&mut Account);
        let causes: [(Cause, &str); 8] = [
            (|end| end.lateness.add(1_100_000), "late"),
            (|end| end.wait_lateness.add(1_100_000), "waits"),
            (
                |end| end.cpu_steal = vec![Duration::ZERO, Duration::from_millis(501)],
                "hypervisor",
            ),
            (|end| end.stalled_ns = 101_000_000, "stalled"),
            (|end| end.ring_drops = 1, "between a host"),
            (|end| end.emulator_drops = 1, "could not store"),
            (|end| end.memory_prunes = 1, "memory was short"),
            (|end| end.unexplained_packets = -1, "unexplained"),
        ];
        for (cause, word) in causes {
            let stamp = after(cause);
            assert!(!stamp.valid);
            assert!(
                stamp.reasons.len() == 1 && stamp.reasons[0].contains(word),
                "{:?}",
                stamp.reasons
            );
        }
    }

    #[test]
    fn steal_spread_over_cpus_is_judged_by_the_worst() {
        let stamp = after(|end| {
            end.steal = Duration::from_millis(960);
            end.cpu_steal = vec![Duration::from_millis(480); 2];
        });
        assert!(stamp.valid && stamp.steal_s == 0.96, "{:?}", stamp.reasons);
    }

    #[test]
    fn late_waits_of_an_engine_without_priority_say_so() {
        let reasons = |priority| {
            let stamp = after(|end| {
                end.priority = priority;
                end.wait_lateness.add(2_000_000);
            });
            stamp.reasons.concat()
        };
        assert!(reasons(Priority::Ordinary).contains("does not give it priority"));
        assert!(!reasons(Priority::RealTime).contains("does not give it priority"));
        let quiet = after(|end| end.priority = Priority::Ordinary);
        assert!(quiet.valid);
    }

    #[test]
    fn what_lay_before_the_mark_does_not_count() {
        let start = Account {
            ring_drops: 5,
            unexplained_packets: 3,
            ..Account::default()
        };
        assert!(stamp(&start, &start.clone(), LIMITS).valid);
    }
}
