//! What each control does to a path of 10 Gbit/s.

use super::path::{Path, Run};
use super::*;

const MS: u64 = 1_000_000;

fn config(kind: UdtControl, max_rate_pps: Option<f64>) -> ControlConfig {
    ControlConfig {
        kind,
        max_rate_pps,
        packet_bytes: 1472,
        burst_packets: 44,
        now_ns: 0,
        seed: 1,
    }
}

/// An acknowledgement of everything up to `next`, at `now_ms`, on a path of 20 ms.
fn ack(now_ms: u64, acked_packets: u64, next: u64) -> AckEvent {
    AckEvent {
        now_ns: now_ms * MS,
        acked_packets,
        next,
        largest_sent: next + 1_000,
        in_flight: 1_000,
        delivered: next,
        sample: None,
        smoothed_rtt_ns: 20 * MS,
        min_rtt_ns: 20 * MS,
        flow_window_packets: 100_000,
        arrival_pps: None,
        capacity_pps: None,
    }
}

fn loss(first: u64, packets: u64, largest_sent: u64) -> LossEvent {
    LossEvent {
        now_ns: 0,
        first,
        last: first + packets - 1,
        packets,
        largest_sent,
        in_flight: largest_sent - first,
    }
}

/// Share of the path used between 10 and 30 s.
fn steady_use(kind: UdtControl, path: Path) -> f64 {
    let mut run = Run::new(kind, None, path);
    run.run_until_s(10.0);
    run.used_until_s(30.0)
}

#[test]
fn reno_grows_while_it_repairs_what_a_time_out_took_for_lost() {
    let mut reno = control_for(&config(UdtControl::Reno, None));
    reno.on_ack(&ack(20, 1, 1));
    reno.on_timeout(400 * MS, 1_000);
    let least = reno.window_packets();
    // Packets that had arrived count as lost too, so that nothing seems to be under way.
    for step in 1..10 {
        let event = AckEvent {
            in_flight: 0,
            largest_sent: 1_000,
            ..ack(400 + step, 1, 1 + step)
        };
        reno.on_ack(&event);
    }
    assert!(reno.window_packets() >= least + 8.0, "{}", reno.window_packets());
}

#[test]
fn bbr_fills_paths_from_50_us_to_366_ms() {
    for rtt_ns in [50_000, 300_000, MS, 10 * MS, 100 * MS, 366 * MS] {
        let used = steady_use(UdtControl::Bbr, Path::new(rtt_ns));
        assert!(used > 0.98, "{rtt_ns} ns: {used}");
        let mut path = Path::new(rtt_ns);
        path.queue_packets = (path.queue_packets / 10.0).max(100.0);
        let used = steady_use(UdtControl::Bbr, path);
        assert!(used > 0.95, "{rtt_ns} ns, queue of a tenth: {used}");
    }
}

#[test]
fn bbr_does_not_take_losses_by_chance_for_congestion() {
    for rtt_ns in [50_000, MS, 10 * MS, 100 * MS, 366 * MS] {
        for loss in [1e-5, 1e-3, 1e-2] {
            let path = Path {
                loss,
                ..Path::new(rtt_ns)
            };
            let used = steady_use(UdtControl::Bbr, path);
            assert!(used > 0.96 - loss, "{rtt_ns} ns, loss {loss}: {used}");
        }
    }
}

#[test]
fn bbr_fills_a_path_whose_peer_acknowledges_every_ten_milliseconds() {
    for rtt_ns in [100_000, 10 * MS, 100 * MS] {
        let path = Path {
            ack_every_ns: 10 * MS,
            queue_packets: 20_000.0,
            ..Path::new(rtt_ns)
        };
        let used = steady_use(UdtControl::Bbr, path);
        assert!(used > 0.95, "{rtt_ns} ns: {used}");
    }
}

#[test]
fn bbr_keeps_the_queue_of_a_deep_buffer_below_one_bandwidth_delay_product() {
    for rtt_ns in [10 * MS, 100 * MS] {
        let mut path = Path::new(rtt_ns);
        let bdp = path.queue_packets;
        path.queue_packets = 5.0 * bdp;
        let mut run = Run::new(UdtControl::Bbr, None, path);
        run.run_until_s(10.0);
        assert!(
            run.most_queue < 1.5 * bdp,
            "while starting: {}",
            run.most_queue / bdp
        );
        run.most_queue = 0.0;
        run.run_until_s(30.0);
        assert!(run.most_queue < 0.7 * bdp, "later: {}", run.most_queue / bdp);
        assert_eq!(run.lost, 0);
    }
}

