//! Datagrams: delay, jitter, order and loss as ordered from the link, and queues against queueing theory.

use farline_sim::datagram::{Arrivals, End, SinkFigures, SourceConfig};
use farline_sim::scenario::Path;
use farline_sim::table::{Table, figure};
use farline_sim::{World, ns};
use farline_spec::unit::{DelayS, Probability};

use crate::run::assert_close;

const PACKET_BYTES: u32 = 1462;

fn source(rate_bps: u64, arrivals: Arrivals, stop_s: f64) -> SourceConfig {
    SourceConfig {
        rate_bps,
        packet_bytes: PACKET_BYTES,
        train: 1,
        arrivals,
        start_ns: 0,
        stop_ns: ns(stop_s),
        ecn: false,
    }
}

/// What arrived of a source that ran until a second before `end_s`, and how many packets it sent.
fn run(path: &Path, config: SourceConfig) -> (SinkFigures, u64) {
    let mut world = World::new(&path.topology(), 0).expect("a topology that holds together");
    let (source, sink) = End::open(&mut world, 0, 1, config);
    world
        .run_until(config.stop_ns + ns(1.0))
        .expect("no packet unaccounted for");
    let sent = world.endpoint(source).source().expect("a source").sent();
    (world.endpoint(sink).sink().expect("a sink").figures(), sent)
}

#[test]
fn a_quiet_path_delays_by_sending_time_and_distance_alone() {
    let path = Path::new(100_000_000, ns(0.02));
    let (figures, sent) = run(&path, source(10_000_000, Arrivals::Constant, 10.0));
    // 1500 bytes on the wire at 100 Mbit/s are 120 us.
    assert_eq!(
        (figures.min_delay_ns, figures.max_delay_ns),
        (10_120_000, 10_120_000)
    );
    assert_eq!((figures.packets, figures.late, figures.gaps), (sent, 0, 0));
    assert_eq!(sent, 8_550, "ten seconds at 1.1696 ms each, the first at 0");
    assert_eq!(figures.jitter_ns, 0.0);
}

#[test]
fn waiting_before_a_busy_link_is_that_of_the_queue_m_d_1_within_a_twentieth() {
    let mut table = Table::new(&["load", "mean wait us", "formula us"]);
    for load in [0.3, 0.5, 0.7, 0.9] {
        let rate_bps = (load * 100e6 * f64::from(PACKET_BYTES) / 1500.0) as u64;
        let path = Path::new(100_000_000, 0).queue_bytes(10_000_000);
        let (figures, _) = run(&path, source(rate_bps, Arrivals::Poisson(3), 300.0));
        let wait_us = figures.mean_delay_ns / 1000.0 - 120.0;
        // Pollaczek and Khinchine: half of what exponential service would give, rho / (2 (1 - rho)) service times.
        let formula_us = 120.0 * load / (2.0 * (1.0 - load));
        table.row(&[load.to_string(), figure(wait_us, 4), figure(formula_us, 4)]);
        assert_close(&format!("load {load}"), wait_us, formula_us, 0.05);
        assert_eq!(figures.missing(), 0, "load {load}: the queue is long enough");
    }
    insta::assert_snapshot!("datagrams_waiting", table.text());
}

#[test]
fn overdriven_links_carry_their_rate_and_drop_the_rest() {
    let path = Path::new(100_000_000, ns(0.02)).queue_bytes(250_000);
    let (figures, sent) = run(&path, source(150_000_000, Arrivals::Constant, 60.0));
    let carried = 60.0 * 100e6 / 8.0 / 1500.0 + 250_000.0 / 1500.0;
    assert!(
        (figures.packets as f64 - carried).abs() < 3.0,
        "{} packets, {carried} by the rate",
        figures.packets
    );
    assert!(sent > figures.packets && figures.late == 0);
    // A full queue of 250 kB is 20 ms.
    assert!(
        (29_900_000..=30_120_000).contains(&figures.max_delay_ns),
        "{} ns",
        figures.max_delay_ns
    );
}

#[test]
fn ordered_disturbances_arrive_as_ordered() {
    let chance = |value: f64| Some(Probability::new(value).expect("a probability"));
    let run_with = |order: &dyn Fn(&mut Path)| {
        let mut path = Path::new(1_000_000_000, ns(0.02));
        order(&mut path);
        run(&path, source(100_000_000, Arrivals::Constant, 20.0))
    };
    let mut table = Table::new(&[
        "ordered", "sent", "arrived", "missing", "late", "repeated", "damaged", "delay ms", "sd ms",
    ]);
    let mut note = |name: &str, (figures, sent): (SinkFigures, u64)| {
        table.row(&[
            name.to_string(),
            sent.to_string(),
            figures.packets.to_string(),
            figures.missing().to_string(),
            figures.late.to_string(),
            figures.repeated.to_string(),
            figures.damaged.to_string(),
            figure(figures.mean_delay_ns / 1e6, 5),
            figure(figures.sd_delay_ns / 1e6, 3),
        ]);
        (figures, sent as f64)
    };
    // About 171,000 packets: a hundredth is 1710, give or take 4 standard deviations of 41.
    let ((figures, sent), share) = (
        note(
            "loss 0.01",
            run_with(&|path| path.forward.loss.random = chance(0.01)),
        ),
        0.1,
    );
    assert_close("loss", figures.missing() as f64, 0.01 * sent, share);
    let (figures, sent) = note(
        "duplicate 0.01",
        run_with(&|path| path.forward.duplicate = chance(0.01)),
    );
    assert_close("repeated", figures.repeated as f64, 0.01 * sent, share);
    let (figures, sent) = note(
        "reorder 0.01",
        run_with(&|path| path.forward.reorder = chance(0.01)),
    );
    assert_close("late", figures.late as f64, 0.01 * sent, share);
    let (figures, sent) = note(
        "corrupt 0.01",
        run_with(&|path| path.forward.corrupt = chance(0.01)),
    );
    assert_close("damaged", figures.damaged as f64, 0.01 * sent, share);
    let (figures, _) = note(
        "jitter 1 ms",
        run_with(&|path| path.forward.jitter_s = Some(DelayS::new(0.001).expect("in range"))),
    );
    assert_eq!((figures.late, figures.missing()), (0, 0), "jitter keeps order");
    assert!(
        figures.sd_delay_ns > 100_000.0 && figures.max_delay_ns <= 11_100_000,
        "{figures:?}"
    );
    insta::assert_snapshot!("datagrams_ordered", table.text());
}
