//! Sends trains, burst by burst, and states when each burst went.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use farline_proto::rbudp::train::TrainPlan;
use farline_proto::rbudp::wire::HEADER_BYTES;
use farline_spec::Failure;
use farline_sys::wake::{Interest, wait_ready};
use farline_sys::{datagram as kernel, time};
use socket2::Socket;

use super::CheckPlan;
use super::datagram::{Datagram, is_of_the_past};
use crate::failure::while_moving;
use crate::limit::Turn;
use crate::payload::payload;
use crate::socket::errno;
use farline_sys::page_buffer::PageBuffer;

/// A sender that is later than this begins its schedule anew.
const LATE_NS: u64 = 300_000;
/// Most time that a train waits for room in the socket's buffer; what then has none is not sent.
const MAX_WAIT_NS: u64 = 150_000_000;

/// Departures of a train, as the path is to be measured against them.
///
/// A sender that is late for want of a CPU states when it sent. One that is late because the socket had no room is held up by
/// the path, whose first line is this host's own: it states when it would have sent.
#[derive(Debug, Default)]
struct Departures {
    burst_ns: u64,
    stated_ns: Vec<u64>,
    /// By how much what is stated is before what happened.
    owed_ns: u64,
}

impl Departures {
    /// A burst is about to go at `now_ns`; since the last one, `waited_ns` were spent waiting for room.
    fn note(&mut self, now_ns: u64, waited_ns: u64) {
        let due_ns = self
            .stated_ns
            .last()
            .map_or(now_ns, |last_ns| last_ns + self.burst_ns);
        self.owed_ns = (self.owed_ns + waited_ns).min(now_ns.saturating_sub(due_ns));
        self.stated_ns.push(now_ns - self.owed_ns);
    }
}

/// Sends trains.
pub(super) struct Outbox<'a> {
    udp: &'a Socket,
    token: u32,
    rate_bps: u64,
    packet_bytes: usize,
    train: &'a TrainPlan,
    /// One burst.
    slots: PageBuffer,
    gso: bool,
    /// Time that this train waited for room.
    waited_ns: u64,
}

impl<'a> Outbox<'a> {
    /// For trains laid out as `train` on a socket that does not block.
    pub(super) fn new(udp: &'a Socket, plan: &CheckPlan, train: &'a TrainPlan) -> Self {
        let mut slots = PageBuffer::new(plan.packet_bytes * train.burst_packets() as usize);
        let padding = payload(u64::from(plan.token), 0, plan.packet_bytes - HEADER_BYTES);
        for slot in slots.chunks_exact_mut(plan.packet_bytes) {
            slot[HEADER_BYTES..].copy_from_slice(&padding);
        }
        Self {
            udp,
            token: plan.token,
            rate_bps: plan.rate_bps,
            packet_bytes: plan.packet_bytes,
            train,
            slots,
            gso: train.burst_packets() > 1,
            waited_ns: 0,
        }
    }

    /// Sends train `number`; gives the times of its bursts.
    ///
    /// # Errors
    /// `Spec` for packets over the path's MTU, else the kernel's.
    pub(super) fn send_train(&mut self, number: u32) -> Result<Vec<u64>, Failure> {
        let mut turn = Turn::new(self.rate_bps);
        let mut departures = Departures {
            burst_ns: self.train.burst_ns(),
            ..Departures::default()
        };
        let (mut index, mut last_ns, mut noted_ns) = (0, None, 0);
        self.waited_ns = 0;
        while index < self.train.packets() {
            let count = self.train.burst_packets().min(self.train.packets() - index);
            self.number(number, index, count);
            while !turn.wait() {}
            let now_ns = time::now_ns();
            if last_ns.is_some_and(|last_ns| now_ns - last_ns > self.train.burst_ns() + LATE_NS) {
                // A turn makes up for lateness at twice the rate: the queue would be one of our own making.
                turn = Turn::new(self.rate_bps);
                turn.wait();
            }
            last_ns = Some(now_ns);
            let waited_ns = self.waited_ns;
            departures.note(time::now_ns(), waited_ns - noted_ns);
            noted_ns = waited_ns;
            self.send_burst(count as usize)?;
            turn.sent(count as usize * self.train.payload_bytes() as usize);
            index += count;
        }
        Ok(departures.stated_ns)
    }

