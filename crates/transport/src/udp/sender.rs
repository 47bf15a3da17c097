//! The sending end: one contiguous buffer of datagrams whose headers are patched in place.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_spec::{Failure, RunSpec, kernel_words};
use farline_sys::wake::poll_readable;
use farline_sys::{datagram, time};
use socket2::Socket;

use super::handshake::{Sign, read_sign, tell};
use super::header::{HEADER_BYTES, Kind, Token, prepare, stamp};
use super::link::Link;
use super::options::{Setup, over_mtu_now};
use crate::StreamKey;
use crate::failure::{aborted, is_slice, while_moving};
use crate::limit::Turn;
use crate::payload::payload;
use crate::socket::{errno, time_left};
use farline_sys::page_buffer::PageBuffer;

/// Time between two end marks at first; it doubles up to [`SLOWEST_END`].
const FASTEST_END: Duration = Duration::from_millis(10);
const SLOWEST_END: Duration = Duration::from_millis(200);
/// Pause after the device's queue was full.
const QUEUE_FULL: Duration = Duration::from_millis(1);
/// Batch that kernels before 6.9 take.
const OLDER_BATCH: usize = 64;

pub(super) struct Sender {
    key: StreamKey,
    token: Token,
    /// `batch_packets` slots of `packet_bytes`.
    slots: PageBuffer,
    sequence: u64,
    turn: Option<Turn>,
    dont_fragment: bool,
}

impl Sender {
    pub(super) fn new(spec: &RunSpec, setup: &Setup, key: &StreamKey) -> Self {
        let token = Token::of(key);
        let payload = payload(spec.seed, key.stream, setup.packet_bytes - HEADER_BYTES);
        let mut slots = PageBuffer::new(setup.packet_bytes * setup.batch_packets);
        for slot in slots.chunks_exact_mut(setup.packet_bytes) {
            prepare(slot, token, key.stream, Kind::Data);
            slot[HEADER_BYTES..].copy_from_slice(&payload);
        }
        let rate_bps = spec.rate_bps.map_or(0, |rate| rate.get());
        Self {
            key: key.clone(),
            token,
            slots,
            sequence: 0,
            turn: (rate_bps > 0).then(|| Turn::new(rate_bps)),
            dont_fragment: spec.udp.as_ref().is_some_and(|udp| udp.dont_fragment),
        }
    }

    /// Sends one batch of at most `limit` bytes.
    pub(super) fn send(&mut self, link: &Link, setup: &mut Setup, limit: usize) -> Result<usize, Failure> {
        let may_send = self.wait_for_turn(link);
        if link.tally.is_aborted() {
            return Err(aborted());
        }
        if !may_send || limit == 0 {
            return Ok(0);
        }
        let counted = limit.min(setup.batch_packets * setup.packet_bytes);
        let length = self.stamp_all(setup.packet_bytes, counted);
        let packets = match self.hand_over(link, setup, length) {
            Ok(packets) => packets,
            Err(error) => return self.judge(link, setup, &error).map(|()| 0),
        };
        let counted = counted.min(packets * setup.packet_bytes);
        self.sequence += packets as u64;
        link.packets.add(packets as i64);
        link.tally.count_block(counted);
        if let Some(turn) = &mut self.turn {
            turn.sent(counted);
        }
        Ok(counted)
    }

    fn wait_for_turn(&mut self, link: &Link) -> bool {
        let Some(turn) = &mut self.turn else { return true };
        let may_send = turn.wait();
        link.tally.paced_wait_us.set(turn.waited_us());
        may_send
    }

    /// Stamps datagrams for `counted` bytes; gives the length of them all, padding included.
    fn stamp_all(&mut self, packet_bytes: usize, counted: usize) -> usize {
        let now_ns = time::now_ns();
        let mut left = counted;
        let slots = self.slots.chunks_exact_mut(packet_bytes);
        for (sequence, slot) in (self.sequence..).zip(slots.take(counted.div_ceil(packet_bytes))) {
            let bytes = left.min(packet_bytes);
            // A datagram is at most 65,507 bytes.
            stamp(slot, sequence, now_ns, bytes as u16);
            left -= bytes;
        }
        let padding = HEADER_BYTES.saturating_sub(counted % packet_bytes);
        if counted % packet_bytes == 0 {
            counted
        } else {
            counted + padding
        }
    }

