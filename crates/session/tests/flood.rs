//! Many connections that come to nothing: whoever means well is served all the same.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use common::{serve_with, spec};
use farline_session::machine::Timing;
use farline_session::{AuditEvent, Interrupt, NamesClient, Target, mint_ticket, start_run};
use farline_spec::{FailureKind, IpVersion, Limits, Scope};

const OPEN: &str = r#","anonymous":true"#;
const RUN: &str = r#"{"total_bytes":200000,"interval_s":0.05}"#;

/// A connection from 127.0.0.`host` that begins with `said`.
fn stranger(server: &common::TestServer, host: u8, said: &[u8]) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let source = SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0));
    socket.bind(&source.into()).unwrap();
    socket.connect(&server.address().into()).unwrap();
    let mut socket = TcpStream::from(socket);
    socket.write_all(said).unwrap();
    socket
}

/// The first message of a TLS client that never says another.
fn greeting() -> Vec<u8> {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Target::parse(&silent.local_addr().unwrap().to_string()).unwrap();
    let client = start_run(target, spec(RUN));
    let (mut socket, _) = silent.accept().unwrap();
    let mut record = vec![0; 5];
    socket.read_exact(&mut record).unwrap();
    record.resize(5 + usize::from(u16::from_be_bytes([record[3], record[4]])), 0);
    socket.read_exact(&mut record[5..]).unwrap();
    client.abort();
    record
}

const PATIENT: Timing = Timing {
    greeting: Duration::from_secs(60),
    setup: Duration::from_secs(60),
    kept: Duration::from_secs(30),
    message: Duration::from_secs(30),
    own: Duration::from_secs(60),
    drain: Duration::from_secs(10),
    stop: Duration::from_secs(10),
    request: Duration::from_secs(60),
    grace: Duration::from_secs(1),
    watchdog_slack: Duration::from_secs(10),
};

#[test]
fn silent_connections_keep_nobody_out_whatever_they_began_with() {
    // Nobody is given up for being late: whoever gets in does so although all that came before are still there.
    let greeting = greeting();
    let stream = [&b"farline\x01"[..], &[7; 30]].concat();
    for said in [
        &b""[..],
        &[0x16],
        &greeting[..greeting.len() - 1],
        &greeting,
        &stream,
    ] {
        for one_port in ["", r#","single_port":true"#] {
            let server = serve_with(&format!("{OPEN}{one_port}"), PATIENT);
            let _flood: Vec<_> = (0..200).map(|_| stranger(&server, 2, said)).collect();
            let _slow: Vec<_> = (0..40).map(|_| stranger(&server, 3, &[0x16])).collect();
            server.serves_still();
        }
    }
}

#[test]
fn a_client_of_the_address_that_floods_is_served_too() {
    let server = serve_with(OPEN, PATIENT);
    let _flood: Vec<_> = (0..200).map(|_| stranger(&server, 1, b"")).collect();
    server.serves_still();
}

#[test]
fn the_silent_are_given_up_soon_and_told_of_as_one_line() {
    let server = serve_with(
        OPEN,
        Timing {
            greeting: Duration::from_millis(100),
            ..Timing::default()
        },
    );
    let flood: Vec<_> = (0..100).map(|_| stranger(&server, 2, b"\x16")).collect();
    for mut silent in flood {
        assert!(matches!(silent.read(&mut [0]), Ok(0) | Err(_)));
    }
    server.server.stop_within(Duration::ZERO);
    let (mut one_by_one, mut summed) = (0, 0);
    loop {
        match server.server.poll_event(common::PATIENCE).unwrap().what {
            AuditEvent::Refused { error, .. } => {
                assert_eq!(error.kind, FailureKind::Timeout);
                one_by_one += 1;
            }
            AuditEvent::RefusedMany(summary) => {
                assert_eq!(summary.from, "127.0.0.2");
                summed += summary.connections;
            }
            AuditEvent::Stopped { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((one_by_one, summed), (10, 90));
}

#[test]
fn who_asks_about_names_tries_again_where_the_server_had_no_place() {
    let server = serve_with("", Timing::default());
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = door.local_addr().unwrap().to_string();
    let scope = Scope::Read {
        root: server.folder.path().display().to_string(),
    };
    let lifetime = Duration::from_secs(60);
    let url = mint_ticket(&server.state_dir(), &at, scope, Limits::default(), lifetime).unwrap();
    let there = server.address();
    let full = std::thread::spawn(move || {
        // It has no place twice; then it has one.
        (0..2).for_each(|_| drop(door.accept().unwrap()));
        let (client, _) = door.accept().unwrap();
        let server = TcpStream::connect(there).unwrap();
        let (mut to, mut from) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        let _ = std::io::copy(&mut &client, &mut &server);
    });
    let interrupt = Interrupt::new().unwrap();
    let target = Target::parse(&url).unwrap();
    let session = NamesClient::open(&target, IpVersion::Any, common::PATIENCE, interrupt).unwrap();
    session.close();
    full.join().unwrap();
}
