//! Protocol machines without sockets, files or clocks.
//!
//! What it does: wire formats, protocol states, congestion control, pacing, loss lists. Packets and the time go in,
//! packets and the time of the next wake-up come out, so that the same machine runs on sockets (`farline-transport`)
//! and over the link model in virtual time (`farline-sim`).
//! What it must not do: open a socket or a file, look at a clock, sleep, draw a random number that was not given to it, start
//! a thread.
//!
//! In: datagrams as the kernel gives them, several of one size at once; bytes of the application. Out: datagrams,
//! several of one size at once, ready to be handed to the kernel in one call; bytes for the application. Every time
//! is nanoseconds (`u64`) of a monotonic clock of the caller's choice.
//!
//! Start with [`udt`] or [`rbudp`]; with [`copy`] for what carries files over any of them; with [`iperf3`] for other people's.

pub mod copy;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
pub mod iperf3;
pub mod pace;
pub mod rbudp;
pub mod udt;

pub use pace::Pacer;
