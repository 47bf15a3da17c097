//! Which packets come next: for a driver that lets the kernel put them in place.

use super::Receiver;
use super::incoming::Incoming;

impl Receiver {
    /// Puts into `out` the packets that are likely to come next: the next `most` missing ones after the last one noted,
    /// ascending, of one blast and of full size. Gives the blast. `out` is empty if nothing is expected.
    ///
    /// A sender goes through a blast upwards, then on with the next; now and then it goes through gaps, upwards too, and
    /// comes back to where it was. Gaps of the oldest blast are all that is left when no new packets can come.
    pub fn expected(&self, most: usize, out: &mut Vec<u32>) -> u32 {
        out.clear();
        let (last, packet) = self.last;
        let newest = self.window().filter(|&blast| self.slot(blast).is_some()).last();
        let after_newest = newest.map_or(self.base, |newest| newest.saturating_add(1));
        let seen = newest
            .and_then(|newest| self.slot(newest))
            .map_or(0, |incoming| incoming.seen);
        let places = [
            (last, packet.wrapping_add(1)),
            (after_newest.saturating_sub(1), seen),
            (after_newest, 0),
        ];
        let gaps = self.window().map(|blast| (blast, 0));
        for (blast, from) in places.into_iter().chain(gaps) {
            if self.is_in_window(blast) {
                self.missing_from(blast, from, most, out);
            }
            if !out.is_empty() {
                return blast;
            }
        }
        last
    }

    /// Packets of full size that have not come, from `from` on.
    fn missing_from(&self, blast: u32, from: u32, most: usize, out: &mut Vec<u32>) {
        let Some(incoming) = self.slot(blast) else {
            let full = Incoming::new(0).full_packets(&self.options);
            out.extend((from..full).take(most));
            return;
        };
        let full = incoming.full_packets(&self.options);
        let runs = incoming.received.absent_runs(from, full);
        out.extend(runs.flat_map(|(first, count)| first..first + count).take(most));
    }
}
