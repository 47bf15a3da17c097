//! The books: what the engine counted held against what the hosts' kernels counted.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use farline_spec::Failure;
use farline_sys::process::{steal_by_cpu, steal_time};
use farline_sys::stack_counters::{StackCounters, StackCounts};

use super::request::{EngineHandle, Report};
use super::stamp::Account;
use super::traffic::PortTraffic;
use crate::layout::{Layout, Point};

/// The kernels' counters of all hosts, beside the layout that says whose device is which.
pub struct Accounting {
    layout: Arc<Layout>,
    stacks: Mutex<Vec<StackCounters>>,
}

/// Figures of the hosts' kernels and of the relay, over all hosts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets dropped between a host and the emulator.
    pub ring_drops: u64,
    /// Datagrams that found a socket's receive buffer full.
    pub receive_buffer_drops: u64,
    /// Times TCP gave up received data, came into memory pressure, or UDP dropped a datagram, for want of memory.
    pub memory_prunes: u64,
    /// TCP's retransmission time-outs.
    pub timeouts: u64,
    /// Segments and datagrams whose checksum was wrong.
    pub checksum_errors: u64,
    /// Link samples dropped because nobody fetched them.
    pub sample_rows_dropped: u64,
}

impl Accounting {
    /// Books over hosts in the order of the layout.
    pub fn new(layout: Arc<Layout>, stacks: Vec<StackCounters>) -> Self {
        Self {
            layout,
            stacks: Mutex::new(stacks),
        }
    }

    /// Lets go of the hosts' counters, which keep their namespaces alive.
    pub fn close(&self) {
        self.stacks.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Everything a stamp needs, as it stands now.
    ///
    /// # Errors
    /// The failure that ended the engine, or "system" when a counter cannot be read.
    pub fn account(&self, engine: &EngineHandle) -> Result<Account, Failure> {
        let before = engine.report(false)?;
        let counts = self.read()?;
        let after = engine.report(false)?;
        let totals = sums(&counts);
        let refused = |error| Failure::system("steal time", &error);
        let (steal, cpu_steal) = (steal_time().map_err(refused)?, steal_by_cpu().map_err(refused)?);
        let traffic = after.traffic;
        Ok(Account {
            at_ns: after.at_ns,
            unexplained_packets: unexplained_on_links(&after)
                + unexplained_before_links(&after, self.sent_into_links(&after))
                + self.unexplained_at_ports(&before.ports, &counts, &after.ports),
            lateness: after.lateness,
            wait_lateness: after.wait_lateness,
            priority: traffic.priority,
            stalled_ns: traffic.stalled_ns,
            steal,
            cpu_steal,
            ring_drops: totals.ring_drops,
            emulator_drops: traffic.arena_drops + traffic.write_drops + traffic.malformed_packets,
            receive_buffer_drops: totals.receive_buffer_drops,
            memory_prunes: totals.memory_prunes,
        })
    }

    /// Sums over all hosts.
    ///
    /// # Errors
    /// "system" when a counter cannot be read.
    pub fn totals(&self, sample_rows_dropped: u64) -> Result<Totals, Failure> {
        Ok(Totals {
            sample_rows_dropped,
            ..sums(&self.read()?)
        })
    }

    fn read(&self) -> Result<Vec<StackCounts>, Failure> {
        let stacks = self.stacks.lock().unwrap_or_else(PoisonError::into_inner);
        let counts: io::Result<_> = stacks.iter().map(StackCounters::read).collect();
        counts.map_err(|error| Failure::system("counters of a host", &error))
    }

    /// Packets that came to the first links of all paths.
    fn sent_into_links(&self, report: &Report) -> u64 {
        let pipes = self.layout.pipes.iter().zip(&report.pipes);
        pipes
            .filter(|(pipe, _)| matches!(pipe.from, Point::Port(_)))
            .map(|(_, pipe)| pipe.counters.in_packets)
            .sum()
    }

    /// The kernel's figure was read between two of the engine's, so it must lie between them.
    fn unexplained_at_ports(
        &self,
        before: &[PortTraffic],
        counts: &[StackCounts],
        after: &[PortTraffic],
    ) -> i64 {
        let mut unexplained = 0;
        for (number, port) in self.layout.ports.iter().enumerate() {
            let device = counts
                .get(port.host)
                .and_then(|host| host.devices.get(&port.device));
            if let Some(device) = device {
                let (low, high) = (before[number], after[number]);
                unexplained += outside(device.tx_packets, low.read_packets, high.read_packets);
                unexplained += outside(device.rx_packets, low.written_packets, high.written_packets);
            }
        }
        unexplained
    }
}

/// Packets that were read and neither sent nor counted as left out, and packets that were sent and that no link took in.
fn unexplained_before_links(report: &Report, in_packets: u64) -> i64 {
    let traffic = &report.traffic;
    let read: u64 = report.ports.iter().map(|port| port.read_packets).sum();
    let left_out =
        traffic.malformed_packets + traffic.pathless_packets + traffic.ignored_packets + traffic.arena_drops;
    let difference = |one: u64, other: u64| i64::try_from(one.abs_diff(other)).unwrap_or(i64::MAX);
    difference(read, traffic.sent_packets + left_out) + difference(traffic.sent_segments, in_packets)
}

/// Packets in minus packets out, dropped and in flight.
fn unexplained_on_links(report: &Report) -> i64 {
    let pipes = report.pipes.iter();
    pipes
        .map(|pipe| pipe.counters.unaccounted_packets() - pipe.state.in_flight_packets as i64)
        .map(i64::abs)
        .sum()
}

/// How far a value is from an interval.
fn outside(value: u64, low: u64, high: u64) -> i64 {
    let excess = value.saturating_sub(high) + low.saturating_sub(value);
    i64::try_from(excess).unwrap_or(i64::MAX)
}

fn sums(counts: &[StackCounts]) -> Totals {
    let mut totals = Totals::default();
    for host in counts {
        totals.ring_drops += host.devices.values().map(|device| device.tx_dropped).sum::<u64>();
        totals.receive_buffer_drops += host.receive_buffer_errors;
        totals.memory_prunes += host.receive_prunes
            + host.out_of_order_prunes
            + host.out_of_order_drops
            + host.memory_pressures
            + host.udp_memory_errors;
        totals.timeouts += host.timeouts;
        totals.checksum_errors += host.checksum_errors;
    }
    totals
}

#[cfg(test)]
mod tests {
    use farline_sys::arena::ArenaUse;

