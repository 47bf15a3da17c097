//! Whole sessions on loopback: real TLS, real streams, records of both ends.

mod common;

use std::time::{Duration, Instant};

use common::{bytes, complete, follow, serve, spec};
use farline_session::message::VERSIONS;
use farline_session::{AuditEvent, Server, Target, mint_ticket, start_run};
use farline_spec::{FailureKind, Limits, RunStatus, Scope, from_json};

const OPEN: &str = r#","anonymous":true"#;

#[test]
fn tcp_in_every_direction_gives_a_complete_record_of_both_ends() {
    let server = serve(OPEN);
    for (direction, forward, back) in [
        ("forward", true, false),
        ("reverse", false, true),
        ("bidirectional", true, true),
    ] {
        let text = format!(
            r#"{{"transport":"tcp","direction":"{direction}","streams":2,"duration_s":0.4,"interval_s":0.1,"rate_bps":80000000}}"#
        );
        let run = complete(server.target(), &text);
        let record = &run.record;
        assert_eq!(
            (record.status, &record.error),
            (RunStatus::Complete, &None),
            "{direction}"
        );
        let each_way = if forward && back { 8 } else { 4 };
        assert_eq!(
            record.streams.len(),
            each_way,
            "{direction}: both ends of every stream"
        );
        assert_eq!(bytes(record, 0, 0) > 0, forward, "{direction}");
        assert_eq!(bytes(record, 1, 0) > 0, back, "{direction}");
        assert_eq!(
            bytes(record, 0, 0),
            bytes(record, 1, 1),
            "{direction}: what was sent was received"
        );
        assert_eq!(bytes(record, 1, 0), bytes(record, 0, 1), "{direction}");
        assert!(run.samples.is_rectangular() && run.samples.end.contains(&0) && run.samples.end.contains(&1));
        let sampled: i64 = run.samples.bytes.iter().sum();
        let moved: u64 = record.streams.iter().map(|stream| stream.bytes).sum();
        assert_eq!(
            sampled, moved as i64,
            "{direction}: no byte is outside the samples"
        );
        assert_eq!(server.session_end().status, RunStatus::Complete);
    }
}

#[test]
fn the_record_says_who_and_what_and_when() {
    let server = serve(OPEN);
    let run = complete(
        server.target(),
        r#"{"transport":"tcp","total_bytes":300000,"title":"t"}"#,
    );
    let record = run.record;
    assert_eq!(bytes(&record, 1, 1), 300_000);
    assert_eq!(record.server_address, server.address().to_string());
    assert_eq!(record.run_id.len(), 26);
    assert!(record.started_at.starts_with("20") && record.started_at.ends_with('Z'));
    assert!(record.session_s >= record.run_s && record.run_s > 0.0);
    assert_eq!(record.spec.title.as_deref(), Some("t"));
    let (client, far) = (record.client.unwrap(), record.server.unwrap());
    let newest = VERSIONS.max;
    assert_eq!((client.version.protocol, far.version.protocol), (newest, newest));
    assert_eq!(client.host, far.host, "both ends are this host");
    assert_eq!(run.keys, [server.server.fingerprint().to_string()]);
    let names = [
        "CTRL_CHAN_EST",
        "HANDSHAKE",
        "CREATE_STREAMS",
        "PROFILING_START",
        "PROFILING_END",
        "EXCHANGE_PROFILE",
        "TPG_DONE",
    ];
    assert_eq!(run.stages, names);
}

#[test]
fn null_and_udp_go_the_same_way() {
    let server = serve(r#","anonymous":true,"anonymous_limits":{}"#);
    for text in [
        r#"{"transport":"null","duration_s":0.2,"interval_s":0.1}"#,
        r#"{"transport":"null","direction":"reverse","duration_s":0.2}"#,
        r#"{"transport":"udp","duration_s":0.3,"rate_bps":20000000}"#,
        r#"{"transport":"udp","direction":"bidirectional","duration_s":0.3,"rate_bps":20000000}"#,
    ] {
        let record = complete(server.target(), text).record;
        assert_eq!(
            (record.status, &record.error),
            (RunStatus::Complete, &None),
            "{text}"
        );
        assert!(bytes(&record, 0, 0) + bytes(&record, 1, 0) > 0, "{text}");
    }
}

#[test]
fn streams_take_the_address_pairs_in_turn() {
    let server = serve(OPEN);
    let text = r#"{"streams":4,"total_bytes":40000,"client_cpus":[0],"server_cpus":[0,1],
        "pairs":[{"source":"127.0.0.3","destination":"127.0.0.1"},{"destination":"127.0.0.2"}]}"#;
    let record = complete(server.target(), text).record;
    assert_eq!(record.error, None);
    let local = |end, stream| {
        let of = record
            .streams
            .iter()
            .find(|record| record.end == end && record.stream == stream)
            .unwrap();
        of.granted.local.rsplit_once(':').unwrap().0.to_owned()
    };
    assert_eq!(local(0, 0), "127.0.0.3");
    assert_eq!(
        [local(1, 0), local(1, 1), local(1, 2), local(1, 3)],
        ["127.0.0.1", "127.0.0.2", "127.0.0.1", "127.0.0.2"]
    );
    let cpus: Vec<_> = record
        .streams
        .iter()
        .filter(|stream| stream.end == 1)
        .map(|stream| stream.granted.cpu)
        .collect();
    assert_eq!(cpus, [Some(0), Some(1), Some(0), Some(1)]);
}

