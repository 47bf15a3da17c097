//! Measures, before the first blast, whether the path is the stream's own: pings, then short trains at the stated rate.
//!
//! What it does: runs both ends of the check over the stream's own connection and socket, in a bounded time, and gives both
//! ends the same [`PathCheck`]. What the figures mean is decided in [`farline_proto::rbudp::train`].
//! What it must not do: decide whether the stream goes on; leave a byte on the connection; keep what a peer sends beyond what
//! a check needs.
//!
//! ```text
//! sender                                                    receiver
//!                                      ◄── TCP ──    READY {rate, packet}    arrivals are noted from here on
//!   20 pings, one each 10 ms           ── UDP ──►
//!                                      ◄── UDP ──    a pong each, with the time the receiver kept it
//!   3 to 6 trains, pauses between      ── UDP ──►    number and time of arrival
//!   SENT {round trips, bursts' times}  ── TCP ──►
//!                                      ◄── TCP ──    RESULT {PathCheck}
//! ```
//!
//! Pings are datagrams, not bytes on the connection: one that is lost is missing and not 200 ms late, they take the way of
//! the data, and the kernel's times leave out how long either host took to look. What comes late of all this is foreign to
//! the stream's receiver and ignored there.
//!
//! Start with [`measure`]; [`frame`] and [`datagram`] are the wire, [`sender`] (with [`outbox`]) and [`receiver`] the two ends.

mod datagram;
mod frame;
mod outbox;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::Instant;

use farline_proto::rbudp::train::TrainPlan;
use farline_spec::{Failure, PathCheck};
use socket2::Socket;
use tracing::debug;

use crate::Role;

/// What both ends know before a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CheckPlan {
    /// Payload rate of the blasts, over all streams of the direction; 0 is without limit, and then no trains are sent.
    pub(super) rate_bps: u64,
    /// UDP payload of one datagram, header included.
    pub(super) packet_bytes: usize,
    /// Marks the stream's datagrams.
    pub(super) token: u32,
    /// Round-trip time as far as it is known; 0 if not.
    pub(super) rtt_hint_us: u64,
}

impl CheckPlan {
    /// How the trains are laid out; `None` where there are none.
    fn train(&self) -> Option<TrainPlan> {
        TrainPlan::new(self.rate_bps, self.packet_bytes)
    }
}

/// Measures the path from the sender to the receiver of a stream; runs at both ends at the end of its opening, and takes
/// about 1.2 s and 8 round-trip times at most where TCP loses nothing.
///
/// `feedback` blocks, before and after; `udp` is connected. Nobody else reads either meanwhile.
///
/// # Errors
/// `Timeout` when `deadline` passes first, `Protocol` for a peer that closes, has another plan or says what cannot be,
/// `Spec` when packets exceed the path's MTU, else the kernel's.
pub(super) fn measure(
    feedback: &mut TcpStream,
    udp: &Socket,
    role: Role,
    plan: &CheckPlan,
    deadline: Instant,
) -> Result<PathCheck, Failure> {
    let failed = |error| Failure::system("path check", &error);
    feedback.set_nonblocking(true).map_err(failed)?;
    farline_sys::datagram::note_arrivals(udp.as_fd()).map_err(failed)?;
    let measured = match role {
        Role::Sender => sender::run(feedback, udp, plan, deadline),
        Role::Receiver => receiver::run(feedback, udp, plan, deadline),
    };
    // A blast has no use for the times, which cost a control message for each receive.
    farline_sys::datagram::forget_arrivals(udp.as_fd()).map_err(failed)?;
    feedback.set_nonblocking(false).map_err(failed)?;
    match &measured {
        Ok(check) => debug!(check = ?check, "path checked"),
        Err(failure) => debug!(reason = failure.message, "path not checked"),
    }
    measured
}

/// The clock that the kernel notes arrivals by, in ns.
fn clock_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
