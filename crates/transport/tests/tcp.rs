//! What TCP makes of its options: what was asked for, what the kernel granted, what it refused.

use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, from_json};
use farline_transport::{Connect, Received, Role, Stream, StreamKey, transport_for};

const PATIENCE: Duration = Duration::from_secs(20);

fn spec(tcp: &str) -> RunSpec {
    whole_spec(&format!(r#""tcp":{{{tcp}}}"#))
}

fn whole_spec(fields: &str) -> RunSpec {
    from_json::<RunSpec>(&format!("{{{fields}}}"))
        .unwrap()
        .resolved()
        .unwrap()
}

fn key() -> StreamKey {
    StreamKey {
        stream: 0,
        session: [1; 16],
        proof: [2; 32],
    }
}

/// How to open: the specs of both ends may differ, as those of two hosts may in effect.
struct Opening<'a> {
    opener: &'a RunSpec,
    listener: &'a RunSpec,
    address: &'a str,
    is_forward: bool,
    device: Option<&'a str>,
}

impl<'a> Opening<'a> {
    fn of(spec: &'a RunSpec) -> Self {
        Self {
            opener: spec,
            listener: spec,
            address: "127.0.0.1:0",
            is_forward: true,
            device: None,
        }
    }

    /// Opens; sender first.
    fn open(&self) -> Result<[Stream; 2], Failure> {
        let mut listener =
            transport_for(self.listener).listen(self.address.parse().unwrap(), self.listener)?;
        let (near, far) = if self.is_forward {
            (Role::Sender, Role::Receiver)
        } else {
            (Role::Receiver, Role::Sender)
        };
        let (key, deadline) = (key(), Instant::now() + PATIENCE);
        let request = Connect {
            spec: self.opener,
            role: near,
            source: None,
            source_device: self.device,
            remote: listener.local_addr(),
            key: &key,
            deadline,
        };
        let connected = transport_for(self.opener).connect(&request)?;
        let (_, accepted) = listener.accept(self.listener, &[self::key()], &|_| far, deadline)?;
        Ok(if self.is_forward {
            [connected, accepted]
        } else {
            [accepted, connected]
        })
    }
}

fn transfer([sender, receiver]: &mut [Stream; 2], total: u64) -> u64 {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let mut received = 0;
            while let Received::Bytes(bytes) = receiver.sink().unwrap().receive_block().unwrap() {
                received += bytes as u64;
            }
            received
        });
        let mut left = total;
        while left > 0 {
            left -= sender.source().unwrap().send_block(left as usize).unwrap() as u64;
        }
        sender.finish_sending(Instant::now() + PATIENCE).unwrap();
        receiving.join().unwrap()
    })
}

