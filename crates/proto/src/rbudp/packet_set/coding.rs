//! A set as bytes: runs or a bitmap, whichever is shorter.
//!
//! ```text
//!  runs    0 | for each run: varint of the gap before it, varint of its length less 1
//!  bitmap  1 | varint of the first number, at 8 n | bits, the lowest of a byte first, to the last that is set
//! ```
//!
//! Varints are LEB128 (7 bits a byte, the lowest first). The gap of the first run is its first number, that of any other
//! is what lies between it and the one before, less 1.

use super::PacketSet;

const RUNS: u8 = 0;
const BITMAP: u8 = 1;

impl PacketSet {
    /// Most bytes that the set takes if its numbers are below `max_packets`.
    pub const fn most_encoded_bytes(max_packets: u32) -> usize {
        // The bitmap is never longer, and the shorter of the two is written.
        1 + varint_bytes(max_packets) + max_packets.div_ceil(8) as usize
    }

    /// Appends the set: as runs, or as a bitmap if that is shorter.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let bitmap = 1 + varint_bytes(self.base()) + self.bitmap_bytes();
        let pairs = 1 + self
            .pairs()
            .map(|(gap, more)| varint_bytes(gap) + varint_bytes(more))
            .sum::<usize>();
        if pairs <= bitmap {
            out.push(RUNS);
            for (gap, more) in self.pairs() {
                write_varint(gap, out);
                write_varint(more, out);
            }
            return;
        }
        out.push(BITMAP);
        write_varint(self.base(), out);
        let start = out.len();
        out.resize(start + self.bitmap_bytes(), 0);
        for number in self.iter() {
            let place = number - self.base();
            out[start + (place / 8) as usize] |= 1 << (place % 8);
        }
    }

    /// The set that these bytes are; `None` if they are none, go on after its end, or name a packet from `max_packets` on.
    pub fn decode(bytes: &[u8], max_packets: u32) -> Option<Self> {
        let (&kind, rest) = bytes.split_first()?;
        let set = match kind {
            RUNS => read_runs(rest, max_packets),
            BITMAP => read_bitmap(rest, max_packets),
            _ => None,
        }?;
        (set.end() <= max_packets).then_some(set)
    }

    /// Where the bitmap begins: at the byte of the first number.
    fn base(&self) -> u32 {
        self.runs.first().map_or(0, |&(first, _)| first / 8 * 8)
    }

    fn bitmap_bytes(&self) -> usize {
        (self.end() - self.base()).div_ceil(8) as usize
    }

    /// The gap before each run, and its length less 1.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        let ends = self.runs.iter().map(|&(first, count)| Some(first + count));
        let after = std::iter::once(None).chain(ends);
        after.zip(&self.runs).map(|(after, &(first, count))| {
            let gap = after.map_or(first, |end| first - end - 1);
            (gap, count - 1)
        })
    }
}

fn read_runs(mut bytes: &[u8], max_packets: u32) -> Option<PacketSet> {
    let mut set = PacketSet::default();
    let mut after = 0u32;
    while !bytes.is_empty() {
        let gap = read_varint(&mut bytes)?;
        let count = read_varint(&mut bytes)?.checked_add(1)?;
        let first = after.checked_add(gap)?;
        set.push(first, count)?;
        if set.end() > max_packets {
            return None;
        }
        after = set.end().checked_add(1)?;
    }
    Some(set)
}

fn read_bitmap(mut bytes: &[u8], max_packets: u32) -> Option<PacketSet> {
    let base = read_varint(&mut bytes)?;
    let bits = u32::try_from(bytes.len()).ok()?.checked_mul(8)?;
    if u64::from(base) + u64::from(bits) > u64::from(max_packets) + 7 {
        return None;
    }
    let mut set = PacketSet::default();
    let (mut first, mut count) = (base, 0u32);
    for place in 0..bits {
        if bytes[(place / 8) as usize] >> (place % 8) & 1 != 0 {
            count += 1;
            continue;
        }
        if count > 0 {
            set.push(first, count)?;
        }
        (first, count) = (base + place + 1, 0);
    }
    if count > 0 {
        set.push(first, count)?;
    }
    Some(set)
}

const fn varint_bytes(value: u32) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        0x1000_0000.. => 5,
    }
}

fn write_varint(mut value: u32, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut value = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(value).ok();
        }
    }
    None
}
