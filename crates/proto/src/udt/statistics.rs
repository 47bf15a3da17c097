//! What a connection counts: the figures of the reference library's `perfmon`, in farline's words and units.

/// Figures of one connection. Counters run from its opening; gauges are of the instant.
///
/// `docs/guide/udt-statistics.md` says which of them has which name in the reference library.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Statistics {
    /// Payload bytes given to the application.
    pub delivered_bytes: u64,
    /// Data packets sent, repeated ones included.
    pub sent_packets: u64,
    /// Data packets received, repeated ones included.
    pub received_packets: u64,
    /// Data packets that the other end reported lost, or that were taken for lost.
    pub send_lost_packets: u64,
    /// Data packets found missing here.
    pub receive_lost_packets: u64,
    /// Data packets sent again.
    pub repeated_packets: u64,
    /// Data packets received that were there already.
    pub duplicate_packets: u64,
    /// Data packets that came after a later one and were not yet there.
    pub reordered_packets: u64,
    /// Acknowledgements sent, light ones left out.
    pub sent_acks: u64,
    /// Acknowledgements received, light ones left out.
    pub received_acks: u64,
    /// Reports of losses sent.
    pub sent_naks: u64,
    /// Reports of losses received.
    pub received_naks: u64,
    /// Datagrams that made no sense and were ignored.
    pub invalid_datagrams: u64,
    /// Time with something to send or under way.
    pub busy_ns: u64,
    /// Part of it in which the other end's window was the limit.
    pub receive_window_limited_ns: u64,
    /// Part of it in which the send buffer was full of packets under way.
    pub send_buffer_limited_ns: u64,
    /// Part of it in which the pacing was waited for.
    pub paced_wait_ns: u64,
    /// Time between two packets; 0 without pacing.
    pub send_period_ns: u64,
    /// Packets that the other end allows under way.
    pub flow_window_packets: u64,
    /// Packets that the congestion control allows under way.
    pub congestion_window_packets: u64,
    /// Packets under way.
    pub flight_packets: u64,
    /// Smoothed round-trip time.
    pub rtt_ns: u64,
    /// Mean deviation of it.
    pub rtt_variance_ns: u64,
    /// Least round-trip time seen.
    pub min_rtt_ns: u64,
    /// Latest delivery rate of this sender.
    pub delivery_pps: f64,
    /// Capacity of the path in packets per second as the receiver estimates it.
    pub link_capacity_pps: f64,
    /// Payload bytes that fit into the send buffer.
    pub send_buffer_free_bytes: u64,
    /// Payload bytes that fit into the receive buffer.
    pub receive_buffer_free_bytes: u64,
}
