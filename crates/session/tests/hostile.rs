//! Peers that vanish, stall, lie, or speak something else. Each costs what it may cost, and the
//! next client is served.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::proxy::{Fate, Proxy};
use common::wire::Wire;
use common::{complete, follow, serve, serve_with, spec};
use farline_session::machine::Timing;
use farline_session::message::VERSIONS;
use farline_session::{AuditEvent, Server, Target, mint_ticket, start_run};
use farline_spec::{FailureKind, Limits, RunStatus, Scope};
use serde_json::{Value, json};

const OPEN: &str = r#","anonymous":true"#;
const RUN: &str = r#"{"total_bytes":200000,"interval_s":0.05}"#;

fn handshake(ticket: Option<&str>, version: u32) -> Value {
    let mut content = json!({"version": version, "task": {"profile": {"total_bytes": 1000}}});
    if let Some(ticket) = ticket {
        content["ticket"] = ticket.into();
    }
    json!({ "HANDSHAKE": content })
}

/// Says `message` first and gives what the server ends with.
fn answer(server: &common::TestServer, message: &Value) -> Value {
    let mut wire = Wire::connect(server.address());
    assert!(wire.hear().unwrap().get("CTRL_CHAN_EST").is_some());
    wire.say(message);
    wire.hear_error()
}

#[test]
fn the_wire_is_what_its_description_says() {
    let server = serve(OPEN);
    let mut wire = Wire::connect(server.address());
    let greeting = wire.hear().unwrap();
    let offer = &greeting["CTRL_CHAN_EST"];
    assert_eq!(
        (offer["min_version"].clone(), offer["max_version"].clone()),
        (json!(1), json!(VERSIONS.max))
    );
    assert_eq!(offer["session"].as_str().unwrap().len(), 32);
    wire.say(&handshake(None, 1));
    assert_eq!(wire.hear().unwrap()["HANDSHAKE"]["spec"]["total_bytes"], 1000);
    wire.say(&json!("CREATE_STREAMS"));
    assert!(
        wire.hear().unwrap()["CREATE_STREAMS"]["listeners"][0]["port"]
            .as_u64()
            .unwrap()
            > 0
    );
    wire.say(&json!({"ERROR": {"kind": "interrupted", "message": "enough"}}));
    assert_eq!(wire.hear(), None);
    assert_eq!(server.session_end().error.unwrap().message, "enough");
    server.serves_still();
}

/// Whether a client may say this of a server that is gone after so many records of TLS. Without a word from it, it may have
/// been full, and is tried again; but this proxy has gone by then.
fn may_be(kind: FailureKind, records: usize) -> bool {
    match kind {
        FailureKind::Protocol => true,
        FailureKind::Busy | FailureKind::Unreachable => records < 2,
        _ => false,
    }
}

#[test]
fn a_client_cut_off_at_any_step_leaves_a_server_that_serves() {
    let server = serve(OPEN);
    let mut records = 0;
    loop {
        let proxy = Proxy::start(server.address(), records, Fate::Cut);
        let record = complete(Target::parse(&proxy.address.to_string()).unwrap(), RUN).record;
        let done = record.status == RunStatus::Complete;
        assert!(
            done || may_be(record.error.unwrap().kind, records),
            "cut after {records} records"
        );
        if done && proxy.passed.load(Ordering::SeqCst) <= records {
            break;
        }
        records += 1;
    }
    assert!(records > 16, "the session has more steps than {records}");
    server.serves_still();
    server.server.stop_within(Duration::ZERO);
    let before = Instant::now();
    server.server.join();
    assert!(
        before.elapsed() < Duration::from_secs(1),
        "no session was left behind"
    );
}

