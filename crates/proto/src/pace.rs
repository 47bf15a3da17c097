//! When the next bytes may go: an absolute schedule at a stated rate, with bounded catch-up.
//!
//! Pure: time is an argument. Two token buckets (RFC 2697's idea, run backwards as virtual scheduling)
//! stand one behind the other. The first holds the long-term mean exactly: what a late sender missed is
//! made up for, up to one second of it. The second spreads the making up: within any window the rate is
//! never more than twice what was asked, after a burst of at most one millisecond, so that a sender that
//! was off the CPU for 50 ms does not blast 50 ms worth of data into the path.

/// Picoseconds per second; at 10 Tbit/s a byte takes less than a nanosecond.
const PS_PER_S: u128 = 1_000_000_000_000;
const PS_PER_NS: u128 = 1_000;
/// How much lateness the mean makes up for.
const MEMORY_PS: u128 = PS_PER_S;
/// How fast at most, in per cent of the rate: enough for a sender that gets half of a CPU.
const PEAK_PERCENT: u128 = 200;
/// How much lateness is made up for at once.
const BURST_PS: u128 = PS_PER_S / 1_000;
/// The same where the path has no queue for what is made up for.
const STRICT_PEAK_PERCENT: u128 = 110;
const STRICT_BURST_PS: u128 = PS_PER_S / 1_000;
const STRICT_MEMORY_PS: u128 = PS_PER_S / 125;
/// The same where the rate follows the path: more would be noticed, and lower it.
const FOLLOWING_PEAK_PERCENT: u128 = 125;
const FOLLOWING_MEMORY_PS: u128 = PS_PER_S / 32;

/// One bucket: the time at which it is next empty enough.
#[derive(Debug, Clone)]
struct Schedule {
    rate_bps: u128,
    depth_ps: u128,
    ready_ps: u128,
}

impl Schedule {
    fn sent(&mut self, now_ps: u128, bytes: u64) {
        let cost_ps = u128::from(bytes) * 8 * PS_PER_S / self.rate_bps;
        self.ready_ps = self.ready_ps.max(now_ps.saturating_sub(self.depth_ps)) + cost_ps;
    }
}

/// Holds a sender to a rate.
#[derive(Debug, Clone)]
pub struct Pacer {
    mean: Schedule,
    peak: Schedule,
    peak_percent: u128,
}

impl Pacer {
    /// A pacer for `rate_bps` payload bits per second (at least 1) whose schedule begins at `start_ns`.
    pub fn new(rate_bps: u64, start_ns: u64) -> Self {
        Self::with(rate_bps, start_ns, MEMORY_PS, (PEAK_PERCENT, BURST_PS))
    }

    /// As [`Self::new`], but what was missed is made up for at no more than a tenth above the rate, after a burst of at most
    /// a millisecond, and what is older than eight milliseconds is not: for a rate that is all the path has, and whose queue
    /// holds ten.
    pub fn strict(rate_bps: u64, start_ns: u64) -> Self {
        let peak = (STRICT_PEAK_PERCENT, STRICT_BURST_PS);
        Self::with(rate_bps, start_ns, STRICT_MEMORY_PS, peak)
    }

    /// As [`Self::strict`], for a rate that gives way to losses: a quarter above it, and up to 31 milliseconds are made up
    /// for.
    pub fn following(rate_bps: u64, start_ns: u64) -> Self {
        let peak = (FOLLOWING_PEAK_PERCENT, STRICT_BURST_PS);
        Self::with(rate_bps, start_ns, FOLLOWING_MEMORY_PS, peak)
    }

    fn with(rate_bps: u64, start_ns: u64, memory_ps: u128, (peak_percent, burst_ps): (u128, u128)) -> Self {
        let rate_bps = u128::from(rate_bps.max(1));
        let schedule = |rate_bps, depth_ps| Schedule {
            rate_bps,
            depth_ps,
            ready_ps: u128::from(start_ns) * PS_PER_NS,
        };
        Self {
            mean: schedule(rate_bps, memory_ps),
            peak: schedule(peak_bps(rate_bps, peak_percent), burst_ps),
            peak_percent,
        }
    }

    /// Goes on at another rate (at least 1). What has gone already is paid for first, and what was missed is made up for.
    pub fn set_rate(&mut self, rate_bps: u64) {
        let rate_bps = u128::from(rate_bps.max(1));
        self.mean.rate_bps = rate_bps;
        self.peak.rate_bps = peak_bps(rate_bps, self.peak_percent);
    }

    /// Time from which the next bytes may go, on the clock of `start_ns`. It may be past.
    pub fn ready_ns(&self) -> u64 {
        let ready_ps = self.mean.ready_ps.max(self.peak.ready_ps);
        u64::try_from(ready_ps.div_ceil(PS_PER_NS)).unwrap_or(u64::MAX)
    }

    /// Notes that `bytes` went at `now_ns`.
    pub fn sent(&mut self, now_ns: u64, bytes: u64) {
        let now_ps = u128::from(now_ns) * PS_PER_NS;
        self.mean.sent(now_ps, bytes);
        self.peak.sent(now_ps, bytes);
    }
}

