//! What is to be done when nothing comes: expiry, tail probes, greetings and partings.

use super::round_trip::RoundTrip;
use super::{Closed, Connection, State};

/// draft-gg-udt, section 4: the SYN interval.
const SYN_NS: u64 = 10_000_000;
/// libudt 4.11: least EXP interval for each expiration in a row.
const EXPIRY_NS: u64 = 300_000_000;
/// The first one: nothing is known of the round-trip time yet (RFC 6298, section 2.1).
const FIRST_EXPIRY_NS: u64 = 1_000_000_000;
/// ... and the most: one absurd round trip must not make a dead peer immortal.
const EXPIRY_MAX_NS: u64 = 10_000_000_000;
/// libudt 4.11: a peer is dead after more than so many expirations in a row ...
const EXPIRATIONS: u32 = 16;
/// How much longer than a round trip an ACK may take: a farline peer's delay, and libudt's idle scan of 100 ms.
const FARLINE_ACK_NS: u64 = 10_000_000;
const LIBUDT_ACK_NS: u64 = 120_000_000;
/// When a farline end says that it is one, counted from the opening.
const GREETINGS_NS: [u64; 5] = [0, 20_000_000, 100_000_000, 500_000_000, 2_000_000_000];
/// How long the confirmation of the last ACK is waited for before an end that has finished shuts down.
const LAST_ACK_NS: u64 = 500_000_000;
/// Shutdowns sent to a farline peer, which answers, and to another, which does not.
const FARLINE_PARTINGS: u32 = 10;
const LIBUDT_PARTINGS: u32 = 3;

/// The EXP timer, and the probe for packets lost at the tail.
#[derive(Debug)]
pub(super) struct Expiry {
    count: u32,
    due_ns: u64,
    /// When packets were acknowledged, first sent after a pause, or probed for last.
    progress_ns: u64,
    probes: u32,
}

impl Expiry {
    pub(super) fn new(now_ns: u64) -> Self {
        Self {
            count: 1,
            due_ns: now_ns + FIRST_EXPIRY_NS,
            progress_ns: now_ns,
            probes: 0,
        }
    }

    /// Anything came from the peer.
    pub(super) fn heard(&mut self, now_ns: u64, rtt: &RoundTrip) {
        self.count = 1;
        self.due_ns = now_ns + interval_ns(1, rtt);
    }

    /// Packets were acknowledged, or the first ones sent after a pause.
    pub(super) fn progressed(&mut self, now_ns: u64) {
        self.progress_ns = now_ns;
        self.probes = 0;
    }

    /// Packets are sent after a pause: an answer to them cannot have come before.
    pub(super) fn resumed(&mut self, now_ns: u64, rtt: &RoundTrip) {
        self.progressed(now_ns);
        self.due_ns = self.due_ns.max(now_ns + interval_ns(self.count, rtt));
    }

    fn probe_ns(&self, rtt: &RoundTrip, is_farline: bool) -> u64 {
        let allowance_ns = if is_farline { FARLINE_ACK_NS } else { LIBUDT_ACK_NS };
        let first_ns = if rtt.min_ns() == 0 {
            FIRST_EXPIRY_NS
        } else {
            rtt.overdue_ns() + allowance_ns
        };
        let wait_ns = first_ns << self.probes.min(5);
        self.progress_ns.saturating_add(wait_ns)
    }
}

fn interval_ns(count: u32, rtt: &RoundTrip) -> u64 {
    let count = u64::from(count);
    if rtt.min_ns() == 0 {
        // The guess of 100 ms would take what is under way on a longer path for lost.
        return (count * EXPIRY_NS).max(FIRST_EXPIRY_NS);
    }
    let measured_ns = count * (rtt.smoothed_ns() + 4 * rtt.variance_ns()) + SYN_NS;
    measured_ns.max(count * EXPIRY_NS).min(EXPIRY_MAX_NS)
}