    use super::*;
    use crate::relay::lateness::Lateness;
    use crate::relay::traffic::Traffic;

    #[test]
    fn memory_that_ran_out_counts_wherever_it_did() {
        let host = |change: fn(&mut StackCounts)| {
            let mut counts = StackCounts::default();
            change(&mut counts);
            sums(&[counts]).memory_prunes
        };
        assert_eq!(host(|counts| counts.memory_pressures = 2), 2);
        assert_eq!(host(|counts| counts.udp_memory_errors = 3), 3);
        assert_eq!(host(|counts| counts.out_of_order_drops = 4), 4);
    }

    #[test]
    fn every_packet_read_is_sent_or_left_out_for_a_reason() {
        let traffic = Traffic {
            malformed_packets: 1,
            pathless_packets: 2,
            ignored_packets: 3,
            arena_drops: 4,
            sent_packets: 5,
            sent_segments: 50,
            ..Traffic::default()
        };
        let report = |read_packets| Report {
            at_ns: 0,
            pipes: Vec::new(),
            lateness: Lateness::default(),
            wait_lateness: Lateness::default(),
            traffic,
            ports: vec![PortTraffic {
                read_packets,
                written_packets: 0,
            }],
            arena: ArenaUse {
                mapped_bytes: 0,
                free_bytes: 0,
                grown_segments: 0,
            },
        };
        assert_eq!(unexplained_before_links(&report(15), 50), 0);
        assert_eq!(unexplained_before_links(&report(16), 50), 1);
        assert_eq!(unexplained_before_links(&report(15), 47), 3);
    }

    #[test]
    fn a_figure_between_two_readings_is_explained() {
        assert_eq!([5, 7, 9].map(|value| outside(value, 5, 9)), [0, 0, 0]);
        assert_eq!([2, 12].map(|value| outside(value, 5, 9)), [3, 3]);
    }
}
