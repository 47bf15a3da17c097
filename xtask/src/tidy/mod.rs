//! Rules that no other tool checks.
//!
//! What it does: reads every file of the checkout once and holds it against the
//! rules, one module each: which room knows which (`layers`), calls that are
//! banned in a room (`banned`), lengths (`lengths`), opening words (`openings`),
//! what text may contain (`prose`), headings and links of pages (`pages`).
//! What it must not do: judge style that rustfmt, clippy, ruff or mypy judge.
//!
//! In: the checkout, and `xtask/tidy.toml` with exceptions and their reasons.
//! Out: one line for each complaint, `path:line: rule: what and what is allowed`.
//! An exception that nothing needs any more is a complaint too, so that the list
//! only shrinks.

mod allow;
mod banned;
mod checkout;
mod code;
mod layers;
mod lengths;
mod openings;
mod pages;
mod prose;

use std::path::Path;

use allow::Allowances;
use checkout::Checkout;

/// Something against a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// File, from the top of the checkout.
    pub path: String,
    /// Line, from 1.
    pub line: usize,
    /// Name of the rule, as `xtask/tidy.toml` uses it.
    pub rule: &'static str,
    /// What is wrong, and what is allowed.
    pub message: String,
    /// Size that was measured, for rules about sizes; an exception may cap it.
    pub size: usize,
}

impl Complaint {
    fn new(path: &str, line: usize, rule: &'static str, message: String) -> Self {
        Self {
            path: path.to_owned(),
            line,
            rule,
            message,
            size: 0,
        }
    }

    fn text(&self) -> String {
        format!("{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

const RULES: [fn(&Checkout) -> Vec<Complaint>; 6] = [
    layers::complaints,
    banned::complaints,
    lengths::complaints,
    openings::complaints,
    prose::complaints,
    pages::complaints,
];

/// Everything that is against a rule in the checkout at `root`.
pub fn complaints(root: &Path) -> Result<Vec<String>, String> {
    let checkout = Checkout::read(root)?;
    let mut allowances = Allowances::read(&checkout)?;
    let mut found: Vec<Complaint> = RULES.iter().flat_map(|rule| rule(&checkout)).collect();
    found.retain(|complaint| !allowances.permits(complaint));
    found.extend(allowances.unused());
    found.sort();
    Ok(found.iter().map(Complaint::text).collect())
}
