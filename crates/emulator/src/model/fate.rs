//! What happens to a packet on the wire. A packet's number is how many packets have left its pipe's queue, itself included.

use farline_spec::{BurstLoss, PipeChange, PipeSpec};

use super::draw::{Draws, Lot, Purpose};
use super::train::Corruption;

/// What happens to one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fate {
    pub(super) lost: bool,
    pub(super) corrupt: Option<Corruption>,
    pub(super) twice: bool,
    pub(super) late: bool,
}

/// The fates of one pipe's packets, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Fates {
    number: u64,
    /// Sorted, without repeats.
    chosen: Vec<u64>,
    every: Option<u64>,
    random: Lot,
    burst: Option<Burst>,
    corrupt: Lot,
    corrupt_bit: Draws,
    corrupt_hidden: bool,
    duplicate: Lot,
    reorder: Lot,
    /// Nothing can happen to any packet.
    idle: bool,
}

impl Fates {
    pub(super) fn new(seed: u64, pipe: usize, spec: &PipeSpec) -> Self {
        let draws = |purpose| Draws::new(seed, pipe, purpose);
        let mut chosen = spec.loss.packets.clone();
        chosen.sort_unstable();
        chosen.dedup();
        let mut fates = Self {
            number: 0,
            chosen,
            every: spec.loss.every.map(|every| every.get()),
            random: Lot::new(spec.loss.random, draws(Purpose::Loss)),
            burst: spec.loss.burst.map(|burst| Burst::new(burst, draws)),
            corrupt: Lot::new(spec.corrupt, draws(Purpose::Corrupt)),
            corrupt_bit: draws(Purpose::CorruptBit),
            corrupt_hidden: spec.corrupt_hidden,
            duplicate: Lot::new(spec.duplicate, draws(Purpose::Duplicate)),
            reorder: Lot::new(spec.reorder, draws(Purpose::Reorder)),
            idle: false,
        };
        fates.rest_or_work();
        fates
    }

    pub(super) fn change(&mut self, change: &PipeChange) {
        use super::draw::Chance;
        let wanted = [change.loss, change.corrupt, change.duplicate, change.reorder];
        let lots = [
            &mut self.random,
            &mut self.corrupt,
            &mut self.duplicate,
            &mut self.reorder,
        ];
        for (lot, probability) in lots.into_iter().zip(wanted) {
            if probability.is_some() {
                lot.chance = Chance::new(probability);
            }
        }
        self.rest_or_work();
    }

    fn rest_or_work(&mut self) {
        let lots = [self.random, self.corrupt, self.duplicate, self.reorder];
        self.idle = self.chosen.is_empty()
            && self.every.is_none()
            && self.burst.is_none()
            && lots.iter().all(|lot| lot.chance.never());
    }

    /// Whether nothing can happen to any packet.
    pub(super) fn is_idle(&self) -> bool {
        self.idle
    }

    /// Number of the last packet that left the queue.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Counts packets to which nothing happens.
    pub(super) fn skip(&mut self, packets: u16) {
        self.number += u64::from(packets);
    }

    /// The fate of the next packet.
    pub(super) fn next(&mut self) -> Fate {
        self.number += 1;
        let number = self.number;
        let chosen = self.take_chosen(number);
        // The chain takes its step whatever else happens to the packet.
        let burst = self.burst.as_mut().is_some_and(|burst| burst.loses(number));
        if burst || chosen || self.random.hits(number) {
            return Fate {
                lost: true,
                ..Fate::default()
            };
        }
        Fate {
            lost: false,
            corrupt: self.corrupt.hits(number).then(|| Corruption {
                entropy: self.corrupt_bit.at(number),
                hidden: self.corrupt_hidden,
            }),
            twice: self.duplicate.hits(number),
            late: self.reorder.hits(number),
        }
    }

    /// Whether a packet is lost by its number. Behind the last number there is nothing to look for any more.
    fn take_chosen(&mut self, number: u64) -> bool {
        let every = self.every.is_some_and(|every| number % every == 0);
        let chosen = self.chosen.binary_search(&number).is_ok();
        if self.chosen.last().is_some_and(|last| *last <= number) {
            self.chosen = Vec::new();
            self.rest_or_work();
        }
        every || chosen
    }
}

/// A chain of two states; it starts in the good one and takes a step before each packet.
#[derive(Debug)]
struct Burst {
    bad: bool,
    enter: Lot,
    leave: Lot,
    loss_good: Lot,
    loss_bad: Lot,
}

impl Burst {
    fn new(spec: BurstLoss, draws: impl Fn(Purpose) -> Draws) -> Self {
        let (state, loss) = (draws(Purpose::BurstState), draws(Purpose::BurstLoss));
        Self {
            bad: false,
            enter: Lot::new(Some(spec.enter), state),
            leave: Lot::new(Some(spec.leave), state),
            loss_good: Lot::new(Some(spec.loss_good), loss),
            loss_bad: Lot::new(Some(spec.loss_bad), loss),
        }
    }

    fn loses(&mut self, number: u64) -> bool {
        let turn = if self.bad { &self.leave } else { &self.enter };
        self.bad ^= turn.hits(number);
        let loss = if self.bad { &self.loss_bad } else { &self.loss_good };
        loss.hits(number)
    }
}
