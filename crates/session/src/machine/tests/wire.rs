//! What was said in released versions is said in the same words and understood by every later one: an older peer refuses fields
//! that it does not know.
//!
//! `tests/wire/vN.txt` has a run and a copy as two ends say them that agree on version N. A file is never changed once its version
//! is released; a new one is written by `FARLINE_WRITE_DOCS=1`.

use std::fs;
use std::path::PathBuf;

use farline_spec::{
    NameAnswer, NameFacts, NameKind, NameRefusal, NameRequest, NameRights, NameSum, from_json,
};

use super::*;
use crate::message::{Handshake, KNOWS_NAMES};

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
    if version >= KNOWS_NAMES {
        names_said().iter().for_each(|line| lines += &format!("{line}\n"));
    }
    lines
}

const READ_ONLY: NameRights = NameRights {
    read: true,
    write: false,
};

fn link_facts() -> NameFacts {
    NameFacts {
        name: "b".into(),
        kind: NameKind::Link,
        bytes: 1,
        mtime_ns: 2,
        mode: 0o777,
        target: Some("c".into()),
        target_kind: Some(NameKind::File),
        sums: [
            (NameSum::Blake3, "0".into()),
            (NameSum::Adler32, "1".into()),
            (NameSum::Md5, "2".into()),
        ]
        .into(),
    }
}

/// Every request about names, and every answer.
fn names_said() -> Vec<String> {
    let path = || "a/b".to_owned();
    let facts = link_facts();
    let handshake = Handshake {
        version: KNOWS_NAMES,
        ticket: Some("v1.a.b".into()),
        task: Task::Names,
        keeps: false,
    };
    let requests = [
        NameRequest::List {
            path: path(),
            after: None,
        },
        NameRequest::List {
            path: path(),
            after: Some(path()),
        },
        NameRequest::Stat {
            path: path(),
            follow: true,
            sums: facts.sums.keys().copied().collect(),
        },
        NameRequest::MakeFolder {
            path: path(),
            parents: true,
        },
        NameRequest::Rename {
            path: path(),
            to: path(),
            replace: true,
            parents: false,
        },
        NameRequest::Remove {
            path: path(),
            recursive: true,
        },
        NameRequest::Read {
            path: path(),
            offset: 3,
            bytes: 4,
        },
    ];
    let answers = [
        NameAnswer::Names {
            names: vec![facts.clone()],
            more: true,
        },
        NameAnswer::Facts { facts },
        NameAnswer::Done { count: 5 },
        NameAnswer::Bytes {
            data: vec![6, 7],
            file_bytes: 8,
        },
        NameAnswer::Refused {
            reason: NameRefusal::NotAFolder,
            message: "a/b: is not a folder".into(),
        },
    ];
    let client = std::iter::once(ClientMessage::Handshake(Box::new(handshake)))
        .chain(requests.into_iter().map(ClientMessage::Name));
    let server =
        std::iter::once(ServerMessage::Names(READ_ONLY)).chain(answers.into_iter().map(ServerMessage::Name));
    let client = client.map(|said| format!("client {}", serde_json::to_string(&said).unwrap()));
    client
        .chain(server.map(|said| format!("server {}", serde_json::to_string(&said).unwrap())))
        .collect()
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
