//! A path that loses, doubles, delays and carries only so much, with a driver at each end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;
use crate::rbudp::wire::{
    Decoder, Done, HEADER_BYTES, Header, MARK, Message, decode_mark, encode, encode_mark, packet_hash,
};

/// Steps after which a stream that should have ended has not.
const MOST_STEPS: usize = 3_000_000;
const TOKEN: u32 = 0xFA00_0001;

/// What lies between the ends.
#[derive(Debug, Clone)]
pub struct Path {
    /// One way.
    pub delay_ns: u64,
    /// Share of datagrams that are lost, come twice, come late.
    pub loss: f64,
    pub doubles: f64,
    pub late: f64,
    /// How late the late ones are at most.
    pub lateness_ns: u64,
    /// How late TCP messages are at most: its repetitions.
    pub tcp_lateness_ns: u64,
    /// What the narrowest link carries, with a queue of 10 ms; 0 is anything.
    pub bottleneck_bps: u64,
    pub seed: u64,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            delay_ns: 10 * MS,
            loss: 0.0,
            doubles: 0.0,
            late: 0.0,
            lateness_ns: 0,
            tcp_lateness_ns: 0,
            bottleneck_bps: 0,
            seed: 1,
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Datagram(Vec<u8>),
    ToReceiver(Vec<u8>),
    ToSender(Vec<u8>),
}

/// Both ends, what is under way between them, and what came out.
pub struct World {
    pub now_ns: u64,
    pub path: Path,
    pub options: SenderOptions,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Every DONE that went as datagrams, when, and in how many copies.
    pub marks: Vec<(u64, Done, u32)>,
    /// Every message: when it was sent.
    pub messages: Vec<(u64, Message)>,
    /// Most bytes that the application gives at once.
    pub most_given: u64,
    /// The application pauses after so many bytes, and what it gave must not wait for more.
    pub pause_every: u64,
    /// What the sending host manages; 0 is anything.
    pub host_bps: u64,
    /// Of a burst the kernel takes this many packets at most.
    pub kernel_takes: usize,
    /// What the application got.
    pub output: Vec<u8>,
    payload: Vec<u8>,
    given: usize,
    memory: Vec<u8>,
    burst: Burst,
    next_send_ns: u64,
    /// Whether there may be something to send then.
    has_more: bool,
    /// When the narrowest link is free.
    free_ns: u64,
    tcp_ns: [u64; 2],
    decoders: [Decoder; 2],
    events: BinaryHeap<Reverse<(u64, usize, Event)>>,
    order: usize,
    random: u64,
}

impl World {
    pub fn new(path: Path, options: SenderOptions, payload_bytes: usize) -> Self {
        let receiver_options = ReceiverOptions {
            packet_bytes: options.packet_bytes,
            payload_bytes: options.payload_bytes,
            in_flight: options.in_flight,
            settle_ns: settle_ns(options.rtt_ns),
            checksum: options.checksum,
        };
        let max_packets = packet_count(options.payload_bytes, options.packet_bytes);
        let mut world = Self {
            now_ns: 0,
            random: path.seed,
            path,
            options,
            sender: Sender::new(options),
            receiver: Receiver::new(receiver_options),
            marks: Vec::new(),
            messages: Vec::new(),
            most_given: u64::MAX,
            pause_every: u64::MAX,
            host_bps: 0,
            kernel_takes: usize::MAX,
            output: Vec::new(),
            payload: Vec::new(),
            given: 0,
            memory: vec![0; options.payload_bytes as usize * options.in_flight as usize],
            burst: Burst::default(),
            next_send_ns: 0,
            has_more: true,
            free_ns: 0,
            tcp_ns: [0; 2],
            decoders: [Decoder::new(max_packets), Decoder::new(max_packets)],
            events: BinaryHeap::new(),
            order: 0,
        };
        world.payload = (0..payload_bytes).map(|_| world.bits() as u8).collect();
        world
    }

