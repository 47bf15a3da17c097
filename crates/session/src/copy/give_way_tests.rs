//! A copy that gives way on a line with a queue, alone and beside a window that grows until it loses.

use super::*;
use farline_transport::SharedRate;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Mutex;

/// One millisecond after the other.
const STEP_S: f64 = 0.001;
const PACKET_BITS: f64 = 1448.0 * 8.0;

/// A line, the queue before it, who uses it, and a copy that gives way.
struct Line {
    line_bps: f64,
    round_trip_s: f64,
    /// Most that the queue holds, in seconds.
    buffer_s: f64,
    queue_s: f64,
    at_s: f64,
    /// As the kernel smooths it, and what it does not see yet.
    seen_s: f64,
    past: VecDeque<f64>,
    sent_bytes: f64,
    carried_bits: f64,
    lost_packets: f64,
    /// Lost by chance, a share of all.
    chance: f64,
    other: Option<Other>,
    copy: Controller,
    looked_s: f64,
    /// What the disk gives, where it gives less than the rate allows.
    disk_bps: f64,
}

/// Somebody who grows as CUBIC does (RFC 9438, without the region of Reno) until the queue is full.
struct Other {
    window_bits: f64,
    most_bits: f64,
    since_s: f64,
    cut_s: f64,
    carried_bits: f64,
}

impl Other {
    fn rate_bps(&mut self, at_s: f64, round_trip_s: f64) -> f64 {
        let packets = self.most_bits / PACKET_BITS;
        let back_s = (packets * 0.3 / 0.4).cbrt();
        let grown = 0.4 * (at_s - self.since_s - back_s).powi(3) + packets;
        // Never faster than half as much again in a round trip.
        let most = self.window_bits * (1.0 + 0.5 * STEP_S / round_trip_s);
        self.window_bits = (grown * PACKET_BITS).clamp(self.window_bits, most);
        self.window_bits / round_trip_s
    }

    fn lose(&mut self, at_s: f64, round_trip_s: f64) {
        if at_s - self.cut_s > round_trip_s {
            self.most_bits = self.window_bits;
            self.window_bits *= 0.7;
            (self.since_s, self.cut_s) = (at_s, at_s);
        }
    }
}

impl Line {
    fn new(line_bps: f64, round_trip_s: f64, buffer_s: f64) -> Self {
        Self {
            line_bps,
            round_trip_s,
            buffer_s,
            queue_s: 0.0,
            at_s: 0.0,
            seen_s: round_trip_s,
            past: VecDeque::new(),
            sent_bytes: 0.0,
            carried_bits: 0.0,
            lost_packets: 0.0,
            chance: 0.0,
            other: None,
            copy: Controller::new(None),
            looked_s: 0.0,
            disk_bps: f64::INFINITY,
        }
    }

    /// Somebody comes who has `share` of the line in his window already.
    fn join(&mut self, share: f64) {
        let window_bits = self.line_bps * self.round_trip_s * share;
        self.other = Some(Other {
            window_bits,
            most_bits: window_bits,
            since_s: self.at_s,
            cut_s: self.at_s,
            carried_bits: 0.0,
        });
    }

    /// Goes on for `time_s`; gives the share of the line that the copy had.
    fn run(&mut self, time_s: f64) -> f64 {
        let before = self.carried_bits;
        let steps = (time_s / STEP_S) as usize;
        (0..steps).for_each(|_| self.step());
        (self.carried_bits - before) / (self.line_bps * time_s)
    }

    /// Seconds until the copy's rate is `share` of the line.
    fn time_to(&mut self, share: f64) -> f64 {
        let start_s = self.at_s;
        while self.copy.rate_bps() < share * self.line_bps && self.at_s < start_s + 60.0 {
            self.step();
        }
        self.at_s - start_s
    }

