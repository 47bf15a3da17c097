//! Sums of files that lie somewhere, for who holds a receipt against them; which folders the rules of a copy leave out.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use farline_session::FileSum as Sum;
use farline_spec::{Failure, FailureKind, SumKind};
use pyo3::prelude::*;

use crate::gate::gate;

/// The sum of one file, a piece at a time.
#[pyclass(frozen, module = "farline._native")]
pub struct FileSum(Mutex<Sum>);

#[pymethods]
impl FileSum {
    /// Opens the regular file at `path`; `kind` is `blake3` or `xxh3`.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, kind: &str) -> PyResult<Self> {
        gate(py, || {
            let kind = [SumKind::Blake3, SumKind::Xxh3]
                .into_iter()
                .find(|known| known.word() == kind)
                .ok_or_else(|| Failure::new(FailureKind::Usage, format!("unknown hash {kind:?}")))?;
            Sum::open(path.as_os_str().as_bytes(), kind)
                .map(|sum| Self(Mutex::new(sum)))
                .map_err(|error| Failure::system(&path.display().to_string(), &error))
        })
    }

    /// Reads about `bytes` more; the sum in hexadecimal once the end of the file was seen.
    fn advance(&self, py: Python<'_>, bytes: u64) -> PyResult<Option<String>> {
        gate(py, || {
            let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = sum.advance(bytes);
            found
                .map(|found| found.map(|sum| sum.hex()))
                .map_err(|error| Failure::system("reading a file", &error))
        })
    }
}

/// Whether a copy with these rules (`+ pattern`, `- pattern`) looks into the folder at `path` below its destination.
#[pyfunction]
pub fn looks_into(py: Python<'_>, rules: Vec<String>, path: Vec<u8>) -> PyResult<bool> {
    gate(py, || farline_session::looks_into(&rules, &path))
}
