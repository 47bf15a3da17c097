//! What every stream does, whoever opens it.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{FailureKind, RunSpec};
use farline_sys::thread;
use farline_transport::{Counters, MAX_PAYLOAD_BYTES, Probe, Received, Role, Stream, payload};

use crate::harness::{PATIENCE, Subject, V4, V6, accept, key, receive_all, send_all, transfer, with_streams};

/// No multiple of any block or packet.
const TOTAL: u64 = 3_000_017;
/// Within this an aborted call returns.
const AT_ONCE: Duration = Duration::from_secs(1);

fn every_byte_arrives_once_then_the_end(subject: &Subject, ip: IpAddr, is_forward: bool) {
    let spec = subject.spec(TOTAL);
    let (mut sender, mut receiver) = subject.pair(&spec, ip, is_forward);
    assert_eq!(transfer(&mut sender, &mut receiver, TOTAL, &mut |_| {}), TOTAL);
    assert_eq!(
        receiver.sink().unwrap().receive_block().unwrap(),
        Received::End,
        "the end stays the end"
    );
    assert_eq!(sender.probe().sample().bytes, TOTAL as i64);
    assert_eq!(receiver.probe().sample().bytes, TOTAL as i64);
}

pub fn every_byte_arrives_once_then_the_end_on_ipv4_forward(subject: &Subject) {
    every_byte_arrives_once_then_the_end(subject, V4, true);
}

pub fn every_byte_arrives_once_then_the_end_on_ipv4_reverse(subject: &Subject) {
    every_byte_arrives_once_then_the_end(subject, V4, false);
}

pub fn every_byte_arrives_once_then_the_end_on_ipv6_forward(subject: &Subject) {
    every_byte_arrives_once_then_the_end(subject, V6, true);
}

pub fn every_byte_arrives_once_then_the_end_on_ipv6_reverse(subject: &Subject) {
    every_byte_arrives_once_then_the_end(subject, V6, false);
}

pub fn a_total_smaller_than_any_header_arrives(subject: &Subject) {
    for total in [1, 31, 33] {
        let (mut sender, mut receiver) = subject.pair(&subject.spec(total), V4, true);
        assert_eq!(transfer(&mut sender, &mut receiver, total, &mut |_| {}), total);
    }
}

/// A byte stream is the payload over and over; a datagram is its beginning.
pub fn what_arrives_is_what_was_sent_in_order(subject: &Subject) {
    if !subject.promises("carries_data", subject.capabilities().carries_data) {
        return;
    }
    let spec = subject.spec(TOTAL);
    let block = spec.block_bytes.unwrap().get() as usize;
    let want = payload(spec.seed, 0, block.min(MAX_PAYLOAD_BYTES));
    let (mut sender, mut receiver) = subject.pair(&spec, V4, true);
    let (mut place, mut seen, is_stream) = (0, 0, subject.capabilities().reliable);
    let mut compare = |piece: &[u8]| {
        seen += piece.len();
        if !is_stream {
            place = 0;
        }
        for &byte in piece {
            assert_eq!(byte, want[place % want.len()], "at byte {place}");
            place += 1;
        }
    };
    transfer(&mut sender, &mut receiver, TOTAL, &mut compare);
    let is_discarded = spec
        .tcp
        .is_some_and(|tcp| tcp.receive_mode == farline_spec::ReceiveMode::Discard);
    if is_discarded {
        assert_eq!(seen, 0, "discarded bytes cannot be seen");
    } else {
        assert!(seen as u64 > TOTAL * 9 / 10, "only {seen} bytes were compared");
    }
}

pub fn streams_are_told_apart_whatever_the_order(subject: &Subject) {
    let spec = with_streams(subject.spec(3_000), 3);
    let mut listener = subject.listen(V4, &spec).unwrap();
    let remote = listener.local_addr();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let mut left = vec![0, 1, 2];
            while !left.is_empty() {
                let (number, mut stream) =
                    accept(listener.as_mut(), &spec, &left, Role::Receiver, PATIENCE).unwrap();
                left.retain(|&other| other != number);
                assert_eq!(
                    receive_all(&mut stream, &mut |_| {}).unwrap(),
                    1_000 + share_of(subject, number)
                );
            }
        });
        for number in [2, 0, 1] {
            let mut stream = subject.connect(&spec, remote, Role::Sender, number).unwrap();
            send_all(&mut stream, 1_000 + share_of(subject, number)).unwrap();
        }
        accepting.join().unwrap();
    });
}

