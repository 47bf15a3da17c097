//! Rows and columns as text, for snapshots that can be read in a review.

/// A table that is being filled.
#[derive(Debug, Clone)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table; each heading names its unit.
    pub fn new(head: &[&str]) -> Self {
        Self {
            head: head.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not as many cells as the table has columns.
    pub fn row(&mut self, cells: &[String]) {
        assert_eq!(cells.len(), self.head.len(), "cells of a row");
        self.rows.push(cells.to_vec());
    }

    /// The text: columns two blanks apart, aligned to the right, one line per row.
    pub fn text(&self) -> String {
        let width = |column: usize| {
            let lines = std::iter::once(&self.head).chain(&self.rows);
            lines.map(|line| line[column].len()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        let line = |cells: &Vec<String>| {
            let padded: Vec<String> = cells
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:>width$}"))
                .collect();
            padded.join("  ") + "\n"
        };
        std::iter::once(&self.head).chain(&self.rows).map(line).collect()
    }
}

/// `value` with `digits` significant digits, in exponent notation if it is small or large.
pub fn figure(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".to_string();
    }
    let exponent = value.abs().log10().floor() as i64;
    if !(-3..7).contains(&exponent) {
        return format!("{value:.*e}", digits - 1);
    }
    let decimals = (digits as i64 - 1 - exponent).max(0) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::{Table, figure};

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["rate", "x"]);
        table.row(&["1".into(), "10.5".into()]);
        assert_eq!(table.text(), "rate     x\n   1  10.5\n");
    }

    #[test]
    fn figures_keep_their_digits_at_any_size() {
        let texts = [1234.5678, 0.012345, 0.0, 1.0e-6, 2.5e9].map(|value| figure(value, 3));
        assert_eq!(texts, ["1235", "0.0123", "0", "1.00e-6", "2.50e9"]);
    }
}
