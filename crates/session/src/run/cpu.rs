//! CPU time of this process between two moments.

use std::time::{Duration, Instant};

use farline_spec::CpuUse;
use farline_sys::process;

/// CPU time at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuMark {
    at: Instant,
    used: process::CpuTime,
    steal: Duration,
}

impl CpuMark {
    /// Now. What the kernel does not tell counts as zero: a container may hide `/proc/stat`.
    pub(super) fn now() -> Self {
        Self {
            at: Instant::now(),
            used: process::cpu_time().unwrap_or_default(),
            steal: process::steal_time().unwrap_or_default(),
        }
    }

    /// User and system time of the process so far, in microseconds.
    pub(super) fn process_us() -> i64 {
        let used = process::cpu_time().unwrap_or_default();
        micros(used.user + used.system)
    }

    /// What was used since.
    pub(super) fn elapsed(&self) -> CpuUse {
        let now = Self::now();
        CpuUse {
            user_s: now.used.user.saturating_sub(self.used.user).as_secs_f64(),
            system_s: now.used.system.saturating_sub(self.used.system).as_secs_f64(),
            wall_s: now.at.duration_since(self.at).as_secs_f64(),
            steal_s: now.steal.saturating_sub(self.steal).as_secs_f64(),
        }
    }
}

/// Whole microseconds, as samples count them.
pub(super) fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
