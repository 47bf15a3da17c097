//! One open stream of blasts.

use std::sync::Arc;
use std::time::Instant;

use farline_proto::rbudp::wire::HEADER_BYTES;
use farline_spec::{Failure, Granted, RunSpec};

use super::link::Link;
use super::options::{Setup, granted};
use super::parts::Parts;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::kept_alive::{KeptAlive, Tended};
use crate::stream::wrong_end;
use crate::{ByteStream, PayloadSink, PayloadSource, Probe, Received, Role, Stream, StreamEnd, StreamReport};

impl Setup {
    /// Payload of a packet.
    pub(super) fn packet_bytes(&self) -> usize {
        self.datagram_bytes - HEADER_BYTES
    }
}

/// One open stream, used by one thread.
pub(super) struct RbudpStream {
    link: Arc<Link>,
    engine: Engine,
    spec: RunSpec,
}

#[allow(clippy::large_enum_variant, reason = "one of them for the life of a thread")]
enum Engine {
    Sender(Sender),
    Receiver(Receiver, Setup),
}

impl RbudpStream {
    /// As [`Self::new`], as what `spec` opens it for; one of files is kept alive from now on.
    ///
    /// # Errors
    /// As [`Self::new`]; `System` when a thread cannot be made.
    pub(super) fn open(parts: Parts, spec: &RunSpec, role: Role, number: u16) -> Result<Stream, Failure> {
        let stream = Self::new(parts, spec, role, number)?;
        if spec.copy.is_some() {
            return KeptAlive::wrap(Box::new(stream)).map(Stream::Bytes);
        }
        Ok(Stream::of_payload(stream, role))
    }

    /// Takes over what opening left.
    fn new(mut parts: Parts, spec: &RunSpec, role: Role, stream: u16) -> Result<Self, Failure> {
        let failed = |error| Failure::system("UDP socket", &error);
        let socket = parts.udp.try_clone().map_err(failed)?;
        // A sender waits for the kernel to take its bursts; a receiver waits for either of its sockets.
        socket.set_nonblocking(false).map_err(failed)?;
        socket
            .set_write_timeout(Some(crate::socket::SLICE))
            .map_err(failed)?;
        let link = Link::new(socket, parts.feedback.breaker()?, role);
        let engine = match role {
            Role::Sender => Engine::Sender(Sender::new(parts, spec, stream)?),
            Role::Receiver => {
                let socket_bytes = link.socket.recv_buffer_size().map_err(failed)?;
                let setup = parts.setup.clone();
                parts.setup.notes.clear();
                Engine::Receiver(Receiver::new(parts, spec, socket_bytes)?, setup)
            }
        };
        Ok(Self {
            link: Arc::new(link),
            engine,
            spec: spec.clone(),
        })
    }
}

impl PayloadSource for RbudpStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        match &mut self.engine {
            _ if self.spec.copy.is_some() => Err(wrong_end("send a block among files")),
            Engine::Sender(sender) => sender.send(&self.link, limit),
            Engine::Receiver(..) => Err(wrong_end("send on a receiving stream")),
        }
    }
}

impl PayloadSink for RbudpStream {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        match &mut self.engine {
            _ if self.spec.copy.is_some() => Err(wrong_end("receive a block among files")),
            Engine::Receiver(receiver, _) => receiver.receive(&self.link),
            Engine::Sender(_) => Err(wrong_end("receive on a sending stream")),
        }
    }

    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Engine::Receiver(receiver, _) = &self.engine {
            receiver.visit_delivered(visit);
        }
    }
}

impl ByteStream for RbudpStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        match &mut self.engine {
            Engine::Sender(sender) if self.spec.copy.is_some() => sender.send_files(&self.link, bytes),
            _ => Err(wrong_end("send files on another stream")),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        match &mut self.engine {
            _ if into.is_empty() => Ok(Received::Bytes(0)),
            Engine::Receiver(receiver, _) if self.spec.copy.is_some() => {
                receiver.receive_files(&self.link, into)
            }
            _ => Err(wrong_end("receive files on another stream")),
        }
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.engine {
            Engine::Sender(sender) => sender.flush(&self.link),
            Engine::Receiver(..) => Ok(()),
        }
    }
}

impl Tended for RbudpStream {
    fn tend(&mut self) -> Result<bool, Failure> {
        match &mut self.engine {
            Engine::Sender(sender) => sender.tend(&self.link),
            Engine::Receiver(receiver, _) => receiver.tend(&self.link),
        }
    }
}

impl StreamEnd for RbudpStream {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        match &mut self.engine {
            Engine::Sender(sender) => sender.finish(&self.link, deadline),
            Engine::Receiver(..) => Err(wrong_end("finish sending on a receiving stream")),
        }
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Link>::clone(&self.link)
    }

    fn granted(&self) -> Granted {
        match &self.engine {
            Engine::Sender(sender) => granted(&self.link, &sender.setup, &self.spec),
            Engine::Receiver(receiver, setup) => {
                let mut granted = granted(&self.link, setup, &self.spec);
                granted.notes.extend(receiver.notes());
                granted
            }
        }
    }

    fn report(&self) -> StreamReport {
        match &self.engine {
            Engine::Sender(sender) => sender.report(),
            Engine::Receiver(receiver, _) => receiver.report(),
        }
    }
}
