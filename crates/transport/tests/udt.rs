//! What programs and runs can rely on over UDT: sockets, listeners, streams, also over a path that loses, doubles and
//! reorders.

mod relay;
mod small_mtu;

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, from_json};
use farline_transport::udt::{Listener, Socket, SocketKind, SocketOptions};
use farline_transport::{Connect, Received, Role, Stream, StreamKey, payload, transport_for};

use crate::relay::{Relay, Way};

const PATIENCE: Duration = Duration::from_secs(20);
const LINGER: Duration = Duration::from_secs(10);

fn spec(fields: &str) -> RunSpec {
    from_json::<RunSpec>(&format!(r#"{{"transport":"udt","udt":{{{fields}}}}}"#))
        .unwrap()
        .resolved()
        .unwrap()
}

fn stream_options() -> SocketOptions {
    SocketOptions::of(&spec(r#""packet_bytes":1472"#))
}

fn message_options() -> SocketOptions {
    SocketOptions {
        kind: SocketKind::Message,
        ..stream_options()
    }
}

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

fn anywhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A caller and what was accepted, by way of `via`.
fn pair_via(options: &SocketOptions, via: impl FnOnce(SocketAddr) -> SocketAddr) -> (Socket, Socket) {
    let mut listener = Listener::bind(anywhere(), options).unwrap();
    let remote = via(listener.local_addr());
    let is_called = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| {
            let mut socket = listener.accept(soon()).unwrap();
            // The caller may have missed the answer and ask again.
            while !is_called.load(Ordering::Relaxed) {
                socket.idle(Instant::now() + Duration::from_millis(5)).unwrap();
            }
            socket
        });
        let near = Socket::connect(None, remote, options, soon()).unwrap();
        is_called.store(true, Ordering::Relaxed);
        (near, accepting.join().unwrap())
    })
}

fn pair(options: &SocketOptions) -> (Socket, Socket) {
    pair_via(options, |listener| listener)
}

fn send_all(socket: &mut Socket, bytes: &[u8]) {
    assert_eq!(socket.send(bytes, soon()).unwrap(), bytes.len());
    socket.flush().unwrap();
}

fn receive_exactly(socket: &mut Socket, length: usize) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 10_000]);
    while all.len() < length {
        let most = piece.len().min(length - all.len());
        let count = socket.receive(&mut piece[..most], soon()).unwrap();
        assert!(count > 0, "it ended after {} of {length} bytes", all.len());
        all.extend_from_slice(&piece[..count]);
    }
    all
}

fn receive_to_the_end(socket: &mut Socket) -> Vec<u8> {
    let (mut all, mut piece) = (Vec::new(), vec![0; 100_000]);
    loop {
        match socket.receive(&mut piece, soon()).unwrap() {
            0 => return all,
            count => all.extend_from_slice(&piece[..count]),
        }
    }
}

#[test]
fn both_directions_of_a_connection_carry_data_at_once() {
    let (mut near, mut far) = pair(&stream_options());
    let (there, back) = (payload(1, 0, 3_000_001), payload(2, 0, 2_000_003));
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            send_all(&mut far, &back);
            let received = receive_exactly(&mut far, there.len());
            far.finish(LINGER).unwrap();
            received
        });
        send_all(&mut near, &there);
        assert!(receive_exactly(&mut near, back.len()) == back[..]);
        near.finish(LINGER).unwrap();
        assert!(answering.join().unwrap() == there[..]);
    });
}

#[test]
fn a_message_arrives_in_one_piece_whatever_its_length() {
    let (mut near, mut far) = pair(&message_options());
    let lengths = [1, 1455, 1456, 1457, 100_000, 7];
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut buffer = vec![0; 200_000];
            let next = || {
                far.receive_message(&mut buffer, soon())
                    .unwrap()
                    .map(|it| it.bytes)
            };
            std::iter::from_fn(next).collect::<Vec<_>>()
        });
        for length in lengths {
            near.send_message(&payload(3, 0, length), true, None, soon())
                .unwrap();
        }
        near.finish(LINGER).unwrap();
        assert_eq!(receiving.join().unwrap(), lengths);
    });
}

