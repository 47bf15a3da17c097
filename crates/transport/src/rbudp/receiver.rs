//! The receiving end: drives the machine that knows what is missing.

use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::time::Duration;

use farline_proto::rbudp::wire::Message;
use farline_proto::rbudp::{Receiver as Machine, ReceiverOptions, settle_ns};
use farline_spec::unit::counted;
use farline_spec::{Failure, FailureKind, RbudpReceiver, RunSpec};
use farline_sys::wake::{Interest, wait_ready};
use farline_sys::{thread, time};

use super::feedback::Feedback;
use super::link::{Link, or_aborted, violated};
use super::memory::Slots;
use super::options::{in_flight_of, options_of, path_bytes};
use super::parts::Parts;
use super::place::{FileStore, Intake, Store};
use crate::failure::{aborted, is_slice, while_moving};
use crate::nap::Nap;
use crate::socket::SLICE;
use crate::tally::as_i64;
use crate::{Received, StreamReport};

/// Bytes after which the caller gets to look around.
pub(super) const BLOCK_BYTES: usize = 256 << 10;

pub(super) struct Receiver {
    pub(super) machine: Machine,
    pub(super) feedback: Feedback,
    pub(super) intake: Intake,
    nap: Nap,
    /// The blast that was delivered by the last call and whose slot is still its own.
    pub(super) delivered: Option<(u32, u64)>,
    /// How many of its bytes have been handed out, where they are handed out at all.
    pub(super) handed_bytes: usize,
    /// When the sockets were looked at last while bytes were handed out.
    pub(super) looked_ns: u64,
    report: StreamReport,
    is_started: bool,
}

impl Receiver {
    /// A receiver with room for what `spec` lets be under way.
    ///
    /// # Errors
    /// `Spec` when the client's file cannot be made.
    pub(super) fn new(parts: Parts, spec: &RunSpec, socket_bytes: usize) -> Result<Self, Failure> {
        let options = options_of(spec);
        let packet_bytes = parts.setup.packet_bytes();
        let payload_bytes = spec
            .total_bytes
            .map_or(u64::MAX, |total| total.get())
            .min(options.payload_bytes.get());
        let in_flight = in_flight_of(&options);
        let machine = Machine::new(ReceiverOptions {
            packet_bytes,
            payload_bytes,
            in_flight,
            settle_ns: settle_ns(parts.rtt_ns),
            checksum: options.checksum,
        });
        let store = match options.file.as_deref().filter(|_| parts.is_client) {
            Some(name) => Store::File(FileStore::create(name, options.payload_bytes.get())?),
            None if options.receiver == RbudpReceiver::Fake => Store::Nothing,
            None => {
                let slot_bytes = slot_bytes(payload_bytes, packet_bytes);
                let blasts = spec
                    .total_bytes
                    .map_or(u64::MAX, |total| total.get().div_ceil(payload_bytes));
                // A copy may be over before it needs more.
                let most = if spec.copy.is_some() {
                    2
                } else {
                    in_flight as usize
                };
                let touched = slots_needed(spec, parts.rtt_ns, slot_bytes)
                    .min(usize::try_from(blasts).unwrap_or(usize::MAX));
                Store::Memory(Slots::new(slot_bytes, touched.min(most)))
            }
        };
        Ok(Self {
            machine,
            feedback: parts.feedback,
            intake: Intake::new(
                parts.token,
                packet_bytes,
                options.checksum,
                options.receiver,
                store,
            ),
            nap: Nap::new(socket_bytes),
            delivered: None,
            handed_bytes: 0,
            looked_ns: 0,
            report: StreamReport {
                path_check: parts.check,
                ..StreamReport::default()
            },
            is_started: false,
        })
    }

    /// Receives until something is new, a blast is whole, or a time slice is over.
    pub(super) fn receive(&mut self, link: &Link) -> Result<Received, Failure> {
        let result = self.receive_some(link);
        self.settle(link, result)
    }

    pub(super) fn settle<T>(&mut self, link: &Link, result: Result<T, Failure>) -> Result<T, Failure> {
        let result = or_aborted(link, result);
        self.publish(link);
        if let Err(failure) = &result {
            self.feedback.give_up_for(failure);
        }
        result
    }

    pub(super) fn start(&mut self) {
        if !std::mem::replace(&mut self.is_started, true) {
            // Here, not in `new`: it is the thread that receives that has to wake in time.
            thread::set_finest_timer_slack();
        }
    }

    fn receive_some(&mut self, link: &Link) -> Result<Received, Failure> {
        self.start();
        if let Some((blast, _)) = self.delivered.take() {
            self.machine.release(blast);
            self.intake.release(blast);
        }
        let until_ns = time::now_ns() + SLICE.as_nanos() as u64;
        let mut fresh = 0;
        loop {
            if link.tally.is_aborted() {
                return Err(aborted());
            }
            let (bytes, is_empty) = self.take_bursts(link, BLOCK_BYTES - fresh)?;
            fresh += bytes;
            let now_ns = time::now_ns();
            self.converse(now_ns, is_empty)?;
            if let Some(whole) = self.machine.poll_whole().map_err(violated)? {
                self.delivered = Some(whole);
                break;
            }
            if fresh == 0 && self.machine.is_ended() && !self.feedback.has_waiting() {
                return self.end();
            }
            if fresh >= BLOCK_BYTES || (fresh > 0 && is_empty) || now_ns >= until_ns {
                break;
            }
            if is_empty {
                self.wait(link, until_ns)?;
            }
        }
        if fresh > 0 {
            link.tally.count_block(fresh);
        }
        Ok(Received::Bytes(fresh))
    }

