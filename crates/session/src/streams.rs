//! Which stream goes where: the same rules at both ends, from the spec alone.

use std::net::IpAddr;

use farline_spec::unit::CpuIndex;
use farline_spec::{AddressPair, Direction, RunSpec};
use farline_transport::Role;

pub use crate::run::End;

impl End {
    /// The end at the other side.
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What `end` does on `stream`. Of a bidirectional run the first half goes forward.
pub fn role(spec: &RunSpec, end: End, stream: u16) -> Role {
    let forward = match spec.direction {
        Direction::Forward => true,
        Direction::Reverse => false,
        Direction::Bidirectional => stream < spec.streams.get(),
    };
    match (end, forward) {
        (End::Client, true) | (End::Server, false) => Role::Sender,
        (End::Client, false) | (End::Server, true) => Role::Receiver,
    }
}

/// Whether `end` sends on any stream.
pub fn sends(spec: &RunSpec, end: End) -> bool {
    match spec.direction {
        Direction::Forward => end == End::Client,
        Direction::Reverse => end == End::Server,
        Direction::Bidirectional => true,
    }
}

/// CPU of `stream` at `end`: the list in turn.
pub fn cpu(spec: &RunSpec, end: End, stream: u16) -> Option<CpuIndex> {
    let cpus = match end {
        End::Client => &spec.client_cpus,
        End::Server => &spec.server_cpus,
    };
    in_turn(cpus, usize::from(stream)).copied()
}

/// Address pair of `stream`: the list in turn, from its start again for the streams that go back.
pub fn pair(spec: &RunSpec, stream: u16) -> AddressPair {
    let place = usize::from(stream % spec.streams.get());
    in_turn(&spec.pairs, place).cloned().unwrap_or_default()
}

fn in_turn<T>(list: &[T], place: usize) -> Option<&T> {
    list.get(place.checked_rem(list.len())?)
}

/// Numbers of all streams.
pub fn numbers(spec: &RunSpec) -> std::ops::Range<u16> {
    // 256 streams each way at most: the type of `streams` says so.
    0..spec.stream_total() as u16
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
    fn without_pairs_there_is_one_destination() {
        assert_eq!(destinations(&spec(r#"{"streams":4}"#)), [None]);
    }
}
