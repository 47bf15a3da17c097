//! Several UDT flows over one bottleneck, and one beside TCP.

use farline_sim::formula::jain;
use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::tcp::control::Control;
use farline_sim::tcp::{self, SenderConfig};
use farline_sim::udt::{End, Flow, FlowConfig};
use farline_sim::{Either, World, ns};
use farline_spec::UdtControl;

const RATE_BPS: u64 = 200_000_000;
const SEGMENT_BYTES: u32 = 1500;
/// The controls that share; a fixed rate does not.
const CONTROLS: [UdtControl; 3] = [UdtControl::Bbr, UdtControl::Native, UdtControl::Reno];

/// Flows of one control over a path with a queue of one bandwidth-delay product of the longest round trip.
struct Group {
    world: World<End>,
    flows: Vec<Flow>,
}

impl Group {
    fn new(control: UdtControl, rtts_s: &[f64], starts_s: &[f64]) -> Self {
        let base_s = rtts_s.iter().copied().fold(f64::INFINITY, f64::min);
        let most_s = rtts_s.iter().copied().fold(0.0, f64::max);
        let path = Path::new(RATE_BPS, ns(base_s)).queue_bytes((RATE_BPS as f64 * most_s / 8.0) as u64);
        let access: Vec<u64> = rtts_s.iter().map(|rtt_s| ns(rtt_s - base_s)).collect();
        let mut world = World::new(&path.dumbbell(&access), ns(0.1)).expect("a topology that holds together");
        let flows = (0..rtts_s.len())
            .map(|index| {
                let config = FlowConfig {
                    start_ns: ns(starts_s[index]),
                    seed: 1 + index as u64,
                    ..FlowConfig::endless(control)
                };
                Flow::open(&mut world, 2 * index, 2 * index + 1, &config)
            })
            .collect();
        Self { world, flows }
    }

    fn run_until_s(&mut self, end_s: f64) {
        self.world
            .run_until(ns(end_s))
            .expect("no packet unaccounted for");
        for flow in &self.flows {
            assert_eq!(self.world.endpoint(flow.receiver).figures().wrong, 0);
        }
    }

    /// Mbit/s of each flow on the wire, repetitions left out.
    fn rates_mbps(&self, from_s: f64, to_s: f64) -> Vec<f64> {
        let samples = self.world.samples();
        let rate = |flow: &Flow| samples.delivery_rate(flow.receiver, ns(from_s), ns(to_s));
        let wire_bits = f64::from(SEGMENT_BYTES + 38) * 8.0;
        self.flows
            .iter()
            .map(|flow| rate(flow) * wire_bits / 1e6)
            .collect()
    }
}

fn rates_text(rates: &[f64]) -> String {
    let rates: Vec<String> = rates.iter().map(|rate| format!("{rate:.1}")).collect();
    rates.join(" ")
}

#[test]
fn flows_of_one_control_share_alike() {
    let mut table = Table::new(&["control", "flows", "Mbit/s", "sum", "Jain"]);
    for control in CONTROLS {
        for flows in [2, 4] {
            let starts: Vec<f64> = (0..flows).map(|index| 0.37 * f64::from(index)).collect();
            let mut group = Group::new(control, &vec![0.04; flows as usize], &starts);
            group.run_until_s(100.0);
            let rates = group.rates_mbps(40.0, 100.0);
            let (sum, index) = (rates.iter().sum::<f64>(), jain(&rates));
            table.row(&[
                control.word().to_string(),
                flows.to_string(),
                rates_text(&rates),
                format!("{sum:.1}"),
                format!("{index:.3}"),
            ]);
            assert!(sum > 0.9 * 200.0, "{}: {rates:?}", control.word());
            if control == UdtControl::Bbr {
                assert!(index > 0.9, "{}: {rates:?}", control.word());
            }
        }
    }
    insta::assert_snapshot!("udt_fairness_same", table.text());
}

