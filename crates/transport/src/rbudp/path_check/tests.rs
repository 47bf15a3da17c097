//! Both ends of a check over loopback, with a relay between them that is the path.

#[path = "../../../tests/relay/mod.rs"]
mod relay;

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::Mutex;
use std::time::Duration;

use farline_proto::rbudp::train::advice;
use farline_spec::FailureKind;
use farline_sys::time;

use self::relay::{Pass, Relay, Way};
use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
const TOKEN: u32 = 0x0bad_cafe;
/// By which the far end learns where to send.
const HELLO: &[u8] = b"hello";

fn plan(rate_bps: u64) -> CheckPlan {
    CheckPlan {
        rate_bps,
        packet_bytes: 1_472,
        token: TOKEN,
        rtt_hint_us: 100,
    }
}

fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (near, listener.accept().unwrap().0)
}

/// One end of a stream: its connection and its socket.
type End = (TcpStream, Socket);

fn udp_socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    crate::socket::force_receive_buffer(&socket.try_clone().unwrap().into(), 16 << 20).unwrap();
    socket
}

/// Two ends without anything between them: sender first.
fn direct() -> (End, End) {
    let (near, far) = (udp_socket(), udp_socket());
    near.connect(far.local_addr().unwrap()).unwrap();
    far.connect(near.local_addr().unwrap()).unwrap();
    farline_sys::datagram::allow_batches(far.as_fd()).unwrap();
    let (one, other) = connection();
    ((one, near.into()), (other, far.into()))
}

/// Two ends whose datagrams go through `relay`.
fn relayed(relay: &Relay<'_>) -> (End, End) {
    let (near, far) = (udp_socket(), udp_socket());
    near.connect(relay.towards(far.local_addr().unwrap())).unwrap();
    far.set_read_timeout(Some(PATIENCE)).unwrap();
    near.send(HELLO).unwrap();
    let (_, source) = far.recv_from(&mut [0; 9]).unwrap();
    far.connect(source).unwrap();
    let (one, other) = connection();
    ((one, near.into()), (other, far.into()))
}

/// Runs both ends. Afterwards the connection is clean: the next byte is the next byte.
fn check_both(plan: &CheckPlan, (mut near, mut far): (End, End)) -> PathCheck {
    let deadline = Instant::now() + PATIENCE;
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = scope.spawn(|| measure(&mut far.0, &far.1, Role::Receiver, plan, deadline));
        let sent = measure(&mut near.0, &near.1, Role::Sender, plan, deadline);
        (sent.unwrap(), receiving.join().unwrap().unwrap())
    });
    assert_eq!(sent, received);
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&near.0, &far.0];
        let (mut from, mut to, mut byte) = (ends[from], ends[to], [0]);
        from.write_all(&[42]).unwrap();
        to.read_exact(&mut byte).unwrap();
        assert_eq!(byte, [42]);
    }
    sent
}

/// The verdict over what `pass` does with all datagrams but the hello.
fn check_through(plan: &CheckPlan, pass: &Pass<'_>) -> PathCheck {
    let after_hello = |way: Way, datagram: &[u8]| match datagram {
        HELLO => vec![HELLO.to_vec()],
        _ => pass(way, datagram),
    };
    Relay::run(&after_hello, |relay| check_both(plan, relayed(relay)))
}

/// Lets only so much payload through: what comes sooner waits in the relay's socket.
struct Slow {
    rate_bps: u64,
    ready_ns: Mutex<u64>,
}

impl Slow {
    fn at(rate_bps: u64) -> Self {
        let ready_ns = Mutex::new(0);
        Self { rate_bps, ready_ns }
    }

    fn pass(&self, way: Way, datagram: &[u8]) -> Vec<Vec<u8>> {
        if way == Way::There {
            let mut ready_ns = self.ready_ns.lock().unwrap();
            time::sleep_until(*ready_ns, 50_000);
            let payload_bits = datagram.len().saturating_sub(16) as u64 * 8;
            // Up to 1 ms of lateness is made up for: it is the relay's thread that is late, not the link.
            let from_ns = (*ready_ns).max(time::now_ns().saturating_sub(1_000_000));
            *ready_ns = from_ns + payload_bits * 1_000_000_000 / self.rate_bps;
        }
        vec![datagram.to_vec()]
    }
}

/// On a machine that does ten other things one good check in ten is enough.
fn one_in_ten(mut run: impl FnMut() -> PathCheck, is_right: impl Fn(&PathCheck) -> bool) {
    let mut checks = Vec::new();
    let is_found = (0..10).any(|_| {
        checks.push(run());
        checks.last().is_some_and(&is_right)
    });
    assert!(is_found, "{checks:?}");
}

#[test]
fn a_path_of_ones_own_is_not_shared_and_both_ends_say_the_same() {
    let plan = plan(1_000_000_000);
    one_in_ten(
        || check_both(&plan, direct()),
        |check| {
            let is_quick = check.min_rtt_us < 5_000 && check.idle_rtt_us >= check.min_rtt_us;
            !check.shared && check.carried_bps > 900_000_000 && check.lost_share < 0.2 && is_quick
        },
    );
}

#[test]
fn a_path_of_half_the_rate_is_found_with_what_it_carries() {
    let (slow, plan) = (Slow::at(50_000_000), plan(100_000_000));
    let pass = |way: Way, datagram: &[u8]| slow.pass(way, datagram);
    one_in_ten(
        || check_through(&plan, &pass),
        |check| {
            check.shared && (40_000_000..60_000_000).contains(&check.carried_bps) && advice(check).is_some()
        },
    );
}

