//! From options with units to integers. Floating point ends where options are read: here, in the probabilities of `draw`,
//! in a `capacity` stated in products and in the table of quantiles of `jitter`.

use farline_spec::{Failure, FailureKind};
use farline_spec::{PipeSpec, QueueDiscipline};

use super::codel::Codel;

/// Largest IP packet of a pipe that states none.
const DEFAULT_MTU_BYTES: u16 = 1500;
/// Ethernet: preamble and start 8, header 14, check sequence 4, gap 12.
const DEFAULT_FRAMING_BYTES: u16 = 38;
const DEFAULT_LATE_NS: u64 = 1_000_000;
/// RFC 8289, section 4.3.
const DEFAULT_TARGET_NS: u64 = 5_000_000;
const DEFAULT_INTERVAL_NS: u64 = 100_000_000;

pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Numbers of a pipe that do not change while it is in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) mtu_bytes: u32,
    pub(super) framing_bytes: u64,
    pub(super) late_by_ns: u64,
    /// Mark what finds so many bytes before it; the largest number is never.
    pub(super) threshold_bytes: u64,
    /// Whether CoDel marks what allows it.
    pub(super) codel_marks: bool,
}

impl Settings {
    pub(super) fn new(spec: &PipeSpec) -> Self {
        let queue = &spec.queue;
        Self {
            mtu_bytes: u32::from(spec.mtu_bytes.map_or(DEFAULT_MTU_BYTES, |mtu| mtu.get())),
            framing_bytes: u64::from(
                spec.framing_bytes
                    .map_or(DEFAULT_FRAMING_BYTES, |bytes| bytes.get()),
            ),
            late_by_ns: spec
                .reorder_delay_s
                .map_or(DEFAULT_LATE_NS, |delay| nanoseconds(delay.get())),
            threshold_bytes: queue.ecn_threshold_bytes.map_or(u64::MAX, |bytes| bytes.get()),
            codel_marks: queue.ecn,
        }
    }

    /// Largest packet on the wire.
    pub(super) fn packet_bytes(&self) -> u64 {
        u64::from(self.mtu_bytes) + self.framing_bytes
    }

    /// CoDel's state, if the queue is to use it.
    pub(super) fn codel(&self, spec: &PipeSpec) -> Option<Codel> {
        let queue = &spec.queue;
        let target_ns = queue
            .codel_target_s
            .map_or(DEFAULT_TARGET_NS, |target| nanoseconds(target.get()));
        let interval_ns = queue
            .codel_interval_s
            .map_or(DEFAULT_INTERVAL_NS, |interval| nanoseconds(interval.get()));
        (queue.discipline == QueueDiscipline::Codel)
            .then(|| Codel::new(target_ns, interval_ns, self.packet_bytes()))
    }
}

/// Refuses options that could have no effect.
pub(super) fn check(place: &str, spec: &PipeSpec) -> Result<(), Failure> {
    let queue = &spec.queue;
    let drop_tail = queue.discipline == QueueDiscipline::DropTail;
    let idle = [
        ("queue.ecn", drop_tail && queue.ecn, "discipline codel"),
        (
            "queue.codel_target_s",
            drop_tail && queue.codel_target_s.is_some(),
            "discipline codel",
        ),
        (
            "queue.codel_interval_s",
            drop_tail && queue.codel_interval_s.is_some(),
            "discipline codel",
        ),
        (
            "schedule_period_s",
            spec.schedule.is_empty() && spec.schedule_period_s.is_some(),
            "a schedule",
        ),
    ];
    match idle.iter().find(|(_, refused, _)| *refused) {
        Some((option, _, needed)) => Err(Failure::new(
            FailureKind::Spec,
            format!("{place}.{option}: has no effect without {needed}"),
        )),
        None => Ok(()),
    }
}
