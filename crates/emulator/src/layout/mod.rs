//! What follows from a topology: ports with devices and addresses, pipes, routes. Pure; packets and time are unknown here.
//!
//! In: a checked [`Topology`]. Out: a [`Layout`], which the model, the relay and the simulator share, so that all of
//! them mean the same by port and pipe number.
//!
//! A *port* is a host's end of a link. Ports are numbered in the order of the links, `a` before `b`; a host's devices
//! `eth0`, `eth1`, ... follow the same order. Each link has two *pipes*: number `2 * link` from `a` to `b`, and
//! `2 * link + 1` back. Hosts do not forward: a path leads from a port over routers to a port.
//!
//! Start with [`Layout::new`]; how paths are found is in `paths`.

mod paths;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use farline_spec::{Failure, FailureKind, HostSpec, LinkSpec, PipeSpec, Topology};

use paths::Forwarding;

/// Largest IP packet of a pipe that states none.
const DEFAULT_MTU_BYTES: u32 = 1500;

/// A host and how it reaches the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostLayout {
    /// Name.
    pub name: String,
    /// Its ports, in the order of its devices.
    pub ports: Vec<usize>,
    /// One for each port of another host that can be reached.
    pub routes: Vec<Route>,
}

/// Which of its ports a host uses for a destination address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Whose address is the destination.
    pub to_port: usize,
    /// The host's own port on the way there.
    pub via_port: usize,
}

/// A host's end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortLayout {
    /// Number of the host.
    pub host: usize,
    /// Number of the link.
    pub link: usize,
    /// Name of the network device: `eth0`, `eth1`, ...
    pub device: String,
    /// Its address, as /32.
    pub v4: Ipv4Addr,
    /// Its address, as /128.
    pub v6: Ipv6Addr,
    /// Largest IP packet of the pipe that leads away from the port.
    pub mtu_bytes: u32,
}

/// An end of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// A host's port, by number.
    Port(usize),
    /// A router, by its place in the topology.
    Router(usize),
}

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeLayout {
    /// Number of the link.
    pub link: usize,
    /// 0 from `a` to `b`, 1 back.
    pub direction: usize,
    /// Where it begins.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
}

/// Everything that has a number or an address in a topology.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Hosts, in the order of the topology.
    pub hosts: Vec<HostLayout>,
    /// Ports of all hosts.
    pub ports: Vec<PortLayout>,
    /// Pipes: number is `2 * link + direction`.
    pub pipes: Vec<PipeLayout>,
    forwarding: Forwarding,
    by_address: HashMap<IpAddr, usize>,
}

impl Layout {
    /// Numbers, addresses and routes of a topology.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when a link ends at a point that is neither host nor router.
    pub fn new(topology: &Topology) -> Result<Self, Failure> {
        let mut ends = Ends::new(topology);
        let mut pipes = Vec::with_capacity(2 * topology.links.len());
        for (link, spec) in topology.links.iter().enumerate() {
            let a = ends.add(link, spec, Side::A)?;
            let b = ends.add(link, spec, Side::B)?;
            pipes.push(pipe(link, 0, a, b));
            pipes.push(pipe(link, 1, b, a));
        }
        let Ends { mut hosts, ports, .. } = ends;
        let forwarding = Forwarding::new(&pipes, ports.len(), topology.routers.len());
        for number in 0..hosts.len() {
            hosts[number].routes = paths::routes(number, &hosts, &forwarding);
        }
        let addresses = ports.iter().enumerate();
        let by_address = addresses
            .flat_map(|(number, port)| [(IpAddr::V4(port.v4), number), (IpAddr::V6(port.v6), number)])
            .collect();
        Ok(Self {
            hosts,
            ports,
            pipes,
            forwarding,
            by_address,
        })
    }

    /// Number of the port that has an address.
    pub fn port_of(&self, address: IpAddr) -> Option<usize> {
        self.by_address.get(&address).copied()
    }

    /// Pipes from a port to another, in order; none if no path over routers joins them.
    pub fn path(&self, from_port: usize, to_port: usize) -> Option<Vec<usize>> {
        let mut pipe = self.first_pipe(from_port, to_port)?;
        let mut path = vec![pipe];
        while let Point::Router(router) = self.pipes[pipe].to {
            pipe = self.forwarding.next_pipe(router, to_port)?;
            path.push(pipe);
        }
        Some(path)
    }

