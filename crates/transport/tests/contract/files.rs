//! What every stream does that carries files.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farline_spec::unit::RateBps;
use farline_spec::{CopySpec, Failure, FailureKind, RunSpec, Transport};
use farline_transport::{Received, Role, Stream, payload};

use crate::harness::{PATIENCE, Subject, V4, V6, key};

/// No multiple of any packet, blast or piece.
const TOTAL: usize = 20_000_003;
/// Within this an aborted call returns.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The spec of a copy at `rate_bps` for each stream.
fn spec_at(subject: &Subject, rate_bps: u64) -> RunSpec {
    let mut spec = subject.spec_at(rate_bps);
    (spec.duration_s, spec.total_bytes) = (None, None);
    spec.copy = Some(CopySpec::default());
    spec.rate_bps = Some(RateBps::new(rate_bps).unwrap());
    spec
}

fn pair(subject: &Subject, ip: IpAddr, is_forward: bool) -> (Stream, Stream) {
    subject.pair(&spec_at(subject, 0), ip, is_forward)
}

/// Lengths that look like chance and are the same every time.
struct Lengths(u64);

impl Lengths {
    fn next(&mut self, most: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Small ones as often as large ones.
        let magnitude = (self.0 >> 59) as u32 % 21;
        1 + (self.0 >> 20) as usize % most.min(1 << magnitude)
    }
}

/// Sends all of `bytes` in odd pieces, flushing now and then, and finishes.
fn send_files(sender: &mut Stream, bytes: &[u8], most: usize) {
    let (mut lengths, mut sent) = (Lengths(1), 0);
    while sent < bytes.len() {
        let piece = lengths.next(most).min(bytes.len() - sent);
        let taken = sender.bytes().unwrap().send(&bytes[sent..sent + piece]).unwrap();
        assert!(taken <= piece, "{taken} bytes taken of {piece}");
        sent += taken;
        if lengths.next(1 << 20) < 3 {
            sender.bytes().unwrap().flush().unwrap();
        }
    }
    sender.finish_sending(Instant::now() + PATIENCE).unwrap();
}

/// Receives in odd pieces to the end, and compares with `want`.
fn receive_files(receiver: &mut Stream, want: &[u8], most: usize) {
    let (mut lengths, mut seen, start) = (Lengths(2), 0, Instant::now());
    let mut into = vec![0; most];
    while start.elapsed() < 3 * PATIENCE {
        let piece = lengths.next(most);
        match receiver.bytes().unwrap().receive(&mut into[..piece]).unwrap() {
            Received::End => break,
            Received::Bytes(count) => {
                assert!(into[..count] == want[seen..seen + count], "behind byte {seen}");
                seen += count;
            }
        }
    }
    assert_eq!(seen, want.len());
    assert_eq!(
        receiver.bytes().unwrap().receive(&mut into).unwrap(),
        Received::End,
        "the end stays"
    );
}

fn files_arrive(subject: &Subject, ip: IpAddr, is_forward: bool) {
    let bytes = payload(7, 0, TOTAL);
    let (mut sender, mut receiver) = pair(subject, ip, is_forward);
    let probes = [sender.probe(), receiver.probe()];
    std::thread::scope(|scope| {
        scope.spawn(|| receive_files(&mut receiver, &bytes, 300_000));
        send_files(&mut sender, &bytes, 1_500_000);
    });
    for counters in probes.map(|probe| probe.sample()) {
        assert_eq!(counters.bytes, TOTAL as i64);
        assert!(counters.blocks > 0);
    }
}

pub fn files_arrive_as_they_were_given_forward(subject: &Subject) {
    files_arrive(subject, V4, true);
}

pub fn files_arrive_as_they_were_given_reverse(subject: &Subject) {
    files_arrive(subject, V6, false);
}

