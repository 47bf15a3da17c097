//! What a server may change about a run that was asked for.

use farline_spec::unit::RateBps;
use farline_spec::{Failure, FailureKind, RunSpec};

/// Refuses a grant that differs from what was asked for in anything but lower rates.
pub fn check_grant(asked: &RunSpec, granted: &RunSpec) -> Result<(), Failure> {
    let total = |spec: &RunSpec| spec.copy.as_ref().and_then(|copy| copy.total_rate_bps);
    let mut at_the_same_rates = RunSpec {
        rate_bps: asked.rate_bps,
        ..granted.clone()
    };
    if let Some(copy) = &mut at_the_same_rates.copy {
        copy.total_rate_bps = total(asked);
    }
    let rates = [(asked.rate_bps, granted.rate_bps), (total(asked), total(granted))];
    if at_the_same_rates == *asked && rates.into_iter().all(is_same_or_lower) {
        return Ok(());
    }
    let line = "agreeing on options: the server changed the requested run; only the rate may be lower";
    Err(Failure::new(FailureKind::Protocol, line))
}

/// Whether `granted` is no more than `asked`; 0 and nothing are without limit.
fn is_same_or_lower((asked, granted): (Option<RateBps>, Option<RateBps>)) -> bool {
    let rate = |rate: Option<RateBps>| rate.map_or(0, RateBps::get);
    let lower = rate(granted) != 0 && (rate(asked) == 0 || rate(granted) < rate(asked));
    lower || granted == asked
}
