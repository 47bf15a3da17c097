//! Sorts those who open connections: the ones we wait for from strangers and the silent.
//!
//! A stream is given away only when its opener has confirmed the ACK of its preamble: from then until the run begins
//! nobody drives the connection, and an opener that still waited would wait in vain.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_proto::udt::Reader;
use farline_spec::{Failure, RunSpec};
use farline_sys::time;
use farline_sys::wake::poll_readable;

use super::SLICE_NS;
use super::listener::Listener;
use super::options::SocketOptions;
use super::socket::Socket;
use super::stream::UdtStream;
use crate::crowd::Crowd;
use crate::failure::timed_out;
use crate::preamble::{PREAMBLE_BYTES, encode, identify};
use crate::socket::time_left;
use crate::{Role, Stream, StreamKey};

/// Openers that may be half-way through at once besides the streams that are expected, all of which may
/// arrive together. One more takes the place of the oldest of the host with the most.
const MAX_STRANGERS: usize = 64;
/// Callers that are let in before those who are in are looked at again.
const ROUND: usize = 8;
/// Time an opener has for its preamble.
const PREAMBLE_TIME: Duration = Duration::from_secs(5);
/// Data packets an opener may send before it has proved anything: a preamble and its repetitions.
const PREAMBLE_PACKETS: u64 = 64;
/// Time for the opener to confirm that its preamble was acknowledged; then the stream is given away unconfirmed.
const CONFIRM_TIME: Duration = Duration::from_secs(1);

/// Sends the preamble of `key` and waits until the other end has it.
pub(super) fn introduce(socket: &mut Socket, key: &StreamKey, deadline: Instant) -> Result<(), Failure> {
    let late = timed_out(format!("data stream to {}", socket.peer_addr()));
    if socket.send(&encode(key), deadline)? < PREAMBLE_BYTES {
        return Err(late);
    }
    socket.flush()?;
    while !socket.driver.connection.is_delivered() {
        let left = time_left(deadline).ok_or_else(|| late.clone())?;
        let moved = socket.driver.turn(&mut Reader::none())?;
        if let Some(closed) = socket.driver.closed() {
            return Err(socket.driver.failure(closed));
        }
        if moved == 0 {
            let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
            socket.driver.wait(time::now_ns() + left_ns.min(SLICE_NS))?;
        }
    }
    Ok(())
}

/// A port that waits for the streams of one session.
pub(super) struct Reception {
    listener: Listener,
    openers: Crowd<Opener>,
}

/// A connection that is not a stream yet.
struct Opener {
    socket: Socket,
    bytes: [u8; PREAMBLE_BYTES],
    filled: usize,
    since: Instant,
    /// Its stream, and since when that is known.
    proved: Option<(u16, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Complete(u16),
    Dead,
}

impl Reception {
    pub(super) fn bind(local: SocketAddr, spec: &RunSpec) -> Result<Self, Failure> {
        Ok(Self {
            listener: Listener::bind(local, &SocketOptions::of(spec))?,
            openers: Crowd::default(),
        })
    }

    fn take_connections(&mut self, places: usize) -> Result<(), Failure> {
        for _ in 0..ROUND {
            let openers = &mut self.openers;
            let mut make_room = || {
                if openers.len() >= places {
                    let is_stranger = |opener: &Opener| opener.proved.is_none();
                    let busiest = openers
                        .busiest()
                        .filter(|&index| openers.get(index).is_some_and(is_stranger));
                    let stranger = busiest.or_else(|| openers.iter().position(is_stranger));
                    openers.remove(stranger.unwrap_or(0));
                }
            };
            let Some(socket) = self.listener.next(&mut make_room)? else {
                break;
            };
            let from = socket.peer_addr().ip();
            let opener = Opener {
                socket,
                bytes: [0; PREAMBLE_BYTES],
                filled: 0,
                since: Instant::now(),
                proved: None,
            };
            self.openers.join(from, opener);
        }
        Ok(())
    }

