//! A run as Python holds it.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

use farline_session::{Event, Local, Protocol, RunHandle, Target};
use farline_spec::{AdjustRequest, Failure, FailureKind, IpVersion, RunSpec, from_json};
use pyo3::prelude::*;

use crate::columns::Columns;
use crate::gate::{gate, gate_wait, is_forked_child, seconds, socket_address, to_json};

/// A run that goes on by itself; dropping it aborts it.
#[pyclass(frozen, module = "farline._native")]
pub struct Run {
    handle: Option<RunHandle>,
}

impl Run {
    fn handle(&self) -> &RunHandle {
        self.handle.as_ref().expect("held until it is dropped")
    }
}

/// A connection to a server that a run can begin with, and what making it told about the path.
#[pyclass(frozen, module = "farline._native")]
pub struct Contact {
    made: Mutex<Option<farline_session::Contact>>,
    /// Round-trip time of the path, seconds.
    #[pyo3(get)]
    rtt_s: f64,
    /// Address of this end.
    #[pyo3(get)]
    address: Option<String>,
}

/// Keeps the control connection of one run for the next towards the same server. Its end closes it.
#[pyclass(frozen)]
#[derive(Default)]
pub struct ConnectionKeeper {
    kept: farline_session::ConnectionKeeper,
}

#[pymethods]
impl ConnectionKeeper {
    #[new]
    fn new() -> Self {
        Self::default()
    }
}

/// Connects to a target over IP of this version (`any`, `v4`, `v6`) and says nothing.
#[pyfunction]
pub fn make_contact(
    py: Python<'_>,
    target_json: &str,
    ip_version: &str,
    timeout_s: f64,
) -> PyResult<Contact> {
    let timeout = seconds("timeout_s", timeout_s)?;
    gate(py, || {
        let target: Target = from_json(target_json)?;
        let version: IpVersion = from_json(&to_json(&ip_version)?)?;
        let made = farline_session::Contact::make(&target, version, timeout)?;
        Ok(Contact {
            rtt_s: made.rtt.as_secs_f64(),
            address: made.local_address().map(|address| address.to_string()),
            made: Mutex::new(Some(made)),
        })
    })
}

/// Starts a run towards a target; the receipt of a copy goes to the file `receipt`. With `listen`
/// (`address:port`) the server is waited for there instead of being connected to; with `contact` that
/// connection is the run's, if no run has had it. With `keeper` the connection is the one that it keeps
/// for this target, and is kept for the next run.
#[pyfunction]
#[pyo3(signature = (target_json, spec_json, receipt=None, listen=None, contact=None, keeper=None))]
pub fn start_run(
    py: Python<'_>,
    target_json: &str,
    spec_json: &str,
    receipt: Option<PathBuf>,
    listen: Option<&str>,
    contact: Option<&Bound<'_, Contact>>,
    keeper: Option<&Bound<'_, ConnectionKeeper>>,
) -> PyResult<Run> {
    let keeper = keeper.map(|keeper| keeper.get().kept.clone());
    let contact = contact.and_then(|contact| contact.get().made.lock().ok()?.take());
    let handle = gate(py, || {
        let listen = listen
            .map(|address| socket_address("listen", address))
            .transpose()?;
        let target: Target = from_json(target_json)?;
        let spec: RunSpec = from_json(spec_json)?;
        if target.protocol == Protocol::Iperf3 {
            let others = receipt.is_some() || listen.is_some();
            if others || spec.copy.is_some() {
                let line = "an iperf3 server takes measurements alone: no copies, and no connection back";
                return Err(Failure::new(FailureKind::Usage, line));
            }
            return Ok(farline_iperf3::start_run(target, spec));
        }
        Ok(farline_session::start_run_with(
            target,
            spec,
            Local {
                receipt,
                listen,
                contact,
                keeper,
                ..Local::default()
            },
        ))
    })?;
    Ok(Run { handle: Some(handle) })
}

type PolledEvent = (&'static str, String, Option<Columns>);

#[pymethods]
impl Run {
    /// Next event as (kind, JSON, columns of a `samples` or `mover_samples` event), or None after `timeout_s`.
    fn poll(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<PolledEvent>> {
        gate_wait(py, seconds("timeout_s", timeout_s)?, |slice| {
            next_event(self.handle(), slice)?.map(to_python).transpose()
        })
    }

    /// Name of the run, as in its record.
    #[getter]
    fn run_id(&self) -> String {
        self.handle().run_id().to_owned()
    }

    /// Wants a copy to go on in another way (an adjust request as JSON); `adjusted` events tell what comes of it.
    fn adjust(&self, py: Python<'_>, request_json: &str) -> PyResult<()> {
        gate(py, || {
            self.handle().adjust(from_json::<AdjustRequest>(request_json)?)
        })
    }

    /// Ends the run gracefully: senders stop, and a partial record still comes.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.handle().stop();
            Ok(())
        })
    }

    /// Ends the run now.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            self.handle().abort();
            Ok(())
        })
    }
}

/// The next event; a run that ended without its last one is a defect, and no reason to wait.
fn next_event(handle: &RunHandle, slice: Duration) -> Result<Option<Event>, Failure> {
    if let Some(event) = handle.poll(slice) {
        return Ok(Some(event));
    }
    let was_over = handle.is_over();
    match handle.poll(Duration::ZERO) {
        None if was_over => Err(Failure::new(
            FailureKind::Internal,
            "the run ended without a record",
        )),
        event => Ok(event),
    }
}

impl Drop for Run {
    /// In a forked child the handle's threads are not there to be joined: it is left alone.
    fn drop(&mut self) {
        if is_forked_child() {
            std::mem::forget(self.handle.take());
        }
    }
}

fn to_python(event: Event) -> Result<PolledEvent, Failure> {
    Ok(match event {
        Event::Stage(name) => ("stage", to_json(&name)?, None),
        Event::Listening(address) => ("listening", to_json(&address.to_string())?, None),
        Event::ServerKey(key) => ("server_key", to_json(&key.to_string())?, None),
        Event::Notice(text) => ("notice", to_json(&text)?, None),
        Event::Samples(samples) => ("samples", "null".to_owned(), Some(Columns::of_streams(samples))),
        Event::MoverSamples(samples) => (
            "mover_samples",
            "null".to_owned(),
            Some(Columns::of_movers(samples)),
        ),
        Event::Progress(progress) => ("progress", to_json(&progress)?, None),
        Event::Stages(stages) => ("stages", to_json(&stages)?, None),
        Event::Adjusted(change) => ("adjusted", to_json(&change)?, None),
        Event::Done(record) => ("done", to_json(&record)?, None),
    })
}
