//! How a session ends before its time.

use super::{ReceivingEnd, Write, grains_of, partial_name};
use crate::Random;

impl ReceivingEnd<'_> {
    /// The process ends in the middle: what it was writing may be there, or a part of it.
    pub fn die(mut self, random: &mut Random) {
        for write in std::mem::take(&mut self.writes) {
            if let Write::Chunk(chunk, tags) = write
                && let Some((_, file)) = self.partial_of(chunk.file)
            {
                for (grain, tag) in grains_of(chunk.offset, chunk.bytes).zip(tags) {
                    match random.bits() % 3 {
                        0 => {}
                        1 => drop(self.disk.write(file, grain, tag)),
                        _ => self.disk.tear(file, grain),
                    }
                }
            }
        }
    }

    /// The session broke off: what is proved is kept and written down, all else is given back.
    pub fn break_off(mut self, random: &mut Random) {
        for number in self.machine.all() {
            let Some(id) = self.entries[&number].partial else {
                continue;
            };
            let (parts, gaps) = self.machine.proved_and_gaps(number);
            let Some((file, _, _)) = self.disk.look(&partial_name(id)) else {
                continue;
            };
            if parts == 0 && !self.notes.has(id) {
                self.disk.unlink(&partial_name(id));
                continue;
            }
            for (offset, bytes) in gaps {
                grains_of(offset, bytes).for_each(|grain| self.disk.punch(file, grain));
            }
        }
        self.ended = None;
        self.step_flush(random);
        while self.flush.is_some() {
            self.step_flush(random);
        }
    }
}
