//! The sending end: drives the machine that knows what is to be sent, at the stated rate.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_proto::rbudp::wire::{Message, encode_mark};
use farline_proto::rbudp::{Burst, Sender as Machine, SenderOptions, settle_ns};
use farline_spec::{Failure, FailureKind, RunSpec};
use farline_sys::wake::wait_ready;
use farline_sys::{datagram, thread, time};

use super::feedback::{DEAD_AFTER, Feedback};
use super::link::{Link, or_aborted, violated};
use super::options::{Setup, in_flight_at, options_of};
use super::parts::Parts;
use super::round_trip::RoundTrips;
use super::source::Source;
use crate::StreamReport;
use crate::failure::aborted;
use crate::limit::Turn;
use crate::socket::SLICE;
use crate::tally::as_i64;
use farline_sys::page_buffer::PageBuffer;

/// How often the connection is looked at while datagrams go.
const LOOK_NS: u64 = 100_000;
/// How often the figures are published.
const PUBLISH_NS: u64 = 1_000_000;
/// Bytes between a sender and a receiver on one machine that are still in its cache when they are read.
const CACHED_BYTES: u64 = 16 << 20;
/// The fastest that a host sends.
const UNPACED_BPS: u64 = 100_000_000_000;
/// Time in which a stream that is tended does what is due.
const TENDED: Duration = Duration::from_millis(10);

/// Most on the way at once where no rate is stated: what stays in a cache until the receiver takes it, and on a longer path
/// what [`UNPACED_BPS`] fill it with.
fn window_bytes(rtt_ns: u64) -> u64 {
    let path_bytes = u128::from(rtt_ns) * u128::from(UNPACED_BPS) / 8_000_000_000;
    CACHED_BYTES + u64::try_from(path_bytes).unwrap_or(u64::MAX / 2)
}

/// What became of an attempt to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A burst went, or a part of one.
    Sent,
    /// There is one, but its turn has not come, or the kernel takes none now.
    NotYet,
    /// There is none.
    Nothing,
}

pub(super) struct Sender {
    pub(super) machine: Machine,
    feedback: Feedback,
    pub(super) setup: Setup,
    pub(super) token: u32,
    pub(super) checksum: bool,
    pub(super) source: Source,
    block_bytes: u64,
    /// Payload given to the machine so far, and what of it is not among the packets sent yet.
    given_bytes: u64,
    pub(super) unsent_bytes: u64,
    pub(super) burst: Burst,
    /// Datagrams of a burst, back to back.
    pub(super) slots: PageBuffer,
    /// Hashes of the packets of a burst.
    pub(super) hashes: Vec<u64>,
    mark: Vec<u8>,
    pub(super) turn: Option<Turn>,
    pub(super) rate_bps: u64,
    looked_ns: u64,
    published_ns: u64,
    report: StreamReport,
    /// Of files alone: what gives way has to see the path's queue.
    trips: Option<RoundTrips>,
    is_started: bool,
}

impl Sender {
    /// A sender of what `spec` asks for.
    ///
    /// # Errors
    /// `Spec` when the client's file cannot be sent.
    pub(super) fn new(parts: Parts, spec: &RunSpec, stream: u16) -> Result<Self, Failure> {
        let options = options_of(spec);
        let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
        let machine = Machine::new(SenderOptions {
            packet_bytes: parts.setup.packet_bytes(),
            payload_bytes: options.payload_bytes.get(),
            in_flight: in_flight_at(spec, parts.rtt_ns),
            early: options.early,
            rtt_ns: parts.rtt_ns,
            rate_bps,
            loss_bound: options.loss_bound.map(|bound| bound.get()),
            window_bytes: (rate_bps == 0).then(|| window_bytes(parts.rtt_ns)),
            checksum: options.checksum,
        });
        Ok(Self {
            turn: (rate_bps > 0).then(|| Turn::gathering(rate_bps, machine.pacer())),
            machine,
            feedback: parts.feedback,
            token: parts.token,
            checksum: options.checksum,
            source: Source::new(spec, stream, parts.is_client)?,
            block_bytes: spec.block_bytes.map_or(131_072, |block| block.get()),
            given_bytes: 0,
            unsent_bytes: 0,
            burst: Burst::default(),
            slots: PageBuffer::new(parts.setup.datagram_bytes * parts.setup.burst_packets),
            hashes: Vec::new(),
            mark: Vec::new(),
            rate_bps,
            looked_ns: 0,
            published_ns: 0,
            report: StreamReport {
                path_check: parts.check,
                ..StreamReport::default()
            },
            trips: spec
                .copy
                .is_some()
                .then(|| RoundTrips::new(settle_ns(parts.rtt_ns))),
            is_started: false,
            setup: parts.setup,
        })
    }

    /// Takes up to `limit` bytes of payload and sends what can go; gives the bytes taken within a time slice.
    pub(super) fn send(&mut self, link: &Link, limit: usize) -> Result<usize, Failure> {
        let result = self
            .wanted(limit)
            .and_then(|wanted| self.send_some(link, wanted, &[]));
        self.settle(link, result)
    }

