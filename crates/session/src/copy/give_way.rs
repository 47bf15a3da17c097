//! Gives way to other traffic: holds a copy to a rate at which the path's queues stay short.
//!
//! After LEDBAT (RFC 6817): what a round trip takes longer than the shortest one of the run is time in queues. While there
//! is none the rate rises, ever faster the longer there is none; a little of it is what a line that is full shows; more of
//! it, or losses, are somebody else's traffic or too much of one's own, and the rate falls by up to half every round trip.
//! LEDBAT moves a window; here it is the rate of all streams together, since they share the path and its queue.
//!
//! Pure but for [`ScavengerController`], which looks at the streams and sets the rate that they share.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_transport::{Counters, Probe, SharedRate};

/// How often the streams are to be looked at.
pub const INTERVAL: Duration = Duration::from_millis(20);

/// Least rate: what is left to a copy on a path that others fill.
const LEAST_BPS: f64 = 1e6;
/// Rate at the start.
const FIRST_BPS: f64 = 10e6;
/// Most that any host sends.
const MOST_BPS: f64 = 1e12;
/// Bounds of the queueing delay that is aimed at, a quarter of the shortest round trip.
const TARGET_S: (f64, f64) = (0.002, 0.025);
/// Looks of which the shortest round trip counts: one that is late by itself (no CPU, a timer) is no queue.
const LOOKS: usize = 3;
/// Part of the target below which there is no queue to speak of.
const NO_QUEUE: f64 = 0.25;
/// Share of packets lost from which on losses are the path's answer to too much, and not chance.
const LOSS_SHARE: f64 = 1e-4;
/// What is left of the rate after losses.
const AFTER_LOSS: f64 = 0.7;
/// Doublings in a growth time at first after a queue was seen; it doubles itself up to 1.
const CAREFUL: f64 = 0.05;
/// Round trips in a growth time, and the shortest.
const GROWTH_TRIPS: f64 = 1.5;
const GROWTH_S: f64 = 0.1;
/// Growth per second at a short queue, and what a queue that grows by a second each second takes from it.
const NEAR: (f64, f64) = (0.2, 2.0);
/// Share of the rate at which the path was full last from which on the rate grows with care.
const NEARLY: f64 = 0.9;
/// How much slower its growth grows then.
const SLOWER: f64 = 3.0;
/// How long a queue that is too long may be the copy's own, besides two round trips.
const PATIENCE_S: f64 = 0.1;
/// Targets from which on a queue is somebody else's at once.
const MUCH: f64 = 2.0;
/// How long no stream may know its round trip before the rate rises as if there were no queue: there is nothing to go by.
const BLIND_S: f64 = 2.0;
/// How far the rate may be above what the copy sends: a path is not tried by what is not sent.
const AHEAD: f64 = 2.0;

/// What all streams show together at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Seconds since the copy began.
    pub at_s: f64,
    /// Round-trip time now and the shortest of the run, in seconds; none where no stream knows.
    pub round_trip_s: Option<(f64, f64)>,
    /// Payload bytes sent, and packets lost and sent again, since the copy began.
    pub sent_bytes: f64,
    pub lost_packets: f64,
    /// Packets sent, as far as they are known.
    pub packets: f64,
}

/// Decides the rate.
#[derive(Debug)]
pub struct Controller {
    rate_bps: f64,
    most_bps: f64,
    /// Doublings in a growth time.
    growth: f64,
    last: Option<Look>,
    queue_s: f64,
    /// The rate at which the path was full last, and whether it was at the last look.
    full_bps: f64,
    was_too_much: bool,
    /// When there was no queue too long last.
    queued_s: f64,
    /// When the rate was lowered last.
    lowered_s: f64,
    /// When a round trip was known last.
    seen_s: f64,
    /// What the copy sends, smoothed over some looks.
    sent_bps: f64,
}

impl Controller {
    /// For at most `most_bps`.
    pub fn new(most_bps: Option<u64>) -> Self {
        let most_bps = most_bps.map_or(MOST_BPS, |most| most as f64).max(1.0);
        Self {
            rate_bps: FIRST_BPS.min(most_bps),
            most_bps,
            growth: 1.0,
            last: None,
            queue_s: 0.0,
            full_bps: f64::INFINITY,
            was_too_much: false,
            queued_s: 0.0,
            lowered_s: f64::NEG_INFINITY,
            seen_s: 0.0,
            sent_bps: FIRST_BPS,
        }
    }

    /// No more than `most_bps` from now on.
    pub fn set_most(&mut self, most_bps: Option<u64>) {
        self.most_bps = most_bps.map_or(MOST_BPS, |most| most as f64).max(1.0);
        self.rate_bps = self.bounded(self.rate_bps);
    }

    /// The rate for the time until the next look.
    pub fn rate_bps(&self) -> f64 {
        self.rate_bps
    }

