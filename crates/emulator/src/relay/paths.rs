//! What a path between two hosts amounts to.

use farline_spec::{Failure, FailureKind, PipeSpec, Topology};

use super::handle::unknown;
use crate::layout::Layout;

/// A path as emulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFacts {
    /// Propagation there and back.
    pub rtt_s: f64,
    /// Smallest rate on the wire on the way there; none without limit.
    pub rate_bps: Option<u64>,
}

/// The path from `client` to `server`.
///
/// # Errors
/// "usage" for a host that is not there, or two that no links join.
pub fn facts(topology: &Topology, layout: &Layout, client: &str, server: &str) -> Result<PathFacts, Failure> {
    for name in [client, server] {
        if layout.hosts.iter().all(|host| host.name != name) {
            return Err(unknown(
                "host",
                name,
                layout.hosts.iter().map(|host| host.name.as_str()),
            ));
        }
    }
    between(topology, layout, client, server).ok_or_else(|| {
        let what = format!("there is no path from {client:?} to {server:?}");
        Failure::new(FailureKind::Usage, what)
    })
}

/// Shortest round trip between any two hosts.
pub fn shortest_rtt_s(topology: &Topology, layout: &Layout) -> f64 {
    let names = || layout.hosts.iter().map(|host| host.name.as_str());
    let pairs = names()
        .enumerate()
        .flat_map(|(number, one)| names().skip(number + 1).map(move |other| (one, other)));
    let shortest = pairs
        .filter_map(|(one, other)| between(topology, layout, one, other))
        .map(|path| path.rtt_s)
        .fold(f64::INFINITY, f64::min);
    if shortest.is_finite() { shortest } else { 0.0 }
}

fn between(topology: &Topology, layout: &Layout, client: &str, server: &str) -> Option<PathFacts> {
    let there = layout.path_between(client, server)?;
    let back = layout.path_between(server, client)?;
    let delay = |pipe: &usize| spec(topology, *pipe).delay_s.get();
    let rate = |pipe: &usize| {
        let rate = spec(topology, *pipe).rate_bps.as_ref()?;
        Some(rate.get()).filter(|&rate_bps| rate_bps > 0)
    };
    Some(PathFacts {
        rtt_s: there.iter().chain(&back).map(delay).sum(),
        rate_bps: there.iter().filter_map(rate).min(),
    })
}

/// One direction of a link, by the number of its pipe.
pub fn spec(topology: &Topology, pipe: usize) -> &PipeSpec {
    let link = &topology.links[pipe / 2];
    if pipe % 2 == 0 {
        &link.forward
    } else {
        link.backward()
    }
}
