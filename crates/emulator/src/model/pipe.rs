//! One direction of a link: MTU check, queue, wire, fate, distance.

use farline_spec::PipeChange;
use farline_spec::PipeSpec;

use super::admission::{Admission, Entry};
use super::capacity::Capacity;
use super::codel::Codel;
use super::counters::{PipeCounters, PipeState};
use super::distance::Distance;
use super::draw::{Draws, Purpose};
use super::fate::Fates;
use super::jitter::Jitter;
use super::line::Line;
use super::outbox::Outbox;
use super::queue::Queue;
use super::schedule::Schedule;
use super::settings::{Settings, nanoseconds};
use super::transit::Transit;

/// What the wire is sending.
#[derive(Debug)]
pub(super) struct Service<P> {
    pub(super) transit: Transit<P>,
    pub(super) end_ns: u64,
    /// When the first segment is out.
    pub(super) first_out_ns: u64,
    pub(super) wire_bytes: u64,
}

/// What a pipe did at an event.
#[derive(Debug)]
pub(super) enum Step<P> {
    /// A train is at the far end.
    Arrived(Transit<P>),
    /// The schedule changed the rate or the delay, or cut or restored the pipe.
    Changed,
    /// Nothing that others see.
    Quiet,
}

/// One direction of a link.
#[derive(Debug)]
pub(super) struct Pipe<P> {
    pub(super) number: usize,
    pub(super) settings: Settings,
    pub(super) counters: PipeCounters,
    pub(super) queue: Queue<P>,
    pub(super) line: Line,
    pub(super) service: Option<Service<P>>,
    pub(super) codel: Option<Codel>,
    pub(super) fates: Fates,
    pub(super) distance: Distance<P>,
    pub(super) watched: bool,
    pub(super) up: bool,
    backlog_max_bytes: u64,
    capacity: Capacity,
    /// Delay of the other direction, which capacities in bandwidth-delay products need.
    return_delay_ns: u64,
    schedule: Schedule,
    /// As it stands now.
    spec: PipeSpec,
}

impl<P: Clone> Pipe<P> {
    pub(super) fn new(seed: u64, number: usize, spec: &PipeSpec, return_delay_ns: u64) -> Self {
        let settings = Settings::new(spec);
        let jitter_ns = spec.jitter_s.map_or(0, |jitter| nanoseconds(jitter.get()));
        let jitter = (jitter_ns > 0).then(|| {
            let draws = Draws::new(seed, number, Purpose::Jitter);
            Jitter::new(spec.jitter_shape, jitter_ns, draws)
        });
        let delay_ns = nanoseconds(spec.delay_s.get());
        let mut pipe = Self {
            number,
            settings,
            counters: PipeCounters::default(),
            queue: Queue::new(settings.framing_bytes),
            line: Line::new(spec.rate_bps.map_or(0, |rate| rate.get())),
            service: None,
            codel: settings.codel(spec),
            fates: Fates::new(seed, number, spec),
            distance: Distance::new(delay_ns, jitter, settings.late_by_ns),
            watched: false,
            up: true,
            backlog_max_bytes: 0,
            capacity: Capacity::new(&spec.queue),
            return_delay_ns,
            schedule: Schedule::new(spec),
            spec: spec.clone(),
        };
        pipe.follow();
        pipe
    }

    /// A train comes to the pipe; its last segment does at `now_ns`.
    pub(super) fn arrive(&mut self, now_ns: u64, transit: Transit<P>, outbox: &mut Outbox<P>) {
        self.counters.in_packets += u64::from(transit.segments());
        self.counters.in_bytes += transit.train.wire_bytes(self.settings.framing_bytes);
        let Some(transit) = self.within_mtu(transit, outbox) else {
            return;
        };
        if !self.up {
            self.counters.cut_packets += u64::from(transit.segments());
            return;
        }
        self.admit(now_ns, transit);
        self.serve(now_ns, outbox);
        self.backlog_max_bytes = self.backlog_max_bytes.max(self.backlog_bytes(now_ns));
    }

