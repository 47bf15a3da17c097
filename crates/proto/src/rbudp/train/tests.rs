//! Trains over a simulated path: a FIFO queue that others may share, chance losses, hosts that stall.

use proptest::prelude::*;

use super::*;

const MS: f64 = 1e6;
/// The receiver's clock is another one.
const CLOCK_NS: u64 = 1_700_000_000_000_000_000;

/// A path and its two hosts. Rates are payload rates.
#[derive(Debug, Clone)]
struct Path {
    capacity_bps: f64,
    /// Rate of the packets of others, which come at random.
    others_bps: f64,
    /// Longest wait in the queue; what would wait longer is lost.
    queue_ns: f64,
    loss: f64,
    /// When in each train the sender is off its CPU, and for how long, as shares of the train's length and in ns.
    sender_stall: (f64, f64),
    receiver_stall: (f64, f64),
    /// Whether the receiver's kernel collects up to 44 packets and stamps the first.
    gro: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            capacity_bps: 10e9,
            others_bps: 0.0,
            queue_ns: 1e9,
            loss: 0.0,
            sender_stall: (0.0, 0.0),
            receiver_stall: (0.0, 0.0),
            gro: true,
        }
    }
}

/// SplitMix64 (Steele and others, 2014) as a source of chance.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Time until the next of events that come `per_ns` often.
    fn wait(&mut self, per_ns: f64) -> f64 {
        if per_ns > 0.0 {
            -(1.0 - self.next()).ln() / per_ns
        } else {
            f64::INFINITY
        }
    }
}

/// A queue that drains at the path's capacity: what waits, and since when.
struct Queue<'a> {
    path: &'a Path,
    waiting_ns: f64,
    now_ns: f64,
    next_other_ns: f64,
}

/// Payload of others' packets.
const OTHER_BITS: f64 = 1_456.0 * 8.0;

impl Queue<'_> {
    /// Lets others' packets in until `now_ns`.
    fn run_to(&mut self, now_ns: f64, chance: &mut Chance) {
        while self.next_other_ns < now_ns {
            self.enter(self.next_other_ns, OTHER_BITS);
            self.next_other_ns += chance.wait(self.path.others_bps / OTHER_BITS / 1e9);
        }
    }

    /// When a packet that enters at `now_ns` leaves, if there is room for it.
    fn enter(&mut self, now_ns: f64, bits: f64) -> Option<f64> {
        self.waiting_ns = (self.waiting_ns - (now_ns - self.now_ns)).max(0.0);
        self.now_ns = now_ns;
        if self.waiting_ns > self.path.queue_ns {
            return None;
        }
        self.waiting_ns += bits * 1e9 / self.path.capacity_bps;
        Some(now_ns + self.waiting_ns)
    }
}

/// Departures of the bursts: on time but for one stall, whose lateness is not made up for.
fn departures(plan: &TrainPlan, (at, length_ns): (f64, f64)) -> Vec<u64> {
    let stalled = (f64::from(plan.bursts()) * at) as u32;
    let late = |burst: u32| if burst >= stalled { length_ns as u64 } else { 0 };
    (0..plan.bursts())
        .map(|burst| u64::from(burst) * plan.burst_ns() + late(burst))
        .collect()
}

/// Sends one train over `path`.
fn send(plan: &TrainPlan, path: &Path, chance: &mut Chance) -> (Vec<u64>, Arrivals) {
    let sent_ns = departures(plan, path.sender_stall);
    let mut arrivals = Arrivals::new(plan);
    let mut queue = Queue {
        path,
        waiting_ns: 0.0,
        now_ns: -50.0 * MS,
        next_other_ns: -50.0 * MS,
    };
    let bits = (plan.payload_bytes() * 8) as f64;
    let stall_begin = path.receiver_stall.0 * sent_ns[sent_ns.len() - 1] as f64;
    let stall_end = stall_begin + path.receiver_stall.1;
    let mut collected: Option<(f64, u32)> = None;
    for index in 0..plan.packets() {
        let now_ns = sent_ns[(index / plan.burst_packets()) as usize] as f64;
        queue.run_to(now_ns, chance);
        let Some(mut arrived_ns) = queue.enter(now_ns, bits) else {
            continue;
        };
        if chance.next() < path.loss {
            continue;
        }
        if (stall_begin..stall_end).contains(&arrived_ns) {
            arrived_ns = stall_end;
        }
        let joins = collected.is_some_and(|(at_ns, count)| arrived_ns - at_ns < 30_000.0 && count < 44);
        let stamp = (!(path.gro && joins)).then(|| CLOCK_NS + (MS * 20.0 + arrived_ns) as u64);
        collected = match collected {
            Some((at_ns, count)) if joins => Some((at_ns, count + 1)),
            _ => Some((arrived_ns, 1)),
        };
        arrivals.note(index, stamp);
    }
    (sent_ns, arrivals)
}

