//! The client: one run, from a target and a spec to a record.
//!
//! What it does: connects, drives [`ClientMachine`](crate::machine::ClientMachine), opens the data
//! streams, seats the run, and reports what happens as [`Event`]s. Whatever goes wrong, the last
//! event is [`Event::Done`] with a record that says so.
//! What it must not do: remember servers' keys, retry, judge results; those are the caller's.
//!
//! In: [`Target`], `RunSpec`. Out: events. One thread per run, besides those of the run itself.
//!
//! Start with [`start_run`], then `driver.rs`; `connect.rs` has every connection that is opened, `greeting.rs` what comes before the first word, `kept.rs` what outlasts a run,
//! `record.rs` what remains.

mod back;
pub(crate) mod connect;
mod driver;
mod greeting;
mod kept;
mod names;
pub mod record;

pub use connect::Contact;
pub use kept::ConnectionKeeper;
pub use names::NamesClient;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, unbounded};
use farline_spec::{
    AdjustRequest, Adjustment, CopyProgress, CopyStages, Failure, FailureKind, MoverSamples, RunRecord,
    RunSpec, Samples,
};
use farline_sys::wake::Waker;

use crate::channel::Interrupt;
use crate::message::VersionRange;
use crate::target::Target;
use crate::tls::Fingerprint;
use record::Ending;

/// Wishes that nobody has looked at yet, at most.
const MOST_WISHES: usize = 1_024;

/// What happens to a run, in order.
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time is on its way, and samples are most of them"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The session has reached this state of Yun et al. 2015.
    Stage(&'static str),
    /// Where the server is waited for, if it has to connect to the client.
    Listening(SocketAddr),
    /// The key that the server showed. With a pin it is the pinned one, or the run has failed.
    ServerKey(Fingerprint),
    /// Something the user should read: what the server changed about the spec, for one.
    Notice(String),
    /// Samples of one end: the client's while the run lasts, the server's after it.
    Samples(Samples),
    /// The same of a copy's files.
    MoverSamples(MoverSamples),
    /// How far a copy is at this end; ten times a second.
    Progress(CopyProgress),
    /// How far the stages of a copy are at both ends; once an interval.
    Stages(CopyStages),
    /// What came of a wish to change a copy: it is in force from now on, or refused.
    Adjusted(Adjustment),
    /// It is over; nothing follows.
    Done(Box<RunRecord>),
}

/// A run that has been started.
#[derive(Debug)]
pub struct RunHandle {
    events: Receiver<Event>,
    /// Absent when nothing could be started; the events say why.
    running: Option<Running>,
    run_id: String,
}

#[derive(Debug)]
struct Running {
    orders: RunControl,
    wishes: Sender<AdjustRequest>,
    thread: JoinHandle<()>,
}

/// What the owner of a run wants of its driver.
#[derive(Debug, Clone)]
pub struct RunControl {
    stop: Arc<AtomicBool>,
    interrupt: Interrupt,
    /// Changes that are wanted.
    wishes: Receiver<AdjustRequest>,
    /// Nobody looks at them any more.
    is_deaf: Arc<AtomicBool>,
}

impl RunControl {
    /// Whether the run is to end early but in order.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Whether the run is to end now.
    pub fn is_aborted(&self) -> bool {
        self.interrupt.is_raised()
    }

    /// Refuses wishes to go on in another way: this run never looks at them.
    pub fn refuse_wishes(&self) {
        self.is_deaf.store(true, Ordering::Release);
    }

    /// Woken when either changes.
    pub fn waker(&self) -> &Arc<Waker> {
        self.interrupt.waker()
    }
}

/// What concerns the client's own machine, and no server.
#[derive(Debug, Default)]
pub struct Local {
    /// Where the receipt of a copy goes, a line for each name.
    pub receipt: Option<PathBuf>,
    /// Where to wait for the server's connections instead of connecting to it; port 0 lets the kernel choose.
    pub listen: Option<SocketAddr>,
    /// The server's connection, if there is one already; otherwise it is made.
    pub contact: Option<Contact>,
    /// Where the connection comes from, if it was kept, and goes to when the run is over; without one it ends with the run.
    pub keeper: Option<ConnectionKeeper>,
    /// Versions of the control protocol to choose from.
    pub versions: VersionRange,
}

/// Starts a run of `spec` against `target` and returns at once. Every failure comes as [`Event::Done`].
pub fn start_run(target: Target, spec: RunSpec) -> RunHandle {
    start_run_with(target, spec, Local::default())
}

/// As [`start_run`], with what concerns this machine alone.
pub fn start_run_with(target: Target, spec: RunSpec, local: Local) -> RunHandle {
    RunHandle::drive(target.address(), spec.clone(), move |events, orders, run_id| {
        driver::run(&target, spec, local, events, orders, run_id);
    })
}