    /// Drives all openers and drops the dead, the slow and the strangers.
    fn next_complete(&mut self, expected: &[StreamKey]) -> Option<(u16, Socket)> {
        let mut index = 0;
        while let Some(opener) = self.openers.get_mut(index) {
            match opener.advance(expected) {
                Progress::Waiting => index += 1,
                Progress::Dead => drop(self.openers.remove(index)),
                Progress::Complete(stream) => return Some((stream, self.openers.remove(index).socket)),
            }
        }
        None
    }

    /// Waits for a caller, a datagram to an opener or a time at which one has something to do.
    fn wait(&self, deadline: Instant) -> Result<(), Failure> {
        let left = time_left(deadline).ok_or_else(|| self.listener.timed_out("data port"))?;
        let mut fds = self.listener.fds().to_vec();
        let now_ns = time::now_ns();
        let mut patience = left.min(crate::socket::SLICE);
        for opener in self.openers.iter() {
            let driver = &opener.socket.driver;
            fds.extend([driver.member.fd(), driver.member.inbox.waker.as_fd()]);
            let due_ns = driver.connection.next_timeout().unwrap_or(u64::MAX);
            patience = patience.min(Duration::from_nanos(due_ns.saturating_sub(now_ns)));
        }
        poll_readable(&fds, Some(patience))
            .map(drop)
            .map_err(|error| Failure::system("waiting for data streams", &error))
    }
}

impl Opener {
    fn advance(&mut self, expected: &[StreamKey]) -> Progress {
        self.socket.driver.member.inbox.waker.drain();
        let is_broken = self.socket.driver.turn(&mut Reader::none()).is_err();
        let progress = if self.proved.is_none() {
            self.read_preamble(expected)
        } else {
            Progress::Waiting
        };
        let is_over = is_broken || self.socket.driver.closed().is_some();
        let Some((stream, since)) = self.proved.filter(|_| progress != Progress::Dead) else {
            return if is_over { Progress::Dead } else { progress };
        };
        // The round trip is measured by the confirmation of an ACK: there is no other ACK than the preamble's. Whether
        // an opener that has gone again opened a stream is for the run to say.
        let is_confirmed = self.socket.statistics().min_rtt_ns > 0 || since.elapsed() >= CONFIRM_TIME;
        if (is_confirmed || is_over) && expected.iter().any(|key| key.stream == stream) {
            return Progress::Complete(stream);
        }
        if self.since.elapsed() >= 2 * PREAMBLE_TIME {
            return Progress::Dead;
        }
        Progress::Waiting
    }

    fn read_preamble(&mut self, expected: &[StreamKey]) -> Progress {
        // Never more than the preamble: what follows belongs to the stream.
        let connection = &mut self.socket.driver.connection;
        self.filled += connection.read(time::now_ns(), &mut self.bytes[self.filled..]);
        if self.filled < PREAMBLE_BYTES {
            let is_late = self.since.elapsed() >= PREAMBLE_TIME;
            let is_noisy = self.socket.statistics().received_packets > PREAMBLE_PACKETS;
            return if is_late || is_noisy {
                Progress::Dead
            } else {
                Progress::Waiting
            };
        }
        let Some(key) = identify(&self.bytes, expected) else {
            return Progress::Dead;
        };
        self.proved = Some((key.stream, Instant::now()));
        Progress::Waiting
    }
}

impl crate::Listener for Reception {
    fn local_addr(&self) -> SocketAddr {
        self.listener.local_addr()
    }

    fn accept(
        &mut self,
        spec: &RunSpec,
        expected: &[StreamKey],
        role_of: &dyn Fn(u16) -> Role,
        deadline: Instant,
    ) -> Result<(u16, Stream), Failure> {
        let (number, socket) = loop {
            self.take_connections(MAX_STRANGERS + expected.len())?;
            if let Some(complete) = self.next_complete(expected) {
                break complete;
            }
            self.wait(deadline)?;
        };
        let stream = UdtStream::open(socket, spec, role_of(number), number)?;
        Ok((number, stream))
    }
}
