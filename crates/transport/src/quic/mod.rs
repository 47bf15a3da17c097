//! QUIC (RFC 9000) over UDP's offloads: a connection per stream, all of a server's on one port.
//!
//! What it does: gives quinn's protocol machine (`quinn_proto`) sockets (`quinn_udp`), a clock and threads, and makes a
//! [`ByteStream`](crate::ByteStream) of each of its connections, which carries one QUIC stream one way.
//! What it must not do: know what the bytes are, or what a certificate authority is: both ends of a stream have keys that
//! follow from the secret of their control session, and know each other by them.
//!
//! In: `QuicOptions` of a [`RunSpec`]. Out: streams.
//!
//! ```text
//!  stream ─ write, read ─► link: a connection ─ datagrams ─► port: a UDP socket ─► path
//!     ▲                      ▲    one lock, an inbox           │  a thread for all links on it
//!     └── waits at the inbox ┴───────── events, timers ◄───────┘
//! ```
//!
//! The thread of a port receives, sorts and minds the timers. Whoever waits in a call of a stream does the work of its
//! connection itself (decrypts, acknowledges, sends); when nobody does, the port's thread does. So one connection can
//! use two cores, several can use one each, and a stream that is left alone stays alive.
//!
//! Start with [`Quic`]; [`port`] and [`link`] are where the time goes, [`tls`] says who may speak to whom.

mod in_order;
mod link;
mod listener;
mod opening;
mod options;
mod port;
mod stream;
mod tls;

use std::net::SocketAddr;

use farline_spec::{Failure, RunSpec};

use crate::socket::canonical;
use crate::{Capabilities, Connect, Listener, Stream, Transport};

/// QUIC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quic;

impl Transport for Quic {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reliable: true,
            carries_data: true,
            binds_addresses: true,
            why_not: "",
            carries_files: true,
            sends_from_files: false,
            encrypts: true,
            shares_port: true,
        }
    }

    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn Listener>, Failure> {
        Ok(Box::new(listener::QuicListener::bind(canonical(local), spec)?))
    }

    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure> {
        opening::open(request)
    }
}
