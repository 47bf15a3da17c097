//! What QUIC promises beyond the contract: one port for all, keys that follow from the session, addresses that may change.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, from_json};
use farline_transport::{Connect, Listener, Received, Role, Stream, StreamKey, transport_for};

const PATIENCE: Duration = Duration::from_secs(20);
const TOTAL: u64 = 40_000_000;

fn spec(options: &str) -> RunSpec {
    let text = format!(r#"{{"transport":"quic","total_bytes":{TOTAL},"quic":{{{options}}}}}"#);
    from_json::<RunSpec>(&text).unwrap().resolved().unwrap()
}

fn key(session: u8, stream: u16) -> StreamKey {
    StreamKey {
        stream,
        session: [session; 16],
        proof: [session ^ stream as u8; 32],
    }
}

fn listen(at: &str) -> Box<dyn Listener> {
    let spec = spec("");
    transport_for(&spec).listen(at.parse().unwrap(), &spec).unwrap()
}

fn connect(
    spec: &RunSpec,
    remote: SocketAddr,
    key: &StreamKey,
    patience: Duration,
) -> Result<Stream, Failure> {
    transport_for(spec).connect(&Connect {
        spec,
        role: Role::Sender,
        source: None,
        source_device: None,
        remote,
        key,
        deadline: Instant::now() + patience,
    })
}

fn accept(listener: &mut dyn Listener, spec: &RunSpec, key: &StreamKey) -> Result<(u16, Stream), Failure> {
    let expected = std::slice::from_ref(key);
    listener.accept(spec, expected, &|_| Role::Receiver, Instant::now() + PATIENCE)
}

fn pair(listener: &mut dyn Listener, spec: &RunSpec, remote: SocketAddr, key: &StreamKey) -> [Stream; 2] {
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener, spec, key));
        let near = connect(spec, remote, key, PATIENCE).unwrap();
        let (number, far) = accepting.join().unwrap().unwrap();
        assert_eq!(number, key.stream);
        [near, far]
    })
}

/// Sends `TOTAL` bytes; `seen` is told how many have come.
fn transfer([sender, receiver]: &mut [Stream; 2], seen: &(dyn Fn(u64) + Sync)) {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let mut total = 0;
            while let Received::Bytes(bytes) = receiver.sink().unwrap().receive_block().unwrap() {
                total += bytes as u64;
                seen(total);
            }
            total
        });
        let mut left = TOTAL;
        while left > 0 {
            left -= sender.source().unwrap().send_block(left as usize).unwrap() as u64;
        }
        sender.finish_sending(Instant::now() + PATIENCE).unwrap();
        assert_eq!(receiving.join().unwrap(), TOTAL);
    });
}

#[test]
fn sessions_share_a_port_and_each_gets_its_own_streams() {
    let mut one = listen("127.0.0.1:0");
    let at = one.local_addr();
    let mut other = listen(&at.to_string());
    assert_eq!(other.local_addr(), at);
    let spec = spec(r#""packet_bytes":1472"#);
    let mut pairs = [
        pair(other.as_mut(), &spec, at, &key(2, 5)),
        pair(one.as_mut(), &spec, at, &key(1, 5)),
    ];
    drop((one, other));
    for pair in &mut pairs {
        transfer(pair, &|_| {});
    }
}

#[test]
fn a_port_can_be_had_again_at_once() {
    let at = listen("127.0.0.1:0").local_addr();
    for round in 1..4 {
        let mut listener = listen(&at.to_string());
        let spec = spec(r#""packet_bytes":1472"#);
        let mut pair = pair(listener.as_mut(), &spec, at, &key(round, 0));
        // Whoever looks at a stream keeps it for as long as it likes.
        let _probes = [pair[0].probe(), pair[1].probe()];
        drop(listener);
        transfer(&mut pair, &|_| {});
    }
}

#[test]
fn who_lacks_the_proof_is_told_so_and_gets_nothing() {
    let mut listener = listen("127.0.0.1:0");
    let (at, spec) = (listener.local_addr(), spec(""));
    let wrong = StreamKey {
        proof: [0; 32],
        ..key(3, 0)
    };
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener.as_mut(), &spec, &key(3, 0)));
        let failure = connect(&spec, at, &wrong, PATIENCE).err().unwrap();
        assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
        assert!(!accepting.is_finished());
        connect(&spec, at, &key(3, 0), PATIENCE).unwrap();
        assert!(accepting.join().unwrap().is_ok());
    });
}

