//! How finely a destination keeps times of last change, found out by setting one; and whether two times are the same there.
//!
//! A file system is asked what it makes of a time before two are called different: some keep whole seconds, some every second
//! one, some round, some know no time before 1980 or after 2038.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use farline_proto::copy::journal::Source;
use farline_spec::CopySpec;

use super::words::POISONED;

/// Odd in every digit: 2001-02-03 04:05:07.123456789.
const PROBE_NS: i64 = 981_173_107_123_456_789;
/// A time so far from the one that was set is another one.
const FAR_NS: u64 = 5_000_000_000;
/// Clocks of other machines are wrong, but not by that much.
const DAY_NS: u64 = 86_400_000_000_000;
/// Steps in which file systems keep times: NTFS and SMB 100 ns, exFAT 10 ms, many a second, FAT two.
const STEPS_NS: [i64; 9] = [
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    2_000_000_000,
];
/// Answers of the file system that are remembered.
const MOST_ANSWERS: usize = 4_096;
const SECOND_NS: f64 = 1e9;

/// What a destination makes of a time that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// It is kept to the nanosecond, or nobody could ask.
    Fine,
    /// It is kept in steps of so many nanoseconds.
    Step(i64),
    /// It is not kept: a file has the time at which it was written.
    OfWriting,
    /// There are no times.
    Nothing,
}

impl Grain {
    /// By what was found after [`PROBE_NS`] was set at the time `now_ns`.
    pub fn of(found: io::Result<i64>, unset_ns: i64, now_ns: i64) -> Self {
        let is_near = |ns: i64, other: i64, far: u64| ns.abs_diff(other) < far;
        match found {
            Ok(ns) if ns == PROBE_NS => Self::Fine,
            Ok(ns) if is_near(ns, PROBE_NS, FAR_NS) => Self::Step(step_of(ns)),
            _ if is_near(unset_ns, now_ns, DAY_NS) => Self::OfWriting,
            _ => Self::Nothing,
        }
    }

    /// Whether a time that is set is kept, finely or not.
    pub const fn is_settable(self) -> bool {
        matches!(self, Self::Fine | Self::Step(_))
    }

    /// In words, where times are kept otherwise than to the nanosecond.
    pub fn words(self) -> Option<String> {
        Some(match self {
            Self::Fine => return None,
            Self::Step(ns) if ns >= 1_000_000_000 => format!("kept to {} s", ns / 1_000_000_000),
            Self::Step(ns) if ns >= 1_000_000 => format!("kept to {} ms", ns / 1_000_000),
            Self::Step(ns) if ns >= 1_000 => format!("kept to {} us", ns / 1_000),
            Self::Step(ns) => format!("kept to {ns} ns"),
            Self::OfWriting => {
                "times cannot be set; a file of the same size that is newer than its source counts as unchanged"
                    .to_owned()
            }
            Self::Nothing => "the file system has no times; a file of the same size counts as unchanged".to_owned(),
        })
    }

    /// Whether a time loses something.
    pub const fn cuts(self, ns: i64) -> bool {
        match self {
            Self::Fine => false,
            Self::Step(step) => ns % step != 0,
            Self::OfWriting | Self::Nothing => true,
        }
    }
}

/// Whether a time is of about now.
fn is_of_now(ns: i64) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    ns.abs_diff(now.map_or(0, |now| now.as_nanos() as i64)) < DAY_NS
}

/// The largest step that the time is a multiple of.
fn step_of(ns: i64) -> i64 {
    let steps = STEPS_NS.iter().rev();
    steps.copied().find(|step| ns % step == 0).unwrap_or(1)
}

/// Compares times at one destination.
#[derive(Debug)]
pub struct Clock {
    grain: Grain,
    /// Times within it are the same.
    window_ns: u64,
    answers: Mutex<HashMap<i64, i64>>,
}

impl Clock {
    /// One for a destination with `grain`.
    pub fn new(grain: Grain, spec: &CopySpec) -> Self {
        let window_s = spec.modify_window_s.map_or(0.0, |window| window.get());
        Self {
            grain,
            window_ns: (window_s * SECOND_NS) as u64,
            answers: Mutex::default(),
        }
    }

    /// How finely times are kept.
    pub const fn grain(&self) -> Grain {
        self.grain
    }

    /// The time that is set to ask for the grain.
    pub const fn probe_ns() -> i64 {
        PROBE_NS
    }

    /// Whether a file that has the time `found_ns` may be the unchanged `source`. `ask` sets a time and gives what was kept.
    pub fn is_same(&self, found_ns: i64, source: &Source, ask: impl FnOnce(i64) -> io::Result<i64>) -> bool {
        let wanted_ns = source.mtime_ns;
        if found_ns.abs_diff(wanted_ns) <= self.window_ns {
            return true;
        }
        match self.grain {
            Grain::Nothing => true,
            Grain::OfWriting => found_ns >= wanted_ns.max(source.ctime_ns),
            Grain::Fine | Grain::Step(_) => match self.kept_as(wanted_ns, ask) {
                // It takes this one for no time and sets that of now, as sshfs does of the begin of 1970.
                Some(kept_ns) if is_of_now(kept_ns) && !is_of_now(wanted_ns) => {
                    found_ns >= wanted_ns.max(source.ctime_ns)
                }
                kept_ns => kept_ns == Some(found_ns),
            },
        }
    }