    /// Runs until both ends are done, and checks that the application got what was given.
    pub fn run(&mut self) {
        for _ in 0..MOST_STEPS {
            if !self.step() {
                break;
            }
        }
        assert!(
            self.sender.is_finished() && self.receiver.is_ended(),
            "{:?}",
            self.sender
        );
        assert!(self.output == self.payload, "the application got something else");
    }

    /// One moment; false once nothing happens any more.
    pub fn step(&mut self) -> bool {
        self.send();
        self.poll();
        let events = self.events.peek().map(|Reverse((at_ns, _, _))| *at_ns);
        let sends = self.has_more.then_some(self.next_send_ns);
        let timeouts = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
        let Some(next_ns) = [events, sends].into_iter().chain(timeouts).flatten().min() else {
            return false;
        };
        self.now_ns = self.now_ns.max(next_ns);
        if self
            .sender
            .poll_timeout()
            .is_some_and(|at_ns| at_ns <= self.now_ns)
        {
            self.sender.handle_timeout(self.now_ns);
        }
        while self
            .events
            .peek()
            .is_some_and(|Reverse((at_ns, _, _))| *at_ns <= self.now_ns)
        {
            let Some(Reverse((_, _, event))) = self.events.pop() else {
                break;
            };
            self.arrive(event);
        }
        !self.sender.is_finished()
    }

    fn send(&mut self) {
        self.has_more = true;
        if self.now_ns < self.next_send_ns {
            return;
        }
        let rest = (self.payload.len() - self.given) as u64;
        let to_pause = self.pause_every - self.given as u64 % self.pause_every;
        let bytes = rest.min(self.sender.room()).min(self.most_given).min(to_pause);
        assert_eq!(self.sender.give(bytes).is_some(), bytes > 0);
        self.given += bytes as usize;
        if bytes == to_pause {
            self.sender.close_blast();
        }
        if self.given == self.payload.len() && rest > 0 {
            self.sender.finish(self.now_ns);
        }
        let mut burst = std::mem::take(&mut self.burst);
        let sends = self.sender.next_burst(self.now_ns, 44, &mut burst);
        self.has_more = sends || (self.given < self.payload.len() && self.sender.room() > 0);
        if sends {
            let sent = burst.packets.len().min(self.kernel_takes);
            self.send_burst(&burst, sent);
        }
        self.burst = burst;
    }

    fn send_burst(&mut self, burst: &Burst, sent: usize) {
        let mut sum = 0u64;
        let mut bits = 0;
        for (index, &packet) in burst.packets[..sent].iter().enumerate() {
            let is_last = index + 1 == burst.packets.len();
            let bytes = if is_last {
                burst.last_bytes
            } else {
                burst.packet_bytes
            };
            let start = burst.offset as usize + packet as usize * burst.packet_bytes;
            let payload = &self.payload[start..start + bytes];
            let hash = packet_hash(burst.blast, packet, payload);
            sum = sum.wrapping_add(hash);
            let mut datagram = vec![0; HEADER_BYTES];
            let header = Header {
                token: TOKEN,
                blast: burst.blast,
                packet,
                check: hash as u32,
            };
            header.write(&mut datagram);
            datagram.extend(payload);
            bits += 8 * bytes as u64;
            self.transmit(datagram);
        }
        self.sender.not_sent(burst, sent);
        if !burst.is_repeat {
            self.sender.add_hashes(burst.blast, sum);
        }
        let took_ns = |bps: u64| (bits * 1_000_000_000).checked_div(bps);
        let paced_ns = took_ns(self.sender.rate_bps()).unwrap_or(10_000);
        self.next_send_ns = self.now_ns + paced_ns.max(took_ns(self.host_bps).unwrap_or(0));
    }

