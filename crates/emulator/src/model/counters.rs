//! What a pipe tells about itself.

/// Packets and bytes on the wire since the start.
///
/// At every instant `in_packets = out_packets - duplicated + tail_drop + codel_drop + loss + cut + mtu_drop + in flight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeCounters {
    /// Packets that came to the pipe.
    pub in_packets: u64,
    /// Bytes on the wire of the packets that came.
    pub in_bytes: u64,
    /// Packets that arrived at the far end, those that arrive twice counted twice.
    pub out_packets: u64,
    /// Bytes on the wire of the packets that arrived.
    pub out_bytes: u64,
    /// Packets dropped because the queue was full.
    pub tail_drop_packets: u64,
    /// Packets dropped by CoDel.
    pub codel_drop_packets: u64,
    /// Packets lost on the wire as ordered.
    pub loss_packets: u64,
    /// Packets lost because the pipe was cut.
    pub cut_packets: u64,
    /// Packets larger than the MTU.
    pub mtu_drop_packets: u64,
    /// Packets newly marked with congestion experienced.
    pub ecn_marked_packets: u64,
    /// Packets with a bit turned over.
    pub corrupted_packets: u64,
    /// Extra copies made.
    pub duplicated_packets: u64,
    /// Packets made late on purpose.
    pub reordered_packets: u64,
}

impl PipeCounters {
    /// Packets that came and are neither out nor dropped: what must be in flight.
    pub fn unaccounted_packets(&self) -> i64 {
        let gone = self.out_packets
            + self.tail_drop_packets
            + self.codel_drop_packets
            + self.loss_packets
            + self.cut_packets
            + self.mtu_drop_packets;
        (self.in_packets + self.duplicated_packets) as i64 - gone as i64
    }
}

/// A pipe at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeState {
    /// Bytes on the wire that wait, what is left of the packet being sent included.
    pub backlog_bytes: u64,
    /// Packets waiting, being sent or under way.
    pub in_flight_packets: u64,
    /// Rate on the wire; 0 is without limit.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay_ns: u64,
}
