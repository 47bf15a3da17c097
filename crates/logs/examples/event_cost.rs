//! What an event costs: nanoseconds of CPU time of one that nobody wants, and of one that is written to /dev/null.
//!
//! `event_cost EVENTS` prints one JSON object.

use std::hint::black_box;
use std::path::PathBuf;

use farline_logs::{Format, Settings};
use farline_sys::thread::cpu_time;
use tracing::level_filters::LevelFilter;
use tracing::{debug, debug_span, error_span};

/// So many times fewer events are written than are not wanted.
const WRITTEN_SHARE: u64 = 1_000;

fn main() {
    let argument = std::env::args().nth(1);
    let events = argument.and_then(|text| text.parse().ok()).unwrap_or(100_000_000);
    let off_ns = cost_ns(events);
    // Of this program's own room nothing is wanted, of another everything.
    start(LevelFilter::OFF, &[("mover", LevelFilter::TRACE)]);
    let other_room_ns = cost_ns(events);
    start(LevelFilter::DEBUG, &[]);
    let written_ns = cost_ns(events / WRITTEN_SHARE);
    println!(
        "{{\"off_ns\": {off_ns:.3}, \"other_room_ns\": {other_room_ns:.3}, \"written_ns\": {written_ns:.1}}}"
    );
}

fn start(level: LevelFilter, rooms: &[(&str, LevelFilter)]) {
    let rooms = rooms.iter().map(|(room, level)| ((*room).to_owned(), *level));
    farline_logs::start(Settings {
        level,
        rooms: rooms.collect(),
        format: Format::Json,
        file: Some(PathBuf::from("/dev/null")),
    })
    .expect("/dev/null takes lines");
}

/// Nanoseconds of an event as the mover has it, within the spans of a session and a stream.
fn cost_ns(events: u64) -> f64 {
    let _session = error_span!(target: "farline_logs", "session", session = "0123456789abcdef").entered();
    let _stream = debug_span!(target: "farline_logs", "stream", stream = 3).entered();
    let before = cpu_time();
    for number in 0..events {
        let path = black_box("folder/name of a file");
        debug!(target: "farline_logs", entry = path, number, status = "copied", "entry settled");
    }
    (cpu_time() - before).as_nanos() as f64 / events as f64
}
