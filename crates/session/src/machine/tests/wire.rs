//! What was said in released versions is said in the same words and understood by every later one: an older peer refuses fields
//! that it does not know.
//!
//! `tests/wire/vN.txt` has a run and a copy as two ends say them that agree on version N. A file is never changed once its version
//! is released; a new one is written by `FARLINE_WRITE_DOCS=1`.

use std::fs;
use std::path::PathBuf;

use farline_spec::from_json;

use super::*;

const RUNS: [&str; 3] = [
    r#"{"duration_s":5,"streams":2,"direction":"reverse"}"#,
    r#"{"duration_s":1,"transport":"udt","udt":{"packet_bytes":1400}}"#,
    r#"{"copy":{"sources":["a","b"],"destination":"c","hash":"blake3"},"streams":2}"#,
];

fn file(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/wire/v{version}.txt"))
}

/// What is said in this version, a message on a line; what differs between hosts and builds is left out.
fn said(version: u32) -> String {
    let mut lines = String::new();
    for run in RUNS {
        let mut pair = Pair::speaking(version, run);
        pair.run();
        assert!(pair.client.failure().is_none(), "{:?}", pair.client.failure());
        for line in &pair.said {
            // The newest version that the server offers grows, and every client passes over it.
            let offer = format!(r#""max_version":{}"#, VERSIONS.max);
            lines += &line.replace(&offer, r#""max_version":N"#);
            lines.push('\n');
        }
    }
    lines
}

#[test]
fn every_version_is_spoken_as_it_was_released() {
    for version in VERSIONS.min..=VERSIONS.max {
        let path = file(version);
        if !path.exists() && std::env::var_os("FARLINE_WRITE_DOCS").is_some() {
            fs::write(&path, said(version)).unwrap();
        }
        let released = fs::read_to_string(&path).unwrap();
        assert!(
            said(version) == released,
            "version {version} of the control protocol is spoken in other words than tests/wire/v{version}.txt has: an older \
             farline would not understand them"
        );
    }
}

#[test]
fn what_was_said_in_every_version_is_understood() {
    for version in VERSIONS.min..=VERSIONS.max {
        for line in fs::read_to_string(file(version)).unwrap().lines() {
            let (who, text) = line.split_once(' ').unwrap();
            let text = text.replace(r#""max_version":N"#, r#""max_version":9"#);
            let understood = match who {
                "client" => from_json::<ClientMessage>(&text).map(|_| ()),
                _ => from_json::<ServerMessage>(&text).map(|_| ()),
            };
            assert!(understood.is_ok(), "version {version}: {line}: {understood:?}");
        }
    }
}