    fn poll(&mut self) {
        while let Some((done, copies)) = self.sender.poll_mark(self.now_ns) {
            self.marks.push((self.now_ns, done, copies));
            for _ in 0..copies {
                let mut datagram = Vec::new();
                encode_mark(TOKEN, &done, &mut datagram);
                self.transmit(datagram);
            }
        }
        while let Some(message) = self.sender.poll_message() {
            self.tell(0, &message, Event::ToReceiver);
        }
        while let Some((blast, bytes)) = self.receiver.poll_whole().unwrap() {
            let start = self.slot(blast);
            self.output.extend(&self.memory[start..start + bytes as usize]);
            self.receiver.release(blast);
        }
        while let Some(message) = self.receiver.poll_message(self.now_ns) {
            self.tell(1, &message, Event::ToSender);
        }
    }

    fn slot(&self, blast: u32) -> usize {
        (blast % self.options.in_flight) as usize * self.options.payload_bytes as usize
    }

    /// A datagram sets out.
    fn transmit(&mut self, datagram: Vec<u8>) {
        let bit_ns = 8 * datagram.len() as u64 * 1_000_000_000;
        let link_ns = bit_ns.checked_div(self.path.bottleneck_bps).unwrap_or(0);
        if self.free_ns > self.now_ns + 10 * MS {
            return;
        }
        self.free_ns = self.free_ns.max(self.now_ns) + link_ns;
        if self.happens(self.path.loss) {
            return;
        }
        let copies = 1 + usize::from(self.happens(self.path.doubles));
        for _ in 0..copies {
            let is_late = self.happens(self.path.late);
            let late_ns = if is_late {
                self.bits() % (self.path.lateness_ns + 1)
            } else {
                0
            };
            let at_ns = self.free_ns.max(self.now_ns) + self.path.delay_ns + late_ns;
            self.schedule(at_ns, Event::Datagram(datagram.clone()));
        }
    }

    /// A message sets out; those of one direction stay in order.
    fn tell(&mut self, direction: usize, message: &Message, event: impl Fn(Vec<u8>) -> Event) {
        self.messages.push((self.now_ns, message.clone()));
        let late_ns = self.bits() % (self.path.tcp_lateness_ns + 1);
        let at_ns = (self.now_ns + self.path.delay_ns + late_ns).max(self.tcp_ns[direction]);
        self.tcp_ns[direction] = at_ns;
        let mut bytes = Vec::new();
        encode(message, &mut bytes);
        self.schedule(at_ns, event(bytes));
    }

    fn schedule(&mut self, at_ns: u64, event: Event) {
        self.order += 1;
        self.events.push(Reverse((at_ns, self.order, event)));
    }

    fn arrive(&mut self, event: Event) {
        match event {
            Event::Datagram(datagram) => self.arrive_datagram(&datagram),
            Event::ToReceiver(bytes) => {
                self.decoders[0].push(&bytes);
                while let Some(message) = self.decoders[0].next().unwrap() {
                    self.receiver.handle_message(self.now_ns, message).unwrap();
                }
            }
            Event::ToSender(bytes) => {
                self.decoders[1].push(&bytes);
                while let Some(message) = self.decoders[1].next().unwrap() {
                    self.sender.handle_message(self.now_ns, message).unwrap();
                }
            }
        }
    }

    fn arrive_datagram(&mut self, datagram: &[u8]) {
        let header = Header::read(datagram).unwrap();
        if header.packet == MARK {
            let done = decode_mark(datagram).unwrap();
            self.receiver.handle_done(self.now_ns, done).unwrap();
            return;
        }
        let payload = &datagram[HEADER_BYTES..];
        let (blast, packet) = (header.blast, header.packet);
        let look = self.receiver.look(blast, packet, payload.len());
        let mut hash = 0;
        if look == Arrival::Fresh {
            let start = self.slot(blast) + packet as usize * self.options.packet_bytes;
            self.memory[start..start + payload.len()].copy_from_slice(payload);
            hash = packet_hash(blast, packet, payload);
        }
        let arrival = self
            .receiver
            .note(self.now_ns, blast, packet, payload.len(), hash);
        assert_eq!(look, arrival);
    }

    /// Evenly distributed bits (SplitMix64).
    fn bits(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && ((self.bits() >> 11) as f64) < share * (1u64 << 53) as f64
    }
}
