//! What other threads see of a stream.

use std::os::fd::AsFd;
use std::sync::Arc;

use farline_proto::udt::Statistics;
use farline_sys::option::path_mtu;

use super::driver::Driver;
use super::port::{Inbox, Port};
use crate::socket::family;
use crate::tally::{Count, Tally, as_i64};
use crate::{Counters, Probe, Role};

/// Figures that one end of a stream has, in the order of [`figures`].
const FIGURES: usize = 26;

/// What the thread of a stream and its observers share.
#[derive(Debug)]
pub(super) struct Gauges {
    pub(super) tally: Tally,
    values: [Count; FIGURES],
    port: Arc<Port>,
    inbox: Arc<Inbox>,
}

impl Gauges {
    /// Those of a stream on the socket of `driver`; nothing is known yet.
    pub(super) fn new(driver: &Driver) -> Arc<Self> {
        let gauges = Self {
            tally: Tally::default(),
            values: Default::default(),
            port: Arc::clone(&driver.member.port),
            inbox: Arc::clone(&driver.member.inbox),
        };
        gauges.store(&Counters::UNKNOWN);
        Arc::new(gauges)
    }

    /// Publishes what the connection counts.
    pub(super) fn publish(&self, role: Role, now: &Statistics, sizes: Sizes) {
        self.store(&counters(role, now, sizes));
    }

    fn store(&self, counters: &Counters) {
        let mut copy = *counters;
        for (value, figure) in self.values.iter().zip(figures(&mut copy)) {
            value.set(*figure);
        }
    }
}

/// What turns packets into bytes, and what was there before the stream began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) payload_bytes: u64,
    pub(super) packet_bytes: u64,
    /// Packets that carried the preamble.
    pub(super) earlier_packets: u64,
}

/// The fields that a connection fills, each in its place.
fn figures(it: &mut Counters) -> [&mut i64; FIGURES] {
    [
        &mut it.packets,
        &mut it.lost_packets,
        &mut it.reordered_packets,
        &mut it.duplicate_packets,
        &mut it.retransmits,
        &mut it.rtt_us,
        &mut it.rttvar_us,
        &mut it.min_rtt_us,
        &mut it.cwnd_bytes,
        &mut it.receive_window_bytes,
        &mut it.pacing_rate_bps,
        &mut it.delivery_rate_bps,
        &mut it.busy_us,
        &mut it.receive_window_limited_us,
        &mut it.send_buffer_limited_us,
        &mut it.paced_wait_us,
        &mut it.sent_acks,
        &mut it.received_acks,
        &mut it.sent_naks,
        &mut it.received_naks,
        &mut it.send_period_ns,
        &mut it.flow_window_packets,
        &mut it.flight_packets,
        &mut it.link_capacity_bps,
        &mut it.send_buffer_free_bytes,
        &mut it.receive_buffer_free_bytes,
    ]
}

/// What `now` says of a stream, as samples count it.
fn counters(role: Role, now: &Statistics, sizes: Sizes) -> Counters {
    let bits = |pps: f64, bytes: u64| {
        if pps > 0.0 {
            (pps * 8.0 * bytes as f64) as i64
        } else {
            -1
        }
    };
    let measured_us = |ns: u64| {
        if now.min_rtt_ns > 0 {
            as_i64(ns / 1_000)
        } else {
            -1
        }
    };
    let us = |ns: u64| as_i64(ns / 1_000);
    let both = Counters {
        rtt_us: measured_us(now.rtt_ns),
        rttvar_us: measured_us(now.rtt_variance_ns),
        min_rtt_us: measured_us(now.min_rtt_ns),
        link_capacity_bps: bits(now.link_capacity_pps, sizes.packet_bytes),
        ..Counters::UNKNOWN
    };
    let packets = |all: u64| as_i64(all.saturating_sub(sizes.earlier_packets));
    match role {
        Role::Sender => Counters {
            packets: packets(now.sent_packets),
            lost_packets: as_i64(now.send_lost_packets),
            retransmits: as_i64(now.repeated_packets),
            // A control without a window says a number beyond what sequence numbers tell apart.
            cwnd_bytes: match now.congestion_window_packets {
                packets if packets >> 31 > 0 => -1,
                packets => as_i64(packets * sizes.payload_bytes),
            },
            receive_window_bytes: as_i64(now.flow_window_packets.saturating_mul(sizes.payload_bytes)),
            pacing_rate_bps: match now.send_period_ns {
                0 => -1,
                period_ns => bits(1e9 / period_ns as f64, sizes.payload_bytes),
            },
            delivery_rate_bps: bits(now.delivery_pps, sizes.payload_bytes),
            busy_us: us(now.busy_ns),
            receive_window_limited_us: us(now.receive_window_limited_ns),
            send_buffer_limited_us: us(now.send_buffer_limited_ns),
            paced_wait_us: us(now.paced_wait_ns),
            received_acks: as_i64(now.received_acks),
            received_naks: as_i64(now.received_naks),
            send_period_ns: as_i64(now.send_period_ns),
            flow_window_packets: as_i64(now.flow_window_packets),
            flight_packets: as_i64(now.flight_packets),
            send_buffer_free_bytes: as_i64(now.send_buffer_free_bytes),
            ..both
        },
        Role::Receiver => Counters {
            packets: packets(now.received_packets),
            lost_packets: as_i64(now.receive_lost_packets),
            reordered_packets: as_i64(now.reordered_packets),
            duplicate_packets: as_i64(now.duplicate_packets),
            receive_window_bytes: as_i64(now.receive_buffer_free_bytes),
            sent_acks: as_i64(now.sent_acks),
            sent_naks: as_i64(now.sent_naks),
            receive_buffer_free_bytes: as_i64(now.receive_buffer_free_bytes),
            ..both
        },
    }
}

impl Probe for Gauges {
    fn sample(&self) -> Counters {
        let mut sample = Counters::UNKNOWN;
        for (value, figure) in self.values.iter().zip(figures(&mut sample)) {
            *figure = value.get();
        }
        let mtu = path_mtu(self.port.socket.as_fd(), family(self.port.remote));
        Counters {
            bytes: self.tally.bytes.get(),
            blocks: self.tally.blocks.get(),
            path_mtu_bytes: mtu.map_or(-1, i64::from),
            ..sample
        }
    }

    fn abort(&self) {
        self.tally.abort();
        self.inbox.waker.wake();
    }
}