    fn step(&mut self) {
        self.at_s += STEP_S;
        let round_trip_s = self.round_trip_s + self.queue_s;
        let ours_bps = self.copy.rate_bps().min(self.disk_bps);
        let at_s = self.at_s;
        let theirs_bps = self
            .other
            .as_mut()
            .map_or(0.0, |other| other.rate_bps(at_s, round_trip_s));
        self.queue_s += (ours_bps + theirs_bps - self.line_bps) / self.line_bps * STEP_S;
        let over_s = self.queue_s - self.buffer_s;
        self.queue_s = self.queue_s.clamp(0.0, self.buffer_s);
        let all_bps = (ours_bps + theirs_bps).max(1.0);
        let share = ours_bps / all_bps;
        if over_s > 0.0 {
            self.lost_packets += over_s * self.line_bps * share / PACKET_BITS;
            if let Some(other) = &mut self.other {
                other.lose(at_s, round_trip_s);
            }
        }
        self.lost_packets += ours_bps * STEP_S / PACKET_BITS * self.chance;
        self.sent_bytes += ours_bps * STEP_S / 8.0;
        let carried_bits = if self.queue_s > 0.0 {
            self.line_bps
        } else {
            all_bps.min(self.line_bps)
        } * STEP_S;
        self.carried_bits += carried_bits * share;
        if let Some(other) = &mut self.other {
            other.carried_bits += carried_bits * (1.0 - share);
        }
        // What is seen is what was there when a packet that is acknowledged now was sent; an eighth of each of some fifty
        // samples in a round trip counts.
        self.past.push_back(round_trip_s);
        if self.past.len() as f64 * STEP_S > self.round_trip_s {
            let sample_s = self.past.pop_front().unwrap();
            let weight = (STEP_S * 50.0 / round_trip_s / 8.0).min(1.0);
            self.seen_s += (sample_s - self.seen_s) * weight;
        }
        if at_s - self.looked_s >= INTERVAL.as_secs_f64() {
            self.looked_s = at_s;
            self.copy.step(Look {
                at_s,
                round_trip_s: Some((self.seen_s, self.round_trip_s)),
                sent_bytes: self.sent_bytes,
                lost_packets: self.lost_packets,
                packets: self.sent_bytes * 8.0 / PACKET_BITS,
            });
        }
    }
}

const LINES: [(f64, f64, f64); 7] = [
    (100e6, 0.002, 0.05),
    (100e6, 0.1, 0.1),
    (1e9, 0.02, 0.04),
    (1e9, 0.05, 0.02),
    (5e9, 0.1, 0.1),
    (10e9, 0.001, 0.02),
    (10e9, 0.1, 0.05),
];

#[test]
fn alone_it_takes_the_line_and_keeps_the_queue_short() {
    for (line_bps, round_trip_s, buffer_s) in LINES {
        let mut line = Line::new(line_bps, round_trip_s, buffer_s);
        line.run(10.0);
        let share = line.run(60.0);
        assert!(share > 0.85, "{share:.3} of {line_bps} at {round_trip_s} s");
        assert!(line.lost_packets / (line.sent_bytes / 1448.0) < 1e-3);
    }
}

#[test]
fn it_starts_within_seconds() {
    for (line_bps, round_trip_s, buffer_s) in LINES {
        let time_s = Line::new(line_bps, round_trip_s, buffer_s).time_to(0.85);
        assert!(time_s < 4.0, "{time_s:.1} s to {line_bps} at {round_trip_s} s");
    }
}

#[test]
fn beside_a_window_that_fills_the_queue_it_keeps_next_to_nothing() {
    for (line_bps, round_trip_s, buffer_s) in LINES {
        // One that has no room for a queue that could be seen is found by its losses alone.
        let buffer_s = buffer_s.max(round_trip_s);
        let mut line = Line::new(line_bps, round_trip_s, buffer_s);
        line.run(10.0);
        line.join(0.5);
        // As long as it grows the rest of the line is nobody's.
        line.run(60.0);
        let share = line.run(120.0);
        assert!(share < 0.15, "{share:.3} of {line_bps} at {round_trip_s} s");
    }
}

#[test]
fn it_backs_off_within_round_trips_and_is_back_within_seconds() {
    for (line_bps, round_trip_s, buffer_s) in LINES {
        let mut line = Line::new(line_bps, round_trip_s, buffer_s.max(round_trip_s));
        line.run(10.0);
        // It comes out of its slow start: line and queue are full.
        line.join(1.0 + line.buffer_s / round_trip_s);
        let within_s = 0.3 + 8.0 * round_trip_s;
        line.run(within_s);
        let share = line.copy.rate_bps() / line_bps;
        assert!(
            share < 0.25,
            "{share:.3} of {line_bps} after {within_s:.2} s at {round_trip_s} s"
        );
        let share = line.run(20.0);
        assert!(share < 0.05, "{share:.3} of {line_bps} at {round_trip_s} s");
        line.other = None;
        let time_s = line.time_to(0.85);
        assert!(
            time_s < 5.0,
            "{time_s:.1} s back to {line_bps} at {round_trip_s} s"
        );
    }
}

