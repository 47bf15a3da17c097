//! Streams in memory for tests: a bounded queue of block lengths between two ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender, bounded};
use farline_spec::{Failure, FailureKind, Granted};
use farline_transport::{Counters, PayloadSink, PayloadSource, Probe, Received, StreamEnd};

/// As long as a transport waits before it lets the loop look around.
const SLICE: Duration = Duration::from_millis(100);

/// What a stream does instead of working.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    /// Fails with [`FailureKind::Protocol`] after so many blocks.
    FailsAfter(i64),
    /// Panics after so many blocks.
    PanicsAfter(i64),
    /// Never says that it has ended.
    NeverEnds,
    /// Does not return from a call, not even when aborted, for so many milliseconds.
    Hangs(u64),
}

#[derive(Default)]
struct Shared {
    bytes: AtomicI64,
    blocks: AtomicI64,
    aborted: AtomicBool,
}

impl Probe for Shared {
    fn sample(&self) -> Counters {
        Counters {
            bytes: self.bytes.load(Ordering::Relaxed),
            blocks: self.blocks.load(Ordering::Relaxed),
            ..Counters::UNKNOWN
        }
    }

    fn abort(&self) {
        self.aborted.store(true, Ordering::Relaxed);
    }
}

enum Side {
    Sender(Option<Sender<usize>>),
    Receiver(Receiver<usize>),
}

/// One end of a stream in memory.
pub(super) struct FakeStream {
    side: Side,
    shared: Arc<Shared>,
    fault: Fault,
    block_time: Duration,
}

/// The two ends of a stream: sender first.
pub(super) fn pair(send_fault: Fault, receive_fault: Fault) -> (Box<FakeStream>, Box<FakeStream>) {
    let (sender, receiver) = bounded(16);
    let end = |side, fault| {
        Box::new(FakeStream {
            side,
            shared: Arc::default(),
            fault,
            block_time: Duration::from_micros(200),
        })
    };
    (
        end(Side::Sender(Some(sender)), send_fault),
        end(Side::Receiver(receiver), receive_fault),
    )
}

impl FakeStream {
    fn misbehave(&self) -> Result<(), Failure> {
        let blocks = self.shared.blocks.load(Ordering::Relaxed);
        match self.fault {
            Fault::FailsAfter(limit) if blocks >= limit => Err(Failure::new(
                FailureKind::Protocol,
                "connection reset by the test",
            )),
            Fault::PanicsAfter(limit) if blocks >= limit => panic!("as the test wants it"),
            Fault::Hangs(time_ms) => {
                std::thread::sleep(Duration::from_millis(time_ms));
                Ok(())
            }
            _ if self.shared.aborted.load(Ordering::Relaxed) => {
                Err(Failure::new(FailureKind::Interrupted, "aborted"))
            }
            _ => Ok(()),
        }
    }

    fn count(&self, bytes: usize) -> usize {
        self.shared.bytes.fetch_add(bytes as i64, Ordering::Relaxed);
        self.shared.blocks.fetch_add(1, Ordering::Relaxed);
        bytes
    }
}

impl PayloadSource for FakeStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        self.misbehave()?;
        std::thread::sleep(self.block_time);
        let Side::Sender(Some(queue)) = &self.side else {
            panic!("not an open sender")
        };
        // Takes less than it is offered, as a socket may.
        let taken = limit.div_ceil(2);
        match queue.send_timeout(taken, SLICE) {
            Ok(()) => Ok(self.count(taken)),
            Err(SendTimeoutError::Timeout(_)) => Ok(0),
            Err(SendTimeoutError::Disconnected(_)) => {
                Err(Failure::new(FailureKind::Protocol, "peer is gone"))
            }
        }
    }
}

impl PayloadSink for FakeStream {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        self.misbehave()?;
        let Side::Receiver(queue) = &self.side else {
            panic!("not a receiver")
        };
        match queue.recv_timeout(SLICE) {
            Ok(bytes) => Ok(Received::Bytes(self.count(bytes))),
            Err(RecvTimeoutError::Disconnected) if self.fault != Fault::NeverEnds => Ok(Received::End),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(SLICE);
                Ok(Received::Bytes(0))
            }
            Err(RecvTimeoutError::Timeout) => Ok(Received::Bytes(0)),
        }
    }
}

impl StreamEnd for FakeStream {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        let Side::Sender(queue) = &mut self.side else {
            panic!("not a sender")
        };
        while queue.as_ref().is_some_and(|queue| !queue.is_empty()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        *queue = None;
        Ok(())
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Shared>::clone(&self.shared)
    }

    fn granted(&self) -> Granted {
        Granted {
            local: "memory".to_owned(),
            ..Granted::default()
        }
    }
}