#[test]
fn a_message_that_no_buffer_can_hold_is_refused() {
    let options = SocketOptions {
        kind: SocketKind::Message,
        ..SocketOptions::of(&spec(r#""packet_bytes":1472,"send_buffer_bytes":100000"#))
    };
    let (mut near, _far) = pair(&options);
    for length in [0, 200_000] {
        let failure = near
            .send_message(&vec![1; length], true, None, soon())
            .unwrap_err();
        assert_eq!(failure.kind, FailureKind::Spec, "{failure}");
    }
    near.send_message(&[1; 50_000], true, None, soon()).unwrap();
}

/// Four connections between the same two ports; each carries its own data both ways.
#[test]
fn connections_between_the_same_two_ports_do_not_mix() {
    let options = stream_options();
    let mut listener = Listener::bind(anywhere(), &options).unwrap();
    let remote = listener.local_addr();
    // A port that was free a moment ago.
    let local = std::net::UdpSocket::bind(anywhere())
        .unwrap()
        .local_addr()
        .unwrap();
    let data = |number: u16| payload(4, number, 500_000 + usize::from(number));
    std::thread::scope(|scope| {
        let echo = |mut socket: Socket| {
            move || {
                let bytes = receive_exactly(&mut socket, 500_000);
                send_all(&mut socket, &bytes);
                socket.finish(LINGER).unwrap();
            }
        };
        for number in 0..4u16 {
            let options = &options;
            scope.spawn(move || {
                let mut socket = Socket::connect(Some(local), remote, options, soon()).unwrap();
                assert_eq!(socket.local_addr().unwrap(), local);
                let bytes = &data(number)[..500_000];
                send_all(&mut socket, bytes);
                assert!(receive_exactly(&mut socket, 500_000) == bytes);
                socket.finish(LINGER).unwrap();
            });
        }
        for _ in 0..4 {
            let socket = listener.accept(soon()).unwrap();
            assert_eq!(socket.peer_addr(), local);
            scope.spawn(echo(socket));
        }
    });
}

#[test]
fn two_ends_that_call_each_other_meet() {
    let free = || {
        std::net::UdpSocket::bind(anywhere())
            .unwrap()
            .local_addr()
            .unwrap()
    };
    let (left, right) = (free(), free());
    let options = stream_options();
    let data = payload(5, 0, 300_000);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut socket = Socket::rendezvous(right, left, &options, soon()).unwrap();
            receive_to_the_end(&mut socket)
        });
        let mut socket = Socket::rendezvous(left, right, &options, soon()).unwrap();
        send_all(&mut socket, &data);
        socket.finish(LINGER).unwrap();
        assert!(other.join().unwrap() == data[..]);
    });
}

#[test]
fn sequence_numbers_may_begin_anywhere() {
    for initial_sequence in [0, 0x7fff_ffff - 100, 0x7fff_ffff] {
        let options = SocketOptions {
            initial_sequence: Some(initial_sequence),
            ..stream_options()
        };
        let (mut near, mut far) = pair(&options);
        let data = payload(6, 0, 1_000_000);
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| receive_to_the_end(&mut far));
            send_all(&mut near, &data);
            near.finish(LINGER).unwrap();
            assert!(receiving.join().unwrap() == data[..]);
        });
    }
}

#[test]
fn an_end_that_leaves_in_the_middle_is_told_from_one_that_has_finished() {
    let (near, mut far) = pair(&stream_options());
    drop(near);
    let failure = far
        .receive(&mut [0; 10], soon())
        .map(|count| assert_eq!(count, 0));
    assert!(failure.is_ok(), "nothing was sent, so nothing is missing");

    let (mut near, mut far) = pair(&stream_options());
    near.send(&vec![1; 5_000_000], Instant::now() + Duration::from_millis(200))
        .unwrap();
    drop(near);
    let failure = loop {
        match far.receive(&mut [0; 10_000], soon()) {
            Ok(0) => panic!("what was sent has not all arrived"),
            Ok(_) => {}
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
}

#[test]
fn another_kind_of_socket_is_refused() {
    let mut listener = Listener::bind(anywhere(), &message_options()).unwrap();
    let remote = listener.local_addr();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(move || listener.accept(Instant::now() + Duration::from_secs(3)));
        let failure = Socket::connect(None, remote, &stream_options(), soon()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
        assert_eq!(accepting.join().unwrap().unwrap_err().kind, FailureKind::Timeout);
    });
}

#[test]
fn a_listener_that_comes_later_is_reached_and_one_that_never_comes_is_not() {
    let address = std::net::UdpSocket::bind(anywhere())
        .unwrap()
        .local_addr()
        .unwrap();
    let options = stream_options();
    let briefly = Instant::now() + Duration::from_millis(400);
    let failure = Socket::connect(None, address, &options, briefly).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| Socket::connect(None, address, &options, soon()));
        std::thread::sleep(Duration::from_millis(300));
        let mut listener = Listener::bind(address, &options).unwrap();
        assert!(listener.accept(soon()).is_ok());
        calling.join().unwrap().unwrap();
    });
}

