//! Files over the streams of a run.
//!
//! What it does: begins one end of a copy (room `mover`), lends it the run's streams as whole sealed frames, tells it
//! when the run is stopped or aborted, and makes one report of what both ends say.
//! What it must not do: look into files, frames or messages (the mover's); open streams, keep their time (the run
//! engine's); begin a copy again after it failed (the caller's).
//!
//! ```text
//! worker of stream n ─► Copying::work ─► SendEnd / ReceiveEnd ─► Sending / Receiving ─► seal ─► transport
//! sampler            ─► Copying::{progress, silence, finish}
//! ```
//!
//! In: a [`CopyPlan`] and open streams. Out: a `CopyReport`, `CopyProgress`, gauges.
//!
//! Start with [`Copying`], then `link.rs` (frames on a stream) and `seal.rs` (the cipher).

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzz;
mod give_way;
mod link;
mod origin;
mod pieces;
mod prepare;
mod report;
mod seal;
mod spoiled;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farline_mover::{ActivityMonitor, EndSetup, Gauges, Inlet, Outlet, ReceiveEnd, Root, SendEnd};
use farline_spec::{
    Cipher, CopyProgress, CopyReport, CopySpec, Failure, FailureKind, RunSpec, SumKind, SyncLevel, Transport,
    Verify,
};
use farline_transport::{ByteStream, Role, transport_for};
use tracing::debug;

use crate::streams::{self, MOST_STREAMS, Part};
pub use give_way::{INTERVAL as GIVE_WAY_INTERVAL, ScavengerController};
use link::{EndSignal, Line, Receiving, Sending};
pub use origin::origin;
use pieces::Pieces;
pub use prepare::{messages_bps, prepare, prepare_data};
pub use report::{for_the_wire, merged};
use spoiled::Spoiled;

pub use farline_mover::source::looks_into;
pub use farline_mover::{FileSum, run_storage_load};
pub use seal::{Seal, SealKeys};

/// Time for the word that a copy was stopped to come after the end of its streams, by another connection.
const WORD_TIME: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);
/// Longest that a server lets a copy stand still, whatever its client says.
const MOST_STALL_S: f64 = 300.0;

/// What one end of a copy needs besides the spec.
pub struct CopyPlan {
    /// What its paths may not leave.
    pub root: Root,
    /// Whether the other end has said that nothing is at the destination.
    pub is_vacant: bool,
    /// Whether both ends know of names whose attributes alone are updated.
    pub counts_updates: bool,
    /// Whether both ends know how to heal sealed frames that do not open.
    pub heals_frames: bool,
    /// Whether both ends know of further names that come by themselves where their file could not be copied.
    pub takes_names_apart: bool,
    /// Whether both ends know of extended attributes of the destination folder itself.
    pub takes_top_xattrs: bool,
    /// Whether its streams may come and go.
    pub adjusts: bool,
    /// Whether both ends know of other sums than BLAKE3.
    pub knows_sums: bool,
    /// Where its receipt goes.
    pub receipt: Option<PathBuf>,
    /// Most payload bytes that may move.
    pub most_bytes: Option<u64>,
    /// Seals of the session.
    pub seals: SealKeys,
}

/// One end of a copy under way.
pub struct Copying {
    mover: Mover,
    spec: RunSpec,
    copy: CopySpec,
    /// What content is proved with, if it is.
    sum: Option<SumKind>,
    seals: SealKeys,
    /// Those of data streams: nothing is sealed twice.
    data_seals: SealKeys,
    /// The transport, where it encrypts data by itself.
    encrypted_by: Option<Transport>,
    word: EndSignal,
    pieces: Pieces,
    spoiled: Spoiled,
    /// This end has said that it has all there is.
    has_all: AtomicBool,
    /// A job has failed and waits for the other end's reason: nothing moves any more, and that is no stall.
    awaits_word: AtomicBool,
    gauges: Arc<Gauges>,
    pulse: Arc<ActivityMonitor>,
    /// Longest that nothing may move.
    stall_s: f64,
    /// It was said that nothing moves, and not since that something does.
    is_still: AtomicBool,
}

enum Mover {
    Sends(SendEnd),
    Receives(ReceiveEnd),
}

