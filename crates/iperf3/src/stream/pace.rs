//! When the next block may go: the rate the client asked for, and what its address is allowed.

use std::time::Duration;

use farline_proto::Pacer;
use farline_sys::{thread, time};
use farline_transport::Share;

use super::{Course, Job};

/// Longest sleep between two looks at the course.
const LOOK_NS: u64 = Duration::from_millis(10).as_nanos() as u64;
/// Waits up to this are spun through: sleeping takes longer.
const SPIN_NS: u64 = 5_000;

/// Holds a sender to its rates.
pub(super) struct Pace {
    own: Option<Pacer>,
    shared: Option<Share>,
    /// Blocks that go at once.
    burst: u32,
    /// Blocks of the burst that have not gone.
    left: u32,
    /// Bytes of turns that were taken and not used, where blocks go whole or not at all.
    credit: usize,
}

impl Pace {
    /// For the sender of `job`, whose schedule begins now.
    pub(super) fn new(job: &Job) -> Self {
        let rate_bps = job.wanted.rate_bps;
        if rate_bps > 0 {
            thread::set_finest_timer_slack();
        }
        Self {
            own: (rate_bps > 0).then(|| Pacer::new(rate_bps, time::now_ns())),
            shared: job.rate.clone().map(Share::of),
            burst: job.wanted.burst.max(1),
            left: 0,
            credit: 0,
        }
    }

    /// Waits until a block of `block` bytes may go; gives how many bytes of it may, 0 to look at the course and ask again.
    pub(super) fn wait(&mut self, course: &Course, block: usize) -> usize {
        if !self.wait_own(course) {
            return 0;
        }
        self.shared.as_mut().map_or(block, |share| share.wait(block))
    }

    /// As [`Self::wait`], for a block that goes whole or not at all.
    pub(super) fn wait_whole(&mut self, course: &Course, block: usize) -> bool {
        if !self.wait_own(course) {
            return false;
        }
        let Some(share) = &mut self.shared else {
            return true;
        };
        while self.credit < block {
            let turn = share.wait(block - self.credit);
            share.sent(turn);
            self.credit += turn;
            if turn == 0 && !course.may_send() {
                return false;
            }
        }
        true
    }

    fn wait_own(&mut self, course: &Course) -> bool {
        let Some(pacer) = self.own.as_ref().filter(|_| self.left == 0) else {
            return true;
        };
        loop {
            let (now_ns, ready_ns) = (time::now_ns(), pacer.ready_ns());
            if ready_ns <= now_ns {
                self.left = self.burst;
                return true;
            }
            if !course.may_send() {
                return false;
            }
            let spin_ns = if ready_ns - now_ns <= SPIN_NS { SPIN_NS } else { 0 };
            time::sleep_until(ready_ns.min(now_ns + LOOK_NS), spin_ns);
        }
    }

    /// Notes that `bytes` went just now.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(1);
        if let Some(pacer) = &mut self.own {
            pacer.sent(time::now_ns(), bytes as u64);
        }
        if let Some(share) = &mut self.shared {
            share.sent(bytes);
        }
        self.credit = self.credit.saturating_sub(bytes);
    }
}
