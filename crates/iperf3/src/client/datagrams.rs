//! One stream of datagrams with iperf3's header, as the run engine takes streams.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use farline_proto::iperf3::arrivals::Arrivals;
use farline_proto::iperf3::datagram::Header;
use farline_proto::iperf3::parameters::Parameters;
use farline_spec::{Failure, FailureKind, Granted, RunSpec};
use farline_sys::datagram::{self, MAX_BATCH_BYTES, RECEIVE_BYTES};
use farline_sys::page_buffer::PageBuffer;
use farline_sys::time;
use farline_transport::{Counters, PayloadSink, PayloadSource, Probe, Received, Role, StreamEnd, payload};
use socket2::SockRef;

/// Longest time inside one call, so that the caller can look at its stop flag.
const SLICE: Duration = Duration::from_millis(100);
/// Pause after the device's queue was full.
const QUEUE_FULL: Duration = Duration::from_millis(1);
/// ENOBUFS.
const NO_BUFFERS: i32 = 105;

/// One stream.
pub struct Datagrams {
    link: Arc<Link>,
    /// What is sent, one datagram after the other; or where they are received.
    buffer: PageBuffer,
    packet_bytes: usize,
    sent: u64,
    arrivals: Arrivals,
    is_batched: bool,
    notes: Vec<String>,
}

struct Link {
    socket: UdpSocket,
    role: Role,
    is_aborted: AtomicBool,
    bytes: AtomicI64,
    blocks: AtomicI64,
    packets: AtomicI64,
    lost: AtomicI64,
    reordered: AtomicI64,
    jitter_ns: AtomicI64,
}

impl Datagrams {
    /// A stream over `socket`, which is connected and known to the server.
    ///
    /// # Errors
    /// [`FailureKind::System`] for what the kernel refuses, [`FailureKind::Spec`] for a batch that it cannot send.
    pub fn new(
        socket: UdpSocket,
        spec: &RunSpec,
        wanted: &Parameters,
        role: Role,
        stream: u16,
    ) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::system("UDP stream", &error);
        SockRef::from(&socket)
            .set_read_timeout(Some(SLICE))
            .map_err(failed)?;
        SockRef::from(&socket)
            .set_write_timeout(Some(SLICE))
            .map_err(failed)?;
        let packet_bytes = wanted.block_bytes as usize;
        let udp = spec.udp.clone().unwrap_or_default();
        let batch = udp.batch_packets.map_or(1, |batch| usize::from(batch.get()));
        let (mut buffer, mut is_batched) = (PageBuffer::new(RECEIVE_BYTES), false);
        if role == Role::Sender {
            set_batch(&socket, packet_bytes, batch, udp.gso)?;
            buffer = PageBuffer::new(packet_bytes * batch);
            let payload = payload(spec.seed, stream, packet_bytes);
            buffer
                .chunks_exact_mut(packet_bytes)
                .for_each(|slot| slot.copy_from_slice(&payload));
        } else {
            is_batched = udp.gro && datagram::allow_batches(socket.as_fd()).is_ok();
        }
        let link = Link {
            socket,
            role,
            is_aborted: AtomicBool::new(false),
            bytes: AtomicI64::new(0),
            blocks: AtomicI64::new(0),
            packets: AtomicI64::new(0),
            lost: AtomicI64::new(0),
            reordered: AtomicI64::new(0),
            jitter_ns: AtomicI64::new(0),
        };
        let notes = Vec::new();
        Ok(Self {
            link: Arc::new(link),
            buffer,
            packet_bytes,
            sent: 0,
            arrivals: Arrivals::default(),
            is_batched,
            notes,
        })
    }

    fn count(&self, bytes: usize) {
        self.link.bytes.fetch_add(bytes as i64, Ordering::Relaxed);
        self.link.blocks.fetch_add(1, Ordering::Relaxed);
    }

    fn check(&self) -> Result<(), Failure> {
        let line = "the stream was aborted";
        let is_aborted = self.link.is_aborted.load(Ordering::Acquire);
        if is_aborted {
            Err(Failure::new(FailureKind::Interrupted, line))
        } else {
            Ok(())
        }
    }
}

/// Has one call send several datagrams.
fn set_batch(socket: &UdpSocket, packet_bytes: usize, batch: usize, gso: bool) -> Result<(), Failure> {
    if batch == 1 {
        return Ok(());
    }
    let segment = u16::try_from(packet_bytes)
        .ok()
        .filter(|_| gso && packet_bytes * batch <= MAX_BATCH_BYTES);
    let Some(segment) = segment else {
        let line = format!(
            "udp.batch_packets: {batch} datagrams of {packet_bytes} bytes need gso and at most {MAX_BATCH_BYTES} bytes"
        );
        return Err(Failure::new(FailureKind::Spec, line));
    };
    datagram::set_segment_size(socket.as_fd(), segment)
        .map_err(|error| Failure::system("udp.batch_packets", &error))
}

