//! What RBUDP promises where the path loses, doubles, overtakes, changes and forges datagrams, and where an end goes away.

#[allow(dead_code, reason = "here its port is given, elsewhere the kernel chooses")]
mod relay;
mod twin;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, from_json};
use farline_transport::{
    Connect, MAX_PAYLOAD_BYTES, Received, Role, Stream, StreamKey, payload, transport_for,
};

use crate::relay::{Pass, Way};
use crate::twin::Twin;

const PATIENCE: Duration = Duration::from_secs(20);
const TOTAL: u64 = 6_000_001;
/// Where a datagram says which packet it holds, and what stands there in a DONE.
const PACKET: std::ops::Range<usize> = 8..12;
const MARK: [u8; 4] = [0xff; 4];

/// A spec of blasts of a megabyte in packets of 1000 bytes at 400 Mbit/s, and what `fields` add.
fn spec(fields: &str) -> RunSpec {
    let text = format!(
        r#"{{"transport":"rbudp","rate_bps":400000000,"total_bytes":{TOTAL},
            "rbudp":{{"packet_bytes":1016,"payload_bytes":1000000,"shared_path":"allow"{fields}}}}}"#
    );
    from_json::<RunSpec>(&text).unwrap().resolved().unwrap()
}

fn key() -> StreamKey {
    StreamKey {
        stream: 3,
        session: [1; 16],
        proof: [2; 32],
    }
}

/// The 64 bytes that open a stream of [`key`].
fn preamble() -> Vec<u8> {
    let mut bytes = b"farline\x01".to_vec();
    bytes.extend([1; 16]);
    bytes.extend([2; 32]);
    bytes.extend([0, 3, 0, 0, 0, 0, 0, 0]);
    bytes
}

/// Random numbers for a path, the same in every run.
struct Chance(AtomicUsize);

impl Chance {
    const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// True with a probability of `percent`.
    fn is(&self, percent: u64) -> bool {
        let count = self.0.fetch_add(1, Ordering::Relaxed) as u64;
        let mixed = (count + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed >> 33) % 100 < percent
    }
}

fn is_data(way: Way, datagram: &[u8]) -> bool {
    way == Way::There && datagram.len() != 64 && datagram.get(PACKET) != Some(&MARK)
}

/// Runs `test` on a stream through `pass`: sender first, and the relay.
fn with_stream<T: Send>(spec: &RunSpec, pass: &Pass<'_>, test: impl FnOnce([Stream; 2], &Twin) -> T) -> T {
    let transport = transport_for(spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), spec).unwrap();
    let at = listener.local_addr();
    Twin::run(pass, at, |twin, remote| {
        let streams = std::thread::scope(|scope| {
            let deadline = Instant::now() + PATIENCE;
            let listener = &mut listener;
            let accepting =
                scope.spawn(move || listener.accept(spec, &[key()], &|_| Role::Receiver, deadline));
            let near = connect(spec, remote).unwrap();
            [near, accepting.join().unwrap().unwrap().1]
        });
        test(streams, twin)
    })
}

fn connect(spec: &RunSpec, remote: SocketAddr) -> Result<Stream, Failure> {
    transport_for(spec).connect(&Connect {
        spec,
        role: Role::Sender,
        source: None,
        source_device: None,
        remote,
        key: &key(),
        deadline: Instant::now() + PATIENCE,
    })
}

fn send_all(sender: &mut Stream, total: u64) -> Result<(), Failure> {
    let mut left = total;
    while left > 0 {
        left -= sender.source().unwrap().send_block(left.min(1 << 20) as usize)? as u64;
    }
    sender.finish_sending(Instant::now() + PATIENCE)
}

/// Receives to the end; every byte is compared with what was sent, and the bytes shown are counted.
fn receive_all(receiver: &mut Stream) -> Result<(u64, u64), Failure> {
    let want = payload(0, 3, (128 << 10).min(MAX_PAYLOAD_BYTES));
    let (mut total, mut place) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match receiver.sink().unwrap().receive_block()? {
            Received::Bytes(bytes) => total += bytes as u64,
            Received::End => return Ok((total, place as u64)),
        }
        receiver.sink().unwrap().visit_received(&mut |piece| {
            for &byte in piece {
                assert_eq!(byte, want[place % want.len()], "at byte {place}");
                place += 1;
            }
        });
    }
    panic!("no end after {PATIENCE:?} and {total} bytes");
}