#[test]
fn a_client_that_stalls_at_any_step_is_given_up() {
    let short = Timing {
        setup: Duration::from_millis(300),
        message: Duration::from_millis(300),
        drain: Duration::from_millis(300),
        watchdog_slack: Duration::ZERO,
        ..Timing::default()
    };
    let server = serve_with(OPEN, short);
    let text = r#"{"total_bytes":200000,"connect_timeout_ms":1000}"#;
    // Where the server waits for the client's word: in TLS, for HANDSHAKE, for CREATE_STREAMS, for streams.
    for records in [0, 2, 5, 8, 10] {
        let proxy = Proxy::start(server.address(), records, Fate::Hold);
        let stalled = start_run(Target::parse(&proxy.address.to_string()).unwrap(), spec(text));
        let error = server.event(|what| match what {
            AuditEvent::Refused { error, .. } => Some(error),
            AuditEvent::SessionEnded(end) => end.error,
            _ => None,
        });
        assert_eq!(
            error.kind,
            FailureKind::Timeout,
            "held after {records} records: {error}"
        );
        stalled.abort();
        assert_ne!(follow(&stalled).record.status, RunStatus::Complete);
    }
    server.serves_still();
}

#[test]
fn other_protocols_and_noise_are_turned_away() {
    let server = serve(OPEN);
    let noise: Vec<u8> = (0..5000u32)
        .map(|place| (place.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for greeting in [
        &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
        b"SSH-2.0-x\r\n",
        &noise,
        &[0x16, 3, 1, 0xff, 0xff],
    ] {
        let mut socket = TcpStream::connect(server.address()).unwrap();
        socket.write_all(greeting).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        // Whatever comes back, an end comes: a reset counts as one.
        let _ = socket.set_read_timeout(Some(Duration::from_secs(8)));
        let ended = socket.read_to_end(&mut Vec::new());
        let in_time = !ended.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
        assert!(in_time, "{greeting:?} is kept waiting");
        assert_eq!(server.refusal().kind, FailureKind::Protocol);
    }
    server.serves_still();
}

#[test]
fn one_byte_at_a_time_does_not_buy_time() {
    let server = serve_with(
        OPEN,
        Timing {
            setup: Duration::from_millis(500),
            ..Timing::default()
        },
    );
    let mut slow = TcpStream::connect(server.address()).unwrap();
    let before = Instant::now();
    while slow.write_all(&[0x16]).is_ok() && before.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "{:?}",
        before.elapsed()
    );
    server.refusal();
}

#[test]
fn a_lie_about_a_length_is_refused_before_a_byte_of_it() {
    let server = serve(OPEN);
    for header in [[0xff; 4], [0, 0x10, 0, 1], [0; 4]] {
        let mut wire = Wire::connect(server.address());
        wire.hear().unwrap();
        wire.raw(&header);
        let error = wire.hear_error();
        assert_eq!(error["kind"], "protocol");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("allowed: 1 to 1048576")
        );
    }
    server.serves_still();
}

#[test]
fn messages_that_are_none_or_out_of_place_end_the_session_with_the_reason() {
    let server = serve(OPEN);
    for (message, reason) in [
        (json!("PROFILING_START"), "in session state Greeting"),
        (json!("HELLO"), "unknown variant"),
        (json!({"HANDSHAKE": {"version": 1}}), "task"),
        (
            json!({"HANDSHAKE": {"version": 1, "task": {"profile": {"streems": 1}}}}),
            "unknown field `streems`",
        ),
        (
            json!({"HANDSHAKE": {"version": 1, "task": {"profile": {"streams": 70000}}}}),
            "allowed: 1 to 256",
        ),
        (
            json!({"HANDSHAKE": {"version": 1, "task": {"copy": {}}}}),
            "expected `profile`",
        ),
    ] {
        let error = answer(&server, &message);
        assert_eq!(error["kind"], "protocol", "{message}");
        assert!(
            error["message"].as_str().unwrap().contains(reason),
            "{message}: {error}"
        );
    }
    server.serves_still();
}

