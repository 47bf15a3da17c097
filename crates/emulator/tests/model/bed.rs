//! A network under test, with what came out of it.

use farline_emulator::layout::Layout;
use farline_emulator::model::{Arrival, Network, PipeCounters, Train};
use farline_spec::{LinkChange, Topology};
use serde_json::{Value, json};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// Segments of so many IP bytes are 1500 bytes on the wire.
pub const IP_BYTES: u32 = 1462;

/// A network whose payloads are numbers, and its arrivals so far.
pub struct Bed {
    pub layout: Layout,
    pub network: Network<u64>,
    pub arrivals: Vec<Arrival<u64>>,
}

pub fn topology(document: Value) -> Topology {
    let topology: Topology = serde_json::from_value(document).expect("a topology");
    topology.checked().expect("a topology that holds together")
}

/// Two hosts and a link between them.
pub fn pair(forward: Value) -> Topology {
    topology(json!({
        "name": "pair",
        "seed": 42,
        "hosts": [{"name": "a"}, {"name": "b"}],
        "links": [{"name": "link", "a": "a", "b": "b", "forward": forward, "reverse": {}}],
    }))
}

impl Bed {
    pub fn new(topology: &Topology) -> Self {
        let layout = Layout::new(topology).expect("a layout");
        let network = Network::new(topology, &layout).expect("a network");
        Self {
            layout,
            network,
            arrivals: Vec::new(),
        }
    }

    /// Two hosts and a link between them.
    pub fn pair(forward: Value) -> Self {
        Self::new(&pair(forward))
    }

    /// Sends over the pair's link, forward.
    pub fn send(&mut self, at_ns: u64, train: Train<u64>) {
        assert!(self.network.send(at_ns, 0, 1, train), "there is a path");
    }

    /// Sends single packets of 1500 bytes on the wire, numbered from `first`.
    pub fn send_singles(&mut self, at_ns: u64, first: u64, count: u64) {
        for number in first..first + count {
            self.send(at_ns, Train::single(number, IP_BYTES));
        }
    }

    pub fn run(&mut self, until_ns: u64) {
        let arrivals = &mut self.arrivals;
        self.network
            .advance(until_ns, &mut |arrival| arrivals.push(arrival));
    }

    /// Jumps from event to event until nothing is left to happen.
    pub fn drain(&mut self) {
        let mut before_ns = 0;
        while let Some(at_ns) = self.network.next_event_ns() {
            assert!(at_ns >= before_ns, "events are never in the past");
            before_ns = at_ns;
            self.run(at_ns);
        }
    }

    /// Changes the pair's link, both ways unless said otherwise.
    pub fn change(&mut self, now_ns: u64, change: Value) {
        let change: LinkChange =
            serde_json::from_value(json!({"link": "link", "change": change})).expect("a change");
        self.network.change(now_ns, &change).expect("a link");
    }

    /// Counters of the pair's forward direction.
    pub fn counters(&self) -> PipeCounters {
        self.network.counters(0)
    }

    /// Arrival times, in the order of arrival.
    pub fn times(&self) -> Vec<u64> {
        self.arrivals.iter().map(|arrival| arrival.at_ns).collect()
    }

    /// Payloads of single packets, in the order of arrival.
    pub fn payloads(&self) -> Vec<u64> {
        self.arrivals
            .iter()
            .map(|arrival| arrival.train.payload)
            .collect()
    }

    /// Numbers of the segments of one train, in the order of arrival.
    pub fn segments(&self) -> Vec<u16> {
        let trains = self.arrivals.iter().map(|arrival| &arrival.train);
        trains
            .flat_map(|train| train.first..train.first + train.segments)
            .collect()
    }
}
