//! A rate that gives way to loss, and comes back.

use super::*;

const STATED_BPS: u64 = 200_000_000;

fn adapting(path: Path, rate_bps: u64, bound: f64, payload_bytes: usize) -> World {
    let options = SenderOptions {
        packet_bytes: 1_000,
        payload_bytes: 2_000_000,
        in_flight: 8,
        rate_bps,
        loss_bound: Some(bound),
        ..options(&path)
    };
    World::new(path, options, payload_bytes)
}

#[test]
fn a_path_without_loss_is_used_at_the_stated_rate() {
    let mut world = adapting(Path::default(), STATED_BPS, 0.02, 20_000_000);
    while world.step() {
        assert_eq!(world.sender.rate_bps(), STATED_BPS);
    }
}

#[test]
fn losses_below_the_bound_do_not_slow_it_down() {
    let path = Path {
        loss: 0.01,
        ..Path::default()
    };
    let mut world = adapting(path, STATED_BPS, 0.03, 20_000_000);
    while world.step() {
        assert_eq!(world.sender.rate_bps(), STATED_BPS);
    }
}

#[test]
fn a_bottleneck_of_half_the_rate_is_found_and_kept_busy() {
    for (rate_bps, most_lost, least_bps) in [(STATED_BPS, 0.1, 90e6), (0, 0.5, 60e6)] {
        let path = Path {
            bottleneck_bps: 100_000_000,
            ..Path::default()
        };
        let mut world = adapting(path, rate_bps, 0.02, 40_000_000);
        world.run();
        let statistics = world.sender.statistics();
        let lost_share = statistics.repeated_packets as f64 / statistics.sent_packets as f64;
        let payload_bps = 8.0 * 40e6 * 1e9 / world.now_ns as f64;
        assert!(
            lost_share < most_lost,
            "{rate_bps}: {lost_share}, half of all without adaptation"
        );
        assert!(payload_bps > least_bps, "{rate_bps}: {payload_bps}");
    }
}

#[test]
fn the_rate_comes_back_once_the_losses_end() {
    let mut world = adapting(Path::default(), STATED_BPS, 0.02, 100_000_000);
    world.path.loss = 0.2;
    while world.now_ns < 300 * MS {
        assert!(world.step());
        assert!(world.sender.rate_bps() >= STATED_BPS / 64, "there is a floor");
    }
    assert!(world.sender.rate_bps() < STATED_BPS / 2);
    world.path.loss = 0.0;
    while world.now_ns < 1_000 * MS {
        assert!(world.step());
    }
    assert_eq!(world.sender.rate_bps(), STATED_BPS, "35 round trips have passed");
}

#[test]
fn a_rate_that_the_host_does_not_reach_grows_no_further() {
    let mut world = adapting(Path::default(), STATED_BPS, 0.02, 60_000_000);
    world.path.loss = 0.2;
    while world.now_ns < 100 * MS {
        assert!(world.step());
    }
    world.path.loss = 0.0;
    world.host_bps = STATED_BPS / 4;
    while world.now_ns < 2_000 * MS && world.step() {
        let rate_bps = world.sender.rate_bps();
        assert!(
            world.now_ns < 1_000 * MS || rate_bps < STATED_BPS / 2,
            "{rate_bps}"
        );
    }
    world.host_bps = 0;
    world.run();
    assert_eq!(world.sender.rate_bps(), STATED_BPS, "once it is used it grows");
}
