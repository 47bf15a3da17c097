//! Runs many short sessions against a server in the same process and prints how its memory goes.
//!
//! `cargo run --release -p farline-session --example soak -- SESSIONS [PARALLEL]`: one line of JSON per
//! tenth of the sessions; exit code 1 when one fails or memory grows by more than 8 MiB after the first tenth.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use farline_session::{Event, RunHandle, Server, Target, start_run};
use farline_spec::{RunRecord, RunSpec, ServerConfig, from_json};

const SPEC: &str = r#"{"transport":"null","duration_s":0.01,"interval_s":0.01}"#;
const ALLOWED_GROWTH_KB: u64 = 8 * 1024;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<usize>().ok());
    let (Some(Some(sessions)), parallel) = (arguments.next(), arguments.next().flatten().unwrap_or(1)) else {
        eprintln!("usage: soak SESSIONS [PARALLEL]");
        return ExitCode::FAILURE;
    };
    match soak(sessions.max(10), parallel.max(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("soak: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn soak(sessions: usize, parallel: usize) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let server = start_server(folder.path(), parallel)?;
    let target = Target::parse(&server.addresses()[0].to_string()).map_err(|failure| failure.message)?;
    let (began, tenth) = (Instant::now(), sessions.div_ceil(10));
    let mut first = None;
    for part in 1..=10 {
        let mut beside_s = 0.0;
        for _ in (0..tenth).step_by(parallel) {
            beside_s += some_sessions(&target, parallel)?;
        }
        while server.poll_event(Duration::ZERO).is_some() {}
        let rss_kb = rss_kb()?;
        let each_part = tenth.div_ceil(parallel) * parallel;
        println!(
            r#"{{"sessions":{},"rss_kb":{rss_kb},"beside_the_run_ms":{:.2},"elapsed_s":{:.2}}}"#,
            part * each_part,
            1e3 * beside_s / each_part as f64,
            began.elapsed().as_secs_f64()
        );
        let first = *first.get_or_insert(rss_kb);
        if rss_kb > first + ALLOWED_GROWTH_KB {
            return Err(format!("memory grew from {first} to {rss_kb} kB"));
        }
    }
    Ok(())
}

fn start_server(folder: &std::path::Path, parallel: usize) -> Result<Server, String> {
    let config = format!(
        r#"{{"listen":["127.0.0.1"],"port":0,"anonymous":true,"anonymous_limits":{{}},"max_sessions":{},"state_dir":{:?}}}"#,
        parallel + 1,
        folder.join("state").display().to_string()
    );
    let config: ServerConfig = from_json(&config).map_err(|failure| failure.message)?;
    Server::start(config).map_err(|failure| failure.message)
}

/// Does `parallel` sessions at once; gives the seconds they took beside their runs, added up.
fn some_sessions(target: &Target, parallel: usize) -> Result<f64, String> {
    let spec: RunSpec = from_json(SPEC).map_err(|failure| failure.message)?;
    let runs: Vec<_> = (0..parallel)
        .map(|_| start_run(target.clone(), spec.clone()))
        .collect();
    let beside_s = runs.iter().map(|run| {
        let record = record_of(run)?;
        match record.error {
            Some(error) => Err(error.message),
            None => Ok(record.session_s - record.run_s),
        }
    });
    beside_s.sum()
}

fn record_of(run: &RunHandle) -> Result<Box<RunRecord>, String> {
    loop {
        match run.poll(Duration::from_secs(60)) {
            Some(Event::Done(record)) => return Ok(record),
            Some(_) => {}
            None => return Err("a run did not end within a minute".to_owned()),
        }
    }
}

/// Resident memory of this process, which holds both ends.
fn rss_kb() -> Result<u64, String> {
    let status = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let digits = line.and_then(|line| line.split_whitespace().next());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| "no VmRSS in /proc/self/status".to_owned())
}
