//! The monotonic clock in nanoseconds, and sleeping that ends on time.
//!
//! A plain sleep ends 20 to 40 µs late even with the finest timer slack. [`sleep_until`] therefore sleeps
//! to a little before the time and spins the rest, if the caller grants it CPU time for that.

use std::time::Duration;

use crate::call::timespec;

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `now`; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    (now.tv_sec as u64) * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns when [`now_ns`] has reached `deadline_ns`: sleeps to `spin_ns` before it and spins the rest.
/// A signal does not end it.
///
/// The sleep is only as exact as the thread's timer slack: see [`crate::thread::set_finest_timer_slack`].
pub fn sleep_until(deadline_ns: u64, spin_ns: u64) {
    let wake_ns = deadline_ns.saturating_sub(spin_ns);
    while now_ns() < wake_ns && !sleep_once(wake_ns) {}
    while now_ns() < deadline_ns {
        std::hint::spin_loop();
    }
}

/// Whether the sleep reached its end (and was not cut short by a signal).
fn sleep_once(wake_ns: u64) -> bool {
    let wake = timespec(Duration::from_nanos(wake_ns));
    // SAFETY: `wake` lives through the call; with TIMER_ABSTIME the kernel writes no remainder.
    let error = unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &wake,
            std::ptr::null_mut(),
        )
    };
    error == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_never_ends_early() {
        for (length_ns, spin_ns) in [(0, 0), (50_000, 50_000), (2_000_000, 0), (2_000_000, 60_000)] {
            let deadline_ns = now_ns() + length_ns;
            sleep_until(deadline_ns, spin_ns);
            assert!(now_ns() >= deadline_ns);
        }
    }

    #[test]
    fn a_time_in_the_past_returns_at_once() {
        let before_ns = now_ns();
        sleep_until(0, 1_000);
        assert!(now_ns() - before_ns < 1_000_000_000);
    }
}
