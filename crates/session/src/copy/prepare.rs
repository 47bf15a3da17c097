//! Streams made ready for files: held to one rate together.

use std::sync::Arc;

use farline_spec::RunSpec;
use farline_spec::unit::RateBps;
use farline_transport::{Role, SharedRate};

use super::give_way::ScavengerController;
use crate::run::OpenStream;
use crate::streams::is_data;

/// Share of a rate that the messages of a copy may have besides its data, and the least in bit/s.
const MESSAGES_SHARE: (u64, u64) = (10, 10_000_000);

/// Rate that both message streams of a copy may have together where its data may have `data_bps`.
pub fn messages_bps(data_bps: u64) -> u64 {
    (data_bps / MESSAGES_SHARE.0).max(MESSAGES_SHARE.1)
}

/// Streams of a run, and what holds those that send files to a rate.
pub struct Prepared {
    /// All of them, in their order.
    pub streams: Vec<OpenStream>,
    /// Rate of the data streams that send files, none at first where none was asked for.
    pub rate: Option<Arc<SharedRate>>,
    /// What gives way to other traffic, where that is asked for and this end sends.
    pub give_way: Option<ScavengerController>,
}

/// Makes `streams` ready for what `spec` says they carry; streams that carry no files stay as they are.
pub fn prepare(streams: Vec<OpenStream>, spec: &RunSpec) -> Prepared {
    let Some(copy) = &spec.copy else {
        return Prepared {
            streams,
            rate: None,
            give_way: None,
        };
    };
    let sends = |open: &OpenStream| open.role == Role::Sender && is_data(spec, open.stream);
    let total_bps = copy.total_rate_bps.map(RateBps::get).filter(|&rate| rate > 0);
    let shared = || total_bps.map_or_else(SharedRate::unlimited, SharedRate::new);
    let rate = streams.iter().any(sends).then(|| Arc::new(shared()));
    let ready = |open: OpenStream| match is_data(spec, open.stream) {
        true => prepare_data(open, rate.as_ref()),
        false => messages(open, total_bps),
    };
    let streams: Vec<_> = streams.into_iter().map(ready).collect();
    let give_way = rate.clone().filter(|_| copy.give_way).map(|rate| {
        let probes = streams
            .iter()
            .filter(|open| sends(open))
            .map(|open| (open.stream, open.io.probe()));
        ScavengerController::new(rate, probes.collect(), total_bps)
    });
    Prepared {
        streams,
        rate,
        give_way,
    }
}

/// A data stream; one that sends shares `rate` with the others.
pub fn prepare_data(open: OpenStream, rate: Option<&Arc<SharedRate>>) -> OpenStream {
    match rate {
        Some(rate) if open.role == Role::Sender => OpenStream {
            io: open.io.sharing(Arc::clone(rate)),
            ..open
        },
        _ => open,
    }
}

/// A message stream; of a copy that is held to a rate it has its half of what messages may have.
fn messages(open: OpenStream, total_bps: Option<u64>) -> OpenStream {
    match total_bps {
        Some(data_bps) if open.role == Role::Sender => {
            let rate = Arc::new(SharedRate::new(messages_bps(data_bps) / 2));
            OpenStream {
                io: open.io.sharing(rate),
                ..open
            }
        }
        _ => open,
    }
}