pub fn a_quarter_of_a_gigabyte_arrives(subject: &Subject) {
    let bytes = payload(8, 0, 1 << 20);
    let (mut sender, mut receiver) = pair(subject, V4, true);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut into, mut seen) = (vec![0; 1 << 20], 0);
            loop {
                let at = seen % into.len();
                match receiver.bytes().unwrap().receive(&mut into[at..]).unwrap() {
                    Received::End => return seen,
                    Received::Bytes(count) => {
                        assert!(
                            into[at..at + count] == bytes[at..at + count],
                            "behind byte {seen}"
                        );
                        seen += count;
                    }
                }
            }
        });
        for _ in 0..256 {
            let mut sent = 0;
            while sent < bytes.len() {
                sent += sender.bytes().unwrap().send(&bytes[sent..]).unwrap();
            }
        }
        sender.finish_sending(Instant::now() + 3 * PATIENCE).unwrap();
        assert_eq!(receiving.join().unwrap(), 256 << 20);
    });
}

/// Receives until `wanted` bytes have come; gives them.
fn receive_exactly(receiver: &mut Stream, wanted: usize) -> Vec<u8> {
    let (mut into, mut seen, start) = (vec![0; wanted], 0, Instant::now());
    while seen < wanted && start.elapsed() < PATIENCE {
        match receiver.bytes().unwrap().receive(&mut into[seen..]).unwrap() {
            Received::Bytes(count) => seen += count,
            Received::End => break,
        }
    }
    into.truncate(seen);
    into
}

/// A sender that waits for files tends its stream and does nothing else.
pub fn what_is_flushed_arrives_although_nothing_follows(subject: &Subject) {
    let (mut sender, mut receiver) = pair(subject, V4, true);
    for (round, length) in [1, 10, 100_000, 3].into_iter().enumerate() {
        let bytes = payload(round as u64, 0, length);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let got = receive_exactly(&mut receiver, length);
                is_over.store(true, Ordering::Relaxed);
                got
            });
            let mut sent = 0;
            while sent < length {
                sent += sender.bytes().unwrap().send(&bytes[sent..]).unwrap();
            }
            sender.bytes().unwrap().flush().unwrap();
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(receiving.join().unwrap() == bytes[..], "round {round}");
        });
    }
}

/// A receiver that has no room leaves its stream alone, and the sender stops instead of taking it for dead.
pub fn a_sender_waits_for_a_receiver_that_has_no_room(subject: &Subject) {
    let (mut sender, mut receiver) = pair(subject, V4, true);
    let bytes = payload(9, 0, 1 << 20);
    let sent = {
        let mut sent = 0;
        let mut idle_since = Instant::now();
        while idle_since.elapsed() < Duration::from_millis(300) {
            let taken = sender
                .bytes()
                .unwrap()
                .send(&bytes[sent % bytes.len()..])
                .unwrap();
            sent += taken;
            if taken > 0 {
                idle_since = Instant::now();
            }
            assert!(sent < 4 << 30, "nobody stops the sender");
        }
        sent
    };
    let want: Vec<u8> = bytes.iter().copied().cycle().take(sent).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| receive_files(&mut receiver, &want, 1 << 20));
        sender.finish_sending(Instant::now() + 3 * PATIENCE).unwrap();
    });
}

pub fn nothing_to_send_is_an_end(subject: &Subject) {
    let (mut sender, mut receiver) = pair(subject, V4, true);
    sender.bytes().unwrap().flush().unwrap();
    assert_eq!(sender.bytes().unwrap().send(&[]).unwrap(), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| receive_files(&mut receiver, &[], 100));
        sender.finish_sending(Instant::now() + PATIENCE).unwrap();
    });
}

/// What has come is still given; then it is over, over TCP before the other end has said so.
pub fn who_has_all_need_not_hear_the_end(subject: &Subject) {
    let (mut sender, mut receiver) = pair(subject, V4, true);
    let waits_for_the_end = spec_at(subject, 0).transport != Transport::Tcp;
    let bytes = payload(3, 0, 1000);
    let has_come = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let got = receive_exactly(&mut receiver, 1000);
            has_come.store(true, Ordering::Relaxed);
            receiver.probe().end_receiving();
            receive_files(&mut receiver, &[], 100);
            got
        });
        assert_eq!(sender.bytes().unwrap().send(&bytes).unwrap(), 1000);
        sender.bytes().unwrap().flush().unwrap();
        let wait_for = |is_over: &dyn Fn() -> bool| {
            while !is_over() {
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        wait_for(&|| has_come.load(Ordering::Relaxed));
        if waits_for_the_end {
            sender.finish_sending(Instant::now() + PATIENCE).unwrap();
        }
        wait_for(&|| receiving.is_finished());
        assert!(receiving.join().unwrap() == bytes[..]);
    });
}