#[test]
fn waiting_for_data_ends_in_time_and_can_go_on() {
    let (mut near, mut far) = pair(&stream_options());
    let start = Instant::now();
    let failure = far
        .receive(&mut [0; 10], start + Duration::from_millis(60))
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    assert!((Duration::from_millis(60)..Duration::from_secs(5)).contains(&start.elapsed()));
    send_all(&mut near, b"later");
    assert_eq!(receive_exactly(&mut far, 5), b"later");
    near.idle(Instant::now() + Duration::from_millis(20)).unwrap();
    assert!(near.is_peer_farline());
}

/// A few words of xorshift: which datagrams suffer must not depend on a clock.
fn chance(state: &Mutex<u64>, one_in: u64) -> bool {
    let mut state = state.lock().unwrap();
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % one_in == 0
}

/// Loses, doubles, delays and spoils datagrams, both ways.
fn hostile(state: &Mutex<u64>, held: &Mutex<Vec<Vec<u8>>>, datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut on = Vec::new();
    if chance(state, 40) {
        held.lock().unwrap().push(datagram.to_vec());
    } else if !chance(state, 30) {
        on.push(datagram.to_vec());
    }
    if chance(state, 30) {
        on.extend(held.lock().unwrap().drain(..));
        on.push(datagram.to_vec());
    }
    on
}

#[test]
fn every_byte_arrives_in_order_over_a_hostile_path() {
    let (state, held) = (Mutex::new(88_172_645_463_325_252), Mutex::new(Vec::new()));
    for control in ["bbr", "native", "reno"] {
        let fields = format!(r#""packet_bytes":1472,"congestion_control":"{control}""#);
        let options = SocketOptions::of(&spec(&fields));
        Relay::run(&|_, datagram| hostile(&state, &held, datagram), |relay| {
            let (mut near, mut far) = pair_via(&options, |listener| relay.towards(listener));
            let data = payload(7, 0, 2_000_000);
            std::thread::scope(|scope| {
                let receiving = scope.spawn(|| receive_to_the_end(&mut far));
                send_all(&mut near, &data);
                near.finish(LINGER).unwrap();
                assert!(receiving.join().unwrap() == data[..], "{control}");
            });
            let statistics = near.statistics();
            assert!(statistics.repeated_packets > 0 && statistics.received_naks > 0);
        });
    }
}

fn key() -> StreamKey {
    StreamKey {
        stream: 3,
        session: [1; 16],
        proof: [2; 32],
    }
}

/// Opens a stream of a run by way of `via`; sender first.
fn open(
    spec: &RunSpec,
    is_forward: bool,
    via: impl FnOnce(SocketAddr) -> SocketAddr,
) -> Result<[Stream; 2], Failure> {
    let transport = transport_for(spec);
    let mut listener = transport.listen(anywhere(), spec)?;
    let remote = via(listener.local_addr());
    let (near, far) = if is_forward {
        (Role::Sender, Role::Receiver)
    } else {
        (Role::Receiver, Role::Sender)
    };
    let (key, deadline) = (key(), soon());
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
        (accepting.join().unwrap(), connected)
    });
    let (accepted, connected) = (accepted?.1, connected?);
    Ok(if is_forward {
        [connected, accepted]
    } else {
        [accepted, connected]
    })
}

/// Runs a stream of `total` bytes; gives the bytes received.
fn run([sender, receiver]: &mut [Stream; 2], total: usize) -> u64 {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut bytes = 0;
            loop {
                match receiver.sink().unwrap().receive_block().unwrap() {
                    Received::Bytes(count) => bytes += count as u64,
                    Received::End => return bytes,
                }
            }
        });
        let mut left = total;
        while left > 0 {
            left -= sender.source().unwrap().send_block(left).unwrap();
        }
        sender.finish_sending(soon()).unwrap();
        receiving.join().unwrap()
    })
}

