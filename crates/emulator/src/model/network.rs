//! All pipes of a topology, and the packets between them.

use std::collections::VecDeque;

use farline_spec::{Failure, FailureKind, LinkChange, LinkDirection, LinkSpec, Topology};

use super::agenda::{Agenda, NEVER};
use super::counters::{PipeCounters, PipeState};
use super::outbox::{Outbox, TooBig, Watched};
use super::pipe::{Pipe, Step};
use super::settings;
use super::train::Train;
use super::transit::Transit;
use crate::layout::{Layout, Point};

/// A train at the end of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrival<P> {
    /// When its last segment arrives.
    pub at_ns: u64,
    /// The port it was sent to.
    pub port: usize,
    /// What arrives.
    pub train: Train<P>,
}

/// All pipes of a topology, and the packets between them.
///
/// Time is nanoseconds since the start and never goes back: an earlier time given to a method is taken as the latest one
/// seen. `send` and `change` first let time pass; what arrives meanwhile waits for the next `advance`.
#[derive(Debug)]
pub struct Network<P> {
    topology: Topology,
    layout: Layout,
    pipes: Vec<Pipe<P>>,
    agenda: Agenda,
    now_ns: u64,
    arrivals: VecDeque<Arrival<P>>,
    outbox: Outbox<P>,
}

impl<P: Clone> Network<P> {
    /// The network at time 0, empty.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when an option of a link could have no effect beside the others.
    pub fn new(topology: &Topology, layout: &Layout) -> Result<Self, Failure> {
        let mut pipes = Vec::with_capacity(2 * topology.links.len());
        for link in &topology.links {
            let directions = [&link.forward, link.backward()];
            for (direction, name) in ["forward", "reverse"].into_iter().enumerate() {
                let (spec, back) = (directions[direction], directions[1 - direction]);
                settings::check(&format!("links.{}.{name}", link.name), spec)?;
                let return_delay_ns = settings::nanoseconds(back.delay_s.get());
                pipes.push(Pipe::new(topology.seed, pipes.len(), spec, return_delay_ns));
            }
        }
        let mut network = Self {
            topology: topology.clone(),
            layout: layout.clone(),
            agenda: Agenda::new(pipes.len()),
            pipes,
            now_ns: 0,
            arrivals: VecDeque::new(),
            outbox: Outbox::new(),
        };
        for pipe in 0..network.pipes.len() {
            network.schedule(pipe);
        }
        Ok(network)
    }

    /// Sends a train from a port to another; all its segments come to the first pipe at `now_ns`.
    ///
    /// False if no path leads there: then nothing was counted, and the train is gone.
    pub fn send(&mut self, now_ns: u64, from_port: usize, to_port: usize, train: Train<P>) -> bool {
        self.pass_until(now_ns);
        let Some(pipe) = self.layout.first_pipe(from_port, to_port) else {
            return false;
        };
        let transit = Transit {
            train,
            from_port: from_port as u32,
            to_port: to_port as u32,
            at_ns: self.now_ns,
            span_ns: 0,
        };
        self.pipes[pipe].arrive(self.now_ns, transit, &mut self.outbox);
        self.schedule(pipe);
        true
    }

    /// When something happens next, if nothing is sent before.
    pub fn next_event_ns(&self) -> Option<u64> {
        match self.arrivals.front() {
            Some(arrival) => Some(arrival.at_ns),
            None => Some(self.agenda.earliest_ns()).filter(|at_ns| *at_ns != NEVER),
        }
    }

