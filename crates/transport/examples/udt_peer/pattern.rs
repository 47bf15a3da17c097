//! What is sent, and how it is known again: words of xorshift64* and a 64-bit FNV-1a over words.
//!
//! Both are defined over 8-byte little-endian words, so that the C++ twin gives the same figures.

/// Bytes from a seed: words of xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators",
/// 2016), each from its lowest byte up.
pub struct Pattern {
    state: u64,
    word: u64,
    /// Bytes of `word` not given out yet.
    left: usize,
}

impl Pattern {
    pub fn new(seed: u64) -> Self {
        let state = if seed == 0 { 0x9e37_79b9_7f4a_7c15 } else { seed };
        Self {
            state,
            word: 0,
            left: 0,
        }
    }

    pub fn fill(&mut self, into: &mut [u8]) {
        let held = self.left.min(into.len());
        let (first, rest) = into.split_at_mut(held);
        self.give(first);
        let mut words = rest.chunks_exact_mut(8);
        for piece in &mut words {
            piece.copy_from_slice(&self.next().to_le_bytes());
        }
        let tail = words.into_remainder();
        if !tail.is_empty() {
            (self.word, self.left) = (self.next(), 8);
            self.give(tail);
        }
    }

    fn give(&mut self, into: &mut [u8]) {
        for byte in into {
            *byte = self.word.to_le_bytes()[8 - self.left];
            self.left -= 1;
        }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// FNV-1a with words instead of bytes; the last one is padded with zeros.
#[derive(Clone, Default)]
pub struct Hash {
    state: Option<u64>,
    word: [u8; 8],
    held: usize,
}

impl Hash {
    pub fn add(&mut self, bytes: &[u8]) {
        let missing = (8 - self.held) % 8;
        let (first, rest) = bytes.split_at(missing.min(bytes.len()));
        self.hold(first);
        let words = rest.chunks_exact(8);
        let tail = words.remainder();
        for word in words {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            self.mix(u64::from_le_bytes(bytes));
        }
        self.hold(tail);
    }

    pub fn value(&self) -> u64 {
        let mut end = self.clone();
        if end.held > 0 {
            end.mix(u64::from_le_bytes(end.word));
        }
        end.state.unwrap_or(BASIS)
    }

    fn hold(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.word[self.held] = byte;
            self.held += 1;
            if self.held == 8 {
                self.mix(u64::from_le_bytes(self.word));
                (self.word, self.held) = ([0; 8], 0);
            }
        }
    }

    fn mix(&mut self, word: u64) {
        let state = self.state.unwrap_or(BASIS);
        self.state = Some((state ^ word).wrapping_mul(0x0100_0000_01b3));
    }
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