    /// Takes a look; gives the rate from now on.
    pub fn step(&mut self, look: Look) -> f64 {
        let Some(last) = self.last.replace(look) else {
            return self.rate_bps;
        };
        let elapsed_s = look.at_s - last.at_s;
        if elapsed_s <= 0.0 {
            return self.rate_bps;
        }
        let sent_bps = (look.sent_bytes - last.sent_bytes).max(0.0) * 8.0 / elapsed_s;
        let weight = (elapsed_s / 0.2).min(1.0);
        self.sent_bps += (sent_bps - self.sent_bps) * weight;
        let Some((now_s, least_s)) = look.round_trip_s else {
            return self.step_blind(&look, &last, elapsed_s);
        };
        self.seen_s = look.at_s;
        let queue_s = (now_s - least_s).max(0.0);
        let slope = (queue_s - self.queue_s) / elapsed_s;
        self.queue_s = queue_s;
        let target_s = (least_s / 4.0).clamp(TARGET_S.0, TARGET_S.1);
        let has_lost = has_lost(&look, &last);
        let is_too_much = has_lost || queue_s > target_s;
        if is_too_much && !self.was_too_much {
            self.full_bps = self.rate_bps / (1.0 + slope.clamp(0.0, 1.0));
        }
        self.was_too_much = is_too_much;
        if has_lost {
            self.growth = CAREFUL;
            self.lower(look.at_s, now_s, AFTER_LOSS);
        } else if queue_s > target_s {
            self.growth = CAREFUL;
            self.drain(&look, slope, queue_s, target_s);
        } else {
            self.raise(queue_s / target_s, slope, elapsed_s, now_s);
        }
        if queue_s <= target_s {
            self.queued_s = look.at_s;
        }
        self.rate_bps
    }

    /// A look at streams of which none knows its round trip: losses are all there is to go by, after a while.
    fn step_blind(&mut self, look: &Look, last: &Look, elapsed_s: f64) -> f64 {
        if has_lost(look, last) {
            self.growth = CAREFUL;
            self.lower(look.at_s, GROWTH_S, AFTER_LOSS);
        } else if look.at_s - self.seen_s > BLIND_S {
            self.raise(0.0, 0.0, elapsed_s, GROWTH_S);
        }
        self.rate_bps
    }

    /// Lowers the rate at a queue that is too long and changes by `slope` seconds a second. At first by what the copy
    /// itself may have too much; if that is not enough, or it is much too long, the queue is somebody else's, and the rate
    /// falls by half every round trip.
    fn drain(&mut self, look: &Look, slope: f64, queue_s: f64, target_s: f64) {
        let (now_s, least_s) = look.round_trip_s.unwrap_or_default();
        let patience_s = 2.0 * least_s + PATIENCE_S;
        // One that drains soon is left to drain.
        if slope * patience_s < target_s - queue_s {
            return;
        }
        let factor = if look.at_s - self.queued_s > patience_s || queue_s > MUCH * target_s {
            0.5
        } else {
            let excess = (queue_s - target_s / 2.0) / patience_s;
            (1.0 - excess).max(0.5) / (1.0 + slope.clamp(0.0, 1.0))
        };
        self.lower(look.at_s, now_s, factor);
    }

    /// Lowers the rate, no more than once in a round trip: it takes as long to be seen.
    fn lower(&mut self, at_s: f64, round_trip_s: f64, factor: f64) {
        if at_s - self.lowered_s < round_trip_s {
            return;
        }
        // What is sent counts, not what might have been.
        let from_bps = self.rate_bps.min(self.sent_bps.max(self.rate_bps / AHEAD));
        self.rate_bps = self.bounded(from_bps * factor);
        self.lowered_s = at_s;
    }

    /// Raises the rate at a queue that is `part` of the target and changes by `slope` seconds a second.
    fn raise(&mut self, part: f64, slope: f64, elapsed_s: f64, round_trip_s: f64) {
        let time_s = (GROWTH_TRIPS * round_trip_s).max(GROWTH_S);
        let factor = if part < NO_QUEUE {
            let factor = (self.growth * elapsed_s / time_s).exp2();
            let near_bps = NEARLY * self.full_bps;
            let is_near = self.rate_bps >= near_bps;
            let doublings = elapsed_s / time_s / if is_near { SLOWER } else { 1.0 };
            self.growth = (self.growth * doublings.exp2()).min(1.0);
            if !is_near && self.rate_bps * factor >= near_bps {
                self.growth = CAREFUL;
            }
            factor
        } else {
            self.growth = CAREFUL;
            let (pull, brake) = NEAR;
            1.0 + elapsed_s * (pull * (1.0 - part) - brake * slope).clamp(-1.0, pull)
        };
        let limit_bps = (AHEAD * self.sent_bps).max(FIRST_BPS).max(self.rate_bps);
        let wanted_bps = self.rate_bps * factor;
        self.rate_bps = self.bounded(wanted_bps.min(limit_bps));
    }

    fn bounded(&self, rate_bps: f64) -> f64 {
        rate_bps.max(LEAST_BPS).min(self.most_bps)
    }
}

