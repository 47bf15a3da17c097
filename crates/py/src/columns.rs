//! Sample rows as columns.

use farline_spec::{LinkSamples, MoverSamples, Samples};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Sample rows as columns of 64-bit integers.
#[pyclass(frozen, module = "farline._native")]
pub struct Columns(Rows);

/// Whose rows they are.
#[allow(
    clippy::large_enum_variant,
    reason = "one at a time, moved once: a box would only be one more allocation"
)]
enum Rows {
    Streams(Samples),
    Links(LinkSamples),
    Movers(MoverSamples),
}

impl Columns {
    /// Rows of streams.
    pub fn of_streams(rows: Samples) -> Self {
        Self(Rows::Streams(rows))
    }

    /// Rows of links.
    pub fn of_links(rows: LinkSamples) -> Self {
        Self(Rows::Links(rows))
    }

    /// Rows about the files of a copy.
    pub fn of_movers(rows: MoverSamples) -> Self {
        Self(Rows::Movers(rows))
    }

    fn columns(&self) -> Vec<(&'static str, &[i64])> {
        match &self.0 {
            Rows::Streams(rows) => rows.columns(),
            Rows::Links(rows) => rows.columns(),
            Rows::Movers(rows) => rows.columns(),
        }
    }
}

#[pymethods]
impl Columns {
    /// Names of the columns, in order.
    fn names(&self) -> Vec<&'static str> {
        self.columns().into_iter().map(|(name, _)| name).collect()
    }

    fn __len__(&self) -> usize {
        self.columns().first().map_or(0, |(_, values)| values.len())
    }

    /// One column as little-endian 64-bit integers.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let columns = self.columns();
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
