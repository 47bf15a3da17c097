//! Samples as columns: one row per stream, end and interval.
//!
//! Every column is a list of 64-bit integers with its unit in its name; −1
//! means "not known here" (no TCP_INFO on a null stream, say). Counters are
//! differences over the interval, gauges are values at its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One column of [`Samples`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleColumn {
    /// Name, with the unit as its last word.
    pub name: &'static str,
    /// What it holds.
    pub meaning: &'static str,
}

macro_rules! samples {
    (
        $(#[doc = $title:literal])+ $table:ident, $columns:ident:
        $($(#[doc = $meaning:literal])+ $name:ident),+ $(,)?
    ) => {
        $(#[doc = $title])+
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $table {
            $($(#[doc = $meaning])+ pub $name: Vec<i64>,)+
        }

        /// Names and meanings, in the order of the columns.
        pub const $columns: &[SampleColumn] = &[
            $(SampleColumn { name: stringify!($name), meaning: concat!($($meaning),+) },)+
        ];

        impl $table {
            /// The columns with their names, in order.
            pub fn columns(&self) -> Vec<(&'static str, &[i64])> {
                vec![$((stringify!($name), self.$name.as_slice()),)+]
            }

            /// Number of rows.
            pub fn len(&self) -> usize {
                self.columns().first().map_or(0, |(_, values)| values.len())
            }

            /// Whether there is no row.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Whether all columns have the same length, which a peer may get wrong.
            pub fn is_rectangular(&self) -> bool {
                self.columns()
                    .iter()
                    .all(|(_, values)| values.len() == self.len())
            }

            /// Moves all rows of `other` behind the rows of this one.
            pub fn append(&mut self, other: &mut Self) {
                $(self.$name.append(&mut other.$name);)+
            }

            /// Cuts the columns at row `at` and gives what lay behind it.
            ///
            /// # Panics
            /// When a column has fewer than `at` rows.
            pub fn split_off(&mut self, at: usize) -> Self {
                Self { $($name: self.$name.split_off(at),)+ }
            }
        }
    };
}

samples! {
    /// Interval samples of one end, as columns of equal length.
    Samples, SAMPLE_COLUMNS:
    /// Which end took the sample: 0 client, 1 server.
    end,
    /// Number of the stream, from 0.
    stream,
    /// What this end does on the stream: 0 sends, 1 receives.
    role,
    /// Start of the interval in microseconds since this end started the run.
    start_us,
    /// End of the interval in microseconds since this end started the run.
    end_us,
    /// Payload bytes sent or received in the interval.
    bytes,
    /// Datagrams sent or received in the interval.
    packets,
    /// Datagrams found missing in the interval; negative where late ones filled gaps counted before.
    lost_packets,
    /// Datagrams that came after a later one.
    reordered_packets,
    /// Datagrams that came twice.
    duplicate_packets,
    /// Jitter at the end of the interval, in nanoseconds (RFC 3550, section 6.4.1).
    jitter_ns,
    /// Segments sent again in the interval.
    retransmits,
    /// Smoothed round-trip time at the end of the interval.
    rtt_us,
    /// Mean deviation of the round-trip time.
    rttvar_us,
    /// Congestion window.
    cwnd_bytes,
    /// Window the receiver offers.
    receive_window_bytes,
    /// Rate the kernel paces at.
    pacing_rate_bps,
    /// Rate the kernel saw delivered.
    delivery_rate_bps,
    /// Time in the interval in which there was data to send.
    busy_us,
    /// Time in the interval held back by the receiver's window.
    receive_window_limited_us,
    /// Time in the interval held back by the send buffer.
    send_buffer_limited_us,
    /// Time in the interval held back by the congestion window: busy and neither of the other two.
    cwnd_limited_us,
    /// Path MTU that the kernel uses.
    path_mtu_bytes,
    /// CPU time of this end's thread of the stream in the interval.
    thread_cpu_us,
    /// Time in the interval in which this end's thread of the stream could have run but had no CPU.
    thread_wait_us,
    /// CPU time of this end's whole process in the interval.
    process_cpu_us,
    /// Bytes sent with MSG_ZEROCOPY whose completion says that the kernel copied them after all.
    zerocopy_copied_bytes,
    /// Times the sender waited for its own pacing or found it was late, in microseconds of wait.
    paced_wait_us,
    /// Acknowledgements sent in the interval, light ones left out (UDT).
    sent_acks,
    /// Acknowledgements received in the interval, light ones left out (UDT).
    received_acks,
    /// Reports of losses sent in the interval (UDT).
    sent_naks,
    /// Reports of losses received in the interval (UDT).
    received_naks,
    /// Time between two packets that the congestion control asks for; 0 is without pacing (UDT).
    send_period_ns,
    /// Packets that the other end's buffer and both ends' flow windows allow under way (UDT).
    flow_window_packets,
    /// Packets under way (UDT).
    flight_packets,
    /// Capacity of the path as the receiver estimates it from packet pairs (UDT).
    link_capacity_bps,
    /// Bytes free in the send buffer (UDT).
    send_buffer_free_bytes,
    /// Bytes free in the receive buffer (UDT).
    receive_buffer_free_bytes,
}

samples! {
    /// Interval samples of the links of an emulated path, as columns of equal length.
    LinkSamples, LINK_SAMPLE_COLUMNS:
    /// Number of the link in its topology, from 0.
    link,
    /// Direction: 0 from `a` to `b`, 1 back.
    direction,
    /// Start of the interval in microseconds since the emulator started.
    start_us,
    /// End of the interval in microseconds since the emulator started.
    end_us,
    /// Packets that came to the link in the interval.
    in_packets,
    /// Bytes on the wire of the packets that came.
    in_bytes,
    /// Packets that arrived at the link's far end in the interval.
    out_packets,
    /// Bytes on the wire of the packets that arrived.
    out_bytes,
    /// Packets dropped because the queue was full.
    tail_drop_packets,
    /// Packets dropped by CoDel.
    codel_drop_packets,
    /// Packets lost on the wire as ordered: random, in bursts or chosen.
    loss_packets,
    /// Packets lost because the link was cut.
    cut_packets,
    /// Packets larger than the link's MTU.
    mtu_drop_packets,
    /// Packets marked with congestion experienced (CE).
    ecn_marked_packets,
    /// Packets with a bit turned over.
    corrupted_packets,
    /// Packets that arrive a second time.
    duplicated_packets,
    /// Packets made late on purpose.
    reordered_packets,
    /// Bytes on the wire waiting in the queue at the end of the interval, the packet being sent included.
    backlog_bytes,
    /// Most of the same within the interval.
    backlog_max_bytes,
    /// Packets waiting, being sent or under way at the end of the interval.
    in_flight_packets,
    /// Rate on the wire at the end of the interval; 0 is without limit.
    rate_bps,
    /// Propagation delay at the end of the interval.
    delay_ns,
}

samples! {
    /// Interval samples of the files of a copy at one end, as columns of equal length. Times are sums over threads.
    MoverSamples, MOVER_SAMPLE_COLUMNS:
    /// Which end took the sample: 0 client, 1 server.
    end,
    /// What this end does: 0 sends files, 1 receives them.
    role,
    /// Start of the interval in microseconds since this end started the run.
    start_us,
    /// End of the interval in microseconds since this end started the run.
    end_us,
    /// Bytes read from files in the interval, or written to them.
    file_bytes,
    /// Payload bytes sent or received in the interval.
    moved_bytes,
    /// Names settled in the interval.
    settled_files,
    /// Time in the interval in reading or writing files.
    file_us,
    /// Time in the interval in opening, naming and closing files.
    name_us,
    /// Time in the interval in hashing.
    hash_us,
    /// Time in the interval in sealing or opening frames.
    cipher_us,
    /// Time in the interval in sending or receiving.
    stream_us,
    /// Time in the interval in bringing data to the device.
    sync_us,
    /// Time in the interval in which streams had nothing to send, or nowhere to put what came.
    starved_us,
    /// Frames that wait between files and streams at the end of the interval.
    queued_frames,
    /// Rate that the sender holds itself to at the end of the interval; -1 where it does not.
    held_rate_bps,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_explained() {
        let mut names: Vec<_> = SAMPLE_COLUMNS.iter().map(|column| column.name).collect();
        assert!(
            SAMPLE_COLUMNS
                .iter()
                .all(|column| !column.meaning.trim().is_empty())
        );
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SAMPLE_COLUMNS.len());
    }

    #[test]
    fn appending_keeps_columns_equally_long() {
        let row = || Samples {
            end: vec![0],
            ..Samples::default()
        };
        assert!(!row().is_rectangular());
        let mut whole = Samples::default();
        whole.append(&mut Samples::default());
        assert!(whole.is_rectangular() && whole.is_empty());
    }
}