/// Streams differ in length by their number, where the receiver learns the length from the sender.
fn share_of(subject: &Subject, number: u16) -> u64 {
    if subject.capabilities().carries_data {
        u64::from(number) * 100
    } else {
        0
    }
}

pub fn a_source_address_is_bound_to(subject: &Subject) {
    if !subject.promises("binds_addresses", subject.capabilities().binds_addresses) {
        return;
    }
    let spec = subject.spec(1_000);
    let mut listener = subject.listen("127.0.0.3".parse().unwrap(), &spec).unwrap();
    let remote = listener.local_addr();
    let source: IpAddr = "127.0.0.2".parse().unwrap();
    let (near, far) = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener.as_mut(), &spec, &[0], Role::Receiver, PATIENCE));
        let near = subject
            .connect_as(&spec, remote, Role::Sender, &key(0), Some(source))
            .unwrap();
        (near, accepting.join().unwrap().unwrap().1)
    });
    assert!(
        near.granted().local.starts_with("127.0.0.2:"),
        "{}",
        near.granted().local
    );
    assert_eq!(near.granted().remote, remote.to_string());
    assert_eq!(far.granted().local, remote.to_string());
    assert_eq!(far.granted().remote, near.granted().local);
}

pub fn a_foreign_source_address_is_refused(subject: &Subject) {
    if !subject.promises("binds_addresses", subject.capabilities().binds_addresses) {
        return;
    }
    let spec = subject.spec(1_000);
    let listener = subject.listen(V4, &spec).unwrap();
    for source in ["192.0.2.1", "::1"] {
        let source = Some(source.parse().unwrap());
        let refusal = subject.connect_as(&spec, listener.local_addr(), Role::Sender, &key(0), source);
        let failure = refusal
            .err()
            .expect("a source that is not ours or not of this version of IP");
        assert_eq!(failure.kind, FailureKind::Spec, "{failure}");
        assert!(failure.message.starts_with("pairs.source: "), "{failure}");
    }
}

pub fn a_port_in_use_is_busy(subject: &Subject) {
    if !subject.promises("binds_addresses", subject.capabilities().binds_addresses) {
        return;
    }
    let spec = subject.spec(1_000);
    let first = subject.listen(V4, &spec).unwrap();
    let taken = match subject.capabilities().shares_port {
        // Its own sessions may share one; other programs may not.
        true => {
            let second = subject.transport().listen(first.local_addr(), &spec).unwrap();
            assert_eq!(second.local_addr(), first.local_addr());
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap()
        }
        false => std::net::UdpSocket::bind("127.0.0.4:0").unwrap(),
    };
    let place = match subject.capabilities().shares_port {
        true => taken.local_addr().unwrap(),
        false => first.local_addr(),
    };
    let failure = subject
        .transport()
        .listen(place, &spec)
        .err()
        .expect("the port is taken");
    assert_eq!(failure.kind, FailureKind::Busy, "{failure}");
    let foreign: SocketAddr = "192.0.2.1:0".parse().unwrap();
    assert_eq!(
        subject.transport().listen(foreign, &spec).err().unwrap().kind,
        FailureKind::Spec
    );
}

pub fn waiting_ends_in_time_and_can_go_on(subject: &Subject) {
    let spec = subject.spec(1_000);
    let mut listener = subject.listen(V4, &spec).unwrap();
    let start = Instant::now();
    let failure = accept(
        listener.as_mut(),
        &spec,
        &[],
        Role::Receiver,
        Duration::from_millis(50),
    )
    .err()
    .unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    assert!((Duration::from_millis(50)..AT_ONCE).contains(&start.elapsed()));
    let remote = listener.local_addr();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener.as_mut(), &spec, &[0], Role::Receiver, PATIENCE));
        subject.connect(&spec, remote, Role::Sender, 0).unwrap();
        assert_eq!(accepting.join().unwrap().unwrap().0, 0);
    });
}

pub fn nobody_there_is_said_soon(subject: &Subject) {
    if !subject.promises("carries_data", subject.capabilities().carries_data) {
        return;
    }
    let spec = subject.spec(1_000);
    let remote = subject.listen(V4, &spec).unwrap().local_addr();
    let start = Instant::now();
    let failure = subject
        .connect(&spec, remote, Role::Sender, 0)
        .err()
        .expect("nobody listens any more");
    assert_eq!(failure.kind, FailureKind::Unreachable, "{failure}");
    assert!(start.elapsed() < PATIENCE / 2);
}

