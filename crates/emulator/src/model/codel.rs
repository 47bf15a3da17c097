//! Controlled delay: which packets a queue gives up at its head (RFC 8289, section 5, the pseudo-code step by step).

/// The packet at the head of the queue, as CoDel sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// When it is dequeued.
    pub(super) now_ns: u64,
    /// How long it has waited.
    pub(super) sojourn_ns: u64,
    /// Bytes on the wire behind it.
    pub(super) bytes_behind: u64,
    /// Whether it may be marked instead of dropped.
    pub(super) markable: bool,
}

/// What becomes of the packet at the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    Mark,
    Drop,
}

/// What was done with the packet before, if it was dropped and its successor is dequeued in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// The drop that began the dropping state: its successor is sent.
    FirstDrop,
    /// A further drop: its successor is looked at again.
    FurtherDrop,
}

/// CoDel's state; the names are those of the RFC.
#[derive(Debug)]
pub(super) struct Codel {
    target_ns: u64,
    interval_ns: u64,
    /// A queue of at most so many bytes is never too long.
    maxpacket_bytes: u64,
    first_above_ns: Option<u64>,
    drop_next_ns: u64,
    count: u64,
    last_count: u64,
    dropping: bool,
    before: Before,
    owes_mark: bool,
}

impl Codel {
    pub(super) fn new(target_ns: u64, interval_ns: u64, maxpacket_bytes: u64) -> Self {
        Self {
            target_ns,
            interval_ns,
            maxpacket_bytes,
            first_above_ns: None,
            drop_next_ns: 0,
            count: 0,
            last_count: 0,
            dropping: false,
            before: Before::Nothing,
            owes_mark: false,
        }
    }

    /// The packet last judged is to be marked, but is not dequeued yet: it will be judged again, with the same result.
    pub(super) fn owe_mark(&mut self) {
        self.owes_mark = true;
    }

    /// The queue was found empty.
    pub(super) fn found_empty(&mut self) {
        self.first_above_ns = None;
        self.dropping = false;
        self.before = Before::Nothing;
    }

    /// What becomes of the packet at the head. After a drop the next head is judged at the same time.
    pub(super) fn judge(&mut self, head: Head) -> Verdict {
        if std::mem::take(&mut self.owes_mark) {
            return Verdict::Mark;
        }
        let above = self.is_above(&head);
        match std::mem::replace(&mut self.before, Before::Nothing) {
            Before::FirstDrop => return Verdict::Send,
            Before::FurtherDrop if above => self.drop_next_ns = self.control_law(self.drop_next_ns),
            Before::FurtherDrop | Before::Nothing => {}
        }
        if self.dropping {
            self.dropping = above;
            if above && head.now_ns >= self.drop_next_ns {
                return self.again(&head);
            }
        } else if above {
            return self.begin(&head);
        }
        Verdict::Send
    }

    /// Whether the delay has stayed above the target for an interval (`dodequeue` in the RFC).
    fn is_above(&mut self, head: &Head) -> bool {
        if head.sojourn_ns < self.target_ns || head.bytes_behind <= self.maxpacket_bytes {
            self.first_above_ns = None;
            return false;
        }
        let due_ns = *self.first_above_ns.get_or_insert(head.now_ns + self.interval_ns);
        head.now_ns >= due_ns
    }

    /// A further drop or mark in the dropping state.
    fn again(&mut self, head: &Head) -> Verdict {
        self.count += 1;
        if head.markable {
            self.drop_next_ns = self.control_law(self.drop_next_ns);
            return Verdict::Mark;
        }
        self.before = Before::FurtherDrop;
        Verdict::Drop
    }

    /// Enters the dropping state, at the rate that controlled the queue if it was left not long ago.
    fn begin(&mut self, head: &Head) -> Verdict {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recently = head.now_ns.saturating_sub(self.drop_next_ns) < 16 * self.interval_ns;
        self.count = if delta > 1 && recently { delta } else { 1 };
        self.drop_next_ns = self.control_law(head.now_ns);
        self.last_count = self.count;
        if head.markable {
            return Verdict::Mark;
        }
        self.before = Before::FirstDrop;
        Verdict::Drop
    }

