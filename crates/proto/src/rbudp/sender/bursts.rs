//! Which packets go now.

use super::outgoing::Outgoing;
use super::{Burst, Sender, SenderOptions};

impl Sender {
    /// Fills `burst` with up to `max` packets that should go now, gaps of the oldest blast first, then new packets; false
    /// if there is nothing to send. They count as sent.
    pub fn next_burst(&mut self, now_ns: u64, max: usize, burst: &mut Burst) -> bool {
        burst.packets.clear();
        let options = &self.options;
        let under_way = || {
            self.blasts
                .iter()
                .enumerate()
                .filter(|(_, blast)| blast.whole_ns.is_none())
        };
        let gaps = under_way().find(|(_, blast)| !blast.repeats.is_empty());
        let is_ready = |(_, blast): &(usize, &Outgoing)| blast.upto < blast.ready_packets(options);
        let Some((index, _)) = gaps.or_else(|| under_way().find(is_ready)) else {
            return false;
        };
        let is_repeat = gaps.is_some();
        let max = if is_repeat {
            max
        } else {
            max.min(self.open_packets())
        };
        if max == 0 {
            return false;
        }
        burst.is_repeat = is_repeat;
        self.blasts[index].fill(now_ns, max, burst, &self.options);
        self.statistics.sent_packets += burst.packets.len() as u64;
        if burst.is_repeat {
            self.statistics.repeated_packets += burst.packets.len() as u64;
        }
        true
    }

    /// New packets that the window lets go now.
    pub(super) fn open_packets(&self) -> usize {
        let Some(window) = self.options.window_packets() else {
            return usize::MAX;
        };
        let unacknowledged: u64 = self.blasts.iter().map(Outgoing::unacknowledged_packets).sum();
        usize::try_from(window.saturating_sub(unacknowledged)).unwrap_or(usize::MAX)
    }

    /// Whether packets that were asked for again wait to be sent.
    pub fn has_gaps(&self) -> bool {
        self.blasts
            .iter()
            .any(|blast| blast.whole_ns.is_none() && !blast.repeats.is_empty())
    }

    /// Whether a blast to which nothing more is given has packets that were never sent: there is no use in waiting for
    /// more of them.
    pub fn is_blast_full(&self) -> bool {
        let unsent = |blast: &Outgoing| blast.upto < blast.ready_packets(&self.options);
        self.blasts.iter().any(|blast| blast.is_closed && unsent(blast))
    }

    /// Puts the packets of the latest burst from place `from` on back: the kernel did not take them. Before any other call.
    pub fn not_sent(&mut self, burst: &Burst, from: usize) {
        let back = burst.packets.get(from..).unwrap_or_default();
        let Some(blast) = self.blasts.iter_mut().find(|blast| blast.number == burst.blast) else {
            return;
        };
        let Some(&first) = back.first() else {
            return;
        };
        let count = back.len() as u64;
        blast.unstated_packets -= count;
        blast.sent_packets -= count;
        self.statistics.sent_packets -= count;
        if burst.is_repeat {
            blast.repeats.put_back(back);
            self.statistics.repeated_packets -= count;
        } else {
            blast.upto = first;
            blast.started_ns = blast.started_ns.filter(|_| first > 0);
        }
    }

    /// Adds the hashes of first transmissions (not of repetitions) that went to the blast's sum, modulo 2^64; before the
    /// next call of `next_burst` or `poll_mark`.
    pub fn add_hashes(&mut self, blast: u32, sum: u64) {
        if let Some(blast) = self.blasts.iter_mut().find(|outgoing| outgoing.number == blast) {
            blast.sum = blast.sum.wrapping_add(sum);
        }
    }
}

impl Outgoing {
    /// Fills `burst` with repetitions or first transmissions; there is at least one.
    fn fill(&mut self, now_ns: u64, max: usize, burst: &mut Burst, options: &SenderOptions) {
        if burst.is_repeat {
            self.repeats.take(max, &mut burst.packets);
        } else {
            let most = u32::try_from(max).unwrap_or(u32::MAX);
            let to = self.ready_packets(options).min(self.upto.saturating_add(most));
            burst.packets.extend(self.upto..to);
            self.upto = to;
        }
        let last = burst.packets.last().copied().unwrap_or(0);
        burst.blast = self.number;
        burst.offset = self.offset;
        burst.packet_bytes = options.packet_bytes;
        burst.last_bytes = self.packet_bytes(last, options);
        if self.unstated_packets == 0 {
            self.unstated_ns = now_ns;
        }
        self.sent_packets += burst.packets.len() as u64;
        self.unstated_packets += burst.packets.len() as u64;
        self.started_ns.get_or_insert(now_ns);
    }
}
