//! How the engine waits: asleep in shared mode, spinning in precise mode.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use farline_spec::EmulatorMode;
use farline_sys::poller::Poller;
use farline_sys::time::{now_ns, sleep_until};
use farline_sys::{schedule, thread};

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
/// Sleeps by which the lead is measured, and their length.
const TRIAL_SLEEPS: usize = 50;
const TRIAL_NS: u64 = 300_000;
/// A larger lead would be no lateness of timers but a loaded machine.
const MAX_LEAD_NS: u64 = 60_000;

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
        };
        if mode == EmulatorMode::Shared {
            waits.lead_ns = waits.measure_lead()?;
        }
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

    /// Returns when something is readable, or when `due_ns` has come; puts the tokens of what is readable into
    /// `ready`. Gives the time by which the wait overshot, or 0.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, due_ns: Option<u64>, ready: &mut Vec<u64>) -> io::Result<u64> {
        ready.clear();
        loop {
            let before_ns = self.rest_if_needed();
            let left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(before_ns));
            let sleep = self.sleep_ns(left_ns);
            ready.extend_from_slice(self.poller.wait(sleep.map(Duration::from_nanos))?);
            let now_ns = self.clock.now_ns();
            if now_ns - before_ns >= REST_ENOUGH_NS {
                self.rested_ns = now_ns;
            }
            let is_due = due_ns.is_some_and(|due_ns| due_ns <= now_ns);
            if is_due || !ready.is_empty() {
                let slept = sleep.unwrap_or(0) > 0 && ready.is_empty();
                let over_ns = due_ns.map_or(0, |due_ns| now_ns.saturating_sub(due_ns));
                return Ok(if slept { over_ns } else { 0 });
            }
            std::hint::spin_loop();
        }
    }

    /// Leaves the CPU to others when the engine has been busy for long; gives the time afterwards.
    fn rest_if_needed(&mut self) -> u64 {
        let busy_ns = self.clock.now_ns();
        if self.priority != Priority::RealTime || busy_ns - self.rested_ns < BUSY_NS {
            return busy_ns;
        }
        sleep_until(now_ns() + REST_NS, 0);
        self.rested_ns = self.clock.now_ns();
        self.rested_ns
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
pub fn stalled_ns(span_ns: u64) -> u64 {
    if span_ns >= STALL_NS { span_ns } else { 0 }
}
