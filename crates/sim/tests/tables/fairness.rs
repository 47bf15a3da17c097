//! Two flows over one bottleneck: same round trip, one to five, and one that comes late.

use farline_sim::formula::jain;
use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::tcp::control::Control;
use farline_sim::tcp::{End, Flow, SenderConfig};
use farline_sim::{World, ns};

use crate::run::SEGMENT_BYTES;

/// Two flows of one control over a path of 20 Mbit/s; the second begins at `late_s`.
struct Pair {
    world: World<End>,
    flows: [Flow; 2],
}

impl Pair {
    fn new(control: Control, rtt_s: [f64; 2], late_s: f64) -> Self {
        let base_s = rtt_s[0].min(rtt_s[1]);
        let queue = (20e6 * rtt_s[0].max(rtt_s[1]) / 8.0) as u64;
        let path = Path::new(20_000_000, ns(base_s)).queue_bytes(queue);
        let topology = path.dumbbell(&rtt_s.map(|rtt_s| ns(rtt_s - base_s)));
        let mut world = World::new(&topology, ns(0.1)).expect("a topology that holds together");
        let config = SenderConfig::endless(SEGMENT_BYTES);
        let late = SenderConfig {
            start_ns: ns(late_s),
            ..config
        };
        let flows = [
            Flow::open(&mut world, 0, 1, config, control.build()),
            Flow::open(&mut world, 2, 3, late, control.build()),
        ];
        Self { world, flows }
    }

    fn run_until_s(&mut self, end_s: f64) {
        self.world
            .run_until(ns(end_s))
            .expect("no packet unaccounted for");
    }

    /// Mbit/s of each flow on the wire, retransmissions left out.
    fn rates_mbps(&self, from_s: f64, to_s: f64) -> [f64; 2] {
        let rate = |flow: Flow| {
            self.world
                .samples()
                .delivery_rate(flow.sender, ns(from_s), ns(to_s))
        };
        self.flows
            .map(|flow| rate(flow) * f64::from(SEGMENT_BYTES + 38) * 8.0 / 1e6)
    }
}

#[test]
fn equal_flows_share_alike_and_the_path_stays_full() {
    let mut table = Table::new(&["control", "first Mbit/s", "second", "Jain"]);
    for control in Control::ALL {
        let mut pair = Pair::new(control, [0.04, 0.04], 0.037);
        pair.run_until_s(200.0);
        let rates = pair.rates_mbps(60.0, 200.0);
        let index = jain(&rates);
        let [first, second] = rates.map(|rate| format!("{rate:.2}"));
        table.row(&[control.name().to_string(), first, second, format!("{index:.3}")]);
        assert!(rates[0] + rates[1] > 19.4, "{}: {rates:?}", control.name());
        // Multiplicative increase with multiplicative decrease does not converge (Chiu and Jain 1989).
        if control != Control::Scalable {
            assert!(index > 0.95, "{}: Jain's index {index}", control.name());
        }
    }
    insta::assert_snapshot!("fairness_same", table.text());
}

#[test]
fn a_flow_with_a_fifth_of_the_round_trip_gets_far_more_by_reno_and_little_more_by_cubic_and_htcp() {
    let mut table = Table::new(&["control", "20 ms Mbit/s", "100 ms", "ratio", "Jain"]);
    let mut ratios = Vec::new();
    for control in Control::ALL {
        let mut pair = Pair::new(control, [0.02, 0.1], 0.037);
        pair.run_until_s(200.0);
        let rates = pair.rates_mbps(60.0, 200.0);
        let [near, far] = rates.map(|rate| format!("{rate:.2}"));
        let ratio = rates[0] / rates[1];
        ratios.push(ratio);
        table.row(&[
            control.name().to_string(),
            near,
            far,
            format!("{ratio:.2}"),
            format!("{:.3}", jain(&rates)),
        ]);
        assert!(
            ratio > 0.9,
            "{}: the near flow gets {ratio} times the far one's",
            control.name()
        );
        assert!(rates[0] + rates[1] > 19.0, "{}: {rates:?}", control.name());
    }
    // H-TCP scales its growth to the round trip, CUBIC's does not depend on it, Reno's is one segment each.
    let [reno, cubic, htcp] = [ratios[0], ratios[1], ratios[2]];
    assert!(reno > 2.0 * cubic && reno > 2.0 * htcp, "{ratios:?}");
    insta::assert_snapshot!("fairness_rtt", table.text());
}

#[test]
fn a_late_flow_gets_its_share_in_time() {
    let mut table = Table::new(&["control", "0-20 s", "20-60 s", "60-160 s"]);
    for control in [Control::Reno, Control::Cubic, Control::Htcp, Control::HighSpeed] {
        let mut pair = Pair::new(control, [0.04, 0.04], 60.0);
        pair.run_until_s(220.0);
        let share = |from_s: f64, to_s: f64| {
            let rates = pair.rates_mbps(60.0 + from_s, 60.0 + to_s);
            rates[1] / (rates[0] + rates[1])
        };
        let shares = [share(0.0, 20.0), share(20.0, 60.0), share(60.0, 160.0)];
        assert!(
            pair.rates_mbps(20.0, 59.0)[1] == 0.0,
            "{}: nothing before its time",
            control.name()
        );
        assert!((0.4..0.6).contains(&shares[2]), "{}: {shares:?}", control.name());
        let mut row = vec![control.name().to_string()];
        row.extend(shares.map(|share| format!("{share:.3}")));
        table.row(&row);
    }
    insta::assert_snapshot!("fairness_late", table.text());
}
