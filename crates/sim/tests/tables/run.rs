//! One flow over one path, as most tables need it.

use farline_sim::scenario::Path;
use farline_sim::tcp::control::{CongestionControl, Control};
use farline_sim::tcp::{Congestion, End, Flow, SenderConfig, SenderFigures};
use farline_sim::{World, ns};

/// A segment on an Ethernet path.
pub const SEGMENT_BYTES: u32 = 1500;

/// The pipe that carries the data of a single path.
pub const FORWARD: usize = 0;

/// A flow alone on a path.
pub struct Alone {
    pub world: World<End>,
    pub flow: Flow,
    path: Path,
    packet_bytes: u32,
}

impl Alone {
    pub fn new(path: &Path, control: Box<dyn CongestionControl>, config: SenderConfig) -> Self {
        let mut world = World::new(&path.topology(), ns(0.02)).expect("a topology that holds together");
        let flow = Flow::open(&mut world, 0, 1, config, control);
        Self {
            world,
            flow,
            path: path.clone(),
            packet_bytes: config.segment_bytes,
        }
    }

    pub fn endless(path: &Path, control: Control) -> Self {
        Self::new(path, control.build(), SenderConfig::endless(SEGMENT_BYTES))
    }

    pub fn run_until_s(&mut self, end_s: f64) {
        self.world
            .run_until(ns(end_s))
            .expect("no packet unaccounted for");
    }

    /// Segments of the path's rate.
    pub fn rate(&self) -> f64 {
        self.path.packets_per_s(self.packet_bytes)
    }

    /// Share of the path's rate at which new data became readable.
    pub fn used(&self, from_s: f64, to_s: f64) -> f64 {
        self.delivered(from_s, to_s) / self.rate()
    }

    /// Segments acknowledged per second.
    pub fn delivered(&self, from_s: f64, to_s: f64) -> f64 {
        self.world
            .samples()
            .delivery_rate(self.flow.sender, ns(from_s), ns(to_s))
    }

    pub fn figures(&self) -> SenderFigures {
        self.flow.sending(&self.world).figures()
    }

    /// Reductions of the window from `from_s` on.
    pub fn congestions(&self, from_s: f64) -> Vec<Congestion> {
        let history = self.flow.sending(&self.world).history();
        history
            .iter()
            .filter(|congestion| congestion.at_ns >= ns(from_s))
            .copied()
            .collect()
    }
}

/// Asserts that `value` is within `share` of `expected`.
pub fn assert_close(what: &str, value: f64, expected: f64, share: f64) {
    let off = value / expected - 1.0;
    assert!(
        off.abs() <= share,
        "{what}: {value} is {:.1} % off {expected}",
        100.0 * off
    );
}

/// A difference as text, in percent.
pub fn off(value: f64, expected: f64) -> String {
    format!("{:+.1}", 100.0 * (value / expected - 1.0))
}
