//! Stands between a client and a server that has one port, and changes some of the frames of a copy that pass it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

const PREAMBLE_BYTES: usize = 64;
const PREFIX_BYTES: usize = 8;
const TAG_BYTES: usize = 16;
/// What begins a stream; the control channel begins otherwise.
const MAGIC: &[u8] = b"farline";

/// Where a frame of a stream is hit, in bits from its beginning: its stream, its number, its length in bytes.
type Hits = dyn Fn(u16, u64, usize) -> Option<usize> + Send + Sync;

/// The other host's side of a path that spoils what it carries.
pub struct Spoiler {
    pub address: SocketAddr,
    /// Frames that were changed.
    pub spoiled: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Spoiler {
    /// Passes on what goes to `server` and back: another address of this host, the same port. Other processes may hold that
    /// port at some of the addresses.
    pub fn start(
        server: SocketAddr,
        hits: impl Fn(u16, u64, usize) -> Option<usize> + Send + Sync + 'static,
    ) -> Self {
        let listener = (2..=u8::MAX)
            .find_map(|last| TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), server.port())).ok())
            .expect("an address of this host where the port is free");
        let address = listener.local_addr().unwrap();
        let (spoiled, is_over) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let line = Arc::new(Line {
            hits: Box::new(hits),
            spoiled: Arc::clone(&spoiled),
        });
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while let Ok((near, _)) = listener.accept() {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let far = TcpStream::connect(server).unwrap();
                let line = Arc::clone(&line);
                std::thread::spawn(move || line.join(near, far));
            }
        });
        Self {
            address,
            spoiled,
            is_over,
            thread: Some(thread),
        }
    }

    pub fn spoiled(&self) -> u64 {
        self.spoiled.load(Ordering::Relaxed)
    }
}

impl Drop for Spoiler {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It wakes up for the next connection.
        drop(TcpStream::connect(self.address));
        self.thread.take().unwrap().join().unwrap();
    }
}

struct Line {
    hits: Box<Hits>,
    spoiled: Arc<AtomicU64>,
}

impl Line {
    fn join(&self, near: TcpStream, far: TcpStream) {
        for socket in [&near, &far] {
            socket.set_nodelay(true).unwrap();
        }
        let mut first = [0; PREAMBLE_BYTES];
        let got = (&near).read(&mut first[..1]).unwrap_or(0);
        if got == 0 {
            return close(&near, &far);
        }
        let mut stream = None;
        let mut begin = first[..1].to_vec();
        if first[0] == MAGIC[0] && (&near).read_exact(&mut first[1..]).is_ok() {
            assert!(first.starts_with(MAGIC));
            stream = Some(u16::from_be_bytes([first[56], first[57]]));
            begin = first.to_vec();
        }
        if (&far).write_all(&begin).is_err() {
            return close(&near, &far);
        }
        std::thread::scope(|scope| {
            scope.spawn(|| self.pump(&near, &far, stream));
            self.pump(&far, &near, stream);
        });
    }

    fn pump(&self, from: &TcpStream, to: &TcpStream, stream: Option<u16>) {
        let Some(stream) = stream else {
            let (mut from, mut to) = (from, to);
            let _ = std::io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
            return;
        };
        let mut number = 0;
        while let Some(mut frame) = read_frame(from) {
            if let Some(bit) = (self.hits)(stream, number, frame.len()) {
                frame[bit / 8] ^= 1 << (bit % 8);
                self.spoiled.fetch_add(1, Ordering::Relaxed);
            }
            number += 1;
            if (&mut &*to).write_all(&frame).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
        // Whoever still sends on it learns of it.
        let _ = from.shutdown(Shutdown::Read);
    }
}

fn close(near: &TcpStream, far: &TcpStream) {
    let _ = near.shutdown(Shutdown::Both);
    let _ = far.shutdown(Shutdown::Both);
}

/// A sealed frame, prefix and tag with it.
fn read_frame(mut from: &TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; PREFIX_BYTES];
    from.read_exact(&mut frame).ok()?;
    let body = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
    frame.resize(PREFIX_BYTES + body + TAG_BYTES, 0);
    from.read_exact(&mut frame[PREFIX_BYTES..]).ok()?;
    Some(frame)
}