/// The verdict on three trains at `rate_bps` over `paths`, one path for each train.
fn check_each(rate_bps: u64, paths: [&Path; TRAINS], seed: u64) -> PathCheck {
    let plan = TrainPlan::new(rate_bps, 1_472).unwrap();
    let mut chance = Chance(seed);
    let trains = paths.map(|path| send(&plan, path, &mut chance));
    let (sent_ns, arrivals): (Vec<_>, Vec<_>) = trains.into_iter().unzip();
    let passages = Passage::read(&plan, &sent_ns, &arrivals);
    let came: u32 = arrivals.iter().map(Arrivals::count).sum();
    let sent = TRAINS as u64 * u64::from(plan.packets());
    judge(rate_bps, &passages, RoundTrips::default(), sent, u64::from(came))
}

fn check(rate_bps: u64, path: &Path, seed: u64) -> PathCheck {
    check_each(rate_bps, [path; TRAINS], seed)
}

/// A stall somewhere in a train.
fn stall() -> impl Strategy<Value = (f64, f64)> {
    (0.0..1.0, 0.0..4.0 * MS)
}

proptest! {
    #[test]
    fn a_path_with_room_is_not_shared_whatever_is_lost_and_however_hosts_stall(
        rate_bps in 2_000_000u64..9_600_000_000,
        room in 1.1..20.0,
        loss in 0.0..0.33,
        sender_stall in stall(),
        receiver_stall in stall(),
        gro: bool,
        seed: u64,
    ) {
        let capacity_bps = rate_bps as f64 * room;
        let path = Path { capacity_bps, loss, sender_stall, receiver_stall, gro, ..Path::default() };
        let check = check(rate_bps, &path, seed);
        prop_assert!(!check.shared, "{check:?}");
        // 17 packets of which a third is lost may leave a quarter empty; then nothing is known of the rate.
        let is_read = check.carried_bps > 0;
        prop_assert!(is_read || rate_bps < 20_000_000, "{check:?}");
        prop_assert!(!is_read || check.carried_bps as f64 > rate_bps as f64 * 0.9, "{check:?}");
    }

    #[test]
    fn a_fast_path_with_room_is_not_shared_if_hosts_let_one_train_in_three_alone(
        rate_bps in 9_600_000_000u64..100_000_000_000,
        stalls in [stall(), stall(), stall(), stall()],
        alone in 0..TRAINS,
        seed: u64,
    ) {
        let quiet = Path { capacity_bps: rate_bps as f64 * 1.05, ..Path::default() };
        let paths: [Path; TRAINS] = std::array::from_fn(|train| Path {
            sender_stall: if train == alone { (0.0, 0.0) } else { stalls[train % 2] },
            receiver_stall: if train == alone { (0.0, 0.0) } else { stalls[2 + train % 2] },
            ..quiet.clone()
        });
        let check = check_each(rate_bps, [&paths[0], &paths[1], &paths[2]], seed);
        prop_assert!(!check.shared, "{check:?}");
    }

    #[test]
    fn a_path_of_at_most_half_the_rate_is_found_and_its_rate_told(
        rate_bps in 20_000_000u64..9_600_000_000,
        share in 0.1..0.55,
        loss in 0.0..0.33,
        receiver_stall in stall(),
        gro: bool,
        seed: u64,
    ) {
        let capacity_bps = rate_bps as f64 * share;
        let path = Path { capacity_bps, loss, receiver_stall, gro, ..Path::default() };
        let check = check(rate_bps, &path, seed);
        prop_assert!(check.shared, "{check:?}");
        let carried = check.carried_bps as f64 / capacity_bps;
        // Fifty packets of which a third is lost say little of how fast the rest came.
        let least = if rate_bps < 100_000_000 { 0.3 } else { 0.6 };
        prop_assert!(carried < 1.15 && carried > (1.0 - loss) * least, "{carried} of the capacity: {check:?}");
    }

    #[test]
    fn a_sender_that_stalls_hides_no_path_of_half_the_rate(
        rate_bps in 20_000_000u64..9_600_000_000,
        sender_stall in stall(),
        seed: u64,
    ) {
        let capacity_bps = rate_bps as f64 / 2.0;
        let path = Path { capacity_bps, sender_stall, ..Path::default() };
        prop_assert!(check(rate_bps, &path, seed).shared);
    }

    #[test]
    fn others_are_found_when_there_is_no_room_for_both(
        rate_bps in 50_000_000u64..1_000_000_000,
        mine in 0.2..0.9,
        loss in 0.0..0.2,
        receiver_stall in stall(),
        seed: u64,
    ) {
        let capacity_bps = rate_bps as f64 / mine;
        let others_bps = capacity_bps * (1.3 - mine);
        let path = Path { capacity_bps, others_bps, loss, receiver_stall, ..Path::default() };
        let check = check(rate_bps, &path, seed);
        prop_assert!(check.shared, "{check:?}");
    }

    #[test]
    fn others_who_leave_room_are_not_in_the_way(
        rate_bps in 50_000_000u64..1_000_000_000,
        mine in 0.1..0.7,
        seed: u64,
    ) {
        let capacity_bps = rate_bps as f64 / mine;
        let path = Path { capacity_bps, others_bps: capacity_bps * (0.8 - mine), ..Path::default() };
        let check = check(rate_bps, &path, seed);
        prop_assert!(!check.shared, "{check:?}");
    }

    #[test]
    fn a_plan_holds_its_limits(rate_bps in 0u64..1_000_000_000_000, packet_bytes in 64usize..65_508) {
        let Some(plan) = TrainPlan::new(rate_bps, packet_bytes) else {
            // Too slow for four packets in 100 ms.
            let bytes_in_100_ms = rate_bps / 80;
            prop_assert!(bytes_in_100_ms < 5 * packet_bytes as u64);
            return Ok(());
        };
        let burst_bytes = plan.burst_packets() as usize * packet_bytes;
        prop_assert!(plan.packets() >= 4 && plan.bursts() >= 4 && plan.bursts() <= MAX_BURSTS);
        prop_assert!(u64::from(plan.packets()) * packet_bytes as u64 <= 24_000_000);
        prop_assert!(plan.burst_packets() == 1 || burst_bytes <= 65_507 && plan.burst_ns() <= 100_000);
        let span_ns = u64::from(plan.packets()) * plan.burst_ns() / u64::from(plan.burst_packets());
        prop_assert!(span_ns <= 100_000_000, "{span_ns} ns");
    }

    #[test]
    fn what_a_peer_says_never_panics_and_never_takes_memory(
        sent_ns in proptest::collection::vec(any::<u64>(), 0..60),
        notes in proptest::collection::vec((any::<u32>(), proptest::option::of(any::<u64>())), 0..200),
    ) {
        let plan = TrainPlan::new(20_000_000, 1_472).unwrap();
        let mut arrivals = Arrivals::new(&plan);
        for (index, at_ns) in notes {
            arrivals.note(index, at_ns);
            arrivals.note(index % 60, at_ns);
        }
        prop_assert!(arrivals.stamped.len() <= plan.packets() as usize);
        let bursts = plan.bursts() as usize;
        let mut sent_ns: Vec<_> = sent_ns.into_iter().chain(std::iter::repeat(0)).take(bursts).collect();
        let arrivals = [arrivals.clone(), arrivals];
        for passage in Passage::read(&plan, &[sent_ns.clone(), vec![7; bursts]], &arrivals) {
            prop_assert!(passage.carried_bps() <= 20_000_000);
        }
        sent_ns.pop();
        prop_assert_eq!(Passage::read(&plan, &[sent_ns], &arrivals), []);
    }
}

