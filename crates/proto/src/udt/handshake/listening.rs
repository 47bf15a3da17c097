//! The end that is called.

use std::net::{IpAddr, SocketAddr};

use ring::hmac;

use super::{Agreed, CONCLUSION, Offer, REQUEST, agree, introduce, objection, read, refuse};
use crate::udt::wire::{HANDSHAKE_BYTES, Handshake, VERSION, ip_words};

/// A cookie is good in the window in which it was made, and in the next one.
const WINDOW_NS: u64 = 64_000_000_000;

/// A listener. It keeps nothing about callers: what it must know comes back to it in their cookies.
#[derive(Debug)]
pub struct Listening {
    key: hmac::Key,
}

/// What a listener makes of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Nothing.
    Nothing,
    /// This goes back to where it came from: a challenge or a refusal, no longer than what it answers.
    Answer([u8; HANDSHAKE_BYTES]),
    /// A caller at a proven address wants a connection. [`Listening::accept`] or [`Listening::refuse`] answers it;
    /// if it is one that has a connection already, by address and [`Handshake::socket`], then
    /// [`late_answer`](super::late_answer).
    Wanted(Handshake),
}

impl Listening {
    /// The secret makes cookies that nobody else can make; it is drawn at random.
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, &secret),
        }
    }

    /// Takes a datagram. `limits` are what a connection would be offered; of those, only the kind counts.
    pub fn handle(&self, now_ns: u64, from: SocketAddr, datagram: &[u8], limits: &Offer) -> Heard {
        let Some((0, theirs)) = read(datagram) else {
            return Heard::Nothing;
        };
        if theirs.socket == 0 {
            return Heard::Nothing;
        }
        let window = now_ns / WINDOW_NS;
        match theirs.request {
            REQUEST => Heard::Answer(self.challenge(window, from, &theirs)),
            CONCLUSION if !self.is_valid(window, from, theirs.cookie) => Heard::Nothing,
            CONCLUSION if is_acceptable(limits, &theirs) => Heard::Wanted(theirs),
            CONCLUSION => Heard::Answer(Self::refuse(&theirs)),
            _ => Heard::Nothing,
        }
    }

    fn challenge(&self, window: u64, from: SocketAddr, theirs: &Handshake) -> [u8; HANDSHAKE_BYTES] {
        let challenge = Handshake {
            mark: 0,
            cookie: self.cookie(window, from),
            ..*theirs
        };
        challenge.datagram(theirs.socket)
    }

    fn cookie(&self, window: u64, from: SocketAddr) -> u32 {
        let ip = match from.ip() {
            IpAddr::V4(ip) => ip.to_ipv6_mapped(),
            IpAddr::V6(ip) => ip,
        };
        let mut context = hmac::Context::with_key(&self.key);
        context.update(&ip.octets());
        context.update(&from.port().to_be_bytes());
        context.update(&window.to_be_bytes());
        let tag = context.sign();
        tag.as_ref()
            .iter()
            .take(4)
            .fold(0, |word, &byte| word << 8 | u32::from(byte))
    }

    /// Both windows are computed and compared as whole words, so the time taken says nothing about the cookie.
    fn is_valid(&self, window: u64, from: SocketAddr, cookie: u32) -> bool {
        let now = self.cookie(window, from) ^ cookie;
        let before = self.cookie(window.wrapping_sub(1), from) ^ cookie;
        (now == 0) | (before == 0)
    }

    /// What a connection for this caller is, and the datagram that tells it.
    pub fn accept(theirs: &Handshake, from: IpAddr, offer: &Offer) -> (Agreed, [u8; HANDSHAKE_BYTES]) {
        let offer = Offer {
            initial_sequence: theirs.initial_sequence,
            ..*offer
        };
        let agreed = agree(&offer, theirs);
        let answer = Handshake {
            mss_bytes: agreed.mss_bytes,
            cookie: theirs.cookie,
            ..introduce(&offer, CONCLUSION, ip_words(from))
        };
        let answer = if agreed.is_marked { answer.marked() } else { answer };
        (agreed, answer.datagram(theirs.socket))
    }

    /// The datagram that tells a caller that there is no connection for it (1002).
    pub fn refuse(theirs: &Handshake) -> [u8; HANDSHAKE_BYTES] {
        refuse(theirs)
    }
}

/// A caller says all of it; only repeated answers leave something out.
fn is_acceptable(limits: &Offer, theirs: &Handshake) -> bool {
    theirs.version == VERSION && theirs.kind == limits.kind as u32 && objection(limits, theirs).is_none()
}
