//! Sequence numbers: 31 bits that wrap, and indices that do not.

/// A sequence number as on the wire: 31 bits, 0 comes after 2^31 - 1.
///
/// It has no order: of two numbers either may be the later one. Compare indices ([`expand`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sequence(u32);

const BITS: u32 = 31;
const MASK: u32 = (1 << BITS) - 1;
/// Half of the circle: a forward distance from here on is one backwards.
const HALF: u32 = 1 << (BITS - 1);

impl Sequence {
    /// The lower 31 bits of `word`.
    #[inline]
    pub const fn new(word: u32) -> Self {
        Self(word & MASK)
    }

    /// The number, below 2^31.
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `packets` later.
    #[inline]
    pub const fn plus(self, packets: u64) -> Self {
        // The low 32 bits are enough: 2^31 divides 2^32.
        Self::new(self.0.wrapping_add(packets as u32))
    }

    /// How many steps forward from `earlier` to this one: 0 to 2^31 - 1.
    #[inline]
    pub const fn steps_from(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0) & MASK
    }

    /// Whether this one is `other` or lies less than half a circle after it.
    #[inline]
    pub const fn is_at_or_after(self, other: Self) -> bool {
        self.steps_from(other) < HALF
    }
}

/// The index of the packet with this number in a direction that began with `isn`: of all that are possible, the
/// one nearest to the index `near` (of two equally near ones, the smaller). `None` if that is before the first packet.
#[inline]
pub fn expand(isn: Sequence, sequence: Sequence, near: u64) -> Option<u64> {
    let steps = sequence.steps_from(isn.plus(near));
    if steps < HALF {
        near.checked_add(u64::from(steps))
    } else {
        near.checked_sub(u64::from(MASK - steps) + 1)
    }
}
