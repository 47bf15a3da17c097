//! What a stream counts and measures, as samples have it.

/// Counters (from the start of the stream) and gauges of one end of a stream.
///
/// −1 is "not known here". Names, units and meanings are those of
/// [`farline_spec::Samples`]; times limited are cumulative here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each field is explained at the column of the same name"
)]
pub struct Counters {
    pub bytes: i64,
    pub blocks: i64,
    pub packets: i64,
    pub lost_packets: i64,
    pub reordered_packets: i64,
    pub duplicate_packets: i64,
    pub jitter_ns: i64,
    pub retransmits: i64,
    pub rtt_us: i64,
    pub rttvar_us: i64,
    pub min_rtt_us: i64,
    pub cwnd_bytes: i64,
    pub receive_window_bytes: i64,
    pub pacing_rate_bps: i64,
    pub delivery_rate_bps: i64,
    pub busy_us: i64,
    pub receive_window_limited_us: i64,
    pub send_buffer_limited_us: i64,
    pub path_mtu_bytes: i64,
    pub zerocopy_copied_bytes: i64,
    pub zerocopy_true_bytes: i64,
    pub paced_wait_us: i64,
    pub sent_acks: i64,
    pub received_acks: i64,
    pub sent_naks: i64,
    pub received_naks: i64,
    pub send_period_ns: i64,
    pub flow_window_packets: i64,
    pub flight_packets: i64,
    pub link_capacity_bps: i64,
    pub send_buffer_free_bytes: i64,
    pub receive_buffer_free_bytes: i64,
    /// Bytes given to the transport that the other end has not acknowledged; no column of samples.
    pub unacknowledged_bytes: i64,
}

impl Counters {
    /// Nothing known.
    pub const UNKNOWN: Self = Self {
        bytes: -1,
        blocks: -1,
        packets: -1,
        lost_packets: -1,
        reordered_packets: -1,
        duplicate_packets: -1,
        jitter_ns: -1,
        retransmits: -1,
        rtt_us: -1,
        rttvar_us: -1,
        min_rtt_us: -1,
        cwnd_bytes: -1,
        receive_window_bytes: -1,
        pacing_rate_bps: -1,
        delivery_rate_bps: -1,
        busy_us: -1,
        receive_window_limited_us: -1,
        send_buffer_limited_us: -1,
        path_mtu_bytes: -1,
        zerocopy_copied_bytes: -1,
        zerocopy_true_bytes: -1,
        paced_wait_us: -1,
        sent_acks: -1,
        received_acks: -1,
        sent_naks: -1,
        received_naks: -1,
        send_period_ns: -1,
        flow_window_packets: -1,
        flight_packets: -1,
        link_capacity_bps: -1,
        send_buffer_free_bytes: -1,
        receive_buffer_free_bytes: -1,
        unacknowledged_bytes: -1,
    };
}
