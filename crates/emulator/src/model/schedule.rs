//! What changes by itself.

use farline_spec::{PipeChange, PipeSpec};

use super::settings::nanoseconds;

/// The changes of a schedule, each at its time, again and again if it has a period.
#[derive(Debug)]
pub(super) struct Schedule {
    steps: Vec<(u64, PipeChange)>,
    period_ns: Option<u64>,
    next: usize,
    /// When the current period began.
    base_ns: u64,
}

impl Schedule {
    pub(super) fn new(spec: &PipeSpec) -> Self {
        let steps = spec.schedule.iter();
        Self {
            steps: steps
                .map(|step| (nanoseconds(step.at_s.get()), step.change))
                .collect(),
            period_ns: spec.schedule_period_s.map(|period| nanoseconds(period.get())),
            next: 0,
            base_ns: 0,
        }
    }

    /// When the next change is due.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.steps.get(self.next).map(|step| self.base_ns + step.0)
    }

    /// Takes the change that is due until `now_ns`.
    pub(super) fn take(&mut self, now_ns: u64) -> Option<PipeChange> {
        self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        let change = self.steps[self.next].1;
        self.next += 1;
        if let (Some(period_ns), true) = (self.period_ns, self.next == self.steps.len()) {
            self.next = 0;
            self.base_ns += period_ns;
        }
        Some(change)
    }
}
