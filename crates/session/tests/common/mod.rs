//! A server on loopback, and the other ends that the tests need.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod proxy;
pub mod site;
pub mod spoiler;
pub mod wire;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use farline_session::machine::Timing;
use farline_session::{AuditEvent, Event, RunHandle, Server, SessionEnd, Target, start_run};
use farline_spec::{
    CopyProgress, CopyStages, Failure, MoverSamples, RunRecord, RunSpec, Samples, ServerConfig, from_json,
};

/// Longest that anything in a test may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A server and its folder.
pub struct TestServer {
    pub server: Server,
    pub folder: tempfile::TempDir,
}

/// Starts a server on loopback with `options` (JSON members of a `ServerConfig`).
pub fn serve(options: &str) -> TestServer {
    serve_with(options, Timing::default())
}

/// As [`serve`], with other limits on waiting.
pub fn serve_with(options: &str, timing: Timing) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let base = format!(
        r#"{{"listen":["127.0.0.1"],"port":0,"state_dir":{:?}{options}}}"#,
        state.display().to_string()
    );
    let config: ServerConfig = from_json(&base).unwrap();
    TestServer {
        server: Server::start_with(&config, timing).unwrap(),
        folder,
    }
}

impl TestServer {
    pub fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub fn target(&self) -> Target {
        Target::parse(&self.address().to_string()).unwrap()
    }

    pub fn state_dir(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    /// The next event that `pick` takes; panics when none comes.
    pub fn event<T>(&self, mut pick: impl FnMut(AuditEvent) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(picked) = self
                .server
                .poll_event(Duration::from_millis(100))
                .and_then(|event| pick(event.what))
            {
                return picked;
            }
        }
        panic!("the server did not say what was waited for");
    }

    pub fn session_end(&self) -> SessionEnd {
        self.event(|what| match what {
            AuditEvent::SessionEnded(end) => Some(*end),
            _ => None,
        })
    }

    pub fn refusal(&self) -> Failure {
        self.event(|what| match what {
            AuditEvent::Refused { error, .. } => Some(error),
            _ => None,
        })
    }

    /// A client that behaves must be served, whatever went before.
    pub fn serves_still(&self) {
        let run = complete(self.target(), r#"{"transport":"tcp","total_bytes":1000}"#);
        assert_eq!(run.record.error, None);
    }
}

pub fn spec(text: &str) -> RunSpec {
    from_json(text).unwrap()
}

/// Everything that a run said.
pub struct Run {
    pub record: RunRecord,
    pub samples: Samples,
    pub mover_samples: MoverSamples,
    pub progress: Vec<CopyProgress>,
    pub stages: Vec<&'static str>,
    pub notices: Vec<String>,
    pub keys: Vec<String>,
    pub stages_of_copy: Vec<CopyStages>,
}

/// Does one run to its end.
pub fn complete(target: Target, text: &str) -> Run {
    follow(&start_run(target, spec(text)))
}

/// Takes all events of `handle` up to the record.
pub fn follow(handle: &RunHandle) -> Run {
    let (mut samples, mut stages, mut notices, mut keys) = (Samples::default(), vec![], vec![], vec![]);
    let (mut mover_samples, mut progress, mut stages_of_copy) = (MoverSamples::default(), vec![], vec![]);
    let until = Instant::now() + 2 * PATIENCE;
    while Instant::now() < until {
        match handle.poll(Duration::from_millis(200)) {
            Some(Event::Samples(mut some)) => samples.append(&mut some),
            Some(Event::Stage(stage)) => stages.push(stage),
            Some(Event::Notice(notice)) => notices.push(notice),
            Some(Event::ServerKey(key)) => keys.push(key.to_string()),
            Some(Event::MoverSamples(mut some)) => mover_samples.append(&mut some),
            Some(Event::Progress(now)) => progress.push(now),
            Some(Event::Done(record)) => {
                return Run {
                    record: *record,
                    samples,
                    mover_samples,
                    progress,
                    stages,
                    notices,
                    keys,
                    stages_of_copy,
                };
            }
            Some(Event::Stages(now)) => stages_of_copy.push(now),
            Some(Event::Adjusted(_) | Event::Listening(_)) | None => {}
        }
    }
    panic!("the run did not end; it said {stages:?}");
}

/// Payload bytes that `end` counted in the role `role`.
pub fn bytes(record: &RunRecord, end: u8, role: u8) -> u64 {
    record
        .streams
        .iter()
        .filter(|stream| stream.end == end && stream.role == role)
        .map(|stream| stream.bytes)
        .sum()
}