#[test]
fn bbr_starts_without_losses_where_the_queue_holds_a_bandwidth_delay_product() {
    for rtt_ns in [50 * MS, 100 * MS, 366 * MS] {
        let mut run = Run::new(UdtControl::Bbr, None, Path::new(rtt_ns));
        run.run_until_s(15.0);
        assert_eq!(run.lost, 0, "{rtt_ns} ns");
    }
}

#[test]
fn bbr_answers_the_losses_of_what_was_under_way_once() {
    let mut run = Run::new(UdtControl::Bbr, None, Path::new(100 * MS));
    run.run_until_s(4.0);
    let before_pps = run.control.rate_pps().unwrap();
    let under_way = run.sent - 40_000;
    let report = |run: &mut Run, first: u64| {
        run.control.on_loss(&loss(first, 20_000, run.sent - 1));
        run.control.rate_pps().unwrap()
    };
    let answered_pps = report(&mut run, under_way);
    assert!(answered_pps < 0.99 * before_pps, "{answered_pps} of {before_pps}");
    run.run_until_s(4.3);
    let later_pps = run.control.rate_pps().unwrap();
    assert_eq!(report(&mut run, under_way + 20_000), later_pps);
    let fresh = run.sent - 20_000;
    assert!(report(&mut run, fresh) < 0.99 * later_pps);
}

#[test]
fn bbr_finds_a_path_of_100_ms_within_two_seconds() {
    let mut run = Run::new(UdtControl::Bbr, None, Path::new(100 * MS));
    run.run_until_s(2.0);
    let used = run.used_until_s(3.0);
    assert!(used > 0.95, "{used}");
}

#[test]
fn bbr_follows_the_rate_of_the_path_down_and_up() {
    let full = Path::new(20 * MS);
    let mut run = Run::new(UdtControl::Bbr, None, full);
    run.run_until_s(10.0);
    run.path.pps = full.pps / 4.0;
    run.run_until_s(15.0);
    let (lost, sent) = (run.lost, run.sent);
    let slow = run.used_until_s(25.0);
    assert!(slow > 0.95, "a quarter of the rate: {slow}");
    let repeated = (run.lost - lost) as f64 / (run.sent - sent) as f64;
    assert!(repeated < 0.02, "{repeated} lost at a quarter of the rate");
    run.path.pps = full.pps;
    run.run_until_s(33.0);
    let again = run.used_until_s(40.0);
    assert!(again > 0.95, "the whole rate again: {again}");
}

#[test]
fn bbr_sends_little_after_a_time_out_until_something_arrives() {
    let mut run = Run::new(UdtControl::Bbr, None, Path::new(20 * MS));
    run.run_until_s(5.0);
    let window = run.control.window_packets();
    run.control.on_timeout(5_000 * MS, 10_000);
    assert_eq!(run.control.window_packets(), 176.0);
    run.run_until_s(5.1);
    assert!(run.control.window_packets() > 0.8 * window);
}

#[test]
fn native_fills_a_clean_path_and_loses_its_share_to_losses() {
    let clean = steady_use(UdtControl::Native, Path::new(20 * MS));
    assert!(clean > 0.9, "{clean}");
    let path = Path {
        loss: 1e-3,
        ..Path::new(20 * MS)
    };
    let lossy = steady_use(UdtControl::Native, path);
    assert!(lossy < 0.5 * clean && lossy > 0.001, "{lossy}");
}

#[test]
fn native_goes_on_at_its_own_measure_when_slow_start_ends_without_the_peers() {
    let mut control = control_for(&config(UdtControl::Native, None));
    assert_eq!(control.rate_pps(), None, "slow start is not paced");
    let sample = RateSample {
        pps: 50_000.0,
        rtt_ns: Some(20 * MS),
        is_app_limited: false,
        round: 1,
        prior_in_flight: 1_000,
        lost_packets: 0,
    };
    control.on_ack(&AckEvent {
        sample: Some(sample),
        ..ack(20, 1_000, 1_000)
    });
    control.on_loss(&loss(1_000, 1, 2_000));
    let rate_pps = control.rate_pps().expect("a rate after slow start");
    assert!((rate_pps - 50_000.0 / 1.125).abs() < 1.0, "{rate_pps}");
}