    /// Takes what there is room for of `files` and sends what can go; gives the bytes taken within a time slice.
    pub(super) fn send_files(&mut self, link: &Link, files: &[u8]) -> Result<usize, Failure> {
        let result = self.send_some(link, files.len() as u64, files);
        self.settle(link, result)
    }

    /// What was taken must not wait for more: sends it, as far as a time slice allows.
    pub(super) fn flush(&mut self, link: &Link) -> Result<(), Failure> {
        self.machine.close_blast();
        self.tend_for(link, SLICE).map(drop)
    }

    /// Sends and hears what is due for a moment; gives whether more is.
    pub(super) fn tend(&mut self, link: &Link) -> Result<bool, Failure> {
        self.tend_for(link, TENDED)
    }

    fn tend_for(&mut self, link: &Link, time: Duration) -> Result<bool, Failure> {
        let until_ns = time::now_ns() + time.as_nanos() as u64;
        let result = self.send_due(link, until_ns);
        self.settle(link, result)
    }

    fn send_due(&mut self, link: &Link, until_ns: u64) -> Result<bool, Failure> {
        loop {
            let step = self.send_burst(link, self.full_burst_bytes())?;
            self.converse(link, step != Step::Sent)?;
            if link.tally.is_aborted() {
                return Err(aborted());
            }
            if step == Step::Nothing && !self.machine.has_gaps() {
                self.rest();
                return Ok(false);
            }
            if time::now_ns() >= until_ns {
                return Ok(true);
            }
        }
    }

