//! What UDP counts, over a relay that loses, doubles, delays and forges datagrams; and what it makes of its options.

mod relay;
mod small_mtu;

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, from_json};
use farline_transport::{Connect, Counters, Received, Role, Stream, StreamKey, transport_for};

use crate::relay::{Pass, Relay, Way};

const PATIENCE: Duration = Duration::from_secs(20);
/// Kinds of datagrams on the wire (byte 28 of the header).
const DATA: u8 = 1;
const WELCOME: u8 = 2;
const CONFIRM: u8 = 3;
const END: u8 = 5;
const END_SEEN: u8 = 6;
/// A hello has no header; it is 64 bytes long.
const HELLO: u8 = 0;

fn spec(fields: &str) -> RunSpec {
    from_json::<RunSpec>(&format!(r#"{{"transport":"udp",{fields}}}"#))
        .unwrap()
        .resolved()
        .unwrap()
}

/// 100-byte packets, gently.
fn small() -> RunSpec {
    spec(r#""rate_bps":20000000,"udp":{"packet_bytes":100,"batch_packets":10}"#)
}

fn key() -> StreamKey {
    StreamKey {
        stream: 3,
        session: [1; 16],
        proof: [2; 32],
    }
}

fn kind_of(datagram: &[u8]) -> u8 {
    if datagram.len() == 64 {
        HELLO
    } else {
        datagram.get(28).copied().unwrap_or(u8::MAX)
    }
}

/// Opens a stream from the one end to the other by way of `relay_to` (or directly); sender first.
fn open(spec: &RunSpec, is_forward: bool, via: impl FnOnce(SocketAddr) -> SocketAddr) -> [Stream; 2] {
    let transport = transport_for(spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), spec).unwrap();
    let remote = via(listener.local_addr());
    let (near, far) = if is_forward {
        (Role::Sender, Role::Receiver)
    } else {
        (Role::Receiver, Role::Sender)
    };
    let (key, deadline) = (key(), Instant::now() + PATIENCE);
    let request = Connect {
        spec,
        role: near,
        source: None,
        source_device: None,
        remote,
        key: &key,
        deadline,
    };
    let (accepted, connected) = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept(spec, &[self::key()], &|_| far, deadline));
        let connected = transport.connect(&request);
        (accepting.join().unwrap().unwrap().1, connected.unwrap())
    });
    if is_forward {
        [connected, accepted]
    } else {
        [accepted, connected]
    }
}

/// Sends `blocks` full batches and finishes; gives the bytes received and the counters of both ends.
fn run([mut sender, mut receiver]: [Stream; 2], packets: u64) -> (u64, Counters, Counters, Vec<String>) {
    let received = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut total, start) = (0, Instant::now());
            loop {
                assert!(start.elapsed() < PATIENCE, "no end after {total} bytes");
                match receiver.sink().unwrap().receive_block().unwrap() {
                    Received::Bytes(bytes) => total += bytes as u64,
                    Received::End => return total,
                }
            }
        });
        let mut left = packets * 100;
        while left > 0 {
            left -= sender.source().unwrap().send_block(left as usize).unwrap() as u64;
        }
        sender.finish_sending(Instant::now() + PATIENCE).unwrap();
        receiving.join().unwrap()
    });
    (
        received,
        sender.probe().sample(),
        receiver.probe().sample(),
        receiver.granted().notes,
    )
}

/// Runs a whole stream through a relay.
fn through(
    spec: &RunSpec,
    is_forward: bool,
    packets: u64,
    pass: &Pass<'_>,
) -> (u64, Counters, Counters, Vec<String>) {
    Relay::run(pass, |relay| {
        let streams = open(spec, is_forward, |listener| relay.towards(listener));
        run(streams, packets)
    })
}

#[test]
fn every_tenth_lost_is_counted_as_lost() {
    let count = AtomicUsize::new(0);
    let pass = |_, datagram: &[u8]| {
        let is_tenth = kind_of(datagram) == DATA && count.fetch_add(1, Ordering::Relaxed) % 10 == 9;
        if is_tenth { vec![] } else { vec![datagram.to_vec()] }
    };
    let (bytes, sent, received, _) = through(&small(), true, 1_000, &pass);
    assert_eq!((sent.packets, sent.bytes), (1_000, 100_000));
    assert_eq!((received.packets, received.lost_packets), (900, 100));
    assert_eq!((bytes, received.bytes), (90_000, 90_000));
    assert_eq!((received.reordered_packets, received.duplicate_packets), (0, 0));
}

#[test]
fn a_datagram_that_came_twice_counts_once() {
    let pass = |_, datagram: &[u8]| vec![datagram.to_vec(); if kind_of(datagram) == DATA { 2 } else { 1 }];
    let (bytes, _, received, _) = through(&small(), true, 500, &pass);
    assert_eq!(
        (bytes, received.duplicate_packets, received.lost_packets),
        (50_000, 500, 0)
    );
}

