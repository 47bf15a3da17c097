//! When the sender says what it has sent.

use super::outgoing::Outgoing;
use super::{Sender, SenderOptions};
use crate::rbudp::settle_ns;
use crate::rbudp::wire::{Done, Message};

/// Copies of a DONE while its blast goes on, at the end of a pass while another blast goes on, and when nothing does.
const COPIES_ON_THE_WAY: u32 = 2;
const COPIES_OF_A_PASS: u32 = 4;
const COPIES_WHEN_IDLE: u32 = 8;
/// Least and most time between two statements while a blast goes on.
const INTERVAL_NS: std::ops::RangeInclusive<u64> = 5_000_000..=50_000_000;
/// Statements in a window.
const WINDOW_PARTS: u64 = 8;
/// What is waited for an answer besides 5/4 of the round-trip time and the receiver's settling: its host's lateness.
const LATENESS_NS: u64 = 20_000_000;
/// Doublings of that time at most.
const MOST_DOUBLINGS: u32 = 6;

impl SenderOptions {
    /// Time between two statements while a blast goes on.
    fn interval_ns(&self) -> u64 {
        (self.rtt_ns / 4).clamp(*INTERVAL_NS.start(), *INTERVAL_NS.end())
    }

    /// The window in packets, where there is one.
    pub(super) fn window_packets(&self) -> Option<u64> {
        let bytes = self.window_bytes.filter(|_| self.early)?;
        Some(bytes.div_ceil(self.packet_bytes as u64).max(1))
    }

    /// How long an answer is waited for.
    fn patience_ns(&self) -> u64 {
        self.rtt_ns + self.rtt_ns / 4 + LATENESS_NS + settle_ns(self.rtt_ns)
    }
}

impl Sender {
    /// A DONE that should go as datagrams now, and in how many copies. Call until `None` after each burst, message and
    /// time-out.
    pub fn poll_mark(&mut self, now_ns: u64) -> Option<(Done, u32)> {
        let is_idle = self.has_nothing_to_send() || (self.open_packets() == 0 && !self.has_gaps());
        let options = self.options;
        let blast = self
            .blasts
            .iter_mut()
            .find(|blast| blast.is_due(now_ns, &options))?;
        let sent_since_ns = (blast.unstated_packets > 0).then_some(blast.unstated_ns);
        let ends_pass = blast.ends_pass(&options);
        // TCP is slow where much is lost, and a DONE that waits there holds up those behind it. One that adds the total to what
        // was stated before is not made again by the clock.
        let says_total_alone = sent_since_ns.is_none();
        let needs_tcp = is_idle || says_total_alone || (blast.is_due_again && blast.is_idle(&options));
        let done = blast.state(now_ns, &options);
        if let (Some(adapt), Some(since_ns)) = (&mut self.adapt, sent_since_ns) {
            adapt.state(now_ns, since_ns, &done);
        }
        self.owed_since_ns.get_or_insert(now_ns);
        if needs_tcp {
            self.say(Message::Done(done));
        }
        let copies = match (is_idle, ends_pass) {
            (true, _) => COPIES_WHEN_IDLE,
            (false, true) => COPIES_OF_A_PASS,
            (false, false) => COPIES_ON_THE_WAY,
        };
        self.statistics.sent_marks += u64::from(copies);
        Some((done, copies))
    }

    /// When `handle_timeout` is to be called; `None` if only messages and payload change anything.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.blasts
            .iter()
            .filter_map(|blast| blast.timeout_ns(&self.options))
            .min()
    }

    /// The time that `poll_timeout` gave has come.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        let patience_ns = self.options.patience_ns();
        for blast in &mut self.blasts {
            if blast.waits() && blast.again_ns <= now_ns {
                blast.is_due_again = true;
                blast.again_count += 1;
                blast.again_ns = now_ns + (patience_ns << blast.again_count.min(MOST_DOUBLINGS));
            }
        }
    }

    /// Puts a message in the queue for the TCP connection; a DONE takes the place of one of the same blast.
    pub(super) fn say(&mut self, message: Message) {
        if let Message::Done(done) = message {
            self.messages
                .retain(|queued| !matches!(queued, Message::Done(older) if older.blast == done.blast));
        }
        self.messages.push_back(message);
    }
}

impl Outgoing {
    /// The newest statement is to be answered.
    fn waits(&self) -> bool {
        self.whole_ns.is_none() && self.stated.is_some() && !self.is_answered()
    }

    /// Whether a statement is to be made now.
    fn is_due(&self, now_ns: u64, options: &SenderOptions) -> bool {
        if self.whole_ns.is_some() {
            return false;
        }
        if self.is_due_again {
            return true;
        }
        self.has_news(options)
            && (self.ends_pass(options)
                || self.fills_window(options)
                || self.interim_ns(options).is_some_and(|at_ns| at_ns <= now_ns))
    }

    /// All has been sent that was asked for, and nothing comes before an answer does.
    fn ends_pass(&self, options: &SenderOptions) -> bool {
        self.is_sent(options) && self.repeats.is_empty()
    }

    /// A part of the window has gone since the last statement: its report must be back before the window is used up.
    fn fills_window(&self, options: &SenderOptions) -> bool {
        let part = options
            .window_packets()
            .map(|packets| packets.div_ceil(WINDOW_PARTS));
        part.is_some_and(|packets| self.unstated_packets >= packets)
    }

    /// When the next statement is due while the blast goes on; `None` in the paper's way.
    fn interim_ns(&self, options: &SenderOptions) -> Option<u64> {
        let since_ns = match self.stated {
            Some(_) => self.stated_ns,
            None => self.started_ns?,
        };
        options.early.then(|| since_ns + options.interval_ns())
    }

    fn timeout_ns(&self, options: &SenderOptions) -> Option<u64> {
        if self.whole_ns.is_some() {
            return None;
        }
        let interim = self.interim_ns(options).filter(|_| self.unstated_packets > 0);
        let again = self.waits().then_some(self.again_ns);
        [interim, again].into_iter().flatten().min()
    }

    /// Says what can be said, and notes that it was.
    fn state(&mut self, now_ns: u64, options: &SenderOptions) -> Done {
        let done = self.statement(options);
        if self.stated != Some(done) {
            self.again_count = 0;
            self.again_ns = now_ns + options.patience_ns();
        }
        self.is_due_again = false;
        self.unstated_packets = 0;
        self.stated = Some(done);
        self.stated_ns = now_ns;
        done
    }
}
