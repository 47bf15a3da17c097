//! How much the senders of a test of bytes or blocks send: what the client wants, as iperf3's server does.
//!
//! The client ends the test when it has it, or when the interval ends in which it got it (3.20 and later): without this the
//! server would go on until then, a hundred times as much on a fast path.

use std::sync::atomic::{AtomicU64, Ordering};

use farline_proto::iperf3::parameters::Parameters;

/// Bytes that all senders of a session send together.
#[derive(Debug)]
pub(super) struct Quota {
    most: u64,
    sent: AtomicU64,
}

impl Quota {
    /// None where the client ends the test by the clock; where datagrams may be lost, for then it would wait for ever; where it
    /// leaves out a time that ends at another moment here than there; and with a rate without bursts, where iperf3 has none.
    pub(super) fn of(wanted: &Parameters) -> Option<Self> {
        let is_paced = wanted.rate_bps > 0 && wanted.burst <= 1;
        if !wanted.is_counted() || wanted.is_udp() || wanted.omit_s > 0 || is_paced {
            return None;
        }
        let of_blocks = wanted.blocks.saturating_mul(wanted.block_bytes.into());
        Some(Self {
            most: if wanted.bytes > 0 { wanted.bytes } else { of_blocks },
            sent: AtomicU64::new(0),
        })
    }

    /// Notes what one call sent.
    pub(super) fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether all of it has been sent.
    pub(super) fn is_used_up(&self) -> bool {
        self.sent.load(Ordering::Relaxed) >= self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_proto::iperf3::parameters::Protocol;

    #[test]
    fn a_test_of_bytes_or_blocks_has_one_and_ends_when_it_is_sent() {
        let bytes = Parameters {
            bytes: 1000,
            ..Parameters::default()
        };
        let quota = Quota::of(&bytes).unwrap();
        quota.sent(999);
        assert!(!quota.is_used_up());
        quota.sent(1);
        assert!(quota.is_used_up());
        let blocks = Parameters {
            blocks: 3,
            block_bytes: 500,
            ..Parameters::default()
        };
        assert_eq!(Quota::of(&blocks).unwrap().most, 1500);
    }

    #[test]
    fn none_where_a_client_could_wait_for_ever_or_iperf3_has_none() {
        let bytes = Parameters {
            bytes: 1000,
            ..Parameters::default()
        };
        let others = [
            Parameters::default(),
            Parameters {
                protocol: Protocol::Udp,
                ..bytes.clone()
            },
            Parameters {
                omit_s: 1,
                ..bytes.clone()
            },
            Parameters { rate_bps: 8, ..bytes },
        ];
        assert!(others.iter().all(|wanted| Quota::of(wanted).is_none()));
    }
}
