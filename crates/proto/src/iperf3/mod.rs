//! The protocol of iperf3 (versions 3.9 to 3.21), spoken with other people's clients and servers.
//!
//! What it does: one machine for each end of the control connection ([`server`], [`client`]), the documents that go over it
//! ([`parameters`], [`results`]), the header of UDP's datagrams and what a receiver counts by it ([`datagram`], [`arrivals`]).
//! What it must not do: open a socket, look at a clock, know how bytes are moved.
//!
//! There is no specification: what is here was learnt from the source of iperf3 (esnet/iperf, tags 3.9 to 3.21) and from what
//! its programs send. In short: the client connects, sends a cookie of 37 bytes, and from then on both ends send words of one
//! byte ([`word::Word`]); behind three of them follow documents, a length of four bytes and as many of JSON.
//!
//! ```text
//! client                               server
//! cookie ───────────────────────────►
//!                      ◄─────────────  PARAM_EXCHANGE
//! parameters ───────────────────────►
//!                      ◄─────────────  CREATE_STREAMS     (or a refusal: SERVER_ERROR and two numbers)
//! streams, each with the cookie ────►
//!                      ◄─────────────  TEST_START, TEST_RUNNING
//!        ═══════════ data ═══════════
//! TEST_END ─────────────────────────►
//!                      ◄─────────────  EXCHANGE_RESULTS
//! results ──────────────────────────►
//!                      ◄─────────────  results, DISPLAY_RESULTS
//! IPERF_DONE ───────────────────────►
//! ```
//!
//! Call order of both machines: after each `handle_…`, `poll_action` until it gives `None`; what an action asks for is answered
//! with the call that its description names, once, and nothing else is asked of it meanwhile but bytes, closing and time.
//! `poll_timeout` is asked after that; when its time has passed, `handle_timeout`. Once `ending` says how it ended, what is
//! handed in is ignored. Times are since the machine was made.
//!
//! Start with [`server`].

pub mod arrivals;
pub mod client;
pub mod credential;
pub mod datagram;
pub mod document;
pub mod parameters;
pub mod results;
pub mod server;
pub mod word;

#[cfg(test)]
mod tests;

/// Port that iperf3 listens on.
pub const DEFAULT_PORT: u16 = 5201;
/// Bytes of a cookie: 36 characters and a zero.
pub const COOKIE_BYTES: usize = 37;

/// Names one session; the client makes it and opens every connection with it.
pub type Cookie = [u8; COOKIE_BYTES];

/// Characters of cookies, as iperf3's clients draw them.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A cookie of random bytes.
pub fn cookie(random: &[u8; COOKIE_BYTES - 1]) -> Cookie {
    let mut cookie = [0; COOKIE_BYTES];
    for (place, byte) in cookie.iter_mut().zip(random) {
        *place = ALPHABET[usize::from(*byte) % ALPHABET.len()];
    }
    cookie
}

/// Whether these bytes can be a cookie: what else connects is not iperf3.
pub fn is_cookie(bytes: &Cookie) -> bool {
    let (text, end) = bytes.split_at(COOKIE_BYTES - 1);
    end == [0] && text.iter().all(u8::is_ascii_graphic)
}

/// The number by which both ends know the stream that was opened as number `index`, from 0: 1, 3, 4, 5 and so on.
pub fn stream_id(index: usize) -> i64 {
    let next = i64::try_from(index).unwrap_or(i64::MAX - 2);
    if next == 0 { 1 } else { next + 2 }
}
