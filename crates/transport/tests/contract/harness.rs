//! Opens streams of any transport between two threads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use farline_spec::unit::{DurationS, RateBps, StreamCount, TotalBytes};
use farline_spec::{Failure, RunSpec, from_json};
use farline_transport::{
    Capabilities, Connect, Listener, Received, Role, Stream, StreamKey, Transport, transport_for,
};

/// Long enough for anything that ends at all, on a machine that does ten other things.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Datagrams are sent at this rate where none may be lost: far below what loopback carries.
const GENTLE_BPS: u64 = 300_000_000;

pub const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// One transport in one way of use.
pub struct Subject {
    /// Spec that chooses it, as JSON.
    pub spec: &'static str,
}

impl Subject {
    /// The spec for a run of `total` bytes, resolved. Gentle where the transport may lose data.
    pub fn spec(&self, total: u64) -> RunSpec {
        let mut spec = self.spec_at(GENTLE_BPS);
        spec.duration_s = None;
        spec.total_bytes = Some(TotalBytes::new(total).unwrap());
        if self.capabilities().reliable {
            spec.rate_bps = Some(RateBps::MIN);
        }
        spec
    }

    /// The spec for a run of any length at `rate_bps`.
    pub fn spec_at(&self, rate_bps: u64) -> RunSpec {
        let mut spec = from_json::<RunSpec>(self.spec).unwrap().resolved().unwrap();
        spec.rate_bps = Some(RateBps::new(rate_bps).unwrap());
        spec.duration_s = Some(DurationS::new(PATIENCE.as_secs_f64()).unwrap());
        spec
    }

    pub fn transport(&self) -> Box<dyn Transport> {
        transport_for(&from_json::<RunSpec>(self.spec).unwrap())
    }

    pub fn capabilities(&self) -> Capabilities {
        self.transport().capabilities()
    }

    /// Whether the transport makes a promise. If not it must say why.
    pub fn promises(&self, promise: &str, is_made: bool) -> bool {
        let reason = self.capabilities().why_not;
        if !is_made {
            assert!(
                reason.contains(promise),
                "{promise} is not promised, and why_not does not say why: {reason}"
            );
            println!("not promised: {reason}");
        }
        is_made
    }

    pub fn listen(&self, ip: IpAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure> {
        self.transport().listen(SocketAddr::new(ip, 0), spec)
    }

    pub fn connect(
        &self,
        spec: &RunSpec,
        remote: SocketAddr,
        role: Role,
        number: u16,
    ) -> Result<Stream, Failure> {
        self.connect_as(spec, remote, role, &key(number), None)
    }

    pub fn connect_as(
        &self,
        spec: &RunSpec,
        remote: SocketAddr,
        role: Role,
        key: &StreamKey,
        source: Option<IpAddr>,
    ) -> Result<Stream, Failure> {
        let deadline = Instant::now() + PATIENCE;
        let request = Connect {
            spec,
            role,
            source,
            source_device: None,
            remote,
            key,
            deadline,
        };
        self.transport().connect(&request)
    }

    /// A stream of `spec` over `ip`: sender first. Forward, the connecting end sends.
    pub fn pair(&self, spec: &RunSpec, ip: IpAddr, is_forward: bool) -> (Stream, Stream) {
        let mut listener = self.listen(ip, spec).unwrap();
        let remote = listener.local_addr();
        let (near, far) = if is_forward {
            (Role::Sender, Role::Receiver)
        } else {
            (Role::Receiver, Role::Sender)
        };
        let (accepted, connected) = std::thread::scope(|scope| {
            let accepting = scope.spawn(|| accept(listener.as_mut(), spec, &[0], far, PATIENCE));
            let connected = self.connect(spec, remote, near, 0);
            (accepting.join().unwrap(), connected)
        });
        let ((_, accepted), connected) = (accepted.unwrap(), connected.unwrap());
        if is_forward {
            (connected, accepted)
        } else {
            (accepted, connected)
        }
    }
}

/// The key of stream `number`.
pub fn key(number: u16) -> StreamKey {
    let mut proof = [0x5a; 32];
    proof[..2].copy_from_slice(&number.to_be_bytes());
    StreamKey {
        stream: number,
        session: [9; 16],
        proof,
    }
}

/// Waits for one of the streams `numbers`.
pub fn accept(
    listener: &mut dyn Listener,
    spec: &RunSpec,
    numbers: &[u16],
    role: Role,
    patience: Duration,
) -> Result<(u16, Stream), Failure> {
    let expected: Vec<_> = numbers.iter().map(|&number| key(number)).collect();
    listener.accept(spec, &expected, &|_| role, Instant::now() + patience)
}

/// Sends `total` bytes in blocks and finishes.
pub fn send_all(stream: &mut Stream, total: u64) -> Result<(), Failure> {
    let mut left = total;
    while left > 0 {
        let sent = stream
            .source()
            .unwrap()
            .send_block(usize::try_from(left).unwrap())?;
        assert!(sent as u64 <= left, "{sent} bytes sent of {left} allowed");
        left -= sent as u64;
    }
    stream.finish_sending(Instant::now() + PATIENCE)
}

/// Receives to the end; gives the number of bytes and shows them piece by piece.
pub fn receive_all(stream: &mut Stream, visit: &mut dyn FnMut(&[u8])) -> Result<u64, Failure> {
    let (mut total, start) = (0, Instant::now());
    while start.elapsed() < PATIENCE {
        match stream.sink().unwrap().receive_block()? {
            Received::Bytes(bytes) => total += bytes as u64,
            Received::End => return Ok(total),
        }
        stream.sink().unwrap().visit_received(visit);
    }
    panic!("no end after {PATIENCE:?} and {total} bytes");
}

/// Runs both ends of a transfer of `total` bytes; gives the bytes received.
pub fn transfer(
    sender: &mut Stream,
    receiver: &mut Stream,
    total: u64,
    visit: &mut (dyn FnMut(&[u8]) + Send),
) -> u64 {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || receive_all(receiver, visit));
        send_all(sender, total).unwrap();
        receiving.join().unwrap().unwrap()
    })
}

/// The spec with `count` streams.
pub fn with_streams(mut spec: RunSpec, count: u16) -> RunSpec {
    spec.streams = StreamCount::new(count).unwrap();
    spec
}
