//! Protocol machines over emulated links in virtual time: hours in seconds, the same figures on every machine.
//!
//! What it does: owns a [`farline_emulator::model::Network`] and the machines at its hosts ([`World`]), takes time from
//! event to event, samples both, and checks at every stop that no packet is unaccounted for. It brings machines of its
//! own: a [`datagram`] source and sink, and a window-based [`tcp`] reference flow with five congestion controls.
//! What it must not do: read a clock, open a socket, draw a random number that does not follow from a seed, or know
//! anything of the link model that its door does not say. It is for tests; nothing that ships depends on it.
//!
//! In: a [`farline_spec::Topology`] (see [`scenario`] for ready ones) and machines that implement [`Endpoint`]. Out: the
//! machines as they ended, samples over time, counters per pipe; [`table`] makes text of them, [`formula`] says what
//! theory expects, with its source.
//!
//! A new protocol implements [`Endpoint`] and needs no change here; two kinds share a world through [`Either`].
//!
//! Copies have a disk beside the network, and one trial instead of a world: [`copy`].
//!
//! Start with [`Endpoint`], then [`World`], then `tests/tables/` for how a question becomes a table.
//! What is compared with what, and what the machines leave out: `docs/design/simulator.md`.

pub mod copy;
pub mod datagram;
mod endpoint;
pub mod formula;
mod random;
pub mod rbudp;
mod sample;
pub mod scenario;
pub mod table;
pub mod tcp;
pub mod udt;
mod world;

pub use endpoint::{Either, Endpoint, EndpointId, Gauges, Received, Transmit};
pub use random::Random;
pub use sample::{PipeSample, Samples};
pub use world::World;

/// Nanoseconds in a second.
pub const NS_PER_S: u64 = 1_000_000_000;

/// Seconds as nanoseconds, to the nearest.
pub fn ns(seconds: f64) -> u64 {
    (seconds * NS_PER_S as f64).round() as u64
}

/// Nanoseconds as seconds.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / NS_PER_S as f64
}
