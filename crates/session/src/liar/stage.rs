//! Where a liar meets a client: a home folder with what a liar would like to have, and what must be true of it afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farline_spec::{FailureKind, FileStatus, RunRecord, from_json, is_plain};
use serde_json::{Value, json};

use super::{Session, Step, serve};
use crate::client::{Event, start_run};
use crate::target::Target;

/// Longest that a client may take over any lie.
pub const ALLOWED: Duration = Duration::from_secs(10);

/// One lie: what it is, what is asked for besides, the script.
pub struct Lie {
    pub what: &'static str,
    /// Changes of the spec.
    pub asked: Value,
    pub script: Box<dyn FnOnce(&mut Session) -> Step + Send>,
}

pub fn lie(what: &'static str, script: impl FnOnce(&mut Session) -> Step + Send + 'static) -> Lie {
    asked(what, json!({}), script)
}

pub fn asked(
    what: &'static str,
    asked: Value,
    script: impl FnOnce(&mut Session) -> Step + Send + 'static,
) -> Lie {
    Lie {
        what,
        asked,
        script: Box::new(script),
    }
}

/// What a client made of a lie.
pub struct Met {
    pub record: RunRecord,
    pub took: Duration,
    pub notices: Vec<String>,
    /// What is in the home folder that was not there before.
    pub new: Vec<String>,
}

impl Met {
    pub fn kind(&self) -> FailureKind {
        self.record
            .error
            .as_ref()
            .map_or(FailureKind::Internal, |error| error.kind)
    }

    pub fn message(&self) -> &str {
        self.record.error.as_ref().map_or("", |error| &error.message)
    }

    /// Names that failed, with the reason.
    pub fn failures(&self) -> Vec<(String, String)> {
        let report = self.record.copy.iter().flat_map(|report| &report.failures);
        report
            .filter(|line| line.status == FileStatus::Failed)
            .map(|line| (line.path.clone(), line.reason.clone().unwrap_or_default()))
            .collect()
    }
}

type State = BTreeMap<PathBuf, (Option<Vec<u8>>, u32)>;

/// All that is in `folder`: content and permission bits.
fn state(folder: &Path) -> State {
    let mut found = State::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at).expect("a folder") {
            let path = entry.expect("a name").path();
            let facts = fs::symlink_metadata(&path).expect("facts");
            if path.file_name().is_some_and(|name| name == ".farline-partial") {
                continue;
            }
            if facts.is_dir() {
                folders.push(path.clone());
            }
            let content = facts.is_file().then(|| fs::read(&path).expect("content"));
            let name = path.strip_prefix(folder).expect("below").to_path_buf();
            found.insert(name, (content, facts.permissions().mode()));
        }
    }
    found
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    let at = |name: &str| home.path().join(name);
    for folder in ["home/.ssh", "home/notes", "sources/data"] {
        fs::create_dir_all(at(folder)).expect("a folder");
    }
    for (name, content) in [
        ("home/.bashrc", "mine"),
        ("home/.ssh/authorized_keys", "my keys"),
        ("home/notes/kept", "kept"),
        ("home/wanted.secret", "secret"),
        ("sources/data/a", "abc"),
        ("sources/outside", "outside"),
    ] {
        fs::write(at(name), content).expect("a file");
    }
    fs::write(at("sources/data/large"), vec![5; 300_000]).expect("a file");
    home
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// A client that asks for `data/x` into its home folder, or sends its `data` to the liar, meets a lie.
pub fn meet(direction: &str, lie: Lie) -> Met {
    let place = home();
    let (near, sources) = (place.path().join("home"), place.path().join("sources/data"));
    let (source, destination) = match direction {
        "reverse" => ("data/x".to_owned(), near.display().to_string()),
        _ => (sources.display().to_string(), "/there".to_owned()),
    };
    let mut spec = json!({
        "direction": direction, "streams": 1, "interval_s": 0.1, "connect_timeout_ms": 2000,
        "copy": {
            "sources": [source], "destination": destination, "overwrite": "always", "chunk_bytes": 65536,
            "stall_timeout_s": 1.0,
        },
    });
    merge(&mut spec, &lie.asked);
    let before = state(place.path());
    let (address, liar) = serve(lie.script);
    let began = Instant::now();
    let target = Target::parse(&address.to_string()).expect("an address");
    let run = start_run(target, from_json(&spec.to_string()).expect("a spec"));
    let mut notices = Vec::new();
    let record = loop {
        match run.poll(Duration::from_millis(100)) {
            Some(Event::Done(record)) => break *record,
            Some(Event::Notice(line)) => notices.push(line),
            _ => assert!(began.elapsed() < 6 * ALLOWED, "{}: the client hangs", lie.what),
        }
    };
    let took = began.elapsed();
    run.join();
    liar.join().expect("a liar that plays its part");
    let mut after = state(place.path());
    for (path, was) in &before {
        assert_eq!(
            after.remove(path).as_ref(),
            Some(was),
            "{}: {}",
            lie.what,
            path.display()
        );
    }
    let new = after.into_keys().map(|path| path.display().to_string()).collect();
    Met {
        record,
        took,
        notices,
        new,
    }
}

/// Each lie is found out in time; nothing that was there has changed, and nothing is new but what was asked for.
pub fn all_found_out(direction: &str, lies: Vec<Lie>, check: impl Fn(&str, &Met) + Sync) {
    // Most of the time both ends wait: side by side they take as long as the longest.
    std::thread::scope(|scope| {
        for lie in lies {
            let check = &check;
            scope.spawn(move || {
                let what = lie.what;
                let met = meet(direction, lie);
                found_out(what, &met);
                check(what, &met);
            });
        }
    });
}

fn found_out(what: &str, met: &Met) {
    assert!(met.took < ALLOWED, "{what} took {:?}", met.took);
    for name in &met.new {
        assert!(
            name == "home/x" || name.starts_with("home/x/"),
            "{what} made {name}"
        );
    }
    let failures = met
        .failures()
        .into_iter()
        .flat_map(|(path, reason)| [path, reason]);
    let shown = failures
        .chain(met.notices.iter().cloned())
        .chain([met.message().to_owned()]);
    for text in shown {
        assert!(text.chars().all(is_plain), "{what}: {text:?}");
    }
}
