//! The network, the machines at its hosts, and virtual time.

use farline_emulator::layout::Layout;
use farline_emulator::model::{Arrival, Network, PipeCounters, PipeState, Train};
use farline_spec::{Failure, FailureKind, LinkChange, Topology};

use crate::endpoint::{Endpoint, EndpointId, Received, Transmit};
use crate::sample::{PipeSample, Samples};

/// What travels: a machine's packet and the two machines it is between.
#[derive(Debug, Clone, Copy)]
struct Envelope<P> {
    from: EndpointId,
    to: EndpointId,
    packet: P,
}

/// A machine and where it is.
#[derive(Debug)]
struct Slot<E> {
    port: usize,
    endpoint: E,
    timeout_ns: u64,
}

/// A network with machines at its hosts, at one instant of virtual time.
#[derive(Debug)]
pub struct World<E: Endpoint> {
    layout: Layout,
    network: Network<Envelope<E::Packet>>,
    slots: Vec<Slot<E>>,
    now_ns: u64,
    arrivals: Vec<Arrival<Envelope<E::Packet>>>,
    sample_every_ns: u64,
    next_sample_ns: u64,
    samples: Samples,
    unreachable: Option<(usize, usize)>,
}

impl<E: Endpoint> World<E> {
    /// An empty world at time 0 that samples every `sample_every_ns`, from then on; 0 takes no samples.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when the topology does not hold together.
    pub fn new(topology: &Topology, sample_every_ns: u64) -> Result<Self, Failure> {
        let topology = topology.clone().checked()?;
        let layout = Layout::new(&topology)?;
        let network = Network::new(&topology, &layout)?;
        let pipes = vec![Vec::new(); layout.pipes.len()];
        Ok(Self {
            layout,
            network,
            slots: Vec::new(),
            now_ns: 0,
            arrivals: Vec::new(),
            sample_every_ns,
            next_sample_ns: if sample_every_ns == 0 {
                u64::MAX
            } else {
                sample_every_ns
            },
            samples: Samples {
                pipes,
                ..Samples::default()
            },
            unreachable: None,
        })
    }

    /// Puts a machine at a host's port, to start now.
    ///
    /// # Panics
    /// When the layout has no such port.
    pub fn add(&mut self, port: usize, endpoint: E) -> EndpointId {
        assert!(
            port < self.layout.ports.len(),
            "port {port}: the layout has {}",
            self.layout.ports.len()
        );
        let id = EndpointId(u32::try_from(self.slots.len()).expect("fewer than 2^32 machines"));
        let rows = self.samples.at_ns.len();
        self.samples.endpoints.push(vec![endpoint.gauges(); rows]);
        self.slots.push(Slot {
            port,
            endpoint,
            timeout_ns: u64::MAX,
        });
        self.drain(id);
        id
    }

    /// Ports, pipes and paths.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Virtual time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// A machine as it stands.
    pub fn endpoint(&self, id: EndpointId) -> &E {
        &self.slots[id.0 as usize].endpoint
    }

    /// Samples so far; a machine's place in them is the order of its adding.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// What a pipe counted since the start.
    pub fn counters(&self, pipe: usize) -> PipeCounters {
        self.network.counters(pipe)
    }

    /// A pipe now.
    pub fn state(&self, pipe: usize) -> PipeState {
        self.network.state(pipe, self.now_ns)
    }

    /// Changes a link now.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when there is no such link.
    pub fn change(&mut self, change: &LinkChange) -> Result<(), Failure> {
        self.network.change(self.now_ns, change)
    }

    /// Calls a method of a machine now, as its application would, and sends what follows from it.
    pub fn command<T>(&mut self, id: EndpointId, command: impl FnOnce(u64, &mut E) -> T) -> T {
        let answer = command(self.now_ns, &mut self.slots[id.0 as usize].endpoint);
        self.drain(id);
        answer
    }

    /// Lets time pass until `end_ns`, then checks every pipe's books.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] when a machine sent to a port that no path leads to; [`FailureKind::Internal`] when
    /// packets of a pipe are unaccounted for.
    pub fn run_until(&mut self, end_ns: u64) -> Result<(), Failure> {
        while let Some(next_ns) = self.next_event_ns().filter(|next_ns| *next_ns <= end_ns) {
            self.now_ns = self.now_ns.max(next_ns);
            self.deliver();
            self.fire();
            if self.now_ns >= self.next_sample_ns {
                self.sample();
            }
        }
        self.now_ns = self.now_ns.max(end_ns);
        self.check()
    }