impl Copying {
    /// Begins the end that `end` of a run of `spec` is; nothing of a run without files.
    ///
    /// # Errors
    /// The mover's: sources or a destination that cannot be used, a journal that another copy holds.
    pub fn start(spec: &RunSpec, end: streams::End, plan: CopyPlan) -> Result<Self, Failure> {
        let missing = || Failure::new(FailureKind::Internal, "a copy without files to copy");
        let copy = spec.copy.clone().ok_or_else(missing)?;
        let (gauges, pulse) = (Arc::<Gauges>::default(), Arc::<ActivityMonitor>::default());
        let heals_frames = plan.heals_frames && copy.cipher != Cipher::None;
        let encrypts = transport_for(spec).capabilities().encrypts;
        let sum = match plan.knows_sums {
            true => copy.sum(),
            false => copy.sum_of_old(),
        };
        let setup = EndSetup {
            spec: copy.clone(),
            root: plan.root,
            origin: copy.origin.clone().unwrap_or_default(),
            is_own_request: end == streams::End::Client,
            streams: spec.streams.get(),
            most_streams: if plan.adjusts {
                MOST_STREAMS
            } else {
                spec.streams.get()
            },
            may_go_straight: copy.may_go_straight(spec.transport),
            is_vacant: plan.is_vacant,
            counts_updates: plan.counts_updates,
            heals_frames,
            takes_names_apart: plan.takes_names_apart,
            takes_top_xattrs: plan.takes_top_xattrs,
            sum,
            expands_patterns: matches!(end, streams::End::Server),
            receipt: plan.receipt,
            most_bytes: plan.most_bytes,
            gauges: Arc::clone(&gauges),
            pulse: Arc::clone(&pulse),
        };
        let mover = if streams::has_files(spec, end) {
            Mover::Sends(SendEnd::start(setup)?)
        } else {
            Mover::Receives(ReceiveEnd::start(setup)?)
        };
        Ok(Self {
            mover,
            spec: spec.clone(),
            data_seals: match encrypts {
                true => plan.seals.of_encrypted(),
                false => plan.seals.clone(),
            },
            seals: plan.seals,
            encrypted_by: encrypts.then_some(spec.transport),
            word: EndSignal::default(),
            pieces: Pieces::default(),
            spoiled: Spoiled::new(heals_frames),
            has_all: AtomicBool::new(false),
            awaits_word: AtomicBool::new(false),
            gauges,
            pulse,
            stall_s: stall_s(&copy, end),
            is_still: AtomicBool::new(false),
            sum,
            copy,
        })
    }

    /// Whether this end has the files.
    pub fn sends(&self) -> bool {
        matches!(self.mover, Mover::Sends(_))
    }

    /// So many data streams more will come to this end; before the other may open them.
    pub fn expect_streams(&self, count: u16) {
        if let Mover::Receives(end) = &self.mover {
            end.expect_streams(count);
        }
    }

    /// So many of those will not come after all.
    pub fn give_up_streams(&self, count: u16) {
        if let Mover::Receives(end) = &self.mover {
            end.give_up_streams(count);
        }
    }

    /// A data stream has come on which this end has `role`, and is about to begin.
    pub fn join_stream(&self, stream: u16, role: Role) {
        if let (Mover::Sends(end), Role::Sender) = (&self.mover, role) {
            end.join_stream(stream);
        }
    }

    /// So many data streams are to end, if this end sends; gives how many do.
    pub fn dismiss_streams(&self, count: u16) -> u16 {
        match &self.mover {
            Mover::Sends(end) => end.dismiss_streams(count),
            Mover::Receives(_) => 0,
        }
    }

    /// Data streams that this end knows of, without those that are to end.
    pub fn streams(&self) -> u32 {
        match &self.mover {
            Mover::Sends(end) => end.streams(),
            Mover::Receives(end) => end.streams(),
        }
    }

    /// Sends so many files at once from now on, if this end sends.
    pub fn set_concurrency(&self, files: u32) {
        if let Mover::Sends(end) = &self.mover {
            end.set_concurrency(files);
        }
    }

    /// Whether all that this end has to do is done: what happens to streams from now on means nothing.
    pub fn is_done(&self) -> bool {
        match &self.mover {
            Mover::Sends(end) => end.is_done(),
            Mover::Receives(_) => self.has_all(),
        }
    }

    /// Whether this end gets the files, has them all and has said so.
    pub fn has_all(&self) -> bool {
        self.has_all.load(Ordering::Acquire)
    }

    /// Whether this end has all and nothing else can be on its way: its streams need not be read to their end.
    pub fn may_close(&self) -> bool {
        match &self.mover {
            Mover::Receives(end) => self.has_all() && !end.has_stragglers(),
            Mover::Sends(_) => false,
        }
    }

    /// Figures of this end.
    pub fn gauges(&self) -> &Gauges {
        &self.gauges
    }