    fn kept_as(&self, wanted_ns: i64, ask: impl FnOnce(i64) -> io::Result<i64>) -> Option<i64> {
        let mut answers = self.answers.lock().expect(POISONED);
        if let Some(kept) = answers.get(&wanted_ns) {
            return Some(*kept);
        }
        // Who cannot be asked keeps it as it is.
        let kept = ask(wanted_ns).ok()?;
        if answers.len() >= MOST_ANSWERS {
            answers.clear();
        }
        answers.insert(wanted_ns, kept);
        Some(kept)
    }
}

/// Whether `found_ns` is `wanted_ns` as some file system would keep it: for a dry run, which sets no time to ask.
pub fn may_be_kept_as(found_ns: i64, wanted_ns: i64) -> bool {
    let step = step_of(found_ns);
    found_ns.abs_diff(wanted_ns) < step.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::unit::ModifyWindowS;

    fn source(mtime_ns: i64, ctime_ns: i64) -> Source {
        let path = b"a".to_vec();
        Source {
            path,
            bytes: 1,
            mtime_ns,
            ctime_ns,
        }
    }

    #[test]
    fn the_grain_is_what_the_file_system_showed_when_it_gave_the_time_back() {
        let of = |step: i64| Grain::of(Ok(PROBE_NS / step * step), 0, 0);
        assert_eq!(of(1), Grain::Fine);
        for step in STEPS_NS {
            assert_eq!(of(step), Grain::Step(step));
        }
        let now = 1_800_000_000_000_000_000;
        let refused = || Err(io::ErrorKind::Unsupported.into());
        assert_eq!(Grain::of(refused(), now + 1, now), Grain::OfWriting);
        assert_eq!(Grain::of(Ok(now), now, now), Grain::OfWriting);
        assert_eq!(Grain::of(Ok(0), 0, now), Grain::Nothing);
    }

    #[test]
    fn a_change_within_a_coarse_step_is_a_change_where_times_are_kept_finely() {
        let clock = Clock::new(Grain::Fine, &CopySpec::default());
        let second = 1_700_000_000_000_000_000;
        assert!(clock.is_same(second, &source(second, 0), Ok));
        assert!(!clock.is_same(second, &source(second + 5, 0), Ok));
    }

    #[test]
    fn a_time_is_the_same_if_the_file_system_would_keep_it_so() {
        let clock = Clock::new(Grain::Step(2_000_000_000), &CopySpec::default());
        let cut = |ns: i64| Ok(ns / 2_000_000_000 * 2_000_000_000);
        assert!(clock.is_same(10_000_000_000, &source(11_500_000_000, 0), cut));
        assert!(!clock.is_same(10_000_000_000, &source(12_000_000_000, 0), cut));
        assert!(
            clock.is_same(10_000_000_000, &source(11_500_000_000, 0), |_| unreachable!(
                "it was asked"
            ))
        );
    }

    #[test]
    fn where_times_are_not_kept_a_file_written_after_the_last_change_of_its_source_is_the_same() {
        let clock = Clock::new(Grain::OfWriting, &CopySpec::default());
        let refused = |_| Err(io::ErrorKind::Unsupported.into());
        assert!(clock.is_same(100, &source(5, 90), refused));
        assert!(
            !clock.is_same(100, &source(5, 110), refused),
            "put back in time, changed since"
        );
    }

    #[test]
    fn a_time_that_the_file_system_takes_for_now_is_kept_by_a_file_written_after_the_last_change() {
        let clock = Clock::new(Grain::Step(1_000_000_000), &CopySpec::default());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        assert!(clock.is_same(now - 50, &source(0, now - 60), |_| Ok(now)));
        assert!(!clock.is_same(now - 50, &source(0, now - 40), |_| Ok(now)));
        assert!(!clock.is_same(now - 50, &source(now - 60, 0), |_| Ok(now - 60)));
    }

    #[test]
    fn times_within_the_window_are_the_same() {
        let spec = CopySpec {
            modify_window_s: ModifyWindowS::new(2.0).ok(),
            ..CopySpec::default()
        };
        let clock = Clock::new(Grain::Fine, &spec);
        assert!(clock.is_same(7_000_000_000, &source(5_000_000_000, 0), Ok));
        assert!(!clock.is_same(7_000_000_001, &source(5_000_000_000, 0), Ok));
    }

    #[test]
    fn a_dry_run_guesses_the_step_by_the_time_that_it_finds() {
        assert!(may_be_kept_as(2_000_000_000, 3_999_999_999));
        assert!(may_be_kept_as(1_000, 1_999) && !may_be_kept_as(1_501, 1_502));
    }
}
