//! When to acknowledge, and what became of it.
//!
//! The reference library acknowledges every 10 ms, every 64 packets in a light way, and every odd-sized packet. Here
//! an ACK goes at most every [`DELAY_MIN_NS`] to [`DELAY_MAX_NS`], an eighth of the round-trip time in between, or
//! when [`EVERY_PACKETS`] or a quarter of the window have come: often enough that no sender starves, seldom enough to
//! cost nothing. A libudt sender, to which every ACK is work, gets fewer.

/// Bounds of the delay of an ACK.
const DELAY_MIN_NS: u64 = 200_000;
const DELAY_MAX_NS: u64 = 1_000_000;
/// The same towards a sender of the reference library.
const LIBUDT_DELAY_NS: u64 = 4_000_000;
/// Packets that are acknowledged without delay.
const EVERY_PACKETS: u64 = 512;
/// Rates go along no more often than this (draft-gg-udt, section 6: SYN).
const RATES_NS: u64 = 10_000_000;
/// ACKs whose round trip can still be measured.
const REMEMBERED: usize = 64;
/// How often an unconfirmed ACK is repeated without news.
const REPEATS: u32 = 5;
/// ACK numbers have 31 bits.
const NUMBER_MASK: u32 = 0x7fff_ffff;

/// An ACK to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) number: u32,
    pub(super) has_rates: bool,
}

/// What the receiver's state is when it thinks of acknowledging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AckInput {
    /// First missing index.
    pub(super) next: u64,
    /// Different packets that have come.
    pub(super) received: u64,
    /// Packets allowed from `next` on.
    pub(super) window: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    number: u32,
    at_ns: u64,
    next: u64,
}

/// Decides when to acknowledge.
#[derive(Debug)]
pub(super) struct Acknowledger {
    number: u32,
    every_packets: u64,
    is_eager: bool,
    last_ns: Option<u64>,
    rates_ns: u64,
    last: AckInput,
    packets_since: u64,
    due_ns: Option<u64>,
    sent: [Sent; REMEMBERED],
    confirmed: u64,
    repeats: u32,
    received: u64,
}

impl Acknowledger {
    /// For a window of `window_packets`.
    pub(super) fn new(now_ns: u64, window_packets: u64) -> Self {
        Self {
            number: 0,
            every_packets: (window_packets / 4).clamp(2, EVERY_PACKETS),
            is_eager: false,
            last_ns: None,
            rates_ns: now_ns,
            last: AckInput {
                next: 0,
                received: 0,
                window: 0,
            },
            packets_since: 0,
            due_ns: None,
            sent: [Sent::default(); REMEMBERED],
            confirmed: 0,
            repeats: 0,
            received: 0,
        }
    }

    /// The sender is farline: ACKs cost it little and tell it much.
    pub(super) fn be_eager(&mut self) {
        self.is_eager = true;
    }

    /// Different packets that have come so far.
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    /// Now, or when `delay_ns` have passed since the last ACK.
    fn not_before(&self, now_ns: u64, delay_ns: u64) -> u64 {
        self.last_ns
            .map_or(now_ns, |last_ns| now_ns.max(last_ns + delay_ns))
    }

    /// `packets` new ones have come.
    pub(super) fn arrived(&mut self, now_ns: u64, packets: u64, rtt_ns: u64) {
        self.received += packets;
        self.packets_since += packets;
        let delay_ns = if self.is_eager {
            (rtt_ns / 8).clamp(DELAY_MIN_NS, DELAY_MAX_NS)
        } else {
            LIBUDT_DELAY_NS
        };
        let due_ns = if self.packets_since >= self.every_packets {
            now_ns
        } else {
            self.not_before(now_ns, delay_ns)
        };
        self.due_ns = Some(self.due_ns.map_or(due_ns, |earlier| earlier.min(due_ns)));
    }

    /// Packets came that were there already: the sender has missed an ACK.
    pub(super) fn missed(&mut self, now_ns: u64, rtt_ns: u64) {
        self.last.next = u64::MAX;
        self.arrived(now_ns, 0, rtt_ns);
    }

    /// The window is now `window` packets from `next` on; a sender that was near the end of it hears so.
    pub(super) fn note_window(&mut self, now_ns: u64, window: u64, next: u64) {
        let offered = (self.last.next.saturating_add(self.last.window)).saturating_sub(next);
        let was_told = self.last.window > 0 && self.last.next != u64::MAX;
        if was_told && window >= offered.saturating_mul(2).max(offered + 16) && self.due_ns.is_none() {
            self.due_ns = Some(self.not_before(now_ns, DELAY_MIN_NS));
        }
    }

    /// When to look again. `overdue_ns`: after which an unconfirmed ACK is repeated.
    pub(super) fn next_timeout(&self, overdue_ns: u64) -> Option<u64> {
        let repeat_ns = self.repeat_ns(overdue_ns);
        match (self.due_ns, repeat_ns) {
            (Some(due), Some(repeat)) => Some(due.min(repeat)),
            (due, repeat) => due.or(repeat),
        }
    }

    fn repeat_ns(&self, overdue_ns: u64) -> Option<u64> {
        let is_open = self.number > 0 && self.last.next != self.confirmed && self.repeats < REPEATS;
        let last_ns = self.last_ns.filter(|_| is_open)?;
        Some(last_ns + (overdue_ns.max(RATES_NS) << self.repeats))
    }

