//! The engine over the real transports: nothing carried, and TCP and UDP over loopback.

use farline_transport::{Connect, Role, StreamKey, transport_for};

use super::tests::{Bench, spec, start, total};
use super::*;

/// Both ends of every stream of the spec, in the roles its direction gives them.
fn open(spec: &RunSpec) -> (Vec<OpenStream>, Vec<OpenStream>) {
    let transport = transport_for(spec);
    let mut listener = transport.listen("127.0.0.1:0".parse().unwrap(), spec).unwrap();
    let remote = listener.local_addr();
    let deadline = Instant::now() + Duration::from_secs(10);
    let streams = 0..u16::try_from(spec.stream_total()).unwrap();
    let pairs = streams.map(|stream| {
        let forward = stream < spec.streams.get();
        let (role, other) = if forward {
            (Role::Sender, Role::Receiver)
        } else {
            (Role::Receiver, Role::Sender)
        };
        let key = StreamKey {
            stream,
            session: [7; 16],
            proof: [stream as u8; 32],
        };
        let request = Connect {
            spec,
            role,
            source: None,
            source_device: None,
            remote,
            key: &key,
            deadline,
        };
        let (near, far) = std::thread::scope(|scope| {
            let connecting = scope.spawn(|| transport.connect(&request));
            let accepted = listener.accept(spec, std::slice::from_ref(&key), &|_| other, deadline);
            (connecting.join().unwrap().unwrap(), accepted.unwrap().1)
        });
        let end = |role, io| OpenStream {
            stream,
            role,
            cpu: None,
            io,
        };
        (end(role, near), end(other, far))
    });
    pairs.unzip()
}

fn both_ends(json: &str) -> (Bench, Bench) {
    let (near, far) = open(&spec(json));
    (start(json, End::Client, near), start(json, End::Server, far))
}

fn sum(outcome: &RunOutcome, role: u8) -> u64 {
    outcome
        .streams
        .iter()
        .filter(|record| record.role == role)
        .map(|record| record.bytes)
        .sum()
}

#[test]
fn null_streams_count_the_whole_total_at_both_ends() {
    let (near, far) = both_ends(r#"{"transport":"null","streams":3,"total_bytes":1000000007}"#);
    let ((near, _), (far, _)) = (near.end(), far.end());
    assert_eq!((total(&near), total(&far)), (1_000_000_007, 1_000_000_007));
}

#[test]
fn null_receivers_stop_with_the_run() {
    let (near, far) = both_ends(r#"{"transport":"null","duration_s":600}"#);
    near.run.stop();
    far.run.stop();
    let ((near, _), (far, _)) = (near.end(), far.end());
    assert!(near.run_s < 10.0 && far.run_s < 10.0);
    assert!(near.failure.is_none() && far.failure.is_none());
}

#[test]
fn tcp_carries_exactly_the_total_both_ways() {
    let (near, far) =
        both_ends(r#"{"direction":"bidirectional","streams":2,"total_bytes":20000003,"interval_s":0.02}"#);
    let ((near, _), (far, _)) = (near.end(), far.end());
    assert_eq!(
        [sum(&near, 0), sum(&near, 1), sum(&far, 0), sum(&far, 1)],
        [20_000_003; 4]
    );
    assert!(near.failure.is_none() && far.failure.is_none());
    for record in near.streams.iter().filter(|record| record.role == 0) {
        assert!(record.granted.congestion_control.is_some() && record.granted.mss_bytes.is_some());
    }
}

#[test]
fn tcp_stopped_in_the_middle_loses_nothing() {
    let (near, far) = both_ends(r#"{"streams":2,"duration_s":600}"#);
    std::thread::sleep(Duration::from_millis(100));
    near.run.stop();
    let ((near, events), (far, _)) = (near.end(), far.end());
    assert_eq!(
        events,
        [
            RunEvent::Turn(RunTurn::SendersDone),
            RunEvent::Turn(RunTurn::AllDone)
        ]
    );
    assert!(total(&near) > 0 && total(&near) == total(&far));
    assert!(near.failure.is_none() && far.failure.is_none());
}

#[test]
fn tcp_aborted_at_one_end_fails_at_the_other() {
    let (near, far) = both_ends(r#"{"duration_s":600}"#);
    std::thread::sleep(Duration::from_millis(50));
    far.run.abort();
    let (far, _) = far.end();
    let (near, _) = near.end();
    assert_eq!(far.failure, None);
    let failure = near.failure.expect("the other end is gone");
    assert!(failure.message.starts_with("stream 0: "), "{failure}");
    assert!(near.run_s < 10.0 && far.run_s < 10.0);
}

#[test]
fn udp_accounts_for_every_datagram() {
    let (near, far) =
        both_ends(r#"{"transport":"udp","rate_bps":20000000,"duration_s":0.3,"block_bytes":14720}"#);
    let ((near, _), (far, _)) = (near.end(), far.end());
    let (sent, received) = (&near.streams[0], &far.streams[0]);
    assert_eq!(sent.packets, received.packets + received.lost_packets);
    assert!(sent.packets > 0 && received.bytes <= sent.bytes);
    assert!(near.failure.is_none() && far.failure.is_none());
}
