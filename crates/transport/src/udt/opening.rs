//! Opens a connection from this end: a caller, or one end of a rendezvous.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_proto::udt::handshake::{Offer, Opening, Step};
use farline_spec::{Failure, FailureKind, RunSpec};
use farline_sys::datagram::{RECEIVE_BYTES, receive_batch_now, send};
use farline_sys::time;
use socket2::{Protocol, Socket, Type};
use tracing::debug;

use super::driver::Driver;
use super::options::{Setup, SocketOptions, set_buffers};
use super::port::{Member, Port, port_taken};
use crate::failure::{is_slice, timed_out, while_connecting};
use crate::socket::{canonical, family, labelled, open, set_tos, time_left};

/// How to open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By a call, to somebody who is there.
    Caller,
    /// By a call, to somebody who may come.
    PatientCaller,
    /// By calls from both ends.
    Rendezvous,
}

/// A UDP socket for `address` with everything that must stand before it is bound.
pub(super) fn bare_socket(address: SocketAddr, options: &SocketOptions) -> Result<Socket, Failure> {
    let socket = open(address, Type::DGRAM, Some(Protocol::UDP))
        .map_err(|error| Failure::system("UDP socket", &error))?;
    set_tos(&socket, &options.spec, family(address))?;
    set_buffers(&socket, options)?;
    socket
        .set_nonblocking(true)
        .map_err(|error| Failure::system("UDP socket", &error))?;
    Ok(socket)
}

/// Connects a socket to `remote` so that the kernel takes nothing from anybody else.
pub(super) fn connect_socket(socket: &Socket, spec: &RunSpec, remote: SocketAddr) -> Result<(), Failure> {
    let target = labelled(socket, spec, remote)?;
    socket
        .connect(&target)
        .map_err(|error| while_connecting(remote, &error))
}

/// The socket between `local` and `remote`; one of its own unless `local` names a port.
pub(super) fn port_between(
    local: Option<SocketAddr>,
    remote: SocketAddr,
    options: &SocketOptions,
) -> Result<Arc<Port>, Failure> {
    let remote = canonical(remote);
    let Some(local) = local.map(canonical) else {
        let socket = bare_socket(remote, options)?;
        connect_socket(&socket, &options.spec, remote)?;
        return Ok(Port::alone(socket, remote));
    };
    if local.is_ipv4() != remote.is_ipv4() {
        let reason = format!("{local} and {remote} use different IP versions");
        return Err(Failure::option("local address", reason));
    }
    let make = || {
        let socket = bare_socket(remote, options)?;
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse => port_taken(local, &error),
            io::ErrorKind::AddrNotAvailable => Failure::option(
                "local address",
                format!("{} is not an address of this host", local.ip()),
            ),
            _ => Failure::system(&format!("binding to {local}"), &error),
        };
        socket.set_reuse_port(local.port() != 0).map_err(failed)?;
        socket.bind(&local.into()).map_err(failed)?;
        connect_socket(&socket, &options.spec, remote)?;
        Ok(socket)
    };
    if local.port() == 0 {
        return Ok(Port::alone(make()?, remote));
    }
    Port::between(local, remote, make)
}

