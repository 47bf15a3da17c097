//! Connections that have not said what they are: no thread, one descriptor each, a short time, and fair shares.
//!
//! A client's first message comes with its connection. Whoever is silent, or sends a byte now and then, costs a place
//! here and nothing else, and gives it up to whoever comes from where fewer wait.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_sys::option::set_receive_low_water;
use farline_transport::{Crowd, Shares, is_data_preamble};

use super::one_port::NAME_BYTES;

/// Most connections that wait here, should the process be allowed files enough.
const MOST_WAITING: usize = 1024;
/// Share of the files a process may open that may wait here.
const FILES_SHARE: u64 = 4;
/// Bytes that tell what a connection begins with.
const FIRST_BYTES: usize = 5;
/// First byte and major version of a TLS handshake record.
const TLS_HANDSHAKE: [u8; 2] = [22, 3];
const TLS_HEADER_BYTES: usize = 5;
const MAX_TLS_RECORD: usize = 16_384;
/// Pause before one is looked at again whose first bytes are only partly there, although the kernel called it readable.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What the first bytes of a connection say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// So many are needed to know.
    Needs(usize),
    /// A whole TLS record that begins a handshake.
    Client,
    /// The name of a data stream.
    Stream,
    Stranger,
}

/// A connection that waits.
#[derive(Debug)]
pub struct Visitor {
    /// The connection; nothing is taken from it.
    pub socket: TcpStream,
    /// Where it comes from.
    pub peer: SocketAddr,
    since: Instant,
    /// Bytes without which there is nothing to look at.
    needs: usize,
    rests_until: Option<Instant>,
    /// Its first message is there whole.
    is_ready: bool,
}

/// What became of one that waited.
#[derive(Debug)]
pub enum Left {
    /// It names a data stream.
    Stream(TcpStream, SocketAddr, [u8; NAME_BYTES]),
    /// It came to nothing.
    Refused(SocketAddr, Failure),
}

/// The connections that wait.
#[derive(Debug)]
pub struct Lobby {
    crowd: Crowd<Visitor>,
    shares: Shares,
    /// Time to say what it is.
    patience: Duration,
    /// Time to get a thread, once it has.
    queue: Duration,
    takes_streams: bool,
    buffer: Box<[u8]>,
}

impl Lobby {
    /// An empty one for a process that may open `open_files`. Where it `takes_streams`, data streams may come too.
    pub fn new(open_files: u64, (patience, queue): (Duration, Duration), takes_streams: bool) -> Self {
        let share = usize::try_from(open_files / FILES_SHARE).unwrap_or(MOST_WAITING);
        Self {
            crowd: Crowd::default(),
            shares: Shares::of(share.clamp(1, MOST_WAITING)),
            patience,
            queue,
            takes_streams,
            buffer: vec![0; TLS_HEADER_BYTES + MAX_TLS_RECORD].into(),
        }
    }

    /// Lets one in; gives whoever has to go for it.
    pub fn enter(&mut self, socket: TcpStream, peer: SocketAddr, now: Instant) -> Option<Left> {
        let prepared = socket
            .set_nonblocking(true)
            .and_then(|()| set_receive_low_water(socket.as_fd(), FIRST_BYTES));
        if let Err(error) = prepared {
            return Some(Left::Refused(peer, Failure::system("control socket", &error)));
        }
        let visitor = Visitor {
            socket,
            peer,
            since: now,
            needs: FIRST_BYTES,
            rests_until: None,
            is_ready: false,
        };
        self.crowd.join(peer.ip(), visitor);
        let index = self.crowd.one_too_many(self.shares)?;
        Some(self.push_out(index))
    }

    /// Makes room where the process can open no more files; nobody goes where nobody waits.
    pub fn make_room(&mut self) -> Option<Left> {
        let index = self.crowd.busiest()?;
        Some(self.push_out(index))
    }

    fn push_out(&mut self, index: usize) -> Left {
        let visitor = self.crowd.remove(index);
        let line = format!(
            "{} connections are waiting to start a session: closing the oldest one of the address that has most",
            self.crowd.len() + 1
        );
        Left::Refused(visitor.peer, Failure::new(FailureKind::Busy, line))
    }

