//! Shortest paths over routers.

use std::collections::VecDeque;

use super::{HostLayout, PipeLayout, Point, Route};

/// For every router and destination port: the pipe to take, and how many links are left.
#[derive(Debug, Clone)]
pub(super) struct Forwarding {
    /// By port: the pipe that leads away from it.
    away: Vec<usize>,
    /// By pipe: where it ends.
    ends: Vec<Point>,
    /// By router, then destination port.
    steps: Vec<Vec<Option<Step>>>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    pipe: usize,
    links: usize,
}

impl Forwarding {
    pub(super) fn new(pipes: &[PipeLayout], ports: usize, routers: usize) -> Self {
        let mut forwarding = Self {
            away: vec![0; ports],
            ends: pipes.iter().map(|pipe| pipe.to).collect(),
            steps: vec![vec![None; ports]; routers],
        };
        let mut into_router = vec![Vec::new(); routers];
        for (number, pipe) in pipes.iter().enumerate() {
            if let Point::Port(port) = pipe.from {
                forwarding.away[port] = number;
            }
            if let (Point::Router(from), Point::Router(to)) = (pipe.from, pipe.to) {
                into_router[to].push((number, from));
            }
        }
        for (number, pipe) in pipes.iter().enumerate() {
            if let (Point::Router(from), Point::Port(to)) = (pipe.from, pipe.to) {
                forwarding.spread(
                    to,
                    Step {
                        pipe: number,
                        links: 1,
                    },
                    from,
                    &into_router,
                );
            }
        }
        forwarding
    }

    /// Breadth-first from the router next to a port: every router learns its shortest way, the lowest pipe among equals.
    fn spread(&mut self, to_port: usize, step: Step, router: usize, into_router: &[Vec<(usize, usize)>]) {
        let mut reached = VecDeque::from([(router, step)]);
        while let Some((router, step)) = reached.pop_front() {
            if self.steps[router][to_port].is_some() {
                continue;
            }
            self.steps[router][to_port] = Some(step);
            let links = step.links + 1;
            reached.extend(
                into_router[router]
                    .iter()
                    .map(|&(pipe, from)| (from, Step { pipe, links })),
            );
        }
    }

    pub(super) fn next_pipe(&self, router: usize, to_port: usize) -> Option<usize> {
        self.steps[router][to_port].map(|step| step.pipe)
    }

    pub(super) fn first_pipe(&self, from_port: usize, to_port: usize) -> Option<usize> {
        self.links(from_port, to_port).map(|_| self.away[from_port])
    }

    /// How many links lie between two ports.
    fn links(&self, from_port: usize, to_port: usize) -> Option<usize> {
        match self.ends[*self.away.get(from_port)?] {
            Point::Port(port) => (port == to_port).then_some(1),
            Point::Router(router) => self.steps[router].get(to_port)?.map(|step| step.links + 1),
        }
    }
}

/// Routes of a host to every port of the others that it can reach: fewest links first. Among equals it is the port at
/// the destination's own place, so that k links side by side stay k lanes.
pub(super) fn routes(from: usize, hosts: &[HostLayout], forwarding: &Forwarding) -> Vec<Route> {
    let others = hosts.iter().enumerate().filter(|(number, _)| *number != from);
    others
        .flat_map(|(_, host)| host.ports.iter().enumerate())
        .filter_map(|(place, &to_port)| {
            let via_port = way(&hosts[from].ports, to_port, place, forwarding)?;
            Some(Route { to_port, via_port })
        })
        .collect()
}

fn way(ports: &[usize], to_port: usize, place: usize, forwarding: &Forwarding) -> Option<usize> {
    let links = |port: usize| forwarding.links(port, to_port);
    let fewest = ports.iter().filter_map(|&port| links(port)).min()?;
    let nearest: Vec<usize> = ports
        .iter()
        .copied()
        .filter(|&port| links(port) == Some(fewest))
        .collect();
    let twin = ports.get(place).filter(|port| nearest.contains(port));
    Some(*twin.unwrap_or(&nearest[place % nearest.len()]))
}
