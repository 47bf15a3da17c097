//! Opening a stream of datagrams, each of which may be lost.
//!
//! The opener repeats its hello until it is welcomed. The listener repeats its welcome until the opener
//! confirms, for once it has given the stream away nobody reads there until the run begins. The opener
//! confirms up to five times unless it is told that one was enough: one in five is all that has to arrive,
//! and no message has to be the last.

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_spec::Failure;
use farline_sys::datagram;
use farline_sys::wake::poll_readable;
use socket2::Socket;

use super::header::{Kind, Token, bare, parse};
use crate::StreamKey;
use crate::failure::{is_slice, timed_out, while_connecting};
use crate::preamble::{PREAMBLE_BYTES, encode, identify};
use crate::socket::time_left;

/// Time between two hellos at first; it doubles up to [`SLOWEST`].
const FASTEST: Duration = Duration::from_millis(25);
const SLOWEST: Duration = Duration::from_millis(400);
/// Time between two confirmations, and how many there are.
const CONFIRM_EVERY: Duration = Duration::from_millis(20);
const CONFIRMATIONS: usize = 5;

/// What a datagram means to one who waits in a handshake or reads an open stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// The opener's hello, once more.
    Hello,
    /// A datagram of the stream.
    Of(Kind),
}

/// Reads `datagram` as one of the stream of `key`.
pub(super) fn sign_of(datagram: &[u8], key: &StreamKey, token: Token) -> Option<Sign> {
    if let Some(header) = parse(datagram, token) {
        return Some(Sign::Of(header.kind));
    }
    let hello: &[u8; PREAMBLE_BYTES] = datagram.try_into().ok()?;
    identify(hello, std::slice::from_ref(key)).map(|_| Sign::Hello)
}

/// Sends a datagram without payload. One that is lost here is as one lost on the way.
pub(super) fn tell(socket: &Socket, key: &StreamKey, token: Token, kind: Kind, sequence: u64) {
    let _ = datagram::send(socket.as_fd(), &bare(token, key.stream, kind, sequence));
}

/// Opens the stream of `key` on a connected socket.
pub(super) fn open(
    socket: &Socket,
    key: &StreamKey,
    remote: SocketAddr,
    deadline: Instant,
) -> Result<(), Failure> {
    let token = Token::of(key);
    let mut every = FASTEST;
    loop {
        let left = time_left(deadline).ok_or_else(|| timed_out(format!("data stream to {remote}")))?;
        socket
            .send(&encode(key))
            .map_err(|error| while_connecting(remote, &error))?;
        if wait_for(socket, key, token, Kind::Welcome, remote, every.min(left))? {
            break;
        }
        every = (every * 2).min(SLOWEST);
    }
    confirm(socket, key, token, remote)
}

fn confirm(socket: &Socket, key: &StreamKey, token: Token, remote: SocketAddr) -> Result<(), Failure> {
    for _ in 0..CONFIRMATIONS {
        tell(socket, key, token, Kind::Confirm, 0);
        if wait_for(socket, key, token, Kind::Confirmed, remote, CONFIRM_EVERY)? {
            break;
        }
    }
    Ok(())
}

/// Whether a datagram of `kind` comes within `time`.
fn wait_for(
    socket: &Socket,
    key: &StreamKey,
    token: Token,
    kind: Kind,
    remote: SocketAddr,
    time: Duration,
) -> Result<bool, Failure> {
    let failed = |error| while_connecting(remote, &error);
    let until = Instant::now() + time;
    while let Some(left) = time_left(until) {
        if !poll_readable(&[socket.as_fd()], Some(left)).map_err(failed)?[0] {
            return Ok(false);
        }
        match read_sign(socket, key, token) {
            Ok(Some(Sign::Of(found))) if found == kind => return Ok(true),
            Ok(_) => {}
            Err(error) if is_slice(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(false)
}

/// Reads one datagram; longer ones are none of a handshake and are cut.
pub(super) fn read_sign(socket: &Socket, key: &StreamKey, token: Token) -> std::io::Result<Option<Sign>> {
    let mut buffer = [0; 2 * PREAMBLE_BYTES];
    let batch = datagram::receive_batch(socket.as_fd(), &mut buffer)?;
    let first = batch.bytes.min(batch.segment_bytes).min(buffer.len());
    Ok(sign_of(&buffer[..first], key, token))
}
