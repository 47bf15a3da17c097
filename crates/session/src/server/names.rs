//! A session about names: what a client may do with them, and what it did.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use farline_mover::Names;
use farline_spec::unit::{DurationS, RateBps};
use farline_spec::{Failure, NameAnswer, NameRequest, NameRights};

use super::events::{AuditEvent, NameChange, NamesEnd, NamesStart};
use super::slots::Slot;
use crate::client::record::status;
use crate::message::SessionId;

/// How often a wait for the rate of a ticket looks whether it is still wanted.
const SLICE: Duration = Duration::from_millis(50);

/// What an admitted client got.
#[derive(Debug)]
pub struct NamesAdmission {
    /// What it may do.
    pub rights: NameRights,
    /// Names below the folder of its ticket.
    pub names: Names,
    /// That folder.
    pub root: String,
    /// Name of the ticket.
    pub ticket: String,
    /// How long it may go on.
    pub duration_limit: Option<DurationS>,
    /// Rate at which it may read.
    pub rate_bps: Option<RateBps>,
    /// Its place among the sessions; free again when dropped.
    pub slot: Slot,
}

/// One client's session about names.
#[derive(Debug)]
pub struct NamesSession {
    admission: NamesAdmission,
    session: SessionId,
    peer: SocketAddr,
    began: Instant,
    requests: u64,
    changes: u64,
    bytes_sent: u64,
    /// Before this nothing more is read.
    free_at: Instant,
}

impl NamesSession {
    /// A session that begins.
    pub fn new(admission: NamesAdmission, session: SessionId, peer: SocketAddr) -> Self {
        let now = Instant::now();
        Self {
            admission,
            session,
            peer,
            began: now,
            requests: 0,
            changes: 0,
            bytes_sent: 0,
            free_at: now,
        }
    }

    /// What is told when it begins.
    pub fn start(&self) -> AuditEvent {
        AuditEvent::NamesStarted(Box::new(NamesStart {
            session: self.session,
            peer: self.peer,
            ticket: self.admission.ticket.clone(),
            root: self.admission.root.clone(),
        }))
    }

    /// Does one thing, and gives what is told of it if it is a change; what takes long ends early once `is_wanted` says no.
    pub fn answer(
        &mut self,
        request: &NameRequest,
        is_wanted: &dyn Fn() -> bool,
    ) -> (NameAnswer, Option<AuditEvent>) {
        self.requests += 1;
        while Instant::now() < self.free_at && is_wanted() {
            std::thread::sleep(SLICE.min(self.free_at.saturating_duration_since(Instant::now())));
        }
        let answer = self.admission.names.answer(request, is_wanted);
        if let NameAnswer::Bytes { data, .. } = &answer {
            self.pace(data.len() as u64);
        }
        let change = request.change().map(|verb| self.change(verb, request, &answer));
        (answer, change)
    }

    /// What was read takes as long as the rate of the ticket says.
    fn pace(&mut self, bytes: u64) {
        self.bytes_sent += bytes;
        if let Some(rate) = self.admission.rate_bps.map(RateBps::get).filter(|&rate| rate > 0) {
            let takes = Duration::from_secs_f64(bytes as f64 * 8.0 / rate as f64);
            self.free_at = self.free_at.max(Instant::now()) + takes;
        }
    }

    fn change(&mut self, verb: &'static str, request: &NameRequest, answer: &NameAnswer) -> AuditEvent {
        let to = match request {
            NameRequest::Rename { to, .. } => Some(to.clone()),
            _ => None,
        };
        let (count, error) = match answer {
            NameAnswer::Refused { message, .. } => (0, Some(message.clone())),
            NameAnswer::Done { count } => (*count, None),
            _ => (0, None),
        };
        self.changes += count;
        AuditEvent::NameChanged(Box::new(NameChange {
            session: self.session,
            peer: self.peer,
            verb,
            path: request.path().to_owned(),
            to,
            count,
            error,
        }))
    }

    /// What is told when it is over.
    pub fn end(&self, error: Option<&Failure>) -> AuditEvent {
        AuditEvent::NamesEnded(Box::new(NamesEnd {
            session: self.session,
            peer: self.peer,
            status: status(error),
            error: error.cloned(),
            session_s: self.began.elapsed().as_secs_f64(),
            requests: self.requests,
            changes: self.changes,
            bytes_sent: self.bytes_sent,
        }))
    }
}