#[test]
fn another_version_is_refused_by_name() {
    let server = serve(OPEN);
    let error = answer(&server, &handshake(None, VERSIONS.max + 1));
    let line = format!(
        "unsupported protocol version {}; supported: 1 to {}",
        VERSIONS.max + 1,
        VERSIONS.max
    );
    assert_eq!(
        (error["kind"].as_str(), error["message"].as_str()),
        (Some("version"), Some(line.as_str()))
    );
}

#[test]
fn a_ticket_that_does_not_hold_gets_nothing() {
    let server = serve("");
    let other = serve("");
    let mint = |of: &common::TestServer, scope, lifetime_s| {
        let address = server.address().to_string();
        let url = mint_ticket(
            &of.state_dir(),
            &address,
            scope,
            Limits::default(),
            Duration::from_secs(lifetime_s),
        );
        Target::parse(&url.unwrap()).unwrap().ticket.unwrap()
    };
    let strange = mint(&other, Scope::Profile, 60);
    let forged = mint(&server, Scope::Profile, 60).replace("v1.e", "v1.f");
    let files = mint(&server, Scope::Read { root: "/".into() }, 60);
    let expired = mint(&server, Scope::Profile, 1);
    std::thread::sleep(Duration::from_millis(1100));
    for (ticket, line) in [
        (
            None,
            "this server requires a ticket: pass the farline://... line that it printed, or store it with `farline trust`",
        ),
        (Some(strange.as_str()), "the ticket was not issued by this server"),
        (Some(&forged), "the ticket was not issued by this server"),
        (Some("v1.."), "the ticket was not issued by this server"),
        (Some(&expired), "the ticket has expired"),
        (Some(&files), "the ticket is for reading files, not for profiling"),
    ] {
        let error = answer(&server, &handshake(ticket, 1));
        assert_eq!(
            (error["kind"].as_str(), error["message"].as_str()),
            (Some("auth"), Some(line))
        );
        assert_eq!(server.refusal().kind, FailureKind::Auth, "and no session began");
    }
}

#[test]
fn a_ticket_is_not_sent_to_a_server_with_another_key() {
    let (server, thief) = (serve(""), serve(""));
    let address = thief.address().to_string();
    let url = mint_ticket(
        &server.state_dir(),
        &address,
        Scope::Profile,
        Limits::default(),
        Duration::from_secs(60),
    );
    let run = complete(Target::parse(&url.unwrap()).unwrap(), "{}");
    let error = run.record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Auth);
    assert!(
        error.message.contains(&thief.server.fingerprint().to_string()),
        "{error}"
    );
    assert_eq!(thief.refusal().kind, FailureKind::Protocol);

    let unpinned = Target {
        ticket: Some("v1.a.b".into()),
        ..server.target()
    };
    assert_eq!(
        complete(unpinned, "{}").record.error.unwrap().kind,
        FailureKind::Usage
    );
}

#[test]
fn nobody_else_can_open_a_stream() {
    let server = serve(OPEN);
    let mut wire = Wire::connect(server.address());
    wire.hear().unwrap();
    wire.say(&handshake(None, 1));
    wire.hear().unwrap();
    wire.say(&json!("CREATE_STREAMS"));
    let port = wire.hear().unwrap()["CREATE_STREAMS"]["listeners"][0]["port"]
        .as_u64()
        .unwrap();
    let mut stranger = TcpStream::connect(("127.0.0.1", port as u16)).unwrap();
    stranger.write_all(&[b'x'; 64]).unwrap();
    stranger.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    assert!(
        matches!(stranger.read(&mut [0]), Ok(0) | Err(_)),
        "a stranger hears nothing"
    );
    drop(wire);
    assert_eq!(server.session_end().bytes_received, 0);
    server.serves_still();
}

/// Plays a server that says `lines` one after the other, each after it heard something.
fn false_server(lines: Vec<Value>) -> (Target, std::thread::JoinHandle<Option<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let thread = std::thread::spawn(move || {
        let mut wire = Wire::accept(listener.accept().unwrap().0);
        for line in lines {
            wire.say(&line);
            if let Some(heard) = wire.hear().filter(|heard| heard.get("ERROR").is_some()) {
                return Some(heard);
            }
        }
        None
    });
    (target, thread)
}

