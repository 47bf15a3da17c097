//! When requests to a file system are over; time is an argument, in nanoseconds since any moment.
//!
//! ```text
//! request ─► messages ─► credits ─► the process's own rate ─► the rate of all ─► latency ─► answer
//!            of so many  as many    one after the other       one after the      many at
//!            bytes       at once                              other, as they     once
//!                                                             come
//! ```
//!
//! With n processes that always have something to do this gives min(n c, C), where c is the rate of one process and C that
//! of all (the shape of Rao et al. 2018, Fig. 5); with W bytes of credits and a latency τ, at most W/τ (section 4.2 there: the
//! LNet routers).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use farline_spec::{StorageAction, StorageSpec};

/// A request as whoever asked knows it.
pub type RequestId = u64;

/// A message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    /// Order in which they were made.
    number: u64,
    request: RequestId,
    process: u32,
    is_write: bool,
    bytes: u64,
}

/// The rates of one direction, and until when they are taken.
#[derive(Debug)]
struct Direction {
    process_bps: Option<u64>,
    total_bps: u64,
    /// Of each process, when it has passed on what it was given.
    process_free_ns: HashMap<u32, u64>,
    total_free_ns: u64,
}

/// Requests, and when they are over.
#[derive(Debug)]
pub struct StorageModel {
    read: Direction,
    write: Direction,
    latency_ns: u64,
    credits: Option<u64>,
    message_bytes: u64,
    made: u64,
    under_way: u64,
    /// Messages without a credit, first come first served.
    without_credit: VecDeque<Message>,
    /// Messages by the time at which their process has passed them on.
    passing: BinaryHeap<Reverse<(u64, Message)>>,
    /// Messages by the time of their answer.
    answered: BinaryHeap<Reverse<(u64, Message)>>,
    /// Messages that are left of each request.
    left: HashMap<RequestId, u64>,
    waited_for_credit: u64,
}

impl StorageModel {
    /// One without requests.
    pub fn new(spec: &StorageSpec) -> Self {
        let direction = |process: Option<farline_spec::unit::WireRateBps>,
                         total: farline_spec::unit::WireRateBps| Direction {
            process_bps: process.map(|rate| rate.get()),
            total_bps: total.get(),
            process_free_ns: HashMap::new(),
            total_free_ns: 0,
        };
        Self {
            read: direction(spec.process_read_bps, spec.total_read_bps),
            write: direction(spec.process_write_bps, spec.total_write_bps),
            latency_ns: (spec.latency_s.get() * 1e9) as u64,
            credits: spec.credits.map(|credits| credits.get().into()),
            message_bytes: spec.message_bytes.get(),
            made: 0,
            under_way: 0,
            without_credit: VecDeque::new(),
            passing: BinaryHeap::new(),
            answered: BinaryHeap::new(),
            left: HashMap::new(),
            waited_for_credit: 0,
        }
    }

    /// A request of a process; one without bytes is a message all the same. `now_ns` never goes back.
    pub fn submit(
        &mut self,
        now_ns: u64,
        request: RequestId,
        process: u32,
        action: StorageAction,
        bytes: u64,
    ) {
        let count = bytes.div_ceil(self.message_bytes).max(1);
        self.left.insert(request, count);
        for place in 0..count {
            let rest = bytes - place * self.message_bytes;
            self.made += 1;
            let message = Message {
                number: self.made,
                request,
                process,
                is_write: action == StorageAction::Write,
                bytes: rest.min(self.message_bytes),
            };
            if self.credits.is_some_and(|credits| self.under_way >= credits) {
                self.waited_for_credit += 1;
                self.without_credit.push_back(message);
            } else {
                self.start(now_ns, message);
            }
        }
    }

    /// When something changes next; `None` while nothing is under way.
    pub fn next_event_ns(&self) -> Option<u64> {
        let passing = self.passing.peek().map(|Reverse((at_ns, _))| *at_ns);
        let answered = self.answered.peek().map(|Reverse((at_ns, _))| *at_ns);
        passing.into_iter().chain(answered).min()
    }

