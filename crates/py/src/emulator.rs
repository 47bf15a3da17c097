//! An emulated network as Python holds it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use farline_emulator::layout::{Layout, Point};
use farline_emulator::relay::{Emulator as Relay, RelayOptions, Report, Totals};
use farline_spec::{Failure, FailureKind, LinkChange, LinkDirection, Topology, from_json};
use farline_sys::namespace::HostNamespaces;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::columns::Columns;
use crate::gate::{gate, is_forked_child, to_json};

/// Hosts joined by emulated links; dropping it removes them.
#[pyclass(frozen, module = "farline._native")]
pub struct Emulator {
    relay: Option<Relay>,
    /// Names of the routers, which the layout knows by number.
    routers: Vec<String>,
}

impl Emulator {
    fn relay(&self) -> &Relay {
        self.relay.as_ref().expect("held until it is dropped")
    }
}

/// Starts a topology; `hosts_file.HOST` is written for every host, and is `/etc/hosts` inside it.
#[pyfunction]
pub fn start_emulator(py: Python<'_>, topology_json: &str, hosts_file: PathBuf) -> PyResult<Emulator> {
    gate(py, || {
        let topology: Topology = from_json(topology_json)?;
        let routers = topology.routers.clone();
        let relay = Relay::start(topology, RelayOptions { hosts_file })?;
        Ok(Emulator {
            relay: Some(relay),
            routers,
        })
    })
}

/// Moves the calling thread into the namespaces behind the paths: `net`, `mount` and `uts`, in this order.
#[pyfunction]
pub fn enter_namespaces(py: Python<'_>, paths: Vec<String>) -> PyResult<()> {
    gate(py, || {
        let [network, mount, names] = paths.as_slice() else {
            let what = format!("paths: {} given; allowed: 3: net, mount, uts", paths.len());
            return Err(Failure::new(FailureKind::Usage, what));
        };
        let namespaces = HostNamespaces {
            network: open(network)?,
            mount: open(mount)?,
            names: open(names)?,
            sys_refusal: None,
        };
        namespaces.enter().map_err(|error| refused("namespaces", &error))
    })
}

/// Moves this process, which must have one thread, into a user namespace of its own as its root.
#[pyfunction]
pub fn make_user_namespace(py: Python<'_>) -> PyResult<()> {
    gate(py, || {
        farline_sys::user_namespace::become_root().map_err(|error| refused("user namespace", &error))
    })
}

fn open(path: &str) -> Result<OwnedFd, Failure> {
    File::open(path)
        .map(OwnedFd::from)
        .map_err(|error| refused(path, &error))
}

fn refused(what: &str, error: &io::Error) -> Failure {
    Failure::system(what, error)
}

#[pymethods]
impl Emulator {
    /// Hosts, ports and pipes as JSON.
    fn layout(&self, py: Python<'_>) -> PyResult<String> {
        gate(py, || {
            let relay = self.relay();
            to_json(&layout_document(
                relay.layout(),
                relay.link_names(),
                &self.routers,
            ))
        })
    }

    /// Paths of the host's namespaces, `net`, `mount` and `uts`, as JSON.
    fn namespaces(&self, py: Python<'_>, host: &str) -> PyResult<String> {
        gate(py, || {
            let paths = self.relay().namespace_paths(host)?;
            to_json(&json!({ "net": paths.net, "mount": paths.mount, "uts": paths.uts }))
        })
    }

    /// Changes a link now; takes a link change.
    fn change(&self, py: Python<'_>, change_json: &str) -> PyResult<()> {
        gate(py, || self.relay().change(from_json::<LinkChange>(change_json)?))
    }

    /// The topology as it stands now, as JSON.
    fn topology(&self, py: Python<'_>) -> PyResult<String> {
        gate(py, || to_json(&self.relay().topology()?))
    }

    /// `rtt_s` and `rate_bps` (null without limit) from a host to another, or to one address of it, as they stand now,
    /// as JSON.
    fn path(&self, py: Python<'_>, client: &str, server: &str) -> PyResult<String> {
        gate(py, || {
            let path = self.relay().path(client, server)?;
            to_json(&json!({ "rtt_s": path.rtt_s, "rate_bps": path.rate_bps }))
        })
    }

    /// Starts an interval for `stamp`.
    fn mark(&self, py: Python<'_>) -> PyResult<u64> {
        gate(py, || self.relay().mark())
    }

    /// Validity stamp of the time since the mark, as JSON.
    fn stamp(&self, py: Python<'_>, mark: u64) -> PyResult<String> {
        gate(py, || to_json(&self.relay().stamp(mark)?))
    }

    /// Link samples that came since the last call.
    fn poll_samples(&self, py: Python<'_>) -> PyResult<Columns> {
        gate(py, || Ok(Columns::of_links(self.relay().poll_samples())))
    }

    /// Writes what a link carries into a pcap file; `direction` is forward, reverse or both.
    fn capture(
        &self,
        py: Python<'_>,
        link: &str,
        direction: &str,
        path: PathBuf,
        snap_bytes: u32,
    ) -> PyResult<()> {
        gate(py, || {
            let direction: LinkDirection = from_json(&to_json(&direction)?)?;
            self.relay()
                .capture(link, direction, Path::new(&path), snap_bytes)
        })
    }

    /// Ends the captures of a link; packets written and missed, as JSON.
    fn stop_capture(&self, py: Python<'_>, link: &str) -> PyResult<String> {
        gate(py, || {
            let end = self.relay().stop_capture(link)?;
            to_json(&json!({
                "written_packets": end.written_packets,
                "missed_packets": end.missed_packets,
                "error": end.error,
            }))
        })
    }

