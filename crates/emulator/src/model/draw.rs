//! Random numbers as a function of what they are for, not of when they are asked for.

use farline_spec::unit::Probability;

/// What a random number decides. Each purpose has numbers of its own, so that switching one feature on changes no other.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Loss = 1,
    BurstState = 2,
    BurstLoss = 3,
    Corrupt = 4,
    CorruptBit = 5,
    Duplicate = 6,
    Reorder = 7,
    Jitter = 8,
}

/// One purpose's random numbers of one pipe, by packet number: SplitMix64 (Steele, Lea and Flood 2014) read at any place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    key: u64,
}

/// SplitMix64's increment, 2^64 over the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Draws {
    pub(super) fn new(seed: u64, pipe: usize, purpose: Purpose) -> Self {
        let place = (pipe as u64) << 8 | purpose as u64;
        Self {
            key: scramble(scramble(seed.wrapping_add(GOLDEN)) ^ scramble(place.wrapping_mul(GOLDEN))),
        }
    }

    /// A uniform 64-bit number.
    pub(super) fn at(&self, number: u64) -> u64 {
        scramble(self.key.wrapping_add(number.wrapping_mul(GOLDEN)))
    }
}

/// SplitMix64's finaliser: every bit of the input reaches every bit of the output.
fn scramble(value: u64) -> u64 {
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// A probability as the share of all 64-bit numbers that hit; the largest value is certainty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(probability: Option<Probability>) -> Self {
        // Saturates at certainty: no probability below 1 comes closer to 2^64 than 2048.
        Self((probability.map_or(0.0, Probability::get) * 2f64.powi(64)) as u64)
    }

    pub(super) fn never(self) -> bool {
        self.0 == 0
    }

    fn hit_by(self, draw: u64) -> bool {
        draw < self.0 || self.0 == u64::MAX
    }
}

/// Something that happens to a packet with a probability.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lot {
    pub(super) chance: Chance,
    draws: Draws,
}

impl Lot {
    pub(super) fn new(probability: Option<Probability>, draws: Draws) -> Self {
        Self {
            chance: Chance::new(probability),
            draws,
        }
    }

    /// Whether it happens to packet `number`; a lot that never hits draws nothing.
    pub(super) fn hits(&self, number: u64) -> bool {
        !self.chance.never() && self.chance.hit_by(self.draws.at(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chance(probability: f64) -> Chance {
        Chance::new(Some(Probability::new(probability).unwrap()))
    }

    #[test]
    fn certainty_always_hits_and_nothing_never_does() {
        assert!(chance(1.0).hit_by(u64::MAX) && chance(1.0).hit_by(0));
        assert!(!chance(0.0).hit_by(0) && chance(0.0).never());
        assert!(chance(0.5).hit_by(u64::MAX / 2) && !chance(0.5).hit_by(u64::MAX / 2 + 1));
        assert!(!chance(1.0 - f64::EPSILON / 2.0).hit_by(u64::MAX));
    }

    #[test]
    fn seeds_pipes_and_purposes_have_numbers_of_their_own() {
        let first = |seed, pipe, purpose| Draws::new(seed, pipe, purpose).at(1);
        let numbers = [
            first(0, 0, Purpose::Loss),
            first(1, 0, Purpose::Loss),
            first(0, 1, Purpose::Loss),
            first(0, 0, Purpose::Jitter),
        ];
        for (place, number) in numbers.iter().enumerate() {
            assert!(!numbers[..place].contains(number));
        }
    }

    #[test]
    fn every_bit_is_set_half_of_the_time() {
        let draws = Draws::new(7, 3, Purpose::Loss);
        for bit in 0..64 {
            let set: u64 = (0..10_000).map(|number| draws.at(number) >> bit & 1).sum();
            // Five standard deviations of a fair coin.
            assert!(set.abs_diff(5_000) < 250, "bit {bit}: {set}");
        }
    }
}