#[test]
fn buffers_within_the_limits_are_granted_without_a_note() {
    let spec = spec(r#""send_buffer_bytes":100000,"receive_buffer_bytes":150000"#);
    for stream in Opening::of(&spec).open().unwrap() {
        let granted = stream.granted();
        assert_eq!(
            (granted.send_buffer_bytes, granted.receive_buffer_bytes),
            (Some(200_000), Some(300_000))
        );
        assert_eq!(granted.notes, Vec::<String>::new());
    }
}

#[test]
fn buffers_beyond_the_limits_are_noted_with_the_sysctl() {
    let spec = spec(r#""send_buffer_bytes":2000000000,"receive_buffer_bytes":2000000000"#);
    for stream in Opening::of(&spec).open().unwrap() {
        let notes = stream.granted().notes.join("\n");
        assert!(
            notes.contains("net.core.wmem_max") && notes.contains("net.core.rmem_max"),
            "{notes}"
        );
    }
}

#[test]
fn congestion_control_is_the_senders_whichever_end_that_is() {
    let spec = spec(r#""congestion_control":"reno""#);
    for is_forward in [true, false] {
        let [sender, _] = Opening {
            is_forward,
            ..Opening::of(&spec)
        }
        .open()
        .unwrap();
        assert_eq!(sender.granted().congestion_control.as_deref(), Some("reno"));
    }
}

#[test]
fn an_unknown_congestion_control_is_refused_with_those_there_are() {
    let spec = spec(r#""congestion_control":"nosuch""#);
    for is_forward in [true, false] {
        let failure = Opening {
            is_forward,
            ..Opening::of(&spec)
        }
        .open()
        .err()
        .expect("it does not exist");
        assert_eq!(failure.kind, FailureKind::Spec);
        assert!(
            failure.message.starts_with("tcp.congestion_control: nosuch "),
            "{failure}"
        );
        assert!(failure.message.contains("reno"), "{failure}");
    }
}

#[test]
fn a_segment_size_is_kept_at_both_ends_and_the_difference_noted() {
    let spec = spec(r#""mss_bytes":1000"#);
    for mut streams in [true, false].map(|is_forward| {
        Opening {
            is_forward,
            ..Opening::of(&spec)
        }
        .open()
        .unwrap()
    }) {
        let granted = streams[0].granted();
        let used = granted.mss_bytes.unwrap();
        assert!((900..=1000).contains(&used), "{used}");
        assert_eq!(
            used != 1000,
            granted
                .notes
                .iter()
                .any(|note| note.starts_with("mss: requested 1000"))
        );
        assert_eq!(transfer(&mut streams, 1_000_000), 1_000_000);
    }
}

#[test]
fn both_ends_know_whether_they_speak_mptcp() {
    let (multi, plain) = (spec(r#""mptcp":true"#), spec(""));
    let streams = match Opening::of(&multi).open() {
        Ok(streams) => streams,
        Err(failure) => {
            assert_eq!(failure.kind, FailureKind::Spec, "{failure}");
            println!("not run: {failure}");
            return;
        }
    };
    assert!(streams.iter().all(|stream| stream.granted().mptcp == Some(true)));
    let [sender, receiver] = Opening {
        listener: &plain,
        ..Opening::of(&multi)
    }
    .open()
    .unwrap();
    assert_eq!(sender.granted().mptcp, Some(false));
    assert!(
        sender.granted().notes[0].contains("fell back to TCP"),
        "{:?}",
        sender.granted().notes
    );
    assert_eq!(
        (receiver.granted().mptcp, receiver.granted().notes.len()),
        (Some(false), 0)
    );
}

#[test]
fn every_zero_copy_byte_is_accounted_for_copied_or_not() {
    let spec = spec(r#""send_mode":"zerocopy""#);
    let mut streams = Opening::of(&spec).open().unwrap();
    assert_eq!(transfer(&mut streams, 20_000_000), 20_000_000);
    let sent = streams[0].probe().sample();
    assert_eq!(
        sent.zerocopy_copied_bytes + sent.zerocopy_true_bytes,
        20_000_000,
        "{sent:?}"
    );
}

#[test]
fn a_pacing_rate_is_kept_by_the_kernel() {
    let spec = spec(r#""pacing_rate_bps":80000000,"congestion_control":"reno""#);
    let mut streams = Opening::of(&spec).open().unwrap();
    let start = Instant::now();
    transfer(&mut streams, 5_000_000);
    let rate_bps = 40e6 / start.elapsed().as_secs_f64();
    assert!((20e6..100e6).contains(&rate_bps), "{rate_bps} bit/s");
    assert!(streams[0].granted().notes.is_empty());
}

#[test]
fn a_user_timeout_is_kept_at_both_ends_without_a_note() {
    let spec = spec(r#""user_timeout_ms":5000"#);
    for is_forward in [true, false] {
        let mut streams = Opening {
            is_forward,
            ..Opening::of(&spec)
        }
        .open()
        .unwrap();
        for stream in &streams {
            assert_eq!(stream.granted().notes, Vec::<String>::new());
        }
        assert_eq!(transfer(&mut streams, 1_000_000), 1_000_000);
    }
}

/// The kernel counts a window that stays closed as it counts a path that is cut.
#[test]
fn a_sender_whose_data_nobody_takes_gives_up_after_the_user_timeout() {
    let spec = spec(r#""user_timeout_ms":500"#);
    for is_forward in [true, false] {
        let [mut sender, receiver] = Opening {
            is_forward,
            ..Opening::of(&spec)
        }
        .open()
        .unwrap();
        let start = Instant::now();
        let failure = loop {
            match sender.source().unwrap().send_block(1 << 20) {
                Ok(_) => assert!(start.elapsed() < PATIENCE),
                Err(failure) => break failure,
            }
        };
        assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
        assert!(start.elapsed() >= Duration::from_millis(500));
        drop(receiver);
    }
}

/// Linux 6.18 has no such option of Multipath TCP; a kernel that has it keeps the value.
#[test]
fn a_user_timeout_that_multipath_tcp_does_not_take_is_refused_by_name() {
    if Opening::of(&spec(r#""mptcp":true"#)).open().is_err() {
        println!("not run: there is no Multipath TCP here");
        return;
    }
    match Opening::of(&spec(r#""mptcp":true,"user_timeout_ms":5000"#)).open() {
        Ok(streams) => assert!(streams.iter().all(|stream| stream.granted().notes.is_empty())),
        Err(failure) => {
            assert_eq!(failure.kind, FailureKind::Spec, "{failure}");
            let expected = "tcp.user_timeout_ms: this kernel's Multipath TCP does not take it";
            assert!(failure.message.starts_with(expected), "{failure}");
        }
    }
}

#[test]
fn a_user_timeout_out_of_range_is_refused_with_the_range() {
    for timeout in [0_u64, 99, 86_400_001, 5_000_000_000] {
        let refusal =
            from_json::<RunSpec>(&format!(r#"{{"tcp":{{"user_timeout_ms":{timeout}}}}}"#)).unwrap_err();
        assert_eq!(refusal.kind, FailureKind::Spec);
        assert_eq!(
            refusal.message,
            format!("tcp.user_timeout_ms: {timeout} is out of range; allowed: 100 to 86400000 ms")
        );
    }
}

#[test]
fn type_of_service_is_set_and_what_the_kernel_changes_noted() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let spec = whole_spec(r#""tos":40"#);
        for stream in (Opening {
            address,
            ..Opening::of(&spec)
        })
        .open()
        .unwrap()
        {
            assert_eq!(stream.granted().notes, Vec::<String>::new());
        }
    }
    let with_ecn_bits = whole_spec(r#""tos":41"#);
    let [sender, _] = Opening::of(&with_ecn_bits).open().unwrap();
    assert!(
        sender.granted().notes[0].starts_with("tos: requested 41, in use 40"),
        "{:?}",
        sender.granted().notes
    );
}

#[test]
fn a_flow_label_is_of_ipv6_and_its_limits_are_noted() {
    let spec = whole_spec(r#""flow_label":12345"#);
    let failure = Opening::of(&spec).open().err().expect("IPv4 has no flow label");
    assert!(failure.message.starts_with("flow_label: "), "{failure}");
    let mut streams = Opening {
        address: "[::1]:0",
        ..Opening::of(&spec)
    }
    .open()
    .unwrap();
    assert_eq!(transfer(&mut streams, 100_000), 100_000);
    let strict = std::fs::read_to_string("/proc/sys/net/ipv6/flowlabel_consistency")
        .unwrap()
        .trim()
        != "0";
    let notes = streams[1].granted().notes;
    assert_eq!(
        notes.iter().any(|note| note.starts_with("flow label: ")),
        strict,
        "{notes:?}"
    );
}

#[test]
fn a_device_is_bound_to_or_refused_by_name() {
    let spec = spec("");
    match (Opening {
        device: Some("lo"),
        ..Opening::of(&spec)
    })
    .open()
    {
        Ok(_) => {}
        // The kernel asks for CAP_NET_RAW before Linux 5.7.
        Err(failure) => assert_eq!(failure.kind, FailureKind::System, "{failure}"),
    }
    let failure = (Opening {
        device: Some("nosuch0"),
        ..Opening::of(&spec)
    })
    .open()
    .err()
    .expect("no such device");
    assert_eq!(failure.kind, FailureKind::Spec);
    assert!(
        failure.message.starts_with("pairs.source_device: nosuch0"),
        "{failure}"
    );
}

#[test]
fn a_sender_has_the_kernels_figures_and_a_receiver_its_own() {
    let mut streams = Opening::of(&spec("")).open().unwrap();
    transfer(&mut streams, 30_000_000);
    let [sent, received] = streams.map(|stream| stream.probe().sample());
    assert!(
        sent.rtt_us > 0 && sent.cwnd_bytes > 0 && sent.retransmits >= 0,
        "{sent:?}"
    );
    assert!(
        sent.busy_us >= 0 && sent.delivery_rate_bps > 0 && sent.receive_window_bytes > 0,
        "{sent:?}"
    );
    assert!(sent.min_rtt_us > 0 && sent.path_mtu_bytes >= 1_280, "{sent:?}");
    assert_eq!(
        (received.rtt_us, received.cwnd_bytes, received.retransmits),
        (-1, -1, -1)
    );
    assert!(
        received.receive_window_bytes != 0 && received.packets == -1,
        "{received:?}"
    );
}

#[test]
fn a_peer_that_vanishes_is_a_failure_of_the_peer() {
    let [mut sender, receiver] = Opening::of(&spec("")).open().unwrap();
    drop(receiver);
    let start = Instant::now();
    let failure = loop {
        match sender.source().unwrap().send_block(usize::MAX) {
            Ok(_) => assert!(start.elapsed() < PATIENCE),
            Err(failure) => break failure,
        }
    };
    assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
    assert!(failure.message.starts_with("data stream, sending: "), "{failure}");
}

#[test]
fn a_stream_is_closed_when_it_is_dropped_though_it_is_still_observed() {
    let [sender, mut receiver] = Opening::of(&spec("")).open().unwrap();
    let probe = sender.probe();
    drop(sender);
    assert_eq!(receiver.sink().unwrap().receive_block().unwrap(), Received::End);
    assert_eq!(probe.sample().bytes, 0);
}

#[test]
fn all_streams_may_arrive_before_the_first_is_taken() {
    let spec = spec("");
    let mut listener = transport_for(&spec)
        .listen("127.0.0.1:0".parse().unwrap(), &spec)
        .unwrap();
    let keys: Vec<_> = (0..512).map(|stream| StreamKey { stream, ..key() }).collect();
    let deadline = Instant::now() + PATIENCE;
    let opened: Vec<_> = keys
        .iter()
        .map(|key| {
            let request = Connect {
                spec: &spec,
                role: Role::Sender,
                source: None,
                source_device: None,
                remote: listener.local_addr(),
                key,
                deadline,
            };
            transport_for(&spec).connect(&request).unwrap()
        })
        .collect();
    let mut accepted: Vec<_> = opened
        .iter()
        .map(|_| {
            listener
                .accept(&spec, &keys, &|_| Role::Receiver, deadline)
                .unwrap()
                .0
        })
        .collect();
    accepted.sort_unstable();
    assert!(accepted.into_iter().eq(0..512));
}

#[test]
fn a_stream_is_not_pushed_out_by_a_crowd_that_came_behind_it() {
    let spec = spec("");
    let mut listener = transport_for(&spec)
        .listen("127.0.0.1:0".parse().unwrap(), &spec)
        .unwrap();
    let (key, deadline) = (key(), Instant::now() + PATIENCE);
    let request = Connect {
        spec: &spec,
        role: Role::Sender,
        source: None,
        source_device: None,
        remote: listener.local_addr(),
        key: &key,
        deadline,
    };
    let sender = transport_for(&spec).connect(&request).unwrap();
    let crowd: Vec<_> = (0..300)
        .map(|_| std::net::TcpStream::connect(listener.local_addr()).unwrap())
        .collect();
    let accepted = listener.accept(&spec, &[self::key()], &|_| Role::Receiver, deadline);
    assert_eq!(accepted.unwrap().0, 0);
    drop((sender, crowd));
}
