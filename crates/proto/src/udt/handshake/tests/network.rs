//! Two ends and a network that loses, doubles and delays, in virtual time.

use std::net::SocketAddr;

use proptest::prelude::*;

use super::*;

/// One way, when nothing is wrong.
const DELAY_NS: u64 = 20 * MS;

/// What becomes of a datagram: how often it arrives, and how late.
pub type Fate = (u8, u64);

pub fn fates(most: usize) -> impl Strategy<Value = Vec<Fate>> {
    prop::collection::vec((0u8..3, 0u64..600), 0..most)
}

pub struct End {
    offer: Offer,
    address: SocketAddr,
    opening: Option<Opening>,
    pub listening: Option<Listening>,
    pub agreed: Vec<Agreed>,
    pub refused: Option<Refusal>,
    pub sent: usize,
    pub heard: usize,
    pub over_ns: u64,
}

impl End {
    pub fn new(offer: Offer, port: u16) -> Self {
        Self {
            offer,
            address: address(port),
            opening: None,
            listening: None,
            agreed: Vec::new(),
            refused: None,
            sent: 0,
            heard: 0,
            over_ns: 0,
        }
    }

    fn handle(&mut self, now_ns: u64, from: SocketAddr, datagram: &[u8]) -> Option<[u8; HANDSHAKE_BYTES]> {
        self.heard += 1;
        if let Some(listening) = &self.listening {
            return match listening.handle(now_ns, from, datagram, &self.offer) {
                Heard::Nothing => None,
                Heard::Answer(answer) => Some(answer),
                Heard::Wanted(theirs) => self.wanted(&theirs, from, datagram),
            };
        }
        if let Some(opening) = &mut self.opening {
            match opening.handle(now_ns, datagram) {
                Step::Wait => return None,
                Step::Done(agreed) => self.agreed.push(agreed),
                Step::Refused(refusal) => self.refused = Some(refusal),
            }
            self.over_ns = now_ns;
            return self.opening.take()?.poll_transmit(now_ns);
        }
        late_answer(self.agreed.first()?, &self.offer, datagram)
    }

    fn wanted(
        &mut self,
        theirs: &Handshake,
        from: SocketAddr,
        datagram: &[u8],
    ) -> Option<[u8; HANDSHAKE_BYTES]> {
        if let Some(agreed) = self
            .agreed
            .iter()
            .find(|agreed| agreed.peer_socket == theirs.socket)
        {
            return late_answer(agreed, &self.offer, datagram);
        }
        let (agreed, answer) = Listening::accept(theirs, from.ip(), &self.offer);
        self.agreed.push(agreed);
        Some(answer)
    }
}

pub struct Network {
    pub now_ns: u64,
    pub ends: [End; 2],
    starts: Vec<(u64, usize, Opening)>,
    in_flight: Vec<(u64, usize, [u8; HANDSHAKE_BYTES])>,
    fates: std::vec::IntoIter<Fate>,
}

impl Network {
    pub fn new(ends: [End; 2], fates: Vec<Fate>) -> Self {
        Self {
            now_ns: 0,
            ends,
            starts: Vec::new(),
            in_flight: Vec::new(),
            fates: fates.into_iter(),
        }
    }

    /// A caller and a listener.
    pub fn call(fates: Vec<Fate>) -> Self {
        let mut network = Self::new([End::new(offer(1), 1000), End::new(offer(2), 2000)], fates);
        network.ends[0].opening = Some(Opening::caller(offer(1), peer(), 0));
        network.ends[1].listening = Some(Listening::new([7; 32]));
        network
    }

    /// Two ends that want each other, the second some time after the first.
    pub fn meeting(fates: Vec<Fate>, later_ns: u64) -> Self {
        let mut network = Self::new([End::new(offer(1), 1000), End::new(offer(2), 2000)], fates);
        network.ends[0].opening = Some(Opening::rendezvous(offer(1), peer(), 0));
        let second = Opening::rendezvous(offer(2), peer(), later_ns);
        network.starts.push((later_ns, 1, second));
        network
    }

    fn send(&mut self, from: usize, datagram: [u8; HANDSHAKE_BYTES]) {
        self.ends[from].sent += 1;
        let (copies, late_ms) = self.fates.next().unwrap_or((1, 0));
        for copy in 0..u64::from(copies) {
            let arrives_ns = self.now_ns + DELAY_NS + late_ms * MS * (copy + 1);
            self.in_flight.push((arrives_ns, 1 - from, datagram));
        }
    }

    fn next_ns(&self) -> Option<u64> {
        let timeouts = self
            .ends
            .iter()
            .filter_map(|end| Some(end.opening.as_ref()?.next_timeout()));
        let starts = self.starts.iter().map(|start| start.0);
        let arrivals = self.in_flight.iter().map(|packet| packet.0);
        timeouts.chain(starts).chain(arrivals).min()
    }

    /// Goes on until `until_ns`, or until nobody has anything to say any more.
    pub fn run(&mut self, until_ns: u64) {
        for _ in 0..10_000 {
            let Some(next_ns) = self.next_ns().filter(|&next_ns| next_ns <= until_ns) else {
                return;
            };
            self.now_ns = self.now_ns.max(next_ns);
            self.start();
            self.deliver();
            self.poll();
        }
        panic!("they never stop talking");
    }

    fn start(&mut self) {
        while let Some(place) = self.starts.iter().position(|start| start.0 <= self.now_ns) {
            let (_, end, opening) = self.starts.remove(place);
            self.ends[end].opening = Some(opening);
        }
    }

    fn deliver(&mut self) {
        while let Some(place) = self.in_flight.iter().position(|packet| packet.0 <= self.now_ns) {
            let (_, to, datagram) = self.in_flight.remove(place);
            let from = self.ends[1 - to].address;
            if let Some(answer) = self.ends[to].handle(self.now_ns, from, &datagram) {
                self.send(to, answer);
            }
        }
    }

    fn poll(&mut self) {
        for end in 0..2 {
            let now_ns = self.now_ns;
            while let Some(datagram) = self.ends[end]
                .opening
                .as_mut()
                .and_then(|one| one.poll_transmit(now_ns))
            {
                self.send(end, datagram);
            }
            let opening = &mut self.ends[end].opening;
            if opening
                .as_ref()
                .is_some_and(|opening| now_ns >= opening.expires_ns())
            {
                *opening = None;
                self.ends[end].over_ns = now_ns;
            }
        }
    }
}
