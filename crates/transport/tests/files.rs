//! Files over paths that lose, double, reorder and go away; one port for everything; one rate for several streams.

#[allow(dead_code, reason = "here its port is given, elsewhere the kernel chooses")]
mod relay;
mod twin;

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, from_json};
use farline_transport::{
    Connect, Listener, Received, Role, SharedRate, Stream, StreamKey, handoff_listener, needs_own_listener,
    payload, session_of_preamble, transport_for,
};

use crate::relay::{Pass, Relay};
use crate::twin::Twin;

const PATIENCE: Duration = Duration::from_secs(20);
const TOTAL: usize = 6_000_001;

const COPY: &str = r#""copy":{"sources":["from"],"destination":"to"}"#;

/// The spec of a copy, and what `fields` add.
fn spec(fields: &str) -> RunSpec {
    from_json::<RunSpec>(&format!("{{{fields},{COPY}}}"))
        .unwrap()
        .resolved()
        .unwrap()
}

fn udt(fields: &str) -> RunSpec {
    spec(&format!(
        r#""transport":"udt","udt":{{"packet_bytes":1472{fields}}}"#
    ))
}

fn rbudp(fields: &str) -> RunSpec {
    spec(&format!(
        r#""transport":"rbudp","rate_bps":400000000,
            "rbudp":{{"packet_bytes":1016,"payload_bytes":1000000,"shared_path":"allow"{fields}}}"#
    ))
}

fn key(stream: u16) -> StreamKey {
    StreamKey {
        stream,
        session: [1; 16],
        proof: [2; 32],
    }
}

fn connect(spec: &RunSpec, remote: SocketAddr, stream: u16) -> Result<Stream, Failure> {
    transport_for(spec).connect(&Connect {
        spec,
        role: Role::Sender,
        source: None,
        source_device: None,
        remote,
        key: &key(stream),
        deadline: Instant::now() + PATIENCE,
    })
}

fn accept(listener: &mut dyn Listener, spec: &RunSpec) -> Result<(u16, Stream), Failure> {
    let deadline = Instant::now() + PATIENCE;
    listener.accept(spec, &[key(0), key(1)], &|_| Role::Receiver, deadline)
}

/// A stream of `spec` to `listener`, by way of `remote`: sender first.
fn open(spec: &RunSpec, listener: &mut dyn Listener, remote: SocketAddr) -> [Stream; 2] {
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener, spec));
        let near = connect(spec, remote, 0).unwrap();
        [near, accepting.join().unwrap().unwrap().1]
    })
}

/// Runs `test` on a stream of `spec` whose datagrams `pass` has in its hands.
fn over_a_path<T: Send>(spec: &RunSpec, pass: &Pass<'_>, test: impl FnOnce([Stream; 2]) -> T) -> T {
    let mut listener = transport_for(spec)
        .listen("127.0.0.1:0".parse().unwrap(), spec)
        .unwrap();
    let at = listener.local_addr();
    if spec.rbudp.is_some() {
        return Twin::run(pass, at, |_, remote| test(open(spec, listener.as_mut(), remote)));
    }
    Relay::run(pass, |relay| {
        let remote = relay.towards(at);
        test(open(spec, listener.as_mut(), remote))
    })
}

/// Sends all of `bytes` in pieces of `piece`, and flushes behind every tenth.
fn send_all(sender: &mut Stream, bytes: &[u8], piece: usize) {
    for (index, piece) in bytes.chunks(piece).enumerate() {
        let mut sent = 0;
        while sent < piece.len() {
            sent += sender.bytes().unwrap().send(&piece[sent..]).unwrap();
        }
        if index % 10 == 9 {
            sender.bytes().unwrap().flush().unwrap();
        }
    }
    sender.finish_sending(Instant::now() + PATIENCE).unwrap();
}

fn receive_all(receiver: &mut Stream) -> Vec<u8> {
    let (mut all, mut into, start) = (Vec::new(), vec![0; 100_003], Instant::now());
    while start.elapsed() < PATIENCE {
        match receiver.bytes().unwrap().receive(&mut into).unwrap() {
            Received::Bytes(count) => all.extend_from_slice(&into[..count]),
            Received::End => return all,
        }
    }
    panic!("no end after {PATIENCE:?} and {} bytes", all.len());
}

/// Loses 2 % of all datagrams, doubles 1 %, and lets 1 % be overtaken; the same ones in every run.
struct Weather {
    count: AtomicU64,
    held: Mutex<Vec<Vec<u8>>>,
}

