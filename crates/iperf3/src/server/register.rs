//! What sessions of one server must know of each other: whose stream is whose, who has a place, what an address may move.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, unbounded};
use farline_proto::iperf3::Cookie;
use farline_spec::unit::counted;
use farline_spec::{Failure, FailureKind, Iperf3Config};
use farline_sys::wake::Waker;
use farline_transport::{Prefix, SharedRate};
use socket2::Socket;

use crate::stream::locked;

/// Addresses whose sessions are counted over the server's life, where those are limited; beyond them nobody new gets in.
const MOST_ADDRESSES: usize = 65_536;

/// A stream of a session, open.
#[derive(Debug)]
pub struct Arrival {
    /// Its place among those of its session.
    pub order: u64,
    /// Its socket.
    pub socket: Socket,
}

/// One session, as others see it.
#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    local: SocketAddr,
    expects: Expects,
    arrivals: Sender<Arrival>,
    bell: Arc<Waker>,
}

/// Which streams a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Nothing,
    /// It waits until no other session of its address expects datagrams, which do not say whose they are.
    ATurn,
    Tcp(usize),
    Udp(usize),
}

/// What one address has.
#[derive(Debug, Default)]
struct Host {
    active: u32,
    total: u32,
    rate: Option<Arc<SharedRate>>,
}

#[derive(Debug, Default)]
struct Book {
    sessions: HashMap<Cookie, Entry>,
    hosts: HashMap<Prefix, Host>,
    admitted: u64,
}

/// The sessions of a server.
#[derive(Debug)]
pub struct Register {
    book: Arc<Mutex<Book>>,
    most: usize,
    most_of_host: u32,
    /// Sessions of one address over the server's life.
    most_ever: Option<u32>,
    rate_bps: Option<u64>,
    stop_after: Option<u64>,
}

/// What became of a connection with a cookie.
#[derive(Debug)]
pub enum Delivery {
    /// It was a stream, and its session has it.
    Delivered,
    /// No session has this cookie: it is the control connection of a new one.
    New(TcpStream),
    /// Its session does not expect it.
    Unexpected,
}

/// A session's place; free again when dropped.
#[derive(Debug)]
pub struct Seat {
    book: Arc<Mutex<Book>>,
    cookie: Cookie,
    host: Prefix,
    forgets_host: bool,
    /// Streams that come.
    pub arrivals: Receiver<Arrival>,
    /// Rung for every stream, and when the server stops.
    pub bell: Arc<Waker>,
    /// What all sessions of the address may move together.
    pub rate: Option<Arc<SharedRate>>,
}

impl Register {
    /// An empty one with the limits of `config`.
    pub fn new(config: &Iperf3Config) -> Self {
        Self {
            book: Arc::default(),
            most: config.max_sessions.get() as usize,
            most_of_host: config.max_sessions_per_address.get(),
            most_ever: config.limits.sessions.map(|sessions| sessions.get()),
            rate_bps: config
                .limits
                .rate_bps
                .map(|rate| rate.get())
                .filter(|&rate| rate > 0),
            stop_after: config.stop_after_sessions.map(|sessions| sessions.get().into()),
        }
    }

    /// Sessions admitted so far.
    pub fn admitted(&self) -> u64 {
        locked(&self.book).admitted
    }

    /// Whether the server has served all the sessions it should.
    pub fn is_used_up(&self) -> bool {
        self.stop_after.is_some_and(|most| self.admitted() >= most)
    }

    /// Rings the bells of all sessions.
    pub fn wake_all(&self) {
        locked(&self.book)
            .sessions
            .values()
            .for_each(|entry| entry.bell.wake());
    }

    /// Brings a connection to the session of its cookie.
    pub fn deliver(&self, socket: TcpStream, order: u64, cookie: &Cookie) -> Delivery {
        let mut book = locked(&self.book);
        let Some(entry) = book.sessions.get_mut(cookie) else {
            return Delivery::New(socket);
        };
        let Expects::Tcp(left @ 1..) = entry.expects else {
            return Delivery::Unexpected;
        };
        entry.expects = Expects::Tcp(left - 1);
        entry.take(Arrival {
            order,
            socket: socket.into(),
        });
        Delivery::Delivered
    }