#[test]
fn losses_by_chance_do_not_stop_it() {
    let mut line = Line::new(1e9, 0.05, 0.05);
    line.chance = 2e-5;
    line.run(10.0);
    let share = line.run(30.0);
    assert!(share > 0.85, "{share:.3}");
}

#[test]
fn what_is_not_sent_tries_no_path() {
    let mut line = Line::new(10e9, 0.02, 0.02);
    line.disk_bps = 200e6;
    line.run(20.0);
    assert!(line.copy.rate_bps() < 450e6, "{}", line.copy.rate_bps());
    line.disk_bps = f64::INFINITY;
    assert!(line.time_to(0.85) < 5.0);
}

proptest! {
    #[test]
    fn whatever_is_seen_the_rate_stays_in_its_bounds(
        most_bps in prop::option::of(1u64..100_000_000_000),
        looks in prop::collection::vec((0.0..10.0f64, prop::option::of((0.0..5.0f64, 0.0..5.0f64)), 0.0..1e12f64, 0.0..1e9f64, 0.0..1e9f64), 1..200),
    ) {
        let mut controller = Controller::new(most_bps);
        let mut at_s = 0.0;
        for (later_s, round_trip_s, sent_bytes, lost_packets, packets) in looks {
            at_s += later_s;
            let rate_bps = controller.step(Look { at_s, round_trip_s, sent_bytes, lost_packets, packets });
            let most = most_bps.map_or(MOST_BPS, |most| most as f64);
            prop_assert!(rate_bps >= LEAST_BPS.min(most) && rate_bps <= most, "{}", rate_bps);
        }
    }
}

/// A stream whose counters a test sets.
struct Seen(Mutex<Counters>);

impl Probe for Seen {
    fn sample(&self) -> Counters {
        *self.0.lock().unwrap()
    }

    fn abort(&self) {}
}

#[test]
fn where_no_stream_knows_its_round_trip_losses_decide() {
    let mut copy = Controller::new(Some(1_000_000_000));
    let mut sent_bytes = 0.0;
    let mut look = |copy: &mut Controller, at_s: f64, lost_packets: f64| {
        sent_bytes += copy.rate_bps() / 8.0 * 0.02;
        copy.step(Look {
            at_s,
            round_trip_s: None,
            sent_bytes,
            lost_packets,
            packets: sent_bytes / 1448.0,
        })
    };
    let rates: Vec<_> = (0..500)
        .map(|step| look(&mut copy, f64::from(step) * 0.02, 0.0))
        .collect();
    assert!(
        (rates[50] - FIRST_BPS).abs() < 1.0,
        "a stream may only just have begun"
    );
    assert!((rates[499] - 1e9).abs() < 1.0, "{}", rates[499]);
    assert!(look(&mut copy, 10.0, 1e6) < 0.8e9);
}

#[test]
fn streams_are_held_to_what_their_probes_show() {
    let seen = |rtt_us| {
        let counters = Counters {
            bytes: 0,
            rtt_us,
            min_rtt_us: 20_000,
            retransmits: 0,
            ..Counters::UNKNOWN
        };
        Arc::new(Seen(Mutex::new(counters)))
    };
    let streams = [seen(20_000), seen(20_000), seen(90_000)];
    let rate = Arc::new(SharedRate::new(1));
    let probes = streams
        .iter()
        .zip(0..)
        .map(|(stream, number)| (number, Arc::<Seen>::clone(stream) as Arc<dyn Probe>))
        .collect();
    let mut give_way = ScavengerController::new(Arc::clone(&rate), probes, Some(500_000_000));
    let start = Instant::now();
    let mut go_on = |from: u32, to: u32, rtt_us: i64| {
        for step in from..to {
            for stream in &streams {
                let mut counters = stream.0.lock().unwrap();
                counters.bytes += (rate.rate_bps() / 8 / 20 / 3) as i64;
                counters.rtt_us = counters
                    .rtt_us
                    .max(90_000 * i64::from(counters.rtt_us > 80_000))
                    .max(rtt_us);
            }
            give_way.look(start + step * INTERVAL);
        }
        give_way.held_rate_bps()
    };
    assert_eq!(
        go_on(0, 100, 20_000),
        500_000_000,
        "one path of three is somebody else's"
    );
    assert!(go_on(100, 140, 60_000) < 2_000_000, "a queue on all");
}