impl Weather {
    fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            held: Mutex::default(),
        }
    }

    fn pass(&self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let mixed = count.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mut held = self.held.lock().unwrap();
        let mut out = match (mixed >> 33) % 100 {
            0 | 1 => Vec::new(),
            2 => vec![datagram.to_vec(), datagram.to_vec()],
            3 => {
                held.push(datagram.to_vec());
                return Vec::new();
            }
            _ => vec![datagram.to_vec()],
        };
        out.append(&mut held);
        out
    }
}

#[test]
fn files_arrive_over_a_path_that_loses_doubles_and_reorders() {
    let bytes = payload(5, 0, TOTAL);
    let ways = [
        udt(""),
        udt(r#","congestion_control":"native""#),
        rbudp(""),
        rbudp(r#","in_flight":2,"receiver":"naive""#),
        rbudp(r#","early":false,"in_flight":1,"checksum":false"#),
    ];
    for spec in ways {
        let weather = Weather::new();
        over_a_path(
            &spec,
            &|_, datagram| weather.pass(datagram),
            |[mut sender, mut receiver]| {
                let probe = sender.probe();
                std::thread::scope(|scope| {
                    let receiving = scope.spawn(|| receive_all(&mut receiver));
                    send_all(&mut sender, &bytes, 70_001);
                    assert!(receiving.join().unwrap() == bytes[..]);
                });
                let lost = probe.sample().retransmits;
                assert!(lost > 20, "{lost} packets sent again: the path was to lose some");
            },
        );
    }
}

/// What a stream of blasts knows of its own path is what gives way to others.
#[test]
fn a_sender_of_blasts_sees_the_round_trip_of_its_datagrams() {
    let spec = rbudp("");
    let bytes = payload(5, 0, TOTAL);
    over_a_path(
        &spec,
        &|_, datagram| vec![datagram.to_vec()],
        |[mut sender, mut receiver]| {
            let probe = sender.probe();
            std::thread::scope(|scope| {
                scope.spawn(|| receive_all(&mut receiver));
                send_all(&mut sender, &bytes, 1 << 20);
            });
            let sample = probe.sample();
            assert!(sample.rtt_us > 0 && sample.rtt_us < 1_000_000, "{sample:?}");
            assert!(
                sample.min_rtt_us > 0 && sample.min_rtt_us <= sample.rtt_us,
                "{sample:?}"
            );
        },
    );
}

#[test]
fn a_path_that_goes_away_fails_both_ends_and_brings_no_wrong_byte() {
    let bytes = payload(6, 0, 1 << 20);
    for spec in [udt(""), rbudp("")] {
        let is_cut = AtomicBool::new(false);
        let pass = |_, datagram: &[u8]| {
            if is_cut.load(Ordering::Relaxed) {
                Vec::new()
            } else {
                vec![datagram.to_vec()]
            }
        };
        over_a_path(&spec, &pass, |[mut sender, mut receiver]| {
            let probes = [sender.probe(), receiver.probe()];
            std::thread::scope(|scope| {
                let receiving = scope.spawn(|| {
                    let (mut into, mut seen) = (vec![0; 65_536], 0);
                    loop {
                        match receiver.bytes().unwrap().receive(&mut into) {
                            Ok(Received::Bytes(count)) => {
                                let want = bytes.iter().cycle().skip(seen % bytes.len()).take(count);
                                assert!(into[..count].iter().eq(want), "behind byte {seen}");
                                seen += count;
                                if seen > 2_000_000 {
                                    is_cut.store(true, Ordering::Relaxed);
                                }
                            }
                            Ok(Received::End) => panic!("the end, although the path is cut"),
                            Err(failure) => return failure,
                        }
                    }
                });
                let mut sent = 0;
                while !is_cut.load(Ordering::Relaxed) {
                    sent += sender
                        .bytes()
                        .unwrap()
                        .send(&bytes[sent % bytes.len()..])
                        .unwrap();
                }
                // A session that sees no progress gives up; nothing here does so sooner than it must.
                sender
                    .finish_sending(Instant::now() + Duration::from_millis(300))
                    .ok();
                probes.iter().for_each(|probe| probe.abort());
                let failure = receiving.join().unwrap();
                let kinds = [FailureKind::Interrupted, FailureKind::Protocol];
                assert!(kinds.contains(&failure.kind), "{failure}");
            });
        });
    }
}

/// A door at which somebody else accepts: connections go on as they came.
fn one_port() -> (TcpListener, SocketAddr) {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = door.local_addr().unwrap();
    (door, at)
}

#[test]
fn streams_come_in_on_a_port_of_somebody_elses() {
    let spec = spec(r#""transport":"tcp""#);
    let (door, at) = one_port();
    let (hand, handed) = crossbeam_channel::unbounded();
    let bytes = payload(1, 0, 1_000_000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..4 {
                let (connection, _) = door.accept().unwrap();
                let mut first = [0; 24];
                let count = connection.peek(&mut first).unwrap();
                assert!(count < 24 || session_of_preamble(&first).is_none() || first[8..] == [1; 16]);
                hand.send(connection).unwrap();
            }
        });
        // A stranger and one that says nothing come first.
        let mut noise = TcpStream::connect(at).unwrap();
        noise.write_all(&[b'f'; 64]).unwrap();
        let mut halting = TcpStream::connect(at).unwrap();
        halting.write_all(b"farline\x01").unwrap();
        let mut listener = handoff_listener(handed, at);
        assert_eq!(listener.local_addr(), at);
        for number in [1, 0] {
            let mut near = connect(&spec, at, number).unwrap();
            let (came, mut far) = accept(listener.as_mut(), &spec).unwrap();
            assert_eq!(came, number);
            let receiving = scope.spawn(move || receive_all(&mut far));
            send_all(&mut near, &bytes, 1 << 20);
            assert!(receiving.join().unwrap() == bytes[..]);
        }
    });
}

#[test]
fn a_port_that_hands_nothing_on_any_more_ends_the_wait() {
    let spec = spec(r#""transport":"tcp""#);
    let (hand, handed) = crossbeam_channel::unbounded();
    let mut listener = handoff_listener(handed, one_port().1);
    let deadline = Instant::now() + Duration::from_millis(50);
    let waiting = listener.accept(&spec, &[key(0)], &|_| Role::Receiver, deadline);
    assert_eq!(waiting.err().unwrap().kind, FailureKind::Timeout);
    drop(hand);
    let ended = accept(listener.as_mut(), &spec).err().unwrap();
    assert_eq!(ended.kind, FailureKind::Interrupted, "{ended}");
}

#[test]
fn what_needs_a_port_of_its_own_is_refused_on_another() {
    let wanted = [
        (
            r#""transport":"tcp","tcp":{"send_buffer_bytes":100000}"#,
            "tcp.send_buffer_bytes",
        ),
        (
            r#""transport":"tcp","tcp":{"receive_buffer_bytes":100000}"#,
            "tcp.receive_buffer_bytes",
        ),
        (r#""transport":"tcp","tcp":{"mss_bytes":1000}"#, "tcp.mss_bytes"),
        (r#""transport":"tcp","tcp":{"mptcp":true}"#, "tcp.mptcp"),
        (r#""transport":"tcp","flow_label":7"#, "flow_label"),
        (r#""transport":"udt""#, "transport"),
        (r#""transport":"rbudp","rate_bps":0"#, "transport"),
    ];
    for (fields, option) in wanted {
        let spec = spec(fields);
        assert_eq!(needs_own_listener(&spec), Some(option));
        let (_hand, handed) = crossbeam_channel::unbounded();
        let mut listener = handoff_listener(handed, one_port().1);
        let refusal = accept(listener.as_mut(), &spec).err().unwrap();
        assert_eq!(refusal.kind, FailureKind::Spec);
        assert!(refusal.message.starts_with(option), "{refusal}");
    }
    let spec = spec(r#""transport":"tcp","tcp":{"congestion_control":"cubic"}"#);
    assert_eq!(needs_own_listener(&spec), None);
}

/// Two streams share 80 Mbit/s; then one pauses and the other has all of it; then the rate is doubled.
#[test]
fn streams_share_a_rate_that_may_change() {
    let spec = spec(r#""transport":"tcp""#);
    let mut listener = transport_for(&spec)
        .listen("127.0.0.1:0".parse().unwrap(), &spec)
        .unwrap();
    let at = listener.local_addr();
    let rate = Arc::new(SharedRate::new(80_000_000));
    let pairs: [[Stream; 2]; 2] = [0, 1].map(|number| {
        let near = connect(&spec, at, number).unwrap();
        let far = accept(listener.as_mut(), &spec).unwrap().1;
        [near.sharing(Arc::clone(&rate)), far]
    });
    let (is_over, is_paused) = (AtomicBool::new(false), AtomicBool::new(false));
    let probes = [0, 1].map(|index: usize| pairs[index][1].probe());
    std::thread::scope(|scope| {
        for (index, [mut near, mut far]) in pairs.into_iter().enumerate() {
            let (is_over, is_paused) = (&is_over, &is_paused);
            scope.spawn(move || {
                let bytes = vec![0; 1 << 20];
                while !is_over.load(Ordering::Relaxed) {
                    if index == 1 && is_paused.load(Ordering::Relaxed) {
                        std::thread::park_timeout(Duration::from_millis(5));
                    } else {
                        near.bytes().unwrap().send(&bytes).unwrap();
                    }
                }
                near.finish_sending(Instant::now() + PATIENCE).unwrap();
            });
            scope.spawn(move || {
                while far.bytes().unwrap().receive(&mut vec![0; 1 << 16]).unwrap() != Received::End {}
            });
        }
        let measure = || {
            // The best of some: a busy machine makes both late, and none makes them early.
            let once = || {
                let before = probes.each_ref().map(|probe| probe.sample().bytes);
                let from = Instant::now();
                std::thread::sleep(Duration::from_millis(400));
                let after = probes.each_ref().map(|probe| probe.sample().bytes);
                let seconds = from.elapsed().as_secs_f64();
                [0, 1].map(|index| (after[index] - before[index]) as f64 * 8.0 / seconds)
            };
            std::iter::repeat_with(once)
                .take(5)
                .max_by(|one, other| (one[0] + one[1]).total_cmp(&(other[0] + other[1])))
                .unwrap()
        };
        let [one, other] = measure();
        assert!((70e6..90e6).contains(&(one + other)), "{one} and {other}");
        assert!(one > 20e6 && other > 20e6, "{one} and {other}");
        is_paused.store(true, Ordering::Relaxed);
        measure();
        let [one, other] = measure();
        assert!((70e6..90e6).contains(&one) && other < 1e6, "{one} and {other}");
        rate.set(160_000_000);
        let [one, _] = measure();
        assert!((140e6..180e6).contains(&one), "{one}");
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn tcp_takes_bytes_from_a_file_by_itself_between_others_and_at_the_rate_of_all() {
    use std::os::fd::AsFd;
    let (spec, content) = (spec(r#""transport":"tcp""#), payload(7, 0, 3_000_000));
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    const RATE_BPS: u64 = 100_000_000;
    for limit in [None, Some(Arc::new(SharedRate::new(RATE_BPS)))] {
        let mut listener = transport_for(&spec)
            .listen("127.0.0.1:0".parse().unwrap(), &spec)
            .unwrap();
        let at = listener.local_addr();
        let [mut near, mut far] = open(&spec, listener.as_mut(), at);
        if let Some(rate) = &limit {
            near = near.sharing(Arc::clone(rate));
        }
        let began = Instant::now();
        let all = std::thread::scope(|scope| {
            let receiving = scope.spawn(|| receive_all(&mut far));
            let mut ahead = 0;
            while ahead < 5 {
                ahead += near.bytes().unwrap().send_ahead(&b"ahead"[ahead..]).unwrap();
            }
            let mut at = 100;
            while let Some(sent) = near
                .bytes()
                .unwrap()
                .send_file(file.as_fd(), at as u64, 1 << 20)
                .unwrap()
            {
                at += sent;
            }
            assert_eq!(at, content.len(), "to the end of the file");
            send_all(&mut near, b"behind", 6);
            receiving.join().unwrap()
        });
        assert!(all == [b"ahead", &content[100..], b"behind"].concat());
        let least = Duration::from_secs_f64(content.len() as f64 * 8.0 / RATE_BPS as f64 / 2.0);
        assert!(
            limit.is_none() || began.elapsed() > least,
            "faster than it may be"
        );
    }
}

#[test]
fn a_file_that_cannot_be_handed_on_gives_nothing_and_the_stream_goes_on() {
    use std::os::fd::AsFd;
    let spec = spec(r#""transport":"tcp""#);
    let mut listener = transport_for(&spec)
        .listen("127.0.0.1:0".parse().unwrap(), &spec)
        .unwrap();
    let at = listener.local_addr();
    let [mut near, mut far] = open(&spec, listener.as_mut(), at);
    // A folder is no file: the kernel refuses to take from it.
    let folder = std::fs::File::open("/").unwrap();
    assert_eq!(
        near.bytes().unwrap().send_file(folder.as_fd(), 0, 100).unwrap(),
        None
    );
    send_all(&mut near, b"behind", 6);
    assert_eq!(receive_all(&mut far), b"behind");
}

#[test]
fn that_the_other_end_is_gone_is_not_taken_for_the_end_of_a_file() {
    use std::os::fd::AsFd;
    let spec = spec(r#""transport":"tcp""#);
    let mut listener = transport_for(&spec)
        .listen("127.0.0.1:0".parse().unwrap(), &spec)
        .unwrap();
    let at = listener.local_addr();
    let [mut near, far] = open(&spec, listener.as_mut(), at);
    drop(far);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[7; 100_000]).unwrap();
    let since = Instant::now();
    let lost = loop {
        assert!(since.elapsed() < PATIENCE, "nobody noticed");
        match near.bytes().unwrap().send_file(file.as_fd(), 0, 100_000) {
            Ok(sent) => assert!(sent.is_some(), "the file does not end there"),
            Err(lost) => break lost,
        }
    };
    assert_eq!(lost.kind, FailureKind::Protocol, "{lost}");
}
