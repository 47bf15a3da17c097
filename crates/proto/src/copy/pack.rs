//! Packs: many whole small files in one frame, so that a small file costs no call of its own.
//!
//! Each item, little-endian: file 8, bytes 4, flags 4 (bit 0: hashed), sum of the content 32, content. A file in a
//! pack was read whole and had not changed when it had been read.

use farline_spec::{Failure, FailureKind};

use super::sum::Sum;

/// Bytes before the content of an item.
pub const ITEM_HEADER_BYTES: usize = 48;

/// One file of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// Number of the file.
    pub file: u64,
    /// Sum of the content; `None` where nothing is hashed.
    pub hash: Option<Sum>,
    /// The content.
    pub content: &'a [u8],
}

/// Writes the header of an item of `bytes` bytes into the first [`ITEM_HEADER_BYTES`] of `place`.
///
/// # Panics
/// When `place` is shorter.
pub fn write_item_header(place: &mut [u8], file: u64, bytes: u32, hash: Option<Sum>) {
    place[..8].copy_from_slice(&file.to_le_bytes());
    place[8..12].copy_from_slice(&bytes.to_le_bytes());
    place[12..16].copy_from_slice(&u32::from(hash.is_some()).to_le_bytes());
    place[16..ITEM_HEADER_BYTES].copy_from_slice(&hash.map_or([0; 32], |hash| *hash.as_bytes()));
}

/// The items of a pack, one after the other.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    rest: &'a [u8],
}

/// The items of the pack in `payload`.
pub const fn items(payload: &[u8]) -> Items<'_> {
    Items { rest: payload }
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Item<'a>, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let item = take(self.rest);
        self.rest = item.as_ref().map_or(&[], |(_, rest)| rest);
        Some(item.map(|(item, _)| item))
    }
}

fn take(payload: &[u8]) -> Result<(Item<'_>, &[u8]), Failure> {
    let short = || Failure::new(FailureKind::Protocol, "a pack that ends within a file");
    let (header, rest) = payload
        .split_first_chunk::<ITEM_HEADER_BYTES>()
        .ok_or_else(short)?;
    let number = |from: usize, to: usize| {
        let mut eight = [0; 8];
        eight[..to - from].copy_from_slice(&header[from..to]);
        u64::from_le_bytes(eight)
    };
    let bytes = usize::try_from(number(8, 12)).map_err(|_| short())?;
    let (content, rest) = rest.split_at_checked(bytes).ok_or_else(short)?;
    let mut hash = [0; 32];
    hash.copy_from_slice(&header[16..]);
    let hashed = match number(12, 16) {
        0 => None,
        1 => Some(Sum::from_bytes(hash)),
        flags => {
            let line = format!("unknown pack flags {flags:#x}");
            return Err(Failure::new(FailureKind::Protocol, line));
        }
    };
    let item = Item {
        file: number(0, 8),
        hash: hashed,
        content,
    };
    Ok((item, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn files_come_out_as_they_went_in() {
        let mut payload = vec![0; 2 * ITEM_HEADER_BYTES + 3];
        let sum = Sum::from_bytes([9; 32]);
        write_item_header(&mut payload, 7, 3, Some(sum));
        payload[ITEM_HEADER_BYTES..ITEM_HEADER_BYTES + 3].copy_from_slice(b"abc");
        write_item_header(&mut payload[ITEM_HEADER_BYTES + 3..], 8, 0, None);
        let found: Vec<_> = items(&payload).collect::<Result<_, _>>().unwrap();
        let first = Item {
            file: 7,
            hash: Some(sum),
            content: b"abc",
        };
        let second = Item {
            file: 8,
            hash: None,
            content: b"",
        };
        assert_eq!(found, [first, second]);
        payload.pop();
        assert!(items(&payload).any(|item| item.is_err()));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic_or_go_on_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(items(&bytes).count() <= bytes.len());
        }
    }
}