#[test]
fn a_third_lost_by_chance_is_not_taken_for_others() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let pass = |_: Way, datagram: &[u8]| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if number % 3 == 2 {
            Vec::new()
        } else {
            vec![datagram.to_vec()]
        }
    };
    one_in_ten(
        || check_through(&plan(50_000_000), &pass),
        |check| !check.shared && (0.2..0.45).contains(&check.lost_share) && check.carried_bps > 45_000_000,
    );
}

#[test]
fn a_queue_of_others_is_found_without_a_rate() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let pass = |way: Way, datagram: &[u8]| {
        if way == Way::There && count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 4 != 0 {
            time::sleep_until(time::now_ns() + 6_000_000, 0);
        }
        vec![datagram.to_vec()]
    };
    one_in_ten(
        || check_through(&plan(0), &pass),
        |check| check.shared && check.idle_rtt_us > 6_000 && check.carried_bps == 0,
    );
}

#[test]
fn a_path_that_swallows_everything_is_said_to() {
    let check = check_through(&plan(50_000_000), &|_, _| Vec::new());
    assert_eq!(
        (check.shared, check.lost_share, check.carried_bps),
        (true, 1.0, 0)
    );
    assert_eq!(check.min_rtt_us, 100, "what was known before");
}

#[test]
fn doubled_and_foreign_datagrams_change_nothing() {
    let pass = |_: Way, datagram: &[u8]| {
        let mut foreign = datagram.to_vec();
        foreign[0] ^= 1;
        let mut no_train = datagram.to_vec();
        if let Some(number) = no_train.get_mut(7) {
            *number = 99;
        }
        vec![
            foreign,
            datagram.to_vec(),
            no_train,
            datagram[..3].to_vec(),
            datagram.to_vec(),
        ]
    };
    one_in_ten(
        || check_through(&plan(20_000_000), &pass),
        |check| !check.shared && check.lost_share == 0.0 && check.carried_bps > 18_000_000,
    );
}

#[test]
fn packets_of_any_size_and_rates_too_low_for_trains_are_checked() {
    for (rate_bps, packet_bytes) in [(1_000_000_000, 65_507), (20_000_000, 64), (10_000, 1_472)] {
        let plan = CheckPlan {
            packet_bytes,
            ..plan(rate_bps)
        };
        one_in_ten(
            || check_both(&plan, direct()),
            |check| !check.shared && check.rate_bps == rate_bps,
        );
    }
}

#[test]
fn a_packet_over_the_mtu_is_named() {
    let ((mut near, udp), (mut far, far_udp)) = direct();
    let plan = CheckPlan {
        packet_bytes: 65_508,
        ..plan(1_000_000_000)
    };
    let deadline = Instant::now() + PATIENCE;
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || measure(&mut far, &far_udp, Role::Receiver, &plan, deadline));
        let failure = measure(&mut near, &udp, Role::Sender, &plan, deadline).unwrap_err();
        drop(near);
        assert_eq!(failure.kind, FailureKind::Spec, "{failure}");
        assert!(
            failure
                .message
                .starts_with("rbudp.packet_bytes: 65508 bytes exceed"),
            "{failure}"
        );
        let failure = receiving.join().unwrap().unwrap_err();
        assert_eq!(failure.message, "path check: the other end closed the connection");
    });
}

/// What an end says of a peer that writes `bytes` and then waits, or closes.
fn against(role: Role, bytes: &[u8], stays: bool) -> Failure {
    let ((near, udp), (mut far, _far_udp)) = direct();
    far.write_all(bytes).unwrap();
    if !stays {
        far.shutdown(std::net::Shutdown::Write).unwrap();
    }
    let mut near = near;
    let deadline = Instant::now() + Duration::from_millis(if stays { 400 } else { 5_000 });
    let failure = measure(&mut near, &udp, role, &plan(0), deadline).unwrap_err();
    assert!(Instant::now() < deadline + Duration::from_secs(2));
    failure
}

#[test]
fn a_peer_that_is_silent_gone_or_wrong_is_named() {
    let ready = [&[0, 0, 0, 16, 1][..], &[0; 6], &[7, 7], &[0; 8]].concat();
    let too_long = [0, 1, 0, 0, 2];
    for role in [Role::Sender, Role::Receiver] {
        assert_eq!(against(role, b"", true).kind, FailureKind::Timeout);
        assert_eq!(against(role, b"\0\0\0", true).kind, FailureKind::Timeout);
        let gone = against(role, b"", false);
        assert_eq!(
            (gone.kind, gone.message.as_str()),
            (
                FailureKind::Protocol,
                "path check: the other end closed the connection"
            )
        );
        let long = against(role, &too_long, false);
        assert!(
            long.message.contains("announced 65536 bytes; allowed: "),
            "{long}"
        );
        let noise = against(role, b"\0\0\0\x01\x09x", false);
        assert_eq!(noise.message, "path check: the other end sent an invalid message");
    }
    let other = against(Role::Sender, &ready, false);
    assert!(
        other.message.contains("expects 1799 bit/s in packets of 0 bytes"),
        "{other}"
    );
    let sent = [&[0, 0, 0, 28, 2][..], &[0; 24], &[0, 0, 0, 0]].concat();
    let trains = against(Role::Receiver, &sent, false);
    assert_eq!(
        trains.message,
        "path check: the other end sent 1 trains; allowed: 0..=0"
    );
    let ready_to_receiver = against(Role::Receiver, &ready, false);
    assert_eq!(
        ready_to_receiver.kind,
        FailureKind::Protocol,
        "{ready_to_receiver}"
    );
}