    /// The address at which the session that expects a datagram of `peer` was reached; none if no session does.
    pub fn reached_at(&self, peer: IpAddr) -> Option<SocketAddr> {
        let book = locked(&self.book);
        book.sessions
            .values()
            .find(|entry| entry.awaits_datagram(peer))
            .map(|entry| entry.local)
    }

    /// Brings the socket of a datagram stream to the session that expects it; false if none does any more.
    pub fn deliver_datagrams(&self, peer: IpAddr, order: u64, socket: Socket) -> bool {
        let mut book = locked(&self.book);
        let Some(entry) = book
            .sessions
            .values_mut()
            .find(|entry| entry.awaits_datagram(peer))
        else {
            return false;
        };
        if let Expects::Udp(left) = &mut entry.expects {
            *left -= 1;
        }
        entry.take(Arrival { order, socket });
        let is_last = entry.expects == Expects::Udp(0);
        if is_last {
            book.pass_turn(peer);
        }
        true
    }

    /// A place for a session from `peer` that reached us at `local`.
    ///
    /// # Errors
    /// [`FailureKind::Busy`] if there is none, [`FailureKind::Limit`] if the address has had all its sessions.
    pub fn admit(&self, cookie: &Cookie, peer: SocketAddr, local: SocketAddr) -> Result<Seat, Failure> {
        let bell = Waker::new().map_err(|error| Failure::system("eventfd", &error))?;
        let (bell, host) = (Arc::new(bell), Prefix::of_host(peer.ip()));
        let mut book = locked(&self.book);
        self.check(&book, host)?;
        let limit = self.rate_bps;
        let known = book.hosts.entry(host).or_default();
        (known.active, known.total) = (known.active + 1, known.total + 1);
        let rate = limit.map(|rate_bps| {
            Arc::clone(
                known
                    .rate
                    .get_or_insert_with(|| Arc::new(SharedRate::new(rate_bps))),
            )
        });
        let (sender, arrivals) = unbounded();
        let entry = Entry {
            peer: peer.ip().to_canonical(),
            local,
            expects: Expects::Nothing,
            arrivals: sender,
            bell: Arc::clone(&bell),
        };
        book.sessions.insert(*cookie, entry);
        book.admitted += 1;
        Ok(Seat {
            book: Arc::clone(&self.book),
            cookie: *cookie,
            host,
            forgets_host: self.most_ever.is_none(),
            arrivals,
            bell,
            rate,
        })
    }

    fn check(&self, book: &Book, host: Prefix) -> Result<(), Failure> {
        let busy = |line: String| Err(Failure::new(FailureKind::Busy, line));
        let known = book.hosts.get(&host);
        let (active, total) = known.map_or((0, 0), |host| (host.active, host.total));
        if book.sessions.len() >= self.most {
            return busy(format!(
                "{} running, as many as are allowed at once",
                counted(self.most as u64, "session")
            ));
        }
        if active >= self.most_of_host {
            return busy(format!(
                "{} of this address running, as many as one may have at once",
                counted(active, "session")
            ));
        }
        let is_crowded = known.is_none() && book.hosts.len() >= MOST_ADDRESSES;
        if self.most_ever.is_some_and(|most| total >= most || is_crowded) {
            return Err(Failure::new(
                FailureKind::Limit,
                format!(
                    "this address has had {}, all it may have",
                    counted(total, "session")
                ),
            ));
        }
        Ok(())
    }
}

impl Entry {
    fn take(&self, arrival: Arrival) {
        // Who does not listen any more has ended.
        let _ = self.arrivals.send(arrival);
        self.bell.wake();
    }

    fn awaits_datagram(&self, peer: IpAddr) -> bool {
        matches!(self.expects, Expects::Udp(1..)) && self.peer == peer.to_canonical()
    }
}

impl Book {
    /// Tells the sessions of `peer` that wait for their turn that it may have come.
    fn pass_turn(&self, peer: IpAddr) {
        let waits = |entry: &&Entry| entry.expects == Expects::ATurn && entry.peer == peer.to_canonical();
        self.sessions
            .values()
            .filter(waits)
            .for_each(|entry| entry.bell.wake());
    }
}

