//! A session about names below the folder of a ticket.

use std::sync::{Mutex, MutexGuard, PoisonError};

use farline_session::{Interrupt, NamesClient, Target};
use farline_spec::{Failure, FailureKind, IpVersion, NameAnswer, NameRequest, from_json};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::gate::{gate, gate_wait, seconds, to_json};

/// A session with a server about names; dropping it closes it.
#[pyclass(frozen, module = "farline._native")]
pub struct NameSession(Mutex<Option<NamesClient>>);

#[pymethods]
impl NameSession {
    /// Connects to the target of a ticket over IP of this version (`any`, `v4`, `v6`).
    #[new]
    fn new(py: Python<'_>, target_json: &str, ip_version: &str, timeout_s: f64) -> PyResult<Self> {
        let timeout = seconds("timeout_s", timeout_s)?;
        gate(py, || {
            let target: Target = from_json(target_json)?;
            let version: IpVersion = from_json(&to_json(&ip_version)?)?;
            let client = NamesClient::open(&target, version, timeout, Interrupt::new()?)?;
            Ok(Self(Mutex::new(Some(client))))
        })
    }

    /// Asks for one thing, as JSON; then `poll`.
    fn ask(&self, py: Python<'_>, request_json: &str) -> PyResult<()> {
        gate(py, || {
            let request: NameRequest = from_json(request_json)?;
            self.with(|client| client.ask(request))
        })
    }

    /// The answer as JSON and bytes of a file, or None after `timeout_s`.
    fn poll<'py>(
        &self,
        py: Python<'py>,
        timeout_s: f64,
    ) -> PyResult<Option<(String, Option<Bound<'py, PyBytes>>)>> {
        let timeout = seconds("timeout_s", timeout_s)?;
        let answer = gate_wait(py, timeout, |slice| self.with(|client| client.poll(slice)))?;
        let Some(mut answer) = answer else {
            return Ok(None);
        };
        let bytes = match &mut answer {
            NameAnswer::Bytes { data, .. } => Some(std::mem::take(data)),
            _ => None,
        };
        let text = gate(py, || to_json(&answer))?;
        Ok(Some((text, bytes.map(|bytes| PyBytes::new(py, &bytes)))))
    }

    /// Ends the session.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            let client = self.held().take();
            client.into_iter().for_each(NamesClient::close);
            Ok(())
        })
    }
}

impl NameSession {
    fn held(&self) -> MutexGuard<'_, Option<NamesClient>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, work: impl FnOnce(&mut NamesClient) -> Result<T, Failure>) -> Result<T, Failure> {
        let closed = || Failure::new(FailureKind::Usage, "the session about names is closed");
        self.held().as_mut().ok_or_else(closed).and_then(work)
    }
}