    /// Lets time pass up to `now_ns`; the requests that are over by then, in order.
    pub fn advance(&mut self, now_ns: u64) -> Vec<RequestId> {
        let mut over = Vec::new();
        while let Some(at_ns) = self.next_event_ns().filter(|at_ns| *at_ns <= now_ns) {
            if let Some(Reverse((_, message))) = pop_at(&mut self.passing, at_ns) {
                self.pass_on(at_ns, message);
            } else if let Some(Reverse((_, message))) = pop_at(&mut self.answered, at_ns) {
                over.extend(self.answer(at_ns, &message));
            }
        }
        over
    }

    /// Messages that had to wait for a credit.
    pub const fn waited_for_credit(&self) -> u64 {
        self.waited_for_credit
    }

    fn direction(&mut self, message: &Message) -> &mut Direction {
        if message.is_write {
            &mut self.write
        } else {
            &mut self.read
        }
    }

    /// It has its credit: it takes its turn at its process.
    fn start(&mut self, now_ns: u64, message: Message) {
        self.under_way += 1;
        let direction = self.direction(&message);
        let passed_ns = match direction.process_bps {
            None => now_ns,
            Some(rate_bps) => {
                let free_ns = direction.process_free_ns.entry(message.process).or_default();
                *free_ns = now_ns.max(*free_ns) + span_ns(message.bytes, rate_bps);
                *free_ns
            }
        };
        self.passing.push(Reverse((passed_ns, message)));
    }

    /// Its process has passed it on, which all of the system did along with it as far as it was free.
    fn pass_on(&mut self, at_ns: u64, message: Message) {
        let latency_ns = self.latency_ns;
        let direction = self.direction(&message);
        let span_ns = span_ns(message.bytes, direction.total_bps);
        let earliest_ns = if direction.process_bps.is_some() {
            at_ns
        } else {
            at_ns + span_ns
        };
        direction.total_free_ns = (direction.total_free_ns + span_ns).max(earliest_ns);
        let answer_ns = direction.total_free_ns + latency_ns;
        self.answered.push(Reverse((answer_ns, message)));
    }

    /// It is answered: its credit is free. Gives its request if that is over.
    fn answer(&mut self, at_ns: u64, message: &Message) -> Option<RequestId> {
        self.under_way -= 1;
        if let Some(next) = self.without_credit.pop_front() {
            self.start(at_ns, next);
        }
        let left = self.left.get_mut(&message.request)?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        self.left.remove(&message.request);
        Some(message.request)
    }
}

type Queue = BinaryHeap<Reverse<(u64, Message)>>;

fn pop_at(queue: &mut Queue, at_ns: u64) -> Option<Reverse<(u64, Message)>> {
    queue
        .peek()
        .is_some_and(|Reverse((first_ns, _))| *first_ns <= at_ns)
        .then(|| queue.pop())
        .flatten()
}

