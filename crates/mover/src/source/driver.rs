//! The machine of this end behind its lock, those who wait for something of it, and who is told what comes of what they ask.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, bounded};
use farline_proto::copy::CopySender;
use farline_proto::copy::sender::{Config, Outcome, Progress};
use farline_spec::{Failure, FailureKind, FileKind, FileStatus};
use tracing::debug;

use super::account::Account;
use super::lanes::Lanes;
use super::run::Run;
use super::sending::Sending;
use crate::Gauges;
use crate::message::{Catalogue, MAX_PATH_BYTES};
use crate::path_text::{Shown, one_line};

/// Messages that wait for the catalogue's stream before those who make more have to wait.
const MOST_WORDS: usize = 4_096;

/// The machine as this end drives it.
pub(super) type Machine = CopySender<Arc<Sending>>;

/// The machine, for all threads.
#[derive(Debug)]
pub(super) struct Driver {
    inner: Mutex<Inner>,
    began: Instant,
    gauges: Arc<Gauges>,
    /// That it goes on.
    run: Arc<Run>,
    /// Who is told what became of each name.
    account: Arc<Account>,
    /// Data streams now.
    lanes: Arc<Lanes>,
    /// There is something to read.
    work: Condvar,
    /// Something was said.
    less_words: Condvar,
    /// A look is due earlier than it was.
    looks: Condvar,
    ring: Sender<()>,
    /// Has something when the catalogue should look around: there is something to say, or room, or an end.
    pub(super) bell: Receiver<()>,
    /// Streams that were given up: looked at between two frames.
    closed_streams: AtomicU32,
}

#[derive(Debug)]
struct Inner {
    machine: Machine,
    is_over: bool,
}

/// What those who wait look at.
#[derive(Debug, PartialEq, Eq)]
struct Signs {
    has_work: bool,
    has_packs: bool,
    has_words: bool,
    has_room: bool,
    may_end: bool,
    next_look_ns: Option<u64>,
}

impl Signs {
    fn of(machine: &Machine) -> Self {
        Self {
            has_work: machine.has_work(),
            has_packs: machine.has_packs(),
            has_words: machine.words_waiting() > 0,
            has_room: machine.has_room(),
            may_end: machine.may_end(),
            next_look_ns: machine.next_look_ns(),
        }
    }
}

impl Driver {
    /// Of a copy that has not begun.
    pub(super) fn new(
        config: Config,
        streams: u16,
        gauges: &Arc<Gauges>,
        run: &Arc<Run>,
        account: &Arc<Account>,
        lanes: &Arc<Lanes>,
    ) -> Self {
        let mut machine = CopySender::new(config);
        (0..streams).for_each(|stream| machine.add_stream(stream));
        let (ring, bell) = bounded(1);
        Self {
            inner: Mutex::new(Inner {
                machine,
                is_over: false,
            }),
            began: Instant::now(),
            gauges: Arc::clone(gauges),
            run: Arc::clone(run),
            account: Arc::clone(account),
            lanes: Arc::clone(lanes),
            work: Condvar::new(),
            less_words: Condvar::new(),
            looks: Condvar::new(),
            ring,
            bell,
            closed_streams: AtomicU32::new(0),
        }
    }

    /// Time of this copy.
    pub(super) fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Asks the machine something that changes nothing.
    pub(super) fn look<R>(&self, ask: impl FnOnce(&Machine) -> R) -> R {
        ask(&self.lock().machine)
    }

    /// Asks the machine something, and wakes those for whom it has something then. With what came of it.
    fn with<R>(&self, ask: impl FnOnce(&mut Machine) -> R) -> (R, Vec<Outcome<Arc<Sending>>>) {
        let mut inner = self.lock();
        let machine = &mut inner.machine;
        let before = Signs::of(machine);
        let answer = ask(machine);
        let outcomes = std::iter::from_fn(|| machine.poll_outcome()).collect();
        let now = Signs::of(machine);
        self.count(machine);
        drop(inner);
        if (now.has_work && !before.has_work) || (now.has_packs && !before.has_packs) {
            self.work.notify_all();
        }
        let may_say = (now.has_words && !before.has_words) || (now.has_room && !before.has_room);
        if may_say || (now.may_end && !before.may_end) {
            self.ring();
        }
        if now.next_look_ns.is_some() && now.next_look_ns != before.next_look_ns {
            self.looks.notify_all();
        }
        (answer, outcomes)
    }

