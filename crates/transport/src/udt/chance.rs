//! Numbers that nobody can guess: socket ids, first sequence numbers, tokens.

use std::io;

use farline_spec::Failure;
use ring::rand::{SecureRandom, SystemRandom};

/// The reference library takes ids for signed numbers and begins below this.
const LARGEST_ID: u32 = (1 << 30) - 1;

/// Bytes of the system's generator.
pub(super) fn bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Failure::system("random numbers", &io::ErrorKind::Other.into()))?;
    Ok(bytes)
}

/// Any 32 bits.
pub(super) fn word() -> Result<u32, Failure> {
    bytes().map(u32::from_ne_bytes)
}

/// A socket id, 1 to 2^30 - 1.
pub(super) fn socket_id() -> Result<u32, Failure> {
    word().map(|word| word % LARGEST_ID + 1)
}
