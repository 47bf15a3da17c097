//! Rows of samples: differences between two looks at a stream.

use farline_spec::{Samples, StreamRecord};
use farline_transport::Counters;

use crate::streams::End;

/// Rows of samples one run may keep: 27 columns of 8 bytes make this under 2 GiB.
pub(super) const MAX_ROWS: usize = 8_000_000;

/// One look at one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) counters: Counters,
    /// CPU time of the stream's thread.
    pub(super) cpu_us: i64,
    /// Time in which that thread could have run but had no CPU.
    pub(super) wait_us: i64,
}

/// What all rows of one interval have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interval {
    pub(super) end: End,
    pub(super) start_us: i64,
    pub(super) end_us: i64,
    pub(super) process_cpu_us: i64,
}

/// Which stream a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) stream: u16,
    /// 0 sends, 1 receives.
    pub(super) role: u8,
}

/// Difference of two counters; unknown if either is. Below zero where late datagrams fill gaps that
/// were counted before.
fn difference(before: i64, after: i64) -> i64 {
    if before < 0 || after < 0 {
        -1
    } else {
        after - before
    }
}

/// Time in which there was data to send and neither buffer nor receiver held it back.
fn cwnd_limited(before: &Counters, after: &Counters) -> i64 {
    let busy = difference(before.busy_us, after.busy_us);
    let window = difference(before.receive_window_limited_us, after.receive_window_limited_us);
    let buffer = difference(before.send_buffer_limited_us, after.send_buffer_limited_us);
    if busy < 0 || window < 0 || buffer < 0 {
        -1
    } else {
        (busy - window - buffer).max(0)
    }
}

/// Appends what happened on one stream between two looks.
pub(super) fn push(samples: &mut Samples, interval: &Interval, name: Name, before: &Look, after: &Look) {
    let (was, is) = (&before.counters, &after.counters);
    samples.end.push(interval.end.number().into());
    samples.stream.push(name.stream.into());
    samples.role.push(name.role.into());
    samples.start_us.push(interval.start_us);
    samples.end_us.push(interval.end_us);
    samples.bytes.push(difference(was.bytes, is.bytes));
    samples.packets.push(difference(was.packets, is.packets));
    samples
        .lost_packets
        .push(difference(was.lost_packets, is.lost_packets));
    samples
        .reordered_packets
        .push(difference(was.reordered_packets, is.reordered_packets));
    samples
        .duplicate_packets
        .push(difference(was.duplicate_packets, is.duplicate_packets));
    samples.jitter_ns.push(is.jitter_ns);
    samples
        .retransmits
        .push(difference(was.retransmits, is.retransmits));
    samples.rtt_us.push(is.rtt_us);
    samples.rttvar_us.push(is.rttvar_us);
    samples.cwnd_bytes.push(is.cwnd_bytes);
    samples.receive_window_bytes.push(is.receive_window_bytes);
    samples.pacing_rate_bps.push(is.pacing_rate_bps);
    samples.delivery_rate_bps.push(is.delivery_rate_bps);
    samples.busy_us.push(difference(was.busy_us, is.busy_us));
    let by_window = difference(was.receive_window_limited_us, is.receive_window_limited_us);
    samples.receive_window_limited_us.push(by_window);
    let by_buffer = difference(was.send_buffer_limited_us, is.send_buffer_limited_us);
    samples.send_buffer_limited_us.push(by_buffer);
    samples.cwnd_limited_us.push(cwnd_limited(was, is));
    samples.path_mtu_bytes.push(is.path_mtu_bytes);
    samples
        .thread_cpu_us
        .push(difference(before.cpu_us, after.cpu_us));
    samples
        .thread_wait_us
        .push(difference(before.wait_us, after.wait_us));
    samples.process_cpu_us.push(interval.process_cpu_us);
    samples
        .zerocopy_copied_bytes
        .push(difference(was.zerocopy_copied_bytes, is.zerocopy_copied_bytes));
    samples
        .paced_wait_us
        .push(difference(was.paced_wait_us, is.paced_wait_us));
    push_udt(samples, was, is);
}

