//! The end that has data to send.

use super::control::{AckEvent, CongestionControl};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::{Ack, Segment};
use crate::{Endpoint, EndpointId, Gauges, NS_PER_S, Received, Transmit};

/// Smallest window after a reduction, in segments (RFC 5681, equation 4).
const MIN_WINDOW_SEGMENTS: f64 = 2.0;

/// How a sender behaves, its congestion control apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SenderConfig {
    /// IP bytes of a full segment.
    pub segment_bytes: u32,
    /// Most segments sent as one train; 64 KiB of them is what offloads do.
    pub train_segments: u16,
    /// When to begin.
    pub start_ns: u64,
    /// Segments to send in all; without end if absent.
    pub total_segments: Option<u64>,
    /// The receiver's window, or a limit of either socket's buffer.
    pub window_limit_segments: f64,
    /// First window (RFC 6928: 10 segments).
    pub initial_window_segments: f64,
    /// Slow start ends here if nothing is lost before; without limit by RFC 5681.
    pub initial_threshold_segments: f64,
    /// Smallest retransmission time-out (RFC 6298, 2.4: 1 s).
    pub min_timeout_ns: u64,
    /// Whether queues may mark instead of dropping.
    pub ecn: bool,
}

impl SenderConfig {
    /// An endless flow of segments of `segment_bytes`, as the RFCs have it, in trains of up to 64 KiB.
    pub fn endless(segment_bytes: u32) -> Self {
        Self {
            segment_bytes,
            train_segments: u16::try_from((65_536 / segment_bytes).max(1)).unwrap_or(u16::MAX),
            start_ns: 0,
            total_segments: None,
            window_limit_segments: f64::INFINITY,
            initial_window_segments: 10.0,
            initial_threshold_segments: f64::INFINITY,
            min_timeout_ns: NS_PER_S,
            ecn: false,
        }
    }
}

/// One reduction of the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Congestion {
    /// When.
    pub at_ns: u64,
    /// Window before, in segments.
    pub before_segments: f64,
    /// Window after, in segments; after a time-out the threshold of slow start.
    pub after_segments: f64,
    /// Whether a time-out told of it.
    pub timeout: bool,
}

/// Counts of a sender since it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderFigures {
    /// Segments sent, retransmissions included.
    pub sent: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Segments taken for lost, by acknowledgements or time-outs.
    pub lost: u64,
    /// Segments known to have arrived.
    pub acked: u64,
    /// Time-outs.
    pub timeouts: u64,
}

/// Sends as the window allows.
#[derive(Debug)]
pub struct Sender {
    peer: EndpointId,
    config: SenderConfig,
    control: Box<dyn CongestionControl>,
    board: Scoreboard,
    rtt: RttEstimator,
    window: f64,
    threshold: f64,
    /// First number not yet sent when the window was last reduced: until it arrives the window stays as it is.
    recovery_to: u64,
    next_sequence: u64,
    cumulative: u64,
    timeout_at_ns: Option<u64>,
    figures: SenderFigures,
    history: Vec<Congestion>,
}

impl Sender {
    /// A sender to `peer` that has sent nothing.
    pub fn new(peer: EndpointId, config: SenderConfig, control: Box<dyn CongestionControl>) -> Self {
        Self {
            peer,
            config,
            control,
            board: Scoreboard::default(),
            rtt: RttEstimator::new(config.min_timeout_ns),
            window: config.initial_window_segments,
            threshold: config.initial_threshold_segments,
            recovery_to: 0,
            next_sequence: 0,
            cumulative: 0,
            timeout_at_ns: Some(config.start_ns),
            figures: SenderFigures::default(),
            history: Vec::new(),
        }
    }

    /// Counts since the beginning.
    pub fn figures(&self) -> SenderFigures {
        self.figures
    }

    /// Every reduction of the window, in order of time.
    pub fn history(&self) -> &[Congestion] {
        &self.history
    }

    /// The window, in segments.
    pub fn window_segments(&self) -> f64 {
        self.window
    }

    /// Whether all of `total_segments` have arrived.
    pub fn is_done(&self) -> bool {
        self.config
            .total_segments
            .is_some_and(|total| self.cumulative >= total)
    }

    fn handle_ack(&mut self, now_ns: u64, ack: Ack, first: u16, segments: u16) {
        let to = ack.number + u64::from(first) + u64::from(segments);
        let whole = first + segments == ack.segments;
        let cumulative = if whole {
            ack.cumulative_after
        } else {
            ack.cumulative_before
        };
        self.cumulative = self.cumulative.max(cumulative);
        let acked = self.board.acknowledge(ack.run_from, to);
        let missing = self.board.find_lost(self.cumulative);
        let arrived = acked.segments + missing.covered;
        self.figures.acked += arrived;
        if arrived == 0 {
            let sequence = ack.sequence + u64::from(first);
            self.figures.acked += self.board.forget(sequence, u64::from(segments));
        }
        self.figures.lost += missing.lost;
        if let Some(sent_ns) = acked.newest_sent_ns {
            self.rtt.sample(now_ns - sent_ns);
        }
        let marked = ack.marked.then(|| to - 1);
        if let Some(number) = missing.newest_lost.max(marked) {
            self.handle_congestion(now_ns, number);
        }
        if arrived > 0 {
            self.grow(now_ns, arrived);
            self.timeout_at_ns = Some(now_ns + self.rtt.timeout_ns());
        }
    }