    /// What to wait for before [`Self::look`] has something.
    pub fn fds(&self, now: Instant) -> Vec<BorrowedFd<'_>> {
        self.crowd
            .iter()
            .filter(|visitor| visitor.is_listened_to(now))
            .map(|visitor| visitor.socket.as_fd())
            .collect()
    }

    /// When to look again at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        let ends = |visitor: &Visitor| {
            self.ends(visitor)
                .min(visitor.rests_until.unwrap_or_else(|| self.ends(visitor)))
        };
        self.crowd.iter().map(ends).min()
    }

    fn ends(&self, visitor: &Visitor) -> Instant {
        let queue = if visitor.is_ready {
            self.queue
        } else {
            Duration::ZERO
        };
        visitor.since + self.patience + queue
    }

    /// Looks at those that `ready` says have something; it has an element for each of [`Self::fds`] of the same `now`.
    /// Gives those that leave: data streams, strangers and the late.
    pub fn look(&mut self, ready: &[bool], waited_since: Instant, now: Instant) -> Vec<Left> {
        let mut flags = ready.iter();
        let mut leaving = Vec::new();
        for (index, visitor) in self.crowd.iter_mut().enumerate() {
            let is_asked = visitor.is_listened_to(waited_since) && flags.next().is_some_and(|&ready| ready);
            if is_asked && visitor.look(&mut self.buffer, self.takes_streams, now) {
                leaving.push(index);
            }
        }
        let late = |(index, visitor): (usize, &Visitor)| (self.ends(visitor) <= now).then_some(index);
        leaving.extend(self.crowd.iter().enumerate().filter_map(late));
        leaving.sort_unstable();
        leaving.dedup();
        let gone: Vec<_> = leaving
            .into_iter()
            .rev()
            .map(|index| self.crowd.remove(index))
            .collect();
        gone.into_iter()
            .filter_map(|visitor| self.farewell(visitor))
            .collect()
    }

    /// Why one leaves; none for a connection that was closed before its first byte: somebody measured the path.
    fn farewell(&mut self, visitor: Visitor) -> Option<Left> {
        let Visitor { socket, peer, .. } = visitor;
        let refused = |kind, line: &str| Some(Left::Refused(peer, Failure::new(kind, line)));
        if visitor.is_ready {
            return refused(FailureKind::Busy, "the server stayed full for the time limit");
        }
        let seen = match socket.peek(&mut self.buffer) {
            Ok(0) => return None,
            Ok(seen) => &self.buffer[..seen],
            Err(error) if error.kind() == ErrorKind::WouldBlock => &[],
            Err(error) => return Some(Left::Refused(peer, Failure::system("control socket", &error))),
        };
        match first(seen, self.takes_streams) {
            First::Stream => match set_receive_low_water(socket.as_fd(), 1) {
                Ok(()) => seen[..NAME_BYTES]
                    .try_into()
                    .ok()
                    .map(|name| Left::Stream(socket, peer, name)),
                Err(error) => Some(Left::Refused(peer, Failure::system("control socket", &error))),
            },
            First::Stranger => refused(
                FailureKind::Protocol,
                "the other end is not farline: it started neither a TLS session nor a data stream",
            ),
            First::Needs(_) | First::Client => refused(
                FailureKind::Timeout,
                "the connection sent nothing within the time limit",
            ),
        }
    }

    /// Takes out those whose first message is whole, for as long as `take` has a place for them: first those of whose host
    /// `taken` counts fewest, then the oldest.
    pub fn next_ready(
        &mut self,
        taken: impl Fn(SocketAddr) -> usize,
        take: impl Fn(SocketAddr) -> bool,
    ) -> Option<Visitor> {
        let mut ready: Vec<_> = self
            .crowd
            .iter()
            .enumerate()
            .filter(|(_, visitor)| visitor.is_ready)
            .map(|(index, visitor)| (taken(visitor.peer), index, visitor.peer))
            .collect();
        ready.sort_unstable_by_key(|&(taken, index, _)| (taken, index));
        let (_, index, _) = ready.into_iter().find(|&(_, _, peer)| take(peer))?;
        Some(self.crowd.remove(index))
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.crowd.is_empty()
    }

    /// Whether somebody waits for a thread.
    pub fn has_ready(&self) -> bool {
        self.crowd.iter().any(|visitor| visitor.is_ready)
    }
}

