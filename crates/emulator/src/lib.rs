//! Emulated paths: a pure model of links, and the relay that runs it in real time between hosts on one machine.
//!
//! What it does: takes a [`farline_spec::Topology`], gives its hosts addresses and routes ([`layout`]), decides the
//! fate and the time of every packet ([`model`]), and carries real packets between network namespaces accordingly
//! ([`relay`], with [`packet`] for what is inside them).
//! What it must not do: know transports or sessions; let the wall clock into `layout`, `model` or `packet`.
//!
//! In: a topology and changes to it. Out: packets on time, counters and samples per link, a stamp that says how far
//! the emulation could be trusted. Every byte counted on a link is a byte on the wire, framing included.
//!
//! Start with [`model`], which is the definition of what a link does; the simulator runs the same code in virtual time.

pub mod layout;
pub mod model;
pub mod packet;
pub mod relay;
pub mod storage;
