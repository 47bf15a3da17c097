//! What a path between two hosts amounts to.

use farline_spec::{Failure, FailureKind, PipeSpec, Topology};

use crate::layout::Layout;

/// A path as emulated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathFacts {
    /// Propagation there and back.
    pub rtt_s: f64,
    /// Smallest rate on the wire on the way there; none without limit.
    pub rate_bps: Option<u64>,
}

/// The path from host `client` to `server`, and the way back of its answers: `server` is a host, by which its nearest
/// port is meant, or one of its ports by address or by name (`HOST-DEVICE`), as programs in the hosts name them.
///
/// # Errors
/// "usage" for a host or an address that is not there, or two that no links join.
pub fn facts(topology: &Topology, layout: &Layout, client: &str, server: &str) -> Result<PathFacts, Failure> {
    let unknown_host = |name| unknown("host", name, layout.hosts.iter().map(|host| host.name.as_str()));
    let from = host(layout, client).ok_or_else(|| unknown_host(client))?;
    let to_port = match host(layout, server) {
        Some(to) => layout.nearest_port(from, to),
        None => Some(port(layout, server).ok_or_else(|| unknown_host(server))?),
    };
    to_port
        .and_then(|to_port| round_trip(topology, layout, from, to_port))
        .ok_or_else(|| {
            let what = format!("no path from {client:?} to {server:?}");
            Failure::new(FailureKind::Usage, what)
        })
}

fn host(layout: &Layout, name: &str) -> Option<usize> {
    layout.hosts.iter().position(|host| host.name == name)
}

fn port(layout: &Layout, name: &str) -> Option<usize> {
    if let Ok(address) = name.parse() {
        return layout.port_of(address);
    }
    layout.ports.iter().position(|port| {
        let host = &layout.hosts[port.host].name;
        name.strip_prefix(host.as_str())
            .and_then(|rest| rest.strip_prefix('-'))
            == Some(port.device.as_str())
    })
}

/// Shortest round trip of any path between two hosts.
pub fn shortest_rtt_s(topology: &Topology, layout: &Layout) -> f64 {
    let hosts = layout.hosts.iter().enumerate();
    let routes =
        hosts.flat_map(|(number, host)| host.routes.iter().map(move |route| (number, route.to_port)));
    let shortest = routes
        .filter_map(|(from, to_port)| round_trip(topology, layout, from, to_port))
        .map(|path| path.rtt_s)
        .fold(f64::INFINITY, f64::min);
    if shortest.is_finite() { shortest } else { 0.0 }
}

/// From a host to a port, and from that port's host back to the address that the first has on the way there.
fn round_trip(topology: &Topology, layout: &Layout, from: usize, to_port: usize) -> Option<PathFacts> {
    let there = layout.path_to_port(from, to_port)?;
    let own_port = layout.via(from, to_port)?;
    let back = layout.path_to_port(layout.ports[to_port].host, own_port)?;
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

pub fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let allowed = known.collect::<Vec<_>>().join(", ");
    Failure::new(
        FailureKind::Usage,
        format!("{what}: unknown {name:?}; allowed: {allowed}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    /// Two lanes between a and b, of which the second is shorter, and a longer way to b's third port over a router.
    fn lanes() -> (Topology, Layout) {
        let topology: Topology = from_json(
            r#"{"name":"t","hosts":[{"name":"a"},{"name":"b"}],"routers":["r"],"links":[
                {"name":"far","a":"r","b":"b","forward":{"delay_s":0.2}},
                {"name":"slow","a":"a","b":"b","forward":{"delay_s":0.05,"rate_bps":1000000}},
                {"name":"fast","a":"a","b":"b","forward":{"delay_s":0.005}},
                {"name":"in","a":"a","b":"r","forward":{"delay_s":0.1}}]}"#,
        )
        .unwrap();
        let layout = Layout::new(&topology).unwrap();
        (topology, layout)
    }

    #[test]
    fn a_name_is_the_nearest_port_and_an_address_exactly_its_own() {
        let (topology, layout) = lanes();
        let facts = |server: &str| facts(&topology, &layout, "a", server);
        let nearest = facts("b").unwrap();
        assert_eq!((nearest.rtt_s, nearest.rate_bps), (0.1, Some(1_000_000)));
        let fast = &layout.ports[layout.hosts[1].ports[2]];
        assert_eq!(fast.device, "eth2");
        for name in [fast.v4.to_string(), fast.v6.to_string(), "b-eth2".to_owned()] {
            let lane = facts(&name).unwrap();
            assert!(
                (lane.rtt_s - 0.01).abs() < 1e-9 && lane.rate_bps.is_none(),
                "{name}"
            );
        }
        assert!((facts("b-eth0").unwrap().rtt_s - 0.6).abs() < 1e-9);
        for unknown in ["c", "10.1.2.3", "b-eth7"] {
            assert_eq!(facts(unknown).unwrap_err().kind, FailureKind::Usage);
        }
    }

    #[test]
    fn the_shortest_round_trip_is_that_of_any_lane() {
        let (topology, layout) = lanes();
        assert!((shortest_rtt_s(&topology, &layout) - 0.01).abs() < 1e-9);
    }
}
