//! The receiving end: batches in, an account of every sequence number out.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_spec::{Failure, RunSpec};
use farline_sys::datagram::{Batch, RECEIVE_BYTES, receive_batch, receive_batch_now};
use farline_sys::{thread, time};

use super::application::Application;
use super::handshake::{Sign, sign_of, tell};
use super::header::{HEADER_BYTES, Header, Kind, Token, parse};
use super::jitter::Jitter;
use super::link::Link;
use super::sequence::{Arrival, Tracker};
use crate::failure::{aborted, is_slice, while_moving};
use crate::nap::Nap;
use crate::{Received, StreamKey};
use farline_sys::page_buffer::PageBuffer;

/// Time after the end mark in which datagrams that were overtaken may still come.
const STRAGGLERS: Duration = Duration::from_millis(100);
/// How often the end is acknowledged once nobody will read here any more.
const FAREWELLS: usize = 3;

pub(super) struct Receiver {
    key: StreamKey,
    token: Token,
    buffer: PageBuffer,
    /// Where the payloads are copied to, if that is asked for.
    application: Option<Application>,
    last: Option<Batch>,
    tracker: Tracker,
    jitter: Jitter,
    nap: Nap,
    end: Option<End>,
    strays: u64,
    started: bool,
}

/// The sender's end mark.
#[derive(Debug, Clone, Copy)]
struct End {
    total: u64,
    seen_at: Instant,
    is_told: bool,
}

impl Receiver {
    /// A receiver whose socket has a buffer of `socket_bytes`, as the kernel reports it.
    pub(super) fn new(spec: &RunSpec, key: &StreamKey, socket_bytes: usize) -> Self {
        Self {
            key: key.clone(),
            token: Token::of(key),
            buffer: PageBuffer::new(RECEIVE_BYTES),
            application: Application::of(spec),
            last: None,
            tracker: Tracker::new(),
            jitter: Jitter::default(),
            nap: Nap::new(socket_bytes),
            end: None,
            strays: 0,
            started: false,
        }
    }

    /// Receives one batch.
    pub(super) fn receive(&mut self, link: &Link) -> Result<Received, Failure> {
        self.last = None;
        if link.tally.is_aborted() {
            return Err(aborted());
        }
        if self.has_ended(link) {
            return Ok(Received::End);
        }
        match self.receive_batch(link) {
            Ok(batch) => Ok(Received::Bytes(self.take(link, batch))),
            Err(_) if link.tally.is_aborted() => Err(aborted()),
            Err(error) if is_slice(&error) => Ok(Received::Bytes(0)),
            // Our answer found the sender gone; what it sent may still be queued here.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(Received::Bytes(0)),
            Err(error) => Err(while_moving("receiving", &error)),
        }
    }

    fn receive_batch(&mut self, link: &Link) -> io::Result<Batch> {
        if !self.started {
            // Here, not in `new`: it is the thread that receives that has to wake in time.
            thread::set_finest_timer_slack();
            self.started = true;
        }
        let nap_ns = self.nap.length_ns();
        if nap_ns > 0 {
            match receive_batch_now(link.socket.as_fd(), &mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    time::sleep_until(time::now_ns() + nap_ns, 0);
                }
                result => return result,
            }
        }
        receive_batch(link.socket.as_fd(), &mut self.buffer)
    }

    /// Takes account of a batch; gives the bytes in it that count.
    fn take(&mut self, link: &Link, batch: Batch) -> usize {
        let now_ns = time::now_ns();
        self.nap.received(now_ns, batch.bytes);
        let received_ns = batch.arrived_ns.unwrap_or(now_ns);
        let buffer = std::mem::take(&mut self.buffer);
        let (mut bytes, mut packets) = (0, 0);
        for datagram in buffer[..batch.bytes].chunks(batch.segment_bytes) {
            match parse(datagram, self.token) {
                Some(header) if header.kind == Kind::Data => {
                    bytes += self.account(header, received_ns);
                    packets += 1;
                }
                _ => self.answer(link, datagram),
            }
        }
        self.buffer = buffer;
        self.last = Some(batch);
        self.copy_last();
        link.packets.add(packets);
        if packets > 0 {
            link.tally.count_block(bytes);
        }
        self.publish(link);
        bytes
    }

    #[inline]
    fn account(&mut self, header: Header, received_ns: u64) -> usize {
        self.jitter.observe(header.sent_ns, received_ns);
        match self.tracker.arrive(header.sequence) {
            Arrival::Fresh | Arrival::Late => header.counted,
            Arrival::Duplicate | Arrival::TooLate => 0,
        }
    }

    fn publish(&self, link: &Link) {
        link.lost_packets.set(self.tracker.lost());
        link.reordered_packets.set(self.tracker.reordered());
        link.duplicate_packets.set(self.tracker.duplicate());
        link.jitter_ns.set(crate::tally::as_i64(self.jitter.get_ns()));
    }

    /// Answers what is not data; what is not of this stream at all is counted and ignored.
    fn answer(&mut self, link: &Link, datagram: &[u8]) {
        match sign_of(datagram, &self.key, self.token) {
            Some(Sign::Of(Kind::Welcome)) => tell(&link.socket, &self.key, self.token, Kind::Confirm, 0),
            Some(Sign::Of(Kind::End)) => {
                let total = parse(datagram, self.token).map_or(0, |header| header.sequence);
                self.end.get_or_insert(End {
                    total,
                    seen_at: Instant::now(),
                    is_told: false,
                });
                tell(&link.socket, &self.key, self.token, Kind::EndSeen, 0);
            }
            // The network may double a hello, too.
            Some(_) => {}
            None => self.strays += 1,
        }
    }

    /// Whether the end mark has come, and with it all datagrams or the time for stragglers.
    fn has_ended(&mut self, link: &Link) -> bool {
        let Some(end) = self.end else { return false };
        if !self.tracker.is_complete(end.total) && end.seen_at.elapsed() < STRAGGLERS {
            return false;
        }
        if !end.is_told {
            self.tracker.finish(end.total);
            self.publish(link);
            for _ in 0..FAREWELLS {
                tell(&link.socket, &self.key, self.token, Kind::EndSeen, 0);
            }
            self.end = Some(End { is_told: true, ..end });
        }
        true
    }

    /// Copies the payloads of the last batch to where the application wants them.
    fn copy_last(&mut self) {
        let Some(mut application) = self.application.take() else {
            return;
        };
        application.begin_batch();
        self.each_payload(&mut |payload| application.put(payload));
        application.end_batch();
        self.application = Some(application);
    }

    /// Shows the payload of the datagrams of the last batch, headers and padding left out.
    pub(super) fn visit_last(&self, visit: &mut dyn FnMut(&[u8])) {
        let mut copied = self.application.as_ref().map(Application::last);
        self.each_payload(&mut |payload| match &mut copied {
            None => visit(payload),
            Some(left) => {
                let (one, rest) = left.split_at(payload.len());
                visit(one);
                *left = rest;
            }
        });
    }

    fn each_payload(&self, visit: &mut dyn FnMut(&[u8])) {
        let Some(batch) = self.last else { return };
        for datagram in self.buffer[..batch.bytes].chunks(batch.segment_bytes) {
            if let Some(header) = parse(datagram, self.token).filter(|header| header.kind == Kind::Data) {
                visit(datagram.get(HEADER_BYTES..header.counted).unwrap_or_default());
            }
        }
    }

    /// Datagrams that were none of this stream's.
    pub(super) fn strays(&self) -> u64 {
        self.strays
    }
}
