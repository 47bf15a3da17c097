//! Reliable Blast UDP (He et al. 2002): datagrams at a stated rate, reports of what is missing over TCP.
//!
//! What it does: opens a TCP connection and a UDP socket for each stream, runs the machines of `farline_proto::rbudp` over
//! them, takes what is sent from memory, a file or the caller and puts what comes into memory or a file, in the three ways of the paper
//! ([`place`]); checks before the first blast whether the path is somebody else's too ([`path_check`]).
//! What it must not do: decide what is repeated, reported or whole (the machines do), slow down for others (the rate is
//! what was asked for; `loss_bound` is the machine's), take a datagram for data that does not carry the stream's token.
//!
//! In: `RbudpOptions` and the rate. Out: streams whose bytes are payload, checked where they were put.
//!
//! ```text
//! opener                                listener
//!   preamble            ── TCP ──►      knows which stream
//!   preamble, repeated  ── UDP ──►      connects a socket of its own to where it came from
//!                       ◄── TCP ──      offer: the datagrams that fit here
//!   offer               ── TCP ──►
//!   pings, trains       ◄─────────►     path check, on the first stream of a direction
//! ```
//!
//! Start with [`stream`]; [`opening`] and [`listener`] open, [`sender`] (with [`bursts`]) and [`receiver`] drive the machines, [`feedback`] is
//! the TCP connection, [`source`] and [`place`] are where bytes come from and go to, [`outbox`] and [`handing`] where files do,
//! [`options`] sets and reads back.

mod bursts;
mod feedback;
mod handing;
mod link;
mod listener;
mod memory;
mod opening;
mod options;
mod outbox;
mod parts;
mod path_check;
mod place;
mod receiver;
mod round_trip;
mod sender;
mod source;
mod stream;

use std::net::SocketAddr;

use farline_spec::{Failure, RunSpec};

use crate::socket::canonical;
use crate::{Capabilities, Connect, Listener, Stream, Transport};

/// Reliable Blast UDP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rbudp;

impl Transport for Rbudp {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reliable: true,
            carries_data: true,
            binds_addresses: true,
            why_not: "",
            carries_files: true,
            sends_from_files: false,
            encrypts: false,
            shares_port: false,
        }
    }

    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure> {
        Ok(Box::new(listener::RbudpListener::bind(canonical(local), spec)?))
    }

    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure> {
        opening::open(request)
    }
}
