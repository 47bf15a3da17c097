//! A set is the same after a journey, and never longer than it must be.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const MAX: u32 = 3_000;

fn of(numbers: &BTreeSet<u32>) -> PacketSet {
    PacketSet::from_unsorted(numbers.iter().map(|&number| (number, 1)).collect())
}

fn journey(set: &PacketSet, max_packets: u32) -> Option<PacketSet> {
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    PacketSet::decode(&bytes, max_packets)
}

fn encoded_bytes(set: &PacketSet) -> usize {
    let mut bytes = Vec::new();
    set.encode(&mut bytes);
    bytes.len()
}

#[test]
fn runs_that_do_not_ascend_are_no_set() {
    assert!(PacketSet::from_runs([(0, 0)]).is_none());
    assert!(PacketSet::from_runs([(5, 1), (4, 1)]).is_none());
    assert!(
        PacketSet::from_runs([(5, 1), (6, 1)]).is_none(),
        "these two are one"
    );
    assert!(PacketSet::from_runs([(u32::MAX, 1)]).is_none());
    let set = PacketSet::from_runs([(5, 2), (8, 1)]).unwrap();
    assert_eq!(
        (set.len(), set.end(), set.iter().collect::<Vec<_>>()),
        (3, 9, vec![5, 6, 8])
    );
}

#[test]
fn a_report_of_one_loss_takes_a_few_bytes_and_of_half_of_all_a_bitmap() {
    assert_eq!(encoded_bytes(&PacketSet::default()), 1);
    let one = PacketSet::from_runs([(1_300_000, 1)]).unwrap();
    assert!(encoded_bytes(&one) <= 5);
    let all = PacketSet::from_runs([(0, 1_400_000)]).unwrap();
    assert!(encoded_bytes(&all) <= 5);
    let half = PacketSet::from_runs((0..700_000).map(|index| (2 * index, 1))).unwrap();
    assert!(encoded_bytes(&half) <= 1_400_000 / 8 + 3);
    assert_eq!(journey(&half, 1_400_000), Some(half));
}

#[test]
fn a_packet_past_the_blast_is_not_taken() {
    for (first, count) in [(MAX, 1), (MAX - 1, 2), (0, MAX + 1), (u32::MAX - 9, 9)] {
        let set = PacketSet::from_runs([(first, count)]).unwrap();
        assert_eq!(journey(&set, MAX), None);
    }
    let set = PacketSet::from_runs((0..MAX / 2).map(|index| (2 * index + 1, 1))).unwrap();
    assert_eq!(journey(&set, MAX - 1), None, "a bitmap too");
}

proptest! {
    #[test]
    fn any_set_survives_the_journey(numbers in prop::collection::btree_set(0..MAX, 0..MAX as usize)) {
        let set = of(&numbers);
        prop_assert!(set.iter().eq(numbers.iter().copied()));
        prop_assert_eq!(set.len(), numbers.len() as u64);
        prop_assert_eq!(PacketSet::from_runs(set.runs().iter().copied()), Some(set.clone()));
        prop_assert!(encoded_bytes(&set) <= PacketSet::most_encoded_bytes(MAX));
        prop_assert_eq!(journey(&set, MAX), Some(set));
    }

    #[test]
    fn runs_in_any_order_that_touch_or_overlap_are_one_set(runs in prop::collection::vec((0u32..200, 1u32..20), 0..30)) {
        let numbers: BTreeSet<u32> = runs.iter().flat_map(|&(first, count)| first..first + count).collect();
        prop_assert_eq!(PacketSet::from_unsorted(runs), of(&numbers));
    }

    #[test]
    fn any_bytes_are_a_set_below_the_limit_or_none(bytes in prop::collection::vec(any::<u8>(), 0..60), max in 0u32..500) {
        if let Some(set) = PacketSet::decode(&bytes, max) {
            prop_assert!(set.end() <= max);
            prop_assert!(encoded_bytes(&set) <= PacketSet::most_encoded_bytes(max));
            prop_assert_eq!(journey(&set, max), Some(set));
        }
    }
}
