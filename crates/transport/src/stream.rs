//! One open stream, as those who use it see it.
//!
//! What a protocol offers is a [`ByteStream`]: bytes of somebody's, in order and whole. Measuring stands above it: a
//! [`PayloadSource`] sends blocks that it makes up, a [`PayloadSink`] receives them and need not keep them. A protocol
//! offers these itself where it can do better than bytes (sending from the kernel's pages, dropping what comes), or
//! because it carries nothing else (datagrams). Which of the three a stream is follows from what it was opened for.
//!
//! Order of calls, by one thread:
//!
//! ```text
//! opened ─► send, send_ahead, send_file, flush ─► finish_sending ─► dropped      ByteStream that sends
//! opened ─► receive ─► End ─► dropped                                            ByteStream that receives
//! opened ─► send_block ─► finish_sending ─► dropped                              PayloadSource
//! opened ─► receive_block, visit_received ─► End ─► dropped                      PayloadSink
//! any time, any thread:  probe().sample(), probe().abort()
//! ```
//!
//! After an error, or after `abort`, a stream is good for `granted`, `report` and its probe alone. Between calls nothing
//! need be done: what a protocol has to do in time (acknowledge, repeat, say that it is there) it does by itself.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use farline_spec::{Blast, Failure, FailureKind, Granted, PathCheck, RunSpec};

use crate::limit::{Limited, PacedSource};
use crate::{Counters, Role, SharedRate};

/// What one receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Payload bytes (0 is possible: a time-out slice without data; look at the stop flag and go on).
    Bytes(usize),
    /// The other end has finished; nothing more will come.
    End,
}

/// What every end of a stream has, whatever it carries.
pub trait StreamEnd: Send {
    /// Looks at and stops the stream from other threads.
    fn probe(&self) -> Arc<dyn Probe>;

    /// What the kernel granted; asked after set-up and again at the end.
    fn granted(&self) -> Granted;

    /// What the protocol itself has to tell; asked at the end.
    fn report(&self) -> StreamReport {
        StreamReport::default()
    }

    /// Tells the other end that all is sent, and waits until the transport has
    /// delivered what it can, or until `deadline`. Of files the other end says itself what it has: a transport that
    /// delivers without this process does not wait.
    ///
    /// # Errors
    /// The transport's own; `Internal` of an end that receives.
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure>;
}

/// Bytes that belong to somebody, one way, in order and whole, or the stream fails. Used by one thread.
///
/// What calls take is not what receives give: it is a stream.
pub trait ByteStream: StreamEnd {
    /// Sends some of `bytes`; gives how many were taken. Blocks at most about 100 ms; 0 means that nothing could be sent in
    /// that time: look around and go on.
    ///
    /// # Errors
    /// The transport's own; `Internal` of an end that receives.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure>;

    /// As [`Self::send`], of bytes that more follows at once: they need not go before it comes.
    ///
    /// # Errors
    /// As [`Self::send`].
    fn send_ahead(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.send(bytes)
    }

    /// As [`Self::send`], of at most `most` bytes of `file` from `offset` on, which the kernel takes from the page cache by
    /// itself. `None` where the file gives nothing (it ends there, or its file system cannot do that), and always without
    /// [`Capabilities::sends_from_files`](crate::Capabilities::sends_from_files): read and send then.
    ///
    /// What is changed in the file before the other end has received it may arrive changed.
    ///
    /// # Errors
    /// As [`Self::send`].
    fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> Result<Option<usize>, Failure> {
        let _ = (file, offset, most);
        Ok(None)
    }

    /// Receives what was sent at the other end into `into`. Blocks for about 100 ms at most.
    ///
    /// # Errors
    /// As [`Self::send`]; also when the other end is gone before it has finished.
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure>;

    /// Nothing may follow for a while: what was sent must not wait for more to fill a packet, a burst or a blast.
    ///
    /// # Errors
    /// As [`Self::send`].
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The end of a measured stream that sends blocks of its own making. Used by one thread.
pub trait PayloadSource: StreamEnd {
    /// Sends one block of at most `limit` payload bytes; gives the bytes taken, which
    /// may be fewer. Blocks until the transport took them. 0 means that nothing could
    /// be sent within about 100 ms: look at the stop flag and go on.
    ///
    /// # Errors
    /// The transport's own.
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure>;
}

/// The end of a measured stream that receives blocks. Used by one thread.
pub trait PayloadSink: StreamEnd {
    /// Receives up to one block. Blocks for about 100 ms at most, so that the caller can look at its stop flag.
    ///
    /// # Errors
    /// The transport's own.
    fn receive_block(&mut self) -> Result<Received, Failure>;

    /// Shows the payload of the last [`Self::receive_block`], piece by piece in order of arrival.
    /// Nothing where the bytes are not kept: null streams, receiving by discard, calls that
    /// brought more than the 256 KiB that are kept.
    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        let _ = visit;
    }
}

/// One open stream, by what it was opened for.
pub enum Stream {
    /// Carries files, one way or the other.
    Bytes(Box<dyn ByteStream>),
    /// Sends blocks.
    Source(Box<dyn PayloadSource>),
    /// Receives blocks.
    Sink(Box<dyn PayloadSink>),
}