    /// Does this end's part on one stream, until it has ended; gives when its last byte moved, too.
    ///
    /// # Errors
    /// What ended the copy.
    pub fn work(
        &self,
        stream: u16,
        role: Role,
        io: &mut dyn ByteStream,
        watchdog: Duration,
    ) -> (Option<Instant>, Result<(), Failure>) {
        let mut last_byte = None;
        let seals = match streams::part(&self.spec, stream) {
            Part::Data => &self.data_seals,
            Part::Catalogue | Part::Feedback => &self.seals,
        };
        let seal = seals.seal(stream);
        let result = seal.and_then(|seal| match role {
            Role::Sender => self.send_all(stream, io, seal, &mut last_byte, watchdog),
            Role::Receiver => self.receive_all(stream, io, seal, &mut last_byte),
        });
        (last_byte, result)
    }

    fn send_all(
        &self,
        stream: u16,
        io: &mut dyn ByteStream,
        seal: Seal,
        last_byte: &mut Option<Instant>,
        watchdog: Duration,
    ) -> Result<(), Failure> {
        let part = streams::part(&self.spec, stream);
        let mut outlet = Sending::new(io, seal, self.line(), part == Part::Data);
        let done = self.send(part, stream, &mut outlet);
        *last_byte = outlet.last_byte();
        self.in_order(done)?;
        if self.word.is_aborted() {
            return Ok(());
        }
        self.in_order(io.finish_sending(Instant::now() + watchdog))
    }

    fn receive_all(
        &self,
        stream: u16,
        io: &mut dyn ByteStream,
        seal: Seal,
        last_byte: &mut Option<Instant>,
    ) -> Result<(), Failure> {
        let part = streams::part(&self.spec, stream);
        let mut inlet = Receiving::new(io, seal, self.line(), part == Part::Data);
        let done = self.receive(part, stream, &mut inlet);
        *last_byte = inlet.last_byte();
        self.in_order(done)?;
        self.in_order(inlet.discard_rest())
    }

