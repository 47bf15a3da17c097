//! One open stream of a run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_proto::udt::{Closed, Reader};
use farline_spec::{Failure, FailureKind, Granted, RunSpec};
use farline_sys::datagram::RECEIVE_BYTES;
use farline_sys::time;

use super::SLICE_NS;
use super::driver::Driver;
use super::gauges::{Gauges, Sizes};
use super::socket::Socket;
use crate::buffer::PageBuffer;
use crate::failure::aborted;
use crate::nap::Nap;
use crate::payload::{MAX_PAYLOAD_BYTES, payload};
use crate::{Probe, Received, Role, Stream};

/// How often the figures are published.
const PUBLISH_NS: u64 = 1_000_000;
/// Bytes written between two turns: what leaves while it is still in the cache.
const PIECE_BYTES: usize = RECEIVE_BYTES;

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
}

/// What is sent: the payload, over and over.
struct Feed {
    payload: PageBuffer,
    block: usize,
    /// Where in the payload the next byte lies.
    offset: usize,
}

/// Where bytes are received to.
struct Drain {
    buffer: PageBuffer,
    /// Bytes of the last call that are still in the buffer.
    kept: usize,
    nap: Nap,
}

impl UdtStream {
    /// Takes over a connection whose preamble has been sent or read.
    pub(super) fn new(socket: Socket, spec: &RunSpec, role: Role, stream: u16) -> Self {
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
            Engine::Sender(_) => Role::Sender,
            Engine::Receiver(_) => Role::Receiver,
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

    fn look_around(&self) -> Result<(), Failure> {
        if self.gauges.tally.is_aborted() {
            return Err(aborted());
        }
        Ok(())
    }
}

impl Feed {
    fn new(seed: u64, stream: u16, block: usize) -> Self {
        let bytes = payload(seed, stream, block.min(MAX_PAYLOAD_BYTES));
        let mut payload = PageBuffer::new(bytes.len());
        payload.copy_from_slice(&bytes);
        Self {
            payload,
            block,
            offset: 0,
        }
    }

    /// Writes up to `most` bytes to the connection; gives how many it took.
    #[inline]
    fn write(&mut self, driver: &mut Driver, most: usize) -> usize {
        let end = self.payload.len().min(self.offset + most.min(PIECE_BYTES));
        let piece = &self.payload[self.offset..end];
        let taken = driver.connection.write(time::now_ns(), piece);
        self.offset = (self.offset + taken) % self.payload.len();
        taken
    }

    /// Sends a block of at most `limit` bytes; gives what the connection took within a slice.
    fn send(&mut self, driver: &mut Driver, gauges: &Gauges, limit: usize) -> Result<usize, Failure> {
        // What a time slice cut short is completed first, so that blocks begin where the payload begins.
        let to_end = self.payload.len() - self.offset;
        let whole = if self.offset == 0 { self.block } else { to_end };
        let wanted = whole.min(limit);
        let until_ns = time::now_ns() + SLICE_NS;
        let mut taken = 0;
        loop {
            let written = self.write(driver, wanted - taken);
            taken += written;
            let moved = driver.turn(&mut Reader::none())?;
            if let Some(closed) = driver.closed() {
                return Err(driver.failure(closed));
            }
            if taken == wanted || gauges.tally.is_aborted() || time::now_ns() >= until_ns {
                return Ok(taken);
            }
            if moved == 0 && written == 0 {
                driver.wait(until_ns)?;
            }
        }
    }
}

impl Drain {
    fn new(driver: &Driver, block: usize) -> Self {
        let socket_bytes = driver.member.port.socket.recv_buffer_size().unwrap_or(0);
        Self {
            buffer: PageBuffer::new(block.min(MAX_PAYLOAD_BYTES)),
            kept: 0,
            nap: Nap::new(socket_bytes),
        }
    }

    /// Receives up to a block, or as much of it as is kept; none at the end.
    fn receive(&mut self, driver: &mut Driver, gauges: &Gauges) -> Result<Option<usize>, Failure> {
        let until_ns = time::now_ns() + SLICE_NS;
        loop {
            self.kept = driver.fill(&mut self.buffer)?;
            if self.kept > 0 {
                return Ok(Some(self.kept));
            }
            if driver.connection.readable_bytes() > 0 {
                continue;
            }
            match driver.closed() {
                None => {}
                Some(Closed::ByPeer | Closed::ByUs) => return Ok(None),
                Some(closed) => return Err(driver.failure(closed)),
            }
            if gauges.tally.is_aborted() || time::now_ns() >= until_ns {
                return Ok(Some(0));
            }
            self.rest(driver, until_ns)?;
        }
    }

    fn rest(&mut self, driver: &mut Driver, until_ns: u64) -> Result<(), Failure> {
        self.nap.received(time::now_ns(), 0);
        match self.nap.length_ns() {
            0 => driver.wait(until_ns),
            nap_ns => {
                driver.nap(nap_ns);
                Ok(())
            }
        }
    }
}

impl Stream for UdtStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        self.look_around()?;
        let Engine::Sender(feed) = &mut self.engine else {
            return Err(wrong_end("send on a receiving stream"));
        };
        let taken = feed.send(&mut self.driver, &self.gauges, limit)?;
        self.count(taken);
        Ok(taken)
    }

    fn receive_block(&mut self) -> Result<Received, Failure> {
        self.look_around()?;
        let Engine::Receiver(drain) = &mut self.engine else {
            return Err(wrong_end("receive on a sending stream"));
        };
        drain.kept = 0;
        let received = drain.receive(&mut self.driver, &self.gauges)?;
        let bytes = received.unwrap_or(0);
        if bytes > 0 {
            drain.nap.received(time::now_ns(), bytes);
        }
        self.count(bytes);
        self.look_around()?;
        Ok(received.map_or(Received::End, Received::Bytes))
    }

    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Engine::Receiver(drain) = &self.engine {
            visit(&drain.buffer[..drain.kept]);
        }
    }

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
            format!("linger of {linger_s} s: the other end does not have everything"),
        ))
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Gauges>::clone(&self.gauges)
    }

    fn granted(&self) -> Granted {
        self.driver.granted(&self.spec)
    }
}

fn wrong_end(what: &str) -> Failure {
    Failure::new(FailureKind::Internal, what)
}
