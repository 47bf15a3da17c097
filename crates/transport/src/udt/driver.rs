//! Runs one connection on its socket: datagrams in, time, datagrams out.
//!
//! One thread does everything, in turns: take what has come, do what time demands, send what may go. Nothing here
//! blocks but [`Driver::wait`], so whoever drives can look at its own affairs between two turns.

use std::io;
use std::time::Duration;

use farline_proto::udt::handshake::{Agreed, Offer, late_answer};
use farline_proto::udt::wire::destination_of;
use farline_proto::udt::{Closed, Connection, Reader, State, Statistics};
use farline_spec::unit::counted;
use farline_spec::{Failure, FailureKind, Granted, RunSpec};
use farline_sys::datagram::{RECEIVE_BYTES, receive_batch_now};
use farline_sys::{datagram, thread, time};

use super::options::{Setup, SocketOptions, packet_bytes};
use super::outlet::Outlet;
use super::port::Member;
use farline_sys::page_buffer::PageBuffer;

/// Receive calls of one turn, where the kernel collects datagrams and where it does not.
const BATCH_READS: usize = 16;
const SINGLE_READS: usize = 64;
/// Bursts of one turn; then it is time to look whether an ACK has come.
const BURSTS: usize = 4;
/// Bytes that are read from what waits, or time that passes with it, before it is time to look at the socket again.
const TURN_BYTES: usize = 256 << 10;
const TURN_NS: u64 = 50_000;
/// Waits up to this are spun through: sleeping takes longer.
const SPIN_NS: u64 = 20_000;
/// A peer whose host has said for this long that nobody has its port, and from which nothing comes, is gone.
const REFUSED_NS: u64 = 1_000_000_000;
/// What a datagram with a handshake begins with.
const HANDSHAKE_WORD: [u8; 4] = [0x80, 0, 0, 0];

/// A connection and the socket that it is on.
#[derive(Debug)]
pub(super) struct Driver {
    pub(super) connection: Connection,
    pub(super) member: Member,
    agreed: Agreed,
    offer: Offer,
    setup: Setup,
    outlet: Outlet,
    buffer: PageBuffer,
    reads: usize,
    refused_since_ns: Option<u64>,
    strays: u64,
    has_started: bool,
    /// Bytes read since the last turn of [`Self::fill`], and when that was.
    unturned_bytes: usize,
    turned_ns: u64,
}

impl Driver {
    /// Opens the connection that was agreed on.
    pub(super) fn new(
        member: Member,
        mut setup: Setup,
        (agreed, offer): (Agreed, Offer),
        options: &SocketOptions,
    ) -> Result<Self, Failure> {
        let config = setup.config(&agreed, options)?;
        let gso = setup.choose_gso(packet_bytes(&agreed));
        Ok(Self {
            connection: Connection::new(&config, &agreed, time::now_ns()),
            outlet: Outlet::new(config.burst_packets, gso),
            buffer: PageBuffer::new(RECEIVE_BYTES),
            reads: if setup.gro { BATCH_READS } else { SINGLE_READS },
            refused_since_ns: None,
            strays: 0,
            has_started: false,
            unturned_bytes: 0,
            turned_ns: 0,
            member,
            agreed,
            offer,
            setup,
        })
    }

    /// One turn; what comes in order goes to `reader` first. Gives how many calls moved something: after none it is
    /// time to wait.
    ///
    /// # Errors
    /// The socket's that no repetition mends, and that the peer's port is gone.
    #[inline]
    pub(super) fn turn(&mut self, reader: &mut Reader<'_>) -> Result<usize, Failure> {
        let came = self.receive(reader)?;
        let now_ns = time::now_ns();
        if self
            .connection
            .next_timeout()
            .is_some_and(|due_ns| due_ns <= now_ns)
        {
            self.connection.handle_timeout(now_ns);
        }
        Ok(came + self.transmit()?)
    }