impl Visitor {
    fn is_listened_to(&self, now: Instant) -> bool {
        !self.is_ready && self.rests_until.is_none_or(|until| until <= now)
    }

    /// Whether it has to leave.
    fn look(&mut self, buffer: &mut [u8], takes_streams: bool, now: Instant) -> bool {
        self.rests_until = None;
        let seen = match self.socket.peek(buffer) {
            Ok(0) => return true,
            Ok(seen) => seen,
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        };
        match first(&buffer[..seen], takes_streams) {
            First::Stream | First::Stranger => return true,
            First::Client => self.is_ready = set_receive_low_water(self.socket.as_fd(), 1).is_ok(),
            First::Needs(bytes) if bytes > self.needs => {
                self.needs = bytes;
                return set_receive_low_water(self.socket.as_fd(), bytes).is_err();
            }
            // The end is there, or the kernel is short of memory.
            First::Needs(_) => self.rests_until = Some(now + LOOK_AGAIN),
        }
        false
    }
}

/// What a connection begins with, as far as `seen` tells.
fn first(seen: &[u8], takes_streams: bool) -> First {
    if seen.len() < FIRST_BYTES {
        return First::Needs(FIRST_BYTES);
    }
    if seen[..2] == TLS_HANDSHAKE {
        let length = usize::from(u16::from_be_bytes([seen[3], seen[4]]));
        return match TLS_HEADER_BYTES + length {
            _ if length == 0 || length > MAX_TLS_RECORD => First::Stranger,
            whole if seen.len() >= whole => First::Client,
            whole => First::Needs(whole),
        };
    }
    let is_name = |seen: &[u8]| is_data_preamble(seen) && takes_streams;
    match seen {
        [b'f', b'a', b'r', b'l', b'i', ..] if takes_streams && seen.len() < NAME_BYTES => {
            First::Needs(NAME_BYTES)
        }
        name if is_name(name) => First::Stream,
        _ => First::Stranger,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};

    use farline_sys::wake::poll_readable;

    const SOON: Duration = Duration::from_secs(2);
    const QUEUE: Duration = Duration::from_secs(5);

    fn lobby(places: u64) -> Lobby {
        Lobby::new(places * FILES_SHARE, (SOON, QUEUE), true)
    }

    fn hello() -> Vec<u8> {
        [&[22, 3, 1, 1, 44][..], &[7; 300]].concat()
    }

    fn name() -> Vec<u8> {
        [&b"farline\x01"[..], &[3; 56]].concat()
    }

    /// A connection from `host` of 127.0.0.0/24 that begins with `said`, inside the lobby.
    fn enters(lobby: &mut Lobby, host: u8, said: &[u8], now: Instant) -> (TcpStream, Option<Left>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        near.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, host), 0)).into())
            .unwrap();
        near.connect(&listener.local_addr().unwrap().into()).unwrap();
        let mut near = TcpStream::from(near);
        near.write_all(said).unwrap();
        let (far, peer) = listener.accept().unwrap();
        let left = lobby.enter(far, peer, now);
        (near, left)
    }

    fn look(lobby: &mut Lobby, now: Instant) -> Vec<Left> {
        let fds = lobby.fds(now);
        let ready = poll_readable(&fds, Some(Duration::from_millis(200))).unwrap();
        lobby.look(&ready, now, now)
    }

    #[test]
    fn the_first_bytes_tell_who_comes() {
        assert_eq!(first(&[22, 3], true), First::Needs(5));
        assert_eq!(first(&hello()[..5], true), First::Needs(305));
        assert_eq!(first(&hello(), true), First::Client);
        assert_eq!(
            first(&[22, 3, 1, 0xff, 0xff], true),
            First::Stranger,
            "no record is so long"
        );
        assert_eq!(first(b"GET / HTTP/1.1", true), First::Stranger);
        assert_eq!(first(&name()[..20], true), First::Needs(NAME_BYTES));
        assert_eq!(first(&name(), true), First::Stream);
        assert_eq!(
            first(&name(), false),
            First::Stranger,
            "streams have ports of their own"
        );
        assert_eq!(
            first(
                b"farli, this is not the name of a stream: it is longer than one is",
                true
            ),
            First::Stranger
        );
    }

    #[test]
    fn a_client_gets_a_thread_once_its_greeting_is_whole() {
        let (mut lobby, now) = (lobby(8), Instant::now());
        let (mut near, _) = enters(&mut lobby, 1, &hello()[..100], now);
        assert!(look(&mut lobby, now).is_empty() && !lobby.has_ready());
        near.write_all(&hello()[100..]).unwrap();
        while !lobby.has_ready() {
            assert!(look(&mut lobby, now).is_empty());
        }
        let mut client = lobby.next_ready(|_| 0, |_| true).unwrap();
        client.socket.set_nonblocking(false).unwrap();
        let mut said = [0; 305];
        std::io::Read::read_exact(&mut client.socket, &mut said).unwrap();
        assert_eq!(said[..], hello(), "nothing was taken from it");
    }

    #[test]
    fn streams_strangers_looks_and_the_late_leave() {
        let (mut lobby, now) = (lobby(16), Instant::now());
        let _stream = enters(&mut lobby, 1, &name(), now);
        let _stranger = enters(&mut lobby, 1, b"SSH-2.0-x", now);
        drop(enters(&mut lobby, 1, b"", now));
        let _silent = enters(&mut lobby, 1, b"", now);
        let _slow = enters(&mut lobby, 1, &[22, 3, 1], now);
        let mut left = Vec::new();
        while lobby.crowd.len() > 2 {
            left.extend(look(&mut lobby, now));
        }
        let streams = left
            .iter()
            .filter(|left| matches!(left, Left::Stream(..)))
            .count();
        assert_eq!((left.len(), streams), (2, 1), "who only looked is no event");
        let late = lobby.look(&[], now, now + SOON);
        let is_late = |left: &Left| matches!(left, Left::Refused(_, why) if why.kind == FailureKind::Timeout);
        assert!(late.len() == 2 && late.iter().all(is_late));
        assert_eq!(lobby.deadline(), None);
    }

    #[test]
    fn silence_from_one_address_pushes_out_its_own() {
        let (mut lobby, now) = (lobby(8), Instant::now());
        let (_honest, left) = enters(&mut lobby, 1, b"", now);
        assert!(left.is_none());
        let flood: Vec<_> = (0..20).map(|_| enters(&mut lobby, 2, b"", now)).collect();
        let pushed: Vec<_> = flood.iter().filter_map(|(_, left)| left.as_ref()).collect();
        assert_eq!(
            pushed.len(),
            16,
            "half of the places are the most for one address"
        );
        for left in pushed {
            assert!(
                matches!(left, Left::Refused(peer, why) if peer.ip().to_string() == "127.0.0.2" && why.kind == FailureKind::Busy)
            );
        }
        assert_eq!(lobby.crowd.of_host("127.0.0.1".parse().unwrap()), 1);
    }

    #[test]
    fn who_has_few_threads_comes_first() {
        let (mut lobby, now) = (lobby(32), Instant::now());
        let _many: Vec<_> = (0..4).map(|_| enters(&mut lobby, 2, &hello(), now)).collect();
        let _few = enters(&mut lobby, 1, &hello(), now);
        while lobby.crowd.iter().any(|visitor| !visitor.is_ready) {
            look(&mut lobby, now);
        }
        let taken = |peer: SocketAddr| usize::from(peer.ip().to_string() == "127.0.0.2");
        let first = lobby.next_ready(taken, |_| true).unwrap();
        assert_eq!(first.peer.ip().to_string(), "127.0.0.1");
        assert!(
            lobby.next_ready(taken, |_| false).is_none(),
            "without a place nobody leaves"
        );
        assert_eq!(lobby.crowd.len(), 4);
    }
}
