//! Reliable Blast UDP (He et al. 2002): a payload at a stated rate, repeated until nothing of it is missing.
//!
//! What it does: both ends of a stream of blasts. The [`Sender`] says which packets go now and when a DONE is due; the
//! [`Receiver`] keeps account of what came, answers each DONE with what is missing, and says which blast is whole.
//! What it must not do: see `lib.rs`; and no byte of the payload passes through here, only numbers of packets, so
//! that the driver can send from and receive into the memory or the file where the payload lives.
//!
//! ```text
//!  give ─► Sender ─next_burst─► headers + payload ─── UDP ──► look, note ─► Receiver ─poll_whole─► the application
//!            │ poll_mark ───────── DONE, k copies ── UDP ──► handle_done          │ release
//!            │ poll_message ────── DONE, END ─────── TCP ──► handle_message       │
//!          handle_message ◄─────────── TCP ── MISSING, WHOLE, END-SEEN ◄── poll_message
//! ```
//!
//! Blasts are numbered from 0 and never wrap; so are the packets of a blast and, from 1, its reports. Both ends keep
//! slots for `in_flight` blasts, slot `blast % in_flight`. Statements and timers: `docs/design/rbudp.md`.
//!
//! Call order at the sender: payload is given ([`Sender::give`], at most [`Sender::room`]) before it is sent; then
//! [`Sender::next_burst`], what the kernel did not take goes back with [`Sender::not_sent`] before any other call, hashes of what
//! went are added with [`Sender::add_hashes`]; then [`Sender::poll_mark`] until `None`, then [`Sender::poll_message`] until `None`.
//! After each message of the other end and at [`Sender::poll_timeout`] the same from `next_burst` on. It is over when
//! [`Sender::is_finished`], which needs [`Sender::finish`].
//!
//! Call order at the receiver: [`Receiver::look`], the packet is put in place, [`Receiver::note`], in this order for each; a packet
//! that is not fresh is not put anywhere. After a DONE, a message or [`Receiver::poll_timeout`]: [`Receiver::poll_whole`] until
//! `None`, [`Receiver::release`] for each blast when its bytes are out of the way, [`Receiver::poll_message`] until `None`. A blast
//! that is not released holds the sender up. Times of both are nanoseconds of one monotonic clock and never go back.
//!
//! Start with [`wire`], then [`Sender`].

mod adapt;
mod bits;
mod generations;
mod packet_set;
mod receiver;
mod sender;
pub mod train;
pub mod wire;

pub use packet_set::PacketSet;
pub use receiver::{Arrival, Receiver, ReceiverOptions, ReceiverStatistics};
pub use sender::{Burst, Sender, SenderOptions, SenderStatistics};

/// What the other end said cannot be: one line, what is wrong and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Violation(pub String);

/// Least and most time that a receiver waits before it answers a DONE.
const SETTLE_NS: std::ops::RangeInclusive<u64> = 200_000..=50_000_000;

/// How long a receiver waits for overtaken packets before it answers a DONE: an eighth of the round-trip time, 0.2 to 50 ms.
pub fn settle_ns(rtt_ns: u64) -> u64 {
    (rtt_ns / 8).clamp(*SETTLE_NS.start(), *SETTLE_NS.end())
}

/// Packets of a blast of `bytes` in packets of `packet_bytes`, all of one size but the last.
fn packet_count(bytes: u64, packet_bytes: usize) -> u32 {
    let count = bytes.div_ceil(packet_bytes as u64);
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