/// The handshake, the preamble, its ACK and the confirmation of that may all be lost.
#[test]
fn a_stream_opens_and_ends_whatever_is_lost_first() {
    let spec = spec(r#""packet_bytes":1472"#);
    for lost in 0..10 {
        for lossy in [Way::There, Way::Back] {
            let count = AtomicUsize::new(0);
            let pass = |way, datagram: &[u8]| {
                let is_lost = way == lossy && count.fetch_add(1, Ordering::Relaxed) == lost;
                if is_lost { vec![] } else { vec![datagram.to_vec()] }
            };
            Relay::run(&pass, |relay| {
                let is_forward = lost % 2 == 0;
                let mut streams = open(&spec, is_forward, |listener| relay.towards(listener)).unwrap();
                assert_eq!(run(&mut streams, 200_000), 200_000, "{lossy:?} {lost}");
            });
        }
    }
}

#[test]
fn a_sample_tells_what_a_run_needs_to_explain_itself() {
    let mut streams = open(&spec(r#""packet_bytes":1472"#), true, |listener| listener).unwrap();
    assert_eq!(run(&mut streams, 50_000_000), 50_000_000);
    let [sent, received] = streams.map(|stream| stream.probe().sample());
    let of_the_sender = [
        sent.packets,
        sent.lost_packets,
        sent.retransmits,
        sent.rtt_us,
        sent.min_rtt_us,
        sent.cwnd_bytes,
        sent.receive_window_bytes,
        sent.delivery_rate_bps,
        sent.busy_us,
        sent.receive_window_limited_us,
        sent.send_buffer_limited_us,
        sent.paced_wait_us,
        sent.received_acks,
        sent.received_naks,
        sent.send_period_ns,
        sent.flow_window_packets,
        sent.flight_packets,
        sent.send_buffer_free_bytes,
        sent.path_mtu_bytes,
    ];
    assert!(of_the_sender.iter().all(|&value| value >= 0), "{sent:?}");
    let of_the_receiver = [
        received.packets,
        received.lost_packets,
        received.reordered_packets,
        received.duplicate_packets,
        received.rtt_us,
        received.sent_acks,
        received.sent_naks,
        received.receive_window_bytes,
        received.receive_buffer_free_bytes,
    ];
    assert!(of_the_receiver.iter().all(|&value| value >= 0), "{received:?}");
    // Some may go before they are full.
    let least = 50_000_000 / 1456;
    assert!((least..least * 2).contains(&(sent.packets - sent.retransmits)));
    assert!(received.sent_acks >= sent.received_acks && sent.received_acks > 0);
}

#[test]
fn the_smaller_packet_of_both_ends_counts_and_is_noted() {
    let options = |packet: u32| SocketOptions::of(&spec(&format!(r#""packet_bytes":{packet}"#)));
    let mut listener = Listener::bind(anywhere(), &options(1000)).unwrap();
    let remote = listener.local_addr();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(move || listener.accept(soon()).unwrap());
        let near = Socket::connect(None, remote, &options(1472), soon()).unwrap();
        let (near, far) = (near.granted(), accepting.join().unwrap().granted());
        assert_eq!((near.packet_bytes, far.packet_bytes), (Some(1000), Some(1000)));
        assert_eq!(
            (near.mss_bytes, near.congestion_control.as_deref()),
            (Some(1028), Some("bbr"))
        );
        assert!(
            near.notes
                .iter()
                .any(|note| note.starts_with("packet: requested 1472")),
            "{near:?}"
        );
        assert!(far.notes.is_empty(), "{far:?}");
    });
}

#[test]
fn datagrams_of_strangers_are_neither_data_nor_harm() {
    let (mut near, mut far) = pair(&stream_options());
    let (here, there) = (near.local_addr().unwrap(), far.local_addr().unwrap());
    let stranger = std::net::UdpSocket::bind(anywhere()).unwrap();
    for target in [here, there] {
        for length in [0, 1, 16, 20, 64, 1472] {
            for first in [0x00, 0x80, 0xff] {
                let mut noise = vec![0x5a; length];
                noise.iter_mut().take(1).for_each(|byte| *byte = first);
                stranger.send_to(&noise, target).unwrap();
            }
        }
    }
    send_all(&mut near, b"ours");
    assert_eq!(receive_exactly(&mut far, 4), b"ours");
}

#[test]
fn finishing_waits_no_longer_than_the_linger_time() {
    let fields = r#""packet_bytes":1472,"linger_s":0.2"#;
    let [mut sender, mut receiver] = open(&spec(fields), true, |listener| listener).unwrap();
    sender.source().unwrap().send_block(usize::MAX).unwrap();
    let start = Instant::now();
    let failure = sender.finish_sending(soon()).unwrap_err();
    assert!((Duration::from_millis(200)..Duration::from_secs(2)).contains(&start.elapsed()));
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(
        failure.message,
        "after a linger of 0.2 s the other end still has not received everything"
    );
    let failure = loop {
        match receiver.sink().unwrap().receive_block() {
            Ok(Received::End) => panic!("not all has arrived"),
            Ok(Received::Bytes(_)) => assert!(start.elapsed() < PATIENCE, "nobody said that it is over"),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
}

#[test]
fn a_large_block_is_sent_in_slices_of_time() {
    let text = r#"{"transport":"udt","block_bytes":1073741824}"#;
    let spec = from_json::<RunSpec>(text).unwrap().resolved().unwrap();
    let [mut sender, mut receiver] = open(&spec, true, |listener| listener).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) && receiver.sink().unwrap().receive_block().is_ok() {}
        });
        let sent = sender.source().unwrap().send_block(usize::MAX);
        is_over.store(true, Ordering::Relaxed);
        assert!((1..1 << 30).contains(&sent.unwrap()));
    });
}

/// The slack belongs to a thread, and connections are opened on another than they run on.
#[test]
fn the_thread_that_runs_a_stream_wakes_in_time() {
    let slack_ns = || {
        let thread = std::fs::read_link("/proc/thread-self").unwrap();
        let number = thread.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::read_to_string(format!("/proc/{number}/timerslack_ns")).unwrap()
    };
    for is_forward in [true, false] {
        // A thread has the slack of the one that made it.
        let streams = || open(&spec(""), is_forward, |listener| listener).unwrap();
        let [_sender, mut receiver] = std::thread::scope(|scope| scope.spawn(streams).join().unwrap());
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                receiver.sink().unwrap().receive_block().unwrap();
                slack_ns()
            });
            assert_eq!(running.join().unwrap().trim(), "1");
        });
    }
}

