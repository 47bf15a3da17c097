//! The end that sends datagrams.

use super::Datagram;
use crate::{EndpointId, NS_PER_S, Random, Transmit};

/// How far apart trains are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// All alike.
    Constant,
    /// Exponentially distributed, after this seed.
    Poisson(u64),
}

/// What a source sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SourceConfig {
    /// Mean rate of IP bytes, in bits per second; more than 0.
    pub rate_bps: u64,
    /// IP bytes of each packet.
    pub packet_bytes: u32,
    /// Packets sent back to back each time.
    pub train: u16,
    /// How far apart trains are.
    pub arrivals: Arrivals,
    /// When to begin.
    pub start_ns: u64,
    /// When to end.
    pub stop_ns: u64,
    /// Whether queues may mark instead of dropping.
    pub ecn: bool,
}

/// Sends whatever the path does with it.
#[derive(Debug, Clone)]
pub struct Source {
    peer: EndpointId,
    config: SourceConfig,
    random: Random,
    number: u64,
    /// Exact time of the next train, so that rounding to nanoseconds does not change the rate.
    due_ns: f64,
}

impl Source {
    /// A source that has sent nothing.
    pub fn new(peer: EndpointId, config: SourceConfig) -> Self {
        let seed = match config.arrivals {
            Arrivals::Constant => 0,
            Arrivals::Poisson(seed) => seed,
        };
        Self {
            peer,
            config,
            random: Random::new(seed),
            number: 0,
            due_ns: config.start_ns as f64,
        }
    }

    /// Packets sent so far.
    pub fn sent(&self) -> u64 {
        self.number
    }

    /// When the next train is due; none after the end.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let due_ns = self.due_ns.ceil() as u64;
        (due_ns < self.config.stop_ns).then_some(due_ns)
    }

    /// Nothing to note: what is due is found when it is asked for.
    pub(super) fn wake(&mut self, _now_ns: u64) {}

    pub(super) fn next(&mut self, now_ns: u64) -> Option<Transmit<Datagram>> {
        self.next_ns().filter(|due_ns| *due_ns <= now_ns)?;
        let datagram = Datagram {
            number: self.number,
            sent_ns: now_ns,
        };
        self.number += u64::from(self.config.train);
        let bits = f64::from(self.config.train) * f64::from(self.config.packet_bytes) * 8.0;
        let gap_ns = bits * NS_PER_S as f64 / self.config.rate_bps as f64;
        self.due_ns += match self.config.arrivals {
            Arrivals::Constant => gap_ns,
            Arrivals::Poisson(_) => self.random.exponential(gap_ns),
        };
        let mut train = Transmit::train(self.peer, datagram, self.config.train, self.config.packet_bytes);
        train.ecn_capable = self.config.ecn;
        Some(train)
    }
}