    /// Reduces the window for transmission `number`, unless that was sent before the last reduction.
    fn handle_congestion(&mut self, now_ns: u64, number: u64) {
        if number < self.recovery_to {
            return;
        }
        self.reduce(now_ns, false);
        self.window = self.threshold;
    }

    fn reduce(&mut self, now_ns: u64, timeout: bool) {
        let before = self.window;
        self.threshold = self.control.reduce(now_ns, before).max(MIN_WINDOW_SEGMENTS);
        self.recovery_to = self.board.next_number();
        self.history.push(Congestion {
            at_ns: now_ns,
            before_segments: before,
            after_segments: self.threshold,
            timeout,
        });
    }

    fn grow(&mut self, now_ns: u64, arrived: u64) {
        let mut segments = arrived as f64;
        let event = AckEvent {
            now_ns,
            segments,
            rtt: &self.rtt,
        };
        self.control.observe(&event);
        let recovering = self.board.acked_to() < self.recovery_to && self.window >= self.threshold;
        if recovering {
            return;
        }
        if self.window < self.threshold {
            let slow = segments.min(self.threshold - self.window);
            self.window += slow;
            segments -= slow;
        }
        if segments > 0.0 {
            let event = AckEvent {
                now_ns,
                segments,
                rtt: &self.rtt,
            };
            self.window = self.control.grow(self.window, &event);
        }
        self.window = self.window.min(self.config.window_limit_segments);
    }

    /// Everything under way is given up and slow start begins anew (RFC 5681, 3.1; RFC 6298, 5.4 to 5.6).
    fn time_out(&mut self, now_ns: u64) {
        self.figures.timeouts += 1;
        self.figures.lost += self.board.give_up();
        // A second time-out for the same data does not halve the threshold again (RFC 5681, 3.1).
        if self.window > 1.0 {
            self.reduce(now_ns, true);
        }
        self.control.restart();
        self.window = 1.0;
        self.recovery_to = self.board.next_number();
        self.rtt.back_off();
        self.timeout_at_ns = None;
    }

    /// New segments that may be sent as one train within `room`.
    ///
    /// Small trains are put off until an eighth of the window or a whole train can go, as offloading senders do;
    /// there is always something under way then, whose acknowledgement will bring more room.
    fn new_segments(&self, room: u64) -> u64 {
        let left = self
            .config
            .total_segments
            .map_or(u64::MAX, |total| total - self.next_sequence);
        let train = u64::from(self.config.train_segments);
        let worthwhile = (self.window as u64 / 8).clamp(1, train).min(left);
        if room < worthwhile && self.board.in_flight() > 0 {
            return 0;
        }
        room.min(train).min(left)
    }

    fn next_train(&mut self, room: u64) -> Option<(u64, u64)> {
        let train = u64::from(self.config.train_segments);
        if let Some((sequence, segments)) = self.board.next_lost(room.min(train), self.cumulative) {
            self.figures.retransmitted += segments;
            return Some((sequence, segments));
        }
        let segments = self.new_segments(room);
        let sequence = self.next_sequence;
        self.next_sequence += segments;
        (segments > 0).then_some((sequence, segments))
    }

    fn waits_to_start(&self, now_ns: u64) -> bool {
        now_ns < self.config.start_ns
    }
}

impl Endpoint for Sender {
    type Packet = Segment;

    fn handle_packet(&mut self, now_ns: u64, received: Received<Segment>) {
        if let (Segment::Ack(ack), false) = (received.packet, received.is_damaged()) {
            self.handle_ack(now_ns, ack, received.first, received.segments);
        }
    }

    fn handle_timeout(&mut self, now_ns: u64) {
        if self.board.in_flight() > 0 {
            self.time_out(now_ns);
        } else {
            self.timeout_at_ns = None;
        }
    }

    fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<Segment>> {
        if self.waits_to_start(now_ns) {
            return None;
        }
        let room = (self.window as u64).saturating_sub(self.board.in_flight());
        if room == 0 {
            return None;
        }
        let (sequence, segments) = self.next_train(room)?;
        if self.board.in_flight() == 0 {
            self.timeout_at_ns = Some(now_ns + self.rtt.timeout_ns());
        }
        let number = self.board.sent(now_ns, sequence, segments);
        self.figures.sent += segments;
        let segments = u16::try_from(segments).expect("a train is at most train_segments long");
        let packet = Segment::Data { sequence, number };
        let mut train = Transmit::train(self.peer, packet, segments, self.config.segment_bytes);
        train.ecn_capable = self.config.ecn;
        Some(train)
    }

    fn next_timeout(&self) -> Option<u64> {
        self.timeout_at_ns.filter(|_| !self.is_done())
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            window: self.window,
            in_flight: self.board.in_flight(),
            delivered: self.figures.acked,
            rtt_ns: self.rtt.latest_ns(),
        }
    }
}
