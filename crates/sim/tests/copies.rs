//! Copies that break off anywhere, ten thousand of them; at night ten times as many. A failure names its seed.

use farline_sim::copy::{self, Careless, Figures};

/// Trials of one test.
fn trials() -> u64 {
    match std::env::var_os("FARLINE_LONG") {
        Some(_) => 100_000,
        None => 10_000,
    }
}

fn all(run: impl Fn(u64) -> Result<Figures, String>) -> Figures {
    let mut sum = Figures::default();
    let mut wrong = Vec::new();
    for seed in 0..trials() {
        match run(seed) {
            Ok(figures) => sum.add(&figures),
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    let first = wrong.iter().take(5).map(String::as_str).collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{} trials\n{}", wrong.len(), first.join("\n"));
    sum
}

#[test]
fn no_name_without_its_content_and_no_proof_that_is_wrong_wherever_a_copy_breaks_off() {
    let sum = all(copy::run);
    // Of each kind there were many.
    let least = trials() / 10;
    let each = [sum.finished, sum.killed, sum.power_cuts, sum.left, sum.failed];
    assert!(each.iter().all(|count| *count > least), "{sum:?}");
}

#[test]
fn whatever_the_other_end_says_nothing_gets_a_name_without_its_content_and_it_ends() {
    let sum = all(copy::run_hostile);
    assert!(sum.failed > trials() / 10 && sum.finished > 0, "{sum:?}");
}

#[test]
fn a_driver_that_is_careless_is_found_out() {
    for careless in [
        Careless::Names,
        Careless::Journal,
        Careless::Writes,
        Careless::Looks,
    ] {
        let found = (0..2_000).find_map(|seed| copy::run_careless(seed, careless).err());
        let why = found.unwrap_or_else(|| panic!("{careless:?} is not found out"));
        let expected = match careless {
            Careless::Names => "before it is on the device",
            Careless::Journal => "is said to be proved and is not there",
            Careless::Looks => "with content that is not its own",
            Careless::Nowhere | Careless::Writes => "",
        };
        assert!(why.contains(expected), "{careless:?}: {why}");
    }
}

#[test]
fn a_seed_is_one_trial() {
    assert_eq!(copy::run(11), copy::run(11));
}
