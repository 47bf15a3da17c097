//! How much a queue holds.

use farline_spec::QueueSpec;
use farline_spec::unit::{QueueBdp, QueueBytes};

/// Without a stated capacity a queue holds at least so many nanoseconds of its rate,
const FLOOR_NS: u64 = 10_000_000;
/// and at least so many bytes.
const FLOOR_BYTES: u64 = 150_000;

/// Limits of a queue: the smallest of those stated. One in bandwidth-delay products follows the link's rate and delays.
///
/// Without any it is one product, and at least ten milliseconds of the rate and 150 KB. The same floor holds for a stated
/// number of products if the round trip is 0; otherwise such a queue holds at least one packet of the MTU.
#[derive(Debug)]
pub(super) struct Capacity {
    bytes: Option<u64>,
    packets: Option<u64>,
    products_ppm: Option<u64>,
    limit_bytes: u64,
}

impl Capacity {
    pub(super) fn new(spec: &QueueSpec) -> Self {
        Self {
            bytes: spec.capacity_bytes.map(|bytes| bytes.get()),
            packets: spec.capacity_packets.map(|packets| packets.get()),
            products_ppm: spec.capacity_bdp.map(parts_per_million),
            limit_bytes: u64::MAX,
        }
    }

    /// States the capacity in bytes, in products or in both, in the place of what was stated in either.
    pub(super) fn state(&mut self, bytes: Option<QueueBytes>, products: Option<QueueBdp>) {
        self.bytes = bytes.map(QueueBytes::get);
        self.products_ppm = products.map(parts_per_million);
    }

    /// Works out the limit for a rate, the round trip of the link and its largest packet.
    pub(super) fn follow(&mut self, rate_bps: u64, round_trip_ns: u64, packet_bytes: u64) {
        let stated = self.bytes.unwrap_or(u64::MAX);
        self.limit_bytes = stated.min(match (rate_bps, self.products_ppm) {
            (0, _) => u64::MAX,
            (_, Some(ppm)) if round_trip_ns > 0 => product(rate_bps, round_trip_ns, ppm).max(packet_bytes),
            (_, Some(ppm)) => product(rate_bps, FLOOR_NS, ppm).max(FLOOR_BYTES),
            (_, None) if self.bytes.is_some() || self.packets.is_some() => u64::MAX,
            (_, None) => product(rate_bps, round_trip_ns.max(FLOOR_NS), 1_000_000).max(FLOOR_BYTES),
        });
    }

    /// Bytes on the wire that the queue holds.
    pub(super) fn bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Packets that the queue holds.
    pub(super) fn packets(&self) -> u64 {
        self.packets.unwrap_or(u64::MAX)
    }
}

fn parts_per_million(products: QueueBdp) -> u64 {
    (products.get() * 1e6).round() as u64
}

/// Bytes that a rate carries in a time, times parts per million.
fn product(rate_bps: u64, time_ns: u64, ppm: u64) -> u64 {
    let bits_e15 = u128::from(rate_bps) * u128::from(time_ns) * u128::from(ppm);
    u64::try_from(bits_e15 / 8_000_000_000_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use farline_spec::unit::QueuePackets;

    use super::*;

    const GIGABIT: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    fn limit(spec: &QueueSpec, rate_bps: u64, round_trip_ns: u64) -> u64 {
        let mut capacity = Capacity::new(spec);
        capacity.follow(rate_bps, round_trip_ns, 1538);
        capacity.bytes()
    }

    fn products(bdp: f64) -> QueueSpec {
        QueueSpec {
            capacity_bdp: Some(QueueBdp::new(bdp).unwrap()),
            ..QueueSpec::default()
        }
    }

    #[test]
    fn the_default_is_one_product_with_a_floor() {
        let none = QueueSpec::default();
        assert_eq!(limit(&none, 10 * GIGABIT, 100 * MS), 125_000_000);
        assert_eq!(limit(&none, GIGABIT, 2 * MS), 1_250_000, "ten milliseconds");
        assert_eq!(limit(&none, GIGABIT / 100, 0), 150_000);
        assert_eq!(limit(&none, 0, 100 * MS), u64::MAX);
    }

    #[test]
    fn stated_products_have_the_floor_only_without_a_round_trip() {
        assert_eq!(limit(&products(0.25), GIGABIT, 4 * MS), 125_000);
        assert_eq!(limit(&products(0.001), GIGABIT, MS), 1538, "one packet");
        assert_eq!(limit(&products(2.0), GIGABIT, 0), 2_500_000);
        assert_eq!(limit(&products(0.25), GIGABIT / 100, 0), 150_000);
    }

    #[test]
    fn the_smallest_of_those_stated_holds() {
        let both = QueueSpec {
            capacity_bytes: Some(QueueBytes::new(100_000).unwrap()),
            ..products(1.0)
        };
        assert_eq!(limit(&both, GIGABIT, 10 * MS), 100_000);
        assert_eq!(
            limit(&both, GIGABIT / 1000, 10 * MS),
            1_538,
            "1,250 bytes are less than a packet"
        );
        let packets = QueueSpec {
            capacity_packets: Some(QueuePackets::new(10).unwrap()),
            ..QueueSpec::default()
        };
        assert_eq!(
            limit(&packets, GIGABIT, 10 * MS),
            u64::MAX,
            "only packets are limited"
        );
    }

    #[test]
    fn what_is_stated_later_replaces_bytes_and_products() {
        let mut capacity = Capacity::new(&products(1.0));
        capacity.state(QueueBytes::new(9_000_000).ok(), None);
        capacity.follow(GIGABIT, MS, 1538);
        assert_eq!(capacity.bytes(), 9_000_000);
        capacity.state(None, QueueBdp::new(0.25).ok());
        capacity.follow(GIGABIT, 0, 1538);
        assert_eq!(capacity.bytes(), 312_500, "a quarter of ten milliseconds");
        capacity.follow(GIGABIT, 100 * MS, 1538);
        assert_eq!(capacity.bytes(), 3_125_000);
    }
}