    /// `time + interval / sqrt(count)`, rounded down.
    fn control_law(&self, time_ns: u64) -> u64 {
        let interval = u128::from(self.interval_ns);
        time_ns + (interval * interval / u128::from(self.count)).isqrt() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn head(now_ns: u64, sojourn_ns: u64) -> Head {
        Head {
            now_ns,
            sojourn_ns,
            bytes_behind: 1_000_000,
            markable: false,
        }
    }

    /// Judges a packet every 100 us that has always waited 20 ms; gives the times of drops.
    fn drops_under_standing_queue(codel: &mut Codel, from_ns: u64, until_ns: u64) -> Vec<u64> {
        let mut drops = Vec::new();
        for now_ns in (from_ns..until_ns).step_by(100_000) {
            while codel.judge(head(now_ns, 20 * MS)) == Verdict::Drop {
                drops.push(now_ns);
            }
        }
        drops
    }

    #[test]
    fn the_first_drop_comes_an_interval_after_the_delay_rose() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1538);
        let drops = drops_under_standing_queue(&mut codel, 0, 1_000 * MS);
        assert_eq!(drops[0], 100 * MS);
    }

    #[test]
    fn further_drops_are_spaced_by_the_interval_over_the_root_of_their_count() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1538);
        let drops = drops_under_standing_queue(&mut codel, 0, 3_000 * MS);
        let mut due = 100.0 * MS as f64;
        for (place, drop) in drops.iter().enumerate() {
            assert!(
                (*drop as f64 - due).abs() <= 1e5,
                "drop {place} at {drop}, due {due}"
            );
            due += 100.0 * MS as f64 / ((place + 1) as f64).sqrt();
        }
        assert!(drops.len() > 200);
    }

    #[test]
    fn one_packet_below_the_target_ends_dropping() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1538);
        drops_under_standing_queue(&mut codel, 0, 500 * MS);
        assert!(codel.dropping);
        assert_eq!(codel.judge(head(500 * MS, 4 * MS)), Verdict::Send);
        assert!(!codel.dropping);
    }

    #[test]
    fn a_queue_of_one_packet_is_never_too_long() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1538);
        for now_ns in (0..1_000 * MS).step_by(100_000) {
            let short = Head {
                bytes_behind: 1538,
                ..head(now_ns, 20 * MS)
            };
            assert_eq!(codel.judge(short), Verdict::Send);
        }
    }

    #[test]
    fn dropping_resumes_near_its_former_rate() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1538);
        let before = drops_under_standing_queue(&mut codel, 0, 1_000 * MS).len() as u64;
        codel.judge(head(1_000 * MS, 0));
        drops_under_standing_queue(&mut codel, 1_001 * MS, 1_102 * MS);
        // RFC 8289, section 5.5: the count starts from the drops since dropping began last.
        assert_eq!(codel.last_count, before - 1);
    }

    #[test]
    fn the_packet_behind_the_first_drop_is_sent_whatever_it_waited() {
        let mut codel = Codel::new(5 * MS, 100 * MS, 1538);
        assert_eq!(codel.judge(head(0, 20 * MS)), Verdict::Send);
        assert_eq!(codel.judge(head(100 * MS, 20 * MS)), Verdict::Drop);
        assert_eq!(codel.judge(head(100 * MS, 0)), Verdict::Send);
        assert!(codel.dropping, "only the next packet ends it");
        assert_eq!(codel.judge(head(101 * MS, 0)), Verdict::Send);
        assert!(!codel.dropping);
    }

    #[test]
    fn packets_that_allow_it_are_marked_at_the_same_times() {
        let (mut dropping, mut marking) = (
            Codel::new(5 * MS, 100 * MS, 1538),
            Codel::new(5 * MS, 100 * MS, 1538),
        );
        let drops = drops_under_standing_queue(&mut dropping, 0, 1_000 * MS);
        let marks: Vec<u64> = (0..1_000 * MS)
            .step_by(100_000)
            .filter(|&now_ns| {
                let markable = Head {
                    markable: true,
                    ..head(now_ns, 20 * MS)
                };
                marking.judge(markable) == Verdict::Mark
            })
            .collect();
        assert_eq!(marks, drops);
    }
}
