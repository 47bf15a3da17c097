//! What stands between two ends: a relay for datagrams that does with each whatever a test says.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use farline_sys::option::force_receive_buffer;

/// Which way a datagram goes: away from the opener or towards it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    There,
    Back,
}

/// What becomes of a datagram on its way: the datagrams that go on.
pub type Pass<'a> = dyn Fn(Way, &[u8]) -> Vec<Vec<u8>> + Sync + 'a;

/// A relay whose `pass` gives what becomes of a datagram.
pub struct Relay<'a> {
    outer: UdpSocket,
    inner: UdpSocket,
    is_over: AtomicBool,
    pass: &'a Pass<'a>,
}

impl<'a> Relay<'a> {
    /// Runs `test` with a relay, which is told where to by [`Self::towards`].
    pub fn run<T>(pass: &'a Pass<'a>, test: impl FnOnce(&Self) -> T) -> T {
        Self::run_on(UdpSocket::bind("127.0.0.1:0").unwrap(), pass, test)
    }

    /// As [`Self::run`], with `outer` towards the opener.
    pub fn run_on<T>(outer: UdpSocket, pass: &'a Pass<'a>, test: impl FnOnce(&Self) -> T) -> T {
        let prepared = |socket: UdpSocket| {
            socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
            // A relay that is off the CPU for a moment must not lose what it was not told to lose.
            let _ = force_receive_buffer(socket.as_fd(), 16 << 20);
            socket
        };
        let relay = Self {
            outer: prepared(outer),
            inner: prepared(UdpSocket::bind("127.0.0.1:0").unwrap()),
            is_over: AtomicBool::new(false),
            pass,
        };
        std::thread::scope(|scope| {
            let _over = Over(&relay.is_over);
            scope.spawn(|| relay.carry(&relay.outer, &relay.inner, Way::There));
            scope.spawn(|| relay.carry(&relay.inner, &relay.outer, Way::Back));
            test(&relay)
        })
    }

    /// Carries to `listener`; gives the address to call instead.
    pub fn towards(&self, listener: SocketAddr) -> SocketAddr {
        self.inner.connect(listener).unwrap();
        self.outer.local_addr().unwrap()
    }

    fn carry(&self, from: &UdpSocket, to: &UdpSocket, way: Way) {
        let mut buffer = [0; 65_536];
        while !self.is_over.load(Ordering::Relaxed) {
            let Ok((length, source)) = from.recv_from(&mut buffer) else {
                continue;
            };
            if way == Way::There {
                let _ = from.connect(source);
            }
            for datagram in (self.pass)(way, &buffer[..length]) {
                let _ = to.send(&datagram);
            }
        }
    }
}

/// Ends the relay's threads, also when a test fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