    /// Checks that every packet that came to a pipe left it, was dropped for a known reason, or is in flight, and that
    /// no machine sent to nowhere.
    ///
    /// # Errors
    /// As [`World::run_until`].
    pub fn check(&self) -> Result<(), Failure> {
        if let Some((from, to)) = self.unreachable {
            let reason = format!("a machine at port {from} sent to port {to}: no path joins them");
            return Err(Failure::new(FailureKind::Spec, reason));
        }
        for pipe in 0..self.layout.pipes.len() {
            let counted = self.counters(pipe).unaccounted_packets();
            let in_flight = self.state(pipe).in_flight_packets;
            if u64::try_from(counted) != Ok(in_flight) {
                let reason = format!("pipe {pipe}: {counted} packets by its counters, {in_flight} in flight");
                return Err(Failure::new(FailureKind::Internal, reason));
            }
        }
        Ok(())
    }

    fn next_event_ns(&self) -> Option<u64> {
        let timeout_ns = self
            .slots
            .iter()
            .map(|slot| slot.timeout_ns)
            .min()
            .unwrap_or(u64::MAX);
        let network_ns = self.network.next_event_ns().unwrap_or(u64::MAX);
        let next_ns = timeout_ns.min(network_ns).min(self.next_sample_ns);
        (next_ns < u64::MAX).then_some(next_ns)
    }

    fn deliver(&mut self) {
        let mut arrivals = std::mem::take(&mut self.arrivals);
        self.network
            .advance(self.now_ns, &mut |arrival| arrivals.push(arrival));
        for arrival in arrivals.drain(..) {
            let id = arrival.train.payload.to;
            let received = open(arrival.train);
            self.slots[id.0 as usize]
                .endpoint
                .handle_packet(arrival.at_ns, received);
            self.drain(id);
        }
        self.arrivals = arrivals;
    }

    fn fire(&mut self) {
        for index in 0..self.slots.len() {
            if self.slots[index].timeout_ns <= self.now_ns {
                self.slots[index].endpoint.handle_timeout(self.now_ns);
                self.drain(EndpointId(index as u32));
            }
        }
    }

    /// Sends what a machine has to send and notes when it wants to be woken.
    fn drain(&mut self, id: EndpointId) {
        let index = id.0 as usize;
        while let Some(transmit) = self.slots[index].endpoint.poll_transmit(self.now_ns) {
            let from_port = self.slots[index].port;
            let to_port = self.slots[transmit.to.0 as usize].port;
            if !self
                .network
                .send(self.now_ns, from_port, to_port, seal(id, transmit))
            {
                self.unreachable = Some((from_port, to_port));
            }
        }
        let slot = &mut self.slots[index];
        slot.timeout_ns = slot.endpoint.next_timeout().unwrap_or(u64::MAX);
    }

    fn sample(&mut self) {
        self.samples.at_ns.push(self.now_ns);
        for (slot, rows) in self.slots.iter().zip(&mut self.samples.endpoints) {
            rows.push(slot.endpoint.gauges());
        }
        for pipe in 0..self.layout.pipes.len() {
            let row = self.sample_pipe(pipe);
            self.samples.pipes[pipe].push(row);
        }
        self.next_sample_ns += self.sample_every_ns;
    }

    fn sample_pipe(&mut self, pipe: usize) -> PipeSample {
        let counters = self.counters(pipe);
        PipeSample {
            backlog_bytes: self.state(pipe).backlog_bytes,
            backlog_max_bytes: self.network.take_backlog_max(pipe),
            out_packets: counters.out_packets,
            queue_drop_packets: counters.tail_drop_packets + counters.codel_drop_packets,
            loss_packets: counters.loss_packets + counters.cut_packets,
        }
    }
}

fn seal<P>(from: EndpointId, transmit: Transmit<P>) -> Train<Envelope<P>> {
    Train {
        payload: Envelope {
            from,
            to: transmit.to,
            packet: transmit.packet,
        },
        first: 0,
        segments: transmit.segments,
        segment_bytes: transmit.segment_bytes,
        last_bytes: transmit.last_bytes,
        ecn_capable: transmit.ecn_capable,
        marked: false,
        corrupt: None,
    }
}

fn open<P>(train: Train<Envelope<P>>) -> Received<P> {
    Received {
        from: train.payload.from,
        first: train.first,
        segments: train.segments,
        bytes: train.bytes(),
        marked: train.marked,
        corrupt: train.corrupt,
        packet: train.payload.packet,
    }
}
