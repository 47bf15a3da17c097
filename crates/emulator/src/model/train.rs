//! What travels: runs of segments that stay together as long as they share one fate.

/// A run of segments of one super-packet, or a single packet. Sizes are those of IP packets, without framing.
///
/// A super-packet is cut into segments of `segment_bytes` each, headers included; the last may be shorter. `first` and
/// `segments` select the run within the payload, so parts share the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Train<P> {
    /// What the segments are cut from.
    pub payload: P,
    /// Number of the run's first segment within the payload, from 0.
    pub first: u16,
    /// Number of segments in the run, at least 1.
    pub segments: u16,
    /// Bytes of every segment but the last.
    pub segment_bytes: u32,
    /// Bytes of the last segment.
    pub last_bytes: u32,
    /// Whether the packet may be marked instead of dropped (ECT or CE in its header).
    pub ecn_capable: bool,
    /// Whether a queue marked it (CE is to be set).
    pub marked: bool,
    /// The bit to turn over; then `segments` is 1.
    pub corrupt: Option<Corruption>,
}

/// One bit of a packet's transport payload is turned over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Corruption {
    /// Uniform random number that says which bit.
    pub entropy: u64,
    /// Whether checksums are to be made right again.
    pub hidden: bool,
}

impl<P> Train<P> {
    /// A single packet of `bytes`, clean and without ECN.
    pub fn single(payload: P, bytes: u32) -> Self {
        Self::uniform(payload, 1, bytes)
    }

    /// `segments` packets of `segment_bytes` each, clean and without ECN.
    pub fn uniform(payload: P, segments: u16, segment_bytes: u32) -> Self {
        Self {
            payload,
            first: 0,
            segments,
            segment_bytes,
            last_bytes: segment_bytes,
            ecn_capable: false,
            marked: false,
            corrupt: None,
        }
    }

    /// Bytes of all segments together.
    pub fn bytes(&self) -> u64 {
        (u64::from(self.segments) - 1) * u64::from(self.segment_bytes) + u64::from(self.last_bytes)
    }

    /// Bytes on the wire of all segments together, with `framing_bytes` around each.
    pub fn wire_bytes(&self, framing_bytes: u64) -> u64 {
        self.bytes() + u64::from(self.segments) * framing_bytes
    }

    /// Bytes of the segment at `place`, counted from the run's first.
    pub fn bytes_at(&self, place: u16) -> u32 {
        if place + 1 == self.segments {
            self.last_bytes
        } else {
            self.segment_bytes
        }
    }
}

impl<P: Clone> Train<P> {
    /// Takes the first `count` segments off; `count` is at least 1 and less than `segments`.
    pub fn take_front(&mut self, count: u16) -> Self {
        debug_assert!(count >= 1 && count < self.segments, "both parts have segments");
        let front = Self {
            segments: count,
            last_bytes: self.segment_bytes,
            ..self.clone()
        };
        self.first += count;
        self.segments -= count;
        front
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_the_run_and_only_the_final_part_is_short() {
        let mut rest = Train {
            last_bytes: 700,
            ..Train::uniform((), 44, 1500)
        };
        let whole = rest.bytes();
        let front = rest.take_front(10);
        assert_eq!((front.first, front.segments, front.last_bytes), (0, 10, 1500));
        assert_eq!((rest.first, rest.segments, rest.last_bytes), (10, 34, 700));
        assert_eq!(front.bytes() + rest.bytes(), whole);
        assert_eq!((rest.bytes_at(0), rest.bytes_at(33)), (1500, 700));
        assert_eq!(front.wire_bytes(38), 10 * 1538);
    }
}
