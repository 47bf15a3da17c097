//! The current thread: which CPUs it may use, how its sleeps are rounded, how much CPU it has used.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::call::{check, duration};

/// Pins the current thread to `cpu`.
///
/// # Errors
/// `InvalidInput` when the CPU does not exist, is offline or outside the process's cpuset.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: cpu_set_t is a plain bit array for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpu` is below CPU_SETSIZE, so the bit lies inside `set`.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: pointer and size are those of `set`; 0 means the calling thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) }).map(drop)
}

/// CPUs the current thread may run on, in order.
///
/// # Errors
/// The kernel's.
pub fn allowed_cpus() -> io::Result<Vec<usize>> {
    // SAFETY: cpu_set_t is a plain bit array for which all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given size into `set`; 0 means the calling thread.
    check(unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) })?;
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: every index is below CPU_SETSIZE, so the bit lies inside `set`.
    Ok(all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// CPU time that the current thread has used.
pub fn cpu_time() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default()
}

/// Time in which the current thread could have run but had no CPU, or `None` where the kernel does not tell.
pub fn wait_time() -> Option<Duration> {
    wait_in(&std::fs::read("/proc/thread-self/schedstat").ok()?)
}

/// Second number of a line of scheduler statistics: nanoseconds on a CPU, nanoseconds of waiting for
/// one, number of turns.
fn wait_in(line: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(line).ok()?;
    text.split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
        .map(Duration::from_nanos)
}

/// Shows one thread's use of the CPUs to any other thread of the process.
#[derive(Debug)]
pub struct CpuClock {
    id: libc::clockid_t,
    /// The thread's line of scheduler statistics, where the kernel keeps them.
    schedule: Option<File>,
}

impl CpuClock {
    /// The clock of the calling thread.
    ///
    /// # Errors
    /// The kernel's, where thread clocks are not supported.
    pub fn of_current_thread() -> io::Result<Self> {
        let mut id: libc::clockid_t = 0;
        // SAFETY: pthread_self is always valid for the calling thread; `id` is written, nothing is kept.
        let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        let schedule = File::open("/proc/thread-self/schedstat").ok();
        Ok(Self { id, schedule })
    }

    /// CPU time the thread has used, or `None` after it has ended.
    pub fn read(&self) -> Option<Duration> {
        clock(self.id).ok()
    }

    /// Time in which the thread could have run but had no CPU, or `None` where the kernel does not tell.
    pub fn waited(&self) -> Option<Duration> {
        let mut line = [0; 96];
        let length = self.schedule.as_ref()?.read_at(&mut line, 0).ok()?;
        wait_in(&line[..length])
    }
}

/// Lets sleeps of the current thread end within 1 ns of slack instead of the usual 50 µs
/// (`PR_SET_TIMERSLACK`); affects nothing but this thread.
pub fn set_finest_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer and cannot fail for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

fn clock(id: libc::clockid_t) -> io::Result<Duration> {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `now`.
    check(unsafe { libc::clock_gettime(id, &mut now) })?;
    Ok(duration(&now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_pinned_thread_may_use_that_cpu_alone() {
        let first = allowed_cpus().unwrap()[0];
        std::thread::spawn(move || {
            pin_to_cpu(first).unwrap();
            assert_eq!(allowed_cpus().unwrap(), [first]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert_eq!(
            pin_to_cpu(1_000_000).unwrap_err().kind(),
            io::ErrorKind::InvalidInput
        );
        assert_eq!(pin_to_cpu(1_023).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn cpu_time_grows_with_work_and_is_seen_from_outside() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            let start = Instant::now();
            while start.elapsed() < Duration::from_millis(1) || cpu_time() < Duration::from_millis(5) {
                std::hint::spin_loop();
            }
            sender.send(CpuClock::of_current_thread().unwrap()).unwrap();
            let _ = finished.recv();
        });
        let clock = receiver.recv().unwrap();
        assert!(clock.read().unwrap() >= Duration::from_millis(5));
        drop(finish);
        worker.join().unwrap();
    }

    #[test]
    fn waiting_for_a_cpu_is_seen() {
        let cpu = allowed_cpus().unwrap()[0];
        let threads: Vec<_> = (0..2)
            .map(|_| {
                std::thread::spawn(move || {
                    pin_to_cpu(cpu).unwrap();
                    let clock = CpuClock::of_current_thread().unwrap();
                    while cpu_time() < Duration::from_millis(60) {
                        std::hint::spin_loop();
                    }
                    assert!(wait_time() >= clock.waited());
                    clock.waited()
                })
            })
            .collect();
        let waited: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        // Where the kernel keeps no such statistics there is nothing to see, and that is said.
        if waited.iter().all(Option::is_some) {
            assert!(
                waited.iter().flatten().max().unwrap() >= &Duration::from_millis(20),
                "{waited:?}"
            );
        }
    }
}