impl Seat {
    /// Has `streams` connections with this session's cookie brought to it.
    pub fn expect_connections(&self, streams: usize) {
        if let Some(entry) = locked(&self.book).sessions.get_mut(&self.cookie) {
            entry.expects = Expects::Tcp(streams);
        }
    }

    /// Has the next `streams` openings from this session's address brought to it; false if another session's are to come first:
    /// the bell rings when they have.
    pub fn expect_datagrams(&self, streams: usize) -> bool {
        let mut book = locked(&self.book);
        let Some(peer) = book.sessions.get(&self.cookie).map(|entry| entry.peer) else {
            return false;
        };
        let is_free = !book.sessions.values().any(|entry| entry.awaits_datagram(peer));
        if let Some(entry) = book.sessions.get_mut(&self.cookie) {
            entry.expects = if is_free {
                Expects::Udp(streams)
            } else {
                Expects::ATurn
            };
        }
        is_free
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut book = locked(&self.book);
        if let Some(entry) = book.sessions.remove(&self.cookie) {
            book.pass_turn(entry.peer);
        }
        if let Some(host) = book.hosts.get_mut(&self.host) {
            host.active = host.active.saturating_sub(1);
            if host.active == 0 && self.forgets_host {
                book.hosts.remove(&self.host);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    fn register(limits: &str) -> Register {
        Register::new(
            &from_json(&format!(
                r#"{{"max_sessions":3,"max_sessions_per_address":2,"limits":{limits}}}"#
            ))
            .unwrap(),
        )
    }

    fn admit(register: &Register, number: u8, host: u8) -> Result<Seat, Failure> {
        let peer = SocketAddr::from(([192, 0, 2, host], 7));
        register.admit(&[number; 37], peer, SocketAddr::from(([127, 0, 0, 1], 5201)))
    }

    #[test]
    fn places_are_limited_for_all_and_for_one_address_and_come_back() {
        let register = register("{}");
        let (one, _two) = (admit(&register, 1, 1).unwrap(), admit(&register, 2, 1).unwrap());
        assert!(
            admit(&register, 3, 1)
                .unwrap_err()
                .message
                .contains("of this address")
        );
        let _other = admit(&register, 3, 2).unwrap();
        assert_eq!(admit(&register, 4, 3).unwrap_err().kind, FailureKind::Busy);
        drop(one);
        assert!(admit(&register, 4, 1).is_ok());
    }

    #[test]
    fn sessions_of_an_address_share_its_rate_and_are_counted() {
        let register = register(r#"{"rate_bps":1000000,"sessions":2}"#);
        let (one, other) = (admit(&register, 1, 1).unwrap(), admit(&register, 2, 2).unwrap());
        let same = admit(&register, 3, 1).unwrap();
        let rate = |seat: &Seat| Arc::clone(seat.rate.as_ref().unwrap());
        assert!(Arc::ptr_eq(&rate(&one), &rate(&same)));
        assert!(!Arc::ptr_eq(&rate(&one), &rate(&other)));
        drop((one, same));
        assert_eq!(admit(&register, 4, 1).unwrap_err().kind, FailureKind::Limit);
    }

    #[test]
    fn datagrams_of_one_address_go_to_one_session_after_the_other() {
        let register = register("{}");
        let (one, two) = (admit(&register, 1, 1).unwrap(), admit(&register, 2, 1).unwrap());
        let peer = IpAddr::from([192, 0, 2, 1]);
        let socket = || Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None).unwrap();
        assert_eq!(register.reached_at(peer), None);
        assert!(one.expect_datagrams(2) && !two.expect_datagrams(1));
        assert!(register.deliver_datagrams(peer, 1, socket()));
        assert!(!two.expect_datagrams(1), "one is missing");
        two.bell.drain();
        assert!(register.deliver_datagrams(peer, 2, socket()));
        assert!(two.bell.drain() && two.expect_datagrams(1));
        assert!(!register.deliver_datagrams(IpAddr::from([192, 0, 2, 9]), 3, socket()));
        assert_eq!((one.arrivals.len(), two.arrivals.len()), (2, 0));
    }
}
