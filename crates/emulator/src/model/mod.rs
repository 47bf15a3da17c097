//! The model of links: decides what happens to every packet, and when. Pure and integer; time is an argument.
//!
//! What it must not do: look at a clock, know what is inside a packet, keep what has arrived. Floating point appears only
//! where options are read.
//!
//! In: trains of packets from port to port ([`Network::send`]), the passing of time ([`Network::advance`]), changes to
//! links. Out: arrivals in order of time, counters, reports of packets that were too big, copies of watched traffic.
//!
//! A packet meets, in every pipe on its path:
//!
//! ```text
//! MTU ─► queue ────────────► wire ─────────► fate ─────────────────► distance ─► far end
//!        tail drop, CoDel,   rate, framing   loss, bursts, chosen,   delay, jitter,
//!        marks               (`line`)        corruption, copies      late ones
//!        (`admission`)                       (`fate`, `draw`)        (`distance`)
//! ```
//!
//! Packets are decided on one by one, but travel as trains: a run of segments stays together until their fates differ, so
//! that 10 Gb/s of super-packets costs little more than one packet each. Each segment has its own instant (`transit`).
//! A cut loses what is on the wire, under way or coming; what waits in the queue stays.
//!
//! Fates are functions of seed, pipe, packet number and purpose, so that neither timing nor other links change them.
//! Start with [`Network`], then `pipe` (queue and events) and `wire` (sending and fates).

mod admission;
mod agenda;
mod capacity;
mod codel;
mod counters;
mod distance;
mod draw;
mod fate;
mod jitter;
mod line;
mod network;
mod outbox;
mod pipe;
mod queue;
mod schedule;
mod settings;
mod train;
mod transit;
mod wire;

pub use counters::{PipeCounters, PipeState};
pub use network::{Arrival, Network};
pub use outbox::{TooBig, Watched};
pub use settings::framing_bytes;
pub use train::{Corruption, Train};
