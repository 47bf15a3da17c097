//! Which stream goes where: the same rules at both ends, from the spec alone.

use std::borrow::Cow;
use std::net::IpAddr;

use farline_spec::unit::{CpuIndex, RateBps, StreamCount};
use farline_spec::{AddressPair, Direction, RunSpec, TcpOptions, Transport};
use farline_transport::Role;

/// Which end of the session this process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The one who asked for the run.
    Client,
    /// The one who was asked.
    Server,
}

impl End {
    /// The number that stands for it in records and samples.
    pub const fn number(self) -> u8 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }

    /// The end at the other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Message streams of a copy.
const MESSAGE_STREAMS: u16 = 2;
/// Data streams of one copy at once, at most.
pub const MOST_STREAMS: u16 = StreamCount::MAX.get();
/// Data streams that may come while one copy runs, over all of its session: each leaves a record at either end.
pub const MOST_LATE: u16 = 4_096;

/// What a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Payload.
    Data,
    /// What the sending end of a copy says; the same way as its data.
    Catalogue,
    /// What the receiving end of a copy says; the other way.
    Feedback,
}

/// What `stream` carries: data first, then the messages of a copy, then data streams that came while it ran.
pub fn part(spec: &RunSpec, stream: u16) -> Part {
    let data = data_total(spec);
    match &spec.copy {
        Some(_) if stream == data => Part::Catalogue,
        Some(_) if stream == data + 1 => Part::Feedback,
        _ => Part::Data,
    }
}

/// Whether `stream` carries data.
pub fn is_data(spec: &RunSpec, stream: u16) -> bool {
    part(spec, stream) == Part::Data
}

/// Number of the first data stream that comes while a copy of `spec` runs. No number is used twice in a session: the key of a
/// stream's cipher follows from it.
pub fn first_late(spec: &RunSpec) -> u16 {
    numbers(spec).end
}

/// Streams that carry data from the start.
pub fn data_total(spec: &RunSpec) -> u16 {
    // 256 streams each way at most: the type of `streams` says so.
    spec.stream_total() as u16
}

/// All streams: those of data and those of messages.
pub fn total(spec: &RunSpec) -> usize {
    numbers(spec).len()
}

/// Whether `end` has the files of a copy.
pub fn has_files(spec: &RunSpec, end: End) -> bool {
    (spec.direction == Direction::Forward) == (end == End::Client)
}

/// The spec that `stream` is opened by: messages go over TCP without options, whatever carries the data.
pub fn own_spec(spec: &RunSpec, stream: u16) -> Cow<'_, RunSpec> {
    if part(spec, stream) == Part::Data {
        return Cow::Borrowed(spec);
    }
    Cow::Owned(messages_spec(spec))
}

/// As [`own_spec`], of both message streams.
pub fn messages_spec(spec: &RunSpec) -> RunSpec {
    let tcp = TcpOptions {
        no_delay: true,
        ..TcpOptions::default()
    };
    RunSpec {
        transport: Transport::Tcp,
        streams: StreamCount::MIN,
        block_bytes: spec.block_bytes,
        rate_bps: RateBps::new(0).ok(),
        ip_version: spec.ip_version,
        tos: spec.tos,
        connect_timeout_ms: spec.connect_timeout_ms,
        tcp: Some(tcp),
        copy: spec.copy.clone(),
        ..RunSpec::default()
    }
}

/// What `end` does on `stream`. Of a bidirectional run the first half goes forward.
pub fn role(spec: &RunSpec, end: End, stream: u16) -> Role {
    let forward = match spec.direction {
        Direction::Forward => true,
        Direction::Reverse => false,
        Direction::Bidirectional => stream < spec.streams.get(),
    };
    let forward = forward != (part(spec, stream) == Part::Feedback);
    match (end, forward) {
        (End::Client, true) | (End::Server, false) => Role::Sender,
        (End::Client, false) | (End::Server, true) => Role::Receiver,
    }
}

/// Whether `end` sends on any stream; in a copy both do, since the receiving end answers.
pub fn sends(spec: &RunSpec, end: End) -> bool {
    match spec.direction {
        _ if spec.copy.is_some() => true,
        Direction::Forward => end == End::Client,
        Direction::Reverse => end == End::Server,
        Direction::Bidirectional => true,
    }
}

/// CPU of `stream` at `end`: the list in turn; messages go where there is room.
pub fn cpu(spec: &RunSpec, end: End, stream: u16) -> Option<CpuIndex> {
    if part(spec, stream) != Part::Data {
        return None;
    }
    let cpus = match end {
        End::Client => &spec.client_cpus,
        End::Server => &spec.server_cpus,
    };
    in_turn(cpus, usize::from(stream)).copied()
}

/// Address pair of `stream`: the list in turn, from its start again for the streams that go back; messages take the first.
pub fn pair(spec: &RunSpec, stream: u16) -> AddressPair {
    let place = match part(spec, stream) {
        Part::Data => usize::from(stream % spec.streams.get()),
        Part::Catalogue | Part::Feedback => 0,
    };
    in_turn(&spec.pairs, place).cloned().unwrap_or_default()
}

