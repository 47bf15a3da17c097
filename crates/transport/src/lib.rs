//! Transports behind one trait.
//!
//! A transport is defined by its callbacks and its tunable parameters (Yun et al. 2015,
//! section III.B): listen, accept, connect, send, receive, sample,
//! close. One folder per protocol; one contract suite (`tests/contract.rs`) that
//! every one of them passes, whose gaps are data with a reason ([`Capabilities`]).
//!
//! What it does: turns a [`RunSpec`] into open streams and moves bytes and blocks over them,
//! blocking, one thread per stream, no async runtime. A protocol that has to act in time while
//! its stream waits elsewhere has a small thread of its own for that ([`kept_alive`]).
//! What it must not do: decide how long a run lasts, keep records, know about files, tickets
//! or the control channel; a protocol knows no other one.
//!
//! In: a resolved [`RunSpec`], addresses, a [`StreamKey`] that proves who opens a
//! stream. Out: [`Stream`]s; each gives a [`Probe`] by which another thread may
//! look at it or stop it while it runs.
//!
//! Order of calls: [`Transport::listen`] at one end, then [`Transport::connect`] at the other while
//! [`Listener::accept`] waits, then those of [`stream`]. A listener may be dropped once its streams
//! are open. What can be had of a transport beyond the contract stands in its [`Capabilities`], so
//! that nobody asks which one it is.
//!
//! Start with [`Transport`], [`ByteStream`] and [`transport_for`], the one place that chooses.

mod choose;
mod counters;
mod crowd;
mod failure;
mod generated;
mod kept_alive;
mod limit;
mod nap;
mod null;
mod payload;
mod preamble;
mod quic;
mod rbudp;
mod share;
mod socket;
mod stream;
mod tally;
mod tcp;
mod udp;
pub mod udt;

pub use choose::transport_for;
pub use counters::Counters;
pub use crowd::{Crowd, Prefix, Shares};
pub use farline_proto::Pacer;
pub use payload::{MAX_PAYLOAD_BYTES, payload};
pub use preamble::{is_data_preamble, session_of_preamble, stream_of_preamble};
pub use share::{Share, SharedRate};
pub use stream::{
    ByteStream, MAX_BLASTS, PayloadSink, PayloadSource, Probe, Received, Stream, StreamEnd, StreamReport,
};
pub use tcp::connect_with as connect_tcp;
pub use tcp::listener::handoff_listener;
pub use tcp::own_listener::needs_own_listener;

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use farline_spec::{Failure, RunSpec};

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

/// What a transport can and cannot do.
///
/// The first three are promises of the contract: a `false` there comes with the reason in `why_not`. The others are what
/// some protocols bring beyond it, for callers that use it where it is.
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
    /// Streams carry files: [`ByteStream`].
    pub carries_files: bool,
    /// The kernel takes from files by itself: [`ByteStream::send_file`].
    pub sends_from_files: bool,
    /// Payload is encrypted and authenticated on its way, with keys that only the two ends of the session have: nothing
    /// need be sealed before it.
    pub encrypts: bool,
    /// Listeners of several sessions may share one port, each getting its own streams: a server needs one port for all.
    pub shares_port: bool,
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
    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure>;
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
    ) -> Result<(u16, Stream), Failure>;
}
