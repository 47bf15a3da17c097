//! Runs that follow each other on one control connection.

mod common;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{TestServer, follow, serve, serve_with, spec};
use farline_session::machine::Timing;
use farline_session::message::VersionRange;
use farline_session::{
    AuditEvent, ConnectionKeeper, Local, Target, list_tickets, mint_ticket, revoke_ticket, start_run_with,
};
use farline_spec::{FailureKind, RunRecord, RunStatus, Scope, from_json};

const OPEN: &str = r#","anonymous":true"#;
const RUN: &str = r#"{"transport":"tcp","total_bytes":30000}"#;

fn run(target: Target, text: &str, keeper: &ConnectionKeeper) -> RunRecord {
    let local = Local {
        keeper: Some(keeper.clone()),
        ..Local::default()
    };
    follow(&start_run_with(target, spec(text), local)).record
}

fn complete(server: &TestServer, keeper: &ConnectionKeeper) {
    let record = run(server.target(), RUN, keeper);
    assert_eq!((record.status, &record.error), (RunStatus::Complete, &None));
}

/// Where the client of the next session comes from, and the session's name. A refusal is a failure.
fn session(server: &TestServer) -> (SocketAddr, String) {
    server.event(|what| match what {
        AuditEvent::SessionStarted(start) => Some((start.peer, start.session.to_string())),
        AuditEvent::Refused { error, .. } => panic!("refused: {error}"),
        _ => None,
    })
}

#[test]
fn runs_follow_each_other_on_one_connection_under_names_of_their_own() {
    let (server, keeper) = (
        serve(r#","anonymous":true,"anonymous_limits":{}"#),
        ConnectionKeeper::default(),
    );
    let texts = [
        RUN,
        r#"{"transport":"null","duration_s":0.05}"#,
        r#"{"transport":"tcp","direction":"reverse","streams":3,"duration_s":0.1}"#,
        r#"{"transport":"udp","duration_s":0.1,"rate_bps":20000000}"#,
        r#"{"transport":"quic","duration_s":0.1}"#,
    ];
    for text in texts {
        let record = run(server.target(), text, &keeper);
        assert_eq!(
            (record.status, &record.error),
            (RunStatus::Complete, &None),
            "{text}"
        );
    }
    let (peers, names): (BTreeSet<_>, BTreeSet<_>) = texts.iter().map(|_| session(&server)).unzip();
    assert_eq!((peers.len(), names.len()), (1, texts.len()), "{peers:?}");
}

#[test]
fn a_connection_that_the_server_gave_up_is_made_anew() {
    let short = Timing {
        kept: Duration::from_millis(100),
        ..Timing::default()
    };
    let (server, keeper) = (serve_with(OPEN, short), ConnectionKeeper::default());
    complete(&server, &keeper);
    sleep(Duration::from_millis(600));
    complete(&server, &keeper);
    assert_ne!(session(&server).0, session(&server).0);
}

#[test]
fn whoever_keeps_a_connection_keeps_nobody_out_and_is_no_trouble() {
    let server = serve(r#","anonymous":true,"max_sessions":1"#);
    let keepers: Vec<_> = (0..20).map(|_| ConnectionKeeper::default()).collect();
    let mut peers = Vec::new();
    for _ in 0..2 {
        for keeper in &keepers {
            complete(&server, keeper);
            peers.push(session(&server).0);
            // The client has ended before the server has: the next would meet a session that still runs.
            server.session_end();
        }
    }
    drop(keepers);
    sleep(Duration::from_millis(300));
    server.serves_still();
    assert_eq!(peers[..16], peers[20..36], "sixteen are kept");
    assert!(
        peers[36..40].iter().all(|peer| !peers[..20].contains(peer)),
        "the others connect again"
    );
}

#[test]
fn a_server_that_stops_waits_for_no_kept_connection() {
    let (server, keeper) = (serve(OPEN), ConnectionKeeper::default());
    complete(&server, &keeper);
    let began = Instant::now();
    server.server.stop();
    server.server.join();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let record = run(server.target(), RUN, &keeper);
    assert_eq!(record.error.unwrap().kind, FailureKind::Unreachable);
}

#[test]
fn a_ticket_is_judged_anew_for_each_run() {
    let (server, keeper) = (serve(""), ConnectionKeeper::default());
    let ticket = mint_ticket(
        &server.state_dir(),
        &server.address().to_string(),
        Scope::Profile,
        from_json("{}").unwrap(),
        Duration::from_secs(60),
    )
    .unwrap();
    let target = Target::parse(&ticket).unwrap();
    let first = run(target.clone(), RUN, &keeper);
    assert_eq!((first.status, &first.error), (RunStatus::Complete, &None));
    let known = list_tickets(&server.state_dir()).unwrap();
    revoke_ticket(&server.state_dir(), &known[0].claims).unwrap();
    let second = run(target, RUN, &keeper);
    assert_eq!(second.error.unwrap().kind, FailureKind::Auth);
}

#[test]
fn an_older_version_ends_with_its_run() {
    let (server, keeper) = (serve(OPEN), ConnectionKeeper::default());
    for _ in 0..2 {
        let local = Local {
            keeper: Some(keeper.clone()),
            versions: VersionRange { min: 1, max: 5 },
            ..Local::default()
        };
        let record = follow(&start_run_with(server.target(), spec(RUN), local)).record;
        assert_eq!(record.error, None);
    }
    assert_ne!(session(&server).0, session(&server).0);
}