#[test]
fn native_slows_down_by_a_ninth_once_in_a_while_even_at_one_packet_a_microsecond() {
    let mut control = control_for(&config(UdtControl::Native, None));
    control.on_ack(&AckEvent {
        arrival_pps: Some(850_000.0),
        ..ack(20, 1_000, 1_000)
    });
    control.on_timeout(20 * MS, 0);
    assert_eq!(control.rate_pps().map(f64::round), Some(850_000.0));
    control.on_loss(&loss(1_000, 1, 2_000));
    assert_eq!(control.rate_pps().map(f64::round), Some(755_556.0));
    for first in 1_001..1_100 {
        control.on_loss(&loss(first, 1, 2_000));
    }
    let rate_pps = control.rate_pps().expect("a rate");
    assert!(
        rate_pps > 850_000.0 / 1.125f64.powi(6),
        "no more than five in a period: {rate_pps}"
    );
}

#[test]
fn native_has_a_floor_that_it_recovers_from() {
    let mut control = control_for(&config(UdtControl::Native, None));
    for period in 0..1_000 {
        control.on_loss(&loss(2_000 * period, 1, 2_000 * period + 1_000));
    }
    // Before the first acknowledgement a round trip is taken for 100 ms.
    assert_eq!(control.rate_pps().map(f64::round), Some((16.0f64 / 0.11).round()));
}

#[test]
fn native_is_the_same_for_the_same_seed() {
    let decide = |seed| {
        let mut control = control_for(&ControlConfig {
            seed,
            ..config(UdtControl::Native, None)
        });
        control.on_ack(&AckEvent {
            arrival_pps: Some(1e6),
            ..ack(20, 100, 100)
        });
        let reports = (1..8).flat_map(|period| (0..12).map(move |first| (period, first)));
        let rate_after = |(period, first): (u64, u64)| {
            control.on_loss(&loss(2_000 * period + first, 1, 2_000 * period + 1_500));
            control.rate_pps()
        };
        reports.map(rate_after).collect::<Vec<_>>()
    };
    assert_eq!(decide(5), decide(5));
    assert_ne!(decide(5), decide(6));
}

#[test]
fn reno_doubles_then_halves_once_for_each_window_of_losses() {
    let mut control = control_for(&config(UdtControl::Reno, None));
    assert_eq!(control.window_packets(), 44.0);
    control.on_ack(&ack(20, 400, 400));
    assert_eq!(control.window_packets(), 444.0);
    control.on_loss(&LossEvent {
        in_flight: 443,
        ..loss(400, 1, 900)
    });
    assert_eq!(control.window_packets(), 222.0);
    control.on_loss(&loss(450, 20, 1_000));
    assert_eq!(control.window_packets(), 222.0, "the same window of data");
    control.on_ack(&ack(60, 222, 1_000));
    assert!(
        (control.window_packets() - 223.0).abs() < 1e-9,
        "one packet a round trip"
    );
    control.on_loss(&LossEvent {
        in_flight: 222,
        ..loss(1_000, 1, 1_300)
    });
    assert!((control.window_packets() - 111.5).abs() < 1e-9);
    control.on_timeout(0, 100);
    assert_eq!(control.window_packets(), 4.0);
}

#[test]
fn reno_fills_a_clean_path() {
    let used = steady_use(UdtControl::Reno, Path::new(10 * MS));
    assert!(used > 0.95, "{used}");
}

#[test]
fn reno_is_paced_but_not_held_up() {
    let mut control = control_for(&config(UdtControl::Reno, None));
    assert_eq!(control.rate_pps(), None);
    control.on_ack(&ack(20, 400, 400));
    let window_rate_pps = control.window_packets() / 0.02;
    let rate_pps = control.rate_pps().expect("a round-trip time is known");
    assert!(
        rate_pps >= 2.0 * window_rate_pps && rate_pps < 2.2 * window_rate_pps,
        "{rate_pps}"
    );
}

#[test]
fn fixed_sends_what_was_stated_whatever_is_lost() {
    let path = Path {
        loss: 0.2,
        ..Path::new(20 * MS)
    };
    let mut run = Run::new(UdtControl::Fixed, Some(100_000.0), path);
    run.run_until_s(10.0);
    assert!(
        run.sent.abs_diff(1_000_000) <= 44,
        "{} packets in ten seconds",
        run.sent
    );
    assert_eq!(run.control.rate_pps(), Some(100_000.0));
    run.control.on_timeout(0, 1_000);
    assert!(run.control.window_packets().is_infinite());
}

#[test]
fn a_stated_rate_caps_every_control() {
    for kind in UdtControl::ALL {
        let mut run = Run::new(kind, Some(50_000.0), Path::new(10 * MS));
        run.run_until_s(5.0);
        let sent = run.sent;
        run.run_until_s(10.0);
        let pps = (run.sent - sent) as f64 / 5.0;
        assert!((47_000.0..50_100.0).contains(&pps), "{}: {pps}", kind.word());
    }
}