    /// There is nothing to send: nothing is to be made up for later.
    fn rest(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.restart();
        }
    }

    fn settle<T>(&mut self, link: &Link, result: Result<T, Failure>) -> Result<T, Failure> {
        let result = or_aborted(link, result);
        if let Err(failure) = &result {
            self.publish(link);
            self.feedback.give_up_for(failure);
        }
        result
    }

    /// Bytes of a block that is to be sent now.
    fn wanted(&self, limit: usize) -> Result<u64, Failure> {
        let wanted = (limit as u64)
            .min(self.block_bytes)
            .min(self.source.length() - self.given_bytes);
        if wanted == 0 && limit > 0 {
            let length = self.source.length();
            let line =
                format!("rbudp.file: its {length} bytes are sent before the run ends; give total_bytes (-n)");
            return Err(Failure::new(FailureKind::Spec, line));
        }
        Ok(wanted)
    }

    /// Sends `wanted` bytes: of `files`, or if that is empty of what is sent over and over.
    fn send_some(&mut self, link: &Link, wanted: u64, files: &[u8]) -> Result<usize, Failure> {
        if !std::mem::replace(&mut self.is_started, true) {
            // Here, not in `new`: it is the thread that sends that has to wake in time.
            thread::set_finest_timer_slack();
        }
        let until_ns = time::now_ns() + SLICE.as_nanos() as u64;
        let mut taken = 0;
        loop {
            if link.tally.is_aborted() {
                return Err(aborted());
            }
            // A burst's worth at a time: what waits here has not been sent, and counts as if it had.
            let burst_bytes = self.full_burst_bytes();
            let most = (wanted - taken).min(burst_bytes.saturating_sub(self.unsent_bytes));
            taken += self.give(most, &files[(taken as usize).min(files.len())..]);
            let step = self.send_burst(link, burst_bytes)?;
            self.converse(link, step != Step::Sent)?;
            if (taken == wanted && step == Step::Nothing) || time::now_ns() >= until_ns {
                break;
            }
            let has_no_room = self.machine.room() == 0 || self.unsent_bytes >= burst_bytes;
            if step == Step::Nothing && has_no_room {
                self.wait(link, until_ns)?;
            }
        }
        // Never more than `limit`.
        let taken = taken as usize;
        if taken > 0 {
            link.tally.count_block(taken);
        }
        Ok(taken)
    }

    /// Sends what is left and hears that all of it has arrived, unless `deadline` comes first.
    pub(super) fn finish(&mut self, link: &Link, deadline: Instant) -> Result<(), Failure> {
        let result = self.finish_all(link, deadline);
        self.publish(link);
        self.settle(link, result)
    }

    fn finish_all(&mut self, link: &Link, deadline: Instant) -> Result<(), Failure> {
        self.machine.finish(time::now_ns());
        while !self.machine.is_finished() && Instant::now() < deadline {
            if link.tally.is_aborted() {
                return Err(aborted());
            }
            let step = self.send_burst(link, 0)?;
            self.converse(link, step != Step::Sent)?;
            if step == Step::Nothing && !self.machine.is_finished() {
                let left = deadline.saturating_duration_since(Instant::now()).min(SLICE);
                self.wait(link, time::now_ns() + left.as_nanos() as u64)?;
            }
        }
        if !self.machine.is_finished() {
            // What the other end does not have yet, it will not get: it must not wait for it.
            self.feedback
                .give_up("not all data had arrived when the time was over");
        }
        Ok(())
    }

    fn full_burst_bytes(&self) -> u64 {
        (self.setup.burst_packets * self.setup.packet_bytes()) as u64
    }

    /// Gives the machine what it has room for of `most` bytes, the first of `files` if there are any.
    fn give(&mut self, most: u64, files: &[u8]) -> u64 {
        let bytes = self.machine.room().min(most);
        let Some(blast) = self.machine.give(bytes) else {
            return 0;
        };
        // No more than `files` holds, where it holds any.
        self.source.put(blast, &files[..files.len().min(bytes as usize)]);
        self.given_bytes += bytes;
        self.unsent_bytes += bytes;
        bytes
    }

    /// Hears and says what is to be said.
    fn converse(&mut self, link: &Link, is_idle: bool) -> Result<(), Failure> {
        let now_ns = time::now_ns();
        if is_idle || now_ns >= self.looked_ns + LOOK_NS {
            self.looked_ns = now_ns;
            self.feedback.read()?;
            while let Some(message) = self.feedback.next()? {
                if let Message::Failed(reason) = message {
                    let line = format!("data stream: the receiver gave up: {reason}");
                    return Err(Failure::new(FailureKind::Protocol, line));
                }
                if let (Some(trips), Message::Missing(report)) = (&mut self.trips, &message) {
                    trips.heard(now_ns, report);
                }
                self.machine.handle_message(now_ns, message).map_err(violated)?;
            }
            if self.feedback.is_closed() && !self.machine.is_finished() {
                let line = "data stream: the receiver closed it before it had everything";
                return Err(Failure::new(FailureKind::Protocol, line));
            }
            self.machine.handle_timeout(now_ns);
            self.check_alive(now_ns)?;
        }
        self.speak(link, now_ns)?;
        while let Some(blast) = self.machine.poll_blast() {
            self.source.release_oldest();
            self.report.keep(blast);
        }
        if now_ns >= self.published_ns + PUBLISH_NS {
            self.published_ns = now_ns;
            self.publish(link);
        }
        Ok(())
    }

    fn check_alive(&self, now_ns: u64) -> Result<(), Failure> {
        if self.machine.has_gaps() || self.machine.is_blast_full() {
            // There is much to send yet; the connection's own probes tell of a peer that is gone.
            return Ok(());
        }
        let waited_ns = self
            .machine
            .waiting_since()
            .map_or(0, |since| now_ns.saturating_sub(since));
        if waited_ns < DEAD_AFTER.as_nanos() as u64 {
            return Ok(());
        }
        let line = format!("data stream: no report for {} s", DEAD_AFTER.as_secs());
        Err(Failure::new(FailureKind::Timeout, line))
    }

    fn speak(&mut self, link: &Link, now_ns: u64) -> Result<(), Failure> {
        while let Some((done, copies)) = self.machine.poll_mark(now_ns) {
            if let Some(trips) = &mut self.trips {
                trips.said(now_ns, &done);
            }
            self.mark.clear();
            encode_mark(self.token, &done, &mut self.mark);
            for _ in 0..copies {
                // One that is lost here is as one lost on the way.
                let _ = datagram::send(link.socket.as_fd(), &self.mark);
            }
        }
        while let Some(message) = self.machine.poll_message() {
            self.feedback.put(&message)?;
        }
        self.feedback.flush()
    }

    /// Waits for a report, a time-out of the machine, or `until_ns`.
    fn wait(&mut self, link: &Link, until_ns: u64) -> Result<(), Failure> {
        if self.machine.has_gaps() || self.machine.is_finished() {
            // What was just heard is to be acted upon first.
            return Ok(());
        }
        let now_ns = time::now_ns();
        let due_ns = self
            .machine
            .poll_timeout()
            .map_or(until_ns, |due_ns| due_ns.min(until_ns));
        if link.tally.is_aborted() {
            return Err(aborted());
        }
        self.rest();
        let left = Duration::from_nanos(due_ns.saturating_sub(now_ns));
        wait_ready([self.feedback.wanted()], left)
            .map(drop)
            .map_err(|error| Failure::system("waiting for reports", &error))
    }

    fn publish(&self, link: &Link) {
        let statistics = self.machine.statistics();
        link.packets.set(as_i64(statistics.sent_packets));
        link.repeated_packets.set(as_i64(statistics.repeated_packets));
        link.lost_packets.set(as_i64(statistics.reported_lost_packets));
        link.reports.set(as_i64(statistics.received_reports));
        link.flight_packets.set(as_i64(statistics.unacknowledged_packets));
        if let Some((now_us, least_us)) = self.trips.as_ref().and_then(RoundTrips::figures_us) {
            link.rtt_us.set(as_i64(now_us));
            link.min_rtt_us.set(as_i64(least_us));
        }
        let rate_bps = self.machine.rate_bps();
        link.rate_bps
            .set(if rate_bps == 0 { -1 } else { as_i64(rate_bps) });
    }

    pub(super) fn report(&self) -> StreamReport {
        self.report.clone()
    }
}
