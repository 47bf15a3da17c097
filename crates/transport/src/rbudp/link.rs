//! What the thread of a stream and its observers share.

use std::net::SocketAddr;

use farline_proto::rbudp::Violation;
use farline_spec::{Failure, FailureKind};
use socket2::Socket;

use super::feedback::Breaker;
use crate::failure::aborted;
use crate::tally::{Count, Tally};
use crate::{Counters, Probe, Role};

/// The UDP socket of a stream, its figures, and the way to stop it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: Socket,
    pub(super) tally: Tally,
    pub(super) packets: Count,
    pub(super) repeated_packets: Count,
    pub(super) lost_packets: Count,
    pub(super) duplicate_packets: Count,
    pub(super) reports: Count,
    pub(super) rate_bps: Count,
    pub(super) flight_packets: Count,
    /// Round trips of the datagrams themselves, where they are measured; 0 where not.
    pub(super) rtt_us: Count,
    pub(super) min_rtt_us: Count,
    role: Role,
    breaker: Breaker,
}

impl Link {
    pub(super) fn new(socket: Socket, breaker: Breaker, role: Role) -> Self {
        Self {
            socket,
            tally: Tally::default(),
            packets: Count::default(),
            repeated_packets: Count::default(),
            lost_packets: Count::default(),
            duplicate_packets: Count::default(),
            reports: Count::default(),
            rate_bps: Count::default(),
            flight_packets: Count::default(),
            rtt_us: Count::default(),
            min_rtt_us: Count::default(),
            role,
            breaker,
        }
    }

    pub(super) fn remote(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()?.as_socket()
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }
}

impl Probe for Link {
    fn sample(&self) -> Counters {
        let common = Counters {
            bytes: self.tally.bytes.get(),
            blocks: self.tally.blocks.get(),
            packets: self.packets.get(),
            lost_packets: self.lost_packets.get(),
            ..Counters::UNKNOWN
        };
        let (mut rtt_us, mut rttvar_us, mut min_rtt_us) = (-1, -1, -1);
        if let Some(info) = self.breaker.info() {
            let raw = info.raw();
            (rtt_us, rttvar_us) = (i64::from(raw.rtt), i64::from(raw.rttvar));
            min_rtt_us = if raw.min_rtt == u32::MAX {
                -1
            } else {
                i64::from(raw.min_rtt)
            };
        }
        if self.rtt_us.get() > 0 {
            (rtt_us, rttvar_us, min_rtt_us) = (self.rtt_us.get(), -1, self.min_rtt_us.get());
        }
        match self.role {
            Role::Sender => Counters {
                retransmits: self.repeated_packets.get(),
                received_naks: self.reports.get(),
                paced_wait_us: self.tally.paced_wait_us.get(),
                pacing_rate_bps: self.rate_bps.get(),
                flight_packets: self.flight_packets.get(),
                rtt_us,
                rttvar_us,
                min_rtt_us,
                ..common
            },
            Role::Receiver => Counters {
                duplicate_packets: self.duplicate_packets.get(),
                sent_naks: self.reports.get(),
                min_rtt_us,
                ..common
            },
        }
    }

    fn abort(&self) {
        self.tally.abort();
        self.breaker.cut();
    }
}

/// A stream that was aborted fails for that reason, whatever its broken sockets say.
pub(super) fn or_aborted<T>(link: &Link, result: Result<T, Failure>) -> Result<T, Failure> {
    result.map_err(|failure| {
        if link.tally.is_aborted() {
            aborted()
        } else {
            failure
        }
    })
}

/// The other end does not keep to the protocol.
pub(super) fn violated(violation: Violation) -> Failure {
    Failure::new(FailureKind::Protocol, format!("data stream: {violation}"))
}
