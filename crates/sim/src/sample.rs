//! Figures over time.

use crate::endpoint::{EndpointId, Gauges};

/// A pipe at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PipeSample {
    /// Bytes on the wire that wait, what is left of the packet being sent included.
    pub backlog_bytes: u64,
    /// Most of the same since the sample before.
    pub backlog_max_bytes: u64,
    /// Packets that have left at the far end since the start.
    pub out_packets: u64,
    /// Packets a queue has dropped since the start.
    pub queue_drop_packets: u64,
    /// Packets lost on the wire or by a cut since the start.
    pub loss_packets: u64,
}

/// Rows of all machines and pipes, taken at the same instants.
#[derive(Debug, Clone, Default)]
pub struct Samples {
    /// Instants, in order.
    pub at_ns: Vec<u64>,
    /// For each machine, in the order of their adding, one entry per instant.
    pub endpoints: Vec<Vec<Gauges>>,
    /// For each pipe, one entry per instant.
    pub pipes: Vec<Vec<PipeSample>>,
}

impl Samples {
    /// First row at or after `from_ns`.
    fn start(&self, from_ns: u64) -> usize {
        self.at_ns.partition_point(|at_ns| *at_ns < from_ns)
    }

    /// Mean backlog of a pipe from `from_ns` on, in bytes on the wire; 0 without a sample.
    pub fn mean_backlog_bytes(&self, pipe: usize, from_ns: u64) -> f64 {
        let rows = &self.pipes[pipe][self.start(from_ns)..];
        let sum: f64 = rows.iter().map(|row| row.backlog_bytes as f64).sum();
        sum / rows.len().max(1) as f64
    }

    /// Largest backlog of a pipe from `from_ns` on, in bytes on the wire; 0 without a sample.
    pub fn max_backlog_bytes(&self, pipe: usize, from_ns: u64) -> u64 {
        let rows = &self.pipes[pipe][self.start(from_ns)..];
        rows.iter().map(|row| row.backlog_max_bytes).max().unwrap_or(0)
    }

    /// Mean window of a machine from `from_ns` on, in packets; 0 without a sample.
    pub fn mean_window(&self, endpoint: EndpointId, from_ns: u64) -> f64 {
        let rows = &self.endpoints[endpoint.0 as usize][self.start(from_ns)..];
        let sum: f64 = rows.iter().map(|row| row.window).sum();
        sum / rows.len().max(1) as f64
    }

    /// Packets a machine delivered between the first sample at or after `from_ns` and the last one before `to_ns`,
    /// per second; 0 with fewer than two samples.
    pub fn delivery_rate(&self, endpoint: EndpointId, from_ns: u64, to_ns: u64) -> f64 {
        let (first, end) = (self.start(from_ns), self.start(to_ns));
        if end < first + 2 {
            return 0.0;
        }
        let rows = &self.endpoints[endpoint.0 as usize];
        let delivered = rows[end - 1].delivered - rows[first].delivered;
        delivered as f64 / crate::seconds(self.at_ns[end - 1] - self.at_ns[first])
    }
}