#[test]
fn an_end_that_has_everything_may_be_gone_before_the_last_word() {
    let pass = |_: Way, datagram: &[u8]| vec![datagram.to_vec()];
    let (mut near, _far) = Relay::run(&pass, |relay| {
        let (mut near, mut far) = pair_via(&stream_options(), |listener| relay.towards(listener));
        let empty = near.statistics().send_buffer_free_bytes;
        send_all(&mut near, b"all");
        assert_eq!(receive_exactly(&mut far, 3), b"all");
        while near.statistics().send_buffer_free_bytes < empty {
            far.idle(Instant::now() + Duration::from_millis(5)).unwrap();
            near.idle(Instant::now() + Duration::from_millis(5)).unwrap();
        }
        (near, far)
    });
    // Now nobody has the relay's port.
    near.finish(LINGER).unwrap();
}

#[test]
fn listening_on_all_addresses_is_refused() {
    let spec = spec("");
    let refusal = transport_for(&spec).listen("0.0.0.0:0".parse().unwrap(), &spec);
    assert_eq!(refusal.err().unwrap().kind, FailureKind::Spec);
}

#[test]
fn a_vanished_receiver_is_noticed() {
    let [mut sender, receiver] = open(&spec(""), true, |listener| listener).unwrap();
    drop(receiver);
    let start = Instant::now();
    let failure = loop {
        match sender.source().unwrap().send_block(usize::MAX) {
            Ok(_) => assert!(start.elapsed() < PATIENCE, "nobody noticed"),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
}

#[test]
fn on_a_path_of_a_small_mtu() {
    small_mtu::run_in_a_small_mtu();
}

#[test]
#[ignore = "run by on_a_path_of_a_small_mtu in a namespace whose loopback has an MTU of 1500"]
fn in_a_small_mtu() {
    let mut streams = open(&spec(""), true, |listener| listener).unwrap();
    let granted = streams[0].granted();
    assert_eq!(
        (granted.packet_bytes, granted.batch_packets, granted.gso),
        (Some(1472), Some(44), Some(true))
    );
    assert_eq!(run(&mut streams, 3_000_000), 3_000_000);

    let mut streams = open(&spec(r#""packet_bytes":4000"#), true, |listener| listener).unwrap();
    let granted = streams[0].granted();
    assert_eq!((granted.packet_bytes, granted.gso), (Some(4000), Some(false)));
    assert!(granted.notes[0].contains("fragmented"), "{:?}", granted.notes);
    assert_eq!(run(&mut streams, 3_000_000), 3_000_000);
}