    /// The ACK to send now, if any.
    pub(super) fn take(&mut self, now_ns: u64, news: AckInput, overdue_ns: u64) -> Option<Plan> {
        let is_repeat = self
            .repeat_ns(overdue_ns)
            .is_some_and(|repeat_ns| repeat_ns <= now_ns);
        let is_due = self.due_ns.is_some_and(|due_ns| due_ns <= now_ns);
        if !is_due && !is_repeat {
            return None;
        }
        self.due_ns = None;
        self.packets_since = 0;
        let has_news = news != self.last;
        if !has_news && !is_repeat {
            return None;
        }
        self.repeats = if has_news { 0 } else { self.repeats + 1 };
        self.number = match self.number & NUMBER_MASK {
            NUMBER_MASK => 1,
            number => number + 1,
        };
        let has_rates = now_ns >= self.rates_ns + RATES_NS;
        if has_rates {
            self.rates_ns = now_ns;
        }
        self.last_ns = Some(now_ns);
        self.last = news;
        self.sent[self.number as usize % REMEMBERED] = Sent {
            number: self.number,
            at_ns: now_ns,
            next: news.next,
        };
        Some(Plan {
            number: self.number,
            has_rates,
        })
    }

    /// An ACK2 came; gives the round-trip time if the ACK is still remembered.
    pub(super) fn confirm(&mut self, now_ns: u64, number: u32) -> Option<u64> {
        let sent = &mut self.sent[number as usize % REMEMBERED];
        if number == 0 || sent.number != number {
            return None;
        }
        self.confirmed = self.confirmed.max(sent.next);
        sent.number = 0;
        Some(now_ns.saturating_sub(sent.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(next: u64) -> AckInput {
        AckInput {
            next,
            received: next,
            window: 1_000,
        }
    }

    fn eager() -> Acknowledger {
        let mut acks = Acknowledger::new(0, 100_000);
        acks.be_eager();
        acks
    }

    #[test]
    fn a_small_window_is_acknowledged_by_the_quarter() {
        let mut acks = Acknowledger::new(0, 32);
        acks.arrived(0, 1, 0);
        acks.take(0, news(1), 1_000_000_000);
        acks.arrived(10, 7, 0);
        assert_eq!(acks.next_timeout(1 << 40), Some(LIBUDT_DELAY_NS));
        acks.arrived(20, 1, 0);
        assert_eq!(acks.next_timeout(1 << 40), Some(20));
    }

    #[test]
    fn the_first_packet_is_acknowledged_at_once_and_the_next_after_a_delay() {
        let mut acks = eager();
        acks.arrived(5_000_000, 1, 0);
        assert_eq!(acks.next_timeout(1), Some(5_000_000));
        let plan = acks.take(5_000_000, news(1), 1).unwrap();
        assert_eq!((plan.number, plan.has_rates), (1, false));
        acks.arrived(5_010_000, 1, 0);
        assert_eq!(acks.take(5_010_000, news(2), 1_000_000_000), None);
        assert!(acks.take(5_200_000, news(2), 1_000_000_000).is_some());
    }

    #[test]
    fn many_packets_do_not_wait() {
        let mut acks = eager();
        acks.arrived(0, 1, 0);
        acks.take(0, news(1), 1_000_000_000);
        acks.arrived(10, EVERY_PACKETS, 0);
        assert!(acks.take(10, news(600), 1_000_000_000).is_some());
    }

    #[test]
    fn an_ack_is_repeated_until_it_is_confirmed_and_its_round_trip_is_measured() {
        let mut acks = eager();
        acks.arrived(0, 1, 0);
        let plan = acks.take(0, news(1), 20_000_000).unwrap();
        assert_eq!(acks.take(19_000_000, news(1), 20_000_000), None);
        let again = acks.take(20_000_000, news(1), 20_000_000).unwrap();
        assert_eq!(again.number, plan.number + 1);
        assert_eq!(acks.confirm(25_000_000, again.number), Some(5_000_000));
        assert_eq!(acks.confirm(25_000_000, again.number), None, "only once");
        assert_eq!(acks.next_timeout(20_000_000), None);
    }

    #[test]
    fn a_forged_confirmation_means_nothing() {
        let mut acks = eager();
        assert_eq!(acks.confirm(5, 0), None);
        assert_eq!(acks.confirm(5, 77), None);
    }

    #[test]
    fn a_window_that_opened_again_is_told() {
        let mut acks = eager();
        acks.arrived(0, 10, 0);
        let narrow = AckInput {
            next: 10,
            received: 10,
            window: 4,
        };
        acks.take(0, narrow, 1 << 40);
        acks.confirm(1, 1);
        acks.note_window(1_000, 10, 10);
        assert_eq!(acks.next_timeout(1 << 40), None, "not worth an ACK");
        acks.note_window(1_000, 100, 10);
        assert_eq!(acks.next_timeout(1 << 40), Some(DELAY_MIN_NS));
    }

    #[test]
    fn numbers_wrap_past_zero() {
        let mut acks = eager();
        acks.number = NUMBER_MASK;
        acks.arrived(0, 1, 0);
        assert_eq!(acks.take(0, news(1), 1 << 40).unwrap().number, 1);
    }
}
