//! The end that calls a listener.

use super::step::{Reaction, Step};
use super::{CONCLUSION, FIRST_ERROR, Offer, REQUEST, Refusal, agree, introduce, objection, read};
use crate::udt::wire::{HANDSHAKE_BYTES, Handshake};

/// Of so many conclusions without an answer, one is the first request over again.
///
/// A listener does not take a cookie for ever, and libudt's takes none from before the turn of its minute. It
/// answers such a cookie with silence, so a caller that only repeats it would fail.
const ASK_AGAIN_EVERY: u32 = 4;

#[derive(Debug)]
pub(super) struct Caller {
    offer: Offer,
    peer_ip: [u32; 4],
    cookie: Option<u32>,
    /// Requests sent since the cookie came.
    sent: u32,
}

impl Caller {
    pub(super) fn new(offer: Offer, peer_ip: [u32; 4]) -> Self {
        Self {
            offer,
            peer_ip,
            cookie: None,
            sent: 0,
        }
    }

    pub(super) fn request(&mut self) -> [u8; HANDSHAKE_BYTES] {
        self.sent = self.sent.wrapping_add(1);
        let request = match self.cookie {
            Some(cookie) if self.sent % ASK_AGAIN_EVERY != 0 => Handshake {
                cookie,
                ..introduce(&self.offer, CONCLUSION, self.peer_ip)
            },
            _ => introduce(&self.offer, REQUEST, self.peer_ip),
        };
        request.marked().datagram(0)
    }

    pub(super) fn handle(&mut self, datagram: &[u8]) -> Reaction {
        let Some((destination, theirs)) = read(datagram) else {
            return Reaction::Ignore;
        };
        if destination != self.offer.socket {
            return Reaction::Ignore;
        }
        let is_of_ours = theirs.initial_sequence == self.offer.initial_sequence;
        match theirs.request {
            REQUEST if is_of_ours => self.challenge(theirs.cookie),
            CONCLUSION if theirs.socket == 0 => Reaction::Ignore,
            CONCLUSION if !is_of_ours => over(Step::Refused(Refusal::InitialSequence)),
            CONCLUSION => over(match objection(&self.offer, &theirs) {
                Some(refusal) => Step::Refused(refusal),
                None => Step::Done(agree(&self.offer, &theirs)),
            }),
            code if code >= FIRST_ERROR && is_of_ours => over(Step::Refused(Refusal::Rejected { code })),
            _ => Reaction::Ignore,
        }
    }

    /// The same challenge again is a duplicate; another one is newer and counts.
    fn challenge(&mut self, cookie: u32) -> Reaction {
        if self.cookie == Some(cookie) {
            return Reaction::Ignore;
        }
        self.cookie = Some(cookie);
        self.sent = 0;
        Reaction::SendNow
    }
}

fn over(step: Step) -> Reaction {
    Reaction::Over(step, None)
}
