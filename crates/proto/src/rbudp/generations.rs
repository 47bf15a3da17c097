//! How often each packet of a blast was asked for again.

use super::PacketSet;

/// Counts for one blast; no memory while nothing is lost.
#[derive(Debug, Default)]
pub(super) struct Generations {
    counts: Vec<u16>,
    most: u16,
    lost_packets: u64,
}

impl Generations {
    /// A report named these, out of `limit` packets. Gives how many had been sent once only.
    pub(super) fn note(&mut self, packets: &PacketSet, limit: u32) -> u64 {
        if self.counts.is_empty() && !packets.is_empty() {
            self.counts.resize(limit as usize, 0);
        }
        let before = self.lost_packets;
        for &(first, count) in packets.runs() {
            for counted in &mut self.counts[first as usize..(first + count) as usize] {
                self.lost_packets += u64::from(*counted == 0);
                *counted = counted.saturating_add(1);
                self.most = self.most.max(*counted);
            }
        }
        self.lost_packets - before
    }

    /// Packets that were missing after they had been sent once.
    pub(super) fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// One, and one more for each time that the packet asked for most often was asked for: where each pass is answered by
    /// one report, the number of passes.
    pub(super) fn passes(&self) -> u32 {
        1 + u32::from(self.most)
    }
}
