//! The kernel's TCP, and Multipath TCP.
//!
//! What it does: opens streams whose first bytes are a preamble ([`crate::preamble`]), applies
//! every field of `TcpOptions` where it has to stand (buffers, MSS and MPTCP before the
//! connection exists), and moves blocks by four ways of sending and three of receiving.
//! What it must not do: pace by itself ([`crate::limit`] does), answer an opener (a refused one
//! sees its connection closed, an accepted one the run begin).
//!
//! In: options as asked for. Out: streams, and in their `Granted` what the kernel made of the
//! options. A request that cannot be honoured at all is a failure, one that the kernel changed a note.
//!
//! Start with [`stream`]; [`options`] sets and reads back, [`listener`] sorts openers, of a port of its own or not ([`own_listener`]: for what it needs one),
//! [`feed`] and [`drain`] are the ways bytes go and come, [`bytes`] those of files.

mod bytes;
mod drain;
mod feed;
pub(crate) mod listener;
mod options;
pub(crate) mod own_listener;
mod stream;

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use farline_spec::{Failure, RunSpec};
use farline_sys::option::bind_address_without_port;
use tracing::debug;

use crate::failure::{timed_out, while_connecting};
use crate::socket::{bind_source, canonical, family, labelled, set_tos, time_left};
use crate::{Capabilities, Connect, Listener, Role, Stream, Transport, preamble};

/// The kernel's TCP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tcp;

impl Transport for Tcp {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reliable: true,
            carries_data: true,
            binds_addresses: true,
            why_not: "",
            carries_files: true,
            sends_from_files: true,
            encrypts: false,
            shares_port: false,
        }
    }

    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure> {
        Ok(Box::new(listener::TcpListener::bind(canonical(local), spec)?))
    }

    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure> {
        connect_with(request, &preamble::encode(request.key))
    }
}

/// As [`Transport::connect`] of TCP, with `first` as the bytes that name the stream to the other end: for ends that are not
/// farline. Of the key of `request` the number alone counts.
///
/// # Errors
/// As [`Transport::connect`].
pub fn connect_with(request: &Connect<'_>, first: &[u8]) -> Result<Stream, Failure> {
    let (spec, remote) = (request.spec, canonical(request.remote));
    bytes::check(spec)?;
    let socket = options::open(remote, spec)?;
    options::before_connection(&socket, spec, request.role)?;
    set_tos(&socket, spec, family(remote))?;
    // Saves ports when many streams leave from one address; without it they are only fewer.
    let _ = bind_address_without_port(socket.as_fd());
    bind_source(&socket, request, remote)?;
    let target = labelled(&socket, spec, remote)?;
    let left = time_left(request.deadline).ok_or_else(|| timed_out(format!("data stream to {remote}")))?;
    socket
        .connect_timeout(&target, left)
        .map_err(|error| while_connecting(remote, &error))?;
    let local = socket.local_addr().ok().and_then(|local| local.as_socket());
    debug!(local = ?local, remote = %remote, "TCP connected");
    (&socket)
        .write_all(first)
        .map_err(|error| while_connecting(remote, &error))?;
    let notes = Vec::new();
    let stream = stream::TcpStream::new(socket, spec, request.role, request.key.stream, notes)?;
    Ok(held_to_rate(stream, spec, request.role))
}

/// `stream` as what `spec` opens it for, held to its rate if it sends and there is one.
fn held_to_rate(stream: stream::TcpStream, spec: &RunSpec, role: Role) -> Stream {
    let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
    Stream::of(stream, spec, role).at_rate(rate_bps, role)
}