/// A whole transfer through `pass`; gives the streams afterwards.
fn transfer(spec: &RunSpec, pass: &Pass<'_>) -> [Stream; 2] {
    with_stream(spec, pass, |[mut sender, mut receiver], _| {
        std::thread::scope(|scope| {
            let receiving = scope.spawn(|| receive_all(&mut receiver));
            send_all(&mut sender, TOTAL).unwrap();
            let (received, shown) = receiving.join().unwrap().unwrap();
            assert_eq!(received, TOTAL);
            let is_fake = spec.rbudp.as_ref().unwrap().receiver == farline_spec::RbudpReceiver::Fake;
            assert_eq!(shown, if is_fake { 0 } else { TOTAL });
        });
        [sender, receiver]
    })
}

#[test]
fn every_receiver_gets_every_byte_over_a_path_that_loses_doubles_and_overtakes() {
    for receiver in ["naive", "gather", "fake"] {
        for early in [true, false] {
            let chance = Chance::new();
            let held = std::sync::Mutex::new(Vec::<Vec<u8>>::new());
            let pass = |way: Way, datagram: &[u8]| {
                let one = datagram.to_vec();
                if !is_data(way, datagram) || !chance.is(30) {
                    return vec![one];
                }
                let mut held = held.lock().unwrap();
                match held.len() {
                    // A third is lost, a third doubled, a third comes behind a later one.
                    0 if chance.is(33) => vec![],
                    0 if chance.is(50) => vec![one.clone(), one],
                    0 => {
                        held.push(one);
                        vec![]
                    }
                    _ => std::iter::once(one).chain(held.drain(..)).collect(),
                }
            };
            let fields = format!(r#","receiver":"{receiver}","early":{early},"in_flight":3"#);
            let [sender, receiver] = transfer(&spec(&fields), &pass);
            let (sent, received) = (sender.report(), receiver.report());
            assert_eq!(sent.whole_blasts, 7);
            assert_eq!(received.whole_blasts, 7);
            assert_eq!(sent.blasts.iter().map(|blast| blast.bytes).sum::<u64>(), TOTAL);
            // The last blast is a single packet.
            let full = &sent.blasts[..6];
            assert!(
                full.iter()
                    .all(|blast| blast.passes >= 2 && blast.first_pass_lost_packets > 0)
            );
            let probe = sender.probe().sample();
            assert!(probe.retransmits > 0 && probe.packets > probe.retransmits);
        }
    }
}

#[test]
fn packets_and_blasts_of_any_size_arrive() {
    let pass = |_: Way, datagram: &[u8]| vec![datagram.to_vec()];
    for receiver in ["naive", "gather"] {
        for (packet, payload, total) in [
            (64, 1_000_000, 200_000),
            (1016, 500, 100_000),
            (65_507, 100_000, 900_001),
            (1016, 1_000_000, 1),
        ] {
            let text = format!(
                r#"{{"transport":"rbudp","rate_bps":100000000,"total_bytes":{total},"rbudp":{{"packet_bytes":{packet},
                    "payload_bytes":{payload},"receiver":"{receiver}","shared_path":"allow"}}}}"#
            );
            let spec = from_json::<RunSpec>(&text).unwrap().resolved().unwrap();
            with_stream(&spec, &pass, |[mut sender, mut receiver], _| {
                std::thread::scope(|scope| {
                    let receiving = scope.spawn(|| receive_all(&mut receiver));
                    send_all(&mut sender, total).unwrap();
                    assert_eq!(
                        receiving.join().unwrap().unwrap(),
                        (total, total),
                        "{packet} {payload}"
                    );
                });
            });
        }
    }
}

#[test]
fn an_offer_that_holds_nothing_is_refused() {
    let spec = spec("");
    let transport = transport_for(&spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), &spec).unwrap();
    let at = listener.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut tcp = TcpStream::connect(at).unwrap();
            tcp.set_read_timeout(Some(PATIENCE)).unwrap();
            tcp.write_all(&preamble()).unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            udp.connect(at).unwrap();
            udp.send(&preamble()).unwrap();
            tcp.read_exact(&mut [0; 8]).unwrap();
            tcp.write_all(b"RB\0\x01\0\0\0\x11").unwrap();
            let _ = tcp.read_to_end(&mut Vec::new());
        });
        let deadline = Instant::now() + PATIENCE;
        let refused = listener
            .accept(&spec, &[key()], &|_| Role::Sender, deadline)
            .err()
            .unwrap();
        assert_eq!(refused.kind, FailureKind::Protocol, "{refused}");
        assert!(
            refused.message.contains("datagrams of at most 17 bytes"),
            "{refused}"
        );
    });
}