/// Opens a connection on `port`; asks until there is an answer or `deadline`.
///
/// # Errors
/// `Unreachable` when nobody has the other port (unless the way is a patient one), `Protocol` when the other end
/// refuses, `Timeout`.
pub(super) fn open_on(
    port: Arc<Port>,
    way: Way,
    options: &SocketOptions,
    deadline: Instant,
) -> Result<Driver, Failure> {
    let setup = Setup::apply(&port.socket, options)?;
    let member = Member::join(port)?;
    let offer = setup.offer(member.id, options.initial_sequence)?;
    let remote = member.port.remote;
    let mut attempt = Attempt {
        opening: begin(way, offer, remote),
        member: &member,
        way,
        deadline,
        buffer: vec![0; RECEIVE_BYTES].into_boxed_slice(),
    };
    let (agreed, early) = loop {
        let left = time_left(deadline).ok_or_else(|| timed_out(format!("UDT connection to {remote}")))?;
        if time::now_ns() >= attempt.opening.expires_ns() {
            attempt.opening = begin(way, offer, remote);
        }
        attempt.ask()?;
        match attempt.listen()? {
            (Step::Done(agreed), early) => {
                attempt.ask()?;
                break (agreed, early);
            }
            (Step::Refused(refusal), _) => {
                let _ = attempt.ask();
                debug!(remote = %remote, reason = %refusal, "UDT connection refused");
                let message = format!("UDT connection to {remote}: {refusal}");
                return Err(Failure::new(FailureKind::Protocol, message));
            }
            (Step::Wait, _) => attempt.wait(left)?,
        }
    };
    drop(attempt);
    debug!(
        remote = %remote,
        mss_bytes = agreed.mss_bytes,
        peer_flight_packets = agreed.peer_flight_packets,
        is_rendezvous = agreed.is_rendezvous,
        "UDT connected"
    );
    let mut driver = Driver::new(member, setup, (agreed, offer), options)?;
    for (bytes, segment_bytes) in early {
        driver.take_early(&bytes, segment_bytes);
    }
    Ok(driver)
}

fn begin(way: Way, offer: Offer, remote: SocketAddr) -> Opening {
    match way {
        Way::Caller | Way::PatientCaller => Opening::caller(offer, remote.ip(), time::now_ns()),
        Way::Rendezvous => Opening::rendezvous(offer, remote.ip(), time::now_ns()),
    }
}

/// A handshake under way.
struct Attempt<'a> {
    opening: Opening,
    member: &'a Member,
    way: Way,
    deadline: Instant,
    buffer: Box<[u8]>,
}

/// Datagrams that the connection is to see, with their size.
type Early = Vec<(Box<[u8]>, usize)>;

impl Attempt<'_> {
    fn ask(&mut self) -> Result<(), Failure> {
        while let Some(request) = self.opening.poll_transmit(time::now_ns()) {
            match send(self.member.fd(), &request) {
                Err(error) if !self.is_passing(&error) => {
                    return Err(while_connecting(self.member.port.remote, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Looks at all that has come until something is decided or the time is over.
    fn listen(&mut self) -> Result<(Step, Early), Failure> {
        while time_left(self.deadline).is_some()
            && let Some(parcel) = self.member.inbox.take()
        {
            let step = self.hear(&parcel.bytes, parcel.segment_bytes);
            if step != Step::Wait {
                return Ok((step, vec![(parcel.bytes, parcel.segment_bytes)]));
            }
        }
        while time_left(self.deadline).is_some() {
            let batch = match receive_batch_now(self.member.fd(), &mut self.buffer) {
                Ok(batch) => batch,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if self.is_passing(&error) => continue,
                Err(error) => return Err(while_connecting(self.member.port.remote, &error)),
            };
            let bytes = Box::from(&self.buffer[..batch.bytes]);
            let step = self.hear(&bytes, batch.segment_bytes);
            if step != Step::Wait {
                return Ok((step, vec![(bytes, batch.segment_bytes)]));
            }
        }
        Ok((Step::Wait, Vec::new()))
    }

    /// What `datagrams` come to. Those for other connections on the socket are passed on.
    fn hear(&mut self, datagrams: &[u8], segment_bytes: usize) -> Step {
        for datagram in datagrams.chunks(segment_bytes.max(1)) {
            let step = self.opening.handle(time::now_ns(), datagram);
            if step != Step::Wait {
                return step;
            }
            self.member.pass_on(datagram, segment_bytes);
        }
        Step::Wait
    }

    /// Whether to go on after `error`.
    fn is_passing(&self, error: &io::Error) -> bool {
        is_slice(error) || (self.way != Way::Caller && error.kind() == io::ErrorKind::ConnectionRefused)
    }

    fn wait(&self, left: Duration) -> Result<(), Failure> {
        let due_ns = self.opening.next_timeout().saturating_sub(time::now_ns());
        self.member.wait(left.min(Duration::from_nanos(due_ns)))
    }
}
