//! The engine over streams in memory: exact totals, every way to end, every way to fail.

use std::sync::Weak;

use farline_spec::Samples;
use farline_spec::unit::CpuIndex;
use farline_transport::{Probe, Role, Stream};

use super::fake::{FakeStream, Fault, pair};
use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// One end of a run and what it says.
pub(super) struct Bench {
    pub(super) run: Run,
    events: Receiver<RunEvent>,
}

pub(super) fn spec(json: &str) -> RunSpec {
    farline_spec::from_json::<RunSpec>(json)
        .unwrap()
        .resolved()
        .unwrap()
}

fn request(json: &str, end: End, streams: Vec<OpenStream>) -> (RunRequest, Receiver<RunEvent>) {
    let (events, inbox) = unbounded();
    let wake = Arc::new(Waker::new().unwrap());
    let request = RunRequest {
        spec: spec(json),
        end,
        streams,
        max_rate_bps: None,
        watchdog: PATIENCE,
        events,
        wake,
        copy: None,
        rate: None,
        give_way: None,
    };
    (request, inbox)
}

pub(super) fn start(json: &str, end: End, streams: Vec<OpenStream>) -> Bench {
    start_with(json, end, streams, |_| {})
}

fn start_with(json: &str, end: End, streams: Vec<OpenStream>, change: impl FnOnce(&mut RunRequest)) -> Bench {
    let (mut request, events) = request(json, end, streams);
    change(&mut request);
    Bench {
        run: Run::start(request).unwrap(),
        events,
    }
}

impl Bench {
    /// Waits for the end; gives the outcome and everything said but the samples.
    pub(super) fn end(self) -> (RunOutcome, Vec<RunEvent>) {
        self.end_by(PATIENCE)
    }

    fn end_by(self, time: Duration) -> (RunOutcome, Vec<RunEvent>) {
        let outcome = self.run.finish(Instant::now() + time);
        let mut said = Samples::default();
        let mut events = Vec::new();
        for event in self.events.try_iter() {
            match event {
                RunEvent::Samples(mut batch) => said.append(&mut batch),
                other => events.push(other),
            }
        }
        assert_eq!(events.last(), Some(&RunEvent::Turn(RunTurn::AllDone)));
        assert_eq!(said, outcome.samples, "what was said is what is kept");
        check_rows(&outcome);
        (outcome, events)
    }
}

/// Rows follow each other without a gap, and add up to the records exactly.
fn check_rows(outcome: &RunOutcome) {
    let samples = &outcome.samples;
    assert!(samples.is_rectangular());
    for record in &outcome.streams {
        let rows: Vec<_> = (0..samples.len())
            .filter(|&row| samples.stream[row] == i64::from(record.stream))
            .collect();
        let sum = |column: &[i64]| rows.iter().map(|&row| column[row]).sum::<i64>();
        assert_eq!(sum(&samples.bytes), record.bytes as i64);
        assert_eq!(sum(&samples.thread_cpu_us), record.thread_cpu_us as i64);
        assert_eq!(samples.start_us[rows[0]], 0);
        assert!(
            rows.windows(2)
                .all(|pair| samples.end_us[pair[0]] == samples.start_us[pair[1]])
        );
        assert!(
            rows.iter()
                .all(|&row| samples.end_us[row] > samples.start_us[row])
        );
        assert!(record.elapsed_us <= *samples.end_us.last().unwrap() as u64);
    }
}

fn open(stream: u16, role: Role, io: Box<FakeStream>) -> OpenStream {
    let io = match role {
        Role::Sender => Stream::Source(io),
        Role::Receiver => Stream::Sink(io),
    };
    OpenStream {
        stream,
        role,
        cpu: None,
        io,
    }
}

/// Streams of the two ends, senders first.
fn streams(faults: &[(Fault, Fault)]) -> (Vec<OpenStream>, Vec<OpenStream>) {
    let pairs = faults.iter().map(|&(send, receive)| pair(send, receive));
    let numbered = pairs.zip(0..).map(|((sender, receiver), stream)| {
        (
            open(stream, Role::Sender, sender),
            open(stream, Role::Receiver, receiver),
        )
    });
    numbered.unzip()
}

fn healthy(count: usize) -> (Vec<OpenStream>, Vec<OpenStream>) {
    streams(&vec![(Fault::None, Fault::None); count])
}

