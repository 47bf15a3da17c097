//! Both ends over a path in virtual time: what a user can rely on.

mod adapting;
mod delivery;
mod hostile;
mod passes;
mod prediction;
mod rhythm;
mod world;

use super::*;
use world::{Path, World};

const MS: u64 = 1_000_000;

/// A stream of small blasts over a clean path.
fn options(path: &Path) -> SenderOptions {
    SenderOptions {
        packet_bytes: 100,
        payload_bytes: 100_000,
        in_flight: 4,
        early: true,
        rtt_ns: 2 * path.delay_ns,
        rate_bps: 100_000_000,
        loss_bound: None,
        window_bytes: None,
        checksum: true,
    }
}
