//! Holds streams to a rate: for transports that do not pace themselves.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use farline_spec::{Failure, Granted};
use farline_sys::{thread, time};

use crate::failure::aborted;
use crate::share::{Share, SharedRate};
use crate::tally::{Tally, as_i64};
use crate::{ByteStream, Counters, Pacer, PayloadSource, Probe, Received, StreamEnd, StreamReport};

/// Longest wait inside one call, so that the caller can look at its stop flag.
const SLICE_NS: u64 = 100_000_000;
/// Waits up to this are spun through: sleeping takes longer.
const MIN_SLEEP_NS: u64 = 20_000;
/// CPU time spent on ending a longer wait exactly, at most.
const MAX_SPIN_NS: u64 = 50_000;

/// Time whose turns a sender without spinning takes in one go: a burst and a half at 10 Gbit/s.
const GATHER_NS: u64 = 80_000;

/// Waits for `pacer` in its own thread and accounts for it.
#[derive(Debug)]
pub(crate) struct Turn {
    pacer: Option<Pacer>,
    make: fn(u64, u64) -> Pacer,
    /// Sleep on for this long beyond a turn, and never spin: several turns are taken in one go, with one wake-up.
    gather_ns: u64,
    rate_bps: u64,
    waited_ns: u64,
}

impl Turn {
    /// A turn every time `rate_bps` allows one; the schedule begins at the first.
    pub(crate) fn new(rate_bps: u64) -> Self {
        Self {
            pacer: None,
            make: Pacer::new,
            gather_ns: 0,
            rate_bps,
            waited_ns: 0,
        }
    }

    /// As [`Self::new`], with another pacer, and without spinning: what wakes late sends more at once, up to a
    /// millisecond's worth.
    pub(crate) fn gathering(rate_bps: u64, make: fn(u64, u64) -> Pacer) -> Self {
        Self {
            make,
            gather_ns: GATHER_NS,
            ..Self::new(rate_bps)
        }
    }

    /// Begins the schedule anew at the next turn: there was nothing to send, which is nothing to make up for.
    pub(crate) fn restart(&mut self) {
        let is_owing = |pacer: &Pacer| pacer.ready_ns() > time::now_ns();
        self.pacer = self.pacer.take().filter(is_owing);
    }

    /// Waits until the next bytes may go; false if that is not within the next 100 ms, of which most
    /// have then passed.
    pub(crate) fn wait(&mut self) -> bool {
        let now_ns = time::now_ns();
        let pacer = self.pacer.get_or_insert_with(|| {
            // Here, not in `new`: it is the thread that sends that has to wake in time.
            thread::set_finest_timer_slack();
            (self.make)(self.rate_bps, now_ns)
        });
        let ready_ns = pacer.ready_ns();
        let wait_ns = ready_ns.saturating_sub(now_ns);
        if wait_ns == 0 {
            return true;
        }
        if wait_ns > SLICE_NS {
            time::sleep_until(now_ns + SLICE_NS, 0);
        } else {
            self.rest(ready_ns, wait_ns);
        }
        self.waited_ns += time::now_ns() - now_ns;
        wait_ns <= SLICE_NS
    }

    /// Goes on at another rate from now on.
    pub(crate) fn set_rate(&mut self, rate_bps: u64) {
        self.rate_bps = rate_bps;
        if let Some(pacer) = &mut self.pacer {
            pacer.set_rate(rate_bps);
        }
    }

    fn rest(&self, ready_ns: u64, wait_ns: u64) {
        if self.gather_ns > 0 {
            time::sleep_until(ready_ns + self.gather_ns, 0);
        } else {
            time::sleep_until(ready_ns, spin_ns(wait_ns));
        }
    }

    /// Notes that `bytes` went just now.
    pub(crate) fn sent(&mut self, bytes: usize) {
        if let Some(pacer) = &mut self.pacer {
            pacer.sent(time::now_ns(), bytes as u64);
        }
    }

    /// Time waited in all.
    pub(crate) fn waited_us(&self) -> i64 {
        as_i64(self.waited_ns / 1_000)
    }
}

/// How much of a wait to spin: a quarter, which makes up for a late end of the sleep before it.
fn spin_ns(wait_ns: u64) -> u64 {
    if wait_ns <= MIN_SLEEP_NS {
        wait_ns
    } else {
        (wait_ns / 4).clamp(MIN_SLEEP_NS, MAX_SPIN_NS)
    }
}