#[test]
fn a_destination_of_another_machine_is_refused() {
    let server = serve(OPEN);
    let record = complete(server.target(), r#"{"pairs":[{"destination":"192.0.2.7"}]}"#).record;
    let error = record.error.unwrap();
    assert_eq!(
        (record.status, error.kind),
        (RunStatus::Failed, FailureKind::Spec)
    );
    assert!(
        error
            .message
            .contains("192.0.2.7 is not an address of the server"),
        "{error}"
    );
    server.serves_still();
}

#[test]
fn a_ticket_opens_a_server_and_its_limits_hold() {
    let server = serve("");
    let limits: Limits = from_json(r#"{"rate_bps":8000000,"duration_s":1,"sessions":2}"#).unwrap();
    let url = mint_ticket(
        &server.state_dir(),
        &server.address().to_string(),
        Scope::Profile,
        limits,
        Duration::from_secs(60),
    );
    let target = Target::parse(&url.unwrap()).unwrap();
    let run = complete(target.clone(), r#"{"duration_s":0.5}"#);
    assert_eq!(run.record.status, RunStatus::Complete);
    assert_eq!(run.record.spec.rate_bps.unwrap().get(), 8_000_000);
    assert_eq!(run.record.server_notes, run.notices);
    assert!(run.notices[0].contains("8 Mbit/s"), "{:?}", run.notices);
    assert!(bytes(&run.record, 1, 1) < 1_000_000, "half a second at 8 Mbit/s");

    let refused = |text| complete(target.clone(), text).record.error.unwrap();
    assert_eq!(refused(r#"{"duration_s":2}"#).kind, FailureKind::Limit);
    assert_eq!(
        complete(target.clone(), r#"{"duration_s":0.1}"#).record.error,
        None
    );
    let used_up = refused(r#"{"duration_s":0.1}"#);
    assert_eq!(
        (used_up.kind, used_up.message.as_str()),
        (FailureKind::Auth, "the ticket is used up; sessions allowed: 2")
    );
}

#[test]
fn a_stop_gives_a_partial_record_of_both_ends() {
    let server = serve(OPEN);
    for direction in ["forward", "reverse", "bidirectional"] {
        let text =
            format!(r#"{{"direction":"{direction}","duration_s":20,"interval_s":0.1,"rate_bps":8000000}}"#);
        let handle = start_run(server.target(), spec(&text));
        std::thread::sleep(Duration::from_millis(600));
        let stopped = Instant::now();
        handle.stop();
        let run = follow(&handle);
        assert!(
            stopped.elapsed() < Duration::from_secs(5),
            "{direction}: {:?}",
            stopped.elapsed()
        );
        assert_eq!(
            run.record.status,
            RunStatus::Partial,
            "{direction}: {:?}",
            run.record.error
        );
        assert_eq!(run.record.error.as_ref().unwrap().kind, FailureKind::Interrupted);
        assert!(run.record.server.is_some() && bytes(&run.record, 0, 0) + bytes(&run.record, 1, 0) > 0);
        assert!(
            run.samples.end.contains(&1),
            "{direction}: the server's samples are there"
        );
        assert_eq!(server.session_end().status, RunStatus::Partial);
    }
}

#[test]
fn an_abort_ends_at_once_with_what_the_client_has() {
    let server = serve(OPEN);
    let handle = start_run(
        server.target(),
        spec(r#"{"duration_s":20,"interval_s":0.1,"rate_bps":8000000}"#),
    );
    std::thread::sleep(Duration::from_millis(500));
    handle.abort();
    let before = Instant::now();
    let record = follow(&handle).record;
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "{:?}",
        before.elapsed()
    );
    assert_eq!((record.status, record.server), (RunStatus::Partial, None));
    assert!(!record.streams.is_empty());
    assert_eq!(server.session_end().error.unwrap().kind, FailureKind::Interrupted);
    server.serves_still();
}

#[test]
fn one_client_more_is_told_busy_and_when_to_come_again() {
    let server = serve(r#","anonymous":true,"max_sessions":1"#);
    let first = start_run(server.target(), spec(r#"{"duration_s":20,"rate_bps":8000000}"#));
    server.event(|what| matches!(what, AuditEvent::SessionStarted(_)).then_some(()));
    let error = complete(server.target(), "{}").record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Busy);
    assert!(error.message.contains("running sessions: 1"), "{error}");
    assert!(
        error
            .retry_after_s
            .is_some_and(|seconds| (1.0..=60.0).contains(&seconds))
    );
    first.stop();
    follow(&first);
    assert_eq!(server.session_end().status, RunStatus::Partial);
    server.serves_still();
}

#[test]
fn a_stopped_server_lets_sessions_end_and_joins_everything() {
    let server = serve(OPEN);
    let short = start_run(server.target(), spec(r#"{"duration_s":1,"rate_bps":8000000}"#));
    server.event(|what| matches!(what, AuditEvent::SessionStarted(_)).then_some(()));
    server.server.stop();
    assert_eq!(follow(&short).record.error, None);
    server.server.join();
    server.event(|what| matches!(what, AuditEvent::Stopped { sessions: 1 }).then_some(()));
    assert_eq!(
        complete(server.target(), "{}").record.error.unwrap().kind,
        FailureKind::Unreachable
    );
}

#[test]
fn a_session_that_outlasts_the_grace_is_ended_and_told_why() {
    let server = serve(OPEN);
    let long = start_run(server.target(), spec(r#"{"duration_s":30,"rate_bps":8000000}"#));
    server.event(|what| matches!(what, AuditEvent::SessionStarted(_)).then_some(()));
    std::thread::sleep(Duration::from_millis(300));
    let before = Instant::now();
    server.server.stop_within(Duration::from_millis(200));
    let error = follow(&long).record.error.unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            FailureKind::Protocol,
            "the server is being stopped by its operator"
        )
    );
    server.server.join();
    assert!(
        before.elapsed() < Duration::from_secs(5),
        "{:?}",
        before.elapsed()
    );
}

#[test]
fn a_server_for_two_sessions_ends_by_itself_after_them() {
    let server = serve(r#","anonymous":true,"stop_after_sessions":2"#);
    server.serves_still();
    server.serves_still();
    server.server.join();
    server.event(|what| matches!(what, AuditEvent::Stopped { sessions: 2 }).then_some(()));
}

#[test]
fn several_clients_at_once_do_not_disturb_each_other() {
    let server = serve(r#","anonymous":true,"max_sessions":4"#);
    let text = r#"{"streams":2,"duration_s":0.5,"rate_bps":8000000,"direction":"bidirectional"}"#;
    let runs: Vec<_> = (0..4).map(|_| start_run(server.target(), spec(text))).collect();
    for run in &runs {
        let record = follow(run).record;
        assert_eq!(record.error, None);
        assert_eq!(bytes(&record, 0, 0), bytes(&record, 1, 1));
    }
}

#[test]
fn data_ports_stay_in_their_range() {
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let server = serve(&format!(
        r#","anonymous":true,"data_port_first":{port},"data_port_last":{port}"#
    ));
    let record = complete(server.target(), r#"{"total_bytes":1000}"#).record;
    assert_eq!(record.error, None);
    let server_end = record.streams.iter().find(|stream| stream.end == 1).unwrap();
    assert!(
        server_end.granted.local.ends_with(&format!(":{port}")),
        "{}",
        server_end.granted.local
    );
    server.serves_still();
}

#[test]
fn one_server_serves_both_versions_of_ip() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state").display().to_string();
    let config = serde_json::json!({"port": 0, "state_dir": state, "anonymous": true}).to_string();
    let server = Server::start(from_json(&config).unwrap()).unwrap();
    let port = server.addresses()[0].port();
    let served = |text: String| complete(Target::parse(&text).unwrap(), r#"{"total_bytes":1000}"#).record;
    let record = served(format!("127.0.0.1:{port}"));
    assert_eq!(record.error, None);
    assert!(
        record
            .streams
            .iter()
            .all(|stream| stream.granted.local.starts_with("127.0.0.1:"))
    );
    // A host may have IPv6 switched off; then the server's address says so.
    if server.addresses()[0].is_ipv6() {
        let record = served(format!("[::1]:{port}"));
        assert_eq!(record.error, None);
        assert!(
            record
                .streams
                .iter()
                .all(|stream| stream.granted.local.starts_with("[::1]:"))
        );
    }
}
