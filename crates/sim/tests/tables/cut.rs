//! A link that is cut for five seconds.

use farline_sim::ns;
use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::tcp::control::Control;
use farline_spec::unit::DelayS;
use farline_spec::{PipeChange, ScheduledChange};

use crate::run::{Alone, FORWARD};

const CUT_S: f64 = 30.0;
const RESTORED_S: f64 = 35.0;

fn step(at_s: f64, up: bool) -> ScheduledChange {
    ScheduledChange {
        at_s: DelayS::new(at_s).expect("in range"),
        change: PipeChange {
            up: Some(up),
            ..PipeChange::default()
        },
    }
}

fn run(control: Control) -> Alone {
    let mut path = Path::new(100_000_000, ns(0.05)).queue_bdp(1.0);
    path.forward.schedule = vec![step(CUT_S, false), step(RESTORED_S, true)];
    let mut alone = Alone::endless(&path, control);
    alone.run_until_s(65.0);
    alone
}

/// When data arrive again: end of the first sampling interval after the cut in which something did.
fn again_s(alone: &Alone) -> f64 {
    let samples = alone.world.samples();
    let rows = &samples.pipes[FORWARD];
    let cut = samples.at_ns.partition_point(|at_ns| *at_ns < ns(CUT_S + 0.5));
    let first = (cut..rows.len()).find(|&row| rows[row].out_packets > rows[cut].out_packets);
    farline_sim::seconds(samples.at_ns[first.expect("data arrive again")])
}

#[test]
fn after_a_cut_of_five_seconds_the_queue_comes_over_at_once_and_new_data_with_the_third_time_out() {
    let mut table = Table::new(&[
        "control",
        "time-outs",
        "again at s",
        "5 s after %",
        "15-29 s after %",
        "cut packets",
    ]);
    for control in Control::ALL {
        let alone = run(control);
        let events = alone.congestions(CUT_S);
        let timeout = events
            .iter()
            .find(|event| event.timeout)
            .expect("a time-out while cut");
        let timeout_s = farline_sim::seconds(timeout.at_ns);
        let counters = alone.world.counters(FORWARD);
        let later = alone.used(50.0, 64.0);
        table.row(&[
            control.name().to_string(),
            alone.figures().timeouts.to_string(),
            format!("{:.2}", again_s(&alone)),
            format!(
                "{:.1}",
                100.0 * alone.used(again_s(&alone), again_s(&alone) + 5.0)
            ),
            format!("{:.1}", 100.0 * later),
            counters.cut_packets.to_string(),
        ]);
        assert_eq!(
            alone.used(CUT_S + 0.5, RESTORED_S),
            0.0,
            "nothing arrives over a cut link"
        );
        // What waited in the queue goes on its way at once, and is acknowledged.
        assert!(
            (35.0..35.1).contains(&again_s(&alone)),
            "{}: again at {} s",
            control.name(),
            again_s(&alone)
        );
        // It lacks what the cut took, so that new data wait for the third time-out (RFC 6298: 1 s after the last
        // acknowledgement, 2 s after that, 4 s after that); what had come over meanwhile is not sent again.
        assert_eq!(alone.figures().timeouts, 3, "{}", control.name());
        assert!(
            (30.9..31.2).contains(&timeout_s),
            "{}: first at {timeout_s} s",
            control.name()
        );
        assert_eq!(alone.used(RESTORED_S + 0.2, 36.9), 0.0, "{}", control.name());
        assert!(alone.used(37.1, 40.0) > 0.3, "{}", control.name());
        assert!(later > 0.95, "{}: {later} of the rate", control.name());
        assert!(counters.cut_packets > 0);
    }
    insta::assert_snapshot!("cut", table.text());
}
