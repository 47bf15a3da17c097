//! The one way from Python into Rust, and the one way back for failures.

use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

pyo3::create_exception!(
    _native,
    NativeError,
    PyException,
    "A failure; its one argument is the failure document as JSON text."
);

/// Longest time between two looks at Python's signals.
const SLICE: Duration = Duration::from_millis(100);

/// The process that loaded the extension.
static PROCESS: OnceLock<u32> = OnceLock::new();

/// Remembers which process this is, so that a forked child can be told apart.
pub fn remember_process() {
    let _ = PROCESS.set(std::process::id());
}

/// Whether this is a child that was forked after the extension was loaded.
pub fn is_forked_child() -> bool {
    PROCESS
        .get()
        .is_some_and(|process| *process != std::process::id())
}

/// Runs `work` without the GIL.
///
/// # Errors
/// `NativeError` for its failure, for a panic in it, and in a forked child.
pub fn gate<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure> + Send) -> PyResult<T> {
    if is_forked_child() {
        return Err(native_error(&forked()));
    }
    py.detach(|| caught(work))
        .map_err(|failure| native_error(&failure))
}

/// Waits up to `timeout` for `wait` to give something, in slices: between two of
/// them Python handles signals, which may raise and so end the wait.
///
/// # Errors
/// As [`gate`], and whatever a signal handler raises.
pub fn gate_wait<T: Send>(
    py: Python<'_>,
    timeout: Duration,
    wait: impl Fn(Duration) -> Result<Option<T>, Failure> + Sync,
) -> PyResult<Option<T>> {
    let deadline = Instant::now() + timeout;
    loop {
        let slice = deadline.saturating_duration_since(Instant::now()).min(SLICE);
        if let Some(value) = gate(py, || wait(slice))? {
            return Ok(Some(value));
        }
        py.check_signals()?;
        if Instant::now() >= deadline {
            return Ok(None);
        }
    }
}

/// A time span of at most ten years from Python's seconds.
///
/// # Errors
/// `NativeError` of kind "usage" for a number outside the range, or one that is none.
pub fn seconds(name: &str, value: f64) -> PyResult<Duration> {
    const MAX_S: f64 = 315_360_000.0;
    if (0.0..=MAX_S).contains(&value) {
        return Ok(Duration::from_secs_f64(value));
    }
    let message = format!("{name}: {value} is out of range; allowed: 0 to {MAX_S} s");
    Err(native_error(&Failure::new(FailureKind::Usage, message)))
}

/// An address and a port from `10.0.0.1:99` or `[::1]:99`.
///
/// # Errors
/// [`FailureKind::Usage`] that names the argument.
pub fn socket_address(name: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        let line = format!("{name}: {text:?} is not an address and port; write 10.0.0.1:99 or [::1]:99");
        Failure::new(FailureKind::Usage, line)
    })
}

/// The exception for a failure.
pub fn native_error(failure: &Failure) -> PyErr {
    NativeError::new_err(to_json(failure).unwrap_or_else(|second| second.message))
}

/// A value as JSON text.
pub fn to_json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| {
        Failure::new(
            FailureKind::Internal,
            format!("a document could not be written: {error}"),
        )
    })
}

fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|panic| Err(Failure::defect("farline", panic.as_ref())))
}

fn forked() -> Failure {
    Failure::new(
        FailureKind::Usage,
        "farline does not work in a forked child, which lacks its threads: start processes with spawn",
    )
}