#[test]
fn received_into_application_memory_the_account_is_the_same() {
    let spec =
        spec(r#""rate_bps":20000000,"udp":{"packet_bytes":100,"batch_packets":10,"receive_mode":"copy"}"#);
    let count = AtomicUsize::new(0);
    let pass = |_: Way, datagram: &[u8]| {
        let is_fifth = kind_of(datagram) == DATA && count.fetch_add(1, Ordering::Relaxed) % 5 == 4;
        vec![datagram.to_vec(); if is_fifth { 2 } else { 1 }]
    };
    let (bytes, sent, received, _) = through(&spec, true, 5_000, &pass);
    assert_eq!((bytes, sent.packets), (500_000, 5_000));
    assert_eq!((received.lost_packets, received.duplicate_packets), (0, 1_000));
}

#[test]
fn swapped_neighbours_are_reordered_not_lost() {
    let held = std::sync::Mutex::new(None::<Vec<u8>>);
    let pass = |_, datagram: &[u8]| {
        if kind_of(datagram) != DATA {
            return vec![datagram.to_vec()];
        }
        let mut held = held.lock().unwrap();
        match held.take() {
            Some(first) => vec![datagram.to_vec(), first],
            None => {
                *held = Some(datagram.to_vec());
                vec![]
            }
        }
    };
    let (bytes, _, received, _) = through(&small(), true, 500, &pass);
    assert_eq!(
        (bytes, received.reordered_packets, received.lost_packets),
        (50_000, 250, 0)
    );
}

#[test]
fn forged_datagrams_are_counted_out_and_never_data() {
    let pass = |way, datagram: &[u8]| {
        let mut forged = datagram.to_vec();
        forged[0] ^= 1;
        let is_data = way == Way::There && kind_of(datagram) == DATA;
        if is_data {
            vec![forged, datagram.to_vec()]
        } else {
            vec![datagram.to_vec()]
        }
    };
    let (bytes, _, received, notes) = through(&small(), true, 300, &pass);
    assert_eq!(
        (bytes, received.packets, received.duplicate_packets),
        (30_000, 300, 0)
    );
    assert_eq!(
        notes,
        ["ignored 300 datagrams that did not belong to this stream"]
    );
}

/// Loses the first three datagrams of each kind in turn, both ways, in both roles.
#[test]
fn a_stream_opens_and_ends_whatever_is_lost_first() {
    for is_forward in [true, false] {
        for kind in [HELLO, WELCOME, CONFIRM, END, END_SEEN] {
            let lost = AtomicUsize::new(0);
            let pass = |_, datagram: &[u8]| {
                let is_lost = kind_of(datagram) == kind && lost.fetch_add(1, Ordering::Relaxed) < 3;
                if is_lost { vec![] } else { vec![datagram.to_vec()] }
            };
            let start = Instant::now();
            let (bytes, _, received, _) = through(&small(), is_forward, 50, &pass);
            assert_eq!(
                (bytes, received.lost_packets),
                (5_000, 0),
                "kind {kind}, forward {is_forward}"
            );
            assert!(
                start.elapsed() < Duration::from_secs(5),
                "kind {kind}: {:?}",
                start.elapsed()
            );
        }
    }
}

#[test]
fn a_handshake_that_nobody_answers_times_out() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let spec = small();
    let (key, deadline) = (key(), Instant::now() + Duration::from_millis(150));
    let remote = silent.local_addr().unwrap();
    let request = Connect {
        spec: &spec,
        role: Role::Sender,
        source: None,
        source_device: None,
        remote,
        key: &key,
        deadline,
    };
    assert_eq!(
        transport_for(&spec).connect(&request).err().unwrap().kind,
        FailureKind::Timeout
    );
}

