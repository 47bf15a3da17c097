//! The record of a run, whatever became of it.

use std::time::{Duration, SystemTime};

use farline_spec::{
    Adjustment, EndReport, Failure, FailureKind, RunRecord, RunSpec, RunStatus, SCHEMA_VERSION,
};
use time::OffsetDateTime;

use crate::copy::merged;
use crate::facts::{OwnHost, version_info};
use crate::message::ServerProfile;
use crate::run::RunOutcome;
use crate::streams::{End, has_files};

/// What the client knows at the end of a session.
pub struct Ending {
    /// Server as it was addressed.
    pub server_address: String,
    /// The spec as granted, or as asked for if nothing was granted.
    pub spec: RunSpec,
    /// What the server changed.
    pub server_notes: Vec<String>,
    /// Version agreed on; 0 without one.
    pub version: u32,
    /// The host of this end.
    pub host: OwnHost,
    /// Start of the run, or of the session if no run began.
    pub started_at: SystemTime,
    /// From the first step to the last.
    pub session: Duration,
    /// What the run came to here; nothing if it never began.
    pub outcome: RunOutcome,
    /// What it came to there.
    pub server: Option<ServerProfile>,
    /// Why it failed or was stopped.
    pub failure: Option<Failure>,
    /// Name of the run.
    pub run_id: String,
    /// What was changed while it ran.
    pub adjustments: Vec<Adjustment>,
}

impl Ending {
    /// Of a session that has only just begun.
    pub fn new(server_address: String, spec: RunSpec) -> Self {
        Self {
            server_address,
            spec,
            server_notes: Vec::new(),
            version: 0,
            host: OwnHost::default(),
            started_at: SystemTime::now(),
            session: Duration::ZERO,
            outcome: RunOutcome::default(),
            server: None,
            failure: None,
            run_id: ulid::Ulid::new().to_string(),
            adjustments: Vec::new(),
        }
    }

    /// The record. Samples are not part of it.
    pub fn into_record(mut self) -> RunRecord {
        let (server, far_streams) = self.server.map(|server| (server.report, server.streams)).unzip();
        let mut streams = self.outcome.streams;
        streams.extend(far_streams.into_iter().flatten());
        let far = server
            .as_ref()
            .and_then(|server: &EndReport| server.copy.as_ref());
        let client_sends = has_files(&self.spec, End::Client);
        let copy = self
            .outcome
            .copy
            .as_ref()
            .map(|own| merged(own, far, client_sends));
        RunRecord {
            schema: SCHEMA_VERSION,
            run_id: self.run_id,
            status: status(self.failure.as_ref()),
            error: self.failure,
            started_at: rfc3339(self.started_at),
            session_s: self.session.as_secs_f64(),
            run_s: self.outcome.run_s,
            server_address: self.server_address,
            spec: self.spec,
            server_notes: self.server_notes,
            client: Some(EndReport {
                host: self.host.take(),
                version: version_info(self.version),
                cpu: self.outcome.cpu,
                copy: self.outcome.copy,
            }),
            server,
            streams,
            summary: None,
            verdict: None,
            path: None,
            copy,
            driven: None,
            adjustments: self.adjustments,
        }
    }
}

/// A run that someone stopped is partial, one that anything else ended has failed.
pub fn status(failure: Option<&Failure>) -> RunStatus {
    match failure.map(|failure| failure.kind) {
        None => RunStatus::Complete,
        Some(FailureKind::Interrupted) => RunStatus::Partial,
        Some(_) => RunStatus::Failed,
    }
}

/// `at` as RFC 3339 in UTC with microseconds.
pub fn rfc3339(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    let (date, time) = (at.date(), at.time());
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        time.hour(),
        time.minute(),
        time.second(),
        time.microsecond(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_says_who_ended_the_run() {
        let of = |kind| status(Some(&Failure::new(kind, "x")));
        assert_eq!(status(None), RunStatus::Complete);
        assert_eq!(of(FailureKind::Interrupted), RunStatus::Partial);
        assert_eq!(of(FailureKind::Timeout), RunStatus::Failed);
    }

    #[test]
    fn times_are_written_as_in_rfc_3339() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_582_979_696_000_007);
        assert_eq!(rfc3339(at), "2020-02-29T12:34:56.000007Z");
    }
}