    /// Lets time pass until `now_ns` and hands over what arrived, in order of time.
    pub fn advance(&mut self, now_ns: u64, sink: &mut impl FnMut(Arrival<P>)) {
        loop {
            while let Some(arrival) = self.arrivals.pop_front() {
                sink(arrival);
            }
            if !self.agenda.is_due(now_ns) {
                break;
            }
            self.step();
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    fn pass_until(&mut self, now_ns: u64) {
        while self.agenda.is_due(now_ns) {
            self.step();
        }
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Does what is due first.
    fn step(&mut self) {
        let pipe = self.agenda.first();
        self.now_ns = self.now_ns.max(self.agenda.earliest_ns());
        match self.pipes[pipe].step(self.now_ns, &mut self.outbox) {
            Step::Arrived(transit) => self.forward(pipe, transit),
            Step::Changed => self.tell_other_direction(pipe),
            Step::Quiet => {}
        }
        self.schedule(pipe);
    }

    /// Hands a train on at the end of a pipe.
    fn forward(&mut self, pipe: usize, transit: Transit<P>) {
        match self.layout.pipes[pipe].to {
            Point::Port(port) => self.arrivals.push_back(Arrival {
                at_ns: transit.at_ns,
                port,
                train: transit.train,
            }),
            Point::Router(router) => {
                let next = self.layout.next_pipe(router, transit.to_port as usize);
                debug_assert!(next.is_some(), "a train sets out only where a path leads");
                if let Some(next) = next {
                    self.pipes[next].arrive(self.now_ns, transit, &mut self.outbox);
                    self.schedule(next);
                }
            }
        }
    }

    /// Capacities in bandwidth-delay products depend on the delays of both directions.
    fn tell_other_direction(&mut self, pipe: usize) {
        let delay_ns = self.pipes[pipe].distance.delay_ns;
        self.pipes[pipe ^ 1].set_return_delay(delay_ns);
    }

    fn schedule(&mut self, pipe: usize) {
        let at_ns = self.pipes[pipe].next_event_ns().unwrap_or(NEVER);
        self.agenda.set(pipe, at_ns);
    }

    /// Changes a link.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when there is no such link, or a queue would not hold a packet: then nothing changes.
    pub fn change(&mut self, now_ns: u64, change: &LinkChange) -> Result<(), Failure> {
        let links = &self.topology.links;
        let link = links
            .iter()
            .position(|link| link.name == change.link)
            .ok_or_else(|| unknown_link(links, &change.link))?;
        self.pass_until(now_ns);
        let directions = match change.direction {
            LinkDirection::Forward => 0..1,
            LinkDirection::Reverse => 1..2,
            LinkDirection::Both => 0..2,
        };
        let pipes = directions.map(|direction| 2 * link + direction);
        for pipe in pipes.clone() {
            let place = format!("links.{}", change.link);
            settings::check_capacity(&place, change.change.capacity_bytes, &self.pipes[pipe].settings)?;
        }
        for pipe in pipes {
            self.pipes[pipe].change(self.now_ns, &change.change, &mut self.outbox);
            self.tell_other_direction(pipe);
            self.schedule(pipe);
        }
        Ok(())
    }

    /// The topology as it stands now: with every change but cuts, for which a topology has no words.
    pub fn topology(&self) -> Topology {
        let mut topology = self.topology.clone();
        for (number, link) in topology.links.iter_mut().enumerate() {
            let [forward, reverse] = [2 * number, 2 * number + 1].map(|pipe| self.pipes[pipe].spec());
            link.forward = forward.clone();
            link.reverse = (link.reverse.is_some() || reverse != forward).then(|| reverse.clone());
        }
        topology
    }

    /// Whether a pipe carries packets, or is cut.
    pub fn is_up(&self, pipe: usize) -> bool {
        self.pipes[pipe].up
    }

    /// What a pipe counted since the start.
    pub fn counters(&self, pipe: usize) -> PipeCounters {
        self.pipes[pipe].counters
    }

    /// A pipe at `now_ns`, if time has passed until then.
    pub fn state(&self, pipe: usize, now_ns: u64) -> PipeState {
        self.pipes[pipe].state(now_ns.max(self.now_ns))
    }

    /// Largest backlog since the last call, in bytes on the wire.
    pub fn take_backlog_max(&mut self, pipe: usize) -> u64 {
        self.pipes[pipe].take_backlog_max(self.now_ns)
    }

    /// Packets that met too small an MTU since the last call, in order of time; of more than 4096 only the first.
    pub fn take_too_big(&mut self) -> Vec<TooBig<P>> {
        std::mem::take(&mut self.outbox.too_big)
    }

    /// Starts or stops watching a pipe.
    pub fn watch(&mut self, pipe: usize, on: bool) {
        self.pipes[pipe].watched = on;
    }

    /// What left the wires of watched pipes since the last call, in order of time. It is kept until taken.
    pub fn take_watched(&mut self) -> Vec<Watched<P>> {
        std::mem::take(&mut self.outbox.watched)
    }
}

fn unknown_link(links: &[LinkSpec], name: &str) -> Failure {
    let known: Vec<_> = links.iter().map(|link| link.name.as_str()).collect();
    let allowed = known.join(", ");
    Failure::new(
        FailureKind::Spec,
        format!("link: {name:?} is not a link; allowed: {allowed}"),
    )
}
