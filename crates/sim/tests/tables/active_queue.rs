//! CoDel against a drop-tail queue: delay and use of the path.

use farline_sim::scenario::Path;
use farline_sim::table::Table;
use farline_sim::tcp::SenderConfig;
use farline_sim::tcp::control::Control;
use farline_sim::{ns, seconds};
use farline_spec::QueueDiscipline;

use crate::run::{Alone, FORWARD, SEGMENT_BYTES, assert_close};

const RATE_BPS: u64 = 20_000_000;

struct Queue {
    name: &'static str,
    discipline: QueueDiscipline,
    ecn: bool,
}

const QUEUES: [Queue; 3] = [
    Queue {
        name: "drop-tail",
        discipline: QueueDiscipline::DropTail,
        ecn: false,
    },
    Queue {
        name: "codel",
        discipline: QueueDiscipline::Codel,
        ecn: false,
    },
    Queue {
        name: "codel ecn",
        discipline: QueueDiscipline::Codel,
        ecn: true,
    },
];

/// Mean delay in the queue, share of the rate used, the flow as it ended.
fn run(queue: &Queue, control: Control) -> (f64, f64, Alone) {
    let mut path = Path::new(RATE_BPS, ns(0.05)).queue_bdp(2.0);
    path.forward.queue.discipline = queue.discipline;
    path.forward.queue.ecn = queue.ecn;
    let config = SenderConfig {
        ecn: queue.ecn,
        train_segments: 2,
        ..SenderConfig::endless(SEGMENT_BYTES)
    };
    let mut alone = Alone::new(&path, control.build(), config);
    alone.run_until_s(200.0);
    let backlog = alone.world.samples().mean_backlog_bytes(FORWARD, ns(50.0));
    (backlog * 8.0 / RATE_BPS as f64, alone.used(50.0, 200.0), alone)
}

#[test]
fn codel_keeps_the_queue_short_where_drop_tail_fills_it() {
    let mut table = Table::new(&[
        "queue",
        "control",
        "mean wait ms",
        "used %",
        "tail drops",
        "CoDel drops",
        "marked",
    ]);
    for control in [Control::Reno, Control::Cubic] {
        let mut waits_s = Vec::new();
        for queue in &QUEUES {
            let (wait_s, used, alone) = run(queue, control);
            let counters = alone.world.counters(FORWARD);

            table.row(&[
                queue.name.to_string(),
                control.name().to_string(),
                format!("{:.2}", 1000.0 * wait_s),
                format!("{:.1}", 100.0 * used),
                counters.tail_drop_packets.to_string(),
                counters.codel_drop_packets.to_string(),
                counters.ecn_marked_packets.to_string(),
            ]);
            assert!(
                queue.ecn == (counters.ecn_marked_packets > 0),
                "{}: marks",
                queue.name
            );
            assert!(
                used > 0.75,
                "{} {}: {used} of the rate",
                queue.name,
                control.name()
            );
            waits_s.push(wait_s);
        }
        // Two bandwidth-delay products are 100 ms. Reno's window swings between one and a half and three of them, W / rate
        // per round trip: the mean over time is 2/3 (27 - 27/8) / (9 - 9/4) = 2.33, of which one is on the way.
        assert!(
            (0.05..0.1).contains(&waits_s[0]),
            "drop-tail waits {} s",
            waits_s[0]
        );
        if control == Control::Reno {
            assert_close(
                "mean wait before a drop-tail queue",
                waits_s[0],
                0.05 * 4.0 / 3.0,
                0.05,
            );
        }
        for wait_s in &waits_s[1..] {
            assert!(
                *wait_s < 0.015 && *wait_s < waits_s[0] / 4.0,
                "CoDel waits {wait_s} s"
            );
        }
    }
    insta::assert_snapshot!("active_queue", table.text());
}

#[test]
fn marks_replace_drops_and_nothing_is_sent_again() {
    let (_, _, alone) = run(&QUEUES[2], Control::Reno);
    let steady: Vec<_> = alone.congestions(50.0);
    assert!(steady.len() > 10, "{} reductions", steady.len());
    let gaps_s: Vec<f64> = steady
        .windows(2)
        .map(|pair| seconds(pair[1].at_ns - pair[0].at_ns))
        .collect();
    assert!(
        gaps_s.iter().all(|gap_s| *gap_s > 0.05),
        "at most one reduction per round trip"
    );
}
