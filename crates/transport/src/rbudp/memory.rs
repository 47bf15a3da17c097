//! Memory for blasts under way: one slot each, touched beforehand as far as the path will need them.

/// Size of a page.
const PAGE_BYTES: usize = 4096;
/// Most that is touched before a run: about a second's work on a virtual machine.
const TOUCHED_BYTES: usize = 2 << 30;

/// Slots of one size. The one that was given back last is taken first: it is the one most likely to be in a cache.
#[derive(Debug)]
pub(super) struct Slots {
    slot_bytes: usize,
    /// Those in use, by blast: few, the newest last.
    taken: Vec<(u32, Box<[u8]>)>,
    free: Vec<Box<[u8]>>,
}

impl Slots {
    /// Slots of `slot_bytes`, `touched` of which exist already. Others are made when a blast first needs them.
    pub(super) fn new(slot_bytes: usize, touched: usize) -> Self {
        let affordable = (TOUCHED_BYTES / slot_bytes.max(1)).max(1);
        let touch = || {
            let mut slot = fresh(slot_bytes);
            // A page that is only promised costs microseconds when the first packet of it comes.
            slot.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 0xa5);
            slot
        };
        Self {
            slot_bytes,
            taken: Vec::new(),
            free: std::iter::repeat_with(touch)
                .take(touched.min(affordable))
                .collect(),
        }
    }

    /// The slot of `blast`, which takes one if it has none.
    pub(super) fn of(&mut self, blast: u32) -> &mut [u8] {
        let index = self.taken.iter().rposition(|&(owner, _)| owner == blast);
        let index = index.unwrap_or_else(|| {
            let slot = self.free.pop().unwrap_or_else(|| fresh(self.slot_bytes));
            self.taken.push((blast, slot));
            self.taken.len() - 1
        });
        &mut self.taken[index].1
    }

    /// The first `bytes` of the slot of `blast`; nothing if it has none.
    pub(super) fn peek(&self, blast: u32, bytes: usize) -> &[u8] {
        let slot = self.taken.iter().rfind(|&&(owner, _)| owner == blast);
        slot.and_then(|(_, slot)| slot.get(..bytes)).unwrap_or_default()
    }

    /// Takes the slot of `blast` back.
    pub(super) fn release(&mut self, blast: u32) {
        if let Some(index) = self.taken.iter().position(|&(owner, _)| owner == blast) {
            self.free.push(self.taken.remove(index).1);
        }
    }
}

fn fresh(bytes: usize) -> Box<[u8]> {
    vec![0; bytes].into_boxed_slice()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blast_keeps_its_slot_until_it_gives_it_back() {
        let mut slots = Slots::new(10, 1);
        slots.of(0)[0] = 1;
        slots.of(3)[9] = 7;
        assert_eq!(slots.of(0)[0], 1);
        assert_eq!(slots.peek(3, 10)[9], 7);
        assert!(slots.peek(3, 11).is_empty() && slots.peek(1, 1).is_empty());
        slots.release(3);
        assert!(slots.peek(3, 1).is_empty());
        assert_eq!(
            slots.of(4)[9],
            7,
            "the slot that was used last is used again first"
        );
    }
}
