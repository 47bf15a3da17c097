//! What is asked of the engine from other threads, and what it answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded};
use farline_spec::{Failure, FailureKind, LinkChange, Topology};
use farline_sys::arena::{ArenaUse, Spare};
use farline_sys::wake::Waker;

use super::lateness::Lateness;
use super::tap::Tap;
use super::traffic::{PortTraffic, Traffic};
use crate::model::{PipeCounters, PipeState};

/// Longest wait for an answer: the engine answers between two turns, and a turn takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request to the engine; it is answered through `reply`.
pub enum Request {
    /// Change a link now.
    Change {
        /// What changes.
        change: LinkChange,
        /// Memory that the link needs from then on.
        spare: Spare,
        /// Whether it was done.
        reply: Sender<Result<(), Failure>>,
    },
    /// The topology as it stands.
    Topology {
        /// Where to.
        reply: Sender<Topology>,
    },
    /// All counters.
    Report {
        /// Whether the largest backlogs start again from here.
        take_backlog_max: bool,
        /// Where to.
        reply: Sender<Report>,
    },
    /// Begin to record what leaves the wires of some pipes.
    Watch {
        /// Where the records go.
        tap: Tap,
        /// Once it is done.
        reply: Sender<()>,
    },
    /// End the recording of a link; what was not yet handed on is handed on.
    Unwatch {
        /// Number of the link.
        link: usize,
        /// Packets that could not be recorded.
        reply: Sender<u64>,
    },
}

/// Everything the engine has counted, at one moment.
#[derive(Debug, Clone)]
pub struct Report {
    /// Nanoseconds since the emulator started.
    pub at_ns: u64,
    /// One for each pipe.
    pub pipes: Vec<PipeReport>,
    /// How late packets were handed over.
    pub lateness: Lateness,
    /// How late the engine's waits ended while packets came.
    pub wait_lateness: Lateness,
    /// What the engine counts beside the links.
    pub traffic: Traffic,
    /// One for each port.
    pub ports: Vec<PortTraffic>,
    /// Memory of packets on their way.
    pub arena: ArenaUse,
}

/// A pipe at one moment.
#[derive(Debug, Clone)]
pub struct PipeReport {
    /// Counters since the start.
    pub counters: PipeCounters,
    /// What is in it.
    pub state: PipeState,
    /// Largest backlog since it was last taken.
    pub backlog_max_bytes: u64,
}

/// The way to the engine from any thread.
#[derive(Clone)]
pub struct EngineHandle {
    requests: Sender<Request>,
    bell: Arc<WakeSignal>,
}

/// What the engine and everyone else share.
pub struct WakeSignal {
    /// Ends the engine's wait.
    pub waker: Waker,
    /// Set once, by whoever stops the emulator.
    pub stop: AtomicBool,
    /// Set once, by the engine when it ends before it was stopped.
    pub failure: OnceLock<Failure>,
}

impl EngineHandle {
    /// A door whose requests go into `requests`.
    pub fn new(requests: Sender<Request>, bell: Arc<WakeSignal>) -> Self {
        Self { requests, bell }
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The failure that ended the engine, or "internal" when it does not answer.
    pub fn ask<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Result<T, Failure> {
        let (reply, answer) = bounded(1);
        if self.requests.send(request(reply)).is_err() {
            return Err(self.ended());
        }
        self.bell.waker.wake();
        answer.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Disconnected => self.ended(),
            RecvTimeoutError::Timeout => {
                let silence = format!("the emulator has not answered for {} s", PATIENCE.as_secs());
                Failure::new(FailureKind::Internal, silence)
            }
        })
    }

    /// All counters.
    ///
    /// # Errors
    /// As [`EngineHandle::ask`].
    pub fn report(&self, take_backlog_max: bool) -> Result<Report, Failure> {
        self.ask(|reply| Request::Report {
            take_backlog_max,
            reply,
        })
    }

    /// The failure that ended the engine, if one did.
    pub fn failure(&self) -> Option<Failure> {
        self.bell.failure.get().cloned()
    }

    /// Tells the engine to end.
    pub fn stop(&self) {
        self.bell.stop.store(true, Ordering::Release);
        self.bell.waker.wake();
    }

    fn ended(&self) -> Failure {
        let stopped = || Failure::new(FailureKind::Usage, "the emulator was stopped");
        self.failure().unwrap_or_else(stopped)
    }
}
