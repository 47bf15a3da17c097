//! Whoever may be at the other end of iperf3's control connection, and what comes as its datagrams.

use std::time::Duration;

use crate::iperf3::arrivals::Arrivals;
use crate::iperf3::client::{ClientAction, ClientMachine};
use crate::iperf3::credential::{Credential, Users};
use crate::iperf3::datagram::Header;
use crate::iperf3::document::{MAX_PARAMETERS, frame};
use crate::iperf3::parameters::Parameters;
use crate::iperf3::results::{Results, StreamResult};
use crate::iperf3::server::{Allowed, ServerAction, ServerMachine};
use crate::iperf3::word::{ErrorCode, Word};
use crate::iperf3::{COOKIE_BYTES, cookie};

/// Actions in a row that a machine may ask for without any input.
const MOST_ACTIONS: usize = 16;
/// Longer than any deadline.
const FAR: Duration = Duration::from_secs(1_000_000);

/// Bytes as documents: whatever is accepted is within its ranges and comes back as it went.
pub fn iperf3_documents(data: &[u8]) {
    if let Ok(document) = serde_json::from_slice(data) {
        if let Ok(wanted) = Parameters::decode(&document) {
            assert!((1..=128).contains(&wanted.streams) && wanted.block_bytes > 0 && wanted.total() <= 256);
            assert!(wanted.client_version.len() <= 128);
            let _ = wanted.total_rate_bps();
            assert_eq!(Parameters::decode(&wanted.encode()), Ok(wanted));
        }
        if let Ok(results) = Results::decode(&document) {
            assert!(results.streams.len() <= 256);
            assert!(
                results
                    .streams
                    .iter()
                    .all(|stream| stream.elapsed_s >= 0.0 && stream.jitter_s.is_finite())
            );
            assert!(Results::decode(&results.encode()).is_ok());
        }
    }
    if let Some(credential) = Credential::parse(data) {
        assert_eq!(Credential::parse(credential.text().as_bytes()), Some(credential));
    }
    Users::parse(&String::from_utf8_lossy(data));
    let mut arrivals = Arrivals::default();
    for (index, datagram) in data.chunks(16).enumerate() {
        if let Some(header) = Header::read(datagram, index % 2 == 0) {
            arrivals.observe(header, index as u64 * 1000);
            assert!(arrivals.errors <= arrivals.packets && arrivals.jitter_us >= 0.0);
        }
    }
}

/// A server's and a client's machine with bytes made up, events at the wrong moment and time in leaps: both end, and neither
/// asks for more than a few things at once.
pub fn iperf3_machines(data: &[u8]) {
    let Some((&form, mut data)) = data.split_first() else {
        return;
    };
    let allowed = Allowed {
        streams: usize::from(form),
        rate_bps: (form % 3 == 0).then_some(1_000_000_000),
        duration: (form % 5 != 0).then_some(Duration::from_secs(60)),
        bytes: (form % 7 == 0).then_some(1 << 30),
        needs_token: form % 11 == 0,
    };
    let mut server = ServerMachine::new(allowed);
    let wanted = Parameters {
        streams: 1,
        time_s: 1,
        ..Parameters::default()
    };
    let mut client = ClientMachine::new(&cookie(&[form; COOKIE_BYTES - 1]), wanted);
    let mut now = Duration::ZERO;
    while let [operation, length, rest @ ..] = data {
        let (bytes, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        now += Duration::from_millis(u64::from(*length));
        let bytes = made_up(*operation, bytes);
        play_server(&mut server, *operation, now, &bytes);
        play_client(&mut client, *operation, now, &bytes);
        data = rest;
    }
    // Every wait begins anew with what is done last.
    for far in (1..9).map(|step| FAR * step) {
        server.handle_timeout(far);
        client.handle_enough(far);
        client.handle_results(far, results());
        drain(&mut server, &mut client);
    }
    client.handle_timeout(FAR * 9);
    drain(&mut server, &mut client);
    if allowed.duration.is_some() {
        assert!(server.ending().is_some() && server.poll_timeout().is_none());
    }
    assert!(client.ending().is_some() && client.poll_timeout().is_none());
}

/// Bytes as they are, or what one end might send.
fn made_up(operation: u8, bytes: &[u8]) -> Vec<u8> {
    match operation / 16 {
        0 => frame(
            &Parameters {
                streams: 2,
                time_s: 3,
                ..Parameters::default()
            }
            .encode(),
        ),
        1 => frame(&results().encode()),
        2 => vec![Word::TestEnd.byte()],
        3 => [
            Word::ParamExchange,
            Word::CreateStreams,
            Word::TestStart,
            Word::TestRunning,
        ]
        .map(Word::byte)
        .into(),
        4 => [Word::ExchangeResults.byte()]
            .into_iter()
            .chain(frame(&results().encode()))
            .collect(),
        5 => vec![bytes.first().copied().unwrap_or(0)],
        6 => vec![b'x'; MAX_PARAMETERS + 100],
        _ => bytes.to_vec(),
    }
}

fn results() -> Results {
    Results {
        streams: vec![StreamResult {
            id: 1,
            ..StreamResult::default()
        }],
        ..Results::default()
    }
}

fn play_server(server: &mut ServerMachine, operation: u8, now: Duration, bytes: &[u8]) {
    match operation % 16 {
        0 => server.handle_closed(),
        1 => server.handle_ready(now),
        2 => server.handle_streams_open(now),
        3 => server.handle_results(now, results()),
        4 => server.handle_authorised(now, bytes.len() % 2 == 0),
        5 => server.handle_failure(ErrorCode::STREAM),
        6 => server.handle_timeout(now),
        7 if bytes.len() > 200 => server.handle_stop(),
        _ => server.handle_bytes(now, bytes),
    }
    for count in 0.. {
        let Some(action) = server.poll_action() else { break };
        assert!(count < MOST_ACTIONS);
        match action {
            ServerAction::TakeStreams if operation >= 128 => server.handle_ready(now),
            ServerAction::Collect if operation >= 128 => server.handle_results(now, results()),
            _ => {}
        }
    }
}

fn play_client(client: &mut ClientMachine, operation: u8, now: Duration, bytes: &[u8]) {
    match operation % 16 {
        0 => client.handle_closed(),
        1 => client.handle_streams_open(now),
        2 => client.handle_enough(now),
        3 => client.handle_results(now, results()),
        4 if bytes.len() > 200 => client.handle_stop(),
        6 => client.handle_timeout(now),
        _ => client.handle_bytes(now, bytes),
    }
    for count in 0.. {
        let Some(action) = client.poll_action() else { break };
        assert!(count < MOST_ACTIONS);
        if action == ClientAction::Collect && operation >= 128 {
            client.handle_results(now, results());
        }
    }
}

fn drain(server: &mut ServerMachine, client: &mut ClientMachine) {
    while server.poll_action().is_some() {}
    while client.poll_action().is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn documents_of_any_bytes(data in prop::collection::vec(any::<u8>(), 0..300)) {
            iperf3_documents(&data);
        }

        #[test]
        fn documents_of_almost_right_text(name in "(time|num|len|parallel|bandwidth|TOS|udp|omit|congestion|id|streams)", value in "(true|-?[0-9]{1,25}|[0-9]e[0-9]{1,3}|\"[a-z]{0,20}\"|\\[\\]|null)") {
            iperf3_documents(format!("{{\"{name}\":{value}}}").as_bytes());
        }

        #[test]
        fn machines_of_any_operations(data in prop::collection::vec(any::<u8>(), 0..400)) {
            iperf3_machines(&data);
        }
    }
}
