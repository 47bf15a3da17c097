//! One open stream.

use std::sync::Arc;
use std::time::Instant;

use farline_spec::{Failure, Granted, RunSpec};
use std::net::SocketAddr;

use super::link::Link;
use super::options::options_of;
use super::port::{PortUse, buffer_bytes};
use crate::failure::aborted;
use crate::socket::{SLICE, buffer_note, family, header_bytes};
use crate::stream::wrong_end;
use crate::tally::as_i64;
use crate::{ByteStream, Counters, Probe, Received, Role, StreamEnd};

/// One open stream, used by one thread.
pub(super) struct QuicStream {
    link: Arc<Link>,
    role: Role,
    spec: RunSpec,
    /// The address of this end as the other one sees it, but for what translates it on the way.
    local: SocketAddr,
    /// Kept for as long as the stream.
    _port: PortUse,
}

impl QuicStream {
    /// Takes over a connection that is open.
    ///
    /// # Errors
    /// `Protocol` when the other end takes no stream.
    pub(super) fn new(
        link: Arc<Link>,
        port: PortUse,
        spec: &RunSpec,
        role: Role,
        local: SocketAddr,
    ) -> Result<Self, Failure> {
        if role == Role::Sender {
            link.with(|state| state.open_stream())?;
        }
        Ok(Self {
            link,
            role,
            spec: spec.clone(),
            local,
            _port: port,
        })
    }

    fn look_around(&self) -> Result<(), Failure> {
        match self.link.tally.is_aborted() {
            true => Err(aborted()),
            false => Ok(()),
        }
    }

    fn check(&self, role: Role, what: &str) -> Result<(), Failure> {
        match self.role == role {
            true => self.look_around(),
            false => Err(wrong_end(what)),
        }
    }
}

impl ByteStream for QuicStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.check(Role::Sender, "send on a receiving stream")?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let until = Instant::now() + SLICE;
        loop {
            let taken = self.link.write(bytes)?;
            if taken > 0 {
                self.link.tally.count_block(taken);
                return Ok(taken);
            }
            if Instant::now() >= until {
                return Ok(0);
            }
            self.link.wait(until);
            self.look_around()?;
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        self.check(Role::Receiver, "receive on a sending stream")?;
        if into.is_empty() {
            return Ok(Received::Bytes(0));
        }
        let until = Instant::now() + SLICE;
        loop {
            match self.link.read(into)? {
                Received::Bytes(0) if Instant::now() < until => {
                    self.link.wait(until);
                    self.look_around()?;
                }
                Received::Bytes(0) => return Ok(Received::Bytes(0)),
                Received::Bytes(bytes) => {
                    self.link.tally.count_block(bytes);
                    return Ok(Received::Bytes(bytes));
                }
                Received::End => return Ok(Received::End),
            }
        }
    }
}

impl StreamEnd for QuicStream {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.check(Role::Sender, "finish sending on a receiving stream")?;
        while !self.link.finish()? && Instant::now() < deadline {
            self.link.wait(deadline.min(Instant::now() + SLICE));
            self.look_around()?;
        }
        Ok(())
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::new(LinkProbe {
            link: Arc::clone(&self.link),
            role: self.role,
        })
    }

    fn granted(&self) -> Granted {
        let options = options_of(&self.spec);
        let io = &self.link.port.io;
        let (remote, packet_bytes) = self
            .link
            .peek(|state| (state.connection.remote_address(), state.connection.current_mtu()));
        let (send_buffer_bytes, receive_buffer_bytes) = buffer_bytes(io);
        let is_sender = self.role == Role::Sender;
        let notes = [
            (
                "send buffer",
                "net.core.wmem_max",
                options.udp_send_buffer_bytes,
                send_buffer_bytes,
            ),
            (
                "receive buffer",
                "net.core.rmem_max",
                options.udp_receive_buffer_bytes,
                receive_buffer_bytes,
            ),
        ];
        let notes = notes.into_iter().filter_map(|(what, sysctl, asked, granted)| {
            buffer_note(what, sysctl, asked.map(|bytes| bytes.get()), granted.unwrap_or(0))
        });
        Granted {
            local: self.local.to_string(),
            remote: remote.to_string(),
            congestion_control: is_sender.then(|| options.congestion_control.word().to_owned()),
            send_buffer_bytes,
            receive_buffer_bytes,
            packet_bytes: is_sender.then_some(packet_bytes.into()),
            gso: is_sender.then_some(options.gso && io.segments() > 1),
            gro: (!is_sender).then_some(io.gathers()),
            notes: notes.collect(),
            ..Granted::default()
        }
    }
}

impl Drop for QuicStream {
    fn drop(&mut self) {
        self.link.close();
    }
}

struct LinkProbe {
    link: Arc<Link>,
    role: Role,
}

impl Probe for LinkProbe {
    fn sample(&self) -> Counters {
        let tally = &self.link.tally;
        let (stats, datagrams, remote) = self.link.peek(|state| {
            let connection = &state.connection;
            (connection.stats(), state.datagrams(), connection.remote_address())
        });
        let mtu = i64::from(stats.path.current_mtu) + header_bytes(family(remote)) as i64;
        let micros = |time: std::time::Duration| as_i64(time.as_micros() as u64);
        let both = Counters {
            bytes: tally.bytes.get(),
            blocks: tally.blocks.get(),
            sent_acks: as_i64(stats.frame_tx.acks),
            received_acks: as_i64(stats.frame_rx.acks),
            path_mtu_bytes: mtu,
            ..Counters::UNKNOWN
        };
        match self.role {
            Role::Receiver => Counters {
                packets: as_i64(datagrams),
                ..both
            },
            Role::Sender => Counters {
                packets: as_i64(stats.udp_tx.datagrams),
                lost_packets: as_i64(stats.path.lost_packets),
                retransmits: as_i64(stats.path.lost_packets),
                rtt_us: micros(stats.path.rtt),
                min_rtt_us: micros(stats.path.min_rtt),
                cwnd_bytes: as_i64(stats.path.cwnd),
                ..both
            },
        }
    }

    fn abort(&self) {
        self.link.tally.abort();
        self.link.stir();
    }
}
