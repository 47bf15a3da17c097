//! The Internet checksum (RFC 1071) and its update (RFC 1624).

use std::net::IpAddr;

/// One's complement sum of `bytes` as 16-bit words, on top of `start`; an odd last byte is the high half of a word.
pub(super) fn sum(start: u32, bytes: &[u8]) -> u32 {
    let mut total = u64::from(start);
    let mut words = bytes.chunks_exact(4);
    for word in &mut words {
        total += u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    }
    let (rest, mut last) = (words.remainder(), [0; 4]);
    last[..rest.len()].copy_from_slice(rest);
    total += u64::from(u32::from_be_bytes(last));
    u32::from(fold_wide(total))
}

/// Carries added back in until 16 bits are left.
pub(super) fn fold(sum: u32) -> u16 {
    fold_wide(sum.into())
}

fn fold_wide(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// `partial`, a folded sum over which `old` was counted, with `new` counted instead.
pub(super) fn replace(partial: u16, old: u16, new: u16) -> u16 {
    fold(u32::from(partial) + u32::from(!old) + u32::from(new))
}

/// Sum over the pseudo-header of TCP, UDP and ICMPv6 (RFC 9293 section 3.1, RFC 8200 section 8.1).
pub(super) fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, bytes: u32) -> u32 {
    let start = u32::from(fold(bytes)) + u32::from(protocol);
    let add = |start, address| match address {
        IpAddr::V4(address) => sum(start, &address.octets()),
        IpAddr::V6(address) => sum(start, &address.octets()),
    };
    add(add(start, source), destination)
}

/// What goes into a checksum field: 0 is written as its other form, because UDP takes 0 for "none" (RFC 768).
pub(super) fn finish(sum: u32) -> u16 {
    match !fold(sum) {
        0 => 0xffff,
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        assert_eq!(
            fold(sum(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])),
            0xddf2
        );
    }

    #[test]
    fn an_odd_byte_is_the_high_half() {
        assert_eq!(fold(sum(0, &[1, 2, 3])), 0x0402);
        assert_eq!(fold(sum(0, &[1])), 0x0100);
        assert_eq!(fold(sum(7, &[])), 7);
    }

    #[test]
    fn carries_are_never_lost() {
        assert_eq!(fold(sum(0, &[0xff; 70_000])), 0xffff);
        assert_eq!(fold(sum(u32::MAX, &[0xff; 6])), 0xffff);
    }

    #[test]
    fn replacing_a_word_is_summing_again() {
        let (before, after) = ([0x12, 0x34, 0xab, 0xcd], [0x12, 0x34, 0x00, 0x07]);
        let updated = replace(fold(sum(0, &before)), 0xabcd, 0x0007);
        assert_eq!(updated, fold(sum(0, &after)));
    }
}
