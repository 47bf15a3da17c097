//! The log as Python starts it and writes to it.

use std::path::PathBuf;

use farline_logs::{Format, Settings};
use farline_spec::{Failure, FailureKind, from_json};
use pyo3::prelude::*;
use serde_json::{Map, Value};

use crate::gate::{gate, is_forked_child};

/// Begins to write log lines of both languages, of rooms that are not named from `level` on, of others as `rooms` says; in the
/// form `text` or `json`; to the end of `file`, or to standard error. May be called again.
#[pyfunction]
#[pyo3(signature = (level, rooms, format, file=None))]
pub fn start_log(
    py: Python<'_>,
    level: &str,
    rooms: Vec<(String, String)>,
    format: &str,
    file: Option<PathBuf>,
) -> PyResult<()> {
    gate(py, || {
        let parsed = |(room, level): (String, String)| Ok((room, level_of(&level)?));
        farline_logs::start(Settings {
            level: level_of(level)?,
            rooms: rooms.into_iter().map(parsed).collect::<Result<_, Failure>>()?,
            format: match format {
                "text" => Format::Text,
                "json" => Format::Json,
                other => return Err(wrong(&format!("log format {other:?}: allowed: text and json"))),
            },
            file,
        })
    })
}

/// Writes a line of a Python room, with `fields` as a JSON object. A forked child, whose locks may be held by threads that it
/// lacks, writes none.
#[pyfunction]
pub fn write_log(py: Python<'_>, level: &str, room: &str, message: &str, fields: &str) -> PyResult<()> {
    if is_forked_child() {
        return Ok(());
    }
    gate(py, || {
        let fields: Map<String, Value> = from_json(fields)?;
        farline_logs::write(level, room, message, fields);
        Ok(())
    })
}

/// Opens the log's file anew by its name.
#[pyfunction]
pub fn reopen_log(py: Python<'_>) -> PyResult<()> {
    gate(py, farline_logs::reopen)
}

fn level_of<T: std::str::FromStr>(level: &str) -> Result<T, Failure> {
    level.parse().map_err(|_| {
        wrong(&format!(
            "log level {level:?}: allowed: off, error, warn, info, debug, trace"
        ))
    })
}

fn wrong(message: &str) -> Failure {
    Failure::new(FailureKind::Usage, message)
}
