//! Where a handshake stands after a datagram.

use super::{Agreed, Refusal};
use crate::udt::wire::HANDSHAKE_BYTES;

/// What a datagram came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Nothing is decided: go on sending and receiving.
    Wait,
    /// There is a connection.
    Done(Agreed),
    /// There will be none.
    Refused(Refusal),
}

/// What a role makes of a datagram.
pub(super) enum Reaction {
    /// Nothing: foreign, or known already.
    Ignore,
    /// The request has changed, or the peer lacks it: it goes out at once.
    SendNow,
    /// It is over, perhaps with a last word to the peer.
    Over(Step, Option<[u8; HANDSHAKE_BYTES]>),
}
