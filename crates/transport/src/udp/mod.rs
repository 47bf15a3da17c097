//! Plain datagrams at a stated rate: loss, reordering and jitter are results.
//!
//! What it does: opens a stream by a handshake of its own, sends batches that the kernel cuts
//! into datagrams, receives batches that the kernel collects, keeps account of every sequence
//! number, and says at the end how many there were.
//! What it must not do: repeat data, slow down for loss, or take a datagram for data that does
//! not carry the stream's token.
//!
//! In: `UdpOptions` and the rate. Out: streams whose bytes are whole UDP payloads, farline's
//! 32-byte header included, as iperf3 counts them.
//!
//! ```text
//! opener                          listener                     who repeats
//!   hello (preamble)  ──────────►   new connected socket       opener, until welcome
//!                     ◄──────────   welcome                    listener, until confirm
//!   confirm           ──────────►                              opener, five times
//!                     ◄──────────   confirmed
//!   data              ◄─────────►
//!   end               ──────────►   sender to receiver         sender, until end-seen
//!                     ◄──────────   end-seen
//! ```
//!
//! Start with [`stream`]; [`handshake`] opens, [`sender`] and [`receiver`] move, [`header`] is the
//! wire, [`sequence`] and [`jitter`] are pure, [`options`] sets and reads back, [`application`] is who wants a copy.

mod application;
mod handshake;
mod header;
mod jitter;
mod link;
mod listener;
mod options;
mod receiver;
mod sender;
mod sequence;
mod stream;

use std::net::SocketAddr;

use farline_spec::{Failure, RunSpec};
use socket2::{Protocol, Type};

use crate::failure::{check_no_files, while_connecting};
use crate::socket::{SLICE, bind_source, canonical, family, labelled, open, set_tos};
use crate::{Capabilities, Connect, Listener, Stream, Transport};

/// Plain datagrams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Udp;

impl Transport for Udp {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reliable: false,
            carries_data: true,
            binds_addresses: true,
            why_not: "reliable: datagrams may be lost, duplicated or reordered; they are counted, not retransmitted",
            carries_files: false,
            sends_from_files: false,
            encrypts: false,
            shares_port: false,
        }
    }

    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure> {
        check_no_files(spec)?;
        Ok(Box::new(listener::UdpListener::bind(canonical(local), spec)?))
    }

    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure> {
        let (spec, remote) = (request.spec, canonical(request.remote));
        check_no_files(spec)?;
        let socket = open(remote, Type::DGRAM, Some(Protocol::UDP))
            .map_err(|error| Failure::system("UDP socket", &error))?;
        socket
            .set_read_timeout(Some(SLICE))
            .map_err(|error| Failure::system("socket time-out", &error))?;
        set_tos(&socket, spec, family(remote))?;
        bind_source(&socket, request, remote)?;
        let target = labelled(&socket, spec, remote)?;
        socket
            .connect(&target)
            .map_err(|error| while_connecting(remote, &error))?;
        handshake::open(&socket, request.key, remote, request.deadline)?;
        let stream = stream::UdpStream::new(socket, spec, request.role, request.key)?;
        Ok(Stream::of_payload(stream, request.role))
    }
}
