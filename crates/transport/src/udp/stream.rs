//! One open stream of datagrams.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Instant;

use farline_spec::unit::counted;
use farline_spec::{Failure, Granted, RunSpec};
use socket2::Socket;

use super::link::Link;
use super::options::Setup;
use super::receiver::Receiver;
use super::sender::Sender;
use crate::socket::{SLICE, address_text, buffer_note, family, tos_note};
use crate::stream::wrong_end;
use crate::{PayloadSink, PayloadSource, Probe, Received, Role, StreamEnd, StreamKey};

/// One open stream of datagrams, used by one thread.
pub(super) struct UdpStream {
    link: Arc<Link>,
    engine: Engine,
    setup: Setup,
    spec: RunSpec,
}

enum Engine {
    Sender(Sender),
    Receiver(Receiver),
}

impl UdpStream {
    /// Takes over a connected socket after the handshake.
    pub(super) fn new(socket: Socket, spec: &RunSpec, role: Role, key: &StreamKey) -> Result<Self, Failure> {
        for set in [Socket::set_read_timeout, Socket::set_write_timeout] {
            set(&socket, Some(SLICE)).map_err(|error| Failure::system("socket time-out", &error))?;
        }
        let setup = Setup::apply(&socket, spec, role)?;
        let engine = match role {
            Role::Sender => Engine::Sender(Sender::new(spec, &setup, key)),
            Role::Receiver => {
                let buffer = socket
                    .recv_buffer_size()
                    .map_err(|error| Failure::system("SO_RCVBUF", &error))?;
                Engine::Receiver(Receiver::new(spec, key, buffer))
            }
        };
        Ok(Self {
            link: Arc::new(Link::new(socket, role)),
            engine,
            setup,
            spec: spec.clone(),
        })
    }
}

impl PayloadSource for UdpStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        match &mut self.engine {
            Engine::Sender(sender) => sender.send(&self.link, &mut self.setup, limit),
            Engine::Receiver(_) => Err(wrong_end("send on a receiving stream")),
        }
    }
}

impl PayloadSink for UdpStream {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        match &mut self.engine {
            Engine::Receiver(receiver) => receiver.receive(&self.link),
            Engine::Sender(_) => Err(wrong_end("receive on a sending stream")),
        }
    }

    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Engine::Receiver(receiver) = &self.engine {
            receiver.visit_last(visit);
        }
    }
}

impl StreamEnd for UdpStream {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        match &self.engine {
            Engine::Sender(sender) => sender.finish(&self.link, deadline),
            Engine::Receiver(_) => Err(wrong_end("finish sending on a receiving stream")),
        }
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Link>::clone(&self.link)
    }

    fn granted(&self) -> Granted {
        let socket = &self.link.socket;
        let is_sender = self.link.role == Role::Sender;
        let mut granted = Granted {
            local: address_text(socket.local_addr()),
            remote: address_text(socket.peer_addr()),
            send_buffer_bytes: socket.send_buffer_size().ok().map(|bytes| bytes as u64),
            receive_buffer_bytes: socket.recv_buffer_size().ok().map(|bytes| bytes as u64),
            packet_bytes: is_sender.then_some(self.setup.packet_bytes as u32),
            batch_packets: is_sender.then_some(self.setup.batch_packets as u32),
            gso: is_sender.then_some(self.setup.gso),
            gro: (!is_sender).then_some(self.setup.gro),
            notes: self.setup.notes.clone(),
            ..Granted::default()
        };
        let differences = self.differences(&granted);
        granted.notes.extend(differences);
        granted
    }
}

impl UdpStream {
    fn differences(&self, granted: &Granted) -> Vec<String> {
        let udp = self.spec.udp.clone().unwrap_or_default();
        let send_buffer = buffer_note(
            "send buffer",
            "net.core.wmem_max",
            udp.send_buffer_bytes.map(|bytes| bytes.get()),
            granted.send_buffer_bytes.unwrap_or(0),
        );
        let receive_buffer = buffer_note(
            "receive buffer",
            "net.core.rmem_max",
            udp.receive_buffer_bytes.map(|bytes| bytes.get()),
            granted.receive_buffer_bytes.unwrap_or(0),
        );
        let tos = self
            .link
            .remote()
            .and_then(|remote| tos_note(&self.link.socket, &self.spec, family(remote)));
        let strays = match &self.engine {
            Engine::Receiver(receiver) => receiver.strays(),
            Engine::Sender(_) => 0,
        };
        let strays = (strays > 0).then(|| {
            format!(
                "ignored {} that did not belong to this stream",
                counted(strays, "datagram")
            )
        });
        [send_buffer, receive_buffer, tos, strays]
            .into_iter()
            .flatten()
            .collect()
    }
}

impl Drop for UdpStream {
    /// Frees the port's other users from this stream's datagrams even while an observer holds the socket.
    fn drop(&mut self) {
        let _ = self.link.socket.shutdown(Shutdown::Both);
    }
}