/// 40 Mbit/s for a second, within 2 % and one block. Never more; less only by what both ends waited for a CPU meanwhile, and
/// since their transport may have threads besides, one good second in five is enough.
pub fn a_rate_is_kept(subject: &Subject) {
    let mut spec = subject.spec_at(40_000_000);
    spec.block_bytes = Some(farline_spec::unit::BlockBytes::new(16_384).unwrap());
    let mut seconds = std::iter::repeat_with(|| one_paced_second(subject, &spec)).take(5);
    let is_kept = seconds.any(|(bytes, want, starved)| {
        let tolerance = want * 0.02 + 16_384.0;
        assert!(bytes <= want + tolerance, "too fast: {bytes} bytes, not {want}");
        bytes + starved >= want - tolerance
    });
    assert!(is_kept, "five times too slow");
}

/// Bytes sent in about a second, bytes that should have been, and what of them is the time for which the threads of both ends
/// had no CPU.
fn one_paced_second(subject: &Subject, spec: &RunSpec) -> (f64, f64, f64) {
    let (mut sender, mut receiver) = subject.pair(spec, V4, true);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| keep_receiving(&mut receiver, &is_over));
        let starved_before = thread::wait_time().unwrap_or_default();
        let (start, mut bytes) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_secs(1) {
            bytes += sender.source().unwrap().send_block(usize::MAX).unwrap() as u64;
        }
        let want = start.elapsed().as_secs_f64() * 5_000_000.0;
        let starved = thread::wait_time().unwrap_or_default() - starved_before;
        is_over.store(true, Ordering::Relaxed);
        let waited_us = sender.probe().sample().paced_wait_us;
        let _ = sender.finish_sending(Instant::now() + AT_ONCE);
        assert!(
            waited_us > 300_000,
            "only {waited_us} us of the second were waiting"
        );
        let starved = starved + receiving.join().unwrap();
        (bytes as f64, want, starved.as_secs_f64() * 5_000_000.0)
    })
}

/// How long the thread had no CPU.
fn keep_receiving(receiver: &mut Stream, is_over: &AtomicBool) -> Duration {
    while !is_over.load(Ordering::Relaxed) {
        receiver.sink().unwrap().receive_block().unwrap();
    }
    thread::wait_time().unwrap_or_default()
}

pub fn a_very_low_rate_still_lets_the_caller_look_around(subject: &Subject) {
    let (mut sender, _receiver) = subject.pair(&subject.spec_at(1_000), V4, true);
    while sender.source().unwrap().send_block(usize::MAX).unwrap() == 0 {}
    let start = Instant::now();
    assert_eq!(
        sender.source().unwrap().send_block(usize::MAX).unwrap(),
        0,
        "the next block is due in seconds"
    );
    assert!(
        (Duration::from_millis(50)..AT_ONCE).contains(&start.elapsed()),
        "{:?}",
        start.elapsed()
    );
}

pub fn counters_never_run_back_and_agree(subject: &Subject) {
    let spec = subject.spec(TOTAL * 4);
    let (mut sender, mut receiver) = subject.pair(&spec, V4, true);
    let probes = [sender.probe(), receiver.probe()];
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for probe in &probes {
            scope.spawn(|| watch(probe.as_ref(), &is_over));
        }
        transfer(&mut sender, &mut receiver, TOTAL * 4, &mut |_| {});
        is_over.store(true, Ordering::Relaxed);
    });
    let look = || [0, 1].map(|end: usize| probes[end].sample());
    // What acknowledges the end may still be on its way.
    let until = Instant::now() + AT_ONCE;
    let agree = |[sent, received]: [Counters; 2]| sent.packets == received.packets;
    while !agree(look()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    let [sent, received] = look();
    assert_eq!(sent.bytes, received.bytes);
    assert!(sent.blocks > 0 && received.blocks > 0);
    assert_eq!(
        sent.packets, received.packets,
        "datagrams agree, or neither end has any"
    );
    assert!(
        received.lost_packets <= 0 && received.duplicate_packets <= 0,
        "{received:?}"
    );
}