    /// Fills `buffer` with bytes of the stream that are there; gives how many. What waits in the connection is given
    /// first, without a turn for every small piece of it.
    #[inline]
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, Failure> {
        let now_ns = time::now_ns();
        let read = self.connection.read(now_ns, buffer);
        self.unturned_bytes += read;
        let is_due = self.unturned_bytes >= TURN_BYTES || now_ns - self.turned_ns >= TURN_NS;
        if read > 0 && !is_due {
            return Ok(read);
        }
        (self.unturned_bytes, self.turned_ns) = (0, now_ns);
        if read > 0 && buffer.len() - read < RECEIVE_BYTES {
            // What comes now would have to be copied twice. A failure comes again with the next turn.
            let _ = self.turn(&mut Reader::none());
            return Ok(read);
        }
        let mut reader = Reader::new(&mut buffer[read..]);
        let turned = self.turn(&mut reader);
        match read + reader.filled {
            0 => turned.map(|_| 0),
            filled => Ok(filled),
        }
    }

    /// Sends what may go now, a few bursts at most.
    #[inline]
    pub(super) fn transmit(&mut self) -> Result<usize, Failure> {
        for sent in 0..BURSTS {
            let Some(burst) = self.connection.poll_transmit(time::now_ns()) else {
                return Ok(sent);
            };
            self.outlet.send(&self.member, burst.bytes, burst.segment_bytes)?;
        }
        Ok(BURSTS)
    }