#[test]
fn without_a_stated_size_a_datagram_fills_the_mtu() {
    let streams = open(&spec(r#""rate_bps":0"#), true, |listener| listener);
    let granted = streams[0].granted();
    let mtu = streams[0].probe().sample().path_mtu_bytes;
    assert_eq!(i64::from(granted.packet_bytes.unwrap()), (mtu - 28).min(65_507));
}

#[test]
fn the_batch_is_what_call_rate_and_wish_allow() {
    let batch = |fields: &str| {
        let [sender, _] = open(&spec(fields), true, |listener| listener);
        (
            sender.granted().batch_packets.unwrap(),
            sender.granted().gso.unwrap(),
            sender.granted().notes.len(),
        )
    };
    assert_eq!(
        batch(r#""rate_bps":0,"udp":{"packet_bytes":1472}"#),
        (44, true, 0)
    );
    assert_eq!(batch(r#""rate_bps":0,"udp":{"packet_bytes":64}"#).0, 128);
    assert_eq!(
        batch(r#""rate_bps":0,"udp":{"packet_bytes":1472,"batch_packets":7}"#),
        (7, true, 0)
    );
    assert_eq!(
        batch(r#""rate_bps":0,"udp":{"packet_bytes":1472,"batch_packets":100}"#),
        (44, true, 1)
    );
    assert_eq!(
        batch(r#""rate_bps":1000000,"udp":{"packet_bytes":1472}"#),
        (1, false, 0)
    );
    assert_eq!(
        batch(r#""rate_bps":1000000000,"udp":{"packet_bytes":1472}"#),
        (8, true, 0)
    );
    assert_eq!(
        batch(r#""rate_bps":0,"block_bytes":3000,"udp":{"packet_bytes":1472}"#),
        (2, true, 0)
    );
    assert_eq!(
        batch(r#""rate_bps":0,"udp":{"packet_bytes":1472,"gso":false}"#),
        (44, false, 0)
    );
}

#[test]
fn buffers_are_forced_where_permitted_and_noted_where_not() {
    let [_, receiver] = open(
        &spec(r#""udp":{"receive_buffer_bytes":50000000}"#),
        true,
        |listener| listener,
    );
    let granted = receiver.granted();
    let is_whole = granted.receive_buffer_bytes == Some(100_000_000);
    assert_eq!(granted.notes.is_empty(), is_whole, "{:?}", granted.notes);
    assert_eq!(granted.gro, Some(true));
}

#[test]
fn jitter_and_pacing_are_measured() {
    let (_, sent, received, _) = run_direct(&small(), 2_000);
    assert!(
        received.jitter_ns > 0 && received.jitter_ns < 100_000_000,
        "{}",
        received.jitter_ns
    );
    assert!(sent.paced_wait_us > 10_000 && received.paced_wait_us == -1);
    assert_eq!(sent.lost_packets, -1, "a sender does not know");
}

fn run_direct(spec: &RunSpec, packets: u64) -> (u64, Counters, Counters, Vec<String>) {
    run(open(spec, true, |listener| listener), packets)
}

#[test]
fn a_vanished_receiver_is_noticed() {
    let [mut sender, receiver] = open(&small(), true, |listener| listener);
    drop(receiver);
    let start = Instant::now();
    let failure = loop {
        match sender.source().unwrap().send_block(usize::MAX) {
            Ok(_) => assert!(start.elapsed() < PATIENCE, "nobody noticed"),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    sender
        .finish_sending(Instant::now() + Duration::from_millis(300))
        .unwrap();
}

#[test]
fn listening_on_all_addresses_is_refused() {
    let spec = small();
    let refusal = transport_for(&spec).listen("0.0.0.0:0".parse().unwrap(), &spec);
    assert_eq!(refusal.err().unwrap().kind, FailureKind::Spec);
}

#[test]
fn on_a_path_of_a_small_mtu() {
    small_mtu::run_in_a_small_mtu();
}

#[test]
#[ignore = "run by on_a_path_of_a_small_mtu in a namespace whose loopback has an MTU of 1500"]
fn in_a_small_mtu() {
    let sized = |fields: &str| spec(&format!(r#""rate_bps":50000000,"udp":{{{fields}}}"#));
    let [sender, _] = open(&sized(""), true, |listener| listener);
    assert_eq!(sender.granted().packet_bytes, Some(1_472));

    let failure = try_open(&sized(r#""packet_bytes":1473,"dont_fragment":true"#)).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Spec);
    assert!(
        failure.message.contains("MTU of 1500") && failure.message.contains("up to 1472"),
        "{failure}"
    );
    try_open(&sized(r#""packet_bytes":1472,"dont_fragment":true"#)).unwrap();

    let fragmented = sized(r#""packet_bytes":4000,"batch_packets":4"#);
    let streams = open(&fragmented, true, |listener| listener);
    let granted = streams[0].granted();
    assert_eq!(granted.gso, Some(false));
    assert!(granted.notes[0].contains("fragmented"), "{:?}", granted.notes);
    let (bytes, _, received, _) = run(streams, 2_000);
    assert_eq!((bytes, received.lost_packets), (200_000, 0));
}

/// Opens a stream whose other end may be the one that refuses.
fn try_open(spec: &RunSpec) -> Result<(), Failure> {
    let transport = transport_for(spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), spec)?;
    let (key, deadline, remote) = (key(), Instant::now() + PATIENCE, listener.local_addr());
    let request = Connect {
        spec,
        role: Role::Sender,
        source: None,
        source_device: None,
        remote,
        key: &key,
        deadline,
    };
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| listener.accept(spec, &[self::key()], &|_| Role::Receiver, deadline));
        let connected = transport.connect(&request).map(drop);
        accepting.join().unwrap().map(drop).and(connected)
    })
}