    /// Figures move under the lock: in the order in which things happened.
    fn count(&self, machine: &mut Machine) {
        let progress = machine.take_progress();
        if progress == Progress::default() {
            return;
        }
        let gauges = &self.gauges;
        gauges.settled_files.add(progress.settled_files);
        gauges.failed_files.add(progress.failed_files);
        gauges.spared_bytes.add(progress.spared_bytes);
        match u64::try_from(progress.settled_bytes) {
            Ok(more) => gauges.settled_bytes.add(more),
            Err(_) => gauges.settled_bytes.take(progress.settled_bytes.unsigned_abs()),
        }
    }

    /// Makes the catalogue look around.
    pub(super) fn ring(&self) {
        // Full: it is about to look anyway.
        let _ = self.ring.try_send(());
    }

    /// Waits until there may be something to read, or until `is_due` after [`Self::wake_readers`], for at most `time`.
    pub(super) fn wait_for_work(&self, time: Duration, is_due: impl Fn(&Machine) -> bool) {
        self.wait(&self.work, time, |machine| machine.has_work() || is_due(machine));
    }

    /// Waits until there may be small files, for at most `time`.
    pub(super) fn wait_for_packs(&self, time: Duration) {
        self.wait(&self.work, time, Machine::has_packs);
    }

    /// Waits for the next look, for at most `time`; whether one is to come.
    pub(super) fn wait_for_look(&self, time: Duration) -> bool {
        let due_ns = self.look(Machine::next_look_ns);
        let left = |due_ns: u64| Duration::from_nanos(due_ns.saturating_sub(self.now_ns()));
        let time = due_ns.map_or(time, |due_ns| time.min(left(due_ns)));
        self.wait(&self.looks, time, |machine| machine.next_look_ns() != due_ns);
        due_ns.is_some()
    }

