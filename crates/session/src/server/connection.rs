//! A connection on which sessions can begin, and who is at its other end.

use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use farline_sys::wake::poll_readable;

use crate::channel::{Channel, Interrupt};
use crate::message::ClientMessage;

/// Most connections whose session is over that are kept at once: each has a thread that only waits.
const MOST_KEPT: usize = 16;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// Its address.
    pub peer: SocketAddr,
    /// Where it listens, if it was this server that connected, and so opens the streams too.
    pub back: Option<SocketAddr>,
}

/// A connection on which a session can begin.
pub struct Connection {
    /// The control channel.
    pub channel: Channel<ClientMessage>,
    /// Who is at its other end.
    pub caller: Caller,
    /// This end's address.
    pub local: SocketAddr,
    /// Ends all of its waiting.
    pub interrupt: Interrupt,
}

/// Whether a connection ends before its first byte: somebody measured the path, which is no client and no trouble.
pub fn is_only_a_look(socket: &TcpStream, interrupt: &Interrupt, within: Duration) -> bool {
    let fds = [socket.as_fd(), interrupt.waker().as_fd()];
    let is_ready = poll_readable(&fds, Some(within)).is_ok_and(|ready| ready[0]);
    is_ready && matches!(socket.peek(&mut [0; 1]), Ok(0))
}

/// Places for connections that are kept.
#[derive(Debug, Default)]
pub struct KeptSeats(AtomicUsize);

/// One of them; given back when dropped.
#[derive(Debug)]
pub struct KeptSeat<'a>(&'a AtomicUsize);

impl KeptSeats {
    /// A place, if one is free.
    pub fn sit(&self) -> Option<KeptSeat<'_>> {
        let more = |taken| (taken < MOST_KEPT).then_some(taken + 1);
        let sat = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        sat.ok().map(|_| KeptSeat(&self.0))
    }
}

impl Drop for KeptSeat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_is_given_back_is_free_for_another() {
        let seats = KeptSeats::default();
        let mut taken: Vec<_> = std::iter::from_fn(|| seats.sit()).collect();
        assert_eq!(taken.len(), MOST_KEPT);
        taken.pop();
        assert!(seats.sit().is_some());
    }
}