    /// What is no larger than the MTU; the rest is dropped and reported.
    fn within_mtu(&mut self, transit: Transit<P>, outbox: &mut Outbox<P>) -> Option<Transit<P>> {
        let mtu_bytes = self.settings.mtu_bytes;
        let train = &transit.train;
        let (body, last) = (train.segment_bytes > mtu_bytes, train.last_bytes > mtu_bytes);
        let (refused, kept) = match (train.segments, body, last) {
            (1, _, false) | (_, false, false) => return Some(transit),
            (1, _, true) | (_, true, true) => (transit, None),
            (segments, true, false) => {
                let mut rest = transit;
                (rest.take_front(segments - 1), Some(rest))
            }
            (segments, false, true) => {
                let mut rest = transit;
                let front = rest.take_front(segments - 1);
                (rest, Some(front))
            }
        };
        self.counters.mtu_drop_packets += u64::from(refused.segments());
        outbox.report_too_big(refused, mtu_bytes);
        kept
    }

    /// Puts into the queue what it takes of a train.
    fn admit(&mut self, now_ns: u64, transit: Transit<P>) {
        if self.line.rate_bps() == 0 {
            return self.queue.push(transit);
        }
        let admission = self.admission(now_ns);
        if admission.has_room(&transit) {
            return self.queue.push(transit);
        }
        let mut rest = Some(transit);
        for (entry, count) in rest.as_ref().map_or_else(Vec::new, |whole| admission.runs(whole)) {
            let run = match rest.as_mut() {
                Some(whole) if count < whole.segments() => whole.take_front(count),
                _ => match rest.take() {
                    Some(whole) => whole,
                    None => return,
                },
            };
            self.enter(run, entry);
        }
    }

    fn enter(&mut self, mut run: Transit<P>, entry: Entry) {
        let packets = u64::from(run.segments());
        match entry {
            Entry::Dropped => {
                self.counters.tail_drop_packets += packets;
                return;
            }
            Entry::TakenMarked => {
                self.counters.ecn_marked_packets += packets;
                run.train.marked = true;
            }
            Entry::Taken => {}
        }
        self.queue.push(run);
    }

    fn admission(&self, now_ns: u64) -> Admission {
        let idle = self.service.is_none() && self.queue.packets() == 0;
        Admission {
            capacity_bytes: self.capacity.bytes(),
            capacity_packets: self.capacity.packets(),
            threshold_bytes: self.settings.threshold_bytes,
            rate_bps: self.line.rate_bps(),
            framing_bytes: self.settings.framing_bytes,
            backlog_bytes: self.backlog_bytes(now_ns),
            backlog_packets: self.queue.packets() + self.packets_being_sent(now_ns),
            idle_ns: idle.then(|| now_ns.saturating_sub(self.line.free_at_ns())),
        }
    }

    /// Bytes on the wire that wait, and what is left of those being sent.
    fn backlog_bytes(&self, now_ns: u64) -> u64 {
        self.queue.bytes() + self.bytes_being_sent(now_ns)
    }

    fn bytes_being_sent(&self, now_ns: u64) -> u64 {
        let left = |service: &Service<P>| self.line.bytes_left(now_ns).min(service.wire_bytes);
        self.service.as_ref().map_or(0, left)
    }

    /// Segments being sent that are not out yet, a part of one as a whole.
    fn packets_being_sent(&self, now_ns: u64) -> u64 {
        let Some(service) = &self.service else { return 0 };
        let train = &service.transit.train;
        let segment_bytes = u64::from(train.segment_bytes) + self.settings.framing_bytes;
        let last_bytes = u64::from(train.last_bytes) + self.settings.framing_bytes;
        let left = self.bytes_being_sent(now_ns);
        let whole = left.saturating_sub(last_bytes).div_ceil(segment_bytes.max(1));
        (u64::from(left > 0) + whole).min(u64::from(train.segments))
    }