    /// Gives the first `length` bytes of the slots to the kernel; gives the datagrams taken.
    fn hand_over(&self, link: &Link, setup: &Setup, length: usize) -> io::Result<usize> {
        let (packet_bytes, bytes) = (setup.packet_bytes, &self.slots[..length]);
        if setup.gso {
            return datagram::send(link.socket.as_fd(), bytes).map(|sent| sent.div_ceil(packet_bytes));
        }
        for (taken, one) in bytes.chunks(packet_bytes).enumerate() {
            match datagram::send(link.socket.as_fd(), one) {
                Err(error) if taken == 0 => return Err(error),
                Err(_) => return Ok(taken),
                Ok(_) => {}
            }
        }
        Ok(length.div_ceil(packet_bytes))
    }

    /// Whether to go on after `error`, and how.
    fn judge(&self, link: &Link, setup: &mut Setup, error: &io::Error) -> Result<(), Failure> {
        if link.tally.is_aborted() {
            return Err(aborted());
        }
        if is_slice(error) {
            return Ok(());
        }
        match error.raw_os_error() {
            Some(errno::ENOBUFS) => {
                std::thread::sleep(QUEUE_FULL);
                Ok(())
            }
            Some(errno::EINVAL | errno::EMSGSIZE | errno::EIO) if setup.gso => {
                reduce(&link.socket, setup, error)
            }
            Some(errno::EMSGSIZE) if self.dont_fragment => {
                Err(over_mtu_now(&link.socket, setup.packet_bytes))
            }
            _ => Err(while_moving("sending", error)),
        }
    }

    /// Says how many datagrams there were until the other end has heard it.
    pub(super) fn finish(&self, link: &Link, deadline: Instant) -> Result<(), Failure> {
        let mut every = FASTEST_END;
        while let Some(left) = time_left(deadline) {
            if link.tally.is_aborted() {
                return Err(aborted());
            }
            tell(&link.socket, &self.key, self.token, Kind::End, self.sequence);
            if self.is_heard(link, every.min(left))? {
                break;
            }
            every = (every * 2).min(SLOWEST_END);
        }
        Ok(())
    }

    fn is_heard(&self, link: &Link, time: Duration) -> Result<bool, Failure> {
        let failed = |error| while_moving("finishing", &error);
        let until = Instant::now() + time;
        while let Some(left) = time_left(until) {
            if !poll_readable(&[link.socket.as_fd()], Some(left)).map_err(failed)?[0] {
                return Ok(false);
            }
            match read_sign(&link.socket, &self.key, self.token) {
                Ok(Some(Sign::Of(Kind::EndSeen))) => return Ok(true),
                Ok(_) => {}
                Err(error) if is_slice(&error) => {}
                // The receiver has closed: it heard an end, or nothing will be heard any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(true),
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(false)
    }
}

/// The kernel or the device refuses the batch: smaller ones, then single datagrams.
fn reduce(socket: &Socket, setup: &mut Setup, error: &io::Error) -> Result<(), Failure> {
    if setup.batch_packets > OLDER_BATCH {
        setup.batch_packets = OLDER_BATCH;
        setup.notes.push(format!(
            "batch: {OLDER_BATCH} datagrams: this kernel supports no more ({})",
            kernel_words(error)
        ));
        return Ok(());
    }
    setup.gso = false;
    setup.notes.push(format!(
        "gso: off: the kernel or the device refuses batches ({})",
        kernel_words(error)
    ));
    datagram::set_segment_size(socket.as_fd(), 0).map_err(|error| Failure::system("UDP_SEGMENT", &error))
}
