//! Handshakes that come when the connection is open.

use super::{ANSWER, Agreed, CONCLUSION, FIRST_ERROR, Offer, REQUEST, introduce, read};
use crate::udt::wire::{HANDSHAKE_BYTES, Handshake};

/// What an open connection says to a handshake: the peer has not heard that it is open. `None` if `datagram` is
/// none, comes from another socket than the peer's, or is itself an answer, so that two ends never answer each other
/// without end.
///
/// Of the handshake only what identifies the peer is looked at: version, kind and cookie may be zeros, as libudt
/// leaves them.
pub fn late_answer(agreed: &Agreed, offer: &Offer, datagram: &[u8]) -> Option<[u8; HANDSHAKE_BYTES]> {
    let (destination, theirs) = read(datagram)?;
    if theirs.socket != agreed.peer_socket || (destination != agreed.socket && destination != 0) {
        return None;
    }
    let request = if agreed.is_rendezvous {
        (theirs.request != ANSWER && theirs.request < FIRST_ERROR).then_some(ANSWER)
    } else {
        is_call(agreed, destination, &theirs).then_some(CONCLUSION)
    }?;
    let answer = Handshake {
        initial_sequence: agreed.send_isn,
        mss_bytes: agreed.mss_bytes,
        cookie: theirs.cookie,
        ..introduce(offer, request, [0; 4])
    };
    let answer = if agreed.is_marked { answer.marked() } else { answer };
    Some(answer.datagram(agreed.peer_socket))
}

/// Callers' requests have destination 0, and libudt asks some connections by their id; a listener's answers, which
/// nobody may answer, have the caller's id and are conclusions.
fn is_call(agreed: &Agreed, destination: u32, theirs: &Handshake) -> bool {
    let is_request = theirs.request == REQUEST;
    let is_repeat = theirs.request == CONCLUSION && destination == 0;
    (is_request || is_repeat) && theirs.initial_sequence == agreed.receive_isn
}