#[test]
fn samples_say_what_the_sender_knows_of_the_path() {
    let mut listener = listen("127.0.0.1:0");
    let (at, spec) = (listener.local_addr(), spec(r#""packet_bytes":1472"#));
    let mut pair = pair(listener.as_mut(), &spec, at, &key(4, 0));
    transfer(&mut pair, &|_| {});
    let [sent, received] = [0, 1].map(|end: usize| pair[end].probe().sample());
    assert!(
        sent.rtt_us > 0 && sent.min_rtt_us > 0 && sent.cwnd_bytes > 14_000,
        "{sent:?}"
    );
    assert_eq!(sent.path_mtu_bytes, 1500);
    assert!(
        sent.packets > TOTAL as i64 / 1472 && sent.received_acks > 0,
        "{sent:?}"
    );
    assert_eq!(sent.lost_packets, sent.retransmits);
    assert_eq!(
        (received.rtt_us, received.cwnd_bytes),
        (-1, -1),
        "these are the sender's"
    );
    let granted = pair[0].granted();
    assert_eq!(granted.congestion_control.as_deref(), Some("cubic"));
    assert_eq!((granted.packet_bytes, granted.gso), (Some(1472), Some(true)));
}

#[test]
fn what_quic_cannot_have_is_refused_by_name() {
    for (option, name) in [(r#""tos":16"#, "tos: "), (r#""flow_label":7"#, "flow_label: ")] {
        let text = format!(r#"{{"transport":"quic",{option}}}"#);
        let spec = from_json::<RunSpec>(&text).unwrap().resolved().unwrap();
        let failure = transport_for(&spec)
            .listen("127.0.0.1:0".parse().unwrap(), &spec)
            .err()
            .unwrap();
        assert_eq!(failure.kind, FailureKind::Spec);
        assert!(failure.message.starts_with(name), "{failure}");
    }
}

/// Carries datagrams between an opener and a listener as a NAT does, and from some moment on by another port.
struct Nat {
    outer: UdpSocket,
    inner: Mutex<[UdpSocket; 2]>,
    is_moved: AtomicBool,
    is_over: AtomicBool,
}

impl Nat {
    fn new(listener: SocketAddr) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            socket
        };
        let inner = [(); 2].map(|()| {
            let inner = socket();
            inner.connect(listener).unwrap();
            inner
        });
        Self {
            outer: socket(),
            inner: Mutex::new(inner),
            is_moved: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    /// The socket towards the listener as it is now.
    fn inner(&self) -> UdpSocket {
        let now = usize::from(self.is_moved.load(Ordering::Relaxed));
        self.inner.lock().unwrap()[now].try_clone().unwrap()
    }

    fn there(&self) {
        let mut buffer = [0; 65_536];
        while !self.is_over.load(Ordering::Relaxed) {
            if let Ok((length, source)) = self.outer.recv_from(&mut buffer) {
                let is_knock = length == 1;
                if !is_knock {
                    let _ = self.outer.connect(source);
                }
                let _ = self.inner().send(&buffer[..length]);
            }
        }
    }

    fn back(&self) {
        let mut buffer = [0; 65_536];
        while !self.is_over.load(Ordering::Relaxed) {
            if let Ok(length) = self.inner().recv(&mut buffer) {
                let _ = self.outer.send(&buffer[..length]);
            }
        }
    }
}

#[test]
fn a_stream_goes_on_when_the_address_of_its_opener_changes() {
    let mut listener = listen("127.0.0.1:0");
    let nat = Nat::new(listener.local_addr());
    let spec = RunSpec {
        rate_bps: farline_spec::unit::RateBps::new(200_000_000).ok(),
        ..spec(r#""packet_bytes":1472"#)
    };
    std::thread::scope(|scope| {
        scope.spawn(|| nat.there());
        scope.spawn(|| nat.back());
        let at = nat.outer.local_addr().unwrap();
        let mut pair = pair(listener.as_mut(), &spec, at, &key(6, 0));
        let before = pair[1].granted().remote;
        let moved_at = AtomicU64::new(0);
        transfer(&mut pair, &|total| {
            if total > TOTAL / 4 && !nat.is_moved.swap(true, Ordering::Relaxed) {
                moved_at.store(total, Ordering::Relaxed);
            }
        });
        assert!(
            moved_at.load(Ordering::Relaxed) < TOTAL / 2,
            "it was in the middle"
        );
        let after = pair[1].granted().remote;
        let new = nat.inner().local_addr().unwrap().to_string();
        assert_ne!(before, after);
        assert_eq!(after, new);
        nat.is_over.store(true, Ordering::Relaxed);
    });
}