    /// Counters of every link and direction since the start, and the relay's own, as JSON.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        gate(py, || {
            let relay = self.relay();
            let (report, totals) = relay.counters()?;
            to_json(&json!({
                "at_s": report.at_ns as f64 / 1e9,
                "links": links_document(&report, relay.link_names()),
                "relay": relay_document(&report, &totals),
                "notices": relay.notices(),
            }))
        })
    }

    /// The failure that ended the emulation, as JSON, or None.
    fn failure(&self, py: Python<'_>) -> PyResult<Option<String>> {
        gate(py, || {
            self.relay()
                .failure()
                .map(|failure| to_json(&failure))
                .transpose()
        })
    }

    /// Ends the emulation and removes the hosts.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.relay().stop();
            Ok(())
        })
    }
}

impl Drop for Emulator {
    /// In a forked child the emulator's threads are not there to be joined: it is left alone.
    fn drop(&mut self) {
        if is_forked_child() {
            std::mem::forget(self.relay.take());
        }
    }
}

fn layout_document(layout: &Layout, links: &[String], routers: &[String]) -> Value {
    let hosts = layout.hosts.iter();
    let hosts: Vec<_> = hosts
        .enumerate()
        .map(|(number, host)| {
            let nearest: BTreeMap<_, _> = layout
                .hosts
                .iter()
                .enumerate()
                .map(|(other, to)| (to.name.as_str(), layout.nearest_port(number, other)))
                .collect();
            json!({ "name": host.name, "ports": host.ports, "nearest": nearest })
        })
        .collect();
    let ports = layout.ports.iter().map(|port| {
        json!({
            "host": layout.hosts[port.host].name,
            "link": links[port.link],
            "device": port.device,
            "address": port.v4,
            "address6": port.v6,
            "mtu_bytes": port.mtu_bytes,
        })
    });
    let name = |point: Point| match point {
        Point::Port(port) => &layout.hosts[layout.ports[port].host].name,
        Point::Router(router) => &routers[router],
    };
    let pipes = layout.pipes.iter().map(|pipe| {
        json!({
            "link": links[pipe.link],
            "direction": pipe.direction,
            "from": name(pipe.from),
            "to": name(pipe.to),
        })
    });
    let (ports, pipes): (Vec<_>, Vec<_>) = (ports.collect(), pipes.collect());
    json!({ "hosts": hosts, "ports": ports, "pipes": pipes })
}

fn links_document(report: &Report, links: &[String]) -> Vec<Value> {
    let pipes = report.pipes.iter().enumerate();
    pipes
        .map(|(number, pipe)| {
            let counters = &pipe.counters;
            json!({
                "link": links[number / 2],
                "direction": number % 2,
                "in_packets": counters.in_packets,
                "in_bytes": counters.in_bytes,
                "out_packets": counters.out_packets,
                "out_bytes": counters.out_bytes,
                "tail_drop_packets": counters.tail_drop_packets,
                "codel_drop_packets": counters.codel_drop_packets,
                "loss_packets": counters.loss_packets,
                "cut_packets": counters.cut_packets,
                "mtu_drop_packets": counters.mtu_drop_packets,
                "ecn_marked_packets": counters.ecn_marked_packets,
                "corrupted_packets": counters.corrupted_packets,
                "duplicated_packets": counters.duplicated_packets,
                "reordered_packets": counters.reordered_packets,
                "backlog_bytes": pipe.state.backlog_bytes,
                "in_flight_packets": pipe.state.in_flight_packets,
                "rate_bps": pipe.state.rate_bps,
                "delay_ns": pipe.state.delay_ns,
            })
        })
        .collect()
}

fn relay_document(report: &Report, totals: &Totals) -> Value {
    let traffic = &report.traffic;
    json!({
        "priority": traffic.priority.word(),
        "lead_us": traffic.lead_ns as f64 / 1e3,
        "deliveries": report.lateness.count(),
        "lateness_p50_us": report.lateness.quantile_ns(0.5) as f64 / 1e3,
        "lateness_p99_us": report.lateness.quantile_ns(0.99) as f64 / 1e3,
        "lateness_max_us": report.lateness.max_ns() as f64 / 1e3,
        "wait_lateness_p99_us": report.wait_lateness.quantile_ns(0.99) as f64 / 1e3,
        "wait_lateness_max_us": report.wait_lateness.max_ns() as f64 / 1e3,
        "stalled_s": traffic.stalled_ns as f64 / 1e9,
        "ignored_packets": traffic.ignored_packets,
        "pathless_packets": traffic.pathless_packets,
        "malformed_packets": traffic.malformed_packets,
        "unhit_packets": traffic.unhit_packets,
        "arena_drops": traffic.arena_drops,
        "write_drops": traffic.write_drops,
        "too_big_sent": traffic.too_big_sent,
        "too_big_suppressed": traffic.too_big_suppressed,
        "arena_bytes": report.arena.mapped_bytes,
        "arena_grown_segments": report.arena.grown_segments,
        "ring_drops": totals.ring_drops,
        "receive_buffer_drops": totals.receive_buffer_drops,
        "memory_prunes": totals.memory_prunes,
        "tcp_timeouts": totals.timeouts,
        "checksum_errors": totals.checksum_errors,
        "sample_rows_dropped": totals.sample_rows_dropped,
    })
}