/// The sending end of a measured stream, held to a rate block by block.
pub(crate) struct PacedSource {
    inner: Box<dyn PayloadSource>,
    turn: Turn,
    tally: Arc<Tally>,
}

impl PacedSource {
    /// `inner`, sending at `rate_bps` payload bits per second at most, on the long-term mean.
    pub(crate) fn new(inner: Box<dyn PayloadSource>, rate_bps: u64) -> Self {
        Self {
            inner,
            turn: Turn::new(rate_bps),
            tally: Arc::default(),
        }
    }
}

impl PayloadSource for PacedSource {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        let may_send = self.turn.wait();
        note_wait(&self.tally, self.turn.waited_us())?;
        if !may_send {
            return Ok(0);
        }
        let sent = self.inner.send_block(limit)?;
        self.turn.sent(sent);
        Ok(sent)
    }
}

impl StreamEnd for PacedSource {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.inner.finish_sending(deadline)
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::new(LimitedProbe {
            inner: self.inner.probe(),
            tally: Arc::clone(&self.tally),
            is_shared: false,
        })
    }

    fn granted(&self) -> Granted {
        self.inner.granted()
    }

    fn report(&self) -> StreamReport {
        self.inner.report()
    }
}

/// A stream of files that shares a rate, which may change, with others; in pieces so small that the rate is even.
pub(crate) struct Limited {
    inner: Box<dyn ByteStream>,
    share: Share,
    tally: Arc<Tally>,
}

impl Limited {
    /// `inner`, sending in its share of `rate`; where it receives nothing changes.
    pub(crate) fn with_rate(inner: Box<dyn ByteStream>, rate: Arc<SharedRate>) -> Self {
        Self {
            inner,
            share: Share::of(rate),
            tally: Arc::default(),
        }
    }

    /// Sends as much of `bytes` bytes as may go now, with `send`.
    fn in_turn(
        &mut self,
        bytes: usize,
        send: impl FnOnce(&mut dyn ByteStream, usize) -> Result<Option<usize>, Failure>,
    ) -> Result<Option<usize>, Failure> {
        let piece = self.share.wait(bytes);
        note_wait(&self.tally, self.share.waited_us())?;
        if piece == 0 {
            return Ok(Some(0));
        }
        let sent = send(&mut *self.inner, piece);
        self.share
            .sent(sent.as_ref().map_or(0, |sent| sent.unwrap_or_default()));
        sent
    }
}

fn note_wait(tally: &Tally, waited_us: i64) -> Result<(), Failure> {
    tally.paced_wait_us.set(waited_us);
    if tally.is_aborted() {
        return Err(aborted());
    }
    Ok(())
}

impl ByteStream for Limited {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let sent = self.in_turn(bytes.len(), |inner, piece| inner.send(&bytes[..piece]).map(Some));
        sent.map(Option::unwrap_or_default)
    }

    fn send_ahead(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let sent = self.in_turn(bytes.len(), |inner, piece| {
            inner.send_ahead(&bytes[..piece]).map(Some)
        });
        sent.map(Option::unwrap_or_default)
    }

    fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> Result<Option<usize>, Failure> {
        self.in_turn(most, |inner, piece| inner.send_file(file, offset, piece))
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        self.inner.receive(into)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.inner.flush()
    }
}

impl StreamEnd for Limited {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.inner.finish_sending(deadline)
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::new(LimitedProbe {
            inner: self.inner.probe(),
            tally: Arc::clone(&self.tally),
            is_shared: true,
        })
    }

    fn granted(&self) -> Granted {
        self.inner.granted()
    }

    fn report(&self) -> StreamReport {
        self.inner.report()
    }
}

struct LimitedProbe {
    inner: Arc<dyn Probe>,
    tally: Arc<Tally>,
    /// A rate that others share may be none: then nobody is paced.
    is_shared: bool,
}

impl Probe for LimitedProbe {
    fn sample(&self) -> Counters {
        let inner = self.inner.sample();
        if self.is_shared && self.tally.paced_wait_us.get() <= 0 {
            return inner;
        }
        Counters {
            paced_wait_us: inner.paced_wait_us.max(0) + self.tally.paced_wait_us.get(),
            ..inner
        }
    }

    fn abort(&self) {
        self.tally.abort();
        self.inner.abort();
    }

    fn end_receiving(&self) {
        self.inner.end_receiving();
    }
}
