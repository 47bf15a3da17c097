//! How the engine waits: asleep in shared mode, spinning in precise mode.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farline_spec::EmulatorMode;
use farline_sys::poller::Poller;
use farline_sys::time::{now_ns, sleep_until};
use farline_sys::{schedule, thread};

use super::lateness::Lateness;

/// Priority within the real-time class; low, so that the kernel's own threads of that class come first.
const REAL_TIME_PRIORITY: u8 = 10;
/// The first of all nice values.
const FIRST: i8 = -20;
/// What is due within this time is not worth a sleep. More would run into the kernel's limit on real-time threads.
const SPIN_NS: u64 = 5_000;
/// A turn or an overshoot of a wait longer than this is a hold-up.
const STALL_NS: u64 = 10_000_000;
/// The kernel takes a CPU away from a real-time thread for 50 ms once ordinary ones have had less than 5 % of it over
/// a second (`kernel.sched_rt_runtime_us`). A busy engine gives them a little more than that by itself, in small parts.
const BUSY_NS: u64 = 1_000_000;
const REST_NS: u64 = 60_000;
/// A wait of this length is a rest too.
const REST_ENOUGH_NS: u64 = 40_000;
/// While packets come, the engine sleeps no longer than this: a packet that waits to be read has no time at which it is
/// due, so that only the end of a sleep shows how late it is read.
const PULSE_NS: u64 = 1_000_000;
/// Packets are taken to come for so long after the last one.
const PULSES_AFTER_NS: u64 = 100_000_000;
/// Sleeps by which the lead is measured, and their length.
const TRIAL_SLEEPS: usize = 50;
const TRIAL_NS: u64 = 300_000;
/// A larger lead would be no lateness of timers but a loaded machine.
const MAX_LEAD_NS: u64 = 60_000;
/// By how much a sleep that ended earlier or later than the lead foresaw changes it: with so small a step it follows the
/// median, which a few hold-ups do not move, through thousands of sleeps, a fraction of a second under load.
const LEAD_STEP_NS: u64 = 200;

/// How the scheduler treats the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// Ahead of every ordinary thread.
    RealTime,
    /// First among ordinary threads.
    Nice,
    /// As everyone else: the machine allowed nothing more.
    #[default]
    Ordinary,
}

impl Priority {
    /// The word used in reports.
    pub fn word(self) -> &'static str {
        match self {
            Self::RealTime => "real-time",
            Self::Nice => "nice",
            Self::Ordinary => "ordinary",
        }
    }
}

/// Nanoseconds since the emulator started.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start_ns: u64,
    start_of_day: Duration,
}

impl Clock {
    /// A clock that stands at 0 now.
    pub fn start() -> Self {
        Self {
            start_ns: now_ns(),
            // A date before 1970 is a clock that was never set.
            start_of_day: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
        }
    }

    /// Time of day, since 1970, at `at_ns` of this clock.
    pub fn time_of_day(&self, at_ns: u64) -> Duration {
        self.start_of_day + Duration::from_nanos(at_ns)
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        now_ns() - self.start_ns
    }
}

/// The engine's waits.
#[derive(Debug)]
pub struct Waits {
    mode: EmulatorMode,
    clock: Clock,
    poller: Poller,
    lead_ns: u64,
    priority: Priority,
    rested_ns: u64,
    /// Until here all time is accounted for: as a wait's, or as a turn's.
    counted_ns: u64,
    pulses_until_ns: u64,
    lateness: Lateness,
}

/// What a wait was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waited {
    /// When it ended.
    pub at_ns: u64,
    /// Time in it in which the engine was held up.
    pub stalled_ns: u64,
}

