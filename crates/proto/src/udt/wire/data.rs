//! The header of data packets.

use super::{CONTROL_BIT, HEADER_BYTES, Sequence, word};

/// Where in its message a packet stands (the bits FF).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Neither the first nor the last one.
    Middle = 0,
    /// The last of several.
    Last = 1,
    /// The first of several.
    First = 2,
    /// The whole message.
    Only = 3,
}

impl Boundary {
    /// Whether a message begins with this packet.
    pub const fn is_first(self) -> bool {
        matches!(self, Self::First | Self::Only)
    }

    /// Whether a message ends with this packet.
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::Only)
    }
}

/// The second word of a data packet: what message it is of, and where in it. Receivers of streams ignore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MessageWord(pub u32);

const IN_ORDER_BIT: u32 = 1 << 29;
const NUMBER_MASK: u32 = IN_ORDER_BIT - 1;

impl MessageWord {
    /// Of the number, the lower 29 bits are taken. libudt counts from 1 and goes from 2^29 - 1 back to 1.
    #[inline]
    pub const fn new(boundary: Boundary, in_order: bool, number: u32) -> Self {
        Self((boundary as u32) << 30 | (in_order as u32) << 29 | (number & NUMBER_MASK))
    }

    /// Where in its message the packet stands.
    #[inline]
    pub const fn boundary(self) -> Boundary {
        match self.0 >> 30 {
            0 => Boundary::Middle,
            1 => Boundary::Last,
            2 => Boundary::First,
            _ => Boundary::Only,
        }
    }

    /// Whether the message may be delivered only after all messages before it.
    #[inline]
    pub const fn in_order(self) -> bool {
        self.0 & IN_ORDER_BIT != 0
    }

    /// The message's number, 29 bits.
    #[inline]
    pub const fn number(self) -> u32 {
        self.0 & NUMBER_MASK
    }
}

/// The header of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataHeader {
    /// Its number; one more with each packet.
    pub sequence: Sequence,
    /// Message, and place in it.
    pub message: MessageWord,
    /// Microseconds since the sender's socket was opened; wraps. No receiver uses it.
    pub timestamp_us: u32,
    /// Id of the receiving socket.
    pub destination: u32,
}

impl DataHeader {
    /// `None` for control packets and for what is shorter than a header.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let first = word(datagram, 0)?;
        if first & CONTROL_BIT != 0 {
            return None;
        }
        Some(Self {
            sequence: Sequence::new(first),
            message: MessageWord(word(datagram, 1)?),
            timestamp_us: word(datagram, 2)?,
            destination: word(datagram, 3)?,
        })
    }

    /// Writes it to the front of `slot`.
    ///
    /// # Panics
    ///
    /// If `slot` is shorter than a header.
    #[inline]
    pub fn write(self, slot: &mut [u8]) {
        let slot = &mut slot[..HEADER_BYTES];
        slot[..4].copy_from_slice(&self.sequence.get().to_be_bytes());
        slot[4..8].copy_from_slice(&self.message.0.to_be_bytes());
        slot[8..12].copy_from_slice(&self.timestamp_us.to_be_bytes());
        slot[12..].copy_from_slice(&self.destination.to_be_bytes());
    }
}

/// Writes only the timestamp of a packet that is there already: all that a repetition changes.
///
/// # Panics
///
/// If `slot` is shorter than a header.
#[inline]
pub fn stamp(slot: &mut [u8], timestamp_us: u32) {
    slot[8..12].copy_from_slice(&timestamp_us.to_be_bytes());
}
