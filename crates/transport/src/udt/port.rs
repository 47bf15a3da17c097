//! UDP sockets and the connections on them.
//!
//! Every connection has a connected UDP socket, so that the kernel checks where datagrams come from. Connections
//! between the same two ports share one: whoever reads it hands to the others what is theirs, by socket id, through
//! inboxes of bounded size. What is for none of them but asks for a connection goes to the listener of the port.
//! A connection that is alone on its socket pays nothing for this but a look at the ids it would look at anyway.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use farline_proto::udt::wire::destination_of;
use farline_spec::{Failure, FailureKind};
use farline_sys::wake::{Interest, Waker, wait_ready};
use socket2::Socket;

use super::chance;

/// Bytes that may lie in the inbox of a connection: what comes in some milliseconds at full rate. More is lost, as on
/// the way, and is sent again.
const CONNECTION_BYTES: usize = 8 << 20;
/// Bytes that may lie in the inbox of a listener: some thousand handshakes.
const LISTENER_BYTES: usize = 256 << 10;

/// Datagrams of one size, the last of which may be shorter.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) from: SocketAddr,
    pub(super) bytes: Box<[u8]>,
    pub(super) segment_bytes: usize,
}

/// Where one reader of a socket leaves what is another's.
#[derive(Debug)]
pub(super) struct Inbox {
    parcels: Mutex<VecDeque<Parcel>>,
    bytes: AtomicUsize,
    most_bytes: usize,
    /// Ends the owner's wait; for other reasons than parcels, too.
    pub(super) waker: Waker,
}

impl Inbox {
    fn new(most_bytes: usize) -> Result<Arc<Self>, Failure> {
        let waker = Waker::new().map_err(|error| Failure::system("eventfd", &error))?;
        Ok(Arc::new(Self {
            parcels: Mutex::default(),
            bytes: AtomicUsize::new(0),
            most_bytes,
            waker,
        }))
    }

    pub(super) fn for_listener() -> Result<Arc<Self>, Failure> {
        Self::new(LISTENER_BYTES)
    }

    /// Leaves datagrams, unless there are too many already.
    pub(super) fn put(&self, from: SocketAddr, bytes: &[u8], segment_bytes: usize) {
        let mut parcels = locked(&self.parcels);
        let held = self.bytes.load(Ordering::Relaxed);
        // Each parcel counts at least as what it costs to keep.
        let cost = bytes.len().max(size_of::<Parcel>());
        if held + cost > self.most_bytes {
            return;
        }
        self.bytes.store(held + cost, Ordering::Release);
        parcels.push_back(Parcel {
            from,
            bytes: bytes.into(),
            segment_bytes,
        });
        drop(parcels);
        if held == 0 {
            self.waker.wake();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.load(Ordering::Acquire) == 0
    }

    /// The oldest parcel. Costs one load where there is none.
    pub(super) fn take(&self) -> Option<Parcel> {
        if self.is_empty() {
            return None;
        }
        let mut parcels = locked(&self.parcels);
        let parcel = parcels.pop_front()?;
        let cost = parcel.bytes.len().max(size_of::<Parcel>());
        self.bytes.fetch_sub(cost, Ordering::Relaxed);
        Some(parcel)
    }
}

/// A connected UDP socket and the connections on it.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) socket: Socket,
    pub(super) remote: SocketAddr,
    members: Mutex<Vec<(u32, Arc<Inbox>)>>,
    listener: Mutex<Weak<Inbox>>,
}

/// Sockets by their two ends.
type Ports = HashMap<(SocketAddr, SocketAddr), Weak<Port>>;

/// Every socket of this process that connections may share.
static PORTS: LazyLock<Mutex<Ports>> = LazyLock::new(Mutex::default);

impl Port {
    /// A socket of its own.
    pub(super) fn alone(socket: Socket, remote: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            socket,
            remote,
            members: Mutex::default(),
            listener: Mutex::default(),
        })
    }

    /// The socket between `local` and `remote`: the one that is there, or what `open` makes.
    pub(super) fn between(
        local: SocketAddr,
        remote: SocketAddr,
        open: impl FnOnce() -> Result<Socket, Failure>,
    ) -> Result<Arc<Self>, Failure> {
        // The lock is held while the socket is opened: of two who want the same one, the second waits for the first.
        let mut ports = locked(&PORTS);
        if let Some(port) = ports.get(&(local, remote)).and_then(Weak::upgrade) {
            return Ok(port);
        }
        let port = Self::alone(open()?, remote);
        ports.retain(|_, port| port.strong_count() > 0);
        ports.insert((local, remote), Arc::downgrade(&port));
        Ok(port)
    }

    /// Whom to tell about callers that are on this socket for the first time.
    pub(super) fn set_listener(&self, inbox: &Arc<Inbox>) {
        *locked(&self.listener) = Arc::downgrade(inbox);
    }

    /// Gives `datagrams`, all for the socket id `to`, to whom they are for; false if nobody wants them.
    fn hand_over(&self, to: u32, datagrams: &[u8], segment_bytes: usize) -> bool {
        if to == 0 {
            let listener = locked(&self.listener).upgrade();
            if let Some(listener) = &listener {
                listener.put(self.remote, datagrams, segment_bytes);
            }
            return listener.is_some();
        }
        let members = locked(&self.members);
        let owner = members.iter().find(|(id, _)| *id == to);
        if let Some((_, inbox)) = owner {
            inbox.put(self.remote, datagrams, segment_bytes);
        }
        owner.is_some()
    }
}

