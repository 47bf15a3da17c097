//! How a burst of the sending end gets to the kernel: its turn, its datagrams, and what is done where it is refused.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use farline_proto::rbudp::wire::{HEADER_BYTES, Header, packet_hash};
use farline_spec::Failure;
use farline_sys::{datagram, time};

use super::link::Link;
use super::sender::{Sender, Step};
use crate::failure::{aborted, is_slice, while_moving};
use crate::limit::Turn;
use crate::socket::errno;

/// Pause after the device's queue was full.
const QUEUE_FULL: Duration = Duration::from_millis(1);

impl Sender {
    /// Sends one burst: gaps whenever there are any, new packets once `least` bytes of them wait or their blast is full.
    pub(super) fn send_burst(&mut self, link: &Link, least: u64) -> Result<Step, Failure> {
        let is_due =
            self.machine.has_gaps() || self.unsent_bytes >= least.max(1) || self.machine.is_blast_full();
        if !is_due {
            return Ok(Step::Nothing);
        }
        if !self.wait_for_turn(link) {
            return Ok(Step::NotYet);
        }
        let now_ns = time::now_ns();
        if !self
            .machine
            .next_burst(now_ns, self.setup.burst_packets, &mut self.burst)
        {
            return Ok(Step::Nothing);
        }
        let (bytes, payload_bytes) = self.fill()?;
        let sent = match self.hand_over(link, bytes) {
            Ok(packets) => packets,
            Err(error) => {
                self.judge(link, &error)?;
                0
            }
        };
        let count = self.burst.packets.len();
        if sent < count {
            self.machine.not_sent(&self.burst, sent);
        }
        if self.checksum && !self.burst.is_repeat {
            let sum = self.hashes[..sent]
                .iter()
                .fold(0, |sum: u64, &hash| sum.wrapping_add(hash));
            self.machine.add_hashes(self.burst.blast, sum);
        }
        let packet_bytes = self.setup.packet_bytes();
        let sent_bytes = if sent == count {
            payload_bytes
        } else {
            sent * packet_bytes
        };
        if !self.burst.is_repeat {
            self.unsent_bytes -= sent_bytes as u64;
        }
        if let Some(turn) = &mut self.turn {
            turn.sent(sent_bytes);
        }
        Ok(if sent > 0 { Step::Sent } else { Step::NotYet })
    }

    fn wait_for_turn(&mut self, link: &Link) -> bool {
        let rate_bps = self.machine.rate_bps();
        if rate_bps != self.rate_bps {
            self.rate_bps = rate_bps;
            match &mut self.turn {
                _ if rate_bps == 0 => self.turn = None,
                Some(turn) => turn.set_rate(rate_bps),
                None => self.turn = Some(Turn::gathering(rate_bps, self.machine.pacer())),
            }
        }
        let Some(turn) = &mut self.turn else { return true };
        let may_send = turn.wait();
        link.tally.paced_wait_us.set(turn.waited_us());
        may_send
    }

    /// Writes the datagrams of the burst; gives their length and that of the payload in them.
    fn fill(&mut self) -> Result<(usize, usize), Failure> {
        let (full, packet_bytes) = (self.setup.datagram_bytes, self.setup.packet_bytes());
        let (mut bytes, mut payload_bytes) = (0, 0);
        self.hashes.clear();
        let last = self.burst.packets.len() - 1;
        for (index, &packet) in self.burst.packets.iter().enumerate() {
            let length = if index == last {
                self.burst.last_bytes
            } else {
                packet_bytes
            };
            let slot = &mut self.slots[index * full..index * full + HEADER_BYTES + length];
            self.source
                .fill(&self.burst, packet, &mut slot[HEADER_BYTES..])
                .map_err(|error| Failure::system("reading the data to send", &error))?;
            let hash = if self.checksum {
                packet_hash(self.burst.blast, packet, &slot[HEADER_BYTES..])
            } else {
                0
            };
            let header = Header {
                token: self.token,
                blast: self.burst.blast,
                packet,
                // The low half.
                check: hash as u32,
            };
            header.write(slot);
            self.hashes.push(hash);
            bytes += slot.len();
            payload_bytes += length;
        }
        Ok((bytes, payload_bytes))
    }

    /// Gives the first `bytes` of the slots to the kernel; gives the datagrams taken.
    fn hand_over(&self, link: &Link, bytes: usize) -> io::Result<usize> {
        let (full, datagrams) = (self.setup.datagram_bytes, &self.slots[..bytes]);
        if self.setup.gso && bytes > full {
            // A datagram is at most 65,507 bytes.
            return datagram::send_segments(link.socket.as_fd(), datagrams, full as u16)
                .map(|sent| sent.div_ceil(full));
        }
        for (taken, one) in datagrams.chunks(full).enumerate() {
            match datagram::send(link.socket.as_fd(), one) {
                Err(error) if taken == 0 => return Err(error),
                Err(_) => return Ok(taken),
                Ok(_) => {}
            }
        }
        Ok(bytes.div_ceil(full))
    }

    /// Whether to go on after `error`, and how.
    fn judge(&mut self, link: &Link, error: &io::Error) -> Result<(), Failure> {
        if link.tally.is_aborted() {
            return Err(aborted());
        }
        match error.raw_os_error() {
            // Where the receiver is gone the connection tells.
            _ if is_slice(error) || error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            Some(errno::ENOBUFS) => {
                std::thread::sleep(QUEUE_FULL);
                Ok(())
            }
            Some(errno::EINVAL | errno::EMSGSIZE | errno::EIO)
                if self.setup.gso && self.burst.packets.len() > 1 =>
            {
                self.setup.reduce(error);
                Ok(())
            }
            _ => Err(while_moving("sending", error)),
        }
    }
}