impl Waits {
    /// Waits of the calling thread, whose scheduling it sets up.
    ///
    /// # Errors
    /// The kernel's.
    pub fn new(mode: EmulatorMode, clock: Clock) -> io::Result<Self> {
        thread::set_finest_timer_slack();
        let mut waits = Self {
            mode,
            clock,
            poller: Poller::new()?,
            lead_ns: 0,
            priority: raise_priority(mode),
            rested_ns: clock.now_ns(),
            counted_ns: 0,
            pulses_until_ns: 0,
            lateness: Lateness::default(),
        };
        if mode == EmulatorMode::Shared {
            waits.lead_ns = waits.measure_lead()?;
        }
        waits.counted_ns = clock.now_ns();
        Ok(waits)
    }

    /// Waits for `fd` too, under the name `token`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        self.poller.add(fd, token)
    }

    /// How much earlier than needed the engine asks to be woken.
    pub fn lead_ns(&self) -> u64 {
        self.lead_ns
    }

    /// How the scheduler treats the engine.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// How late the waits ended in which packets could have come.
    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// Packets came: more are to be expected.
    pub fn expect_packets(&mut self) {
        self.pulses_until_ns = self.counted_ns + PULSES_AFTER_NS;
    }

    /// The turn after a wait has ended; gives the time in it in which the engine was held up.
    pub fn end_turn(&mut self) -> u64 {
        let now_ns = self.clock.now_ns();
        let turn_ns = now_ns - self.counted_ns;
        self.counted_ns = now_ns;
        stalled_ns(turn_ns)
    }

    /// Returns when something is readable, when `due_ns` has come, or at the end of a sleep while packets are expected;
    /// puts the tokens of what is readable into `ready`.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, due_ns: Option<u64>, ready: &mut Vec<u64>) -> io::Result<Waited> {
        ready.clear();
        let expects_packets = self.counted_ns < self.pulses_until_ns;
        let target_ns = self.target_ns(due_ns);
        let (mut held_up_ns, mut latest_ns) = (0, 0);
        loop {
            let (before_ns, rest_ns) = self.rest_if_needed();
            let sleep = self.sleep_ns(target_ns.map(|target_ns| target_ns.saturating_sub(before_ns)));
            ready.extend_from_slice(self.poller.wait(sleep.map(Duration::from_nanos))?);
            let now_ns = self.clock.now_ns();
            if let Some(slept_ns) = sleep.filter(|_| ready.is_empty()) {
                self.follow_overshoot(slept_ns, now_ns - before_ns);
            }
            if now_ns - before_ns >= REST_ENOUGH_NS {
                self.rested_ns = now_ns;
            }
            let asked_ns = match sleep {
                None => u64::MAX,
                Some(0) => 0,
                Some(_) => target_ns.unwrap_or(0),
            };
            let end_ns = asked_ns.max(self.counted_ns + rest_ns);
            let over_ns = now_ns.saturating_sub(end_ns);
            self.counted_ns = now_ns;
            held_up_ns += stalled_ns(over_ns);
            latest_ns = over_ns.max(latest_ns);
            if !ready.is_empty() || target_ns.is_some_and(|target_ns| target_ns <= now_ns) {
                if expects_packets {
                    self.lateness.add(latest_ns);
                }
                return Ok(Waited {
                    at_ns: now_ns,
                    stalled_ns: held_up_ns,
                });
            }
            std::hint::spin_loop();
        }
    }

    /// When a wait ends at the latest.
    fn target_ns(&self, due_ns: Option<u64>) -> Option<u64> {
        let sleeps = self.mode == EmulatorMode::Shared;
        let pulse = sleeps && self.counted_ns < self.pulses_until_ns;
        let pulse_ns = pulse.then_some(self.counted_ns + PULSE_NS);
        due_ns.into_iter().chain(pulse_ns).min()
    }

    /// Leaves the CPU to others when the engine has been busy for long; gives the time afterwards, and how long it was
    /// to be left.
    fn rest_if_needed(&mut self) -> (u64, u64) {
        let busy_ns = self.clock.now_ns();
        if self.priority != Priority::RealTime || busy_ns - self.rested_ns < BUSY_NS {
            return (busy_ns, 0);
        }
        sleep_until(now_ns() + REST_NS, 0);
        self.rested_ns = self.clock.now_ns();
        (self.rested_ns, REST_NS)
    }

    /// How long to sleep when the next event is `left_ns` away; none is without limit.
    fn sleep_ns(&self, left_ns: Option<u64>) -> Option<u64> {
        match (self.mode, left_ns) {
            (EmulatorMode::Precise, _) => Some(0),
            (EmulatorMode::Shared, None) => None,
            (EmulatorMode::Shared, Some(left_ns)) if left_ns <= SPIN_NS => Some(0),
            (EmulatorMode::Shared, Some(left_ns)) => Some(left_ns.saturating_sub(self.lead_ns).max(1)),
        }
    }

    /// Brings the lead closer to what sleeps now overshoot by: a CPU that is busy with others wakes the engine far sooner
    /// than one that has gone to sleep itself, and what it is woken too early by it would spin away.
    fn follow_overshoot(&mut self, asked_ns: u64, slept_ns: u64) {
        if asked_ns <= 1 {
            return; // no sleep, only a look
        }
        self.lead_ns = if slept_ns.saturating_sub(asked_ns) > self.lead_ns {
            (self.lead_ns + LEAD_STEP_NS).min(MAX_LEAD_NS)
        } else {
            self.lead_ns.saturating_sub(LEAD_STEP_NS)
        };
    }

    /// The usual overshoot of a sleep: the median, which a few hold-ups do not move.
    fn measure_lead(&mut self) -> io::Result<u64> {
        let mut over_ns = Vec::with_capacity(TRIAL_SLEEPS);
        for _ in 0..TRIAL_SLEEPS {
            let before_ns = now_ns();
            self.poller.wait(Some(Duration::from_nanos(TRIAL_NS)))?;
            over_ns.push((now_ns() - before_ns).saturating_sub(TRIAL_NS));
        }
        over_ns.sort_unstable();
        Ok(over_ns[TRIAL_SLEEPS / 2].min(MAX_LEAD_NS))
    }
}

