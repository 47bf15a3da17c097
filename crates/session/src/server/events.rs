//! What a server tells its owner, one event at a time.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};
use farline_spec::{
    CopyReport, Direction, Failure, FailureKind, FileTally, PathText, RunSpec, RunStatus, Transport,
};
use serde::Serialize;
use tracing::{info, warn};

use super::refusals::{PERIOD, RefusalSummary, Refusals};
use crate::client::record::{rfc3339, status};
use crate::machine::ServerMachine;
use crate::message::SessionId;
use crate::run::RunOutcome;
use crate::run_controller::payload_bytes;

/// Events that wait to be read; more are counted and dropped.
const CAPACITY: usize = 1024;

/// Something that happened, with its time. As JSON it is one flat object whose `event` names its kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerEvent {
    /// When (RFC 3339, UTC).
    pub at: String,
    /// What.
    #[serde(flatten)]
    pub what: AuditEvent,
}

/// What may happen to a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AuditEvent {
    /// A client was admitted.
    SessionStarted(Box<SessionStart>),
    /// Its session is over.
    SessionEnded(Box<SessionEnd>),
    /// A client was admitted that asks about names.
    NamesStarted(Box<NamesStart>),
    /// It had a name made, changed or removed, or was refused that.
    NameChanged(Box<NameChange>),
    /// Its session is over.
    NamesEnded(Box<NamesEnd>),
    /// A connection came to nothing: not farline, no right, no room.
    Refused {
        /// Who.
        peer: SocketAddr,
        /// Why.
        error: Failure,
    },
    /// More connections of one address or network came to nothing than are told one by one.
    RefusedMany(RefusalSummary),
    /// The server could not do its work for a moment.
    Trouble {
        /// Why.
        error: Failure,
    },
    /// Nobody read the events for too long.
    EventsLost {
        /// How many are missing.
        count: u64,
    },
    /// The server has stopped; nothing follows.
    Stopped {
        /// Sessions since its start.
        sessions: u64,
    },
}

/// A session that begins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionStart {
    /// Name of the session.
    pub session: SessionId,
    /// Who.
    pub peer: SocketAddr,
    /// Name of the ticket; none for an anonymous client.
    pub ticket: Option<String>,
    /// Protocol of the data.
    pub transport: Transport,
    /// Which way they go.
    pub direction: Direction,
    /// Data streams in all.
    pub streams: usize,
    /// Whether they carry files.
    pub copy: bool,
    /// Folder that the files of a copy may not leave.
    pub root: Option<String>,
    /// Length of the run, if stated.
    pub duration_s: Option<f64>,
    /// Payload of the run, if stated.
    pub total_bytes: Option<u64>,
    /// What was changed about the client's wish.
    pub notes: Vec<String>,
}

impl SessionStart {
    /// From the spec as granted.
    pub fn new(
        session: SessionId,
        peer: SocketAddr,
        ticket: Option<String>,
        spec: &RunSpec,
        notes: &[String],
    ) -> Self {
        Self {
            session,
            peer,
            ticket,
            transport: spec.transport,
            direction: spec.direction,
            streams: spec.stream_total(),
            copy: spec.copy.is_some(),
            root: None,
            duration_s: spec.duration_s.map(|duration| duration.get()),
            total_bytes: spec.total_bytes.map(|total| total.get()),
            notes: notes.to_vec(),
        }
    }
}

/// A session that is over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionEnd {
    /// Name of the session.
    pub session: SessionId,
    /// Who.
    pub peer: SocketAddr,
    /// How it ended.
    pub status: RunStatus,
    /// Why it failed or was stopped.
    pub error: Option<Failure>,
    /// Seconds from admission to the end.
    pub session_s: f64,
    /// Payload bytes that the server sent.
    pub bytes_sent: u64,
    /// Payload bytes that the server received.
    pub bytes_received: u64,
    /// Payload bytes that the client says it received, if it came to that.
    pub client_bytes_received: Option<u64>,
    /// What became of the files of a copy.
    pub copy: Option<SessionCopy>,
}

