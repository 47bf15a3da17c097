//! Facts about this host and this build.

use std::io::ErrorKind;

use farline_session::message::VERSIONS;
use farline_spec::{Failure, FailureKind};
use pyo3::prelude::*;

use crate::gate::{gate, to_json};

/// What this host is, as JSON.
#[pyfunction]
pub fn host_facts(py: Python<'_>) -> PyResult<String> {
    gate(py, || to_json(&farline_session::host_facts()))
}

/// Versions behind this build, as JSON; the protocol is the newest it speaks.
#[pyfunction]
pub fn version_info(py: Python<'_>) -> PyResult<String> {
    gate(py, || to_json(&farline_session::version_info(VERSIONS.max)))
}

/// Bits per second that `threads` threads copy in memory, measured over `seconds`.
#[pyfunction]
pub fn memory_copy_bps(py: Python<'_>, threads: usize, seconds: f64) -> PyResult<u64> {
    gate(py, || {
        farline_sys::host::memory_copy_bps(threads, seconds).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => Failure::new(FailureKind::Usage, error.to_string()),
            _ => Failure::system("memory bandwidth", &error),
        })
    })
}
