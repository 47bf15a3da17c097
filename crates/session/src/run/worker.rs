//! One thread per data stream: the two loops that move blocks.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use farline_spec::unit::CpuIndex;
use farline_spec::{Failure, FailureKind, Granted};
use farline_sys::thread::{self, CpuClock};
use farline_transport::{Received, Role, Stream, StreamReport};
use tracing::{Level, Span, debug, enabled, error_span};

use super::budget::Budget;
use super::control::Control;
use super::cpu::micros;
use super::events::OpenStream;

/// Starts a thread whose log lines are those of the session at hand.
///
/// # Errors
/// [`FailureKind::System`] when it cannot be made.
pub(super) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    let session = Span::current();
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || session.in_scope(body))
        .map_err(|error| Failure::system(&format!("starting thread {name}"), &error))
}

/// What other threads tell the sampler.
pub(super) enum Note {
    /// Worker `index` stands at the barrier, or cannot.
    Ready {
        index: usize,
        clock: Result<CpuClock, Failure>,
    },
    /// Worker `index` has ended.
    Ended { index: usize, end: Box<WorkerEnd> },
    /// One data stream of a copy more.
    Join(Box<OpenStream>),
    /// The copy gives way to other traffic, and may have at most this rate from now on.
    MostRate(Option<u64>),
    /// Something changed: look at the phase.
    Look,
    /// The one who waits for the run waits no longer.
    Cut,
}

/// What a worker leaves behind.
pub(super) struct WorkerEnd {
    /// The stream, kept open until the whole run has ended, or for a while where others go on.
    pub(super) io: Option<Stream>,
    pub(super) result: Result<(), Failure>,
    /// When the last byte moved; `None` if none ever did.
    pub(super) last_byte: Option<Instant>,
    pub(super) cpu_us: i64,
    /// Time without a CPU to run on; −1 where the kernel does not tell.
    pub(super) wait_us: i64,
    pub(super) granted: Granted,
    pub(super) report: StreamReport,
}

/// One stream and what its thread needs.
pub(super) struct Worker {
    pub(super) index: usize,
    pub(super) open: OpenStream,
    pub(super) control: Arc<Control>,
    pub(super) budget: Option<Arc<Budget>>,
    pub(super) block_bytes: usize,
    pub(super) watchdog: Duration,
    /// Time from its start in which what was sent is to arrive.
    pub(super) delivery: Duration,
    /// Whether a receiver stops with the senders, because no end will ever come to it.
    pub(super) ends_when_stopped: bool,
    pub(super) notes: Sender<Note>,
    /// Nothing is ever sent on it: all who wait here are let go when its other side goes away.
    pub(super) barrier: Receiver<Infallible>,
}

impl Worker {
    /// Name of the thread, within the kernel's 15 characters.
    pub(super) fn name(&self) -> String {
        let job = match self.open.role {
            Role::Sender => "send",
            Role::Receiver => "recv",
        };
        format!("fl-{job}-{}", self.open.stream)
    }

    /// The whole life of the thread.
    pub(super) fn run(mut self) {
        let _within = error_span!("stream", stream = self.open.stream).entered();
        let clock = pin(self.open.cpu).and_then(|()| {
            CpuClock::of_current_thread()
                .map_err(|error| Failure::system("CPU clock of a stream's thread", &error))
        });
        self.tell(Note::Ready {
            index: self.index,
            clock,
        });
        if enabled!(Level::DEBUG) {
            tell_granted(&self.open.io.granted());
        }
        let _ = self.barrier.recv();
        debug!(role = ?self.open.role, "stream begins");
        let mut last_byte = LastByte::default();
        let result = catch_unwind(AssertUnwindSafe(|| self.move_blocks(&mut last_byte)))
            .unwrap_or_else(|_| {
                Err(Failure::new(
                    FailureKind::Internal,
                    "the thread of the stream panicked",
                ))
            })
            .map_err(|failure| self.named(failure));
        let mut granted = self.open.io.granted();
        granted.cpu = self.open.cpu.map(|cpu| cpu.get().into());
        let report = self.open.io.report();
        let moved_bytes = self.open.io.probe().sample().bytes;
        let reason = result.as_ref().err().map(|failure| failure.message.as_str());
        debug!(moved_bytes, reason, "stream ends");
        let cpu_us = micros(thread::cpu_time());
        let wait_us = thread::wait_time().map_or(-1, micros);
        let end = WorkerEnd {
            io: Some(self.open.io),
            result,
            last_byte: last_byte.at,
            cpu_us,
            wait_us,
            granted,
            report,
        };
        // The sampler may have given up on this thread; then nobody wants to know.
        let _ = self.notes.send(Note::Ended {
            index: self.index,
            end: Box::new(end),
        });
    }

