//! UDT version 4: a reliable stream, or messages, over datagrams.
//!
//! What it does: the whole protocol of draft-gg-udt and of the reference library 4.11, on the wire the same as that,
//! except where a rule of it costs speed and no peer can tell (`docs/design/udt.md`).
//! What it must not do: see `lib.rs`.
//!
//! ```text
//!  application ─write─► send_buffer ─burst─► poll_transmit ─► datagrams
//!                          ▲ acknowledge, mark_lost     ▲ rate, window
//!                       connection ──────────────► congestion::Control
//!                          │ ACK, NAK, timers
//!  application ◄─read── receive_buffer ◄─insert── handle_datagrams ◄─ datagrams
//!                          gaps, estimate
//! ```
//!
//! Inside, packets have *indices*: `u64`, 0 for the first, never wrapping. Only `wire` knows that a sequence number
//! on the wire has 31 bits and starts anywhere. Open with [`handshake`], then give what was agreed on to
//! [`Connection`], which is the place to start reading.

pub mod congestion;
mod connection;
mod delivery;
mod estimate;
mod gaps;
pub mod handshake;
mod loss_list;
pub mod receive_buffer;
pub mod send_buffer;
mod statistics;
pub mod wire;

pub use connection::{Closed, Config, Connection, Reader, State, Transmit};
pub use receive_buffer::MessageRead;
pub use statistics::Statistics;