impl PayloadSource for Datagrams {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        self.check()?;
        // Datagrams go whole: the last of a run of bytes may be more than what is left.
        let count = limit
            .div_ceil(self.packet_bytes)
            .min(self.buffer.len() / self.packet_bytes);
        if count == 0 {
            return Ok(0);
        }
        let sent_us = time::now_ns() / 1000;
        for (number, slot) in
            (self.sent + 1..).zip(self.buffer.chunks_exact_mut(self.packet_bytes).take(count))
        {
            Header { sent_us, number }.write(slot, true);
        }
        match datagram::send(
            self.link.socket.as_fd(),
            &self.buffer[..count * self.packet_bytes],
        ) {
            Ok(bytes) => {
                self.sent += (bytes / self.packet_bytes) as u64;
                self.link.packets.store(self.sent as i64, Ordering::Relaxed);
                self.count(bytes);
                Ok(bytes)
            }
            Err(error) if is_slice(&error) => Ok(0),
            Err(error) if error.raw_os_error() == Some(NO_BUFFERS) => {
                std::thread::sleep(QUEUE_FULL);
                Ok(0)
            }
            Err(error) => Err(Failure::new(
                FailureKind::Protocol,
                format!("sending datagrams: {error}"),
            )),
        }
    }
}

impl PayloadSink for Datagrams {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        if self.check().is_err() {
            return Ok(Received::End);
        }
        let batch = match datagram::receive_batch(self.link.socket.as_fd(), &mut self.buffer) {
            Ok(batch) => batch,
            Err(error) if is_slice(&error) => return Ok(Received::Bytes(0)),
            // The server has closed its port: it has nothing more to send.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(Received::End),
            Err(error) => {
                return Err(Failure::new(
                    FailureKind::Protocol,
                    format!("receiving datagrams: {error}"),
                ));
            }
        };
        let arrived_us = time::now_ns() / 1000;
        for datagram in self.buffer[..batch.bytes].chunks(batch.segment_bytes) {
            // What is no datagram of the stream is the server's answer, sent twice.
            if let Some(header) = Header::read(datagram, true) {
                self.arrivals.observe(header, arrived_us);
            }
        }
        let link = &self.link;
        let came = self.arrivals.packets.saturating_sub(self.arrivals.errors);
        link.packets.store(came as i64, Ordering::Relaxed);
        link.lost.store(self.arrivals.errors as i64, Ordering::Relaxed);
        link.reordered
            .store(self.arrivals.out_of_order as i64, Ordering::Relaxed);
        link.jitter_ns
            .store((self.arrivals.jitter_us * 1e3) as i64, Ordering::Relaxed);
        self.count(batch.bytes);
        Ok(Received::Bytes(batch.bytes))
    }
}

impl StreamEnd for Datagrams {
    fn finish_sending(&mut self, _deadline: Instant) -> Result<(), Failure> {
        // There is no word for the end: the control connection says it.
        Ok(())
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Link>::clone(&self.link)
    }

    fn granted(&self) -> Granted {
        let socket = SockRef::from(&self.link.socket);
        let text = |address: io::Result<std::net::SocketAddr>| {
            address.map_or_else(|_| String::new(), |address| address.to_string())
        };
        let is_sender = self.link.role == Role::Sender;
        let batch = self.buffer.len() / self.packet_bytes;
        Granted {
            local: text(self.link.socket.local_addr()),
            remote: text(self.link.socket.peer_addr()),
            send_buffer_bytes: socket.send_buffer_size().ok().map(|bytes| bytes as u64),
            receive_buffer_bytes: socket.recv_buffer_size().ok().map(|bytes| bytes as u64),
            packet_bytes: u32::try_from(self.packet_bytes).ok(),
            batch_packets: u32::try_from(batch).ok().filter(|_| is_sender),
            gso: is_sender.then_some(batch > 1),
            gro: (!is_sender).then_some(self.is_batched),
            notes: self.notes.clone(),
            ..Granted::default()
        }
    }
}

impl Probe for Link {
    fn sample(&self) -> Counters {
        let get = |counter: &AtomicI64| counter.load(Ordering::Relaxed);
        let counters = Counters {
            bytes: get(&self.bytes),
            blocks: get(&self.blocks),
            packets: get(&self.packets),
            ..Counters::UNKNOWN
        };
        if self.role == Role::Sender {
            return counters;
        }
        Counters {
            lost_packets: get(&self.lost),
            reordered_packets: get(&self.reordered),
            jitter_ns: get(&self.jitter_ns),
            ..counters
        }
    }

    fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
    }
}

/// Whether a call gave nothing because its slice of time was over.
fn is_slice(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