    /// Waits while there is much to say already. Not for who says it, nor for who hears what the other end says.
    pub(super) fn wait_for_room(&self) {
        let is_full = |inner: &mut Inner| !inner.is_over && inner.machine.words_waiting() > MOST_WORDS;
        let waited = self.less_words.wait_while(self.lock(), is_full);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Things were said: wakes those who wait to say more.
    pub(super) fn words_taken(&self) {
        self.less_words.notify_all();
    }

    fn wait(&self, bell: &Condvar, time: Duration, is_there: impl Fn(&Machine) -> bool) {
        let goes_on = |inner: &mut Inner| !inner.is_over && !is_there(&inner.machine);
        let waited = bell.wait_timeout_while(self.lock(), time, goes_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Makes readers that wait look around.
    pub(super) fn wake_readers(&self) {
        drop(self.lock());
        self.work.notify_all();
    }

    /// Nothing more happens: whoever waits goes on at once.
    fn close(&self) {
        self.lock().is_over = true;
        self.work.notify_all();
        self.less_words.notify_all();
        self.looks.notify_all();
    }

    /// Whether `stream` was given up.
    pub(super) fn is_closed(&self, stream: u16) -> bool {
        let any = self.closed_streams.load(Ordering::Acquire) > 0;
        any && self.look(|machine| machine.is_closed(stream))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// Asks the machine something and does what comes of it.
    pub(super) fn ask<R>(&self, ask: impl FnOnce(&mut Machine) -> R) -> R {
        let (answer, outcomes) = self.with(ask);
        for outcome in outcomes {
            if let Err(failure) = self.carry_out(outcome) {
                self.stop(&failure);
            }
        }
        answer
    }

    fn carry_out(&self, outcome: Outcome<Arc<Sending>>) -> Result<(), Failure> {
        self.run.beat();
        match outcome {
            Outcome::Wanted {
                file,
                kept,
                resumed_bytes,
            } => {
                debug!(entry = %Shown(&kept.found.path), number = file, trusted_bytes = resumed_bytes, "entry wanted");
            }
            Outcome::Repeated { kept, offset, bytes } => {
                debug!(entry = %Shown(&kept.found.path), offset, bytes, "chunk wanted again");
            }
            Outcome::Settled(settled) => self.account.settled(&settled)?,
            Outcome::Arrived { kept, .. } => self.settle_arrived(&kept),
            Outcome::Deleted(path) => self.account.deleted(&path)?,
            Outcome::StreamLost { stream, record } => self.stream_lost(stream, record)?,
            Outcome::Finished(problems) => {
                self.account.finished(problems)?;
                self.end();
            }
        }
        Ok(())
    }

    fn stream_lost(&self, stream: u16, record: u64) -> Result<(), Failure> {
        self.closed_streams.fetch_add(1, Ordering::AcqRel);
        if self.lanes.lose() == 0 {
            let line = format!(
                "the other end cannot read stream {stream} from frame {record} on, and no other stream is left"
            );
            return Err(Failure::new(FailureKind::Protocol, line));
        }
        // Whoever waits for something to send on that stream has to end it.
        self.wake_readers();
        Ok(())
    }

    /// Notes what became of a name that is not announced, and leaves word of it for the other end. Its finding has not been
    /// counted yet. Not on the catalogue's own thread.
    pub(super) fn settle_unannounced(&self, path: &[u8], kind: FileKind, status: FileStatus, reason: &str) {
        let message = self.note_unannounced(path, kind, status, reason);
        self.ask(|machine| machine.say(message));
    }

    /// As [`Self::settle_unannounced`]; gives what the other end is to be told.
    pub(super) fn note_unannounced(
        &self,
        path: &[u8],
        kind: FileKind,
        status: FileStatus,
        reason: &str,
    ) -> Catalogue {
        self.gauges.found_files.add(1);
        self.ask(|machine| machine.count_unannounced(status));
        let reason = one_line(reason);
        if let Err(failure) = self.account.unannounced(path, kind, status, &reason) {
            self.stop(&failure);
        }
        Catalogue::Unannounced {
            path: shortened(path).to_vec(),
            kind,
            status,
            reason,
        }
    }

    /// Ends the copy with `why`; everyone hears of it at once.
    pub(super) fn stop(&self, why: &Failure) {
        if !self.run.is_over() {
            debug!(kind = why.kind.word(), reason = why.message, "sending end stops");
        }
        self.run.stop(why);
        self.close();
    }

    /// Ends the copy well.
    pub(super) fn end(&self) {
        self.run.finish();
        self.close();
    }
}

/// A path as far as a message carries it, and never one that leads elsewhere than below the destination: no name of it is
/// empty, `.` or `..`.
fn shortened(path: &[u8]) -> &[u8] {
    let mut cut = &path[..path.len().min(MAX_PATH_BYTES)];
    while cut.len() < path.len() {
        let at = cut.iter().rposition(|byte| *byte == b'/');
        let Some(at) = at.filter(|at| matches!(&cut[at + 1..], b"" | b"." | b"..")) else {
            break;
        };
        cut = &cut[..at];
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_long_is_cut_to_one_below_the_destination() {
        assert_eq!(shortened(b"a/b/"), b"a/b/");
        let of = |name: &str, end: &str| {
            let start = format!("{}/", "n".repeat(MAX_PATH_BYTES - 1 - name.len()));
            let cut = format!("{start}{name}");
            assert_eq!(cut.len(), MAX_PATH_BYTES);
            let path = format!("{cut}{end}");
            String::from_utf8(shortened(path.as_bytes()).to_vec()).unwrap()
        };
        let short = |name: &str| "n".repeat(MAX_PATH_BYTES - 1 - name.len());
        for name in ["", ".", ".."] {
            assert_eq!(of(name, "x/y"), short(name), "{name:?}");
        }
        assert_eq!(of("x", "/y"), format!("{}/x", short("x")));
        assert_eq!(of("...", "x"), format!("{}/...", short("...")));
        let slashes = "a".to_owned() + &"/".repeat(2 * MAX_PATH_BYTES);
        assert_eq!(shortened(slashes.as_bytes()), b"a");
    }
}