    fn move_blocks(&mut self, last_byte: &mut LastByte) -> Result<(), Failure> {
        if let Some(copy) = self.control.copy() {
            let (stream, role) = (self.open.stream, self.open.role);
            let (at, result) = copy.work(stream, role, self.open.io.bytes()?, self.watchdog);
            last_byte.at = at;
            return result;
        }
        match self.open.role {
            Role::Receiver => self.receive(last_byte),
            Role::Sender => {
                let deadline = Instant::now() + self.delivery;
                self.send(last_byte)?;
                if self.control.is_aborted() {
                    return Ok(());
                }
                self.open.io.finish_sending(deadline)
            }
        }
    }

    fn send(&mut self, last_byte: &mut LastByte) -> Result<(), Failure> {
        let result = match self.budget.clone() {
            None => self.send_until_stopped(last_byte),
            Some(budget) => self.send_share(&budget, last_byte),
        };
        last_byte.settle();
        result
    }

    fn send_until_stopped(&mut self, last_byte: &mut LastByte) -> Result<(), Failure> {
        let source = self.open.io.source()?;
        while self.control.may_send() {
            last_byte.note(source.send_block(self.block_bytes)?);
        }
        Ok(())
    }

    fn send_share(&mut self, budget: &Budget, last_byte: &mut LastByte) -> Result<(), Failure> {
        let source = self.open.io.source()?;
        let mut share = 0;
        while self.control.may_send() {
            if share == 0 {
                share = budget.take(self.block_bytes);
            }
            if share == 0 {
                break;
            }
            let sent = source.send_block(share)?;
            share -= sent.min(share);
            last_byte.note(sent);
        }
        Ok(())
    }

    fn receive(&mut self, last_byte: &mut LastByte) -> Result<(), Failure> {
        let result = self.receive_until_end(last_byte);
        last_byte.settle();
        result
    }

    fn receive_until_end(&mut self, last_byte: &mut LastByte) -> Result<(), Failure> {
        let sink = self.open.io.sink()?;
        while may_receive(&self.control, self.ends_when_stopped) {
            match sink.receive_block()? {
                Received::Bytes(bytes) => last_byte.note(bytes),
                Received::End => break,
            }
        }
        Ok(())
    }

    /// With the stream's number, which says nothing about what the other end did.
    fn named(&self, failure: Failure) -> Failure {
        if failure.permanent {
            return failure;
        }
        Failure {
            message: format!("stream {}: {}", self.open.stream, failure.message),
            ..failure
        }
    }

    fn tell(&self, note: Note) {
        // Without a sampler there is no barrier either, and the thread ends there.
        let _ = self.notes.send(note);
    }
}

fn may_receive(control: &Control, ends_when_stopped: bool) -> bool {
    let stopped = ends_when_stopped && control.is_stopping();
    !stopped && !control.is_aborted()
}

/// Says what the kernel made of what was asked for this stream.
fn tell_granted(granted: &Granted) {
    debug!(
        local = granted.local,
        remote = granted.remote,
        congestion_control = granted.congestion_control,
        mss_bytes = granted.mss_bytes,
        packet_bytes = granted.packet_bytes,
        send_buffer_bytes = granted.send_buffer_bytes,
        receive_buffer_bytes = granted.receive_buffer_bytes,
        notes = (!granted.notes.is_empty()).then(|| granted.notes.join("; ")),
        "stream has these options"
    );
}

fn pin(cpu: Option<CpuIndex>) -> Result<(), Failure> {
    let Some(cpu) = cpu else { return Ok(()) };
    thread::pin_to_cpu(cpu.get().into()).map_err(|error| {
        let allowed = thread::allowed_cpus().unwrap_or_default();
        let place = format!("pinning a stream to CPU {}", cpu.get());
        Failure::new(
            FailureKind::Spec,
            format!("{place}: {error}; this process may use CPUs {allowed:?}"),
        )
    })
}

/// When the last byte moved, found without reading a clock for each block.
///
/// A loop that ends right after a block ended now. A call that moved nothing is rare, so there
/// is time for the clock then; it may have waited before it said so, which makes the moment
/// late by one such wait (100 ms) at most, never early.
#[derive(Debug, Default)]
struct LastByte {
    at: Option<Instant>,
    moved: bool,
}

impl LastByte {
    fn note(&mut self, bytes: usize) {
        if bytes > 0 {
            self.moved = true;
        } else {
            self.settle();
        }
    }

    /// Nothing moves now: the loop has ended, or a call moved nothing.
    #[cold]
    fn settle(&mut self) {
        if self.moved {
            self.at = Some(Instant::now());
            self.moved = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_byte_is_before_the_silence_that_followed() {
        let mut last = LastByte::default();
        last.note(0);
        last.settle();
        assert_eq!(last.at, None);
        last.note(10);
        last.note(0);
        let quiet = last.at.unwrap();
        last.note(0);
        last.settle();
        assert_eq!(last.at, Some(quiet));
        last.note(10);
        last.settle();
        assert!(last.at.unwrap() > quiet);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let failure = pin(Some(CpuIndex::new(4095).unwrap())).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Spec);
        assert!(
            failure.message.contains("CPU 4095") && failure.message.contains("may use CPUs [0"),
            "{failure}"
        );
    }
}