#[test]
fn a_train_is_20_ms_within_its_limits() {
    let layout = |rate_bps| {
        let plan = TrainPlan::new(rate_bps, 1_472).unwrap();
        (plan.packets(), plan.burst_packets(), plan.bursts())
    };
    assert_eq!(layout(1_000_000_000), (1_717, 8, 215));
    assert_eq!(layout(10_000_000), (50, 1, 50));
    assert_eq!(layout(2_000_000), (17, 1, 17));
    assert_eq!(layout(9_000_000_000), (15_453, 44, 352));
    assert_eq!(TrainPlan::new(0, 1_472), None);
    assert_eq!(TrainPlan::new(400_000, 1_472), None);
}

#[test]
fn a_sender_that_is_always_slow_claims_no_more_than_it_sent() {
    let plan = TrainPlan::new(1_000_000_000, 1_472).unwrap();
    let mut arrivals = Arrivals::new(&plan);
    let sent_ns: Vec<_> = (0..plan.bursts())
        .map(|burst| u64::from(burst) * plan.burst_ns() * 4)
        .collect();
    for index in 0..plan.packets() {
        let burst = (index / plan.burst_packets()) as usize;
        arrivals.note(index, Some(CLOCK_NS + sent_ns[burst]));
    }
    let passages = Passage::read(&plan, &[sent_ns], &[arrivals]);
    assert!(!passages[0].is_stretched());
    assert_eq!(passages[0].carried_bps(), 250_000_000);
}

