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
    ($($(#[doc = $meaning:literal])+ $name:ident),+ $(,)?) => {
        /// Interval samples of one end, as columns of equal length.
        #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct Samples {
            $($(#[doc = $meaning])+ pub $name: Vec<i64>,)+
        }

        /// Names and meanings, in the order of the columns.
        pub const SAMPLE_COLUMNS: &[SampleColumn] = &[
            $(SampleColumn { name: stringify!($name), meaning: concat!($($meaning),+) },)+
        ];

        impl Samples {
            /// The columns with their names, in order.
            pub fn columns(&self) -> Vec<(&'static str, &[i64])> {
                vec![$((stringify!($name), self.$name.as_slice()),)+]
            }

            /// Moves all rows of `other` behind the rows of this one.
            pub fn append(&mut self, other: &mut Samples) {
                $(self.$name.append(&mut other.$name);)+
            }

            /// Cuts the columns at row `at` and gives what lay behind it.
            ///
            /// # Panics
            /// When a column has fewer than `at` rows.
            pub fn split_off(&mut self, at: usize) -> Samples {
                Samples { $($name: self.$name.split_off(at),)+ }
            }
        }
    };
}

samples! {
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
}

impl Samples {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.end.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.end.is_empty()
    }

    /// Whether all columns have the same length, which a peer may get wrong.
    pub fn is_rectangular(&self) -> bool {
        self.columns()
            .iter()
            .all(|(_, values)| values.len() == self.len())
    }
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