    fn line(&self) -> Line<'_> {
        Line {
            word: &self.word,
            pieces: &self.pieces,
            gauges: &self.gauges,
            pulse: &self.pulse,
            spoiled: &self.spoiled,
        }
    }

    fn send(&self, part: Part, stream: u16, outlet: &mut dyn Outlet) -> Result<(), Failure> {
        match (&self.mover, part) {
            (Mover::Sends(end), Part::Data) => end.data(stream, outlet),
            (Mover::Sends(end), Part::Catalogue) => end.catalogue(outlet),
            (Mover::Receives(end), Part::Feedback) => {
                end.feedback(outlet)?;
                self.has_all.store(true, Ordering::Release);
                Ok(())
            }
            _ => Err(misplaced(stream)),
        }
    }

    fn receive(&self, part: Part, stream: u16, inlet: &mut dyn Inlet) -> Result<(), Failure> {
        match (&self.mover, part) {
            (Mover::Receives(end), Part::Data) => end.data(stream, inlet),
            (Mover::Receives(end), Part::Catalogue) => end.catalogue(inlet),
            (Mover::Sends(end), Part::Feedback) => end.feedback(inlet),
            _ => Err(misplaced(stream)),
        }
    }

    /// Streams that end or break too early may have been stopped at the other end: the control channel says so, a moment
    /// later perhaps. What failed at this end waits for nothing.
    fn with_the_word(&self, done: Result<(), Failure>) -> Result<(), Failure> {
        let is_echo = matches!(&done, Err(failure) if is_echo(failure.kind) && !failure.permanent);
        let until = Instant::now() + WORD_TIME;
        self.awaits_word.fetch_or(is_echo, Ordering::AcqRel);
        while is_echo && !self.word.is_ending() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
        done
    }

    /// What a job of a stopped copy complains about is the stop, and once all is here nothing can go wrong with the rest.
    fn in_order(&self, done: Result<(), Failure>) -> Result<(), Failure> {
        let is_late = |failure: &Failure| self.is_done() && is_echo(failure.kind);
        if self.has_all() || done.as_ref().is_err_and(is_late) {
            return Ok(());
        }
        match self.with_the_word(done) {
            Err(_) if self.word.is_stopping() => Ok(()),
            done => done,
        }
    }

    /// The user wants no more: both ends keep what they have proved.
    pub fn stop(&self) {
        debug!("copy is stopped");
        self.word.stop();
        self.tell(&Failure::new(FailureKind::Interrupted, "the copy was stopped"));
    }

    /// Every job returns soon.
    pub fn abort(&self, why: &Failure) {
        debug!(reason = why.message, "copy is aborted");
        self.word.abort();
        self.tell(why);
    }

    fn tell(&self, why: &Failure) {
        match &self.mover {
            Mover::Sends(end) => end.abort(why),
            Mover::Receives(end) => end.abort(why),
        }
    }

    /// Something moves, though no frame is whole yet.
    pub fn beat(&self) {
        self.pulse.moved(0);
    }

    /// Fails once nothing has moved, or nothing has come of what moved, for too long.
    ///
    /// # Errors
    /// [`FailureKind::Timeout`] that says for how long.
    pub fn check_stall(&self) -> Result<(), Failure> {
        if self.awaits_word.load(Ordering::Acquire) {
            return Ok(());
        }
        let allowed_s = self.stall_s;
        self.tell_stall();
        if self.pulse.silence().as_secs_f64() >= allowed_s {
            let line = format!("the copy is stalled: no data moved for {allowed_s} s");
            return Err(Failure::new(FailureKind::Timeout, line));
        }
        let allowed_s = standstill_s(allowed_s, &self.copy);
        if self.pulse.standstill().as_secs_f64() >= allowed_s {
            let line = format!(
                "the copy makes no progress: the other end is alive, but nothing was completed for {allowed_s} s; allow more with --stall-timeout"
            );
            return Err(Failure::new(FailureKind::Timeout, line));
        }
        Ok(())
    }

    /// Says once that nothing has moved for a quarter of the time that this may last, and once that something moves again.
    fn tell_stall(&self) {
        let silence_s = self.pulse.silence().as_secs_f64();
        let is_still = silence_s >= self.stall_s / 4.0;
        if self.is_still.swap(is_still, Ordering::Relaxed) == is_still {
            return;
        }
        match is_still {
            true => debug!(silence_s, allowed_s = self.stall_s, "nothing moves"),
            false => debug!("something moves again"),
        }
    }

    /// How far it is, when the other end has not acknowledged `under_way_bytes` of what streams took.
    pub fn progress(&self, under_way_bytes: u64) -> CopyProgress {
        let mut seen = match &self.mover {
            Mover::Sends(end) => end.progress(),
            Mover::Receives(end) => end.progress(),
        };
        self.pieces.correct(&mut seen, under_way_bytes);
        seen
    }

    /// What it came to at this end, once no stream works for it any more.
    ///
    /// # Errors
    /// The mover's.
    pub fn finish(&self) -> Result<CopyReport, Failure> {
        let mut report = match &self.mover {
            Mover::Sends(end) => end.finish()?,
            Mover::Receives(end) => end.finish()?,
        };
        report.cipher = self.copy.cipher.word().to_owned();
        report.encrypted_by = self.encrypted_by.map(|transport| transport.word().to_owned());
        report.hash = self.sum.map_or("none", SumKind::word).to_owned();
        let own = if self.sends() {
            &mut report.sender
        } else {
            &mut report.receiver
        };
        report::fill_in(own, &self.gauges);
        Ok(report)
    }
}

/// How long nothing may move at `end`: as the spec says, but a client cannot keep a server's place for ever.
fn stall_s(copy: &CopySpec, end: streams::End) -> f64 {
    let asked_s = copy.stall_timeout_s.get();
    match end {
        streams::End::Client => asked_s,
        streams::End::Server => asked_s.min(MOST_STALL_S),
    }
}

/// How long an end may live and get nowhere where nothing may move for `stall_s`: an hour at 30 s, a minute and a half at 5 s. Whole
/// files that are hashed before or after they come, and folders that are searched for what to delete, take far longer.
fn standstill_s(stall_s: f64, copy: &CopySpec) -> f64 {
    const LEAST_S: f64 = 8.0;
    const MOST_S: f64 = 86_400.0;
    const SILENT_WORK: f64 = 24.0;
    let works_silently =
        copy.sync_level == SyncLevel::Checksum || copy.verify == Verify::ReadBack || copy.delete.is_some();
    let times = if works_silently { SILENT_WORK } else { 1.0 };
    (4.0 * stall_s * stall_s * times).clamp(LEAST_S.max(stall_s), MOST_S)
}

/// Whether a failure may be what the end of the other end looks like from here.
fn is_echo(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Protocol | FailureKind::Interrupted)
}

fn misplaced(stream: u16) -> Failure {
    let line = format!("stream {stream} does not have this role in a copy");
    Failure::new(FailureKind::Internal, line)
}
