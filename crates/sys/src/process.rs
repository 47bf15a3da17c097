//! CPU time of the process, its memory and open files, and CPU time the hypervisor gave to others.

use std::io;
use std::time::Duration;

use rustix::process::{Resource, Rlimit};

use crate::call::check;

/// CPU time used by all threads of the process so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// In user mode.
    pub user: Duration,
    /// In the kernel.
    pub system: Duration,
}

/// CPU time of this process (`getrusage`).
///
/// # Errors
/// The kernel's.
pub fn cpu_time() -> io::Result<CpuTime> {
    usage_of(libc::RUSAGE_SELF)
}

/// CPU time of the calling thread alone (`getrusage`).
///
/// # Errors
/// The kernel's.
pub fn cpu_time_of_thread() -> io::Result<CpuTime> {
    usage_of(libc::RUSAGE_THREAD)
}

fn usage_of(who: libc::c_int) -> io::Result<CpuTime> {
    // SAFETY: rusage is plain integers for which all zeros is valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one rusage into `usage`.
    check(unsafe { libc::getrusage(who, &mut usage) })?;
    Ok(CpuTime {
        user: from_timeval(usage.ru_utime),
        system: from_timeval(usage.ru_stime),
    })
}

fn from_timeval(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}

/// Time since boot, over all CPUs, in which the hypervisor ran others instead (`steal` in `/proc/stat`).
///
/// # Errors
/// When `/proc/stat` cannot be read or has no such column.
pub fn steal_time() -> io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let ticks = parse_steal(&text).ok_or_else(no_steal)?;
    Ok(from_ticks(ticks))
}

/// The same for each CPU that is in use, in the kernel's order.
///
/// # Errors
/// As [`steal_time`].
pub fn steal_by_cpu() -> io::Result<Vec<Duration>> {
    let text = std::fs::read_to_string("/proc/stat")?;
    let ticks = parse_steal_by_cpu(&text).ok_or_else(no_steal)?;
    Ok(ticks.into_iter().map(from_ticks).collect())
}

fn no_steal() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "/proc/stat: no steal column in the lines of the CPUs",
    )
}

fn from_ticks(ticks: u64) -> Duration {
    // SAFETY: sysconf takes one integer and touches no memory of ours.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let per_second = u32::try_from(per_second)
        .ok()
        .filter(|&rate| rate > 0)
        .unwrap_or(100);
    Duration::from_secs(ticks) / per_second
}

fn parse_steal(text: &str) -> Option<u64> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    (words.next()? == "cpu").then_some(())?;
    words.nth(7)?.parse().ok()
}

/// Lines `cpu0`, `cpu1`, ... behind the first; none without at least one.
fn parse_steal_by_cpu(text: &str) -> Option<Vec<u64>> {
    let lines = text.lines().skip(1).take_while(|line| line.starts_with("cpu"));
    let ticks: Option<Vec<u64>> = lines
        .map(|line| line.split_ascii_whitespace().nth(8)?.parse().ok())
        .collect();
    ticks.filter(|ticks| !ticks.is_empty())
}

/// Number of the process that a thread is of (`Tgid` in `/proc/N/status`).
///
/// # Errors
/// When there is no such thread, or its status has no such line.
pub fn process_of_thread(thread: u32) -> io::Result<u32> {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a status without Tgid"))
}

/// Number of the user whose rights this process has.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Number of the group whose rights this process has.
pub fn group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Most memory that this process has had in use, in bytes (`VmHWM` in `/proc/self/status`).
///
/// # Errors
/// When `/proc/self/status` cannot be read or has no such line.
pub fn peak_memory_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    parse_peak_memory(&text).ok_or_else(|| {
        let line = "/proc/self/status: no line VmHWM in kB";
        io::Error::new(io::ErrorKind::InvalidData, line)
    })
}

fn parse_peak_memory(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Lets the process open as many files as it may at all (RLIMIT_NOFILE, soft up to hard); gives how many.
///
/// # Errors
/// The kernel's.
pub fn raise_open_files() -> io::Result<u64> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, raised)?;
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_memory_is_that_of_the_process() {
        assert_eq!(
            parse_peak_memory("VmPeak:\t 9 kB\nVmHWM:\t   12 kB\n"),
            Some(12 * 1024)
        );
        assert_eq!(parse_peak_memory("VmHWM:\t 12 MB\n"), None);
        let before = peak_memory_bytes().unwrap();
        let held = vec![1_u8; 64 << 20];
        let after = peak_memory_bytes().unwrap();
        assert!(after >= before && after >= 64 << 20, "{after}");
        assert!(held.iter().all(|byte| *byte == 1));
    }

    #[test]
    fn all_files_that_may_be_open_at_all_may_be_open_now() {
        let limit = raise_open_files().unwrap();
        assert!(limit >= 64, "{limit}");
        assert_eq!(raise_open_files().unwrap(), limit);
    }

    #[test]
    fn steal_is_the_eighth_figure() {
        assert_eq!(parse_steal("cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1\n"), Some(88));
        assert_eq!(parse_steal("cpu 1 2 3\n"), None);
        assert_eq!(parse_steal("intr 1 2 3 4 5 6 7 8 9\n"), None);
        assert!(steal_time().is_ok());
        let text =
            "cpu  1 2 3 4 5 6 7 88 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(parse_steal_by_cpu(text), Some(vec![80, 8]));
        assert_eq!(parse_steal_by_cpu("cpu 1 2 3 4 5 6 7 8\nintr 5\n"), None);
        assert!(!steal_by_cpu().unwrap().is_empty());
    }

    #[test]
    fn cpu_time_of_the_process_does_not_run_back() {
        let before = cpu_time().unwrap();
        let after = cpu_time().unwrap();
        assert!(after.user >= before.user && after.system >= before.system);
        assert!(after.user + after.system > Duration::ZERO);
    }
}