#[test]
fn a_train_that_began_late_does_not_hide_the_queue_at_its_end() {
    let full = Path {
        capacity_bps: 830e6,
        ..Path::default()
    };
    let late = Path {
        receiver_stall: (0.0, 6.0 * MS),
        ..full.clone()
    };
    for paths in [[&late, &late, &full], [&full, &late, &late]] {
        let check = check_each(1_000_000_000, paths, 3);
        assert!(check.shared, "{check:?}");
    }
}

#[test]
fn a_short_queue_that_overflows_is_found_though_it_soon_stops_growing() {
    let path = Path {
        capacity_bps: 500e6,
        queue_ns: 3.0 * MS,
        ..Path::default()
    };
    let check = check(1_000_000_000, &path, 1);
    assert!(check.shared && check.lost_share > 0.3, "{check:?}");
    assert!((400e6..600e6).contains(&(check.carried_bps as f64)), "{check:?}");
}

#[test]
fn at_9_gbit_a_path_of_half_of_it_is_found() {
    let path = Path {
        capacity_bps: 4.5e9,
        ..Path::default()
    };
    assert!(check(9_000_000_000, &path, 1).shared);
    let same = Path {
        capacity_bps: 9e9,
        ..Path::default()
    };
    let check = check(9_000_000_000, &same, 1);
    assert!(!check.shared && check.carried_bps > 8_800_000_000, "{check:?}");
}

#[test]
fn losses_are_a_sign_only_when_most_is_lost() {
    let lossy = |loss| {
        check(
            100_000_000,
            &Path {
                loss,
                ..Path::default()
            },
            7,
        )
    };
    assert!(!lossy(0.45).shared);
    assert!(lossy(0.7).shared);
    assert!(advice(&lossy(0.7)).unwrap().starts_with("the path lost 7"));
    let nothing = lossy(1.0);
    assert_eq!(
        (nothing.shared, nothing.carried_bps, nothing.lost_share),
        (true, 0, 1.0)
    );
    assert!(!is_mostly_lost(12, 5) && is_mostly_lost(12, 1) && !is_mostly_lost(0, 0));
}

#[test]
fn a_standing_queue_shows_in_the_round_trips_alone() {
    let judged = |times_us: &[u64]| judge(0, &[], RoundTrips::of(times_us).unwrap(), 0, 0);
    assert!(judged(&[10_000, 12_600, 12_700, 13_000, 12_800]).shared);
    assert!(
        !judged(&[10_000, 12_400, 12_400, 13_000, 12_400]).shared,
        "not more than a quarter"
    );
    assert!(
        !judged(&[100, 2_000, 2_000, 2_050, 9_000]).shared,
        "not more than 2 ms"
    );
    assert!(!judged(&[100, 9_000, 9_000, 9_000]).shared, "too few to tell");
    assert_eq!(RoundTrips::of(&[]), None);
    let line = advice(&judged(&[10_000, 22_600, 22_700, 23_000, 22_800])).unwrap();
    assert_eq!(
        line,
        "other traffic fills a queue on the path: round-trip time 22.7 ms before the blast, minimum 10.0 ms; the blast \
         displaces that traffic"
    );
}

#[test]
fn people_are_told_what_was_carried_and_what_to_state() {
    let found = PathCheck {
        rate_bps: 9_000_000_000,
        carried_bps: 4_129_000_000,
        shared: true,
        ..PathCheck::default()
    };
    assert_eq!(
        advice(&found).unwrap(),
        "the path carried 4.12 Gbit/s of the stated 9.00 Gbit/s: at this rate the blast displaces other traffic; use at \
         most 3.92 Gbit/s"
    );
    assert_eq!(
        advice(&PathCheck {
            shared: false,
            ..found
        }),
        None
    );
    assert_eq!(in_words(950_000.0), "950 kbit/s");
    assert_eq!(in_words(12_345_678.0), "12.3 Mbit/s");
}
