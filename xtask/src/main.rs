//! `cargo xtask`: what is derived, and the shape of the repository.
//!
//! `generate` writes, from the types in `crates/spec`, everything that would
//! otherwise be written twice: JSON Schemas, Python types, the option table
//! behind every command line, the table of failures and the reference pages.
//! `tidy` holds the repository to the rules of STYLE.md and ARCHITECTURE.md that no
//! other tool checks: which room may know which, calls that are banned in a
//! room, lengths of functions and files, links between pages.
//!
//! What it does: reads the checkout, writes only with `gen`, and prints one
//! line for each thing that is wrong, with its place.
//! What it must not do: decide anything about a run, need a network, or reach
//! the product. Nothing depends on it.
//!
//! In: the checkout. Out: generated files, or complaints and exit code 1.
//!
//! Start with [`generate::outputs`] for what is generated and with
//! [`tidy::complaints`] for the rules; exceptions to them are in `xtask/tidy.toml`.

mod generate;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask gen [--check] | tidy";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let complaints = match words.as_slice() {
        ["gen"] => generate::write(&root()),
        ["gen", "--check"] => generate::check(&root()),
        ["tidy"] => tidy::complaints(&root()),
        _ => Err(USAGE.to_owned()),
    };
    report(complaints)
}

fn report(complaints: Result<Vec<String>, String>) -> ExitCode {
    let lines = complaints.unwrap_or_else(|error| vec![error]);
    for line in &lines {
        eprintln!("{line}");
    }
    if lines.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Top of the checkout.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}
