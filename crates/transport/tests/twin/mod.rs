//! What stands between two ends of a stream that is a connection and datagrams: a relay for both, on one port.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::relay::{Pass, Relay};

/// The connections that go through the relay.
pub struct Twin {
    connections: Mutex<Vec<TcpStream>>,
    is_over: AtomicBool,
}

impl Twin {
    /// Runs `test` with a relay for streams to whatever [`Self::towards`] is given.
    pub fn run<T: Send>(
        pass: &Pass<'_>,
        listener: SocketAddr,
        test: impl FnOnce(&Twin, SocketAddr) -> T,
    ) -> T {
        let (door, outer) = free_port();
        Relay::run_on(outer, pass, |datagrams| {
            let outer = datagrams.towards(listener);
            door.set_nonblocking(true).unwrap();
            let twin = Twin {
                connections: Mutex::default(),
                is_over: AtomicBool::new(false),
            };
            std::thread::scope(|scope| {
                scope.spawn(|| twin.carry_connections(&door, listener));
                let _over = Over(&twin);
                test(&twin, outer)
            })
        })
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        for connection in self.connections.lock().unwrap().iter() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    fn carry_connections(&self, door: &TcpListener, listener: SocketAddr) {
        std::thread::scope(|scope| {
            while !self.is_over.load(Ordering::Relaxed) {
                let Ok((near, _)) = door.accept() else {
                    std::thread::sleep(Duration::from_millis(1));
                    continue;
                };
                near.set_nonblocking(false).unwrap();
                let far = TcpStream::connect(listener).unwrap();
                let both = [near.try_clone().unwrap(), far.try_clone().unwrap()];
                self.connections.lock().unwrap().extend(both);
                let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                scope.spawn(move || pump(near, far));
                scope.spawn(move || pump(far_too, near_too));
            }
            self.cut();
        });
    }
}

/// A port that is free for connections and datagrams: what the kernel gives for the one may be taken for the other.
fn free_port() -> (TcpListener, UdpSocket) {
    let port = || {
        let door = TcpListener::bind("127.0.0.1:0").unwrap();
        let outer = UdpSocket::bind(door.local_addr().unwrap());
        outer.ok().map(|outer| (door, outer))
    };
    std::iter::repeat_with(port).take(100).flatten().next().unwrap()
}

/// Carries bytes until either end closes, and then closes the other.
fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// Ends the relay's threads, also when a test fails.
struct Over<'a>(&'a Twin);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Relaxed);
        self.0.cut();
    }
}