fn peak_bps(rate_bps: u128, percent: u128) -> u128 {
    (rate_bps * percent / 100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends blocks whenever the pacer allows and the sender is there; gives the times of all sends.
    fn run(pacer: &mut Pacer, block: u64, end_ns: u64, late_ns: impl Fn(usize) -> u64) -> Vec<u64> {
        let mut times = Vec::new();
        let mut now_ns = 0;
        loop {
            now_ns = pacer.ready_ns().max(now_ns) + late_ns(times.len());
            if now_ns >= end_ns {
                return times;
            }
            pacer.sent(now_ns, block);
            times.push(now_ns);
        }
    }

    #[test]
    fn a_prompt_sender_keeps_the_rate_to_the_block() {
        for rate_bps in [1_000, 1_000_000, 10_000_000_000, 400_000_000_000] {
            let block = (rate_bps / 8_000).clamp(1, 65_536);
            let sent = run(&mut Pacer::new(rate_bps, 0), block, 1_000_000_000, |_| 0).len() as u64 * block;
            let want = rate_bps / 8;
            assert!(
                sent >= want && sent <= want + block,
                "{sent} bytes at {rate_bps} bit/s, want {want}"
            );
        }
    }

    #[test]
    fn the_first_block_goes_at_once_and_the_second_in_its_time() {
        let mut pacer = Pacer::new(8_000, 500);
        assert_eq!(pacer.ready_ns(), 500);
        pacer.sent(500, 1);
        assert_eq!(pacer.ready_ns(), 1_000_500);
    }

    #[test]
    fn a_stall_is_made_up_for_at_twice_the_rate() {
        let mut pacer = Pacer::new(8_000_000_000, 0);
        // 1000 bytes a microsecond; the sender is away for 50 ms in the middle.
        let times = run(&mut pacer, 1000, 1_000_000_000, |index| {
            if index == 1000 { 50_000_000 } else { 0 }
        });
        assert!((999_000..=1_000_001).contains(&times.len()), "{}", times.len());
        let after = times
            .iter()
            .filter(|&&time| (51_000_000..61_000_000).contains(&time))
            .count();
        assert!(
            after <= 20_000 + 2_002,
            "{after} blocks in the 10 ms after the stall"
        );
    }

    #[test]
    fn a_strict_one_makes_up_for_a_stall_slowly() {
        let mut pacer = Pacer::strict(8_000_000_000, 0);
        let times = run(&mut pacer, 1000, 1_000_000_000, |index| {
            if index == 1000 { 10_000_000 } else { 0 }
        });
        // Of the ten milliseconds eight are made up for.
        assert!((997_000..=998_010).contains(&times.len()), "{}", times.len());
        for from in (11_000_000..100_000_000).step_by(10_000_000) {
            let within = times
                .iter()
                .filter(|&&time| (from..from + 10_000_000).contains(&time))
                .count();
            assert!(
                within <= 11_000 + 1_101,
                "{within} blocks in 10 ms after the stall"
            );
        }
    }

    #[test]
    fn another_rate_neither_forgets_what_was_missed_nor_what_was_sent() {
        let mut pacer = Pacer::following(8_000_000_000, 0);
        // 1000 bytes a microsecond; the rate changes at each of them, and the sender is away for 10 ms.
        let mut sent = 0;
        let mut now_ns = 0;
        while now_ns < 100_000_000 {
            pacer.set_rate(8_000_000_000 + sent % 2);
            pacer.sent(now_ns, 1_000);
            sent += 1;
            now_ns = pacer.ready_ns().max(now_ns) + if sent == 1_000 { 10_000_000 } else { 0 };
        }
        assert!((99_990..=100_010).contains(&sent), "{sent}");
        pacer.set_rate(800_000_000);
        let rest = run(&mut pacer, 1_000, 100_000_000 + 100_000_000, |_| 0).len();
        assert!(
            (9_990..=10_010).contains(&rest),
            "{rest}: at the new rate, neither more nor less"
        );
    }

    #[test]
    fn an_hour_of_silence_earns_no_more_than_a_second() {
        let mut pacer = Pacer::new(8_000, 0);
        let hour_ns = 3_600_000_000_000;
        pacer.sent(hour_ns, 0);
        let ten_s = run(&mut pacer, 1, hour_ns + 10_000_000_000, |index| {
            if index == 0 { hour_ns } else { 0 }
        });
        assert!(ten_s.len() <= 11_001, "{}", ten_s.len());
    }

    proptest! {
        #[test]
        fn never_more_than_twice_the_rate_in_any_window(
            rate_bps in 1_000_000u64..100_000_000_000,
            block in 1u64..200_000,
            late in proptest::collection::vec(0u64..2_000_000, 1..50),
        ) {
            let late_ns = |index: usize| if index % 7 == 3 { late[index % late.len()] } else { 0 };
            let end_ns = (block * 8_000_000_000 / rate_bps).saturating_mul(2_000).max(1_000);
            let times = run(&mut Pacer::new(rate_bps, 0), block, end_ns, late_ns);
            let cost_ns = block as f64 * 8e9 / (rate_bps as f64 * 2.0);
            for step in [1, 10, 100] {
                for pair in times.windows(step + 1) {
                    let window_ns = (pair[step] - pair[0]) as f64;
                    prop_assert!(window_ns + 1e6 + 2.0 >= (step as f64 - 1.0) * cost_ns);
                }
            }
        }

        #[test]
        fn a_sender_that_is_often_late_keeps_its_mean(
            rate_bps in 1_000_000u64..10_000_000_000,
            late_permille in proptest::collection::vec(0u64..450, 1..50),
        ) {
            let block = 1_500;
            let period_ns = block * 8_000_000_000 / rate_bps;
            let late_ns = |index: usize| period_ns * late_permille[index % late_permille.len()] / 1_000;
            let times = run(&mut Pacer::new(rate_bps, 0), block, period_ns * 1_000, late_ns);
            prop_assert!((980..=1_002).contains(&times.len()), "{} of 1000", times.len());
        }
    }
}
