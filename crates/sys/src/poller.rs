//! Waiting for many descriptors with time-outs in nanoseconds (epoll_pwait2, Linux 5.11).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use crate::call::{check, timespec};

/// Most descriptors that one wait reports; the others come with the next.
const MOST_EVENTS: usize = 64;

/// A set of descriptors to wait for; reports each as long as it is readable (level-triggered).
#[derive(Debug)]
pub struct Poller {
    set: OwnedFd,
    has_nanoseconds: bool,
    ready: Vec<u64>,
}

impl Poller {
    /// An empty set.
    ///
    /// # Errors
    /// The kernel's, when no descriptor is left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes one integer and returns a new descriptor or -1.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: `fd` was just made by the kernel and nobody else owns it.
        let set = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut poller = Self {
            set,
            has_nanoseconds: true,
            ready: Vec::with_capacity(MOST_EVENTS),
        };
        poller.wait(Some(Duration::ZERO))?;
        Ok(poller)
    }

    /// Whether time-outs are kept to the nanosecond; if not, they are cut to whole milliseconds, so that a wait
    /// ends early rather than late.
    pub fn has_nanoseconds(&self) -> bool {
        self.has_nanoseconds
    }

    /// Waits for `fd` from now on, under the name `token`. The kernel forgets it when it is closed.
    ///
    /// # Errors
    /// `AlreadyExists` for a descriptor that is in the set.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: token,
        };
        // SAFETY: both descriptors are open; the kernel copies `event`, which lives through the call.
        check(unsafe {
            libc::epoll_ctl(
                self.set.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                fd.as_raw_fd(),
                &mut event,
            )
        })
        .map(drop)
    }

    /// Waits until something is readable, or for `timeout` (`None`: without limit); gives the tokens of what is.
    /// A signal ends the wait early with none.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<&[u64]> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; MOST_EVENTS];
        let count = match self.wait_for(&mut events, timeout) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            other => other?,
        };
        self.ready.clear();
        self.ready.extend(events[..count].iter().map(|event| event.u64));
        Ok(&self.ready)
    }

    fn wait_for(&mut self, events: &mut [libc::epoll_event], timeout: Option<Duration>) -> io::Result<usize> {
        if self.has_nanoseconds {
            match self.wait_exactly(events, timeout) {
                Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => self.has_nanoseconds = false,
                other => return other,
            }
        }
        self.wait_milliseconds(events, timeout)
    }

    fn wait_exactly(&self, events: &mut [libc::epoll_event], timeout: Option<Duration>) -> io::Result<usize> {
        let timeout = timeout.map(timespec);
        let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the kernel writes at most `events.len()` events; `timeout` is null or points to a timespec that
        // lives to the end of this function; there is no signal mask. By number, because older C libraries lack it.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.set.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as libc::c_int,
                timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        usize::try_from(count).map_err(|_| io::Error::last_os_error())
    }

    fn wait_milliseconds(
        &self,
        events: &mut [libc::epoll_event],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        let milliseconds = timeout.map_or(-1, |timeout| {
            libc::c_int::try_from(timeout.as_millis()).unwrap_or(libc::c_int::MAX)
        });
        let most = events.len() as libc::c_int;
        // SAFETY: the kernel writes at most `most` events, the length of `events`.
        let count = check(unsafe {
            libc::epoll_wait(self.set.as_raw_fd(), events.as_mut_ptr(), most, milliseconds)
        })?;
        Ok(count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Waker;
    use std::os::fd::AsFd;
    use std::time::Instant;

    fn both_ways(test: impl Fn(&mut Poller)) {
        for has_nanoseconds in [true, false] {
            let mut poller = Poller::new().unwrap();
            poller.has_nanoseconds &= has_nanoseconds;
            test(&mut poller);
        }
    }

    #[test]
    fn what_is_readable_is_named_until_it_is_read() {
        both_ways(|poller| {
            let (quiet, woken) = (Waker::new().unwrap(), Waker::new().unwrap());
            poller.add(quiet.as_fd(), 1).unwrap();
            poller.add(woken.as_fd(), u64::MAX).unwrap();
            woken.wake();
            assert_eq!(poller.wait(None).unwrap(), [u64::MAX]);
            assert_eq!(poller.wait(Some(Duration::from_secs(9))).unwrap(), [u64::MAX]);
            woken.drain();
            assert!(poller.wait(Some(Duration::ZERO)).unwrap().is_empty());
        });
    }

    #[test]
    fn a_short_timeout_is_kept_where_the_kernel_can() {
        let mut poller = Poller::new().unwrap();
        let before = Instant::now();
        assert!(poller.wait(Some(Duration::from_micros(300))).unwrap().is_empty());
        assert!(!poller.has_nanoseconds() || before.elapsed() >= Duration::from_micros(300));
    }

    #[test]
    fn a_descriptor_is_taken_once() {
        let (poller, waker) = (Poller::new().unwrap(), Waker::new().unwrap());
        poller.add(waker.as_fd(), 1).unwrap();
        assert_eq!(
            poller.add(waker.as_fd(), 2).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }
}
