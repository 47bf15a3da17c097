//! A link that becomes slower and faster again, and one that is cut.

use farline_sim::ns;
use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::udt::{FlowConfig, Trial};
use farline_spec::unit::{DelayS, WireRateBps};
use farline_spec::{PipeChange, ScheduledChange, UdtControl};

const CONTROLS: [UdtControl; 3] = [UdtControl::Bbr, UdtControl::Native, UdtControl::Reno];

fn at(at_s: f64, change: PipeChange) -> ScheduledChange {
    ScheduledChange {
        at_s: DelayS::new(at_s).expect("in range"),
        change,
    }
}

fn rate(rate_bps: u64) -> PipeChange {
    PipeChange {
        rate_bps: Some(WireRateBps::new(rate_bps).expect("in range")),
        ..PipeChange::default()
    }
}

fn up(up: bool) -> PipeChange {
    PipeChange {
        up: Some(up),
        ..PipeChange::default()
    }
}

#[test]
fn bbr_follows_a_link_to_a_quarter_of_its_rate_and_back() {
    let mut table = Table::new(&[
        "control",
        "400 Mbit/s %",
        "at 100: 0-5 s %",
        "5-20 s %",
        "again 400: 0-5 s %",
        "5-20 s %",
    ]);
    for control in CONTROLS {
        let mut path = Path::new(400_000_000, ns(0.04)).queue_bytes(2_000_000);
        path.forward.schedule = vec![at(20.0, rate(100_000_000)), at(40.0, rate(400_000_000))];
        let mut trial = Trial::new(&path, &FlowConfig::endless(control));
        trial.run_until_s(60.0);
        let used = [
            trial.used(10.0, 20.0),
            4.0 * trial.used(20.0, 25.0),
            4.0 * trial.used(25.0, 40.0),
            trial.used(40.0, 45.0),
            trial.used(45.0, 60.0),
        ];
        let mut row = vec![control.word().to_string()];
        row.extend(used.map(|used| format!("{:.1}", 100.0 * used)));
        table.row(&row);
        if control == UdtControl::Bbr {
            assert!(used[2] > 0.95 && used[4] > 0.95, "{}: {used:?}", control.word());
        }
    }
    insta::assert_snapshot!("udt_changes_rate", table.text());
}

#[test]
fn after_a_cut_of_five_seconds_bbr_and_a_fixed_rate_are_back_within_five() {
    let mut table = Table::new(&["control", "RTT ms", "5 s after %", "5-20 s after %", "repeated %"]);
    for control in UdtControl::ALL {
        for rtt_s in [0.01, 0.1] {
            let mut path = Path::new(200_000_000, ns(rtt_s)).queue_bdp(1.0);
            path.forward.schedule = vec![at(10.0, up(false)), at(15.0, up(true))];
            let mut config = FlowConfig::endless(control);
            // Half of the path, for the one that must be told.
            config.max_payload_bps = (control == UdtControl::Fixed).then_some(3_640_000);
            let mut trial = Trial::new(&path, &config);
            trial.run_until_s(35.0);
            let (soon, later) = (trial.used(15.0, 20.0), trial.used(20.0, 35.0));
            table.row(&[
                control.word().to_string(),
                (1e3 * rtt_s).to_string(),
                format!("{:.1}", 100.0 * soon),
                format!("{:.1}", 100.0 * later),
                format!("{:.2}", 100.0 * trial.repeated()),
            ]);
            let cut = trial.used(10.5, 14.9);
            assert_eq!(
                cut,
                0.0,
                "{}, {rtt_s} s: nothing arrives over a cut link",
                control.word()
            );
            if matches!(control, UdtControl::Bbr | UdtControl::Fixed) {
                assert!(
                    soon > 0.25,
                    "{}: {soon} of the rate in the first 5 s",
                    control.word()
                );
            }
            if control == UdtControl::Bbr {
                assert!(later > 0.93, "{}: {later} of the rate", control.word());
            }
        }
    }
    insta::assert_snapshot!("udt_changes_cut", table.text());
}