/// A caller that dropped its handle hears nothing any more; the session ends all the same.
fn emit(events: &Sender<Event>, event: Event) {
    let _ = events.send(event);
}

fn fail_at_once(
    (server_address, spec, events, run_id): (String, RunSpec, Sender<Event>, String),
    failure: Failure,
) {
    let mut ending = Ending {
        run_id,
        ..Ending::new(server_address, spec)
    };
    ending.failure = Some(failure);
    // The receiver is on its way to the caller.
    let _ = events.send(Event::Done(Box::new(ending.into_record())));
}

impl RunHandle {
    /// A run of `spec` against `server_address` that `driver` carries out in a thread of its own under the name it is given: its
    /// last event must be [`Event::Done`]. If there is no thread to be had, that event says so.
    pub fn drive(
        server_address: String,
        spec: RunSpec,
        driver: impl FnOnce(&Sender<Event>, RunControl, String) + Send + 'static,
    ) -> Self {
        let (sender, events) = unbounded();
        let run_id = ulid::Ulid::new().to_string();
        let (wishes, wanted) = bounded(MOST_WISHES);
        let spare = (server_address, spec, sender.clone(), run_id.clone());
        let name = run_id.clone();
        let started = Interrupt::new().and_then(|interrupt| {
            let orders = RunControl {
                stop: Arc::default(),
                interrupt,
                wishes: wanted,
                is_deaf: Arc::default(),
            };
            let own = orders.clone();
            let thread = std::thread::Builder::new()
                .name("fl-client".into())
                .spawn(move || driver(&sender, own, name))
                .map_err(|error| Failure::system("starting thread fl-client", &error))?;
            Ok(Running {
                orders,
                wishes,
                thread,
            })
        });
        let running = started.map_err(|failure| fail_at_once(spare, failure)).ok();
        Self {
            events,
            running,
            run_id,
        }
    }

    /// The next event; `None` when `timeout` has passed, or after [`Event::Done`].
    pub fn poll(&self, timeout: Duration) -> Option<Event> {
        self.events.recv_timeout(timeout).ok()
    }

    /// Name of the run, as in its record.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Wants a copy to go on in another way. What comes of it is told as [`Event::Adjusted`], once for each thing that `request`
    /// names; a later wish for the same thing takes the place of one that has not been asked for yet.
    ///
    /// # Errors
    /// [`FailureKind::Usage`] for an empty wish, or a run that is over; [`FailureKind::Busy`] while too many wait.
    pub fn adjust(&self, request: AdjustRequest) -> Result<(), Failure> {
        if request.is_empty() {
            let line = "nothing to change: give streams, concurrency or a rate";
            return Err(Failure::new(FailureKind::Usage, line));
        }
        let over = || Failure::new(FailureKind::Usage, "the run is over: nothing changes any more");
        let running = self.running.as_ref().ok_or_else(over)?;
        if running.orders.is_deaf.load(Ordering::Acquire) || self.is_over() {
            return Err(over());
        }
        match running.wishes.try_send(request) {
            Ok(()) => running.orders.interrupt.waker().wake(),
            Err(TrySendError::Full(_)) => {
                let line = "too many changes at once: wait until earlier ones are in force";
                return Err(Failure::new(FailureKind::Busy, line));
            }
            Err(TrySendError::Disconnected(_)) => return Err(over()),
        }
        Ok(())
    }

    /// Ends the run early but in order: both ends stop, their profiles are exchanged, the record is partial.
    pub fn stop(&self) {
        if let Some(running) = &self.running {
            running.orders.stop.store(true, Ordering::Release);
            running.orders.interrupt.waker().wake();
        }
    }

    /// Ends the run now. The record has what this end measured.
    pub fn abort(&self) {
        if let Some(running) = &self.running {
            running.orders.interrupt.raise();
        }
    }

    /// Whether the driver has ended: an event that [`RunHandle::poll`] does not give by then never comes.
    pub fn is_over(&self) -> bool {
        self.running
            .as_ref()
            .is_none_or(|running| running.thread.is_finished())
    }

    /// Waits until the run is over.
    pub fn join(mut self) {
        self.wait();
    }

    fn wait(&mut self) {
        if let Some(running) = self.running.take() {
            // A panic of the driver was reported by the panic hook; there is no event to wait for.
            let _ = running.thread.join();
        }
    }
}

/// Nobody could hear of a run without a handle, so it is ended.
impl Drop for RunHandle {
    fn drop(&mut self) {
        self.abort();
        self.wait();
    }
}
