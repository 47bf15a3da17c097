//! Transports behind one trait.
//!
//! A transport is defined by its callbacks and its tunable parameters (Yun et al. 2015,
//! section III.B): listen, accept, connect, send a block, receive a block, sample,
//! close. One folder per protocol; one contract suite (`tests/contract.rs`) that
//! every one of them passes, whose gaps are data with a reason ([`Capabilities`]).
//!
//! What it does: turns a [`RunSpec`] into open streams and moves blocks over them,
//! blocking, one thread per stream, no async runtime.
//! What it must not do: decide how long a run lasts, start threads, keep records,
//! know about files, tickets or the control channel.
//!
//! In: a resolved [`RunSpec`], addresses, a [`StreamKey`] that proves who opens a
//! stream. Out: [`Stream`]s; each gives a [`Probe`] by which another thread may
//! look at it or stop it while it runs.
//!
//! Start with [`Transport`] and [`transport_for`], the one place that chooses.

mod crowd;
mod failure;
mod limit;
mod nap;
mod null;
mod payload;
mod preamble;
mod rbudp;
mod share;
mod socket;
mod tally;
mod tcp;
mod udp;
pub mod udt;

pub use crowd::{Crowd, Prefix, Shares};
pub use farline_proto::Pacer;
pub use limit::Limited;
pub use payload::{MAX_PAYLOAD_BYTES, payload};
pub use preamble::{is_data_preamble, session_of_preamble, stream_of_preamble};
pub use share::{Share, SharedRate};
pub use tcp::connect_with as connect_tcp;
pub use tcp::handoff::{handoff_listener, needs_own_listener};

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use farline_spec::{Blast, Failure, Granted, PathCheck, RunSpec};

/// Opens a data stream: names it and proves that the opener holds the control session.
///
/// `proof` is derived from the TLS session of the control channel (exporter), so
/// nobody else can open the stream; it differs from stream to stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamKey {
    /// Number of the stream in its session, from 0.
    pub stream: u16,
    /// Session the stream belongs to; public, made by the server.
    pub session: [u8; 16],
    /// Proof of the right to open it; secret until it is sent.
    pub proof: [u8; 32],
}

/// Which of its two jobs an end of a stream does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends blocks.
    Sender,
    /// Receives blocks.
    Receiver,
}

/// What a transport can and cannot do. A `false` comes with the reason in `why_not`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Every byte sent arrives, in order, once, or the stream fails.
    pub reliable: bool,
    /// What arrives is what was sent (false for a transport that moves nothing).
    pub carries_data: bool,
    /// Streams bind to addresses and devices.
    pub binds_addresses: bool,
    /// Reason for each `false` above; empty if there is none.
    pub why_not: &'static str,
}

/// Protocol that carries data streams.
pub trait Transport: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Listens on `local` (port 0: the kernel chooses) for streams of one session.
    ///
    /// Socket options that must stand before a connection exists (buffers, MSS,
    /// MPTCP) are taken from `spec`.
    ///
    /// # Errors
    /// [`FailureKind::Busy`](farline_spec::FailureKind::Busy) when the port is taken, so that the next one
    /// can be tried; `Spec` when the address is not one of this host or an option cannot be honoured.
    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure>;

    /// Opens the stream `key` towards `remote`, from `local.source` if given.
    fn connect(&self, request: &Connect<'_>) -> Result<Box<dyn Stream>, Failure>;
}

/// What [`Transport::connect`] needs.
#[derive(Debug, Clone, Copy)]
pub struct Connect<'a> {
    /// Whole spec of the run.
    pub spec: &'a RunSpec,
    /// Job of the connecting end.
    pub role: Role,
    /// Address to bind to.
    pub source: Option<IpAddr>,
    /// Device to bind to.
    pub source_device: Option<&'a str>,
    /// Address and port of the other end's listener.
    pub remote: SocketAddr,
    /// Name and proof of the stream.
    pub key: &'a StreamKey,
    /// When to give up.
    pub deadline: Instant,
}