pub(super) fn total(outcome: &RunOutcome) -> u64 {
    outcome.streams.iter().map(|record| record.bytes).sum()
}

#[test]
fn streams_together_send_exactly_the_total() {
    let (senders, receivers) = healthy(4);
    let json = r#"{"total_bytes":1000003,"block_bytes":4096,"interval_s":0.01}"#;
    let near = start(json, End::Client, senders);
    let far = start(json, End::Server, receivers);
    let ((near, near_events), (far, far_events)) = (near.end(), far.end());
    assert_eq!((total(&near), total(&far)), (1_000_003, 1_000_003));
    assert_eq!(
        near_events,
        [
            RunEvent::Turn(RunTurn::SendersDone),
            RunEvent::Turn(RunTurn::AllDone)
        ]
    );
    assert_eq!(far_events, [RunEvent::Turn(RunTurn::AllDone)]);
    assert!(near.failure.is_none() && far.failure.is_none());
    for (sent, received) in near.streams.iter().zip(&far.streams) {
        assert_eq!((sent.bytes, sent.end, sent.role), (received.bytes, 0, 0));
        assert_eq!((received.end, received.role), (1, 1));
        assert!(sent.blocks > 0 && sent.elapsed_us > 0);
    }
}

#[test]
fn senders_stop_after_the_duration() {
    let (senders, receivers) = healthy(2);
    let near = start(r#"{"duration_s":0.25,"interval_s":0.05}"#, End::Client, senders);
    let far = start(r#"{"duration_s":0.25,"interval_s":0.05}"#, End::Server, receivers);
    let ((near, _), (far, _)) = (near.end(), far.end());
    assert_eq!(total(&near), total(&far));
    for record in near.streams {
        assert!(
            (250_000..5_000_000).contains(&record.elapsed_us),
            "{}",
            record.elapsed_us
        );
        assert_eq!(record.granted.local, "memory");
    }
    assert!(near.samples.len() >= 2 * 2 && near.run_s >= 0.25);
    assert!(near.cpu.wall_s >= 0.25 && near.cpu.wall_s < 10.0);
}

#[test]
fn the_duration_counts_from_the_end_of_what_is_omitted() {
    let (senders, receivers) = healthy(1);
    let json = r#"{"duration_s":0.1,"omit_s":0.3,"interval_s":0.05}"#;
    let begin = Instant::now();
    let near = start(json, End::Client, senders);
    let far = start(json, End::Server, receivers);
    let late_s = begin.elapsed().as_secs_f64();
    let ((near, _), (far, _)) = (near.end(), far.end());
    assert_eq!(total(&near), total(&far));
    assert!((0.4..10.0).contains(&near.run_s), "{}", near.run_s);
    // It ends with its senders, that began before it.
    assert!((0.4 - late_s..10.0).contains(&far.run_s), "{}", far.run_s);
}

#[test]
fn a_stopped_run_ends_early_with_all_its_bytes() {
    let (senders, receivers) = healthy(2);
    let near = start(r#"{"duration_s":600}"#, End::Client, senders);
    let far = start(r#"{"duration_s":600}"#, End::Server, receivers);
    std::thread::sleep(Duration::from_millis(50));
    near.run.stop();
    let ((near, events), (far, _)) = (near.end(), far.end());
    assert_eq!(
        events,
        [
            RunEvent::Turn(RunTurn::SendersDone),
            RunEvent::Turn(RunTurn::AllDone)
        ]
    );
    assert!(near.failure.is_none() && near.run_s < 10.0);
    assert_eq!(total(&near), total(&far));
    assert!(total(&far) > 0);
}

#[test]
fn an_aborted_run_is_no_failure_but_says_nothing_of_being_done() {
    let (senders, receivers) = healthy(2);
    let near = start(r#"{"duration_s":600}"#, End::Client, senders);
    std::thread::sleep(Duration::from_millis(30));
    near.run.abort();
    let (outcome, events) = near.end();
    assert_eq!(events, [RunEvent::Turn(RunTurn::AllDone)]);
    assert_eq!(outcome.failure, None);
    assert!(outcome.run_s < 10.0);
    drop(receivers);
}

#[test]
fn both_directions_run_in_one_engine() {
    let (mut near, mut far) = healthy(2);
    for (stream, (reverse, forward)) in (2..).zip([0; 2].map(|_| pair(Fault::None, Fault::None))) {
        far.push(open(stream, Role::Sender, reverse));
        near.push(open(stream, Role::Receiver, forward));
    }
    let json = r#"{"direction":"bidirectional","streams":2,"total_bytes":50001,"block_bytes":1000}"#;
    let near = start(json, End::Client, near);
    let far = start(json, End::Server, far);
    let ((near, near_events), (far, far_events)) = (near.end(), far.end());
    let sent = |outcome: &RunOutcome, role| {
        outcome
            .streams
            .iter()
            .filter(|record| record.role == role)
            .map(|record| record.bytes)
            .sum::<u64>()
    };
    assert_eq!(
        [sent(&near, 0), sent(&near, 1), sent(&far, 0), sent(&far, 1)],
        [50_001; 4]
    );
    assert_eq!(
        near_events,
        [
            RunEvent::Turn(RunTurn::SendersDone),
            RunEvent::Turn(RunTurn::AllDone)
        ]
    );
    assert_eq!(
        far_events,
        [
            RunEvent::Turn(RunTurn::SendersDone),
            RunEvent::Turn(RunTurn::AllDone)
        ]
    );
}

fn failure_of(bench: Bench) -> (RunOutcome, Failure) {
    let (outcome, events) = bench.end();
    let failure = outcome.failure.clone().expect("the run failed");
    assert_eq!(
        events,
        [
            RunEvent::Turn(RunTurn::Failed(failure.clone())),
            RunEvent::Turn(RunTurn::AllDone)
        ]
    );
    (outcome, failure)
}

#[test]
fn one_failing_stream_ends_the_others_and_keeps_what_was_measured() {
    let (senders, receivers) = streams(&[
        (Fault::None, Fault::None),
        (Fault::FailsAfter(20), Fault::None),
        (Fault::None, Fault::None),
    ]);
    let far = start("{}", End::Server, receivers);
    let (outcome, failure) = failure_of(start("{}", End::Client, senders));
    far.run.abort();
    assert_eq!(far.end().0.failure, None);
    assert_eq!(failure.kind, FailureKind::Protocol);
    assert_eq!(failure.message, "stream 1: connection reset by the test");
    assert_eq!(outcome.streams.len(), 3);
    assert!(
        outcome
            .streams
            .iter()
            .all(|record| record.bytes > 0 && record.granted.local == "memory")
    );
}

#[test]
fn a_panic_in_a_transport_is_a_failure_of_ours() {
    let (senders, _receivers) = streams(&[(Fault::PanicsAfter(2), Fault::None)]);
    let (_, failure) = failure_of(start("{}", End::Client, senders));
    assert_eq!(failure.kind, FailureKind::Internal);
    assert_eq!(failure.message, "stream 0: the thread of the stream panicked");
}

#[test]
fn the_watchdog_ends_a_run_that_does_not_end() {
    let (_senders, receivers) = healthy(1);
    let bench = start_with("{}", End::Server, receivers, |request| {
        request.watchdog = Duration::from_millis(120);
    });
    let (outcome, failure) = failure_of(bench);
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert!(
        failure
            .message
            .starts_with("streams [0] had not ended 0.12 s after"),
        "{failure}"
    );
    assert!(outcome.run_s >= 0.12 && outcome.run_s < 10.0);
}

#[test]
fn a_receiver_without_an_end_fails_only_where_ends_are_certain() {
    for (json, expected) in [
        ("{}", Some(FailureKind::Timeout)),
        (r#"{"transport":"udp"}"#, None),
    ] {
        let (senders, receivers) = streams(&[(Fault::None, Fault::NeverEnds)]);
        let far = start(json, End::Server, receivers);
        let near = start_with(json, End::Client, senders, |request| {
            request.spec.duration_s = farline_spec::from_json("0.02").ok();
        });
        let sent = total(&near.end().0);
        let (outcome, _) = far.end_by(Duration::from_millis(500));
        assert_eq!(outcome.failure.as_ref().map(|failure| failure.kind), expected);
        assert_eq!(total(&outcome), sent);
        let silent_s = outcome.run_s - outcome.streams[0].elapsed_us as f64 / 1e6;
        assert!(
            silent_s > 0.099,
            "the wait for the end is no part of the transfer: {silent_s}"
        );
    }
}

#[test]
fn a_stream_that_does_not_return_is_left_behind_and_named() {
    let (senders, receivers) = streams(&[(Fault::None, Fault::Hangs(1_500))]);
    let bench = start("{}", End::Server, receivers);
    let (outcome, events) = bench.end_by(Duration::from_millis(20));
    assert!(outcome.run_s < 1.4, "{}", outcome.run_s);
    assert_eq!(events.len(), 2);
    assert_eq!(outcome.failure.unwrap().kind, FailureKind::Timeout);
    assert_eq!(outcome.streams.len(), 1);
    drop(senders);
}

#[test]
fn a_run_beyond_its_rate_is_ended() {
    let (senders, receivers) = healthy(2);
    let far = start("{}", End::Server, receivers);
    let bench = start_with("{}", End::Client, senders, |request| {
        request.max_rate_bps = Some(1_000_000)
    });
    let (outcome, failure) = failure_of(bench);
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(total(&outcome) > 2_200_000 / 8);
    far.run.abort();
}

#[test]
fn messages_of_a_copy_have_a_limit_of_their_own() {
    let (mut senders, receivers) = healthy(1);
    let far = start("{}", End::Server, receivers);
    // Behind the streams of data.
    senders[0].stream = 1;
    let copy = r#"{"copy":{"sources":["s"],"destination":"d"}}"#;
    let bench = start_with(copy, End::Client, senders, |request| {
        request.max_rate_bps = Some(1_000_000)
    });
    let (outcome, failure) = failure_of(bench);
    assert_eq!(failure.kind, FailureKind::Limit);
    assert!(failure.message.starts_with("messages: "), "{failure}");
    assert!(total(&outcome) > 22_000_000 / 8);
    far.run.abort();
}

#[test]
fn a_pinned_stream_says_where() {
    let cpu = farline_sys::thread::allowed_cpus().unwrap()[0];
    let (mut senders, receivers) = healthy(1);
    senders[0].cpu = farline_spec::from_json(&cpu.to_string()).ok();
    let far = start(r#"{"total_bytes":1000}"#, End::Server, receivers);
    let (outcome, _) = start(r#"{"total_bytes":1000}"#, End::Client, senders).end();
    assert_eq!(outcome.streams[0].granted.cpu, Some(cpu as u32));
    assert_eq!(far.end().0.streams[0].granted.cpu, None);
}

fn refusal(json: &str, streams: Vec<OpenStream>) -> Failure {
    Run::start(request(json, End::Client, streams).0)
        .err()
        .expect("refused")
}

#[test]
fn what_cannot_run_is_refused_and_leaves_nothing_behind() {
    let (mut senders, _receivers) = healthy(3);
    senders[1].cpu = CpuIndex::new(4095).ok();
    let probes: Vec<Weak<dyn Probe>> = senders
        .iter()
        .map(|open| Arc::downgrade(&open.io.probe()))
        .collect();
    assert_eq!(refusal("{}", senders).kind, FailureKind::Spec);
    wait_until_released(&probes);
    let failure = refusal(r#"{"duration_s":604800,"interval_s":0.005}"#, healthy(1).0);
    assert!(
        failure
            .message
            .contains("of 1 stream makes 120960000 rows; allowed: 8000000"),
        "{failure}"
    );
    let failure = refusal(
        r#"{"duration_s":39999,"omit_s":2,"interval_s":0.005}"#,
        healthy(1).0,
    );
    assert!(failure.message.contains("8000200 rows"), "{failure}");
    assert_eq!(refusal("{}", Vec::new()).kind, FailureKind::Internal);
}

#[test]
fn run_after_run_releases_every_stream_and_thread() {
    let mut probes: Vec<Weak<dyn Probe>> = Vec::new();
    for _ in 0..50 {
        let (senders, receivers) = healthy(2);
        probes.extend(
            senders
                .iter()
                .chain(&receivers)
                .map(|open| Arc::downgrade(&open.io.probe())),
        );
        let near = start(r#"{"total_bytes":100}"#, End::Client, senders);
        start(r#"{"total_bytes":100}"#, End::Server, receivers).end();
        near.end();
    }
    assert!(probes.iter().all(|probe| probe.upgrade().is_none()));
}

fn wait_until_released(probes: &[Weak<dyn Probe>]) {
    let deadline = Instant::now() + PATIENCE;
    while probes.iter().any(|probe| probe.upgrade().is_some()) {
        assert!(Instant::now() < deadline, "a thread holds on to its stream");
        std::thread::sleep(Duration::from_millis(1));
    }
}
