//! What held the sender back, and for how long.

/// Why nothing more is being sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendLimit {
    /// There is nothing to send and nothing under way.
    Idle,
    /// Nothing: it is being sent.
    Sending,
    /// The application has not written more.
    Application,
    /// The send buffer is full of packets under way.
    SendBuffer,
    /// The other end's window.
    Window,
    /// The congestion control's window.
    Congestion,
    /// The pacing.
    Pacing,
}

/// Times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Times {
    pub(super) busy_ns: u64,
    pub(super) window_ns: u64,
    pub(super) buffer_ns: u64,
    pub(super) pacing_ns: u64,
}

/// Adds up the time between two looks under what was the reason at the first.
#[derive(Debug)]
pub(super) struct Limits {
    since_ns: u64,
    holdup: SendLimit,
    times: Times,
}

impl Limits {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            since_ns: now_ns,
            holdup: SendLimit::Idle,
            times: Times::default(),
        }
    }

    /// From now on `holdup` is the reason.
    pub(super) fn note(&mut self, now_ns: u64, holdup: SendLimit) {
        self.times = self.up_to(now_ns);
        self.since_ns = now_ns.max(self.since_ns);
        self.holdup = holdup;
    }

    /// The times as they would be if nothing changed until now.
    pub(super) fn up_to(&self, now_ns: u64) -> Times {
        let past_ns = now_ns.saturating_sub(self.since_ns);
        let mut times = self.times;
        match self.holdup {
            SendLimit::Idle => return times,
            SendLimit::Window => times.window_ns += past_ns,
            SendLimit::SendBuffer => times.buffer_ns += past_ns,
            SendLimit::Pacing => times.pacing_ns += past_ns,
            SendLimit::Sending | SendLimit::Application | SendLimit::Congestion => {}
        }
        times.busy_ns += past_ns;
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_the_reason_that_held() {
        let mut limits = Limits::new(0);
        limits.note(10, SendLimit::Window);
        limits.note(30, SendLimit::Pacing);
        limits.note(35, SendLimit::Idle);
        let times = limits.up_to(100);
        assert_eq!((times.busy_ns, times.window_ns, times.pacing_ns), (25, 20, 5));
    }
}
