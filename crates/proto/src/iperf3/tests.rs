//! Both machines against each other, and documents of real clients.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::arrivals::Arrivals;
use super::client::{self, ClientAction, ClientMachine};
use super::credential::{Credential, Users};
use super::datagram::{Header, REPLY, is_opening, is_reply};
use super::document::{Inbox, frame};
use super::parameters::{Parameters, Protocol};
use super::results::{Results, StreamResult};
use super::server::{self, Allowed, ServerAction, ServerMachine};
use super::word::{ErrorCode, Word};
use super::{COOKIE_BYTES, Cookie, cookie, is_cookie, stream_id};

const NOW: Duration = Duration::ZERO;
const LATE: Duration = Duration::from_secs(100_000);

/// What Debian's iperf3 3.12 sends for `iperf3 -c HOST -u -b 10M -P 2 -l 1400 --bidir -J`.
const OF_3_12: &str = r#"{"udp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":2,"bidirectional":true,"len":1400,"bandwidth":10000000,"pacing_timer":1000,"client_version":"3.12"}"#;

fn allowed() -> Allowed {
    Allowed {
        streams: 128,
        ..Allowed::default()
    }
}

fn any_cookie() -> Cookie {
    cookie(&[7; COOKIE_BYTES - 1])
}

fn parameters(text: &str) -> Result<Parameters, ErrorCode> {
    Parameters::decode(&serde_json::from_str::<Value>(text).unwrap())
}

fn server_actions(machine: &mut ServerMachine) -> Vec<ServerAction> {
    std::iter::from_fn(|| machine.poll_action()).collect()
}