/// Saying to the other end that this one is farline.
#[derive(Debug)]
pub(super) struct PeerDetection {
    opened_ns: u64,
    /// The peer has shown that it knows what a greeting is; others may fail at a control packet that they do not know.
    is_known: bool,
    said: usize,
    is_seen: bool,
    answer: bool,
    peer_token: Option<u32>,
}

impl PeerDetection {
    pub(super) fn new(now_ns: u64, is_known: bool) -> Self {
        Self {
            opened_ns: now_ns,
            is_known,
            said: 0,
            is_seen: false,
            answer: false,
            peer_token: None,
        }
    }

    /// What a farline peer must be told to be believed.
    pub(super) fn peer_token(&self) -> Option<u32> {
        self.peer_token
    }

    /// Whether the peer has shown that it is farline, by its handshake or its greeting.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Whether the peer has said that it knows what we said.
    pub(super) fn is_seen(&self) -> bool {
        self.is_seen
    }

    /// The peer said that it is farline, and whether it knows that we are.
    pub(super) fn heard(&mut self, token: u32, is_seen: bool) {
        self.is_known = true;
        let is_new = self.peer_token.is_none();
        // The first one counts: a later, different one is not the peer's.
        let known = *self.peer_token.get_or_insert(token);
        if known != token {
            return;
        }
        self.is_seen |= is_seen;
        self.answer |= !is_seen || is_new;
    }

    pub(super) fn next_timeout(&self) -> Option<u64> {
        if self.answer {
            return Some(self.opened_ns);
        }
        let after_ns = GREETINGS_NS.get(self.said)?;
        (self.is_known && !self.is_seen).then_some(self.opened_ns + after_ns)
    }

    /// Whether to greet now.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        if self.next_timeout().is_none_or(|due_ns| due_ns > now_ns) {
            return false;
        }
        if !self.answer {
            self.said += 1;
        }
        self.answer = false;
        true
    }
}

/// Saying that it is over.
#[derive(Debug)]
pub(super) struct ShutdownTimer {
    left: u32,
    due_ns: Option<u64>,
    is_whole: bool,
    has_begun: bool,
    /// Since when there is nothing left to deliver.
    ready_ns: Option<u64>,
}

impl ShutdownTimer {
    pub(super) fn new() -> Self {
        Self {
            left: 0,
            due_ns: None,
            is_whole: true,
            has_begun: false,
            ready_ns: None,
        }
    }

    /// One shutdown, now: an answer, or the last word of an end that does not wait.
    pub(super) fn say(&mut self, now_ns: u64, is_whole: bool) {
        self.left = 1;
        self.due_ns = Some(now_ns);
        self.is_whole = is_whole;
    }

    fn begin(&mut self, now_ns: u64, is_farline: bool) {
        self.has_begun = true;
        self.is_whole = true;
        self.left = if is_farline {
            FARLINE_PARTINGS
        } else {
            LIBUDT_PARTINGS
        };
        self.due_ns = Some(now_ns);
    }

    /// Whether this end has said that it has finished.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn is_over(&self) -> bool {
        self.has_begun && self.left == 0 && self.due_ns.is_none()
    }

    /// Whether to say so now, and if so whether everything had arrived.
    pub(super) fn take(&mut self, now_ns: u64, again_ns: u64) -> Option<bool> {
        self.due_ns.filter(|&due_ns| due_ns <= now_ns && self.left > 0)?;
        self.left -= 1;
        // After the last one there is one more wait for an answer.
        self.due_ns = (self.left > 0 || self.has_begun).then(|| now_ns + again_ns);
        Some(self.is_whole)
    }

    fn run_out(&mut self, now_ns: u64) {
        if self.left == 0 && self.due_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.due_ns = None;
        }
    }
}

