//! What is inside the packets that a TUN device gives and takes.
//!
//! What it does: reads a virtio-net header and the IP packet behind it ([`parse`]); says how many packets on the wire
//! that is and builds any run of them again, headers anew and payload by reference ([`Form::piece`]); works out
//! checksums that were left undone; marks congestion, turns bits over, answers packets that are too big, and writes
//! capture files.
//! What it must not do: read devices, know links, or decide a packet's fate.
//!
//! In: bytes as read, and numbers of segments. Out: header bytes and ranges, or whole packets in a buffer. No input
//! makes anything here panic; what cannot be carried is [`Malformed`], with the reason.
//!
//! A *super-packet* is one packet that stands for several on the wire, its *segments*: all have the same headers but
//! for lengths, numbers, flags and checksums, and all but the last carry the same number of payload bytes.
//!
//! Start with [`parse`] and [`Form`], then [`run`](Run).

mod checksum;
mod corrupt;
mod form;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod icmp;
mod malformed;
mod network;
mod parse;
pub mod pcap;
mod run;
mod segment;
mod vnet;

pub use corrupt::{Corruption, corrupt};
pub use form::{Form, Transport};
pub use icmp::too_big;
pub use malformed::Malformed;
pub use parse::{Parsed, parse};
pub use run::{Header, Piece, Run};
pub use segment::append_segment;
pub use vnet::VNET_BYTES;