    fn number(&mut self, train: u32, first: u32, count: u32) {
        let slots = self.slots.chunks_exact_mut(self.packet_bytes);
        for (index, slot) in (first..first + count).zip(slots) {
            Datagram::Train { train, index }.write(self.token, slot);
        }
    }

    fn send_burst(&mut self, count: usize) -> Result<(), Failure> {
        let end = count * self.packet_bytes;
        if self.gso {
            match self.send(0, end) {
                Err(error) if is_refusal(&error) => self.gso = false,
                result => return self.judge(result),
            }
        }
        for first in (0..end).step_by(self.packet_bytes) {
            let result = self.send(first, first + self.packet_bytes);
            self.judge(result)?;
        }
        Ok(())
    }

    /// Sends the slots from `first` to `end`. Does so again after the refusal of a datagram before them, and waits for room.
    fn send(&mut self, first: usize, end: usize) -> io::Result<()> {
        let mut is_repeated = false;
        loop {
            let error = match self.send_once(first, end) {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            if error.kind() == io::ErrorKind::WouldBlock && self.waited_ns < MAX_WAIT_NS {
                self.wait_for_room()?;
            } else if is_of_the_past(&error) && !is_repeated {
                is_repeated = true;
            } else {
                return Err(error);
            }
        }
    }

    fn send_once(&self, first: usize, end: usize) -> io::Result<usize> {
        let bytes = &self.slots[first..end];
        if self.gso {
            // A datagram is at most 65,507 bytes.
            kernel::send_segments(self.udp.as_fd(), bytes, self.packet_bytes as u16)
        } else {
            kernel::send(self.udp.as_fd(), bytes)
        }
    }

    fn wait_for_room(&mut self) -> io::Result<()> {
        let begin_ns = time::now_ns();
        let left = Duration::from_nanos(MAX_WAIT_NS - self.waited_ns);
        wait_ready([(self.udp.as_fd(), Interest::Writable)], left)?;
        self.waited_ns += time::now_ns() - begin_ns;
        Ok(())
    }

    fn judge(&self, result: io::Result<()>) -> Result<(), Failure> {
        let Err(error) = result else { return Ok(()) };
        let is_lost =
            error.kind() == io::ErrorKind::WouldBlock || error.raw_os_error() == Some(errno::ENOBUFS);
        if error.raw_os_error() == Some(errno::EMSGSIZE) {
            let packet = self.packet_bytes;
            let reason = format!("{packet} bytes exceed the path's MTU: use fewer, or leave the option out");
            return Err(Failure::option("rbudp.packet_bytes", reason));
        }
        // Lost here is as lost on the way: nobody there, or no room.
        if is_lost || is_of_the_past(&error) {
            return Ok(());
        }
        Err(while_moving("checking the path", &error))
    }
}

/// Whether the kernel or the device does not cut batches.
fn is_refusal(error: &io::Error) -> bool {
    let refusals = [errno::EINVAL, errno::EMSGSIZE, errno::EIO];
    error
        .raw_os_error()
        .is_some_and(|number| refusals.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is stated of bursts due every 100 ns that went at these times after these waits.
    fn stated(bursts: &[(u64, u64)]) -> Vec<u64> {
        let mut departures = Departures {
            burst_ns: 100,
            ..Departures::default()
        };
        bursts
            .iter()
            .for_each(|&(now_ns, waited_ns)| departures.note(now_ns, waited_ns));
        departures.stated_ns
    }

    #[test]
    fn a_late_sender_states_when_it_sent() {
        let late = [(1_000, 0), (1_100, 0), (5_200, 0), (5_300, 0), (5_380, 0)];
        assert_eq!(stated(&late), [1_000, 1_100, 5_200, 5_300, 5_380]);
    }

    #[test]
    fn a_sender_without_room_states_when_it_would_have_sent() {
        let held_up = [(1_000, 0), (1_200, 100), (1_400, 100), (1_600, 100)];
        assert_eq!(stated(&held_up), [1_000, 1_100, 1_200, 1_300]);
        let both = [(1_000, 0), (1_200, 100), (9_300, 0), (9_500, 100)];
        assert_eq!(stated(&both), [1_000, 1_100, 9_200, 9_300]);
    }

    #[test]
    fn waits_that_were_made_up_for_excuse_nothing_later() {
        let caught_up = [(1_000, 0), (1_150, 50), (1_200, 0), (1_400, 0)];
        assert_eq!(stated(&caught_up), [1_000, 1_100, 1_200, 1_400]);
    }
}
