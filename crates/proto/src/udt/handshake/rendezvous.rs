//! One end of a rendezvous.

use super::step::{Reaction, Step};
use super::{
    ANSWER, Agreed, CONCLUSION, FIRST_ERROR, Offer, RENDEZVOUS, Refusal, agree, introduce, objection, read,
    refuse,
};
use crate::udt::wire::{
    Control, DataHeader, HANDSHAKE_BYTES, Handshake, destination_of, is_control, read_control,
};

#[derive(Debug)]
pub(super) struct Rendezvous {
    offer: Offer,
    peer_ip: [u32; 4],
    /// What the peer said last, once it has said something.
    peer: Option<Handshake>,
}

impl Rendezvous {
    pub(super) fn new(offer: Offer, peer_ip: [u32; 4]) -> Self {
        Self {
            offer,
            peer_ip,
            peer: None,
        }
    }

    pub(super) fn request(&self) -> [u8; HANDSHAKE_BYTES] {
        match &self.peer {
            None => introduce(&self.offer, RENDEZVOUS, self.peer_ip)
                .marked()
                .datagram(0),
            Some(peer) => self.say(CONCLUSION, peer),
        }
    }

    fn say(&self, request: i32, peer: &Handshake) -> [u8; HANDSHAKE_BYTES] {
        introduce(&self.offer, request, self.peer_ip)
            .marked()
            .datagram(peer.socket)
    }

    pub(super) fn handle(&mut self, datagram: &[u8]) -> Reaction {
        let is_ours = destination_of(datagram) == Some(self.offer.socket);
        let Some((destination, theirs)) = read(datagram) else {
            return match &self.peer {
                Some(peer) if is_ours && is_of_a_connection(datagram) => self.connect(peer, None),
                _ => Reaction::Ignore,
            };
        };
        if theirs.socket == 0 {
            return Reaction::Ignore;
        }
        match theirs.request {
            RENDEZVOUS if destination == 0 || is_ours => self.meet(theirs),
            // Only a peer that has heard from us knows our socket id: there is nothing to wait for.
            CONCLUSION if is_ours => self.connect(&theirs, Some(self.say(ANSWER, &theirs))),
            ANSWER if is_ours => self.connect(&theirs, None),
            code if code >= FIRST_ERROR && is_ours => {
                Reaction::Over(Step::Refused(Refusal::Rejected { code }), None)
            }
            _ => Reaction::Ignore,
        }
    }

    /// The peer has not heard from us, or not yet when it sent this: it gets our conclusion at once.
    fn meet(&mut self, theirs: Handshake) -> Reaction {
        if let Some(refusal) = objection(&self.offer, &theirs) {
            return Reaction::Over(Step::Refused(refusal), Some(refuse(&theirs)));
        }
        self.peer = Some(theirs);
        Reaction::SendNow
    }

    fn connect(&self, theirs: &Handshake, last_word: Option<[u8; HANDSHAKE_BYTES]>) -> Reaction {
        if let Some(refusal) = objection(&self.offer, theirs) {
            return Reaction::Over(Step::Refused(refusal), Some(refuse(theirs)));
        }
        let agreed = Agreed {
            receive_isn: theirs.initial_sequence,
            is_rendezvous: true,
            ..agree(&self.offer, theirs)
        };
        Reaction::Over(Step::Done(agreed), last_word)
    }
}

/// Whether only an open connection sends this: the peer has come to the end already.
fn is_of_a_connection(datagram: &[u8]) -> bool {
    if !is_control(datagram) {
        return DataHeader::read(datagram).is_some();
    }
    let control = read_control(datagram).map(|packet| packet.control);
    !matches!(control, None | Some(Control::Handshake(_)))
}
