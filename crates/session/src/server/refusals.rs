//! Refusals by where they come from: the first of an address one by one, more of them as one summary a period.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use farline_spec::Failure;
use farline_transport::Prefix;
use serde::Serialize;

/// How long refusals are counted before a summary tells of them.
pub const PERIOD: Duration = Duration::from_secs(10);
/// Refusals of one address in a period that are told one by one.
const TOLD: u32 = 10;
/// Addresses that are counted apart; then networks; then all others together.
const MOST_ADDRESSES: usize = 64;
const MOST_NETWORKS: usize = 64;

/// Refusals of one address or network that were not told one by one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RefusalSummary {
    /// An address, a network in the form `192.0.2.0/24`, or `other addresses`.
    pub from: String,
    /// How many.
    pub connections: u64,
    /// How many by the kind of the reason.
    pub reasons: BTreeMap<&'static str, u64>,
    /// From the first of them to now.
    pub period_s: f64,
    /// Why the latest was refused.
    pub error: Failure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Origin {
    Address(IpAddr),
    Network(Prefix),
    Others,
}

#[derive(Debug)]
struct Tally {
    since: Instant,
    told: u32,
    counted: BTreeMap<&'static str, u64>,
    latest: Option<Failure>,
}

impl Tally {
    fn new(now: Instant, told: u32) -> Self {
        Self {
            since: now,
            told,
            counted: BTreeMap::new(),
            latest: None,
        }
    }
}

/// Who was refused lately.
#[derive(Debug, Default)]
pub struct Refusals(HashMap<Origin, Tally>);

impl Refusals {
    /// Counts a refusal; true for one that is to be told by itself.
    pub fn note(&mut self, peer: SocketAddr, error: &Failure, now: Instant) -> bool {
        let origin = self.origin(peer.ip());
        let tally = self.0.entry(origin).or_insert_with(|| Tally::new(now, 0));
        if matches!(origin, Origin::Address(_)) && tally.told < TOLD {
            tally.told += 1;
            return true;
        }
        *tally.counted.entry(error.kind.word()).or_default() += 1;
        tally.latest = Some(error.clone());
        false
    }

    /// When the next summary is due.
    pub fn due(&self) -> Option<Instant> {
        self.0.values().map(|tally| tally.since + PERIOD).min()
    }

    /// The summaries of the periods that are over, of all with `all`. Who was counted goes on being counted.
    pub fn take(&mut self, now: Instant, all: bool) -> Vec<RefusalSummary> {
        let mut summaries = Vec::new();
        self.0.retain(|origin, tally| {
            if !all && now.saturating_duration_since(tally.since) < PERIOD {
                return true;
            }
            let Some(error) = tally.latest.take() else {
                return false;
            };
            let counted = std::mem::take(&mut tally.counted);
            summaries.push(RefusalSummary {
                from: origin.text(),
                connections: counted.values().sum(),
                reasons: counted,
                period_s: now.saturating_duration_since(tally.since).as_secs_f64(),
                error,
            });
            *tally = Tally::new(now, TOLD);
            true
        });
        summaries.sort_by(|one, other| one.from.cmp(&other.from));
        summaries
    }

    /// What a refusal of `address` counts for: as close a name as there is room for.
    fn origin(&self, address: IpAddr) -> Origin {
        let network = Origin::Network(Prefix::of_site(address));
        let address = Origin::Address(address);
        let count = |is_meant: fn(&Origin) -> bool| self.0.keys().filter(|origin| is_meant(origin)).count();
        if self.0.contains_key(&address)
            || count(|origin| matches!(origin, Origin::Address(_))) < MOST_ADDRESSES
        {
            address
        } else if self.0.contains_key(&network)
            || count(|origin| matches!(origin, Origin::Network(_))) < MOST_NETWORKS
        {
            network
        } else {
            Origin::Others
        }
    }
}

impl Origin {
    fn text(&self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Network(network) => network.to_string(),
            Self::Others => "other addresses".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::FailureKind;

    fn busy() -> Failure {
        Failure::new(FailureKind::Busy, "full")
    }

    fn peer(number: u32) -> SocketAddr {
        SocketAddr::from((std::net::Ipv4Addr::from(0x0a00_0000 + number), 7))
    }

    #[test]
    fn the_first_are_told_one_by_one_and_a_flood_as_one_line_a_period() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let late = Failure::new(FailureKind::Timeout, "late");
        let told = (0..1000).filter(|_| refusals.note(peer(1), &busy(), now)).count();
        assert_eq!(told, 10);
        assert!(!refusals.note(peer(1), &late, now));
        assert_eq!(refusals.take(now + PERIOD / 2, false), []);
        assert_eq!(refusals.due(), Some(now + PERIOD));
        let summaries = refusals.take(now + PERIOD, false);
        let [one] = &summaries[..] else {
            panic!("{summaries:?}")
        };
        assert_eq!(
            (one.from.as_str(), one.connections, one.period_s),
            ("10.0.0.1", 991, 10.0)
        );
        assert_eq!(one.reasons, BTreeMap::from([("busy", 990), ("timeout", 1)]));
        assert_eq!(one.error, late);
        assert!(
            !refusals.note(peer(1), &busy(), now + PERIOD),
            "a flood that goes on is only counted"
        );
        assert_eq!(refusals.take(now + 2 * PERIOD, false).len(), 1);
        assert_eq!(refusals.take(now + 3 * PERIOD, false), []);
        assert!(refusals.note(peer(1), &busy(), now + 3 * PERIOD), "it was over");
    }

    #[test]
    fn a_flood_from_everywhere_costs_bounded_memory_and_lines() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        let told = (0..100_000u32)
            .filter(|number| refusals.note(peer(number * 13), &busy(), now))
            .count();
        assert!(
            told <= MOST_ADDRESSES * TOLD as usize && refusals.0.len() <= MOST_ADDRESSES + MOST_NETWORKS + 1
        );
        let summaries = refusals.take(now, true);
        let counted: u64 = summaries.iter().map(|summary| summary.connections).sum();
        assert_eq!(counted + told as u64, 100_000, "nobody is forgotten");
        assert!(summaries.iter().any(|summary| summary.from.ends_with(".0/24")));
        assert!(summaries.iter().any(|summary| summary.from == "other addresses"));
    }
}
