//! An end that wants a connection: when it asks, and until when.

use std::net::IpAddr;

use super::Offer;
use super::caller::Caller;
use super::rendezvous::Rendezvous;
use super::step::{Reaction, Step};
use crate::udt::wire::{HANDSHAKE_BYTES, ip_words};

/// Between two repetitions of a request, as in libudt.
const REPEAT_NS: u64 = 250_000_000;
/// Until a caller gives up, as in libudt.
const CALLER_PATIENCE_NS: u64 = 3_000_000_000;
/// Until an end of a rendezvous gives up, as in libudt.
const RENDEZVOUS_PATIENCE_NS: u64 = 30_000_000_000;

/// A caller, or one end of a rendezvous, on its way to a connection.
///
/// Whoever drives it sends what [`poll_transmit`](Self::poll_transmit) gives, hands over what comes from the peer's
/// address, and gives up at [`expires_ns`](Self::expires_ns). After `Done` or `Refused` it sends what
/// `poll_transmit` still has, a last word that spares the peer of a rendezvous a repetition; and what brought
/// `Done` about may be the connection's first data, so it goes to the connection too.
#[derive(Debug)]
pub struct Opening {
    role: Role,
    next_send_ns: u64,
    expires_ns: u64,
    outcome: Step,
    last_word: Option<[u8; HANDSHAKE_BYTES]>,
}

#[derive(Debug)]
enum Role {
    Caller(Caller),
    Rendezvous(Rendezvous),
}

impl Opening {
    /// Calls a listener at `peer`. It gives up after 3 s.
    pub fn caller(offer: Offer, peer: IpAddr, now_ns: u64) -> Self {
        let role = Role::Caller(Caller::new(offer, ip_words(peer)));
        Self::new(role, CALLER_PATIENCE_NS, now_ns)
    }

    /// Meets `peer`, which does the same at about the same time. It gives up after 30 s.
    pub fn rendezvous(offer: Offer, peer: IpAddr, now_ns: u64) -> Self {
        let role = Role::Rendezvous(Rendezvous::new(offer, ip_words(peer)));
        Self::new(role, RENDEZVOUS_PATIENCE_NS, now_ns)
    }

    fn new(role: Role, patience_ns: u64, now_ns: u64) -> Self {
        Self {
            role,
            next_send_ns: now_ns,
            expires_ns: now_ns.saturating_add(patience_ns),
            outcome: Step::Wait,
            last_word: None,
        }
    }

    /// Takes a datagram from the peer's address. What is foreign or malformed changes nothing; after the end every
    /// datagram has the same answer.
    pub fn handle(&mut self, now_ns: u64, datagram: &[u8]) -> Step {
        if self.outcome != Step::Wait {
            return self.outcome;
        }
        let reaction = match &mut self.role {
            Role::Caller(caller) => caller.handle(datagram),
            Role::Rendezvous(rendezvous) => rendezvous.handle(datagram),
        };
        match reaction {
            Reaction::Ignore => {}
            Reaction::SendNow => self.next_send_ns = now_ns,
            Reaction::Over(outcome, last_word) => {
                self.outcome = outcome;
                self.last_word = last_word;
            }
        }
        self.outcome
    }

    /// A datagram to send now, if one is due. Nothing is after [`expires_ns`](Self::expires_ns).
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<[u8; HANDSHAKE_BYTES]> {
        if self.outcome != Step::Wait {
            return self.last_word.take();
        }
        if now_ns < self.next_send_ns || now_ns >= self.expires_ns {
            return None;
        }
        self.next_send_ns = now_ns.saturating_add(REPEAT_NS);
        Some(match &mut self.role {
            Role::Caller(caller) => caller.request(),
            Role::Rendezvous(rendezvous) => rendezvous.request(),
        })
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something next, or when patience ends if that is earlier.
    pub fn next_timeout(&self) -> u64 {
        self.next_send_ns.min(self.expires_ns)
    }

    /// When to give up.
    pub fn expires_ns(&self) -> u64 {
        self.expires_ns
    }
}