pub fn a_stream_is_used_for_what_it_was_opened_for(subject: &Subject) {
    let (mut sender, mut receiver) = pair(subject, V4, true);
    let internal = |failure: Option<Failure>| assert_eq!(failure.unwrap().kind, FailureKind::Internal);
    internal(sender.source().err());
    internal(receiver.sink().err());
    internal(receiver.bytes().unwrap().send(&[1]).err());
    internal(sender.bytes().unwrap().receive(&mut [0; 9]).err());
    let (mut sender, mut receiver) = subject.pair(&subject.spec(1_000), V4, true);
    internal(sender.bytes().err());
    internal(sender.sink().err());
    internal(receiver.bytes().err());
    internal(receiver.source().err());
}

/// Runs `call` until it fails, aborts after a moment and wants it over within a second.
fn aborted(stream: &mut Stream, mut call: impl FnMut(&mut Stream) -> FailureKind + Send) {
    let probe = stream.probe();
    std::thread::scope(|scope| {
        let blocked = scope.spawn(move || call(stream));
        std::thread::sleep(Duration::from_millis(150));
        assert!(!blocked.is_finished(), "it was to block until it is aborted");
        let start = Instant::now();
        probe.abort();
        assert_eq!(blocked.join().unwrap(), FailureKind::Interrupted);
        assert!(start.elapsed() < AT_ONCE, "{:?} to abort", start.elapsed());
    });
}

pub fn aborting_ends_a_blocked_send_of_files(subject: &Subject) {
    let (mut sender, _receiver) = pair(subject, V4, true);
    let bytes = vec![1; 1 << 20];
    aborted(&mut sender, |stream| {
        loop {
            if let Err(failure) = stream.bytes().unwrap().send(&bytes) {
                return failure.kind;
            }
        }
    });
}

pub fn aborting_ends_a_blocked_receive_of_files(subject: &Subject) {
    let (_sender, mut receiver) = pair(subject, V4, true);
    let mut into = vec![0; 1 << 20];
    aborted(&mut receiver, |stream| {
        loop {
            match stream.bytes().unwrap().receive(&mut into) {
                Ok(Received::Bytes(_)) => {}
                Ok(Received::End) => panic!("nobody has ended the stream"),
                Err(failure) => return failure.kind,
            }
        }
    });
}

/// A receiver that is gone is found out, be it after the protocol's patience.
pub fn a_receiver_that_is_gone_fails_the_send(subject: &Subject) {
    let (mut sender, receiver) = pair(subject, V4, true);
    let bytes = vec![1; 100_000];
    sender.bytes().unwrap().send(&bytes).unwrap();
    drop(receiver);
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Err(failure) = sender
            .bytes()
            .unwrap()
            .send(&bytes)
            .and_then(|_| sender.bytes().unwrap().flush())
        {
            assert_ne!(failure.kind, FailureKind::Interrupted, "{failure}");
            return;
        }
    }
    panic!("still sending to nobody after {PATIENCE:?}");
}

/// Whatever a receiver is told of a sender that is gone, it gets no byte that was not sent.
pub fn a_sender_that_is_gone_ends_the_receive(subject: &Subject) {
    let (mut sender, mut receiver) = pair(subject, V4, true);
    let bytes = payload(3, 0, 100_000);
    let sent = sender.bytes().unwrap().send(&bytes).unwrap();
    sender.bytes().unwrap().flush().unwrap();
    drop(sender);
    let (mut into, mut seen, start) = (vec![0; 4_096], 0, Instant::now());
    while start.elapsed() < PATIENCE {
        match receiver.bytes().unwrap().receive(&mut into) {
            Ok(Received::Bytes(count)) => {
                assert!(into[..count] == bytes[seen..seen + count]);
                seen += count;
            }
            Ok(Received::End) | Err(_) => {
                assert!(seen <= sent);
                return;
            }
        }
    }
    panic!("still waiting for nobody after {PATIENCE:?}");
}

