//! One stream alone on a path, and what it made of it.

use farline_spec::Blast;

use super::formula::Course;
use super::{End, PACKET_BYTES, Receiving, Sending, Stream, StreamConfig};
use crate::scenario::Path;
use crate::{World, ns, seconds};
use farline_proto::rbudp::settle_ns;

/// A stream and its path.
#[derive(Debug)]
pub struct Trial {
    /// The world that they are in.
    pub world: World<End>,
    stream: Stream,
    config: StreamConfig,
}

impl Trial {
    /// Before the first packet; sampled a hundred times a second.
    ///
    /// # Panics
    /// When the path does not hold together.
    pub fn new(path: &Path, config: &StreamConfig) -> Self {
        let mut world = World::new(&path.topology(), ns(0.01)).expect("a topology that holds together");
        let stream = Stream::open(&mut world, 0, 1, config);
        Self {
            world,
            stream,
            config: *config,
        }
    }

    /// Lets time pass until the stream is done; gives how long it took until the last blast was whole.
    ///
    /// # Panics
    /// When it is not done after `end_s`, a packet is unaccounted for, or not all payload arrived.
    pub fn run_s(&mut self, end_s: f64) -> f64 {
        let mut at_s = 0.0;
        while self.sending().finished_ns().is_none() && at_s < end_s {
            at_s += 0.1;
            self.world.run_until(ns(at_s)).expect("no packet unaccounted for");
        }
        assert_eq!(self.receiving().delivered_bytes(), self.config.total_bytes);
        assert!(self.sending().finished_ns().is_some(), "a stream that ends");
        seconds(self.sending().whole_ns())
    }

    /// The end that sends.
    pub fn sending(&self) -> &Sending {
        self.stream.sending(&self.world)
    }

    /// The end that receives.
    pub fn receiving(&self) -> &Receiving {
        self.stream.receiving(&self.world)
    }

    /// The only blast, at its sender.
    ///
    /// # Panics
    /// When there is none yet.
    pub fn blast(&self) -> Blast {
        *self.sending().blasts().first().expect("a blast that is whole")
    }

    /// What the only blast did.
    pub fn course(&self) -> Course {
        Course {
            sent_bytes: self.sent_bytes(),
            rate_bps: self.config.rate_bps as f64,
            rtt_s: seconds(self.config.rtt_ns),
            settle_s: seconds(settle_ns(self.config.rtt_ns)),
            report_bytes: self.receiving().report_bytes().to_vec(),
        }
    }

    /// Payload sent, repetitions included; short packets count as full ones if repeated.
    pub fn sent_bytes(&self) -> f64 {
        let repeated = self.sending().statistics().repeated_packets * PACKET_BYTES as u64;
        (self.config.total_bytes + repeated) as f64
    }

    /// Share of the time `took_s` in which nothing was sent at the stated rate.
    pub fn idle_share(&self, took_s: f64) -> f64 {
        1.0 - 8.0 * self.sent_bytes() / self.config.rate_bps as f64 / took_s
    }
}
