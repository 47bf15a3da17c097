//! How fast the sending end alone is: files of a folder to a receiving end that says done and keeps nothing.
//!
//! ```text
//! cargo run --release -p farline-mover --example source_speed -- FOLDER [STREAMS [READERS]]
//! ```
//! Prints files and bytes a second, and CPU time of the whole process and of the receiving end's threads apart.

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::Write;
use std::time::Instant;

use common::taker::{Manner, copy};
use farline_spec::unit::ThreadCount;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().unwrap_or_else(|| ".".to_owned());
    let streams = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let readers: Option<u16> = arguments.next().and_then(|text| text.parse().ok());
    let mut spec = common::spec(format!("{folder}/"), "/nowhere");
    spec.readers = readers.and_then(|readers| ThreadCount::new(readers).ok());
    let manner = Manner {
        keeps: false,
        ..Manner::default()
    };
    let began = Instant::now();
    let outcome = copy(&spec, streams, manner);
    let seconds = began.elapsed().as_secs_f64();
    let report = outcome.sent.report;
    let mut out = std::io::stdout().lock();
    writeln!(out, "outcome {:?}", outcome.sent.outcome)?;
    writeln!(
        out,
        "{} files, {:.0} files/s, {:.2} GB/s, {:.3} s",
        report.found.files,
        report.found.files as f64 / seconds,
        report.found.bytes as f64 / seconds / 1e9,
        seconds
    )?;
    writeln!(out, "{:?}", report.sender)
}
