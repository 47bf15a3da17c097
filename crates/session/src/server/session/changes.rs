//! What changes while a copy runs, at the server's end.

use std::time::{Duration, Instant};

use farline_spec::Failure;
use farline_spec::unit::{FileCount, RateBps, counted};
use tracing::debug;

use super::super::data::DataListeners;
use super::Session;
use crate::machine::server::MAX_ACCEPT;
use crate::machine::{LocalChange, ServerEvent};
use crate::message::{Adjust, Adjusted, ListenerAddress};
use crate::streams::{MOST_LATE, first_late};
use crate::tls::StreamKeys;

impl Session<'_> {
    /// Changes the copy as the client wants it, if it may.
    pub(super) fn adjust(&mut self, change: &Adjust) -> Result<ServerEvent, Failure> {
        let mut answer = Adjusted {
            number: change.number,
            first_stream: self.next_stream,
            ..Adjusted::default()
        };
        match self
            .judge(change)?
            .and_then(|rate| Ok((rate, self.listen_late(change.open)?)))
        {
            Err(why) => {
                debug!(reason = why, "change of the copy refused");
                answer.refused = Some(why);
            }
            Ok((rate, listeners)) => {
                (answer.total_rate_bps, answer.listeners) = (rate, listeners);
                self.seat.change(&LocalChange {
                    dismiss: change.dismiss,
                    concurrency: change.concurrency,
                    total_rate_bps: rate,
                    ..LocalChange::default()
                });
                debug!(
                    opening = change.open,
                    ending = change.dismiss,
                    concurrency = change.concurrency.map(FileCount::get),
                    total_rate_bps = rate.map(RateBps::get),
                    "copy changed"
                );
            }
        }
        Ok(ServerEvent::Adjusted(answer))
    }

    /// The rate that a change brings, if it brings one; or why it may not be.
    fn judge(&mut self, change: &Adjust) -> Result<Result<Option<RateBps>, String>, Failure> {
        let (streams, opening) = (self.seat.streams(), self.seat.is_opening_late());
        let (connects_back, next) = (self.back.is_some(), self.next_stream);
        let admission = &self.admitted()?.admission;
        let after = streams + u32::from(change.open);
        let first = first_late(&admission.grant.spec);
        Ok(if change.open == 0 {
            admission.judge_rate(change.total_rate_bps, after)
        } else if connects_back {
            Err("streams cannot be added where the server connects to the client".to_owned())
        } else if opening {
            Err("streams are still being opened for an earlier change".to_owned())
        } else if u32::from(change.open) + u32::from(next - first) > u32::from(MOST_LATE) {
            Err(format!(
                "more than {MOST_LATE} streams opened while one copy runs"
            ))
        } else if after > u32::from(admission.most_streams) {
            let most = admission.most_streams;
            Err(format!(
                "{} requested, but the server allows up to {most}",
                counted(after, "stream")
            ))
        } else {
            admission.judge_rate(change.total_rate_bps, after)
        })
    }

    /// Listens for so many data streams more, while the copy runs; where, or why not.
    fn listen_late(&mut self, count: u16) -> Result<Vec<ListenerAddress>, String> {
        if count == 0 {
            return Ok(Vec::new());
        }
        self.accept_late(count).map_err(|failure| failure.message)
    }

    fn accept_late(&mut self, count: u16) -> Result<Vec<ListenerAddress>, Failure> {
        let spec = self.admitted()?.admission.grant.spec.clone();
        let arrivals = self.shared.arrivals.as_ref();
        let handed = arrivals.map(|arrivals| arrivals.expect(self.id, &spec));
        let doors = DataListeners::open_data(&spec, self.local, &self.shared.ports, handed)?;
        let listeners = doors.addresses().listeners;
        let keys = StreamKeys::new(self.channel.tls(), self.id)?;
        let numbers = self.next_stream..self.next_stream + count;
        let expected: Vec<_> = numbers.clone().map(|stream| keys.key(stream)).collect();
        let within = Duration::from_millis(spec.connect_timeout_ms.get().into()).min(MAX_ACCEPT);
        let deadline = Instant::now() + within;
        self.seat.open_late(count, move |sink, cancelled| {
            doors.accept_late(&spec, &expected, deadline, cancelled, sink);
        })?;
        self.next_stream = numbers.end;
        Ok(listeners)
    }
}