/// A session about names that begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamesStart {
    /// Name of the session.
    pub session: SessionId,
    /// Who.
    pub peer: SocketAddr,
    /// Name of the ticket.
    pub ticket: String,
    /// Folder that the names may not leave.
    pub root: String,
}

/// A name that was made, changed or removed, or was to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NameChange {
    /// Name of the session.
    pub session: SessionId,
    /// Who.
    pub peer: SocketAddr,
    /// What was to be done: `make_folder`, `rename`, `remove`.
    pub verb: &'static str,
    /// With which name.
    pub path: PathText,
    /// The new name.
    pub to: Option<PathText>,
    /// Names made, changed or removed; of a removal that failed in the middle not told.
    pub count: u64,
    /// Why it was not done, or not all of it.
    pub error: Option<String>,
}

/// A session about names that is over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamesEnd {
    /// Name of the session.
    pub session: SessionId,
    /// Who.
    pub peer: SocketAddr,
    /// How it ended.
    pub status: RunStatus,
    /// Why it failed.
    pub error: Option<Failure>,
    /// Seconds from admission to the end.
    pub session_s: f64,
    /// Requests that were answered.
    pub requests: u64,
    /// Names made, changed or removed.
    pub changes: u64,
    /// Bytes of files that were sent.
    pub bytes_sent: u64,
}

/// What became of the files of a copy, as far as this end knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionCopy {
    /// Files copied now.
    pub copied: FileTally,
    /// What was there already.
    pub present: FileTally,
    /// What failed.
    pub failed: FileTally,
}

impl SessionCopy {
    /// From this end's report.
    pub fn new(report: &CopyReport) -> Self {
        Self {
            copied: report.copied,
            present: report.present,
            failed: report.failed,
        }
    }
}

impl ServerEvent {
    /// The word for its kind, as in JSON.
    pub fn kind(&self) -> &'static str {
        match self.what {
            AuditEvent::SessionStarted(_) => "session_started",
            AuditEvent::SessionEnded(_) => "session_ended",
            AuditEvent::NamesStarted(_) => "names_started",
            AuditEvent::NameChanged(_) => "name_changed",
            AuditEvent::NamesEnded(_) => "names_ended",
            AuditEvent::Refused { .. } => "refused",
            AuditEvent::RefusedMany(_) => "refused_many",
            AuditEvent::Trouble { .. } => "trouble",
            AuditEvent::EventsLost { .. } => "events_lost",
            AuditEvent::Stopped { .. } => "stopped",
        }
    }
}

impl AuditEvent {
    /// Says it in the log, which has it whether or not the owner reads events.
    fn tell(&self) {
        match self {
            Self::SessionStarted(start) => start.tell(),
            Self::SessionEnded(end) => end.tell(),
            Self::NamesStarted(start) => info!(
                session = %start.session,
                peer = %start.peer,
                ticket = start.ticket,
                what = "names",
                root = start.root,
                "session begins"
            ),
            Self::NameChanged(change) => info!(
                session = %change.session,
                peer = %change.peer,
                verb = change.verb,
                path = change.path,
                to = change.to,
                count = change.count,
                reason = change.error,
                "name changed"
            ),
            Self::NamesEnded(end) => info!(
                session = %end.session,
                peer = %end.peer,
                status = end.status.word(),
                reason = end.error.as_ref().map(|error| error.message.as_str()),
                session_s = end.session_s,
                requests = end.requests,
                changes = end.changes,
                bytes_sent = end.bytes_sent,
                "session ends"
            ),
            Self::Refused { peer, error } => {
                info!(peer = %peer, kind = error.kind.word(), reason = error.message, "connection refused");
            }
            Self::RefusedMany(many) => info!(
                peer = many.from,
                connections = many.connections,
                period_s = many.period_s,
                reason = many.error.message,
                "more connections refused"
            ),
            Self::Trouble { error } => warn!(reason = error.message, "trouble"),
            Self::EventsLost { count } => warn!(count, "events lost that nobody read"),
            Self::Stopped { sessions } => info!(sessions, "server stopped"),
        }
    }
}