/// One connection's place on a socket.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) port: Arc<Port>,
    pub(super) id: u32,
    pub(super) inbox: Arc<Inbox>,
}

impl Member {
    /// A place with an id of its own.
    pub(super) fn join(port: Arc<Port>) -> Result<Self, Failure> {
        let inbox = Inbox::new(CONNECTION_BYTES)?;
        let mut members = locked(&port.members);
        let id = loop {
            let id = chance::socket_id()?;
            if members.iter().all(|(other, _)| *other != id) {
                break id;
            }
        };
        members.push((id, Arc::clone(&inbox)));
        drop(members);
        Ok(Self { port, id, inbox })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.port.socket.as_fd()
    }

    /// Hands datagrams of one destination, which is not this connection, to whom they are for; false if nobody wants
    /// them.
    pub(super) fn pass_on(&self, datagrams: &[u8], segment_bytes: usize) -> bool {
        destination_of(datagrams)
            .filter(|&to| to != self.id)
            .is_some_and(|to| self.port.hand_over(to, datagrams, segment_bytes))
    }

    /// Waits until something has come for this connection, somebody wakes it, or `timeout` has passed.
    pub(super) fn wait(&self, timeout: Duration) -> Result<(), Failure> {
        let fds = [
            (self.fd(), Interest::Readable),
            (self.inbox.waker.as_fd(), Interest::Readable),
        ];
        let [_, is_woken] =
            wait_ready(fds, timeout).map_err(|error| Failure::system("waiting for datagrams", &error))?;
        if is_woken {
            self.inbox.waker.drain();
        }
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        locked(&self.port.members).retain(|(id, _)| *id != self.id);
    }
}

/// A failure to bind an explicit port that somebody else has.
pub(super) fn port_taken(local: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::new(FailureKind::Busy, format!("UDP port {local}: {error}"))
}

/// What the lock protects stays whole whoever panics while holding it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Type};

    fn port(remote: SocketAddr) -> Arc<Port> {
        Port::alone(Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap(), remote)
    }

    fn datagram(to: u32) -> [u8; 20] {
        let mut bytes = [0; 20];
        bytes[12..16].copy_from_slice(&to.to_be_bytes());
        bytes
    }

    #[test]
    fn a_datagram_goes_to_whom_it_is_for() {
        let remote = "192.0.2.1:9".parse().unwrap();
        let port = port(remote);
        let near = Member::join(Arc::clone(&port)).unwrap();
        let far = Member::join(Arc::clone(&port)).unwrap();
        assert!(near.pass_on(&datagram(far.id), 20));
        let parcel = far.inbox.take().unwrap();
        assert_eq!((parcel.from, &*parcel.bytes), (remote, &datagram(far.id)[..]));
        assert!(far.inbox.take().is_none() && near.inbox.take().is_none());
        let id = far.id;
        drop(far);
        assert!(!near.pass_on(&datagram(id), 20), "nobody has this id any more");
        assert!(!near.pass_on(&[0; 7], 7), "too short to be for anybody");
    }

    #[test]
    fn callers_are_the_listeners_as_long_as_there_is_one() {
        let port = port("192.0.2.1:9".parse().unwrap());
        let member = Member::join(Arc::clone(&port)).unwrap();
        assert!(!member.pass_on(&datagram(0), 20));
        let listener = Inbox::for_listener().unwrap();
        port.set_listener(&listener);
        assert!(member.pass_on(&datagram(0), 20));
        assert!(listener.take().is_some());
        drop(listener);
        assert!(!member.pass_on(&datagram(0), 20));
    }

    #[test]
    fn an_inbox_that_nobody_empties_stays_small() {
        let inbox = Inbox::for_listener().unwrap();
        let from = "192.0.2.1:9".parse().unwrap();
        for _ in 0..100_000 {
            inbox.put(from, &[], 1);
            inbox.put(from, &[0; 64], 64);
        }
        let held = std::iter::from_fn(|| inbox.take()).count();
        assert!(held * size_of::<Parcel>() <= LISTENER_BYTES, "{held}");
        inbox.put(from, &[1], 1);
        assert!(inbox.take().is_some(), "there is room again");
    }

    #[test]
    fn who_wants_the_same_two_ends_gets_the_same_socket() {
        let (local, remote) = ("192.0.2.2:7".parse().unwrap(), "192.0.2.1:9".parse().unwrap());
        let open = || Ok(Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap());
        let first = Port::between(local, remote, open).unwrap();
        let again = Port::between(local, remote, || panic!("there is one")).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        drop((first, again));
        assert!(
            Port::between(local, remote, || Err(Failure::new(
                FailureKind::Busy,
                "opened anew"
            )))
            .is_err()
        );
    }
}
