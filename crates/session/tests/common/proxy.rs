//! Stands in the control channel and cuts, holds or delays it after so many TLS records.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// What happens when the records are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Both connections are closed.
    Cut,
    /// Nothing is passed on any more.
    Hold,
    /// Each is passed on so much later.
    Late(Duration),
}

/// A proxy for one connection.
pub struct Proxy {
    pub address: SocketAddr,
    /// Records passed on so far.
    pub passed: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Passes on `records` TLS records in all, both ways together.
    pub fn start(server: SocketAddr, records: usize, fate: Fate) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let passed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&passed);
        let thread = std::thread::spawn(move || {
            let (near, _) = listener.accept().unwrap();
            let far = TcpStream::connect(server).unwrap();
            let line = Line { count, records, fate };
            std::thread::scope(|scope| {
                scope.spawn(|| line.pump(&near, &far));
                line.pump(&far, &near);
            });
        });
        Self {
            address,
            passed,
            thread: Some(thread),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

struct Line {
    count: Arc<AtomicUsize>,
    records: usize,
    fate: Fate,
}

impl Line {
    fn pump(&self, from: &TcpStream, to: &TcpStream) {
        while let Some(record) = read_record(from) {
            if self.count.fetch_add(1, Ordering::SeqCst) >= self.records {
                match self.fate {
                    Fate::Cut => break,
                    Fate::Hold => continue,
                    Fate::Late(delay) => std::thread::sleep(delay),
                }
            }
            if (&mut &*to).write_all(&record).is_err() {
                break;
            }
        }
        // Whoever is left learns of it from the close.
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

fn read_record(mut from: &TcpStream) -> Option<Vec<u8>> {
    from.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut record = vec![0; 5];
    from.read_exact(&mut record).ok()?;
    let length = usize::from(u16::from_be_bytes([record[3], record[4]]));
    record.resize(5 + length, 0);
    from.read_exact(&mut record[5..]).ok()?;
    Some(record)
}