fn greeting(min: u32, max: u32) -> Value {
    json!({"CTRL_CHAN_EST": {"min_version": min, "max_version": max, "session": "00".repeat(16)}})
}

#[test]
fn a_client_holds_a_server_to_the_protocol() {
    let granted = |spec: Value| json!({"HANDSHAKE": {"spec": spec, "notes": []}});
    let listener = json!({"CREATE_STREAMS": {"listeners": [{"destination": "10.0.0.1", "port": 1}]}});
    for (lines, kind, reason) in [
        (
            vec![greeting(VERSIONS.max + 1, VERSIONS.max + 4)],
            FailureKind::Version,
            "this end supports 1 to ",
        ),
        (
            vec![json!("TPG_DONE")],
            FailureKind::Protocol,
            "in session state Greeting",
        ),
        (
            vec![greeting(1, 1), granted(json!({"seed": 9}))],
            FailureKind::Protocol,
            "changed the requested run",
        ),
        (
            vec![greeting(1, 1), granted(asked()), listener],
            FailureKind::Protocol,
            "listeners",
        ),
    ] {
        let (target, server) = false_server(lines);
        let error = complete(target, "{}").record.error.unwrap();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(reason), "{error}");
        let heard = server.join().unwrap().expect("the server is told why");
        assert_eq!(heard["ERROR"]["kind"], kind.word());
    }
}

fn asked() -> Value {
    serde_json::to_value(spec("{}").resolved().unwrap()).unwrap()
}

#[test]
fn a_refusal_reaches_the_user_tamed() {
    let error = json!({"ERROR": {"kind": "internal", "message": "boom\u{1b}[2J", "retry_after_s": -5.0}});
    let (target, _server) = false_server(vec![error]);
    let failure = complete(target, "{}").record.error.unwrap();
    assert_eq!(
        failure.kind,
        FailureKind::Protocol,
        "the other end's defect is not this end's"
    );
    assert_eq!(failure.message, "the other end failed: boom [2J");
    assert_eq!(failure.retry_after_s, Some(0.0));
}

#[test]
fn a_server_that_never_speaks_costs_the_connect_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let before = Instant::now();
    let record = complete(target, r#"{"connect_timeout_ms":300}"#).record;
    assert_eq!(record.error.unwrap().kind, FailureKind::Timeout);
    assert!(
        before.elapsed() < Duration::from_secs(3),
        "{:?}",
        before.elapsed()
    );
}

#[test]
fn a_server_on_a_bad_folder_or_port_does_not_start() {
    let start = |text: &str| {
        Server::start(farline_spec::from_json(text).unwrap())
            .err()
            .unwrap()
    };
    assert_eq!(start("{}").kind, FailureKind::Spec);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().display().to_string();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let refusal = start(&json!({"listen": ["127.0.0.1"], "port": port, "state_dir": state}).to_string());
    assert_eq!(refusal.kind, FailureKind::System);
    assert!(refusal.message.contains(&port.to_string()), "{refusal}");
    assert_eq!(
        start(&json!({"state_dir": state, "data_port_first": 9, "data_port_last": 1}).to_string()).kind,
        FailureKind::Spec
    );
}

#[test]
fn a_connection_that_ends_before_its_first_byte_is_nobodys_trouble() {
    let server = serve(OPEN);
    drop(TcpStream::connect(server.address()).unwrap());
    server.serves_still();
    server.server.stop();
    server.server.join();
    let mut said = Vec::new();
    server.event(|what| {
        let is_last = matches!(what, AuditEvent::Stopped { .. });
        said.push(what);
        is_last.then_some(())
    });
    assert!(
        !said.iter().any(|what| matches!(what, AuditEvent::Refused { .. })),
        "{said:?}"
    );
}
