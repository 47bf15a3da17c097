//! UDT over GSO and GRO: one thread per connection, no lock on its way.
//!
//! What it does: gives `farline_proto::udt` sockets, a clock and chance. [`Socket`] and [`Listener`] are for programs
//! that speak UDT4 to any peer; `UdtStream` makes a stream of a run of a socket, whose first 64 bytes from the opener
//! are the preamble.
//! What it must not do: know the protocol (that is `farline_proto::udt`), start threads, or let one connection's
//! trouble reach another on the same port.
//!
//! In: `UdtOptions` and the rate of a [`RunSpec`]. Out: streams of bytes, messages, the figures of a connection.
//!
//! ```text
//!  Socket, UdtStream ─► driver ─► outlet ─ GSO ─► connected UDP socket     port: who shares it
//!                         ▲  └── receive ◄─ GRO ─┘      │ for other ids: inboxes
//!                    Connection                         ▼ calls of new peers
//!  Listener ◄─ handshakes ── unconnected UDP socket ◄─ inbox
//! ```
//!
//! A packet is what fits the path's MTU unless `packet_bytes` says otherwise; on loopback, whose MTU is 65,536, that is
//! 65,507 bytes, and comparisons with Ethernet state `packet_bytes` as 1472 or 8972.
//!
//! Start with [`Socket`]; `driver` is where the time goes.

mod chance;
mod driver;
mod gauges;
mod listener;
mod moving;
mod opening;
mod options;
mod outlet;
mod port;
mod reception;
mod socket;
mod stream;

pub use farline_proto::udt::wire::SocketKind;
pub use farline_proto::udt::{MessageRead, Statistics};
pub use listener::Listener;
pub use options::SocketOptions;
pub use socket::Socket;

use std::net::SocketAddr;

use farline_spec::{Failure, RunSpec};

use self::opening::{Way, bare_socket, connect_socket, open_on};
use self::port::Port;
use crate::socket::{bind_source, canonical};
use crate::{Capabilities, Connect, Stream, Transport};

/// Longest time inside one blocking call, so that the caller can look at its stop flag.
const SLICE_NS: u64 = crate::socket::SLICE.as_nanos() as u64;

/// UDT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Udt;

impl Transport for Udt {
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

    fn listen(&self, local: SocketAddr, spec: &RunSpec) -> Result<Box<dyn crate::Listener>, Failure> {
        Ok(Box::new(reception::Reception::bind(local, spec)?))
    }

    fn connect(&self, request: &Connect<'_>) -> Result<Stream, Failure> {
        let (remote, options) = (canonical(request.remote), SocketOptions::of(request.spec));
        let socket = bare_socket(remote, &options)?;
        bind_source(&socket, request, remote)?;
        connect_socket(&socket, request.spec, remote)?;
        let driver = open_on(
            Port::alone(socket, remote),
            Way::Caller,
            &options,
            request.deadline,
        )?;
        let mut socket = Socket::new(driver, &options);
        reception::introduce(&mut socket, request.key, request.deadline)?;
        let (role, number) = (request.role, request.key.stream);
        stream::UdtStream::open(socket, request.spec, role, number)
    }
}