impl Stream {
    /// `stream`, of a protocol that offers all three, as what `spec` opens it for.
    pub(crate) fn of<S>(stream: S, spec: &RunSpec, role: Role) -> Self
    where
        S: ByteStream + PayloadSource + PayloadSink + 'static,
    {
        match role {
            _ if spec.copy.is_some() => Self::Bytes(Box::new(stream)),
            Role::Sender => Self::Source(Box::new(stream)),
            Role::Receiver => Self::Sink(Box::new(stream)),
        }
    }

    /// `stream`, of a protocol that carries nobody's bytes.
    pub(crate) fn of_payload<S>(stream: S, role: Role) -> Self
    where
        S: PayloadSource + PayloadSink + 'static,
    {
        match role {
            Role::Sender => Self::Source(Box::new(stream)),
            Role::Receiver => Self::Sink(Box::new(stream)),
        }
    }

    /// The stream held to `rate_bps` payload bits per second at most, on the long-term mean, where it sends; 0 is no rate.
    #[must_use]
    pub fn at_rate(self, rate_bps: u64, role: Role) -> Self {
        match self {
            _ if rate_bps == 0 || role == Role::Receiver => self,
            Self::Source(inner) => Self::Source(Box::new(PacedSource::new(inner, rate_bps))),
            Self::Bytes(_) => self.sharing(Arc::new(SharedRate::new(rate_bps))),
            Self::Sink(_) => self,
        }
    }

    /// The stream, of files, sending in its share of `rate`; one that receives, or carries blocks, stays as it is.
    #[must_use]
    pub fn sharing(self, rate: Arc<SharedRate>) -> Self {
        match self {
            Self::Bytes(inner) => Self::Bytes(Box::new(Limited::with_rate(inner, rate))),
            Self::Source(_) | Self::Sink(_) => self,
        }
    }

    /// The bytes of a stream that was opened for files.
    ///
    /// # Errors
    /// `Internal` of a stream that was opened for blocks.
    pub fn bytes(&mut self) -> Result<&mut dyn ByteStream, Failure> {
        match self {
            Self::Bytes(bytes) => Ok(&mut **bytes),
            Self::Source(_) | Self::Sink(_) => Err(wrong_end("move files on a stream of blocks")),
        }
    }

    /// The sending end of a stream of blocks.
    ///
    /// # Errors
    /// `Internal` of any other.
    pub fn source(&mut self) -> Result<&mut dyn PayloadSource, Failure> {
        match self {
            Self::Source(source) => Ok(&mut **source),
            Self::Bytes(_) | Self::Sink(_) => Err(wrong_end("send a block among files or where blocks come")),
        }
    }

    /// The receiving end of a stream of blocks.
    ///
    /// # Errors
    /// `Internal` of any other.
    pub fn sink(&mut self) -> Result<&mut dyn PayloadSink, Failure> {
        match self {
            Self::Sink(sink) => Ok(&mut **sink),
            Self::Bytes(_) | Self::Source(_) => {
                Err(wrong_end("receive a block among files or where blocks go"))
            }
        }
    }

    /// As [`StreamEnd::probe`].
    pub fn probe(&self) -> Arc<dyn Probe> {
        match self {
            Self::Bytes(end) => end.probe(),
            Self::Source(end) => end.probe(),
            Self::Sink(end) => end.probe(),
        }
    }

    /// As [`StreamEnd::granted`].
    pub fn granted(&self) -> Granted {
        match self {
            Self::Bytes(end) => end.granted(),
            Self::Source(end) => end.granted(),
            Self::Sink(end) => end.granted(),
        }
    }

    /// As [`StreamEnd::report`].
    pub fn report(&self) -> StreamReport {
        match self {
            Self::Bytes(end) => end.report(),
            Self::Source(end) => end.report(),
            Self::Sink(end) => end.report(),
        }
    }

    /// As [`StreamEnd::finish_sending`].
    ///
    /// # Errors
    /// As there.
    pub fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        match self {
            Self::Bytes(end) => end.finish_sending(deadline),
            Self::Source(end) => end.finish_sending(deadline),
            Self::Sink(end) => end.finish_sending(deadline),
        }
    }
}

/// A call that the stream was not opened for: a fault of who made it.
pub(crate) fn wrong_end(what: &str) -> Failure {
    Failure::new(FailureKind::Internal, what)
}

/// What a protocol has to tell about one end of a stream, besides its counters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StreamReport {
    /// Blasts that ended whole, the first [`MAX_BLASTS`] of them.
    pub blasts: Vec<Blast>,
    /// All blasts that ended whole.
    pub whole_blasts: u64,
    /// What the path carried before the blasts began.
    pub path_check: Option<PathCheck>,
}

impl StreamReport {
    /// Counts a blast that ended whole, and keeps it while there is room.
    pub(crate) fn keep(&mut self, blast: Blast) {
        self.whole_blasts += 1;
        if self.blasts.len() < MAX_BLASTS {
            self.blasts.push(blast);
        }
    }
}

/// Most blasts that one end of a stream keeps for its record.
pub const MAX_BLASTS: usize = 256;

/// A stream as other threads see it.
pub trait Probe: Send + Sync {
    /// Counters and gauges now. Counters run from the stream's start.
    fn sample(&self) -> Counters;

    /// Makes a blocked send or receive return at once with an error or [`Received::End`].
    fn abort(&self);

    /// Nothing more is wanted of the other end, which has said by other means that it was all: a receive gives what has come
    /// and then [`Received::End`], if the protocol can tell that by itself. Otherwise the other end's own end is waited for.
    fn end_receiving(&self) {}
}
