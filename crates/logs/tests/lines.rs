//! Events of rooms in a file. One test, since a process has one log.

use std::fs;
use std::path::Path;

use farline_logs::{Format, Settings};
use serde_json::{Map, Value, json};
use tracing::level_filters::LevelFilter;
use tracing::{Span, debug, debug_span, error_span, field, info, trace, warn};

fn settings(level: LevelFilter, rooms: &[(&str, LevelFilter)], file: &Path) -> Settings {
    Settings {
        level,
        rooms: rooms
            .iter()
            .map(|(room, level)| ((*room).to_owned(), *level))
            .collect(),
        format: Format::Json,
        file: Some(file.to_owned()),
    }
}

/// What rooms say in a session, on two threads.
fn say() {
    let session = error_span!(target: "farline_session::client", "session", session = field::Empty, peer = "10.0.0.1:7");
    let _within = session.enter();
    debug!(target: "farline_session::client", "connecting");
    Span::current().record("session", "5e55");
    let carried = Span::current();
    let thread = std::thread::spawn(move || {
        let _within = carried.entered();
        let _stream = error_span!(target: "farline_session::run", "stream", stream = 3u16).entered();
        let _entry = debug_span!(target: "farline_mover::sink", "entry", entry = %"a b").entered();
        info!(target: "farline_mover::sink", bytes = 7u64, errno = Some(28), reason = None::<&str>, share = 0.5, "not named");
        debug!(target: "farline_mover", entry = "another", "an event's own fields come first");
    });
    thread.join().unwrap();
    trace!(target: "farline_mover::source", is_done = true, "detail");
    warn!(target: "rustls::client", "somebody else's words are not ours");
    warn!(target: "farline_transport::tcp", list = ?[1, 2], "odd");
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let read = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        assert!(line.as_object_mut().unwrap().remove("time").is_some());
        line
    };
    text.lines().map(read).collect()
}

#[test]
fn events_are_lines_with_the_ids_of_their_spans_at_the_levels_of_their_rooms() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    say();
    farline_logs::write("info", "store", "before the start", Map::new());

    farline_logs::start(settings(LevelFilter::DEBUG, &[], &path("all"))).unwrap();
    say();
    farline_logs::write(
        "info",
        "store",
        "read",
        Map::from_iter([("entry".to_owned(), json!("x"))]),
    );
    let peer = json!({"peer": "10.0.0.1:7"});
    let expected = [
        json!({"level": "debug", "target": "session", "message": "connecting", "fields": peer}),
        json!({"level": "info", "target": "mover", "message": "not named", "session": "5e55", "stream": 3, "entry": "a b",
            "fields": {"peer": "10.0.0.1:7", "bytes": 7, "errno": 28, "share": 0.5}}),
        json!({"level": "debug", "target": "mover", "message": "an event's own fields come first", "session": "5e55", "stream": 3,
            "entry": "another", "fields": peer}),
        json!({"level": "warn", "target": "transport", "message": "odd", "session": "5e55",
            "fields": {"peer": "10.0.0.1:7", "list": "[1, 2]"}}),
        json!({"level": "info", "target": "store", "message": "read", "entry": "x"}),
    ];
    assert_eq!(lines(&path("all")), expected);

    let rooms = [("mover", LevelFilter::TRACE), ("transport", LevelFilter::OFF)];
    farline_logs::start(settings(LevelFilter::WARN, &rooms, &path("some"))).unwrap();
    say();
    let some = lines(&path("some"));
    let told: Vec<_> = some
        .iter()
        .map(|line| (&line["target"], &line["level"]))
        .collect();
    assert_eq!(
        json!(told),
        json!([["mover", "info"], ["mover", "debug"], ["mover", "trace"]])
    );
    assert!(
        some.iter().all(|line| line["session"] == "5e55"),
        "a span counts whatever its room's level: {some:?}"
    );

    farline_logs::start(settings(LevelFilter::OFF, &[], &path("none"))).unwrap();
    say();
    assert_eq!(lines(&path("none")), [] as [Value; 0]);
    assert_eq!(
        lines(&path("all")).len(),
        expected.len(),
        "nothing more goes to where lines went before"
    );
}