/// Real-time where sleeps leave time to others, the first nice value otherwise; each as far as it is allowed.
fn raise_priority(mode: EmulatorMode) -> Priority {
    if mode == EmulatorMode::Shared && schedule::set_round_robin(REAL_TIME_PRIORITY).is_ok() {
        return Priority::RealTime;
    }
    // Where the process may not have an autogroup of its own, the nice value still counts inside its group.
    let _ = schedule::own_autogroup(FIRST);
    match schedule::set_nice(FIRST) {
        Ok(()) => Priority::Nice,
        Err(_) => Priority::Ordinary,
    }
}

/// How much of a span counts as a hold-up.
fn stalled_ns(span_ns: u64) -> u64 {
    if span_ns >= STALL_NS { span_ns } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use farline_sys::wake::Waker;

    use super::*;

    const FREEZE_NS: u64 = 50_000_000;

    /// Waits as of an engine that has run for a second, without touching the scheduling of the test.
    fn waits(mode: EmulatorMode) -> Waits {
        let mut clock = Clock::start();
        clock.start_ns -= 1_000_000_000;
        Waits {
            mode,
            clock,
            poller: Poller::new().unwrap(),
            lead_ns: 0,
            priority: Priority::Ordinary,
            rested_ns: clock.now_ns(),
            counted_ns: clock.now_ns(),
            pulses_until_ns: 0,
            lateness: Lateness::default(),
        }
    }

    fn readable(waits: &Waits) -> Waker {
        let waker = Waker::new().unwrap();
        waits.add(waker.as_fd(), 3).unwrap();
        waker.wake();
        waker
    }

    #[test]
    fn a_freeze_counts_also_when_something_is_readable_after_it() {
        for mode in [EmulatorMode::Shared, EmulatorMode::Precise] {
            for due_ns in [None, Some(0), Some(u64::MAX)] {
                let (mut waits, mut ready) = (waits(mode), Vec::new());
                let _waker = readable(&waits);
                waits.expect_packets();
                // What a frozen thread sees: time has passed since it last looked.
                waits.counted_ns -= FREEZE_NS;
                let waited = waits.wait(due_ns, &mut ready).unwrap();
                assert_eq!(ready, [3]);
                // A sleep of a pulse was asked for, and was no hold-up.
                let least_ns = FREEZE_NS - PULSE_NS;
                assert!(waited.stalled_ns >= least_ns, "{mode:?} {due_ns:?} {waited:?}");
                assert!(waits.lateness().max_ns() >= least_ns);
            }
        }
    }

    #[test]
    fn what_was_due_long_ago_is_no_hold_up_of_the_wait() {
        let (mut waits, mut ready) = (waits(EmulatorMode::Shared), Vec::new());
        let _waker = readable(&waits);
        // A loaded machine may freeze a test too; it does not do so every time.
        let is_free = (0..20).any(|_| waits.wait(Some(0), &mut ready).unwrap().stalled_ns == 0);
        assert!(is_free);
    }

    #[test]
    fn a_rest_that_lasts_too_long_counts() {
        let (mut waits, mut ready) = (waits(EmulatorMode::Shared), Vec::new());
        waits.priority = Priority::RealTime;
        waits.rested_ns = 0;
        waits.counted_ns -= FREEZE_NS;
        let waited = waits.wait(Some(0), &mut ready).unwrap();
        assert!(waited.stalled_ns >= FREEZE_NS - REST_NS, "{waited:?}");
    }

    #[test]
    fn a_turn_counts_from_the_end_of_the_wait() {
        let mut waits = waits(EmulatorMode::Precise);
        waits.counted_ns -= FREEZE_NS;
        assert!(waits.end_turn() >= FREEZE_NS);
    }

    #[test]
    fn sleeps_are_short_while_packets_come_and_only_then() {
        let (mut waits, mut ready) = (waits(EmulatorMode::Shared), Vec::new());
        assert_eq!(waits.target_ns(None), None);
        assert_eq!(waits.target_ns(Some(u64::MAX)), Some(u64::MAX));
        waits.expect_packets();
        let from_ns = waits.counted_ns;
        assert_eq!(waits.target_ns(Some(from_ns + 1)), Some(from_ns + 1));
        let waited = waits.wait(None, &mut ready).unwrap();
        assert!(ready.is_empty() && waited.at_ns >= from_ns + PULSE_NS);
        assert_eq!(waits.lateness().count(), 1);
        waits.counted_ns = waits.pulses_until_ns;
        assert_eq!(waits.target_ns(None), None);
    }

    #[test]
    fn the_lead_follows_the_usual_overshoot_and_not_a_few_long_ones() {
        let mut waits = waits(EmulatorMode::Shared);
        waits.lead_ns = 50_000;
        for round in 0..2000 {
            let over_ns = if round % 20 == 0 {
                10_000_000
            } else {
                4_000 + round % 3 * 1_000
            };
            waits.follow_overshoot(300_000, 300_000 + over_ns);
        }
        assert!((4_000..=7_000).contains(&waits.lead_ns), "{}", waits.lead_ns);
        waits.follow_overshoot(1, 100_000);
        assert!(waits.lead_ns <= 7_000, "a look is no sleep");
        for _ in 0..2000 {
            waits.follow_overshoot(300_000, 900_000);
        }
        assert_eq!(waits.lead_ns, MAX_LEAD_NS);
    }

    #[test]
    fn a_spinning_engine_needs_no_end_to_its_sleeps() {
        let mut waits = waits(EmulatorMode::Precise);
        waits.expect_packets();
        assert_eq!(waits.target_ns(None), None);
    }
}
