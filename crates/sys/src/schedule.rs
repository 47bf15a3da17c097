//! How the scheduler treats the calling thread or process. Each call says whether the kernel granted it.

use std::io;

use crate::call::{check, explain};

/// Puts the calling thread into the real-time class SCHED_RR (sched(7)) with `priority` 1 to 99, ahead of every
/// ordinary thread. Its children start as ordinary threads again.
///
/// Whoever spins in this class is stopped for 5 % of every second (`kernel.sched_rt_runtime_us`): sleep.
///
/// # Errors
/// `PermissionDenied` without CAP_SYS_NICE or a high enough RLIMIT_RTPRIO; `InvalidInput` for another priority.
pub fn set_round_robin(priority: u8) -> io::Result<()> {
    // SAFETY: sched_param is one integer (and padding) for which all zeros is valid.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = priority.into();
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the kernel reads one sched_param, which lives through the call; 0 means the calling thread.
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) }).map(drop)
}

/// Whether the calling thread is in a real-time class.
///
/// # Errors
/// The kernel's.
pub fn is_real_time() -> io::Result<bool> {
    // SAFETY: takes one integer and touches no memory of ours; 0 means the calling thread.
    let policy = check(unsafe { libc::sched_getscheduler(0) })? & !libc::SCHED_RESET_ON_FORK;
    Ok(policy == libc::SCHED_RR || policy == libc::SCHED_FIFO)
}

/// Sets the nice value of the calling thread: -20 (first) to 19 (last). It counts among the threads of one
/// autogroup only, so give the process its own ([`own_autogroup`]).
///
/// # Errors
/// `PermissionDenied` for less than the present value without CAP_SYS_NICE.
pub fn set_nice(nice: i8) -> io::Result<()> {
    // SAFETY: takes integers and touches no memory of ours; Linux takes 0 as the calling thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice.into()) }).map(drop)
}

/// Puts the process into an autogroup of its own (sched(7)) with this nice value among all autogroups, by making
/// it the leader of a new terminal session unless it is one.
///
/// # Errors
/// `PermissionDenied` if the process leads a process group without leading a session, or may not lower the value;
/// `NotFound` where the kernel has no autogroups.
pub fn own_autogroup(nice: i8) -> io::Result<()> {
    // SAFETY: these take at most one integer and touch no memory of ours.
    let leads_session = unsafe { libc::getsid(0) == libc::getpid() };
    if !leads_session {
        // SAFETY: as above.
        check(unsafe { libc::setsid() }).map_err(|error| explain(&error, "a new session"))?;
    }
    let file = "/proc/self/autogroup";
    std::fs::write(file, nice.to_string()).map_err(|error| explain(&error, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_granted_is_in_force_and_not_inherited() {
        std::thread::spawn(|| {
            assert!(!is_real_time().unwrap());
            match set_round_robin(5) {
                Ok(()) => {
                    assert!(is_real_time().unwrap());
                    let inherits = std::thread::spawn(|| is_real_time().unwrap()).join().unwrap();
                    assert!(!inherits);
                }
                Err(error) => {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                    assert!(!is_real_time().unwrap());
                }
            }
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_priority_that_does_not_exist_is_refused() {
        assert!(set_round_robin(100).is_err());
        assert!(set_round_robin(0).is_err());
    }

    #[test]
    fn everyone_may_step_back() {
        std::thread::spawn(|| set_nice(19).unwrap()).join().unwrap();
    }
}
