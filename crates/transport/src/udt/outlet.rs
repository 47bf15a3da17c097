//! Gives bursts to the kernel, in as few calls as it takes.

use std::io;
use std::time::Duration;

use farline_spec::{Failure, kernel_words};
use farline_sys::datagram;
use farline_sys::wake::{Interest, wait_ready};

use super::port::Member;
use crate::failure::while_moving;
use crate::socket::errno;

/// Burst that kernels before 6.9 take.
const OLDER_BURST: usize = 64;
/// Pause after the device's queue was full, and how often.
const QUEUE_FULL: Duration = Duration::from_micros(50);
const PAUSES: usize = 20;
/// How long to wait for room in the socket's buffer before a burst is given up as lost.
const NO_ROOM: Duration = Duration::from_millis(10);

/// The way out of one connection.
#[derive(Debug)]
pub(super) struct Outlet {
    most_packets: usize,
    pub(super) gso: bool,
    /// What was changed on the way, one line each.
    pub(super) notes: Vec<String>,
    /// The other end's host says that nobody has its port.
    pub(super) is_refused: bool,
}

/// What became of an attempt.
enum Attempt {
    Done,
    Again,
    Smaller,
}

impl Outlet {
    /// A way for bursts of up to `most_packets` packets, cut by the kernel if `gso`.
    pub(super) fn new(most_packets: usize, gso: bool) -> Self {
        Self {
            most_packets,
            gso,
            notes: Vec::new(),
            is_refused: false,
        }
    }

    /// Most packets that one call takes now.
    pub(super) fn most_packets(&self) -> usize {
        if self.gso { self.most_packets } else { 1 }
    }

    /// Sends datagrams of `segment_bytes` each, the last of which may be shorter. What the kernel has no room for is
    /// given up as if it had been lost on the way: it will be sent again.
    ///
    /// # Errors
    /// Those that no repetition mends.
    #[inline]
    pub(super) fn send(
        &mut self,
        member: &Member,
        bytes: &[u8],
        segment_bytes: usize,
    ) -> Result<(), Failure> {
        let mut left = bytes;
        while !left.is_empty() {
            let most_bytes = self.most_packets().saturating_mul(segment_bytes);
            let (now, later) = left.split_at(left.len().min(most_bytes));
            if self.send_one(member, now, segment_bytes)? {
                left = later;
            }
        }
        Ok(())
    }

    /// Sends what fits one call; false if it must be smaller.
    #[inline]
    fn send_one(&mut self, member: &Member, bytes: &[u8], segment_bytes: usize) -> Result<bool, Failure> {
        for _ in 0..PAUSES {
            let result = if bytes.len() > segment_bytes {
                // A segment is shorter than a datagram can be, 65,507 bytes.
                datagram::send_segments(member.fd(), bytes, segment_bytes as u16)
            } else {
                datagram::send(member.fd(), bytes)
            };
            let Err(error) = result else { return Ok(true) };
            match self.judge(member, &error, bytes.len() > segment_bytes)? {
                Attempt::Done => return Ok(true),
                Attempt::Again => {}
                Attempt::Smaller => return Ok(false),
            }
        }
        Ok(true)
    }

    #[cold]
    fn judge(&mut self, member: &Member, error: &io::Error, is_burst: bool) -> Result<Attempt, Failure> {
        match error.kind() {
            io::ErrorKind::Interrupted => return Ok(Attempt::Again),
            io::ErrorKind::WouldBlock => {
                let fds = [(member.fd(), Interest::Writable)];
                wait_ready(fds, NO_ROOM).map_err(|error| Failure::system("waiting to send", &error))?;
                return Ok(Attempt::Again);
            }
            // An earlier datagram's ICMP answer; this one was not sent.
            io::ErrorKind::ConnectionRefused => {
                self.is_refused = true;
                return Ok(Attempt::Again);
            }
            _ => {}
        }
        match error.raw_os_error() {
            Some(errno::ENOBUFS) => {
                std::thread::sleep(QUEUE_FULL);
                Ok(Attempt::Again)
            }
            Some(errno::EINVAL | errno::EMSGSIZE | errno::EIO) if is_burst => {
                self.reduce(error);
                Ok(Attempt::Smaller)
            }
            // The path may come back; whether the other end still answers is for the connection to judge.
            Some(errno::EPERM | errno::ENETDOWN | errno::ENETUNREACH | errno::EHOSTUNREACH) => {
                Ok(Attempt::Done)
            }
            _ => Err(while_moving("sending", error)),
        }
    }

    /// The kernel or the device refuses the burst: smaller ones, then single datagrams.
    fn reduce(&mut self, error: &io::Error) {
        if self.most_packets > OLDER_BURST {
            self.most_packets = OLDER_BURST;
            self.notes.push(format!(
                "burst: {OLDER_BURST} packets: this kernel supports no more ({})",
                kernel_words(error)
            ));
            return;
        }
        self.gso = false;
        self.notes.push(format!(
            "gso: off: the kernel or the device refuses bursts ({})",
            kernel_words(error)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::udt::port::Port;
    use socket2::{Domain, Socket, Type};

    fn judged(outlet: &mut Outlet, number: i32, is_burst: bool) -> Result<Attempt, Failure> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        let member = Member::join(Port::alone(socket, "192.0.2.1:9".parse().unwrap())).unwrap();
        outlet.judge(&member, &io::Error::from_raw_os_error(number), is_burst)
    }

    #[test]
    fn a_kernel_that_refuses_bursts_gets_smaller_ones_then_single_packets() {
        let mut outlet = Outlet::new(128, true);
        assert!(matches!(
            judged(&mut outlet, errno::EINVAL, true),
            Ok(Attempt::Smaller)
        ));
        assert_eq!(outlet.most_packets(), OLDER_BURST);
        assert!(matches!(
            judged(&mut outlet, errno::EIO, true),
            Ok(Attempt::Smaller)
        ));
        assert_eq!((outlet.most_packets(), outlet.gso), (1, false));
        assert_eq!(outlet.notes.len(), 2);
        let failure = judged(&mut outlet, errno::EINVAL, false).err().unwrap();
        assert!(failure.message.contains("sending"), "{failure}");
    }

    #[test]
    fn a_path_that_is_gone_for_now_is_a_loss_and_no_failure() {
        let mut outlet = Outlet::new(44, true);
        for number in [
            errno::ENETUNREACH,
            errno::EHOSTUNREACH,
            errno::EPERM,
            errno::ENETDOWN,
        ] {
            assert!(matches!(judged(&mut outlet, number, true), Ok(Attempt::Done)));
        }
        assert!(matches!(
            judged(&mut outlet, errno::ENOBUFS, true),
            Ok(Attempt::Again)
        ));
        assert!(outlet.gso && outlet.notes.is_empty());
    }
}
