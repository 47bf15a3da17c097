//! What writers of messages can rely on, above all when their time is over.

use std::collections::BTreeSet;

use super::*;

#[test]
fn a_message_goes_whole_or_not_at_all_with_its_boundaries() {
    let mut buffer = messages(10);
    assert_eq!(buffer.write(b"not a stream"), 0);
    assert!(buffer.write_message(&[0; 250], true, None));
    assert!(buffer.write_message(&[0; 101], false, None));
    assert!(buffer.write_message(&[0; 100], false, None));
    assert!(buffer.write_message(&[], false, None));
    assert!(
        !buffer.write_message(&[0; 401], false, None),
        "four packets are free"
    );
    let seen: Vec<_> = headers(&mut buffer)
        .into_iter()
        .map(|(header, length)| {
            (
                header.message.boundary(),
                header.message.in_order(),
                header.message.number(),
                length,
            )
        })
        .collect();
    let want = [
        (Boundary::First, true, 1, 100),
        (Boundary::Middle, true, 1, 100),
        (Boundary::Last, true, 1, 50),
        (Boundary::First, false, 2, 100),
        (Boundary::Last, false, 2, 1),
        (Boundary::Only, false, 3, 100),
    ];
    assert_eq!(seen, want);
    assert!(!stream(10).write_message(&[0; 5], false, None));
}

#[test]
fn message_numbers_go_back_to_one() {
    let mut buffer = messages(10);
    buffer.next_message = write::LAST_MESSAGE;
    buffer.write_message(&[0; 1], false, None);
    buffer.write_message(&[0; 1], false, None);
    let numbers: Vec<_> = headers(&mut buffer)
        .iter()
        .map(|(header, _)| header.message.number())
        .collect();
    assert_eq!(numbers, [(1 << 29) - 1, 1]);
}

#[test]
fn a_message_whose_time_is_over_is_dropped_instead_of_repeated() {
    let mut buffer = messages(100);
    buffer.write_message(&[0; 300], false, None);
    buffer.write_message(&[0; 500], false, Some(100 * US));
    buffer.write_message(&[0; 100], false, None);
    send_all(&mut buffer, 0);
    buffer.acknowledge(4);
    buffer.mark_lost(5, 8, 90 * US, 0);
    assert_eq!(buffer.take_dropped(99 * US), None);
    assert_eq!(
        buffer.take_dropped(100 * US),
        Some(Dropped {
            message: 2,
            first: 3,
            last: 7
        })
    );
    assert_eq!(buffer.take_dropped(100 * US), None);
    assert_eq!(send_all(&mut buffer, 100 * US), [(8, 1, true)]);
    assert_eq!(
        buffer.acked(),
        4,
        "the peer's acknowledgement passes them, nothing else"
    );

    // The receiver did not hear of it.
    assert_eq!(buffer.mark_lost(4, 7, 150 * US, 100 * US), 0);
    assert_eq!(buffer.mark_lost(4, 7, 200 * US, 100 * US), 4);
    assert_eq!(send_all(&mut buffer, 200 * US), []);
    assert_eq!(
        buffer.take_dropped(200 * US),
        Some(Dropped {
            message: 2,
            first: 3,
            last: 7
        })
    );
    assert_eq!(
        buffer.acknowledge(8),
        Acked {
            packets: 4,
            sent_ns: None
        }
    );
    assert_eq!(buffer.acknowledge(9).packets, 1);
}

#[test]
fn a_message_that_was_not_begun_in_time_is_passed_by() {
    let mut buffer = messages(100);
    buffer.write_message(&[0; 300], false, Some(100 * US));
    buffer.write_message(&[0; 500], false, Some(100 * US));
    buffer.write_message(&[0; 100], false, Some(900 * US));
    buffer.next_burst(0, 0, 1, u64::MAX);
    // The first one was begun and goes on; the second one is passed by as far as the limit allows.
    assert_eq!(
        buffer
            .next_burst(200 * US, 0, 9, 5)
            .map(|burst| (burst.first, burst.packets)),
        Some((1, 2))
    );
    assert!(buffer.next_burst(200 * US, 0, 9, 5).is_none());
    assert_eq!(
        buffer.take_dropped(200 * US),
        Some(Dropped {
            message: 2,
            first: 3,
            last: 4
        })
    );
    assert_eq!((buffer.sent(), buffer.unsent_bytes()), (5, 400));
    assert_eq!(send_all(&mut buffer, 200 * US), [(8, 1, false)]);
    assert_eq!(
        buffer.take_dropped(200 * US),
        Some(Dropped {
            message: 2,
            first: 5,
            last: 7
        })
    );
    assert_eq!((buffer.sent(), buffer.unsent_bytes()), (9, 0));
}

#[test]
fn of_a_message_dropped_halfway_the_rest_does_not_go() {
    let mut buffer = messages(100);
    buffer.write_message(&[0; 1_000], false, Some(100 * US));
    buffer.next_burst(0, 0, 4, u64::MAX);
    buffer.mark_lost(0, 0, 50 * US, 0);
    assert_eq!(send_all(&mut buffer, 100 * US), []);
    assert_eq!(
        buffer.take_dropped(100 * US),
        Some(Dropped {
            message: 1,
            first: 0,
            last: 9
        })
    );
    assert_eq!(
        (buffer.sent(), buffer.lost_packets(), buffer.unsent_bytes()),
        (10, 0, 0)
    );
}

proptest! {
    #[test]
    fn every_packet_arrives_or_is_dropped_and_nothing_of_a_dropped_message_goes_any_more(
        sizes in proptest::collection::vec((1usize..1_500, proptest::option::of(0u64..400)), 1..40),
        fates in proptest::collection::vec((any::<bool>(), 1usize..9, 0u64..40), 1..50),
    ) {
        let mut buffer = messages(10_000);
        let mut number_of = Vec::new();
        for (number, &(length, expires_us)) in (1..).zip(&sizes) {
            prop_assert!(buffer.write_message(&vec![0; length], false, expires_us.map(|us| us * US)));
            number_of.resize(buffer.end() as usize, number);
        }
        let mut has = vec![false; number_of.len()];
        let mut dropped = BTreeSet::new();
        for round in 0..20_000u64 {
            let (arrives, max, window) = fates[round as usize % fates.len()];
            // In the end the path is a good one.
            let (arrives, window) = if round > 500 { (true, 100) } else { (arrives, window) };
            let (now_ns, limit) = (round * US, buffer.acked() + window);
            if let Some(burst) = buffer.next_burst(now_ns, 0, max, limit) {
                for index in burst.first..burst.first + burst.packets as u64 {
                    prop_assert!(!dropped.contains(&number_of[index as usize]));
                    has[index as usize] |= arrives;
                }
            }
            while let Some(news) = buffer.take_dropped(now_ns) {
                dropped.insert(news.message);
                prop_assert!(sizes[news.message as usize - 1].1.is_some_and(|us| us * US <= now_ns));
                prop_assert!(news.last < buffer.sent());
                for index in news.first..=news.last {
                    prop_assert_eq!(number_of[index as usize], news.message);
                    has[index as usize] |= arrives;
                }
            }
            let next = has.iter().position(|has| !has).unwrap_or(has.len());
            buffer.acknowledge(next as u64);
            if buffer.acked() == buffer.end() {
                break;
            }
            if round % 8 == 0 {
                buffer.mark_lost(0, u64::MAX, now_ns, 5 * US);
            }
        }
        prop_assert_eq!(buffer.acked(), buffer.end());
        prop_assert_eq!((buffer.unsent_bytes(), buffer.lost_packets()), (0, 0));
    }
}
