//! No network at all: what remains is farline's own ceiling.
//!
//! What it does: counts blocks at both ends as fast as they are asked for, or at the stated rate.
//! What it must not do: touch a socket, or pretend that bytes arrived somewhere. The two ends know
//! nothing of each other; each counts its own calls, so each shows what its loop can bear.
//!
//! In: the rate, the block, the length of the run. Out: streams without an address. Since nothing tells a
//! receiver that the sender has finished, it ends by itself after the duration, or after its equal share
//! of the total.
//!
//! Start with [`NullStream`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_spec::{Failure, Granted, RunSpec};

use crate::failure::{aborted, check_no_files, timed_out};
use crate::limit::Turn;
use crate::tally::Tally;
use crate::{
    Capabilities, Connect, Counters, Listener, PayloadSink, PayloadSource, Probe, Received, Role, Stream,
    StreamEnd, StreamKey, Transport,
};

/// The transport without a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Null;

impl Transport for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reliable: true,
            carries_data: false,
            binds_addresses: false,
            why_not: "carries_data: no data is moved, each end counts its own calls; binds_addresses: there is no socket",
            carries_files: false,
            sends_from_files: false,
            encrypts: false,
            shares_port: false,
        }
    }

    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure> {
        check_no_files(spec)?;
        Ok(Box::new(NullListener { local }))
    }

    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure> {
        check_no_files(request.spec)?;
        let stream = NullStream::new(request.spec, request.role, request.key.stream);
        Ok(Stream::of_payload(stream, request.role))
    }
}

struct NullListener {
    local: SocketAddr,
}

impl Listener for NullListener {
    fn local_addr(&self) -> SocketAddr {
        self.local
    }

    fn accept(
        &mut self,
        spec: &RunSpec,
        expected: &[StreamKey],
        role_of: &dyn Fn(u16) -> Role,
        deadline: Instant,
    ) -> Result<(u16, Stream), Failure> {
        let Some(key) = expected.first() else {
            // Nobody can come; time passes as it would on a socket.
            std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
            return Err(timed_out("null stream"));
        };
        let role = role_of(key.stream);
        let stream = NullStream::new(spec, role, key.stream);
        Ok((key.stream, Stream::of_payload(stream, role)))
    }
}

/// One end of a stream that moves nothing.
struct NullStream {
    tally: Arc<Tally>,
    block: usize,
    turn: Option<Turn>,
    length: Length,
}

/// When a receiver is through.
enum Length {
    Bytes(u64),
    Time {
        duration: Duration,
        since: Option<Instant>,
    },
}

impl NullStream {
    fn new(spec: &RunSpec, role: Role, stream: u16) -> Self {
        let length = match (spec.total_bytes, spec.sending_s()) {
            _ if role == Role::Sender => Length::Bytes(u64::MAX),
            (Some(total), _) => Length::Bytes(share(total.get(), spec.streams.get(), stream)),
            (None, seconds) => Length::Time {
                duration: Duration::from_secs_f64(seconds.unwrap_or(10.0)),
                since: None,
            },
        };
        let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
        Self {
            tally: Arc::default(),
            block: spec.block_bytes.map_or(131_072, |block| {
                usize::try_from(block.get()).unwrap_or(usize::MAX)
            }),
            turn: (rate_bps > 0).then(|| Turn::new(rate_bps)),
            length,
        }
    }

    /// Counts up to `limit` bytes when it is their turn; 0 if that is not now.
    fn count(&mut self, limit: usize) -> Result<usize, Failure> {
        if self.tally.is_aborted() {
            return Err(aborted());
        }
        let bytes = self.block.min(limit);
        if let Some(turn) = &mut self.turn {
            let may_go = turn.wait();
            self.tally.paced_wait_us.set(turn.waited_us());
            if !may_go {
                return Ok(0);
            }
            turn.sent(bytes);
        }
        self.tally.count_block(bytes);
        Ok(bytes)
    }
}

/// Part of `total` that falls to `stream`; the parts of one direction add up to it.
fn share(total: u64, streams: u16, stream: u16) -> u64 {
    let (streams, place) = (u64::from(streams), u64::from(stream % streams));
    total / streams + u64::from(place < total % streams)
}

impl Length {
    /// Bytes that may still come.
    fn left(&mut self, received: i64) -> u64 {
        match self {
            Self::Bytes(total) => total.saturating_sub(u64::try_from(received).unwrap_or(0)),
            Self::Time { duration, since } => {
                let is_over = since.get_or_insert_with(Instant::now).elapsed() >= *duration;
                if is_over { 0 } else { u64::MAX }
            }
        }
    }
}

impl PayloadSource for NullStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        self.count(limit)
    }
}

impl PayloadSink for NullStream {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        match self.length.left(self.tally.bytes.get()) {
            0 => Ok(Received::End),
            left => self
                .count(usize::try_from(left).unwrap_or(usize::MAX))
                .map(Received::Bytes),
        }
    }
}

impl StreamEnd for NullStream {
    fn finish_sending(&mut self, _deadline: Instant) -> Result<(), Failure> {
        Ok(())
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::new(NullProbe(Arc::clone(&self.tally)))
    }

    fn granted(&self) -> Granted {
        Granted {
            local: "null".to_owned(),
            remote: "null".to_owned(),
            ..Granted::default()
        }
    }
}

struct NullProbe(Arc<Tally>);

impl Probe for NullProbe {
    fn sample(&self) -> Counters {
        Counters {
            bytes: self.0.bytes.get(),
            blocks: self.0.blocks.get(),
            paced_wait_us: self.0.paced_wait_us.get(),
            ..Counters::UNKNOWN
        }
    }

    fn abort(&self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_total_in_both_directions() {
        for (total, streams) in [(10, 3), (1, 4), (1 << 60, 256), (7, 7)] {
            assert_eq!(
                (0..streams)
                    .map(|stream| share(total, streams, stream))
                    .sum::<u64>(),
                total
            );
            assert_eq!(
                (streams..2 * streams)
                    .map(|stream| share(total, streams, stream))
                    .sum::<u64>(),
                total
            );
        }
    }
}
