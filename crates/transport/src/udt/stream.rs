//! One open stream of a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_proto::udt::Reader;
use farline_spec::{Failure, FailureKind, Granted, RunSpec};
use farline_sys::time;

use super::driver::Driver;
use super::gauges::{Gauges, Sizes};
use super::moving::{Drain, Feed, nap, read_some, write_bytes};
use super::socket::Socket;
use crate::failure::aborted;
use crate::kept_alive::{KeptAlive, Tended};
use crate::nap::Nap;
use crate::stream::wrong_end;
use crate::{ByteStream, PayloadSink, PayloadSource, Probe, Received, Role, Stream, StreamEnd};

/// How often the figures are published.
const PUBLISH_NS: u64 = 1_000_000;
/// Turns in which a stream that is tended does what there is to do.
const MOST_TURNS: usize = 64;

/// One open stream, used by one thread.
pub(super) struct UdtStream {
    driver: Driver,
    gauges: Arc<Gauges>,
    engine: Engine,
    spec: RunSpec,
    sizes: Sizes,
    published_ns: u64,
}

enum Engine {
    Sender(Feed),
    Receiver(Drain),
    /// Files go out: no payload is made for them.
    FileSender,
    FileReceiver(Nap),
}

impl UdtStream {
    /// As [`Self::new`], as what `spec` opens it for; one of files is kept alive from now on.
    ///
    /// # Errors
    /// `System` when a thread cannot be made.
    pub(super) fn open(socket: Socket, spec: &RunSpec, role: Role, number: u16) -> Result<Stream, Failure> {
        let stream = Self::new(socket, spec, role, number);
        if spec.copy.is_some() {
            return KeptAlive::wrap(Box::new(stream)).map(Stream::Bytes);
        }
        Ok(Stream::of_payload(stream, role))
    }

    /// Takes over a connection whose preamble has been sent or read.
    fn new(socket: Socket, spec: &RunSpec, role: Role, stream: u16) -> Self {
        let mut driver = socket.driver;
        driver.change_thread();
        let statistics = driver.statistics();
        let sizes = Sizes {
            payload_bytes: driver.connection.payload_bytes() as u64,
            packet_bytes: driver.packet_bytes() as u64,
            earlier_packets: match role {
                Role::Sender => statistics.sent_packets,
                Role::Receiver => statistics.received_packets,
            },
        };
        let block = spec.block_bytes.map_or(131_072, |block| {
            usize::try_from(block.get()).unwrap_or(usize::MAX)
        });
        let engine = match role {
            Role::Sender if spec.copy.is_some() => Engine::FileSender,
            Role::Receiver if spec.copy.is_some() => Engine::FileReceiver(nap(&driver)),
            Role::Sender => Engine::Sender(Feed::new(spec.seed, stream, block)),
            Role::Receiver => Engine::Receiver(Drain::new(&driver, block)),
        };
        let stream = Self {
            gauges: Gauges::new(&driver),
            driver,
            engine,
            spec: spec.clone(),
            sizes,
            published_ns: 0,
        };
        stream.publish();
        stream
    }

    fn role(&self) -> Role {
        match self.engine {
            Engine::Sender(_) | Engine::FileSender => Role::Sender,
            Engine::Receiver(_) | Engine::FileReceiver(_) => Role::Receiver,
        }
    }

    fn publish(&self) {
        self.gauges
            .publish(self.role(), &self.driver.statistics(), self.sizes);
    }

    /// Counts a block, and publishes if it is time.
    fn count(&mut self, bytes: usize) {
        if bytes > 0 {
            self.gauges.tally.count_block(bytes);
        }
        let now_ns = time::now_ns();
        if bytes == 0 || now_ns - self.published_ns >= PUBLISH_NS {
            self.published_ns = now_ns;
            self.publish();
        }
    }

    /// Counts what a call has brought.
    fn received(&mut self, received: Option<usize>) -> Result<Received, Failure> {
        self.count(received.unwrap_or(0));
        self.look_around()?;
        Ok(received.map_or(Received::End, Received::Bytes))
    }

    fn look_around(&self) -> Result<(), Failure> {
        if self.gauges.tally.is_aborted() {
            return Err(aborted());
        }
        Ok(())
    }
}

impl PayloadSource for UdtStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        self.look_around()?;
        let Engine::Sender(feed) = &mut self.engine else {
            return Err(wrong_end("send blocks on another stream"));
        };
        let taken = feed.send(&mut self.driver, &self.gauges, limit)?;
        self.count(taken);
        Ok(taken)
    }
}

impl PayloadSink for UdtStream {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        self.look_around()?;
        let Engine::Receiver(drain) = &mut self.engine else {
            return Err(wrong_end("receive blocks on another stream"));
        };
        drain.kept = 0;
        let received = read_some(&mut self.driver, &self.gauges, &mut drain.nap, &mut drain.buffer)?;
        drain.kept = received.unwrap_or(0);
        self.received(received)
    }

    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Engine::Receiver(drain) = &self.engine {
            visit(&drain.buffer[..drain.kept]);
        }
    }
}

impl ByteStream for UdtStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.look_around()?;
        let Engine::FileSender = &self.engine else {
            return Err(wrong_end("send files on another stream"));
        };
        let taken = write_bytes(&mut self.driver, &self.gauges, bytes)?;
        self.count(taken);
        Ok(taken)
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        self.look_around()?;
        let Engine::FileReceiver(nap) = &mut self.engine else {
            return Err(wrong_end("receive files on another stream"));
        };
        if into.is_empty() {
            return Ok(Received::Bytes(0));
        }
        let received = read_some(&mut self.driver, &self.gauges, nap, into)?;
        self.received(received)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.driver.connection.flush();
        self.tend().map(drop)
    }
}

impl Tended for UdtStream {
    fn tend(&mut self) -> Result<bool, Failure> {
        self.look_around()?;
        let mut is_busy = true;
        for _ in 0..MOST_TURNS {
            is_busy = self.driver.turn(&mut Reader::none())? > 0;
            if !is_busy {
                break;
            }
        }
        // One that has ended says so where that matters: to who sends or receives.
        self.publish();
        Ok(is_busy)
    }
}

impl StreamEnd for UdtStream {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        if self.role() == Role::Receiver {
            return Err(wrong_end("finish sending on a receiving stream"));
        }
        let linger_s = self.spec.udt.clone().unwrap_or_default().linger_s.get();
        let linger = Duration::from_secs_f64(linger_s);
        let left = deadline.saturating_duration_since(Instant::now()).min(linger);
        let until_ns = time::now_ns() + u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
        let gauges = Arc::clone(&self.gauges);
        let interrupted = || {
            if gauges.tally.is_aborted() {
                return Err(aborted());
            }
            Ok(())
        };
        let finished = self.driver.finish(until_ns, &interrupted);
        if finished.is_ok() {
            // What the other end does not have yet, it will not get: it must not wait for it.
            self.driver.connection.close(time::now_ns());
            let _ = self.driver.transmit();
        }
        self.publish();
        // Giving up at the deadline is what was asked for; what the user has allowed for lingering must be enough.
        if finished? || left < linger {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Timeout,
            format!("after a linger of {linger_s} s the other end still has not received everything"),
        ))
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Gauges>::clone(&self.gauges)
    }

    fn granted(&self) -> Granted {
        self.driver.granted(&self.spec)
    }
}
