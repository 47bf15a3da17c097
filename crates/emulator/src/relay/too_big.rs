//! Answers to packets that are larger than a link: ICMP, as a router gives it, and no more often.

use std::io::IoSlice;

use super::outlet::{Outlet, Packet};
use crate::model::TooBig;
use crate::packet;

/// Answers at once after a quiet time.
const BURST: u64 = 32;
/// Time for one more: a thousand a second.
const REFILL_NS: u64 = 1_000_000;

/// A limit on the rate of answers (RFC 4443, section 2.4 (f)): a bucket of tokens.
#[derive(Debug)]
pub struct TooBigAnswers {
    tokens: u64,
    filled_ns: u64,
}

impl Default for TooBigAnswers {
    fn default() -> Self {
        Self {
            tokens: BURST,
            filled_ns: 0,
        }
    }
}

impl TooBigAnswers {
    /// Tells the sender of a packet what its size may be, unless it was told often just now.
    pub fn answer(&mut self, now_ns: u64, packet: &TooBig<Packet>, outlet: &mut Outlet) {
        if !self.take(now_ns) {
            outlet.traffic.too_big_suppressed += 1;
            return;
        }
        if let Some(answer) = message(packet) {
            outlet.write(packet.from_port, &[IoSlice::new(&answer)]);
            outlet.traffic.too_big_sent += 1;
        }
    }

    fn take(&mut self, now_ns: u64) -> bool {
        let fresh = (now_ns - self.filled_ns) / REFILL_NS;
        if fresh > 0 {
            self.tokens = (self.tokens + fresh).min(BURST);
            self.filled_ns += fresh * REFILL_NS;
        }
        let has_one = self.tokens > 0;
        self.tokens -= u64::from(has_one);
        has_one
    }
}

/// The message; routers have no addresses here, so it comes in the name of the destination.
fn message(packet: &TooBig<Packet>) -> Option<Vec<u8>> {
    let Packet { frame, form, .. } = &packet.train.payload;
    let router = packet::parse(frame).ok()?.destination;
    packet::too_big(frame, form, packet.train.first, packet.mtu_bytes, router)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_per_refill() {
        let mut answers = TooBigAnswers::default();
        let passed = |answers: &mut TooBigAnswers, now_ns| (0..100).filter(|_| answers.take(now_ns)).count();
        assert_eq!(passed(&mut answers, 5), BURST as usize);
        assert_eq!(passed(&mut answers, REFILL_NS - 1), 0);
        assert_eq!(passed(&mut answers, 3 * REFILL_NS), 3);
        assert_eq!(passed(&mut answers, 1000 * REFILL_NS), BURST as usize);
    }
}