/// Waits for the streams of one session on one address.
pub trait Listener: Send {
    /// Address the other end must connect to.
    fn local_addr(&self) -> SocketAddr;

    /// Next stream whose key is among `expected`, with the role `role_of` gives for
    /// its number. Openers with a wrong key are dropped and waiting goes on:
    /// a stranger can neither end a session nor become part of it. Openers that are
    /// half-way through stay so between two calls.
    ///
    /// # Errors
    /// `Timeout` when the deadline has passed; call again to wait on.
    fn accept(
        &mut self,
        spec: &RunSpec,
        expected: &[StreamKey],
        role_of: &dyn Fn(u16) -> Role,
        deadline: Instant,
    ) -> Result<(u16, Box<dyn Stream>), Failure>;
}

/// What one receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Payload bytes (0 is possible: a time-out slice without data; look at the stop flag and go on).
    Bytes(usize),
    /// The other end has finished; nothing more will come.
    End,
}

/// One open data stream; used by one thread.
pub trait Stream: Send {
    /// Sends one block of at most `limit` payload bytes; gives the bytes taken, which
    /// may be fewer. Blocks until the transport took them. 0 means that nothing could
    /// be sent within about 100 ms: look at the stop flag and go on.
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure>;

    /// Receives up to one block. Blocks for about 100 ms at most, so that the caller can look at its stop flag.
    fn receive_block(&mut self) -> Result<Received, Failure>;

    /// Shows the payload of the last [`Self::receive_block`], piece by piece in order of arrival.
    /// Nothing where the bytes are not kept: null streams, receiving by discard, calls that
    /// brought more than the 256 KiB that are kept.
    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        let _ = visit;
    }

    /// Sends some of `bytes`, which belong to somebody; gives how many were taken. Blocks at most about 100 ms; 0 means
    /// that nothing could be sent in that time: look around and go on.
    ///
    /// Bytes arrive in order and whole, or the stream fails. What calls take is not what receives give: it is a stream.
    /// A stream is used with blocks or with bytes, never with both.
    ///
    /// # Errors
    /// `Spec` from a transport that carries nobody's bytes; the transport's own.
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let _ = bytes;
        Err(carries_no_files())
    }

    /// As [`Self::send`], of bytes that more follows at once: they need not go before it comes.
    ///
    /// # Errors
    /// As [`Self::send`].
    fn send_ahead(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.send(bytes)
    }

    /// As [`Self::send`], of at most `most` bytes of `file` from `offset` on, which the kernel takes from the page cache by
    /// itself. `None` where the file gives nothing: it ends there, or its file system cannot do that.
    ///
    /// What is changed in the file before the other end has received it may arrive changed.
    ///
    /// # Errors
    /// As [`Self::send`]; `Spec` from every transport but TCP.
    fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> Result<Option<usize>, Failure> {
        let _ = (file, offset, most);
        Err(carries_no_files())
    }

    /// Receives what [`Self::send`] took at the other end into `into`. Blocks for about 100 ms at most.
    ///
    /// # Errors
    /// As [`Self::send`]; also when the other end is gone before it has finished.
    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        let _ = into;
        Err(carries_no_files())
    }

    /// Nothing may follow for a while: what was sent must not wait for more to fill a packet, a burst or a blast.
    ///
    /// # Errors
    /// As [`Self::send`].
    fn flush(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether the protocol lives within calls alone. Then [`Self::tend`] is to be called about a hundred times a second
    /// while nothing else is, or the other end takes this one for dead.
    fn lives_within_calls(&self) -> bool {
        false
    }

    /// Does what time and the other end demand, without waiting: this end has nothing to send for a while, or no room for
    /// what comes. Gives whether there is more to do at once.
    ///
    /// # Errors
    /// The transport's own.
    fn tend(&mut self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Tells the other end that all is sent, and waits until the transport has
    /// delivered what it can, or until `deadline`. Of files the other end says itself what it has: a transport that
    /// delivers without this process does not wait.
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure>;

    /// Looks at and stops the stream from other threads.
    fn probe(&self) -> Arc<dyn Probe>;

    /// What the kernel granted; asked after set-up and again at the end.
    fn granted(&self) -> Granted;

    /// What the protocol itself has to tell; asked at the end.
    fn report(&self) -> StreamReport {
        StreamReport::default()
    }
}

/// What a transport says that moves blocks of its own making only.
fn carries_no_files() -> Failure {
    failure::refused(
        "transport",
        "this transport cannot copy files; use tcp, udt or rbudp",
    )
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

/// Counters (from the start of the stream) and gauges of one end of a stream.
///
/// −1 is "not known here". Names, units and meanings are those of
/// [`farline_spec::Samples`]; times limited are cumulative here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each field is explained at the column of the same name"
)]
pub struct Counters {
    pub bytes: i64,
    pub blocks: i64,
    pub packets: i64,
    pub lost_packets: i64,
    pub reordered_packets: i64,
    pub duplicate_packets: i64,
    pub jitter_ns: i64,
    pub retransmits: i64,
    pub rtt_us: i64,
    pub rttvar_us: i64,
    pub min_rtt_us: i64,
    pub cwnd_bytes: i64,
    pub receive_window_bytes: i64,
    pub pacing_rate_bps: i64,
    pub delivery_rate_bps: i64,
    pub busy_us: i64,
    pub receive_window_limited_us: i64,
    pub send_buffer_limited_us: i64,
    pub path_mtu_bytes: i64,
    pub zerocopy_copied_bytes: i64,
    pub zerocopy_true_bytes: i64,
    pub paced_wait_us: i64,
    pub sent_acks: i64,
    pub received_acks: i64,
    pub sent_naks: i64,
    pub received_naks: i64,
    pub send_period_ns: i64,
    pub flow_window_packets: i64,
    pub flight_packets: i64,
    pub link_capacity_bps: i64,
    pub send_buffer_free_bytes: i64,
    pub receive_buffer_free_bytes: i64,
    /// Bytes given to the transport that the other end has not acknowledged; no column of samples.
    pub unacknowledged_bytes: i64,
}

