//! One connection: what it sends, what it receives, how it ends.

use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_transport::udt::Socket;

use crate::options::Options;
use crate::pattern::{Hash, Pattern};
use crate::result::{BROKEN, Result, TIMED_OUT};

const BACK_SEED: u64 = 1_000_000;
/// How much longer than its time a timed run is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

pub struct Connection {
    options: &'static Options,
    number: u64,
    socket: Socket,
    begun: Instant,
    connected: Instant,
    result: Result,
}

impl Connection {
    pub fn new(options: &'static Options, number: u64, socket: Socket, begun: Instant) -> Self {
        Self {
            options,
            number,
            socket,
            begun,
            connected: Instant::now(),
            result: Result::default(),
        }
    }

    /// Sends first or receives first, the other afterwards if both ends are to, and closes.
    pub fn run(mut self, sends_first: bool) -> Result {
        if sends_first {
            self.send_all(self.options.seed + self.number);
            if self.options.receive_back {
                self.receive_all();
            }
        } else {
            self.receive_all();
            if self.options.receive_back {
                self.send_all(self.options.seed + BACK_SEED + self.number);
            }
        }
        self.close()
    }

    fn send_end(&self) -> Instant {
        self.begun + Duration::from_secs_f64(self.options.seconds)
    }

    fn send_all(&mut self, seed: u64) {
        let options = self.options;
        let mut pattern = Pattern::new(seed);
        let mut block = vec![0; options.block];
        let end = self.send_end();
        let first = self.result.sent;
        while self.result.error == 0 && (options.is_timed() || self.result.sent - first < options.bytes) {
            if Instant::now() > end {
                if !options.is_timed() {
                    self.result.fail(TIMED_OUT, "out of time".to_owned());
                }
                return;
            }
            let mut length = block.len();
            if !options.is_timed() {
                let left = options.bytes - (self.result.sent - first);
                length = length.min(usize::try_from(left).unwrap_or(usize::MAX));
            }
            if !options.is_constant {
                pattern.fill(&mut block[..length]);
            }
            let done = if options.is_message() {
                self.send_message(&block[..length], end)
            } else {
                self.send_block(&block[..length], end)
            };
            if let Err(failure) = done {
                self.note(&failure);
            }
        }
        if let Err(failure) = self.socket.flush() {
            self.note(&failure);
        }
    }

    fn send_block(&mut self, block: &[u8], end: Instant) -> std::result::Result<(), Failure> {
        let taken = self.socket.send(block, end)?;
        self.sent(&block[..taken]);
        Ok(())
    }

    fn send_message(&mut self, message: &[u8], end: Instant) -> std::result::Result<(), Failure> {
        let options = self.options;
        match self
            .socket
            .send_message(message, options.in_order, options.lifetime, end)
        {
            // The time of a timed run is over: no error.
            Err(failure) if failure.kind == FailureKind::Timeout && options.is_timed() => return Ok(()),
            result => result?,
        }
        self.result.messages_sent += 1;
        self.note_message(message);
        self.sent(message);
        Ok(())
    }

    fn sent(&mut self, bytes: &[u8]) {
        self.result.sent += bytes.len() as u64;
        if !self.options.is_constant {
            self.result.sent_hash.add(bytes);
        }
    }

    fn receive_all(&mut self) {
        let options = self.options;
        let mut block = vec![0; options.block];
        let is_counted = options.receive_back || options.role == "cli";
        let patience = if options.is_timed() {
            options.linger.min(Duration::from_secs(600)) + PATIENCE
        } else {
            Duration::ZERO
        };
        let end = self.send_end() + patience;
        while !(is_counted && self.result.received >= options.bytes) {
            let received = if options.is_message() {
                self.receive_message(&mut block, end)
            } else {
                self.socket.receive(&mut block, end)
            };
            match received {
                Ok(0) => {
                    if !self.is_whole() {
                        self.result.fail(BROKEN, "it ended too early".to_owned());
                    }
                    break;
                }
                Ok(length) => self.take(&block[..length]),
                Err(failure) => {
                    // Who has everything does not mind how the other end leaves.
                    let is_timeout = failure.kind == FailureKind::Timeout && options.is_timed();
                    let has_all = !options.is_timed() && self.result.received >= options.bytes;
                    if !is_timeout && !has_all {
                        self.note(&failure);
                    }
                    break;
                }
            }
        }
        let steady = self.steady_end().saturating_duration_since(self.steady_begin());
        self.result.steady_s = steady.as_secs_f64();
    }

    fn receive_message(&mut self, block: &mut [u8], end: Instant) -> std::result::Result<usize, Failure> {
        Ok(self
            .socket
            .receive_message(block, end)?
            .map_or(0, |message| message.bytes))
    }

    fn take(&mut self, bytes: &[u8]) {
        self.result.received += bytes.len() as u64;
        let now = Instant::now();
        if now >= self.steady_begin() && (!self.options.is_timed() || now <= self.steady_end()) {
            self.result.steady_bytes += bytes.len() as u64;
        }
        if self.options.is_message() {
            self.result.messages_received += 1;
            self.note_message(bytes);
        }
        if !self.options.is_constant {
            self.result.received_hash.add(bytes);
        }
    }

    fn note_message(&mut self, message: &[u8]) {
        if self.options.list {
            let mut hash = Hash::default();
            hash.add(message);
            self.result.messages.push(hash.value());
        }
    }

    fn steady_begin(&self) -> Instant {
        self.connected + Duration::from_secs_f64(self.options.omit_s)
    }

    fn steady_end(&self) -> Instant {
        let now = Instant::now();
        if !self.options.is_timed() {
            return now;
        }
        now.min(self.connected + Duration::from_secs_f64(self.options.seconds))
    }

    fn is_whole(&self) -> bool {
        let options = self.options;
        options.is_timed() || options.lifetime.is_some() || self.result.received >= options.bytes
    }

    fn note(&mut self, failure: &Failure) {
        let is_late = failure.kind == FailureKind::Timeout && Instant::now() >= self.send_end();
        let code = if is_late { TIMED_OUT } else { BROKEN };
        self.result.fail(code, failure.message.clone());
    }

    /// Waits until all is acknowledged, so that the statistics are whole, and closes.
    fn close(mut self) -> Result {
        let finished = self.socket.finish(self.options.linger);
        self.result.statistics = self.socket.statistics();
        if let Err(failure) = finished {
            let is_timed_receiver = self.options.is_timed() && self.result.sent == 0;
            if self.result.error == 0 && self.options.linger > Duration::ZERO && !is_timed_receiver {
                self.note(&failure);
            }
        }
        self.result.seconds = self.begun.elapsed().as_secs_f64();
        self.result
    }
}