/// Checks sample after sample that no counter runs back.
fn watch(probe: &dyn Probe, is_over: &AtomicBool) {
    let counters = |it: Counters| {
        [
            it.bytes,
            it.blocks,
            it.packets,
            it.retransmits,
            it.busy_us,
            it.paced_wait_us,
            it.zerocopy_copied_bytes,
        ]
    };
    let mut before = counters(probe.sample());
    while !is_over.load(Ordering::Relaxed) {
        let now = counters(probe.sample());
        assert!(
            now.iter().zip(before).all(|(now, before)| *now >= before),
            "{now:?} after {before:?}"
        );
        before = now;
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub fn what_was_granted_is_stated(subject: &Subject) {
    let (sender, receiver) = subject.pair(&subject.spec(1_000), V4, true);
    for stream in [&sender, &receiver] {
        let granted = stream.granted();
        assert!(!granted.local.is_empty() && !granted.remote.is_empty());
        assert_eq!(
            granted.notes,
            Vec::<String>::new(),
            "nothing was asked for that could be refused"
        );
        if subject.promises("binds_addresses", subject.capabilities().binds_addresses) {
            assert!(
                granted.local.parse::<SocketAddr>().is_ok() && granted.remote.parse::<SocketAddr>().is_ok()
            );
            assert!(granted.send_buffer_bytes.unwrap() > 0 && granted.receive_buffer_bytes.unwrap() > 0);
        }
    }
}

/// Runs `call` until it fails or ends, aborts after a moment and wants it over within a second.
fn aborted(probe: &dyn Probe, call: impl FnOnce() -> FailureKind + Send) {
    std::thread::scope(|scope| {
        let blocked = scope.spawn(call);
        std::thread::sleep(Duration::from_millis(150));
        assert!(!blocked.is_finished(), "it was to block until it is aborted");
        let start = Instant::now();
        probe.abort();
        assert_eq!(blocked.join().unwrap(), FailureKind::Interrupted);
        assert!(start.elapsed() < AT_ONCE, "{:?} to abort", start.elapsed());
    });
}

pub fn aborting_ends_a_blocked_receive(subject: &Subject) {
    let (_sender, mut receiver) = subject.pair(&subject.spec_at(0), V4, true);
    aborted(receiver.probe().as_ref(), || {
        loop {
            match receiver.sink().unwrap().receive_block() {
                Ok(Received::Bytes(_)) => {}
                Ok(Received::End) => panic!("nobody has ended the stream"),
                Err(failure) => return failure.kind,
            }
        }
    });
}

pub fn aborting_ends_a_blocked_send(subject: &Subject) {
    let (mut sender, _receiver) = subject.pair(&subject.spec_at(0), V4, true);
    aborted(sender.probe().as_ref(), || {
        loop {
            if let Err(failure) = sender.source().unwrap().send_block(usize::MAX) {
                return failure.kind;
            }
        }
    });
}

pub fn aborting_ends_a_wait_for_the_rate(subject: &Subject) {
    let (mut sender, _receiver) = subject.pair(&subject.spec_at(1_000), V4, true);
    aborted(sender.probe().as_ref(), || {
        loop {
            if let Err(failure) = sender.source().unwrap().send_block(usize::MAX) {
                return failure.kind;
            }
        }
    });
}

pub fn aborting_ends_a_finish_that_nobody_answers(subject: &Subject) {
    if !subject.promises("carries_data", subject.capabilities().carries_data) {
        return;
    }
    let (mut sender, _receiver) = subject.pair(&subject.spec_at(0), V4, true);
    fill(&mut sender);
    if subject.capabilities().encrypts {
        // Its protocol takes no more than the other end has room for, and acknowledges that without its reader.
        sender.finish_sending(Instant::now() + PATIENCE).unwrap();
        return;
    }
    aborted(sender.probe().as_ref(), || {
        sender
            .finish_sending(Instant::now() + PATIENCE)
            .expect_err("nobody reads")
            .kind
    });
}

pub fn finishing_gives_up_in_time(subject: &Subject) {
    let (mut sender, _receiver) = subject.pair(&subject.spec_at(0), V4, true);
    fill(&mut sender);
    let start = Instant::now();
    sender.finish_sending(start + Duration::from_millis(200)).unwrap();
    assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
}

/// Sends until the transport takes no more, or for a while where it always does.
fn fill(sender: &mut Stream) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(300)
        && sender.source().unwrap().send_block(usize::MAX).unwrap() > 0
    {}
}