#[test]
fn a_flow_with_a_quarter_of_the_round_trip_leaves_the_other_a_share() {
    let mut table = Table::new(&["control", "20 ms Mbit/s", "80 ms", "ratio", "Jain"]);
    for control in CONTROLS {
        let mut group = Group::new(control, &[0.02, 0.08], &[0.0, 0.37]);
        group.run_until_s(120.0);
        let rates = group.rates_mbps(40.0, 120.0);
        table.row(&[
            control.word().to_string(),
            format!("{:.1}", rates[0]),
            format!("{:.1}", rates[1]),
            format!("{:.2}", rates[0] / rates[1]),
            format!("{:.3}", jain(&rates)),
        ]);
        assert!(
            rates[0] > 10.0 && rates[1] > 10.0,
            "{}: {rates:?}",
            control.word()
        );
    }
    insta::assert_snapshot!("udt_fairness_rtt", table.text());
}

#[test]
fn a_late_flow_gets_a_share_in_time() {
    let mut table = Table::new(&["control", "0-10 s", "10-30 s", "30-90 s"]);
    for control in CONTROLS {
        let mut group = Group::new(control, &[0.04, 0.04], &[0.0, 30.0]);
        group.run_until_s(120.0);
        let share = |from_s: f64, to_s: f64| {
            let rates = group.rates_mbps(30.0 + from_s, 30.0 + to_s);
            rates[1] / (rates[0] + rates[1])
        };
        let shares = [share(0.0, 10.0), share(10.0, 30.0), share(30.0, 90.0)];
        let mut row = vec![control.word().to_string()];
        row.extend(shares.map(|share| format!("{share:.3}")));
        table.row(&row);
        assert!(
            (0.15..0.85).contains(&shares[2]),
            "{}: {shares:?}",
            control.word()
        );
    }
    insta::assert_snapshot!("udt_fairness_late", table.text());
}

type Both = Either<tcp::End, End>;

fn udt_end(end: &mut Both) -> Option<&mut End> {
    match end {
        Either::Left(_) => None,
        Either::Right(end) => Some(end),
    }
}

/// Share of a UDT flow beside one of TCP CUBIC.
fn share_beside_cubic(control: UdtControl, queue_bdp: f64) -> (f64, f64) {
    let path = Path::new(RATE_BPS, ns(0.04)).queue_bdp(queue_bdp);
    let mut world: World<Both> =
        World::new(&path.dumbbell(&[0, 0]), ns(0.1)).expect("a topology that holds together");
    let receiver = world.add(1, Either::Left(tcp::End::Receiver(tcp::Receiver::new())));
    let sender = tcp::Sender::new(
        receiver,
        SenderConfig::endless(SEGMENT_BYTES),
        Control::Cubic.build(),
    );
    let sender = world.add(0, Either::Left(tcp::End::Sender(Box::new(sender))));
    let config = FlowConfig {
        start_ns: ns(5.0),
        ..FlowConfig::endless(control)
    };
    let flow = Flow::open_in(&mut world, [2, 3], &config, Either::Right, udt_end);
    world.run_until(ns(120.0)).expect("no packet unaccounted for");
    let rate = |id| world.samples().delivery_rate(id, ns(40.0), ns(120.0));
    let (udt, cubic) = (rate(flow.receiver), rate(sender));
    let used = (udt + cubic) / path.packets_per_s(SEGMENT_BYTES);
    (udt / (udt + cubic), used)
}

#[test]
fn beside_cubic_neither_starves() {
    let mut table = Table::new(&["control", "queue BDP", "share of UDT", "used"]);
    for control in CONTROLS {
        for queue_bdp in [0.25, 1.0, 4.0] {
            let (share, used) = share_beside_cubic(control, queue_bdp);
            table.row(&[
                control.word().to_string(),
                queue_bdp.to_string(),
                format!("{share:.3}"),
                format!("{used:.3}"),
            ]);
            if control != UdtControl::Native {
                assert!(
                    (0.03..0.97).contains(&share),
                    "{}, queue {queue_bdp}: {share}",
                    control.word()
                );
            }
            assert!(used > 0.85, "{}, queue {queue_bdp}: {used} used", control.word());
        }
    }
    insta::assert_snapshot!("udt_fairness_cubic", table.text());
}