#[test]
fn a_packet_that_was_changed_on_the_way_is_asked_for_again() {
    let chance = Chance::new();
    let pass = |way: Way, datagram: &[u8]| {
        let mut one = datagram.to_vec();
        if is_data(way, datagram) && chance.is(5) {
            let at = 12 + (one[11] as usize * 7) % (one.len() - 12);
            one[at] ^= 1;
        }
        vec![one]
    };
    for receiver in ["naive", "gather"] {
        let [_, receiver] = transfer(&spec(&format!(r#","receiver":"{receiver}""#)), &pass);
        let notes = receiver.granted().notes;
        assert!(
            notes.iter().any(|note| note.contains("arrived corrupted")),
            "{notes:?}"
        );
    }
}

#[test]
fn what_is_not_of_the_stream_is_ignored() {
    let chance = Chance::new();
    let pass = |way: Way, datagram: &[u8]| {
        let one = datagram.to_vec();
        if !is_data(way, datagram) || !chance.is(5) {
            return vec![one];
        }
        let changed = |at: usize, byte: u8| {
            let mut other = one.clone();
            other[at] = byte;
            other
        };
        // Another token, a blast and a packet there are not, and lengths no packet of it has.
        let mut forged = vec![changed(0, one[0] ^ 1), changed(4, 9), changed(8, 9)];
        forged.extend([
            one[..8].to_vec(),
            vec![],
            one[..16].to_vec(),
            [&one[..], &[7; 300]].concat(),
        ]);
        forged.push(one);
        forged
    };
    for receiver in ["naive", "gather", "fake"] {
        let [_, receiver] = transfer(&spec(&format!(r#","receiver":"{receiver}""#)), &pass);
        let notes = receiver.granted().notes;
        assert!(
            notes
                .iter()
                .any(|note| note.contains("did not belong to this stream")),
            "{notes:?}"
        );
    }
}

#[test]
fn a_path_that_loses_every_done_holds_nothing_up_for_ever() {
    for early in [true, false] {
        let pass = |way: Way, datagram: &[u8]| {
            let is_mark = way == Way::There && datagram.get(PACKET) == Some(&MARK);
            if is_mark { vec![] } else { vec![datagram.to_vec()] }
        };
        transfer(&spec(&format!(r#","early":{early}"#)), &pass);
    }
}

/// Both ends of a transfer of no end, while something happens to it; what each end says.
fn while_it_runs(happens: impl FnOnce(&Twin) + Send) -> [Failure; 2] {
    let (moved, pass) = (AtomicUsize::new(0), |_: Way, datagram: &[u8]| {
        vec![datagram.to_vec()]
    });
    with_stream(&spec(""), &pass, |[mut sender, mut receiver], twin| {
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| send_all(&mut sender, u64::MAX).unwrap_err());
            let receiving = scope.spawn(|| {
                loop {
                    match receiver.sink().unwrap().receive_block() {
                        Ok(Received::Bytes(bytes)) => moved.fetch_add(bytes, Ordering::Relaxed),
                        Ok(Received::End) => panic!("an end of what has none"),
                        Err(failure) => return failure,
                    };
                }
            });
            let start = Instant::now();
            while moved.load(Ordering::Relaxed) < 3_000_000 {
                assert!(start.elapsed() < PATIENCE, "nothing moves");
                std::thread::sleep(Duration::from_millis(1));
            }
            happens(twin);
            [sending.join().unwrap(), receiving.join().unwrap()]
        })
    })
}

#[test]
fn a_connection_that_is_cut_ends_both_ends_with_a_reason() {
    let failures = while_it_runs(|twin| twin.cut());
    for failure in failures {
        assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
        assert!(failure.message.contains("data stream"), "{failure}");
    }
}

/// What the one end says when the other is dropped in the middle.
fn when_one_goes(goes: Role) -> Failure {
    let pass = |_: Way, datagram: &[u8]| vec![datagram.to_vec()];
    with_stream(&spec(""), &pass, |[sender, receiver], _| {
        let is_gone = AtomicBool::new(false);
        let run = |mut stream: Stream, role: Role| {
            let start = Instant::now();
            let mut moved = 0;
            while start.elapsed() < PATIENCE {
                let step = match role {
                    Role::Sender => stream.source().unwrap().send_block(1 << 16),
                    Role::Receiver => stream
                        .sink()
                        .unwrap()
                        .receive_block()
                        .map(|received| match received {
                            Received::Bytes(bytes) => bytes,
                            Received::End => panic!("an end of what has none"),
                        }),
                };
                moved += match step {
                    Ok(bytes) => bytes,
                    Err(failure) => return Some(failure),
                };
                if role == goes && moved > 2_000_000 {
                    is_gone.store(true, Ordering::Relaxed);
                    return None;
                }
            }
            panic!("still there after {PATIENCE:?}");
        };
        std::thread::scope(|scope| {
            let sending = scope.spawn(|| run(sender, Role::Sender));
            let receiving = scope.spawn(|| run(receiver, Role::Receiver));
            let said = [sending.join().unwrap(), receiving.join().unwrap()];
            assert!(is_gone.load(Ordering::Relaxed));
            said.into_iter().flatten().next().unwrap()
        })
    })
}

#[test]
fn an_end_that_goes_away_is_noticed_at_once() {
    let failure = when_one_goes(Role::Receiver);
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    let failure = when_one_goes(Role::Sender);
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    assert!(
        failure.message.contains("before its blasts were complete"),
        "{failure}"
    );
}

/// Opens a stream by hand to a sender that listens; gives the connection after the offers, and the sender.
fn by_hand(spec: &RunSpec, test: impl FnOnce(TcpStream, UdpSocket) + Send) -> Failure {
    let transport = transport_for(spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), spec).unwrap();
    let at = listener.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut tcp = TcpStream::connect(at).unwrap();
            tcp.set_read_timeout(Some(PATIENCE)).unwrap();
            tcp.write_all(&preamble()).unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            udp.connect(at).unwrap();
            udp.send(&preamble()).unwrap();
            let mut offer = [0; 8];
            tcp.read_exact(&mut offer).unwrap();
            tcp.write_all(&offer).unwrap();
            test(tcp, udp);
        });
        let deadline = Instant::now() + PATIENCE;
        let (_, mut sender) = listener
            .accept(spec, &[key()], &|_| Role::Sender, deadline)
            .unwrap();
        send_all(&mut sender, u64::MAX).unwrap_err()
    })
}

#[test]
fn a_receiver_that_talks_nonsense_ends_the_sender_with_a_reason() {
    let frames: [&[u8]; 4] = [
        b"GET / HTTP/1.1\r\n\r\n",
        &[0, 0, 0, 1, 99],
        &[0xff; 64],
        // The report of a blast that there is not, whatever its fields mean.
        &[0, 0, 0, 5, 3, 0, 0, 0, 77],
    ];
    for frame in frames {
        let failure = by_hand(&spec(""), |mut tcp, _udp| {
            tcp.write_all(frame).unwrap();
            // Open until the other end has closed, so that it is the nonsense it fails at.
            let _ = tcp.read_to_end(&mut Vec::new());
        });
        assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    }
}

#[test]
fn a_file_is_sent_and_received_by_the_client() {
    let folder = std::env::temp_dir().join(format!("farline-rbudp-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (from, to) = (folder.join("from"), folder.join("to"));
    let block = payload(0, 3, 128 << 10);
    let contents: Vec<u8> = block.iter().copied().cycle().take(TOTAL as usize).collect();
    std::fs::write(&from, &contents).unwrap();
    let pass = |_: Way, datagram: &[u8]| vec![datagram.to_vec()];
    transfer(&spec(&format!(r#","file":{:?}"#, from.to_str().unwrap())), &pass);

    let fields = format!(r#","receiver":"naive","file":{:?}"#, to.to_str().unwrap());
    let spec = RunSpec {
        direction: farline_spec::Direction::Reverse,
        ..spec(&fields)
    };
    let transport = transport_for(&spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), &spec).unwrap();
    let request = Connect {
        spec: &spec,
        role: Role::Receiver,
        source: None,
        source_device: None,
        remote: listener.local_addr(),
        key: &key(),
        deadline: Instant::now() + PATIENCE,
    };
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let (_, mut sender) = listener
                .accept(&spec, &[key()], &|_| Role::Sender, Instant::now() + PATIENCE)
                .unwrap();
            send_all(&mut sender, TOTAL).unwrap();
        });
        let mut receiver = transport.connect(&request).unwrap();
        assert!(!to.exists(), "nothing has its name before it is whole");
        assert_eq!(receive_all(&mut receiver).unwrap(), (TOTAL, 0));
        sending.join().unwrap();
    });
    assert!(std::fs::read(&to).unwrap() == contents);
    assert_eq!(
        std::fs::read_dir(&folder).unwrap().count(),
        2,
        "no partial file is left"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