impl Connection {
    /// When [`Self::handle_timeout`] or [`Self::poll_transmit`] has something to do though nothing comes.
    pub fn next_timeout(&self) -> Option<u64> {
        if matches!(self.state, State::Closed(_)) {
            return self.parting.due_ns.filter(|_| self.parting.left > 0);
        }
        let overdue_ns = self.rtt.overdue_ns();
        let probe_ns =
            (self.flight_span() > 0).then(|| self.expiry.probe_ns(&self.rtt, self.is_peer_farline()));
        // Found while a burst was looked for, after control packets had been asked for.
        let dropped_ns = self.send.has_dropped().then_some(0);
        [
            dropped_ns,
            Some(self.expiry.due_ns),
            probe_ns,
            self.acks.next_timeout(overdue_ns),
            self.gaps.next_due_ns(self.renak_ns()),
            self.greeting.next_timeout(),
            self.parting.due_ns,
            self.next_data_ns(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what time demands. Datagrams that have come by now should be handled first.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        self.report_gaps(now_ns);
        if self.expiry.due_ns <= now_ns {
            self.expire(now_ns);
        }
        if self.flight_span() > 0 && self.expiry.probe_ns(&self.rtt, self.is_peer_farline()) <= now_ns {
            self.probe(now_ns);
        }
        self.part(now_ns);
    }

    /// Packets sent and not acknowledged.
    pub(super) fn flight_span(&self) -> u64 {
        self.send.sent() - self.send.acked()
    }

    /// Time after which a missing packet is asked for again.
    pub(super) fn renak_ns(&self) -> u64 {
        self.rtt.overdue_ns() + 2_000_000
    }

    fn expire(&mut self, now_ns: u64) {
        if self.expiry.count > EXPIRATIONS {
            self.state = State::Closed(Closed::PeerDead);
            return;
        }
        self.expiry.count += 1;
        self.expiry.due_ns = now_ns + interval_ns(self.expiry.count, &self.rtt);
        if self.flight_span() == 0 {
            self.keep_alive_due = true;
            return;
        }
        // Nothing has come for so long that whatever is under way will not arrive.
        let in_flight = self.flight_packets();
        let (first, last) = (self.send.acked(), self.send.sent() - 1);
        self.counted.send_lost_packets += self.send.mark_lost(first, last, now_ns, 0);
        self.control.on_timeout(now_ns, in_flight);
    }

    /// Repeats the oldest and the newest packet under way: the one fills a hole whose repetition was lost, the
    /// other shows the receiver what is missing before it.
    fn probe(&mut self, now_ns: u64) {
        self.expiry.probes += 1;
        self.expiry.progress_ns = now_ns;
        let (first, last) = (self.send.acked(), self.send.sent() - 1);
        let mut lost = self.send.mark_lost(first, first, now_ns, 0);
        lost += self.send.mark_lost(last, last, now_ns, 0);
        // The congestion control is not told: more often the ACK is late than a packet is lost, and if one is, the
        // receiver will say so.
        self.counted.send_lost_packets += lost;
    }

    /// Ends a connection that has finished when everything written has arrived.
    pub(super) fn part(&mut self, now_ns: u64) {
        if self.state != State::Finishing || !self.is_delivered() {
            return;
        }
        if !self.parting.has_begun {
            // The other end may be finishing too: it must hear that everything of its own has arrived.
            let ready_ns = *self.parting.ready_ns.get_or_insert(now_ns);
            let owes_ack = self.acks.next_timeout(self.rtt.overdue_ns()).is_some();
            if owes_ack && now_ns < ready_ns + LAST_ACK_NS {
                return;
            }
            self.parting.begin(now_ns, self.is_peer_farline());
        }
        self.parting.run_out(now_ns);
        if self.parting.is_over() {
            self.state = State::Closed(Closed::ByUs);
        }
    }

    /// Time between two shutdowns.
    pub(super) fn parting_again_ns(&self) -> u64 {
        if self.is_peer_farline() {
            (self.rtt.overdue_ns() + SYN_NS).min(1_000_000_000)
        } else {
            SYN_NS
        }
    }
}
