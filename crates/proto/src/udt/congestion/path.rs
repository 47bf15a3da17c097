//! A sender, one bottleneck and a receiver in virtual time, with bursts as the grain: enough to see what a control
//! does to a path. Lost packets are sent again as packets with new numbers.

use std::collections::VecDeque;

use farline_spec::UdtControl;

use super::{AckEvent, Control, ControlConfig, LossEvent, Random, control_for};
use crate::udt::delivery::Delivery;

/// A path and the receiver at its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    pub(super) pps: f64,
    pub(super) rtt_ns: u64,
    pub(super) queue_packets: f64,
    pub(super) loss: f64,
    /// Time between acknowledgements.
    pub(super) ack_every_ns: u64,
}

impl Path {
    /// 10 Gbit/s in packets of 1500 bytes, a queue of one bandwidth-delay product, an acknowledgement each millisecond.
    pub(super) fn new(rtt_ns: u64) -> Self {
        let pps = 812_744.0;
        Self {
            pps,
            rtt_ns,
            queue_packets: (pps * rtt_ns as f64 / 1e9).max(200.0),
            loss: 0.0,
            ack_every_ns: 1_000_000,
        }
    }
}

/// A burst that will arrive.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at_ns: u64,
    arrived: u64,
    lost: u64,
}

/// What the receiver tells, and when it is heard.
#[derive(Debug, Clone, Copy)]
enum Report {
    Ack { delivered: u64 },
    Loss { packets: u64 },
}

/// The whole, at one instant.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) path: Path,
    pub(super) control: Box<dyn Control>,
    delivery: Delivery,
    now_ns: u64,
    ready_ns: f64,
    free_ns: f64,
    arrivals: VecDeque<Arrival>,
    reports: VecDeque<(u64, Report)>,
    ack_ns: u64,
    arrived: u64,
    acked: u64,
    heard: u64,
    pub(super) sent: u64,
    pub(super) lost: u64,
    in_flight: u64,
    smoothed_rtt_ns: u64,
    least_rtt_ns: u64,
    pub(super) most_queue: f64,
    random: Random,
}

impl Run {
    pub(super) fn new(kind: UdtControl, max_rate_pps: Option<f64>, path: Path) -> Self {
        let config = ControlConfig {
            kind,
            max_rate_pps,
            packet_bytes: 1472,
            burst_packets: 44,
            now_ns: 0,
            seed: 7,
        };
        Self {
            path,
            control: control_for(&config),
            delivery: Delivery::new(0),
            now_ns: 0,
            ready_ns: 0.0,
            free_ns: 0.0,
            arrivals: VecDeque::new(),
            reports: VecDeque::new(),
            ack_ns: 0,
            arrived: 0,
            acked: 0,
            heard: 0,
            sent: 0,
            lost: 0,
            in_flight: 0,
            smoothed_rtt_ns: 100_000_000,
            least_rtt_ns: 0,
            most_queue: 0.0,
            random: Random(11),
        }
    }

    /// Packets delivered per packet that the path could have carried, from now until `end_s`.
    pub(super) fn used_until_s(&mut self, end_s: f64) -> f64 {
        let (begin_ns, delivered) = (self.now_ns, self.arrived);
        self.run_until_s(end_s);
        let could = self.path.pps * (self.now_ns - begin_ns) as f64 / 1e9;
        (self.arrived - delivered) as f64 / could
    }