impl Counters {
    /// Nothing known.
    pub const UNKNOWN: Self = Self {
        bytes: -1,
        blocks: -1,
        packets: -1,
        lost_packets: -1,
        reordered_packets: -1,
        duplicate_packets: -1,
        jitter_ns: -1,
        retransmits: -1,
        rtt_us: -1,
        rttvar_us: -1,
        min_rtt_us: -1,
        cwnd_bytes: -1,
        receive_window_bytes: -1,
        pacing_rate_bps: -1,
        delivery_rate_bps: -1,
        busy_us: -1,
        receive_window_limited_us: -1,
        send_buffer_limited_us: -1,
        path_mtu_bytes: -1,
        zerocopy_copied_bytes: -1,
        zerocopy_true_bytes: -1,
        paced_wait_us: -1,
        sent_acks: -1,
        received_acks: -1,
        sent_naks: -1,
        received_naks: -1,
        send_period_ns: -1,
        flow_window_packets: -1,
        flight_packets: -1,
        link_capacity_bps: -1,
        send_buffer_free_bytes: -1,
        receive_buffer_free_bytes: -1,
        unacknowledged_bytes: -1,
    };
}

/// The transport that `spec` names: the one place that chooses.
pub fn transport_for(spec: &RunSpec) -> Box<dyn Transport> {
    match spec.transport {
        farline_spec::Transport::Tcp => Box::new(tcp::Tcp),
        farline_spec::Transport::Udp => Box::new(udp::Udp),
        farline_spec::Transport::Udt => Box::new(udt::Udt),
        farline_spec::Transport::Rbudp => Box::new(rbudp::Rbudp),
        farline_spec::Transport::Null => Box::new(null::Null),
    }
}
