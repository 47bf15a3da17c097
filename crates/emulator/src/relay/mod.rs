//! The relay: runs the model of links in real time, between real hosts on one machine.
//!
//! What it does: makes the hosts of a topology (network namespaces with a TUN device for each port), reads what they
//! send, asks [`crate::model`] what becomes of it, and hands over what has arrived when it is due. Samples every link
//! at equal intervals, writes captures, and says over any interval how far the emulation can be trusted.
//! What it must not do: decide a packet's fate, which is the model's, or look into packets, which is
//! [`crate::packet`]'s work.
//!
//! In: a topology, then changes to it. Out: packets on time, [`farline_spec::LinkSamples`], counters,
//! [`farline_spec::ValidityStamp`]s, pcap files.
//!
//! Two threads. The *engine* owns devices, model and packets; it does no file access and answers requests between
//! two turns. The *control* thread samples and writes captures. When the engine ends before it was told to, every
//! later call gives its failure, and the hosts' devices are gone, so that no program in a host waits for ever.
//! Nothing has a name in the file system: namespaces and devices exist as open files of this process alone.
//!
//! Start with [`Emulator`] (`handle`), then `engine` (a turn), `outlet` (handing over), `wait`, `stamp`.

mod account;
mod capture;
mod command;
mod control;
mod engine;
mod handle;
mod hosts;
mod lateness;
mod memory;
mod outlet;
mod paths;
mod request;
mod stamp;
mod start;
mod tap;
#[cfg(test)]
mod testing;
mod too_big;
mod traffic;
mod wait;

pub use account::Totals;
pub use capture::CaptureEnd;
pub use handle::Emulator;
pub use hosts::NamespacePaths;
pub use lateness::Lateness;
pub use paths::PathFacts;
pub use request::{PipeReport, Report};
pub use start::RelayOptions;
pub use traffic::{PortTraffic, Traffic};
pub use wait::Priority;
