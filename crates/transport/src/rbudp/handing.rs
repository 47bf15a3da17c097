//! Files on their way in: blasts that are whole, handed out in order as the bytes they were given as.

use farline_spec::{Failure, FailureKind};
use farline_sys::time;

use super::link::Link;
use super::link::violated;
use super::receiver::{BLOCK_BYTES, Receiver};
use crate::Received;
use crate::failure::aborted;
use crate::socket::SLICE;

/// Time with bytes that are there already after which the sockets are looked at again.
const LOOK_NS: u64 = 50_000;
/// Time in which a stream that is tended does what is due.
const TENDED_NS: u64 = 10_000_000;

impl Receiver {
    /// Puts what is there of a whole blast into `into`, or receives until one is whole or a time slice is over.
    pub(super) fn receive_files(&mut self, link: &Link, into: &mut [u8]) -> Result<Received, Failure> {
        let result = self.hand_out_some(link, into);
        self.settle(link, result)
    }

    /// Takes what has come and answers what is to be answered for a moment; gives whether more is there.
    pub(super) fn tend(&mut self, link: &Link) -> Result<bool, Failure> {
        let until_ns = time::now_ns() + TENDED_NS;
        let result = self.take_due(link, until_ns);
        self.settle(link, result)
    }

    fn take_due(&mut self, link: &Link, until_ns: u64) -> Result<bool, Failure> {
        loop {
            let is_empty = self.look(link)?;
            if is_empty || time::now_ns() >= until_ns {
                return Ok(!is_empty);
            }
        }
    }

    fn hand_out_some(&mut self, link: &Link, into: &mut [u8]) -> Result<Received, Failure> {
        self.start();
        let until_ns = time::now_ns() + SLICE.as_nanos() as u64;
        loop {
            if self.delivered.is_some() {
                return self.hand_out(link, into).map(Received::Bytes);
            }
            let is_empty = self.look(link)?;
            self.delivered = self.machine.poll_whole().map_err(violated)?;
            if self.delivered.is_some() {
                continue;
            }
            if self.machine.is_ended() && !self.feedback.has_waiting() {
                return self.end();
            }
            if time::now_ns() >= until_ns {
                return Ok(Received::Bytes(0));
            }
            if is_empty {
                self.wait(link, until_ns)?;
            }
        }
    }

    /// Takes bursts and talks to the other end; gives whether nothing is there any more.
    fn look(&mut self, link: &Link) -> Result<bool, Failure> {
        if link.tally.is_aborted() {
            return Err(aborted());
        }
        let (fresh, is_empty) = self.take_bursts(link, BLOCK_BYTES)?;
        if fresh > 0 {
            link.tally.count_block(fresh);
        }
        self.looked_ns = time::now_ns();
        self.converse(self.looked_ns, is_empty)?;
        Ok(is_empty)
    }

    /// Gives how many bytes of the blast that is whole went into `into`. Its place is free once all have.
    fn hand_out(&mut self, link: &Link, into: &mut [u8]) -> Result<usize, Failure> {
        if time::now_ns() >= self.looked_ns + LOOK_NS {
            // What comes meanwhile must not be lost for want of room in the socket.
            self.look(link)?;
        }
        let Some((blast, bytes)) = self.delivered else {
            return Ok(0);
        };
        let whole = self.intake.peek(blast, bytes);
        if whole.len() as u64 != bytes {
            let line = format!("blast {blast} is complete, but its {bytes} bytes are not in memory");
            return Err(Failure::new(FailureKind::Internal, line));
        }
        let left = &whole[self.handed_bytes..];
        let count = left.len().min(into.len());
        into[..count].copy_from_slice(&left[..count]);
        let is_over = count == left.len();
        self.handed_bytes += count;
        if is_over {
            (self.delivered, self.handed_bytes) = (None, 0);
            self.machine.release(blast);
            self.intake.release(blast);
            self.converse(time::now_ns(), false)?;
        }
        Ok(count)
    }
}