impl SessionStart {
    fn tell(&self) {
        info!(
            session = %self.session,
            peer = %self.peer,
            ticket = self.ticket.as_deref().unwrap_or("none"),
            what = if self.copy { "copy" } else { "probe" },
            transport = self.transport.word(),
            direction = self.direction.word(),
            streams = self.streams,
            root = self.root,
            notes = (!self.notes.is_empty()).then(|| self.notes.join("; ")),
            "session begins"
        );
    }
}

impl SessionEnd {
    /// What a session came to, by its machine and its run.
    pub fn of(
        session: SessionId,
        peer: SocketAddr,
        machine: &ServerMachine,
        (spec, outcome): (&RunSpec, &RunOutcome),
        lasted: Duration,
    ) -> Self {
        let stopped = || {
            let failure = Failure::new(FailureKind::Interrupted, "the run was stopped by the client");
            machine.client_stopped().then_some(failure)
        };
        let error = machine
            .failure()
            .cloned()
            .or_else(|| outcome.failure.clone())
            .or_else(stopped);
        let (bytes_sent, bytes_received) = payload_bytes(spec, outcome);
        Self {
            session,
            peer,
            status: status(error.as_ref()),
            error,
            session_s: lasted.as_secs_f64(),
            bytes_sent,
            bytes_received,
            client_bytes_received: machine.client_profile().map(|profile| profile.bytes_received),
            copy: outcome.copy.as_ref().map(SessionCopy::new),
        }
    }

    fn tell(&self) {
        let copied = self.copy.as_ref().map(|copy| copy.copied.files);
        let failed = self.copy.as_ref().map(|copy| copy.failed.files);
        info!(
            session = %self.session,
            peer = %self.peer,
            status = self.status.word(),
            kind = self.error.as_ref().map(|error| error.kind.word()),
            reason = self.error.as_ref().map(|error| error.message.as_str()),
            session_s = self.session_s,
            bytes_sent = self.bytes_sent,
            bytes_received = self.bytes_received,
            files_copied = copied,
            files_failed = failed,
            "session ends"
        );
    }
}

/// Where the threads of a server write events. Nobody waits for a reader.
#[derive(Debug)]
pub struct EventLog {
    sender: Sender<ServerEvent>,
    lost: AtomicU64,
    refusals: Mutex<Refusals>,
    /// When the operating system last failed the server, and how often that was not told since.
    troubled: Mutex<Option<(Instant, u64)>>,
}

impl EventLog {
    /// A log and its reading end.
    pub fn new() -> (Self, Receiver<ServerEvent>) {
        let (sender, receiver) = bounded(CAPACITY);
        (
            Self {
                sender,
                lost: AtomicU64::new(0),
                refusals: Mutex::default(),
                troubled: Mutex::default(),
            },
            receiver,
        )
    }

