//! Sample rows as columns.

use farline_spec::Samples;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Sample rows as columns of 64-bit integers.
#[pyclass(frozen, module = "farline._native")]
pub struct Columns(pub Samples);

#[pymethods]
impl Columns {
    /// Names of the columns, in order.
    fn names(&self) -> Vec<&'static str> {
        self.0.columns().into_iter().map(|(name, _)| name).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// One column as little-endian 64-bit integers.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let columns = self.0.columns();
        let (_, values) = columns
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        PyBytes::new_with(py, values.len() * 8, |bytes| {
            for (cell, value) in bytes.chunks_exact_mut(8).zip(*values) {
                cell.copy_from_slice(&value.to_le_bytes());
            }
            Ok(())
        })
    }
}
