//! What the engine counts beside the links.

use super::wait::Priority;

/// What the engine counts beside the links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets to destinations outside the topology: router solicitations, multicast and the like.
    pub ignored_packets: u64,
    /// Packets between ports that no path joins.
    pub pathless_packets: u64,
    /// Packets that could not be read as such.
    pub malformed_packets: u64,
    /// Packets (super-packets counted once) that went into a link.
    pub sent_packets: u64,
    /// The same on the wire: every segment of a super-packet counts.
    pub sent_segments: u64,
    /// Packets that were to have a bit turned over and had none that could be.
    pub unhit_packets: u64,
    /// Packets for which there was no memory.
    pub arena_drops: u64,
    /// Packets that a host's device did not take.
    pub write_drops: u64,
    /// "Packet too big" and "fragmentation needed" messages sent.
    pub too_big_sent: u64,
    /// The same, not sent because too many were due.
    pub too_big_suppressed: u64,
    /// Time spent in turns and waits that took far too long.
    pub stalled_ns: u64,
    /// How much earlier than needed the engine asks to be woken now.
    pub lead_ns: u64,
    /// How the scheduler treats the engine.
    pub priority: Priority,
}

/// Packets (super-packets counted once) between the engine and one port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortTraffic {
    /// Read from the device.
    pub read_packets: u64,
    /// Written to the device, and taken by it.
    pub written_packets: u64,
}