    /// Takes bursts until `most` bytes are new or nothing is there; gives what is new and whether nothing is there.
    pub(super) fn take_bursts(&mut self, link: &Link, most: usize) -> Result<(usize, bool), Failure> {
        let mut fresh = 0;
        // Duplicates are not new, but they must not keep the thread from looking around either.
        for _ in 0..=BLOCK_BYTES / 4096 {
            let now_ns = time::now_ns();
            match self.intake.take(link.socket.as_fd(), &mut self.machine, now_ns) {
                Ok(bytes) => {
                    fresh += bytes;
                    self.nap.received(now_ns, bytes);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok((fresh, true)),
                Err(error) if is_slice(&error) || error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(while_moving("receiving", &error)),
            }
            for done in self.intake.dones() {
                self.machine.handle_done(now_ns, done).map_err(violated)?;
            }
            if fresh >= most {
                break;
            }
        }
        Ok((fresh, false))
    }

    /// Hears and says what is to be said over the connection.
    pub(super) fn converse(&mut self, now_ns: u64, is_idle: bool) -> Result<(), Failure> {
        // Only once every datagram that has come is in its place: a DONE must not overtake the packets it is about.
        if is_idle {
            self.feedback.read()?;
            while let Some(message) = self.feedback.next()? {
                self.hear(now_ns, message)?;
            }
            if self.feedback.is_closed() && !self.machine.is_ended() {
                let line = "data stream: the sender closed it before its blasts were complete";
                return Err(Failure::new(FailureKind::Protocol, line));
            }
        }
        while let Some(message) = self.machine.poll_message(now_ns) {
            self.feedback.put(&message)?;
        }
        while let Some(blast) = self.machine.poll_blast() {
            self.report.keep(blast);
        }
        self.feedback.flush()
    }

    fn hear(&mut self, now_ns: u64, message: Message) -> Result<(), Failure> {
        if let Message::Failed(reason) = message {
            return Err(Failure::new(
                FailureKind::Protocol,
                format!("data stream: the sender gave up: {reason}"),
            ));
        }
        self.machine.handle_message(now_ns, message).map_err(violated)
    }

    /// The last word has been said: a file gets its name.
    pub(super) fn end(&mut self) -> Result<Received, Failure> {
        if let Store::File(file) = self.intake.store() {
            file.finish()?;
        }
        Ok(Received::End)
    }

    pub(super) fn wait(&mut self, link: &Link, until_ns: u64) -> Result<(), Failure> {
        let now_ns = time::now_ns();
        self.nap.received(now_ns, 0);
        let due_ns = self
            .machine
            .poll_timeout()
            .map_or(until_ns, |due_ns| due_ns.min(until_ns));
        let left_ns = due_ns.saturating_sub(now_ns);
        match self.nap.length_ns() {
            0 => {}
            nap_ns => {
                time::sleep_until(now_ns + nap_ns.min(left_ns), 0);
                return Ok(());
            }
        }
        let fds = [(link.socket.as_fd(), Interest::Readable), self.feedback.wanted()];
        wait_ready(fds, Duration::from_nanos(left_ns))
            .map(drop)
            .map_err(|error| Failure::system("waiting for datagrams", &error))
    }

    fn publish(&self, link: &Link) {
        let statistics = self.machine.statistics();
        link.packets.set(as_i64(self.intake.figures().packets));
        link.duplicate_packets.set(as_i64(statistics.duplicate_packets));
        link.lost_packets.set(as_i64(statistics.first_pass_lost_packets));
        link.reports.set(as_i64(statistics.sent_reports));
    }

    pub(super) fn visit_delivered(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Some((blast, bytes)) = self.delivered {
            self.intake.visit(blast, bytes, visit);
        }
    }

    pub(super) fn report(&self) -> StreamReport {
        self.report.clone()
    }

    /// What is worth a line in the record.
    pub(super) fn notes(&self) -> Vec<String> {
        let figures = self.intake.figures();
        let strays = (figures.strays > 0).then(|| {
            format!(
                "ignored {} that did not belong to this stream",
                counted(figures.strays, "datagram")
            )
        });
        let corrupt = (figures.corrupt > 0).then(|| {
            let count = figures.corrupt;
            format!(
                "requested again: {} that arrived corrupted",
                counted(count, "packet")
            )
        });
        [strays, corrupt].into_iter().flatten().collect()
    }
}

/// Room for whole packets only, so that each can be received into its place.
fn slot_bytes(payload_bytes: u64, packet_bytes: usize) -> usize {
    let packets = payload_bytes.div_ceil(packet_bytes as u64);
    usize::try_from(packets)
        .unwrap_or(usize::MAX)
        .saturating_mul(packet_bytes)
}

/// Slots that are under way at once at the stated rate: what is sent in two round-trip times, and the one being filled.
fn slots_needed(spec: &RunSpec, rtt_ns: u64, slot_bytes: usize) -> usize {
    let slots = path_bytes(spec, 2 * rtt_ns) / slot_bytes.max(1) as u128;
    2 + usize::try_from(slots).unwrap_or(usize::MAX / 2)
}
