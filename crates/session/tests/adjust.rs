//! Copies that change while they run: streams that come and go, on loopback, with the content compared.

mod common;

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use common::PATIENCE;
use common::site::{Site, assert_same, make_tree, merge, spec};
use farline_session::message::VersionRange;
use farline_session::{Event, Local, RunHandle, Target, start_run_with};
use farline_spec::{
    AdjustKnob, AdjustRequest, Adjustment, CopyStages, FailureKind, RunRecord, RunStatus, Scope, from_json,
};
use serde_json::{Value, json};

/// Bits per second that a copy is held to, so that it takes about a second and a half.
const RATE_BPS: u64 = 160_000_000;
const LARGE_BYTES: usize = 30_000_000;
/// Bits per second at which it takes four seconds, for a test that lifts it when all is seen.
const HELD_BPS: u64 = 60_000_000;

/// A copy that runs, and what it has said.
struct Running {
    handle: RunHandle,
    adjusted: Vec<Adjustment>,
    stages: Vec<CopyStages>,
    moved_bytes: u64,
    record: Option<RunRecord>,
}

impl Running {
    fn start(target: Target, spec: &Value, local: Local) -> Self {
        Self {
            handle: start_run_with(target, from_json(&spec.to_string()).unwrap(), local),
            adjusted: Vec::new(),
            stages: Vec::new(),
            moved_bytes: 0,
            record: None,
        }
    }

    /// Takes events until `is_there`; panics when that takes too long.
    fn until(&mut self, is_there: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !is_there(self) {
            assert!(Instant::now() < until, "{:?} {:?}", self.adjusted, self.record);
            match self.handle.poll(Duration::from_millis(50)) {
                Some(Event::Adjusted(change)) => self.adjusted.push(change),
                Some(Event::Stages(now)) => self.stages.push(now),
                Some(Event::Progress(now)) => self.moved_bytes = now.moved_bytes,
                Some(Event::Done(record)) => self.record = Some(*record),
                _ => {}
            }
        }
    }

    fn until_moving(&mut self) {
        self.until(|copy| copy.moved_bytes > 1_000_000);
    }

    fn want(&self, request: &str) {
        self.handle
            .adjust(from_json::<AdjustRequest>(request).unwrap())
            .unwrap();
    }

    /// What came of the next `count` things that were wanted.
    fn told(&mut self, count: usize) -> Vec<Adjustment> {
        self.until(|copy| copy.adjusted.len() >= count || copy.record.is_some());
        std::mem::take(&mut self.adjusted)
    }

