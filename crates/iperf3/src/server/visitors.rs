//! Connections that have not said their cookie: no thread, one descriptor each, a short time, and fair shares.

use std::io::{ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use farline_proto::iperf3::{COOKIE_BYTES, Cookie, is_cookie};
use farline_spec::{Failure, FailureKind};
use farline_transport::{Crowd, Shares};

use super::protocol;

/// Most connections that wait here.
const MOST: usize = 256;
/// Time to send a cookie.
const PATIENCE: Duration = Duration::from_secs(8);

/// A connection that waits.
#[derive(Debug)]
struct Visitor {
    socket: TcpStream,
    peer: SocketAddr,
    /// Its place in the order in which connections came.
    order: u64,
    since: Instant,
    cookie: Cookie,
    read: usize,
}

/// A connection with a cookie.
#[derive(Debug)]
pub struct Named {
    /// The connection; it does not block.
    pub socket: TcpStream,
    /// Where it comes from.
    pub peer: SocketAddr,
    /// Its place in the order in which connections came, which is that of a client's streams.
    pub order: u64,
    /// What it said.
    pub cookie: Cookie,
}

/// What became of one that waited.
pub type Left = Result<Named, (SocketAddr, Failure)>;

/// The connections that wait.
#[derive(Debug)]
pub struct Visitors {
    crowd: Crowd<Visitor>,
    shares: Shares,
    next: u64,
}

impl Visitors {
    /// Nobody yet.
    pub fn new() -> Self {
        Self {
            crowd: Crowd::default(),
            shares: Shares::of(MOST),
            next: 0,
        }
    }

    /// Lets one in; gives whoever has to go for it.
    pub fn enter(&mut self, socket: TcpStream, peer: SocketAddr, now: Instant) -> Option<Left> {
        if let Err(error) = socket.set_nonblocking(true) {
            return Some(Err((peer, Failure::system("control socket", &error))));
        }
        self.next += 1;
        let visitor = Visitor {
            socket,
            peer,
            order: self.next,
            since: now,
            cookie: [0; COOKIE_BYTES],
            read: 0,
        };
        self.crowd.join(peer.ip(), visitor);
        let index = self.crowd.one_too_many(self.shares)?;
        let gone = self.crowd.remove(index);
        let line = format!(
            "{MOST} connections are waiting to say what they are: closing the oldest of the address that has most"
        );
        Some(Err((gone.peer, Failure::new(FailureKind::Busy, line))))
    }

    /// What to wait for before [`Self::look`] has something.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.crowd.iter().map(|visitor| visitor.socket.as_fd())
    }

    /// When to look again at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.crowd.iter().map(|visitor| visitor.since + PATIENCE).min()
    }

    /// Looks at all of them; gives those that leave, in the order in which they came.
    pub fn look(&mut self, now: Instant) -> Vec<Left> {
        let mut leaving = Vec::new();
        for (index, visitor) in self.crowd.iter_mut().enumerate() {
            if let Some(verdict) = visitor.look(now) {
                leaving.push((index, verdict));
            }
        }
        let mut left: Vec<_> = leaving
            .into_iter()
            .rev()
            .filter_map(|(index, verdict)| self.crowd.remove(index).leave(verdict))
            .collect();
        left.reverse();
        left
    }
}

/// Why one leaves.
enum Verdict {
    Named,
    /// It closed before its first byte: somebody looked whether the port is open.
    Silent,
    Refused(Failure),
}

impl Visitor {
    fn look(&mut self, now: Instant) -> Option<Verdict> {
        while self.read < COOKIE_BYTES {
            match self.socket.read(&mut self.cookie[self.read..]) {
                Ok(0) if self.read == 0 => return Some(Verdict::Silent),
                Ok(0) => {
                    return Some(Verdict::Refused(protocol(
                        "the connection closed within its first 37 bytes",
                    )));
                }
                Ok(bytes) => self.read += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return self.late(now),
                Err(error) => return Some(Verdict::Refused(Failure::system("control socket", &error))),
            }
        }
        let verdict = if is_cookie(&self.cookie) {
            Verdict::Named
        } else {
            Verdict::Refused(protocol(
                "the other end is not iperf3: it did not begin with a cookie",
            ))
        };
        Some(verdict)
    }

    fn late(&self, now: Instant) -> Option<Verdict> {
        let line = "the connection sent no cookie within the time limit";
        (now >= self.since + PATIENCE).then(|| Verdict::Refused(Failure::new(FailureKind::Timeout, line)))
    }

    fn leave(self, verdict: Verdict) -> Option<Left> {
        match verdict {
            Verdict::Silent => None,
            Verdict::Refused(failure) => Some(Err((self.peer, failure))),
            Verdict::Named => Some(Ok(Named {
                socket: self.socket,
                peer: self.peer,
                order: self.order,
                cookie: self.cookie,
            })),
        }
    }
}
