//! Loads on file systems, and file systems of the testbed.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use farline_emulator::storage::Mount;
use farline_spec::{StorageLoad, StorageSpec, from_json};
use pyo3::prelude::*;

use crate::gate::{gate, is_forked_child, to_json};

/// Does a storage load and waits until it is over; takes and gives JSON.
#[pyfunction]
pub fn run_storage_load(py: Python<'_>, load_json: &str) -> PyResult<String> {
    gate(py, || {
        to_json(&farline_session::run_storage_load(from_json::<StorageLoad>(
            load_json,
        )?)?)
    })
}

/// Mounts a file system of the testbed over the folder `place`.
#[pyfunction]
pub fn start_storage(py: Python<'_>, spec_json: &str, place: PathBuf) -> PyResult<StorageMount> {
    gate(py, || {
        let spec: StorageSpec = from_json(spec_json)?;
        let mount = Mount::start(&spec, &place)?;
        Ok(StorageMount {
            mount: Some(Mutex::new(mount)),
        })
    })
}

/// A file system of the testbed; dropping it unmounts it.
#[pyclass(frozen, module = "farline._native")]
pub struct StorageMount {
    mount: Option<Mutex<Mount>>,
}

impl StorageMount {
    fn mount(&self) -> &Mutex<Mount> {
        self.mount.as_ref().expect("held until it is dropped")
    }
}

#[pymethods]
impl StorageMount {
    /// What it has done so far, as JSON.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        gate(py, || {
            let mount = self.mount().lock().unwrap_or_else(PoisonError::into_inner);
            to_json(&mount.counters())
        })
    }

    /// Whether it still serves.
    fn is_mounted(&self, py: Python<'_>) -> PyResult<bool> {
        gate(py, || {
            let mount = self.mount().lock().unwrap_or_else(PoisonError::into_inner);
            Ok(mount.is_mounted())
        })
    }

    /// Unmounts it.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        gate(py, || {
            let mut mount = self.mount().lock().unwrap_or_else(PoisonError::into_inner);
            mount.stop()
        })
    }
}

impl Drop for StorageMount {
    /// In a forked child the mount is the parent's: it is left alone.
    fn drop(&mut self) {
        if is_forked_child() {
            std::mem::forget(self.mount.take());
        }
    }
}