    pub(super) fn run_until_s(&mut self, end_s: f64) {
        let end_ns = (end_s * 1e9) as u64;
        loop {
            self.send_all();
            let next_ns = self.next_ns();
            if next_ns > end_ns {
                self.now_ns = end_ns;
                return;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.receive();
            self.hear();
        }
    }

    fn next_ns(&self) -> u64 {
        let arrival = self.arrivals.front().map_or(u64::MAX, |arrival| arrival.at_ns);
        let report = self.reports.front().map_or(u64::MAX, |report| report.0);
        let sending = if self.has_room() {
            self.ready_ns.ceil() as u64
        } else {
            u64::MAX
        };
        let ack = if self.arrived > self.acked {
            self.ack_ns
        } else {
            u64::MAX
        };
        arrival.min(report).min(sending).min(ack)
    }

    fn has_room(&self) -> bool {
        (self.in_flight as f64) < self.control.window_packets()
    }

    fn send_all(&mut self) {
        while self.has_room() && self.ready_ns <= self.now_ns as f64 {
            let rate_pps = self.control.rate_pps();
            let quantum = rate_pps.map_or(44, |pps| ((pps * 0.00025).ceil() as u64).clamp(1, 44));
            self.delivery.on_sent(self.now_ns, quantum, self.in_flight, false);
            self.sent += quantum;
            self.in_flight += quantum;
            let now = self.now_ns as f64;
            self.ready_ns = rate_pps.map_or(now, |pps| {
                self.ready_ns.max(now - 1e6) + quantum as f64 * 1e9 / pps
            });
            self.carry(quantum);
        }
    }

    /// The bottleneck: what finds no room is dropped, and some by chance.
    fn carry(&mut self, packets: u64) {
        let now = self.now_ns as f64;
        let queue = (self.free_ns - now).max(0.0) * self.path.pps / 1e9;
        let room = (self.path.queue_packets + 44.0 - queue).max(0.0) as u64;
        let taken = packets.min(room);
        let by_chance = (0..taken)
            .filter(|_| self.random.uniform() < self.path.loss)
            .count() as u64;
        self.free_ns = self.free_ns.max(now) + taken as f64 * 1e9 / self.path.pps;
        self.most_queue = self.most_queue.max(queue);
        self.arrivals.push_back(Arrival {
            at_ns: self.free_ns as u64 + self.path.rtt_ns / 2,
            arrived: taken - by_chance,
            lost: packets - taken + by_chance,
        });
    }

    fn receive(&mut self) {
        let heard_ns = self.now_ns + self.path.rtt_ns / 2;
        while self
            .arrivals
            .front()
            .is_some_and(|arrival| arrival.at_ns <= self.now_ns)
        {
            let Some(arrival) = self.arrivals.pop_front() else {
                return;
            };
            self.arrived += arrival.arrived;
            if arrival.lost > 0 {
                self.reports.push_back((
                    heard_ns,
                    Report::Loss {
                        packets: arrival.lost,
                    },
                ));
            }
        }
        if self.arrived > self.acked && self.ack_ns <= self.now_ns {
            self.acked = self.arrived;
            self.ack_ns = self.now_ns + self.path.ack_every_ns;
            self.reports.push_back((
                heard_ns,
                Report::Ack {
                    delivered: self.arrived,
                },
            ));
        }
    }

    fn hear(&mut self) {
        while self.reports.front().is_some_and(|report| report.0 <= self.now_ns) {
            match self.reports.pop_front() {
                Some((_, Report::Loss { packets })) => self.hear_loss(packets),
                Some((_, Report::Ack { delivered })) => self.hear_ack(delivered),
                None => return,
            }
        }
    }

    fn hear_loss(&mut self, packets: u64) {
        self.lost += packets;
        self.in_flight = self.in_flight.saturating_sub(packets);
        self.control.on_loss(&LossEvent {
            now_ns: self.now_ns,
            first: self.sent - self.in_flight - packets,
            last: self.sent - self.in_flight - 1,
            packets,
            largest_sent: self.sent - 1,
            in_flight: self.in_flight,
        });
    }

    fn hear_ack(&mut self, delivered: u64) {
        let acked = delivered - self.heard;
        self.heard = delivered;
        self.in_flight = self.in_flight.saturating_sub(acked);
        let sample = self.delivery.on_ack(self.now_ns, delivered, self.lost, None, 0);
        if let Some(rtt_ns) = sample.and_then(|sample| sample.rtt_ns) {
            let is_first = self.least_rtt_ns == 0;
            self.least_rtt_ns = if is_first {
                rtt_ns
            } else {
                self.least_rtt_ns.min(rtt_ns)
            };
            self.smoothed_rtt_ns = if is_first {
                rtt_ns
            } else {
                (7 * self.smoothed_rtt_ns + rtt_ns) / 8
            };
        }
        self.control.on_ack(&AckEvent {
            now_ns: self.now_ns,
            acked_packets: acked,
            next: self.sent - self.in_flight,
            largest_sent: self.sent - 1,
            in_flight: self.in_flight,
            delivered,
            sample,
            smoothed_rtt_ns: self.smoothed_rtt_ns,
            min_rtt_ns: self.least_rtt_ns,
            flow_window_packets: 2_000_000,
            arrival_pps: sample.map(|sample| sample.pps),
            capacity_pps: Some(self.path.pps),
        });
    }
}