    /// Takes what has come, as long as a whole batch fits `reader` or nothing has gone there.
    fn receive(&mut self, reader: &mut Reader<'_>) -> Result<usize, Failure> {
        let mut came = self.receive_parcels(reader);
        while came < self.reads && (reader.filled == 0 || reader.room() >= RECEIVE_BYTES) {
            match receive_batch_now(self.member.fd(), &mut self.buffer) {
                Ok(batch) => {
                    self.take(batch.bytes, batch.segment_bytes, reader);
                    came += 1;
                }
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => break,
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::ConnectionRefused => self.outlet.is_refused = true,
                    // Other ICMP answers: the path may come back, and if not the connection will find out.
                    io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable
                    | io::ErrorKind::NetworkDown
                    | io::ErrorKind::PermissionDenied => {}
                    _ if is_passing(&error) => {}
                    _ => return Err(crate::failure::while_moving("receiving", &error)),
                },
            }
        }
        if came > 0 {
            // Anyone on the way could say that nobody has the peer's port; a peer that is heard is there.
            (self.outlet.is_refused, self.refused_since_ns) = (false, None);
        } else if self.outlet.is_refused {
            self.note_refusal()?;
        }
        Ok(came)
    }

    /// Takes a batch that lies in the buffer.
    #[inline]
    fn take(&mut self, bytes: usize, segment_bytes: usize, reader: &mut Reader<'_>) {
        let datagrams = &self.buffer[..bytes];
        if is_all_for(self.member.id, datagrams, segment_bytes) {
            self.connection
                .handle_datagrams(time::now_ns(), datagrams, segment_bytes, reader);
            return;
        }
        let buffer = std::mem::take(&mut self.buffer);
        self.sort(&buffer[..bytes], segment_bytes, reader);
        self.buffer = buffer;
    }

    fn receive_parcels(&mut self, reader: &mut Reader<'_>) -> usize {
        let mut came = 0;
        while came < self.reads {
            let Some(parcel) = self.member.inbox.take() else {
                break;
            };
            self.sort(&parcel.bytes, parcel.segment_bytes, reader);
            came += 1;
        }
        came
    }

    /// Takes datagrams of which some are not this connection's data or control.
    #[cold]
    fn sort(&mut self, datagrams: &[u8], segment_bytes: usize, reader: &mut Reader<'_>) {
        let mut left = datagrams;
        while !left.is_empty() {
            let (run, rest) = left.split_at(run_bytes(left, segment_bytes));
            left = rest;
            let to = destination_of(run);
            if !is_handshake(run) && to == Some(self.member.id) {
                self.connection
                    .handle_datagrams(time::now_ns(), run, segment_bytes, reader);
            } else if let Some(answer) = late_answer(&self.agreed, &self.offer, run) {
                // One that is lost here is as one lost on the way.
                let _ = datagram::send(self.member.fd(), &answer);
            } else if to != Some(self.member.id) && !self.member.pass_on(run, segment_bytes) {
                self.strays += run.len().div_ceil(segment_bytes.max(1)) as u64;
            }
        }
    }

    /// Takes a batch that came while the connection was being opened.
    pub(super) fn take_early(&mut self, datagrams: &[u8], segment_bytes: usize) {
        self.sort(datagrams, segment_bytes, &mut Reader::none());
    }

    /// The peer's host says that nobody has the port, and nothing has come from the peer since it did so first.
    #[cold]
    fn note_refusal(&mut self) -> Result<(), Failure> {
        self.outlet.is_refused = false;
        let now_ns = time::now_ns();
        if self.connection.state() == State::Finishing && self.connection.is_delivered() {
            // It has everything and need not wait for our last word.
            self.connection.close(now_ns);
            return Ok(());
        }
        let since_ns = *self.refused_since_ns.get_or_insert(now_ns);
        if now_ns - since_ns < REFUSED_NS {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Protocol,
            format!(
                "UDT connection with {}: the other end is gone",
                self.member.port.remote
            ),
        ))
    }

    /// From now on another thread may drive.
    pub(super) fn change_thread(&mut self) {
        self.has_started = false;
    }

    /// Waits until a datagram comes, something is due, somebody wakes the connection, or `until_ns`. Short waits are
    /// left to the caller's next turn.
    pub(super) fn wait(&mut self, until_ns: u64) -> Result<(), Failure> {
        if !self.has_started {
            // Here, not in `new`: it is the thread that drives that has to wake in time.
            thread::set_finest_timer_slack();
            self.has_started = true;
        }
        let due_ns = self.connection.next_timeout().unwrap_or(u64::MAX).min(until_ns);
        let wait_ns = due_ns.saturating_sub(time::now_ns());
        if wait_ns <= SPIN_NS {
            std::hint::spin_loop();
            return Ok(());
        }
        self.member.wait(Duration::from_nanos(wait_ns))
    }

    /// Sleeps for `nap_ns` so that more gathers, unless something is due before.
    pub(super) fn nap(&mut self, nap_ns: u64) {
        let wake_ns = time::now_ns() + nap_ns;
        if self
            .connection
            .next_timeout()
            .is_none_or(|due_ns| due_ns > wake_ns)
        {
            time::sleep_until(wake_ns, 0);
        }
    }

    /// How the connection ended, if it has.
    pub(super) fn closed(&self) -> Option<Closed> {
        match self.connection.state() {
            State::Closed(closed) => Some(closed),
            State::Open | State::Finishing => None,
        }
    }

    /// The failure of a connection that ended as `closed` says while it was still needed.
    pub(super) fn failure(&self, closed: Closed) -> Failure {
        let (kind, reason) = match closed {
            Closed::ByUs => (FailureKind::Internal, "it was closed by this end".to_owned()),
            Closed::ByPeer => (FailureKind::Protocol, "the other end has closed it".to_owned()),
            Closed::Aborted => (FailureKind::Protocol, "the other end has given up".to_owned()),
            Closed::PeerDead => (FailureKind::Timeout, "the other end stopped answering".to_owned()),
            Closed::PeerError(code) => (
                FailureKind::Protocol,
                format!("the other end reports error {code}"),
            ),
        };
        let remote = self.member.port.remote;
        Failure::new(kind, format!("UDT connection with {remote}: {reason}"))
    }

    /// Delivers what was written, then ends the connection; false if the other end does not have everything by
    /// `until_ns`.
    ///
    /// # Errors
    /// When the other end ended it before it had everything, or is gone; `interrupted`'s, looked at at least ten
    /// times a second.
    pub(super) fn finish(
        &mut self,
        until_ns: u64,
        interrupted: &dyn Fn() -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        self.connection.finish();
        loop {
            interrupted()?;
            let moved = self.turn(&mut Reader::none());
            match self.closed() {
                Some(Closed::ByUs) => {
                    let _ = self.transmit();
                    return Ok(true);
                }
                Some(closed) => return Err(self.failure(closed)),
                None => {}
            }
            let now_ns = time::now_ns();
            if now_ns >= until_ns {
                return Ok(self.connection.is_delivered());
            }
            if moved? == 0 {
                self.wait(until_ns.min(now_ns + super::SLICE_NS))?;
            }
        }
    }

    /// Figures up to now.
    pub(super) fn statistics(&self) -> Statistics {
        self.connection.statistics(time::now_ns())
    }

    /// UDP payload of a full packet.
    pub(super) fn packet_bytes(&self) -> usize {
        packet_bytes(&self.agreed)
    }

    /// What the kernel granted, and what was changed on the way.
    pub(super) fn granted(&self, spec: &RunSpec) -> Granted {
        let granted = self.setup.granted(&self.member.port.socket, spec);
        let mut notes = granted.notes;
        notes.extend(self.setup.packet_note(&self.agreed));
        notes.extend(self.setup.receive_note(self.packet_bytes()));
        notes.extend(self.outlet.notes.iter().cloned());
        if self.strays > 0 {
            let strays = self.strays;
            notes.push(format!(
                "ignored {} that did not belong to this connection",
                counted(strays, "datagram")
            ));
        }
        Granted {
            congestion_control: Some(self.connection.control_name().to_owned()),
            mss_bytes: Some(self.agreed.mss_bytes),
            packet_bytes: Some(self.packet_bytes() as u32),
            batch_packets: Some(self.outlet.most_packets() as u32),
            gso: Some(self.outlet.gso),
            notes,
            ..granted
        }
    }
}