    /// The port of `to_host` that a host means by its name: the one that the fewest links lead to, the first of several.
    /// Hosts do not forward, so others may be out of reach; none if all are. A host's own is its first.
    pub fn nearest_port(&self, from_host: usize, to_host: usize) -> Option<usize> {
        let ports = self.hosts[to_host].ports.iter().copied();
        let ways = ports.filter_map(|port| Some((self.links_to(from_host, port)?, port)));
        // Equals are taken in the order of their ports.
        ways.min().map(|(_, port)| port)
    }

    /// Links on a host's way to a port.
    fn links_to(&self, from_host: usize, port: usize) -> Option<usize> {
        if self.ports[port].host == from_host {
            return Some(0);
        }
        let via_port = self.via(from_host, port)?;
        self.path(via_port, port).map(|pipes| pipes.len())
    }

    /// The port by which a host sends to another host's port.
    pub fn via(&self, from_host: usize, to_port: usize) -> Option<usize> {
        let mut routes = self.hosts[from_host].routes.iter();
        let route = routes.find(|route| route.to_port == to_port)?;
        Some(route.via_port)
    }

    /// Pipes from a host to a port of another.
    pub fn path_to_port(&self, from_host: usize, to_port: usize) -> Option<Vec<usize>> {
        self.path(self.via(from_host, to_port)?, to_port)
    }

    /// Pipes from a host to the port that it means by another's name.
    pub fn path_between(&self, from_host: &str, to_host: &str) -> Option<Vec<usize>> {
        let number = |name: &str| self.hosts.iter().position(|host| host.name == name);
        let (from, to) = (number(from_host)?, number(to_host)?);
        self.path_to_port(from, self.nearest_port(from, to)?)
    }

    /// The pipe that leads away from a port, if it is on a path to the other.
    pub(crate) fn first_pipe(&self, from_port: usize, to_port: usize) -> Option<usize> {
        self.forwarding.first_pipe(from_port, to_port)
    }

    /// The pipe by which a router sends on what goes to a port.
    pub(crate) fn next_pipe(&self, router: usize, to_port: usize) -> Option<usize> {
        self.forwarding.next_pipe(router, to_port)
    }
}

/// Hosts and ports as the links are gone through.
struct Ends<'a> {
    routers: &'a [String],
    hosts: Vec<HostLayout>,
    ports: Vec<PortLayout>,
}

impl<'a> Ends<'a> {
    fn new(topology: &'a Topology) -> Self {
        let unconnected = |host: &HostSpec| HostLayout {
            name: host.name.clone(),
            ports: Vec::new(),
            routes: Vec::new(),
        };
        Self {
            routers: &topology.routers,
            hosts: topology.hosts.iter().map(unconnected).collect(),
            ports: Vec::new(),
        }
    }

    /// The point at one end of a link; a host gets a port for it.
    fn add(&mut self, link: usize, spec: &LinkSpec, side: Side) -> Result<Point, Failure> {
        let (name, away) = match side {
            Side::A => (&spec.a, &spec.forward),
            Side::B => (&spec.b, spec.backward()),
        };
        if let Some(router) = self.routers.iter().position(|router| router == name) {
            return Ok(Point::Router(router));
        }
        let host = self.hosts.iter().position(|host| host.name == *name);
        let host = host.ok_or_else(|| unknown_end(&spec.name, name))?;
        let place = self.hosts[host].ports.len();
        let number = self.ports.len();
        self.hosts[host].ports.push(number);
        self.ports.push(port(host, place, link, side, away));
        Ok(Point::Port(number))
    }
}

/// An end of a link, as the last part of its address.
#[derive(Debug, Clone, Copy)]
enum Side {
    A = 1,
    B = 2,
}

fn unknown_end(link: &str, name: &str) -> Failure {
    Failure::new(
        FailureKind::Spec,
        format!("links.{link}: {name:?} is not a host or router"),
    )
}

fn pipe(link: usize, direction: usize, from: Point, to: Point) -> PipeLayout {
    PipeLayout {
        link,
        direction,
        from,
        to,
    }
}

fn port(host: usize, place: usize, link: usize, side: Side, away: &PipeSpec) -> PortLayout {
    // 127 links fill the third octet: 2 * 126 + 2 is its address 254.
    let (third, fourth) = ((link / 127) as u8, 2 * (link % 127) as u8 + side as u8);
    PortLayout {
        host,
        link,
        device: format!("eth{place}"),
        v4: Ipv4Addr::new(10, 77, third, fourth),
        v6: Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, link as u16, side as u16),
        mtu_bytes: away
            .mtu_bytes
            .map_or(DEFAULT_MTU_BYTES, |mtu| u32::from(mtu.get())),
    }
}
