//! The paper's way: one DONE and one report for each pass, and as many passes as chance asks for.

use super::*;

const PACKETS: u32 = 4_000;

/// Passes that one blast takes at a loss share, in the paper's way.
fn passes(loss: f64, seed: u64) -> (u32, usize) {
    let path = Path {
        loss,
        seed,
        ..Path::default()
    };
    let paper = SenderOptions {
        packet_bytes: 1,
        payload_bytes: u64::from(PACKETS),
        in_flight: 1,
        early: false,
        rate_bps: 10_000_000,
        ..options(&path)
    };
    let mut world = World::new(path, paper, PACKETS as usize);
    world.run();
    let blast = world.sender.poll_blast().unwrap();
    let stated: std::collections::BTreeSet<_> = world
        .marks
        .iter()
        .map(|(_, done, _)| (done.upto, done.served))
        .collect();
    (blast.passes, stated.len())
}

/// Share of blasts that are whole after `passes`: each packet is lost in all of them with probability loss^passes
/// (facts: He et al. 2002 equation 5 as a distribution).
fn whole_after(loss: f64, passes: u32) -> f64 {
    (1.0 - loss.powi(passes as i32)).powi(PACKETS as i32)
}

#[test]
fn the_number_of_passes_follows_the_computed_distribution() {
    const RUNS: u32 = 150;
    for loss in [0.01, 0.07, 0.33] {
        let counts: Vec<u32> = (0..u64::from(RUNS))
            .map(|seed| passes(loss, 1_000 + seed).0)
            .collect();
        // Kolmogorov-Smirnov: the largest distance between the two distributions, 1 % level.
        let distance = (1..40).map(|most| {
            let share = counts.iter().filter(|&&count| count <= most).count() as f64 / f64::from(RUNS);
            (share - whole_after(loss, most)).abs()
        });
        let largest = distance.fold(0.0, f64::max);
        assert!(largest < 1.63 / f64::from(RUNS).sqrt(), "loss {loss}: {largest}");
    }
}

#[test]
fn there_is_one_statement_for_each_pass() {
    for seed in 0..20 {
        let (passes, statements) = passes(0.2, seed);
        assert_eq!(statements, passes as usize);
    }
}
