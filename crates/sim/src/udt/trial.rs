//! One flow alone on a path, and what it made of it.

use super::{End, Flow, FlowConfig};
use crate::scenario::Path;
use crate::{World, ns, seconds};

/// The pipe that carries the data of a single path.
const FORWARD: usize = 0;

/// A flow and its path.
#[derive(Debug)]
pub struct Trial {
    /// The world that they are in.
    pub world: World<End>,
    /// The flow's ends.
    pub flow: Flow,
    path: Path,
    packet_bytes: u32,
}

impl Trial {
    /// Before the first packet; sampled a hundred times a second.
    ///
    /// # Panics
    /// When the path does not hold together.
    pub fn new(path: &Path, config: &FlowConfig) -> Self {
        let mut world = World::new(&path.topology(), ns(0.01)).expect("a topology that holds together");
        let flow = Flow::open(&mut world, 0, 1, config);
        Self {
            world,
            flow,
            path: path.clone(),
            packet_bytes: config.scale.declared_bytes(),
        }
    }

    /// Lets time pass.
    ///
    /// # Panics
    /// When a packet is unaccounted for, or a byte was not in its place.
    pub fn run_until_s(&mut self, end_s: f64) {
        self.world
            .run_until(ns(end_s))
            .expect("no packet unaccounted for");
        let figures = self.world.endpoint(self.flow.receiver).figures();
        assert_eq!(
            (figures.wrong, figures.repeated),
            (0, 0),
            "every byte in its place"
        );
    }

    /// Share of the path's rate at which new data arrived.
    pub fn used(&self, from_s: f64, to_s: f64) -> f64 {
        let samples = self.world.samples();
        let rate = samples.delivery_rate(self.flow.receiver, ns(from_s), ns(to_s));
        rate / self.path.packets_per_s(self.packet_bytes)
    }

    /// Packets sent again, of all that were sent.
    pub fn repeated(&self) -> f64 {
        let statistics = self
            .world
            .endpoint(self.flow.sender)
            .statistics(self.world.now_ns());
        statistics.repeated_packets as f64 / statistics.sent_packets.max(1) as f64
    }

    /// Mean queue from `from_s` on, in bandwidth-delay products.
    pub fn queue_bdp(&self, from_s: f64) -> f64 {
        let bdp_bytes = self.path.rate_bps as f64 / 8.0 * seconds(self.path.rtt_ns);
        self.world.samples().mean_backlog_bytes(FORWARD, ns(from_s)) / bdp_bytes
    }
}