/// 80 Mbit/s for a second, five times, and more often until one of them has the rate. More comes in a second only where the
/// receiver was late before, less only on a machine that starves the sender of CPU time: the third of the first five is not more,
/// and one of all is not less.
pub fn a_rate_is_kept_by_files(subject: &Subject) {
    let spec = spec_at(subject, 80_000_000);
    let mut rates: Vec<f64> = (0..5).map(|_| second_at(subject, &spec)).collect();
    rates.sort_by(f64::total_cmp);
    assert!(rates[2] <= 10_000_000.0 * 1.07, "{rates:?}");
    let has_it = |rate: &f64| *rate >= 10_000_000.0 * 0.95;
    while !rates.iter().any(has_it) && rates.len() < 20 {
        rates.push(second_at(subject, &spec));
    }
    assert!(rates.iter().any(has_it), "{rates:?}");
}

/// Bytes that arrive in a second of a stream at a rate.
fn second_at(subject: &Subject, spec: &RunSpec) -> f64 {
    let (mut sender, mut receiver) = subject.pair(spec, V4, true);
    let (bytes, probe) = (vec![5; 1 << 20], receiver.probe());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sent = 0;
            while !is_over.load(Ordering::Relaxed) {
                sent += sender
                    .bytes()
                    .unwrap()
                    .send(&bytes[sent % bytes.len()..])
                    .unwrap();
            }
        });
        let mut into = vec![0; 65_536];
        let mut receive_for = |time: Duration| {
            let start = Instant::now();
            while start.elapsed() < time {
                receiver.bytes().unwrap().receive(&mut into).unwrap();
            }
            (probe.sample().bytes, Instant::now())
        };
        // What start-up lets through is not the rate.
        let (before, from) = receive_for(Duration::from_millis(200));
        let (after, to) = receive_for(Duration::from_secs(1));
        is_over.store(true, Ordering::Relaxed);
        (after - before) as f64 / (to - from).as_secs_f64()
    })
}

pub fn the_path_without_a_network_and_datagrams_carry_no_files() {
    for spec in [r#"{"transport":"null"}"#, r#"{"transport":"udp"}"#] {
        let subject = Subject { spec };
        assert!(!subject.capabilities().carries_files);
        let spec = spec_at(&subject, 0);
        let listening = subject.listen(V4, &spec).err().unwrap();
        let nobody = SocketAddr::new(V4, 9);
        let connecting = subject.connect(&spec, nobody, Role::Sender, 0).err().unwrap();
        for failure in [listening, connecting] {
            assert_eq!(failure.kind, FailureKind::Spec);
            assert!(failure.message.contains("cannot copy files"), "{failure}");
        }
    }
}

pub fn options_that_say_what_blocks_are_made_of_are_refused() {
    let refused = [
        (
            r#"{"transport":"tcp","tcp":{"send_mode":"zerocopy"}}"#,
            "tcp.send_mode",
        ),
        (
            r#"{"transport":"tcp","tcp":{"receive_mode":"discard"}}"#,
            "tcp.receive_mode",
        ),
        (
            r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"receiver":"fake"}}"#,
            "rbudp.receiver",
        ),
        (
            r#"{"transport":"rbudp","rate_bps":0,"rbudp":{"file":"/tmp/x"}}"#,
            "rbudp.file",
        ),
    ];
    for (spec, option) in refused {
        let subject = Subject { spec };
        let spec = spec_at(&subject, 0);
        let remote = "127.0.0.1:9".parse().unwrap();
        let failures = [
            subject.listen(V4, &spec).err(),
            subject
                .connect_as(&spec, remote, Role::Sender, &key(0), None)
                .err(),
        ];
        for failure in failures.map(Option::unwrap) {
            assert_eq!(failure.kind, FailureKind::Spec, "{failure}");
            assert!(failure.message.starts_with(option), "{failure}");
        }
    }
}
