//! What both ends measured, in each other's words.

use farline_proto::iperf3::client::Ending;
use farline_proto::iperf3::parameters::Parameters;
use farline_proto::iperf3::results::{Results, StreamResult};
use farline_proto::iperf3::stream_id;
use farline_proto::iperf3::word::ErrorCode;
use farline_session::message::profile::ServerProfile;
use farline_session::run::RunOutcome;
use farline_spec::{CpuUse, EndReport, Failure, FailureKind, Granted, StreamRecord};

/// Our end's number in records, and the server's.
const SERVER: u8 = 1;
const SENDS: u8 = 0;
const RECEIVES: u8 = 1;

/// What the server is told of this end's measurement.
pub fn own_results(outcome: &RunOutcome, wanted: &Parameters) -> Results {
    let percent = |seconds: f64| seconds * 100.0 / outcome.cpu.wall_s.max(1e-9);
    let (user, system) = (percent(outcome.cpu.user_s), percent(outcome.cpu.system_s));
    let congestion = outcome
        .streams
        .first()
        .and_then(|stream| stream.granted.congestion_control.clone());
    let sends_tcp = wanted.forward() > 0 && !wanted.is_udp();
    Results {
        cpu_percent: [user + system, user, system],
        sender_has_retransmits: if wanted.forward() > 0 {
            i64::from(sends_tcp)
        } else {
            -1
        },
        congestion,
        output: None,
        streams: outcome
            .streams
            .iter()
            .map(|stream| own_stream(stream, sends_tcp))
            .collect(),
    }
}

fn own_stream(stream: &StreamRecord, sends_tcp: bool) -> StreamResult {
    let is_sender = stream.role == SENDS;
    let retransmits = i64::try_from(stream.retransmits).unwrap_or(i64::MAX);
    StreamResult {
        id: stream_id(stream.stream as usize),
        bytes: stream.bytes,
        retransmits: if is_sender && sends_tcp { retransmits } else { -1 },
        jitter_s: stream.jitter_ns as f64 / 1e9,
        errors: stream.lost_packets,
        // A receiver says how many were sent.
        packets: stream.packets + if is_sender { 0 } else { stream.lost_packets },
        elapsed_s: stream.elapsed_us as f64 / 1e6,
        ..StreamResult::default()
    }
}

/// The server's part of the record. It tells its CPU time and its counts; its host and versions stay unknown.
pub fn server_part(results: &Results, wanted: &Parameters) -> ServerProfile {
    let wall_s = results.streams.first().map_or(0.0, |stream| stream.elapsed_s);
    let seconds = |percent: f64| (percent.max(0.0) / 100.0) * wall_s;
    let cpu = CpuUse {
        user_s: seconds(results.cpu_percent[1]),
        system_s: seconds(results.cpu_percent[2]),
        wall_s,
        steal_s: 0.0,
    };
    let streams = (0..wanted.total()).filter_map(|index| server_stream(index, results, wanted));
    ServerProfile {
        report: EndReport {
            cpu,
            ..EndReport::default()
        },
        streams: streams.collect(),
        ..ServerProfile::default()
    }
}

fn server_stream(index: usize, results: &Results, wanted: &Parameters) -> Option<StreamRecord> {
    let found = results
        .streams
        .iter()
        .find(|stream| stream.id == stream_id(index))?;
    let receives = index < wanted.forward();
    let (packets, lost) = (
        found.packets.saturating_sub(found.omitted_packets),
        found.errors.saturating_sub(found.omitted_errors),
    );
    Some(StreamRecord {
        stream: u32::try_from(index).ok()?,
        end: SERVER,
        role: if receives { RECEIVES } else { SENDS },
        bytes: found.bytes,
        elapsed_us: (found.elapsed_s * 1e6) as u64,
        packets: if receives {
            packets.saturating_sub(lost)
        } else {
            packets
        },
        lost_packets: if receives { lost } else { 0 },
        jitter_ns: if receives {
            (found.jitter_s.max(0.0) * 1e9) as u64
        } else {
            0
        },
        retransmits: u64::try_from(found.retransmits).unwrap_or(0),
        granted: Granted {
            congestion_control: results.congestion.clone(),
            ..Granted::default()
        },
        ..StreamRecord::default()
    })
}

/// Why a session did not come to its end; `None` if it did.
pub fn failure_of(ending: Ending, server: &str) -> Option<Failure> {
    let failure = |kind: FailureKind, line: String| Some(Failure::new(kind, format!("{server}: {line}")));
    match ending {
        Ending::Complete => None,
        Ending::Busy => failure(
            FailureKind::Busy,
            "the iperf3 server is running another test; try again, or run farline serve --iperf3 there, which runs several".into(),
        ),
        Ending::ServerStopped => failure(FailureKind::Protocol, "the iperf3 server ended the test before its time".into()),
        Ending::ServerGone => failure(
            FailureKind::Protocol,
            "the server closed the connection without a word of iperf3; is it an iperf3 server?".into(),
        ),
        Ending::ServerError(code, _) => failure(kind_of(code), format!("the iperf3 server reports: {code}")),
        Ending::Unexpected => failure(FailureKind::Protocol, "the server does not speak iperf3's protocol".into()),
        Ending::Silent => failure(FailureKind::Timeout, "the server said nothing within the time limit; is it an iperf3 server?".into()),
        Ending::Stopped => Some(Failure::new(FailureKind::Interrupted, "the run was aborted by the client")),
    }
}

fn kind_of(code: ErrorCode) -> FailureKind {
    match code {
        ErrorCode::AUTHORISATION => FailureKind::Auth,
        ErrorCode::RATE | ErrorCode::DURATION | ErrorCode::DURATION_LIMIT | ErrorCode::STREAMS => {
            FailureKind::Limit
        }
        _ => FailureKind::Protocol,
    }
}