    /// Wants `count` streams until it has them: while others are opened it is told to ask again; how often it was.
    fn until_streams(&mut self, count: u64) -> usize {
        for refused in 0.. {
            self.want(&format!(r#"{{"streams":{count}}}"#));
            let told = self.told(1);
            match &told[0].refused {
                None => return refused,
                Some(why) => assert!(why.contains("still being opened"), "{why}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        unreachable!()
    }

    fn end(&mut self) -> RunRecord {
        self.until(|copy| copy.record.is_some());
        self.record.clone().unwrap()
    }
}

fn way(transport: &Value) -> Value {
    let mut way = json!({"copy": {"total_rate_bps": RATE_BPS}});
    merge(&mut way, transport);
    way
}

fn held(transport: &Value) -> Value {
    let mut way = json!({"copy": {"total_rate_bps": HELD_BPS}});
    merge(&mut way, transport);
    way
}

fn complete(record: &RunRecord) {
    assert_eq!((record.status, &record.error), (RunStatus::Complete, &None));
    let copy = record.copy.as_ref().unwrap();
    assert_eq!(
        (copy.failed.files, copy.repeated_chunks),
        (0, 0),
        "nothing is sent twice"
    );
}

/// Data streams of the record, seen from the client.
fn data_streams(record: &RunRecord) -> usize {
    let first = u32::from(record.spec.streams.get());
    let is_data = |stream: u32| stream < first || stream > first + 1;
    let own = record
        .streams
        .iter()
        .filter(|one| one.end == 0 && is_data(one.stream));
    own.count()
}

#[test]
fn streams_come_and_go_over_every_transport_in_both_directions() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), LARGE_BYTES);
    let transports = [
        json!({"transport": "tcp"}),
        json!({"transport": "udt"}),
        json!({"transport": "rbudp", "rate_bps": 100_000_000}),
    ];
    for (number, transport) in transports.iter().enumerate() {
        let far = format!("/pushed-{number}");
        let mut push = spec(&site.near().join("data"), Path::new(&far), &held(transport));
        push["interval_s"] = json!(0.05);
        let mut copy = Running::start(site.writer(), &push, Local::default());
        copy.until_moving();
        copy.want(r#"{"streams":5}"#);
        let up = copy.told(1);
        assert_eq!(
            (up[0].before, up[0].after, &up[0].refused),
            (Some(2), Some(5), &None),
            "{transport}"
        );
        copy.want(r#"{"streams":1,"concurrency":3}"#);
        let down = copy.told(2);
        assert!(down.iter().all(|change| change.refused.is_none()), "{down:?}");
        let refused = copy.until_streams(3);
        copy.until(|copy| copy.stages.last().is_some_and(|now| now.written_bytes > Some(0)));
        copy.want(r#"{"total_rate_bps":0}"#);
        let record = copy.end();
        complete(&record);
        assert_same(&site.near().join("data"), &site.far().join(&far[1..]));
        assert_eq!(
            (record.adjustments.len(), data_streams(&record)),
            (5 + refused, 7),
            "{transport} {:?}",
            record.adjustments
        );
        let moved: u64 = record
            .streams
            .iter()
            .filter(|one| one.role == 1)
            .map(|one| one.bytes)
            .sum();
        assert!(moved as usize >= LARGE_BYTES, "{moved}");
        let last = copy.stages.last().unwrap();
        assert!(
            last.read_bytes > Some(0) && last.written_bytes > Some(0),
            "{last:?}"
        );
        assert!(last.streams == 3 || last.opening_streams > 0, "{last:?}");

        let near = site.near().join(format!("pulled-{number}"));
        let mut pull = held(transport);
        pull["direction"] = "reverse".into();
        pull["interval_s"] = json!(0.05);
        let pull = spec(Path::new(&far), &near, &pull);
        let mut copy = Running::start(site.reader(), &pull, Local::default());
        // RBUDP tells what arrived only at the end of a blast.
        copy.until(|copy| !copy.stages.is_empty());
        copy.want(r#"{"streams":4}"#);
        copy.told(1);
        copy.want(r#"{"streams":1}"#);
        copy.told(1);
        copy.want(r#"{"streams":2,"concurrency":1,"total_rate_bps":0}"#);
        let record = copy.end();
        complete(&record);
        assert_eq!(record.adjustments.len(), 5, "{:?}", record.adjustments);
        assert_same(&site.near().join("data"), &near);
    }
}

#[test]
fn two_hundred_changes_at_random_leave_every_byte_as_it_was() {
    let site = Site::new(r#","single_port":true"#);
    make_tree(&site.near().join("data"), 2 * LARGE_BYTES);
    let mut seed = 7u64;
    let mut next = |most: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % most
    };
    let near = site.near().join("pulled");
    let push = site.push(&way(&json!({"streams": 3})));
    let pull = spec(
        Path::new("/copy"),
        &near,
        &way(&json!({"streams": 3, "direction": "reverse"})),
    );
    for (target, spec) in [(site.writer(), push), (site.reader(), pull)] {
        let mut copy = Running::start(target, &spec, Local::default());
        copy.until_moving();
        let mut told = 0;
        for number in 0..200 {
            let request = match next(4) {
                0 => format!(r#"{{"concurrency":{}}}"#, 1 + next(9)),
                1 => format!(r#"{{"total_rate_bps":{}}}"#, RATE_BPS / 2 + next(RATE_BPS)),
                _ => format!(r#"{{"streams":{}}}"#, 1 + next(8)),
            };
            if copy.handle.adjust(from_json(&request).unwrap()).is_err() {
                break;
            }
            if number % 3 > 0 && copy.record.is_none() {
                told += copy.told(1).len();
            }
        }
        let record = copy.end();
        complete(&record);
        assert!(told > 50 && record.adjustments.len() >= told, "{told}");
    }
    assert_same(&site.near().join("data"), &site.far().join("copy"));
    assert_same(&site.near().join("data"), &near);
}

#[test]
fn a_rate_holds_from_the_moment_it_is_told() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), LARGE_BYTES);
    let mut push = site.push(&json!({"copy": {"total_rate_bps": 20_000_000}}));
    push["interval_s"] = json!(0.05);
    let mut copy = Running::start(site.writer(), &push, Local::default());
    copy.until(|copy| copy.moved_bytes > 200_000);
    let began = Instant::now();
    copy.want(r#"{"total_rate_bps":0}"#);
    let told = copy.told(1);
    assert_eq!((told[0].knob, told[0].after), (AdjustKnob::TotalRate, None));
    complete(&copy.end());
    assert!(
        began.elapsed() < Duration::from_secs(8),
        "at the old rate it takes twelve seconds"
    );
}

#[test]
fn the_limits_of_a_ticket_hold_while_a_copy_runs() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), LARGE_BYTES);
    let scope = || Scope::Write { root: site.root() };
    let limits = format!(r#"{{"streams":3,"rate_bps":{RATE_BPS}}}"#);
    let refused = site.run(site.ticket(scope(), &limits), &site.push(&json!({"streams": 4})));
    let error = refused.record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Limit);
    assert!(
        error
            .message
            .contains("streams: 4 requested, but the server allows up to 3"),
        "{error}"
    );
    let mut copy = Running::start(
        site.ticket(scope(), &limits),
        &site.push(&json!({})),
        Local::default(),
    );
    copy.until_moving();
    copy.want(r#"{"streams":4}"#);
    let why = copy.told(1)[0].refused.clone().unwrap();
    assert!(
        why.contains("4 streams requested, but the server allows up to 3"),
        "{why}"
    );
    copy.want(&format!(r#"{{"total_rate_bps":{}}}"#, RATE_BPS + 1));
    let why = copy.told(1)[0].refused.clone().unwrap();
    assert!(why.contains("allows up to 160 Mbit/s"), "{why}");
    copy.want(r#"{"streams":3,"total_rate_bps":0}"#);
    let told = copy.told(2);
    assert!(told.iter().all(|change| change.refused.is_none()), "{told:?}");
    assert!(
        told.iter().any(|change| change.after == Some(RATE_BPS)),
        "no limit is the ticket's limit"
    );
    complete(&copy.end());
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn an_older_far_end_refuses_with_a_clear_line_and_the_copy_goes_on() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), LARGE_BYTES / 3);
    let local = Local {
        versions: VersionRange { min: 1, max: 3 },
        ..Local::default()
    };
    let mut copy = Running::start(site.writer(), &site.push(&way(&json!({}))), local);
    copy.until_moving();
    copy.want(r#"{"streams":4}"#);
    let why = copy.told(1)[0].refused.clone().unwrap();
    assert!(why.contains("older farline"), "{why}");
    let record = copy.end();
    complete(&record);
    assert_eq!((record.adjustments.len(), data_streams(&record)), (1, 2));
    assert!(
        copy.stages.iter().all(|now| now.written_bytes.is_none()),
        "it does not say either"
    );
}

#[test]
fn strangers_at_the_data_port_neither_join_nor_disturb() {
    let (first, last) = free_ports();
    let ports = format!(r#","anonymous":true,"data_port_first":{first},"data_port_last":{last}"#);
    let site = Site::new(&ports);
    make_tree(&site.near().join("data"), LARGE_BYTES);
    let mut copy = Running::start(site.writer(), &site.push(&way(&json!({}))), Local::default());
    copy.until_moving();
    for port in [first, last] {
        let nobody = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        assert!(nobody.is_err(), "nobody can come while none is expected");
    }
    let (is_over, came) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| intrude([first, last], &is_over, &came));
        for streams in [6, 1, 5, 2].into_iter().cycle().take(40) {
            copy.want(&format!(r#"{{"streams":{streams}}}"#));
            let told = copy.told(1);
            if copy.record.is_some() || (came.load(Ordering::Acquire) > 3 && streams == 6) {
                break;
            }
            assert_eq!((told[0].after, &told[0].refused), (Some(streams), &None));
        }
        is_over.store(true, Ordering::Release);
    });
    assert!(came.into_inner() > 0, "some came while streams were expected");
    complete(&copy.end());
    assert_same(&site.near().join("data"), &site.far().join("copy"));
    site.server.serves_still();
}

/// Two ports side by side that nobody has.
fn free_ports() -> (u16, u16) {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok();
    std::iter::repeat_with(|| {
        let one = bind(0)?;
        let port = one.local_addr().ok()?.port();
        bind(port.checked_add(1)?).map(|_| (port, port + 1))
    })
    .take(100)
    .flatten()
    .next()
    .expect("two ports")
}

/// Comes to data ports whenever they are open, until `is_over`, and says nothing or proves nothing; counts in `came`.
fn intrude(ports: [u16; 2], is_over: &AtomicBool, came: &AtomicUsize) {
    let mut strangers = Vec::new();
    while !is_over.load(Ordering::Acquire) && strangers.len() < 500 {
        for port in ports {
            let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
                continue;
            };
            let mut name = b"farline\x01".to_vec();
            name.extend([7; 56]);
            let _ = stream.write_all(&name[..strangers.len() % 4 * 16]);
            came.fetch_add(1, Ordering::AcqRel);
            strangers.push(stream);
        }
    }
}

#[test]
fn an_end_that_goes_away_in_the_middle_of_a_change_leaves_a_copy_that_can_go_on() {
    for dies_at_client in [true, false] {
        let site = Site::new("");
        make_tree(&site.near().join("data"), LARGE_BYTES);
        let mut copy = Running::start(site.writer(), &site.push(&way(&json!({}))), Local::default());
        copy.until_moving();
        copy.want(r#"{"streams":8}"#);
        copy.want(r#"{"streams":1}"#);
        let again = match dies_at_client {
            true => {
                copy.handle.abort();
                site
            }
            false => {
                site.server.server.stop_within(Duration::ZERO);
                let _ = copy.end();
                let mut next = Site::new("");
                std::mem::swap(&mut next.folder, &mut { site }.folder);
                next
            }
        };
        let record = copy.end();
        assert_ne!(record.status, RunStatus::Complete);
        let whole = again.run(again.writer(), &again.push(&json!({})));
        assert_eq!(whole.record.error, None, "{dies_at_client}");
        assert_same(&again.near().join("data"), &again.far().join("copy"));
    }
}

#[test]
fn a_wish_for_nothing_and_one_for_a_run_that_is_over_are_refused() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 1000);
    let mut copy = Running::start(site.writer(), &site.push(&json!({})), Local::default());
    let empty = copy.handle.adjust(AdjustRequest::default()).unwrap_err();
    assert_eq!(empty.kind, FailureKind::Usage);
    let record = copy.end();
    assert_eq!(record.run_id, copy.handle.run_id());
    while !copy.handle.is_over() {
        std::thread::yield_now();
    }
    let over = copy
        .handle
        .adjust(from_json(r#"{"streams":1}"#).unwrap())
        .unwrap_err();
    assert!(over.message.contains("the run is over"), "{over}");
}
