//! What is expected is what comes, where nothing is lost, and mostly where something is.

use super::*;
use proptest::prelude::*;

fn receiver(in_flight: u32, payload_bytes: u64) -> Receiver {
    Receiver::new(ReceiverOptions {
        packet_bytes: 100,
        payload_bytes,
        in_flight,
        settle_ns: MS,
        checksum: false,
    })
}

fn expected(receiver: &Receiver, most: usize) -> (u32, Vec<u32>) {
    let mut packets = vec![99];
    (receiver.expected(most, &mut packets), packets)
}

#[test]
fn in_order_every_packet_is_expected() {
    let mut receiver = receiver(2, 1_000);
    for blast in 0..2 {
        for packet in 0..10 {
            assert_eq!(expected(&receiver, 1), (blast, vec![packet]));
            receiver.note(0, blast, packet, 100, 0);
        }
    }
    assert_eq!(
        expected(&receiver, 4).1,
        Vec::<u32>::new(),
        "nothing can come before a slot is free"
    );
}

#[test]
fn gaps_are_expected_upwards_after_the_first_of_them() {
    let mut receiver = receiver(1, 1_000);
    for packet in [0, 1, 4, 5, 6, 9] {
        receiver.note(0, 0, packet, 100, 0);
    }
    assert_eq!(
        expected(&receiver, 8),
        (0, vec![2, 3, 7, 8]),
        "the blast has been gone through"
    );
    receiver.note(0, 0, 3, 100, 0);
    assert_eq!(expected(&receiver, 8), (0, vec![7, 8]));
}

#[test]
fn after_the_gaps_of_an_old_blast_the_new_one_goes_on() {
    let mut receiver = receiver(3, 1_000);
    for (blast, packet) in [(0, 0), (0, 9), (1, 0), (1, 1), (0, 1)] {
        receiver.note(0, blast, packet, 100, 0);
    }
    assert_eq!(expected(&receiver, 2), (0, vec![2, 3]));
    for packet in 2..9 {
        receiver.note(0, 0, packet, 100, 0);
    }
    assert_eq!(expected(&receiver, 2), (1, vec![2, 3]));
}

proptest! {
    #[test]
    fn what_is_expected_is_missing_and_of_full_size(came in prop::collection::vec((0u32..3, 0u32..9, any::<bool>()), 0..40), most in 1usize..20) {
        let mut receiver = receiver(3, 850);
        for (blast, packet, is_short) in came {
            receiver.note(0, blast, packet, if is_short { 50 } else { 100 }, 0);
            let (blast, packets) = expected(&receiver, most);
            prop_assert!(packets.len() <= most);
            prop_assert!(packets.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert!(packets.iter().all(|&packet| receiver.look(blast, packet, 100) == Arrival::Fresh));
        }
    }
}