/// How long so many bytes take.
fn span_ns(bytes: u64, rate_bps: u64) -> u64 {
    (u128::from(bytes) * 8_000_000_000 / u128::from(rate_bps.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use farline_spec::from_json;
    use proptest::prelude::*;

    use super::*;

    const MEBIBYTE: u64 = 1 << 20;

    fn spec(changes: &str) -> StorageSpec {
        let text = format!(
            r#"{{"name": "t", "total_read_bps": 8000000000, "total_write_bps": 8000000000, "latency_s": 0,
                "message_bytes": 1048576, "capacity_bytes": 1{changes}}}"#
        );
        from_json(&text).unwrap()
    }

    /// Bit/s that `processes` reach together, each with `depth` requests under way, over ten virtual seconds.
    fn rate_bps(spec: &StorageSpec, processes: u32, depth: u32, bytes: u64) -> f64 {
        let mut model = StorageModel::new(spec);
        let mut owner = HashMap::new();
        let mut next = 0;
        let mut submit = |model: &mut StorageModel, owner: &mut HashMap<u64, u32>, now_ns, process| {
            next += 1;
            owner.insert(next, process);
            model.submit(now_ns, next, process, StorageAction::Write, bytes);
        };
        for process in 0..processes {
            for _ in 0..depth {
                submit(&mut model, &mut owner, 0, process);
            }
        }
        let mut moved = 0;
        while let Some(now_ns) = model.next_event_ns().filter(|now_ns| *now_ns <= 10_000_000_000) {
            for request in model.advance(now_ns) {
                moved += bytes;
                let process = owner.remove(&request).unwrap();
                submit(&mut model, &mut owner, now_ns, process);
            }
        }
        moved as f64 * 8.0 / 10.0
    }

    fn close(measured: f64, expected: f64) {
        assert!(
            (measured / expected - 1.0).abs() < 0.03,
            "{measured} is not about {expected}"
        );
    }

    #[test]
    fn n_processes_have_n_times_the_rate_of_one_up_to_the_rate_of_all() {
        let spec = spec(r#", "process_write_bps": 1000000000"#);
        for processes in [1, 2, 4, 7, 8, 9, 16] {
            let expected = (f64::from(processes) * 1e9).min(8e9);
            close(rate_bps(&spec, processes, 4, MEBIBYTE), expected);
        }
    }

    #[test]
    fn a_process_that_asks_for_much_at_once_takes_nothing_from_another() {
        let spec = spec(r#", "process_write_bps": 1000000000"#);
        let mut model = StorageModel::new(&spec);
        for request in 0..8 {
            model.submit(0, request, 1, StorageAction::Write, MEBIBYTE);
        }
        model.submit(0, 8, 2, StorageAction::Write, MEBIBYTE);
        let first = model.next_event_ns().unwrap();
        assert_eq!(model.advance(first + 1_100_000), [0, 8]);
    }

    #[test]
    fn without_a_rate_of_its_own_one_process_has_all() {
        close(rate_bps(&spec(""), 1, 2, MEBIBYTE), 8e9);
    }

    #[test]
    fn credits_give_their_bytes_per_latency() {
        for (latency_s, credits) in [(0.02, 8), (0.05, 8), (0.1, 16)] {
            let spec = spec(&format!(r#", "credits": {credits}"#)).with_latency(latency_s);
            let passing_s = 8.0 * MEBIBYTE as f64 / 8e9;
            let expected = f64::from(credits) * 8.0 * MEBIBYTE as f64 / (latency_s + passing_s);
            close(rate_bps(&spec, 4, 16, MEBIBYTE), expected);
        }
    }

    #[test]
    fn a_large_request_is_several_messages_and_over_with_the_last() {
        let spec = spec(r#", "credits": 2"#).with_latency(0.01);
        let mut model = StorageModel::new(&spec);
        model.submit(0, 7, 1, StorageAction::Read, 4 * MEBIBYTE);
        assert!(model.advance(20_000_000).is_empty());
        assert_eq!(model.advance(40_000_000), [7]);
        assert_eq!((model.waited_for_credit(), model.next_event_ns()), (2, None));
    }

    trait WithLatency {
        fn with_latency(self, latency_s: f64) -> Self;
    }

    impl WithLatency for StorageSpec {
        fn with_latency(mut self, latency_s: f64) -> Self {
            self.latency_s = farline_spec::unit::DelayS::new(latency_s).unwrap();
            self
        }
    }

    proptest! {
        #[test]
        fn every_request_is_over_once_and_never_before_its_bytes_could_have_passed(
            requests in prop::collection::vec((0_u64..50_000_000, 0_u32..4, 0_u64..5_000_000), 1..40),
            credits in prop::option::of(1_u64..6),
        ) {
            let credits = credits.map_or(String::new(), |credits| format!(r#", "credits": {credits}"#));
            let spec = spec(&format!(r#", "process_write_bps": 2000000000{credits}"#)).with_latency(0.001);
            let mut model = StorageModel::new(&spec);
            let mut now_ns = 0;
            let mut over = Vec::new();
            for (request, (pause_ns, process, bytes)) in requests.iter().enumerate() {
                now_ns += pause_ns;
                over.extend(model.advance(now_ns));
                model.submit(now_ns, request as u64, *process, StorageAction::Write, *bytes);
                prop_assert!(!model.advance(now_ns + span_ns(*bytes, 2_000_000_000)).contains(&(request as u64)));
                now_ns += span_ns(*bytes, 2_000_000_000);
            }
            while let Some(at_ns) = model.next_event_ns() {
                over.extend(model.advance(at_ns));
            }
            over.sort_unstable();
            over.dedup();
            prop_assert!(over.len() <= requests.len());
            prop_assert!(model.left.is_empty() && model.under_way == 0);
        }
    }
}