fn in_turn<T>(list: &[T], place: usize) -> Option<&T> {
    list.get(place.checked_rem(list.len())?)
}

/// Numbers of all streams.
pub fn numbers(spec: &RunSpec) -> std::ops::Range<u16> {
    let messages = spec.copy.as_ref().map_or(0, |_| MESSAGE_STREAMS);
    0..data_total(spec) + messages
}

/// Destinations in use, each once, in the order of the streams.
pub fn destinations(spec: &RunSpec) -> Vec<Option<IpAddr>> {
    let mut found = Vec::new();
    for destination in numbers(spec).map(|stream| pair(spec, stream).destination) {
        if !found.contains(&destination) {
            found.push(destination);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    fn spec(text: &str) -> RunSpec {
        from_json(text).unwrap()
    }

    #[test]
    fn every_stream_has_one_sender() {
        for direction in ["forward", "reverse", "bidirectional"] {
            let spec = spec(&format!(r#"{{"direction":"{direction}","streams":3}}"#));
            for stream in numbers(&spec) {
                assert_ne!(role(&spec, End::Client, stream), role(&spec, End::Server, stream));
            }
            for end in [End::Client, End::Server] {
                let any = numbers(&spec).any(|stream| role(&spec, end, stream) == Role::Sender);
                assert_eq!(any, sends(&spec, end), "{direction}");
            }
        }
    }

    #[test]
    fn both_directions_use_the_pairs_alike() {
        let spec = spec(
            r#"{"direction":"bidirectional","streams":2,"client_cpus":[7,8,9],
                "pairs":[{"destination":"10.0.0.1"},{"destination":"10.0.0.2"},{"destination":"10.0.0.3"}]}"#,
        );
        let of: Vec<_> = numbers(&spec)
            .map(|stream| pair(&spec, stream).destination.unwrap().to_string())
            .collect();
        assert_eq!(of, ["10.0.0.1", "10.0.0.2", "10.0.0.1", "10.0.0.2"]);
        assert_eq!(
            destinations(&spec).len(),
            2,
            "an address without a stream needs no listener"
        );
        let cpus: Vec<_> = numbers(&spec)
            .map(|stream| cpu(&spec, End::Client, stream).unwrap().get())
            .collect();
        assert_eq!(cpus, [7, 8, 9, 7]);
        assert_eq!(cpu(&spec, End::Server, 0), None);
    }

    #[test]
    fn a_copy_has_two_streams_of_messages_more_over_tcp_from_the_first_address() {
        let text = r#"{"transport":"rbudp","rate_bps":1000000,"streams":3,"client_cpus":[1],"direction":"DIRECTION",
            "pairs":[{"destination":"10.0.0.1"},{"destination":"10.0.0.2"}],"copy":{"sources":["s"],"destination":"d"}}"#;
        for (direction, client_sends) in [("forward", true), ("reverse", false)] {
            let spec = spec(&text.replace("DIRECTION", direction));
            assert_eq!((numbers(&spec), total(&spec)), (0..5, 5));
            let parts: Vec<_> = numbers(&spec).map(|stream| part(&spec, stream)).collect();
            assert_eq!(parts[2..], [Part::Data, Part::Catalogue, Part::Feedback]);
            let sends: Vec<_> = numbers(&spec)
                .map(|stream| role(&spec, End::Client, stream) == Role::Sender)
                .collect();
            assert_eq!(sends[2..], [client_sends, client_sends, !client_sends]);
            assert_eq!(has_files(&spec, End::Client), client_sends);
            assert!(super::sends(&spec, End::Client) && super::sends(&spec, End::Server));
            for stream in 3..5 {
                let own = own_spec(&spec, stream);
                assert_eq!((own.transport, own.rate_bps.unwrap().get()), (Transport::Tcp, 0));
                assert_eq!(pair(&spec, stream), spec.pairs[0]);
                assert_eq!(cpu(&spec, End::Client, stream), None);
            }
            assert_eq!(own_spec(&spec, 2).transport, Transport::Rbudp);
        }
    }

    #[test]
    fn streams_that_come_later_have_numbers_behind_the_messages_and_carry_data() {
        let spec = spec(r#"{"streams":3,"copy":{"sources":["s"],"destination":"d"}}"#);
        let first = first_late(&spec);
        assert_eq!(first, 5);
        for stream in [first, first + MOST_LATE] {
            assert_eq!(part(&spec, stream), Part::Data);
            assert_eq!(role(&spec, End::Client, stream), Role::Sender);
        }
        let most = u32::from(MOST_STREAMS) + 2 + u32::from(MOST_LATE);
        assert!(most <= u32::from(u16::MAX), "no number comes twice");
    }

    #[test]
    fn without_pairs_there_is_one_destination() {
        assert_eq!(destinations(&spec(r#"{"streams":4}"#)), [None]);
    }
}