fn sent(actions: &[ServerAction]) -> Vec<u8> {
    let pieces = actions.iter().filter_map(|action| match action {
        ServerAction::Send(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    pieces.collect::<Vec<_>>().concat()
}

fn results() -> Results {
    Results {
        cpu_percent: [1.5, 1.0, 0.5],
        sender_has_retransmits: 1,
        congestion: Some("cubic".into()),
        output: None,
        streams: vec![StreamResult {
            id: 1,
            bytes: u64::MAX / 4,
            retransmits: -1,
            elapsed_s: 1.25,
            ..StreamResult::default()
        }],
    }
}

/// A server that has parameters and was asked for streams.
fn admitted(text: &str) -> ServerMachine {
    let mut machine = ServerMachine::new(allowed());
    machine.handle_bytes(NOW, &frame(&serde_json::from_str(text).unwrap()));
    machine.handle_ready(NOW);
    server_actions(&mut machine);
    machine
}

/// Plays both ends to the end, bytes in pieces of `size`.
fn play(size: usize) -> (ServerMachine, ClientMachine) {
    let wanted = Parameters {
        streams: 2,
        time_s: 1,
        block_bytes: 1000,
        client_version: "3.21".into(),
        ..Parameters::default()
    };
    let (mut server, mut client) = (
        ServerMachine::new(allowed()),
        ClientMachine::new(&any_cookie(), wanted),
    );
    assert_eq!(
        client.poll_action(),
        Some(ClientAction::Send(any_cookie().to_vec()))
    );
    for _ in 0..20 {
        while let Some(action) = server.poll_action() {
            match action {
                ServerAction::Send(bytes) => bytes
                    .chunks(size)
                    .for_each(|piece| client.handle_bytes(NOW, piece)),
                ServerAction::TakeStreams => server.handle_ready(NOW),
                ServerAction::Collect => server.handle_results(NOW, results()),
                ServerAction::Authorise | ServerAction::Run | ServerAction::Close => {}
            }
        }
        while let Some(action) = client.poll_action() {
            match action {
                ClientAction::Send(bytes) => bytes
                    .chunks(size)
                    .for_each(|piece| server.handle_bytes(NOW, piece)),
                ClientAction::OpenStreams => server.handle_streams_open(NOW),
                ClientAction::Run => client.handle_enough(NOW),
                ClientAction::Collect => client.handle_results(NOW, results()),
                ClientAction::Close => {}
            }
        }
    }
    (server, client)
}

#[test]
fn both_ends_get_each_others_results_however_bytes_are_cut() {
    for size in [1, 3, 10_000] {
        let (server, client) = play(size);
        assert_eq!(server.ending(), Some(server::Ending::Complete));
        assert_eq!(client.ending(), Some(client::Ending::Complete));
        assert_eq!(server.client_results(), Some(&results()));
        assert_eq!(client.server_results(), Some(&results()));
    }
}

#[test]
fn parameters_of_a_real_client_are_read() {
    let wanted = parameters(OF_3_12).unwrap();
    assert_eq!(
        (wanted.protocol, wanted.streams, wanted.block_bytes),
        (Protocol::Udp, 2, 1400)
    );
    assert_eq!((wanted.forward(), wanted.backward(), wanted.total()), (2, 2, 4));
    assert_eq!(
        (wanted.rate_bps, wanted.total_rate_bps()),
        (10_000_000, 40_000_000)
    );
    assert_eq!(wanted.version(), (3, 12));
    assert_eq!(Parameters::decode(&wanted.encode()).unwrap(), wanted);
}

#[test]
fn numbers_are_read_as_iperf3_reads_them() {
    let of = |text: &str| parameters(text).unwrap();
    assert_eq!(of(r#"{"num":1.5e3,"bandwidth":1e30,"time":-4}"#).bytes, 1500);
    assert_eq!(of(r#"{"bandwidth":1e30}"#).rate_bps, u64::MAX);
    assert_eq!(of(r#"{"time":-4,"num":"7"}"#).time_s, 0);
    assert_eq!(of(r#"{"server_affinity":-1}"#).server_cpu, None);
    assert_eq!(of("{}").block_bytes, 128 * 1024);
    assert_eq!(of(r#"{"client_version":"3.21+ (cJSON 1.7)"}"#).version(), (3, 21));
}

#[test]
fn what_no_test_may_ask_for_is_refused_by_its_number() {
    for (text, code) in [
        (r#"{"sctp":true}"#, ErrorCode::SCTP),
        (r#"{"parallel":129}"#, ErrorCode::STREAMS),
        (r#"{"parallel":1e99}"#, ErrorCode::STREAMS),
        (r#"{"len":1048577}"#, ErrorCode::BLOCK),
        (r#"{"udp":true,"len":65508}"#, ErrorCode::DATAGRAM),
        (r#"{"udp":true,"len":15}"#, ErrorCode::DATAGRAM),
        (r#"{"window":1e9}"#, ErrorCode::BUFFER),
        (r#"{"MSS":32768}"#, ErrorCode::MSS),
        (r#"{"time":86401}"#, ErrorCode::DURATION),
        (r#"{"omit":601}"#, ErrorCode::OMIT),
        (r#"{"burst":1001}"#, ErrorCode::BURST),
        (r#"{"TOS":256}"#, ErrorCode::TOS),
        (r#"{"server_affinity":70000}"#, ErrorCode::AFFINITY),
        (r#"{"reverse":true,"bidirectional":true}"#, ErrorCode::DIRECTION),
        (r#"{"congestion":"cubic; rm"}"#, ErrorCode::CONGESTION),
        (r#"{"congestion":"sixteen_letters_"}"#, ErrorCode::CONGESTION),
    ] {
        assert_eq!(parameters(text), Err(code), "{text}");
    }
}

#[test]
fn what_is_above_the_servers_limits_is_refused_before_a_stream_is_opened() {
    let strict = Allowed {
        streams: 4,
        rate_bps: Some(1_000_000),
        duration: Some(Duration::from_secs(10)),
        bytes: Some(1000),
        needs_token: false,
    };
    for (text, code) in [
        (
            r#"{"parallel":3,"bidirectional":true,"time":1}"#,
            ErrorCode::STREAMS,
        ),
        (r#"{"time":9,"omit":2}"#, ErrorCode::DURATION),
        (
            r#"{"time":9,"omit":2,"client_version":"3.20"}"#,
            ErrorCode::DURATION_LIMIT,
        ),
        (r#"{"time":0}"#, ErrorCode::DURATION),
        (r#"{"time":1,"bandwidth":500001,"parallel":2}"#, ErrorCode::RATE),
        (r#"{"time":1,"fqrate":1000001}"#, ErrorCode::RATE),
        (r#"{"num":1001}"#, ErrorCode::DURATION),
    ] {
        let mut machine = ServerMachine::new(strict);
        machine.handle_bytes(NOW, &frame(&serde_json::from_str(text).unwrap()));
        assert_eq!(machine.ending(), Some(server::Ending::Refused(code)), "{text}");
        let said = sent(&server_actions(&mut machine));
        let expected = [
            &[Word::ParamExchange.byte(), Word::ServerError.byte()],
            &code.0.to_be_bytes()[..],
            &[0; 4],
        ]
        .concat();
        assert_eq!(said, expected, "{text}");
    }
}

#[test]
fn a_server_that_asks_for_a_name_refuses_who_gives_none_or_a_wrong_one() {
    let guarded = Allowed {
        needs_token: true,
        ..allowed()
    };
    for (text, answer) in [
        (r#"{"time":1}"#, None),
        (r#"{"time":1,"authtoken":"AAAA"}"#, Some(false)),
        (r#"{"time":1,"authtoken":"AAAA"}"#, Some(true)),
    ] {
        let mut machine = ServerMachine::new(guarded);
        machine.handle_bytes(NOW, &frame(&serde_json::from_str(text).unwrap()));
        let asked = server_actions(&mut machine).contains(&ServerAction::Authorise);
        assert_eq!(asked, answer.is_some());
        answer
            .into_iter()
            .for_each(|is_right| machine.handle_authorised(NOW, is_right));
        let refused = machine.ending() == Some(server::Ending::Refused(ErrorCode::AUTHORISATION));
        assert_eq!(refused, answer != Some(true));
    }
}

#[test]
fn every_state_of_a_server_ends_by_itself() {
    let begun = || ServerMachine::new(allowed());
    let running = |text| {
        let mut machine = admitted(text);
        machine.handle_streams_open(NOW);
        machine
    };
    let mut ending = running(r#"{"time":1}"#);
    ending.handle_bytes(NOW, &[Word::TestEnd.byte()]);
    for (mut machine, expected) in [
        (begun(), server::Ending::Failed(ErrorCode::PARAMETERS)),
        (
            admitted(r#"{"time":1}"#),
            server::Ending::Failed(ErrorCode::ACCEPT),
        ),
        (running(r#"{"time":1}"#), server::Ending::ServerStopped),
        (
            running(r#"{"time":1,"client_version":"3.21"}"#),
            server::Ending::Failed(ErrorCode::EXPIRED),
        ),
        (ending, server::Ending::Failed(ErrorCode::RESULTS)),
    ] {
        machine.handle_timeout(LATE);
        assert_eq!(machine.ending(), Some(expected));
        assert_eq!(server_actions(&mut machine).last(), Some(&ServerAction::Close));
        assert_eq!(machine.poll_timeout(), None);
    }
}

#[test]
fn a_test_of_bytes_ends_with_the_servers_limit_of_time() {
    let limited = Allowed {
        duration: Some(Duration::from_secs(60)),
        ..allowed()
    };
    let mut machine = ServerMachine::new(limited);
    machine.handle_bytes(NOW, &frame(&json!({"num": 1_000_000, "time": 0})));
    machine.handle_ready(NOW);
    machine.handle_streams_open(NOW);
    assert!(machine.is_running());
    assert_eq!(machine.poll_timeout(), Some(Duration::from_secs(80)));
}

#[test]
fn a_client_that_floods_or_lies_is_dropped() {
    for bytes in [
        vec![0xff; 9000],
        b"\0\0\0\x02[]".to_vec(),
        b"\0\0\0\0".to_vec(),
        b"\0\0\0\x05{\"a\":".to_vec(),
    ] {
        let mut machine = ServerMachine::new(allowed());
        machine.handle_bytes(NOW, &bytes);
        assert!(
            matches!(
                machine.ending(),
                Some(
                    server::Ending::Refused(ErrorCode::PARAMETERS)
                        | server::Ending::Failed(ErrorCode::PARAMETERS)
                )
            ),
            "{bytes:?}"
        );
    }
    let mut machine = admitted(r#"{"time":1}"#);
    machine.handle_bytes(NOW, &[0; 65]);
    assert_eq!(machine.ending(), Some(server::Ending::Failed(ErrorCode::WORD)));
}

#[test]
fn a_client_may_leave_at_any_time() {
    let mut machine = admitted(r#"{"time":1}"#);
    machine.handle_streams_open(NOW);
    machine.handle_bytes(NOW, &[Word::ClientTerminate.byte()]);
    assert_eq!(machine.ending(), Some(server::Ending::ClientStopped));
    let mut machine = admitted(r#"{"time":1}"#);
    machine.handle_closed();
    assert_eq!(machine.ending(), Some(server::Ending::ClientGone));
}

#[test]
fn a_client_hears_why_it_was_refused() {
    for (said, ending) in [
        (vec![Word::AccessDenied.byte()], client::Ending::Busy),
        (vec![Word::ServerTerminate.byte()], client::Ending::ServerStopped),
        (
            vec![Word::ServerError.byte(), 0, 0, 0, 142, 0, 0, 0, 13],
            client::Ending::ServerError(ErrorCode::AUTHORISATION, 13),
        ),
        (vec![99], client::Ending::Unexpected),
    ] {
        let mut machine = ClientMachine::new(&any_cookie(), Parameters::default());
        said.iter().for_each(|byte| machine.handle_bytes(NOW, &[*byte]));
        assert_eq!(machine.ending(), Some(ending));
    }
    let mut machine = ClientMachine::new(&any_cookie(), Parameters::default());
    machine.handle_timeout(LATE);
    assert_eq!(machine.ending(), Some(client::Ending::Silent));
}

#[test]
fn words_keep_their_bytes() {
    for byte in 0..=255 {
        assert!(Word::of(byte).is_none_or(|word| word.byte() == byte));
    }
    assert_eq!(
        (Word::AccessDenied.byte(), Word::ServerError.byte()),
        (0xff, 0xfe)
    );
}

#[test]
fn cookies_are_told_from_other_beginnings() {
    assert!(is_cookie(&any_cookie()));
    assert!(!is_cookie(&[b'a'; COOKIE_BYTES]));
    let mut request = [0; COOKIE_BYTES];
    request[..16].copy_from_slice(b"GET / HTTP/1.1\r\n");
    assert!(!is_cookie(&request));
}

#[test]
fn streams_have_the_numbers_that_iperf3_gives_them() {
    assert_eq!((0..4).map(stream_id).collect::<Vec<_>>(), [1, 3, 4, 5]);
}

#[test]
fn openings_of_all_versions_are_known() {
    assert!(is_opening(b"9876") && is_opening(&[0x15, 0xcd, 0x5b, 0x07]) && !is_opening(b"98765"));
    assert!(is_reply(&REPLY) && is_reply(&[0xb1, 0x68, 0xde, 0x3a]) && !is_reply(b"9876"));
}

#[test]
fn a_gap_is_a_loss_until_what_is_missing_comes() {
    let mut arrivals = Arrivals::default();
    for number in [1, 2, 5, 4, 6] {
        arrivals.observe(Header { sent_us: 0, number }, 0);
    }
    assert_eq!(
        (arrivals.packets, arrivals.errors, arrivals.out_of_order),
        (6, 1, 1)
    );
    arrivals.observe(
        Header {
            sent_us: 0,
            number: u64::MAX,
        },
        0,
    );
    assert_eq!(arrivals.packets, 6, "such a number was never sent");
}

#[test]
fn jitter_follows_the_difference_of_transit_times() {
    let mut arrivals = Arrivals::default();
    for number in 1..2000 {
        arrivals.observe(
            Header {
                sent_us: number * 100,
                number,
            },
            number * 100 + (number % 2) * 8,
        );
    }
    assert!((7.9..8.1).contains(&arrivals.jitter_us), "{}", arrivals.jitter_us);
}

#[test]
fn a_users_password_is_known_by_its_salted_hash() {
    // printf '{mario}rossi' | sha256sum
    let users = Users::parse(
        "# users\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\nno comma\n",
    );
    let credential = |password: &str| {
        Credential::parse(format!("user: mario\npwd:  {password}\nts:   1000").as_bytes()).unwrap()
    };
    assert!(users.contain(&credential("rossi")));
    assert!(!users.contain(&credential("verdi")));
    assert!(!Users::parse("").contain(&credential("rossi")));
    assert!(credential("x").is_recent(1010, 10) && !credential("x").is_recent(1011, 10));
    assert!(!format!("{:?}", credential("secret")).contains("secret"));
    for broken in [
        "",
        "user: \npwd:  a\nts:   1",
        "user: a\npwd:  b\nts:   x",
        "user: a\npwd:  b",
    ] {
        assert_eq!(Credential::parse(broken.as_bytes()), None, "{broken:?}");
    }
}

proptest! {
    #[test]
    fn headers_come_back_as_they_went(sent_us in 0u64..4_000_000_000_000_000, number in any::<u64>(), is_wide in any::<bool>()) {
        let number = if is_wide { number } else { number & 0xffff_ffff };
        let header = Header { sent_us, number };
        let mut datagram = [0; 16];
        header.write(&mut datagram, is_wide);
        prop_assert_eq!(Header::read(&datagram, is_wide), Some(header));
        prop_assert_eq!(Header::read(&datagram[..11], is_wide), None);
    }

    #[test]
    fn documents_come_out_whole_or_not_at_all(text in "[a-z]{0,40}", cut in 0usize..60) {
        let bytes = frame(&json!({"title": text}));
        let mut inbox = Inbox::default();
        let cut = cut.min(bytes.len());
        prop_assert!(inbox.push(&bytes[..cut], 1000));
        let first = inbox.document(1000, ErrorCode::PARAMETERS).unwrap();
        prop_assert_eq!(first.is_some(), cut == bytes.len());
        prop_assert!(inbox.push(&bytes[cut..], 1000));
        let document = first.or_else(|| inbox.document(1000, ErrorCode::PARAMETERS).unwrap());
        prop_assert_eq!(document, Some(json!({"title": text})));
    }

    #[test]
    fn results_come_back_as_they_went(bytes in 0u64..1 << 53, retransmits in -1i64..1000, jitter_s in 0.0f64..10.0, id in 1i64..200) {
        let stream = StreamResult { id, bytes, retransmits, jitter_s, ..StreamResult::default() };
        let results = Results { streams: vec![stream; 3], ..results() };
        prop_assert_eq!(Results::decode(&results.encode()).unwrap(), results);
    }
}