fn push_udt(samples: &mut Samples, was: &Counters, is: &Counters) {
    samples.sent_acks.push(difference(was.sent_acks, is.sent_acks));
    samples
        .received_acks
        .push(difference(was.received_acks, is.received_acks));
    samples.sent_naks.push(difference(was.sent_naks, is.sent_naks));
    samples
        .received_naks
        .push(difference(was.received_naks, is.received_naks));
    samples.send_period_ns.push(is.send_period_ns);
    samples.flow_window_packets.push(is.flow_window_packets);
    samples.flight_packets.push(is.flight_packets);
    samples.link_capacity_bps.push(is.link_capacity_bps);
    samples.send_buffer_free_bytes.push(is.send_buffer_free_bytes);
    samples
        .receive_buffer_free_bytes
        .push(is.receive_buffer_free_bytes);
}

/// Totals of one stream between its first look and its last. What is not known counts as zero.
pub(super) fn totals(first: &Look, last: &Look) -> StreamRecord {
    let (was, is) = (&first.counters, &last.counters);
    let total = |before, after| u64::try_from(difference(before, after)).unwrap_or(0);
    let gauge = |value| u64::try_from(value).unwrap_or(0);
    StreamRecord {
        bytes: total(was.bytes, is.bytes),
        blocks: total(was.blocks, is.blocks),
        packets: total(was.packets, is.packets),
        lost_packets: total(was.lost_packets, is.lost_packets),
        reordered_packets: total(was.reordered_packets, is.reordered_packets),
        duplicate_packets: total(was.duplicate_packets, is.duplicate_packets),
        jitter_ns: gauge(is.jitter_ns),
        retransmits: total(was.retransmits, is.retransmits),
        zerocopy_copied_bytes: total(was.zerocopy_copied_bytes, is.zerocopy_copied_bytes),
        zerocopy_true_bytes: total(was.zerocopy_true_bytes, is.zerocopy_true_bytes),
        min_rtt_us: gauge(is.min_rtt_us),
        thread_cpu_us: total(first.cpu_us, last.cpu_us),
        thread_wait_us: total(first.wait_us, last.wait_us),
        ..StreamRecord::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Interval = Interval {
        end: End::Server,
        start_us: 5,
        end_us: 9,
        process_cpu_us: 3,
    };
    const NAME: Name = Name { stream: 7, role: 1 };

    fn look(counters: Counters) -> Look {
        Look {
            counters,
            cpu_us: 0,
            wait_us: -1,
        }
    }

    fn row(before: Counters, after: Counters) -> Samples {
        let mut samples = Samples::default();
        push(&mut samples, &INTERVAL, NAME, &look(before), &look(after));
        samples
    }

    #[test]
    fn every_column_gets_one_value() {
        let samples = row(Counters::UNKNOWN, Counters::UNKNOWN);
        assert!(samples.is_rectangular());
        assert_eq!((samples.end[0], samples.stream[0], samples.role[0]), (1, 7, 1));
        let known = [
            "end",
            "stream",
            "role",
            "start_us",
            "end_us",
            "thread_cpu_us",
            "process_cpu_us",
        ];
        for (name, values) in samples.columns() {
            assert_eq!(values[0] == -1, !known.contains(&name), "{name}");
        }
    }

    #[test]
    fn counters_are_differences_and_gauges_are_not() {
        let before = Counters {
            bytes: 100,
            rtt_us: 40,
            ..Counters::UNKNOWN
        };
        let after = Counters {
            bytes: 350,
            rtt_us: 30,
            ..Counters::UNKNOWN
        };
        let samples = row(before, after);
        assert_eq!((samples.bytes[0], samples.rtt_us[0]), (250, 30));
    }

    #[test]
    fn gaps_filled_late_make_loss_negative() {
        let before = Counters {
            lost_packets: 9,
            ..Counters::UNKNOWN
        };
        let after = Counters {
            lost_packets: 4,
            ..Counters::UNKNOWN
        };
        assert_eq!(row(before, after).lost_packets, [-5]);
    }

    #[test]
    fn cwnd_has_what_the_other_two_leave() {
        let busy = |busy_us, window_us, buffer_us| Counters {
            busy_us,
            receive_window_limited_us: window_us,
            send_buffer_limited_us: buffer_us,
            ..Counters::UNKNOWN
        };
        assert_eq!(row(busy(0, 0, 0), busy(100, 30, 20)).cwnd_limited_us, [50]);
        assert_eq!(row(busy(0, 0, 0), busy(100, 80, 30)).cwnd_limited_us, [0]);
        assert_eq!(row(Counters::UNKNOWN, busy(100, 30, 20)).cwnd_limited_us, [-1]);
    }

    #[test]
    fn unknown_totals_are_zero() {
        let record = totals(&look(Counters::UNKNOWN), &look(Counters::UNKNOWN));
        assert_eq!(record, StreamRecord::default());
    }
}