    /// Writes one event, or counts it as lost.
    pub fn write(&self, what: AuditEvent) {
        let count = self.lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            self.put(AuditEvent::EventsLost { count }, count);
        }
        self.put(what, 1);
    }

    /// Writes that a connection came to nothing, or counts it where many of its address do.
    pub fn refuse(&self, peer: SocketAddr, error: Failure) {
        let is_told = self.refusals().note(peer, &error, Instant::now());
        if is_told {
            self.write(AuditEvent::Refused { peer, error });
        }
    }

    /// Writes what the operating system would not do, once a period.
    pub fn trouble(&self, mut error: Failure) {
        let mut troubled = self.troubled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, untold)) = troubled.as_mut().filter(|(since, _)| since.elapsed() < PERIOD) {
            *untold += 1;
            return;
        }
        if let Some((_, untold @ 1..)) = troubled.replace((Instant::now(), 0)) {
            error
                .message
                .push_str(&format!(" (and {untold} times before this, not reported)"));
        }
        drop(troubled);
        self.write(AuditEvent::Trouble { error });
    }

    /// Writes the summaries of refusals that are due.
    pub fn summarise(&self) {
        let summaries = self.refusals().take(Instant::now(), false);
        summaries
            .into_iter()
            .for_each(|summary| self.write(AuditEvent::RefusedMany(summary)));
    }

    /// When summaries are due.
    pub fn due(&self) -> Option<Instant> {
        self.refusals().due()
    }

    fn refusals(&self) -> MutexGuard<'_, Refusals> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the last event even if that means waiting a moment for a reader.
    pub fn write_last(&self, what: AuditEvent) {
        let summaries = self.refusals().take(Instant::now(), true);
        summaries
            .into_iter()
            .for_each(|summary| self.write(AuditEvent::RefusedMany(summary)));
        what.tell();
        let event = ServerEvent {
            at: rfc3339(SystemTime::now()),
            what,
        };
        // Without a reader there is nobody to tell.
        let _ = self.sender.send_timeout(event, Duration::from_secs(1));
    }

    fn put(&self, what: AuditEvent, worth: u64) {
        what.tell();
        let event = ServerEvent {
            at: rfc3339(SystemTime::now()),
            what,
        };
        if let Err(TrySendError::Full(_)) = self.sender.try_send(event) {
            self.lost.fetch_add(worth, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::FailureKind;

    fn trouble() -> AuditEvent {
        AuditEvent::Trouble {
            error: Failure::new(FailureKind::System, "x"),
        }
    }

    fn end() -> SessionEnd {
        SessionEnd {
            session: SessionId([1; 16]),
            peer: "[::1]:7".parse().unwrap(),
            status: RunStatus::Partial,
            error: None,
            session_s: 1.5,
            bytes_sent: 2,
            bytes_received: 3,
            client_bytes_received: None,
            copy: None,
        }
    }

    #[test]
    fn an_event_is_one_flat_object_that_names_its_kind() {
        let (log, events) = EventLog::new();
        log.write(AuditEvent::Stopped { sessions: 3 });
        log.write(trouble());
        log.write(AuditEvent::SessionEnded(Box::new(end())));
        for event in events.try_iter() {
            let json = serde_json::to_value(&event).unwrap();
            assert_eq!(json["event"], event.kind());
            assert!(json["at"].as_str().unwrap().ends_with('Z'));
            if let AuditEvent::SessionEnded(end) = event.what {
                assert_eq!(json["bytes_received"], end.bytes_received);
                assert_eq!(json["session"], end.session.to_string());
                assert_eq!(json["peer"], "[::1]:7");
            }
        }
    }

    #[test]
    fn trouble_that_goes_on_is_told_once_a_period_and_a_flood_of_refusals_as_one_line() {
        let (log, events) = EventLog::new();
        let failure = || Failure::new(FailureKind::System, "x");
        (0..1000).for_each(|_| log.trouble(failure()));
        (0..1000).for_each(|_| log.refuse("192.0.2.1:7".parse().unwrap(), failure()));
        log.write_last(AuditEvent::Stopped { sessions: 0 });
        let kinds: Vec<_> = events.try_iter().map(|event| event.kind()).collect();
        let refused = ["refused"; 10];
        assert_eq!(
            kinds,
            [&["trouble"][..], &refused, &["refused_many", "stopped"]].concat()
        );
    }

    #[test]
    fn events_that_nobody_reads_are_counted() {
        let (log, events) = EventLog::new();
        for _ in 0..CAPACITY + 5 {
            log.write(trouble());
        }
        assert_eq!(events.try_iter().count(), CAPACITY);
        log.write(trouble());
        assert_eq!(
            events.try_recv().unwrap().what,
            AuditEvent::EventsLost { count: 5 }
        );
        assert_eq!(events.try_recv().unwrap().kind(), "trouble");
    }
}
