//! Waiting for several file descriptors at once, and waking such a wait from another thread.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::call::{check, timespec};

/// Wakes a thread that waits in [`poll_readable`] or [`poll_ready`]: an eventfd.
///
/// Wakes add up until [`Waker::drain`]; a wake before the wait begins is not lost.
#[derive(Debug)]
pub struct Waker {
    event: OwnedFd,
}

impl Waker {
    /// A waker that nobody has woken yet.
    ///
    /// # Errors
    /// The kernel's, when no file descriptor is left.
    pub fn new() -> io::Result<Self> {
        // SAFETY: eventfd takes two integers and returns a new descriptor or -1.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: `fd` was just made by the kernel and nobody else owns it.
        let event = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { event })
    }

    /// Makes the descriptor readable. Never blocks, may be called from any thread.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: the pointer and length are those of `one`, which lives through the call. The only
        // possible error is a full counter, and then the descriptor is readable already.
        let _ = unsafe { libc::write(self.event.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Takes back all wakes so far; gives whether there was one.
    pub fn drain(&self) -> bool {
        let mut count = [0u8; 8];
        // SAFETY: the kernel writes at most the 8 bytes of `count`; the descriptor does not block.
        let got = unsafe { libc::read(self.event.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
        got == 8
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

/// What to wait for on a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Data, a connection, an error or the end.
    Readable,
    /// Room to write, or an error.
    Writable,
}

/// Waits until at least one of `fds` has something to read, an error or the end, or until `timeout`
/// (`None`: without limit). Element `i` of the answer belongs to `fds[i]`; all are false after a time-out.
///
/// # Errors
/// The kernel's; interruption by a signal is not one of them, the wait goes on.
pub fn poll_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let wanted: Vec<_> = fds.iter().map(|fd| (*fd, Interest::Readable)).collect();
    poll_ready(&wanted, timeout)
}

/// As [`poll_readable`], with an interest for each descriptor.
///
/// # Errors
/// The kernel's; interruption by a signal is not one of them, the wait goes on.
pub fn poll_ready(fds: &[(BorrowedFd<'_>, Interest)], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut entries: Vec<libc::pollfd> = fds.iter().map(|&(fd, interest)| entry(fd, interest)).collect();
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    loop {
        match poll_once(&mut entries, deadline) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
            Ok(()) => return Ok(entries.iter().map(|entry| entry.revents != 0).collect()),
        }
    }
}

/// As [`poll_ready`] for a thread that waits often: no memory is taken, `timeout` is kept to the nanosecond as far as
/// the thread's timer slack allows, and a signal ends the wait as a time-out does.
///
/// # Errors
/// The kernel's.
pub fn wait_ready<const N: usize>(
    fds: [(BorrowedFd<'_>, Interest); N],
    timeout: Duration,
) -> io::Result<[bool; N]> {
    let mut entries = fds.map(|(fd, interest)| entry(fd, interest));
    match poll(&mut entries, Some(timeout)) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([false; N]),
        Err(error) => Err(error),
        Ok(()) => Ok(entries.map(|entry| entry.revents != 0)),
    }
}

fn entry(fd: BorrowedFd<'_>, interest: Interest) -> libc::pollfd {
    let events = match interest {
        Interest::Readable => libc::POLLIN | libc::POLLRDHUP,
        Interest::Writable => libc::POLLOUT,
    };
    libc::pollfd {
        fd: fd.as_raw_fd(),
        events,
        revents: 0,
    }
}

fn poll_once(entries: &mut [libc::pollfd], deadline: Option<Instant>) -> io::Result<()> {
    poll(
        entries,
        deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
    )
}

fn poll(entries: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let left = timeout.map(timespec);
    let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: pointer and count are those of `entries`, whose descriptors are borrowed by the caller for
    // the whole call; `left` is null or points to a timespec that lives to the end of this function.
    check(unsafe {
        libc::ppoll(
            entries.as_mut_ptr(),
            entries.len() as libc::nfds_t,
            left,
            std::ptr::null(),
        )
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let waker = Waker::new().unwrap();
        waker.wake();
        waker.wake();
        assert_eq!(poll_readable(&[waker.as_fd()], None).unwrap(), [true]);
        assert!(waker.drain());
        assert!(!waker.drain());
        assert_eq!(
            poll_readable(&[waker.as_fd()], Some(Duration::ZERO)).unwrap(),
            [false]
        );
    }

    #[test]
    fn a_wake_from_another_thread_ends_the_wait_and_names_its_descriptor() {
        let (quiet, woken) = (Waker::new().unwrap(), Arc::new(Waker::new().unwrap()));
        let waker = Arc::clone(&woken);
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            waker.wake();
        });
        let ready = poll_readable(&[quiet.as_fd(), woken.as_fd()], Some(Duration::from_secs(10))).unwrap();
        assert_eq!(ready, [false, true]);
        thread.join().unwrap();
    }

    #[test]
    fn a_timeout_is_kept() {
        let waker = Waker::new().unwrap();
        let before = Instant::now();
        assert_eq!(
            poll_readable(&[waker.as_fd()], Some(Duration::from_millis(30))).unwrap(),
            [false]
        );
        assert!(before.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn a_short_wait_names_what_is_ready_and_keeps_its_time() {
        let (quiet, woken) = (Waker::new().unwrap(), Waker::new().unwrap());
        let wait = || {
            let fds = [quiet.as_fd(), woken.as_fd()].map(|fd| (fd, Interest::Readable));
            wait_ready(fds, Duration::from_millis(20)).unwrap()
        };
        let before = Instant::now();
        assert_eq!(wait(), [false, false]);
        assert!(before.elapsed() >= Duration::from_millis(20));
        woken.wake();
        assert_eq!(wait(), [false, true]);
    }

    #[test]
    fn the_end_of_a_peer_is_readable_and_room_is_writable() {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        assert_eq!(
            poll_ready(&[(near.as_fd(), Interest::Writable)], None).unwrap(),
            [true]
        );
        drop(far);
        assert_eq!(poll_readable(&[near.as_fd()], None).unwrap(), [true]);
    }
}