/// Whether more was lost between two looks than chance loses.
fn has_lost(look: &Look, last: &Look) -> bool {
    let lost = look.lost_packets - last.lost_packets;
    let sent = (look.packets - last.packets).max(1.0);
    lost >= 1.0 && lost > LOSS_SHARE * sent
}

/// The controller of one end's streams.
pub struct ScavengerController {
    rate: Arc<SharedRate>,
    streams: Vec<Watched>,
    /// Streams that have ended, as they were last.
    gone: Vec<(Counters, Option<(i64, i64)>)>,
    controller: Controller,
    began: Option<Instant>,
}

/// One stream and the shortest round trip it has had.
struct Watched {
    stream: u16,
    probe: Arc<dyn Probe>,
    least_us: i64,
    last_us: VecDeque<i64>,
}

impl ScavengerController {
    /// Holds the streams that `probes` look at, and that share `rate`, to what the path bears, and to `most_bps`.
    pub fn new(rate: Arc<SharedRate>, probes: Vec<(u16, Arc<dyn Probe>)>, most_bps: Option<u64>) -> Self {
        let controller = Controller::new(most_bps);
        rate.set(controller.rate_bps() as u64);
        rate.keep_even();
        Self {
            rate,
            streams: probes.into_iter().map(Watched::new).collect(),
            gone: Vec::new(),
            controller,
            began: None,
        }
    }

    /// Looks at one stream more.
    pub fn join(&mut self, stream: u16, probe: Arc<dyn Probe>) {
        self.streams.push(Watched::new((stream, probe)));
    }

    /// A stream has ended: what it sent counts on, and its queue no more.
    pub fn part(&mut self, stream: u16) {
        if let Some(place) = self.streams.iter().position(|watched| watched.stream == stream) {
            let (counters, _) = self.streams.swap_remove(place).look();
            self.gone.push((counters, None));
        }
    }

    /// Holds the streams to `most_bps` from now on, or to no more than the path bears.
    pub fn set_most(&mut self, most_bps: Option<u64>) {
        self.controller.set_most(most_bps);
    }

    /// Looks at the streams and sets their rate. To be called every [`INTERVAL`].
    pub fn look(&mut self, now: Instant) {
        let began = *self.began.get_or_insert(now);
        let mut counters: Vec<_> = self.streams.iter_mut().map(Watched::look).collect();
        counters.extend(self.gone.iter().copied());
        let look = summed(now.duration_since(began).as_secs_f64(), &counters);
        self.rate.set(self.controller.step(look) as u64);
    }

    /// Rate that the copy is held to now, over all streams.
    pub fn held_rate_bps(&self) -> u64 {
        self.rate.rate_bps()
    }
}

impl Watched {
    fn new((stream, probe): (u16, Arc<dyn Probe>)) -> Self {
        Self {
            stream,
            probe,
            least_us: i64::MAX,
            last_us: VecDeque::new(),
        }
    }

    /// Counters now, and the shortest round trip of the last looks with that of the run.
    fn look(&mut self) -> (Counters, Option<(i64, i64)>) {
        let counters = self.probe.sample();
        for round_trip_us in [counters.rtt_us, counters.min_rtt_us] {
            if round_trip_us > 0 {
                self.least_us = self.least_us.min(round_trip_us);
            }
        }
        self.last_us.push_back(counters.rtt_us);
        if self.last_us.len() > LOOKS {
            self.last_us.pop_front();
        }
        let known = self
            .last_us
            .iter()
            .copied()
            .filter(|&round_trip_us| round_trip_us > 0);
        (counters, known.min().map(|now_us| (now_us, self.least_us)))
    }
}

/// What streams show together. Their queue is that of the middle one: each has its own path and its own noise.
fn summed(at_s: f64, streams: &[(Counters, Option<(i64, i64)>)]) -> Look {
    let mut round_trips: Vec<_> = streams.iter().filter_map(|(_, round_trip)| *round_trip).collect();
    round_trips.sort_by_key(|(now_us, least_us)| now_us - least_us);
    let middle = round_trips.get(round_trips.len() / 2);
    let sum = |of: fn(&Counters) -> i64| -> f64 {
        let known = streams.iter().map(|(counters, _)| of(counters).max(0) as f64);
        known.sum()
    };
    let sent_bytes = sum(|counters| counters.bytes);
    let packets = sum(|counters| counters.packets);
    Look {
        at_s,
        round_trip_s: middle.map(|&(now_us, least_us)| (now_us as f64 / 1e6, least_us as f64 / 1e6)),
        sent_bytes,
        // TCP counts what it sends again, the others what is reported missing.
        lost_packets: sum(|counters| counters.retransmits.max(counters.lost_packets)),
        // TCP's packets are not counted: as many as its bytes fill.
        packets: packets.max(sent_bytes / 1448.0),
    }
}

#[cfg(test)]
#[path = "give_way_tests.rs"]
mod tests;