impl Drop for Driver {
    /// Tells the other end, which would otherwise wait for most of a minute.
    fn drop(&mut self) {
        if self.closed().is_none() {
            self.connection.close(time::now_ns());
        }
        let _ = self.transmit();
    }
}

fn is_passing(error: &io::Error) -> bool {
    // EMSGSIZE: an ICMP "too big" of an earlier packet; EPROTO and the like: other ICMP answers.
    matches!(
        error.raw_os_error(),
        Some(crate::socket::errno::EMSGSIZE | 71 | 92)
    )
}

#[inline]
fn is_handshake(datagram: &[u8]) -> bool {
    datagram.starts_with(&HANDSHAKE_WORD)
}

#[inline]
fn is_all_for(id: u32, datagrams: &[u8], segment_bytes: usize) -> bool {
    datagrams
        .chunks(segment_bytes)
        .all(|datagram| destination_of(datagram) == Some(id) && !is_handshake(datagram))
}

/// Length of the datagrams at the beginning that have one destination; of one handshake.
fn run_bytes(datagrams: &[u8], segment_bytes: usize) -> usize {
    let mut pieces = datagrams.chunks(segment_bytes.max(1));
    let Some(first) = pieces.next() else { return 0 };
    if is_handshake(first) {
        return first.len();
    }
    let to = destination_of(first);
    let more = pieces.take_while(|piece| destination_of(piece) == to && !is_handshake(piece));
    first.len() + more.map(<[u8]>::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(to: u32, length: usize, is_handshake: bool) -> Vec<u8> {
        let mut bytes = vec![0; length];
        bytes[12..16].copy_from_slice(&to.to_be_bytes());
        bytes[0] = if is_handshake { 0x80 } else { 0 };
        bytes
    }

    #[test]
    fn runs_end_where_the_destination_changes_and_handshakes_stand_alone() {
        let batch = [
            datagram(7, 20, false),
            datagram(7, 20, false),
            datagram(8, 20, false),
            datagram(8, 20, true),
            datagram(8, 17, false),
        ]
        .concat();
        let mut lengths = Vec::new();
        let mut left = &batch[..];
        while !left.is_empty() {
            let length = run_bytes(left, 20);
            lengths.push(length);
            left = &left[length..];
        }
        assert_eq!(lengths, [40, 20, 20, 17]);
        assert!(is_all_for(7, &batch[..40], 20) && !is_all_for(7, &batch[..60], 20));
        assert!(!is_all_for(8, &batch[60..], 20), "a handshake is looked at apart");
    }
}