    /// When something happens in the pipe next.
    pub(super) fn next_event_ns(&self) -> Option<u64> {
        let sent = self.service.as_ref().map(|service| service.end_ns);
        [self.schedule.next_ns(), sent, self.distance.next_ns()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Does one of the things that are due at `now_ns`: first what is scheduled, then what the wire has sent, then what
    /// arrives.
    pub(super) fn step(&mut self, now_ns: u64, outbox: &mut Outbox<P>) -> Step<P> {
        if let Some(change) = self.schedule.take(now_ns) {
            self.change(now_ns, &change, outbox);
            return Step::Changed;
        }
        if self
            .service
            .as_ref()
            .is_some_and(|service| service.end_ns <= now_ns)
        {
            self.finish(now_ns, outbox);
            self.serve(now_ns, outbox);
            return Step::Quiet;
        }
        match self.distance.take(now_ns) {
            Some(transit) => {
                self.counters.out_packets += u64::from(transit.segments());
                self.counters.out_bytes += transit.train.wire_bytes(self.settings.framing_bytes);
                Step::Arrived(transit)
            }
            None => Step::Quiet,
        }
    }

    /// Changes what is stated in `change`; the caller tells the other direction when the delay may be another one.
    pub(super) fn change(&mut self, now_ns: u64, change: &PipeChange, outbox: &mut Outbox<P>) {
        self.fates.change(change);
        if let Some(rate) = change.rate_bps {
            self.set_rate(now_ns, rate.get(), outbox);
        }
        if let Some(delay) = change.delay_s {
            self.distance.delay_ns = nanoseconds(delay.get());
        }
        if change.states_capacity() {
            self.capacity.state(change.capacity_bytes, change.capacity_bdp);
        }
        self.follow();
        match change.up {
            Some(false) => self.cut(now_ns),
            Some(true) if !self.up => {
                self.up = true;
                self.line.stop(now_ns);
            }
            _ => {}
        }
        self.spec.take_over(change);
        self.serve(now_ns, outbox);
    }

    /// What is being sent goes on at the new rate, and is out at once without one.
    fn set_rate(&mut self, now_ns: u64, rate_bps: u64, outbox: &mut Outbox<P>) {
        let end_ns = self.line.set_rate(now_ns, rate_bps);
        if let Some(service) = &mut self.service {
            service.end_ns = end_ns;
        }
        if end_ns <= now_ns {
            self.finish(now_ns, outbox);
        }
    }

    /// Loses what is on the wire and under way.
    fn cut(&mut self, now_ns: u64) {
        self.up = false;
        let sending = self
            .service
            .take()
            .map_or(0, |service| service.transit.segments());
        self.counters.cut_packets += u64::from(sending) + self.distance.clear();
        self.line.stop(now_ns);
    }

    /// Fits the capacity to rate and delays.
    fn follow(&mut self) {
        let round_trip_ns = self.distance.delay_ns + self.return_delay_ns;
        let packet_bytes = self.settings.packet_bytes();
        self.capacity
            .follow(self.line.rate_bps(), round_trip_ns, packet_bytes);
    }

    /// The other direction has another delay.
    pub(super) fn set_return_delay(&mut self, delay_ns: u64) {
        self.return_delay_ns = delay_ns;
        self.follow();
    }

    pub(super) fn state(&self, now_ns: u64) -> PipeState {
        let sending = self
            .service
            .as_ref()
            .map_or(0, |service| service.transit.segments());
        PipeState {
            backlog_bytes: self.backlog_bytes(now_ns),
            in_flight_packets: self.queue.packets() + u64::from(sending) + self.distance.packets(),
            rate_bps: self.line.rate_bps(),
            delay_ns: self.distance.delay_ns,
        }
    }

    pub(super) fn take_backlog_max(&mut self, now_ns: u64) -> u64 {
        let now = self.backlog_bytes(now_ns);
        std::mem::replace(&mut self.backlog_max_bytes, now)
    }

    pub(super) fn spec(&self) -> &PipeSpec {
        &self.spec
    }
}
