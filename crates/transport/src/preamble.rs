//! What opens a data stream: 64 bytes that name it and prove the right to open it.
//!
//! ```text
//!  0  magic "farline" and format version      8 bytes
//!  8  session                                16 bytes
//! 24  proof                                  32 bytes
//! 56  stream, big-endian                      2 bytes
//! 58  zero                                    6 bytes
//! ```

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

use farline_spec::Failure;

use crate::StreamKey;
use crate::failure::is_slice;

/// Length of a preamble.
pub(crate) const PREAMBLE_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"farline\x01";

/// The preamble of `key`.
pub(crate) fn encode(key: &StreamKey) -> [u8; PREAMBLE_BYTES] {
    let mut bytes = [0; PREAMBLE_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..24].copy_from_slice(&key.session);
    bytes[24..56].copy_from_slice(&key.proof);
    bytes[56..58].copy_from_slice(&key.stream.to_be_bytes());
    bytes
}

/// Whether `bytes` look like a preamble, whoever's.
pub(crate) fn is_preamble(bytes: &[u8]) -> bool {
    bytes.len() == PREAMBLE_BYTES && bytes.starts_with(&MAGIC)
}

/// Whether a connection that begins with `first`, 8 bytes or more, is a data stream. Those of TLS begin otherwise.
pub fn is_data_preamble(first: &[u8]) -> bool {
    first.starts_with(&MAGIC)
}

/// The session that a data stream which begins with `first` says it belongs to; `None` for fewer than 24 bytes, and for what
/// is no data stream. Nothing is proved by it.
pub fn session_of_preamble(first: &[u8]) -> Option<[u8; 16]> {
    let session = first.get(8..24).filter(|_| is_data_preamble(first))?;
    session.try_into().ok()
}

/// The number of the stream that a connection which begins with `first` says it is; `None` for fewer than 58 bytes, and for
/// what is no data stream. Nothing is proved by it.
pub fn stream_of_preamble(first: &[u8]) -> Option<u16> {
    let stream = first.get(56..58).filter(|_| is_data_preamble(first))?;
    Some(u16::from_be_bytes(stream.try_into().ok()?))
}

/// The one of `expected` that `bytes` prove, if any.
///
/// The proof is compared in a time that does not depend on where it is wrong.
pub(crate) fn identify<'a>(bytes: &[u8; PREAMBLE_BYTES], expected: &'a [StreamKey]) -> Option<&'a StreamKey> {
    if bytes[..8] != MAGIC || bytes[58..] != [0; 6] {
        return None;
    }
    let stream = u16::from_be_bytes([bytes[56], bytes[57]]);
    let named = |key: &&StreamKey| key.stream == stream && bytes[8..24] == key.session;
    expected
        .iter()
        .find(named)
        .filter(|key| is_same(&bytes[24..56], &key.proof))
}

/// The next hello of one of `expected` on a socket that does not block, and where it came from; what is none is passed over.
///
/// # Errors
/// The kernel's, but for an ICMP error of an answer to somebody who is gone.
pub(crate) fn next_hello<'a>(
    socket: &UdpSocket,
    local: SocketAddr,
    expected: &'a [StreamKey],
) -> Result<Option<(&'a StreamKey, SocketAddr)>, Failure> {
    let mut buffer = [0; 2 * PREAMBLE_BYTES];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if is_slice(&error) || error.kind() == ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(Failure::system(&format!("data port {local}"), &error)),
        };
        let hello: Option<&[u8; PREAMBLE_BYTES]> = buffer[..length].try_into().ok();
        if let Some(key) = hello.and_then(|hello| identify(hello, expected)) {
            return Ok(Some((key, from)));
        }
    }
}

fn is_same(given: &[u8], wanted: &[u8; 32]) -> bool {
    let differences = given
        .iter()
        .zip(wanted)
        .fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    given.len() == wanted.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(stream: u16) -> StreamKey {
        StreamKey {
            stream,
            session: [3; 16],
            proof: [stream as u8; 32],
        }
    }

    #[test]
    fn an_opener_is_known_by_its_preamble() {
        let expected = [key(0), key(1), key(258)];
        assert_eq!(identify(&encode(&key(258)), &expected), Some(&expected[2]));
        assert_eq!(identify(&encode(&key(2)), &expected), None);
        assert_eq!(identify(&encode(&key(1)), &[]), None);
    }

    #[test]
    fn a_port_for_everything_knows_whose_stream_it_is() {
        let bytes = encode(&key(1));
        assert!(is_data_preamble(&bytes[..8]) && !is_data_preamble(&bytes[..7]));
        assert!(!is_data_preamble(&[22, 3, 1, 2, 0, 1, 0, 1]), "a TLS greeting");
        assert_eq!(session_of_preamble(&bytes[..24]), Some([3; 16]));
        assert_eq!(session_of_preamble(&bytes[..23]), None);
        assert_eq!(session_of_preamble(&[0; 24]), None);
        assert_eq!(stream_of_preamble(&encode(&key(258))), Some(258));
        assert_eq!(stream_of_preamble(&bytes[..57]), None);
    }

    proptest! {
        #[test]
        fn any_changed_bit_is_refused(bit in 0usize..PREAMBLE_BYTES * 8) {
            let mut bytes = encode(&key(1));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(identify(&bytes, &[key(1)]).is_none());
        }

        #[test]
        fn noise_is_refused(bytes in proptest::array::uniform32(any::<u8>())) {
            let mut noise = [0; PREAMBLE_BYTES];
            noise[..32].copy_from_slice(&bytes);
            prop_assert!(identify(&noise, &[key(1)]).is_none());
        }
    }
}
