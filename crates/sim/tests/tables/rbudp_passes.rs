//! Passes of a blast in the paper's way, against the computed distribution.

use farline_sim::ns;
use farline_sim::rbudp::formula::{mean_passes, whole_after};
use farline_sim::rbudp::{PACKET_BYTES, StreamConfig, Trial};
use farline_sim::scenario::Path;
use farline_sim::table::Table;

/// Passes of blasts of `packets`, one for each seed.
fn passes(packets: u64, loss: f64, blasts: u64) -> Vec<u32> {
    let one = |seed| {
        let mut path = Path::new(10_000_000_000, ns(0.01));
        path.seed = seed;
        if loss > 0.0 {
            path = path.loss(loss);
        }
        let config = StreamConfig::paper(packets * PACKET_BYTES as u64, 2_000_000_000, path.rtt_ns);
        let mut trial = Trial::new(&path, &config);
        trial.run_s(60.0);
        trial.blast().passes
    };
    (1..=blasts).map(one).collect()
}

/// Largest distance between the distribution of `passes` and the computed one (Kolmogorov and Smirnov).
fn distance(passes: &[u32], packets: u64, loss: f64) -> f64 {
    let share =
        |most: u32| passes.iter().filter(|&&count| count <= most).count() as f64 / passes.len() as f64;
    (1..60)
        .map(|most| (share(most) - whole_after(packets, loss, most)).abs())
        .fold(0.0, f64::max)
}

#[test]
fn passes_are_as_many_as_chance_asks_for() {
    let mut table = Table::new(&[
        "packets",
        "loss %",
        "blasts",
        "least",
        "mean",
        "most",
        "computed mean",
        "distance",
    ]);
    for (packets, blasts) in [(1_000, 60), (44_000, 30), (400_000, 6)] {
        for loss in [0.0, 0.01, 0.07, 0.33] {
            let passes = passes(packets, loss, blasts);
            let mean = f64::from(passes.iter().sum::<u32>()) / blasts as f64;
            let distance = distance(&passes, packets, loss);
            table.row(&[
                packets.to_string(),
                format!("{:.0}", 100.0 * loss),
                blasts.to_string(),
                passes.iter().min().map_or_else(String::new, u32::to_string),
                format!("{mean:.2}"),
                passes.iter().max().map_or_else(String::new, u32::to_string),
                format!("{:.2}", mean_passes(packets, loss)),
                format!("{distance:.3}"),
            ]);
            // What one sample in a hundred exceeds.
            assert!(
                distance < 1.63 / (blasts as f64).sqrt(),
                "{packets} packets, loss {loss}: {distance}"
            );
        }
    }
    insta::assert_snapshot!("rbudp_passes", table.text());
}
