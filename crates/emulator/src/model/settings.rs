//! From options with units to integers. Floating point ends where options are read: here, in the probabilities of `draw`,
//! in a `capacity` stated in products and in the table of quantiles of `jitter`.

use farline_spec::unit::{DelayS, QueueBytes};
use farline_spec::{Failure, FailureKind, JitterShape, PipeSpec, QueueDiscipline};

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

/// What surrounds each packet on the wire of a pipe, in bytes; Ethernet's framing unless it is stated.
pub fn framing_bytes(spec: &PipeSpec) -> u32 {
    u32::from(
        spec.framing_bytes
            .map_or(DEFAULT_FRAMING_BYTES, |bytes| bytes.get()),
    )
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
            framing_bytes: u64::from(framing_bytes(spec)),
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

/// Refuses options that could have no effect, or no other than that nothing passes.
pub(super) fn check(place: &str, spec: &PipeSpec) -> Result<(), Failure> {
    let queue = &spec.queue;
    let settings = Settings::new(spec);
    check_capacity(place, queue.capacity_bytes, &settings)?;
    for step in &spec.schedule {
        check_capacity(
            &format!("{place}.schedule"),
            step.change.capacity_bytes,
            &settings,
        )?;
    }
    check_jitter(place, spec)?;
    let drop_tail = queue.discipline == QueueDiscipline::DropTail;
    let rates = spec.schedule.iter().filter_map(|step| step.change.rate_bps);
    let unlimited = spec.rate_bps.into_iter().chain(rates).all(|rate| rate.get() == 0);
    let idle = [
        ("queue.discipline", !drop_tail && unlimited, "a rate"),
        (
            "jitter_shape",
            spec.jitter_shape != JitterShape::default() && spec.jitter_s.is_none(),
            "jitter_s",
        ),
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

/// A queue that holds less than the packet being sent passes nothing.
pub(super) fn check_capacity(
    place: &str,
    capacity: Option<QueueBytes>,
    settings: &Settings,
) -> Result<(), Failure> {
    let least = settings.packet_bytes();
    match capacity.map(QueueBytes::get) {
        Some(bytes) if bytes < least => Err(Failure::new(
            FailureKind::Spec,
            format!(
                "{place}.queue.capacity_bytes: {bytes} is less than one packet on the wire; allowed: {least} or more"
            ),
        )),
        _ => Ok(()),
    }
}

/// No packet arrives before it was sent, so a delay can vary by no more than itself.
fn check_jitter(place: &str, spec: &PipeSpec) -> Result<(), Failure> {
    let Some(jitter_s) = spec.jitter_s.map(DelayS::get) else {
        return Ok(());
    };
    let most_s = match spec.jitter_shape {
        JitterShape::Uniform => spec.delay_s.get(),
        JitterShape::Normal => spec.delay_s.get() / 4.0,
    };
    if jitter_s <= most_s {
        return Ok(());
    }
    Err(Failure::new(
        FailureKind::Spec,
        format!("{place}.jitter_s: {jitter_s} s is more than the delay allows; allowed: up to {most_s} s"),
    ))
}
