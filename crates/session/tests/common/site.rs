//! A server with a folder of files, a client's folder beside it, and the trees that are copied between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use farline_session::{Target, mint_ticket, start_run};
use farline_spec::{Limits, Scope, from_json};
use serde_json::{Value, json};

use super::{Run, TestServer, follow, serve};

/// A server, a folder that its tickets open, and one that is the client's.
pub struct Site {
    pub server: TestServer,
    pub folder: tempfile::TempDir,
}

impl Site {
    pub fn new(options: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["far", "near"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self {
            server: serve(options),
            folder,
        }
    }

    pub fn far(&self) -> PathBuf {
        self.folder.path().join("far")
    }

    pub fn near(&self) -> PathBuf {
        self.folder.path().join("near")
    }

    pub fn ticket(&self, scope: Scope, limits: &str) -> Target {
        let limits: Limits = from_json(limits).unwrap();
        let address = self.server.address().to_string();
        let lifetime = Duration::from_secs(60);
        Target::parse(&mint_ticket(&self.server.state_dir(), &address, scope, limits, lifetime).unwrap())
            .unwrap()
    }

    pub fn root(&self) -> String {
        self.far().display().to_string()
    }

    pub fn writer(&self) -> Target {
        self.ticket(Scope::Write { root: self.root() }, "{}")
    }

    pub fn reader(&self) -> Target {
        self.ticket(Scope::Read { root: self.root() }, "{}")
    }

    /// The spec of a push of `near/data/` to `far/copy`, changed by `more`.
    pub fn push(&self, more: &Value) -> Value {
        spec(&self.near().join("data/"), Path::new("/copy"), more)
    }

    pub fn run(&self, target: Target, spec: &Value) -> Run {
        follow(&start_run(target, from_json(&spec.to_string()).unwrap()))
    }
}

pub fn spec(source: &Path, destination: &Path, more: &Value) -> Value {
    let mut spec = json!({
        "streams": 2,
        "interval_s": 0.1,
        "copy": {"sources": [format!("{}/", source.display()).replace("//", "/")], "destination": destination},
    });
    merge(&mut spec, more);
    spec
}

pub fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.iter()
                .for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more.clone(),
    }
}

/// A tree with files of all kinds of sizes; some seconds old, so that nothing of it was changed just now.
pub fn make_tree(at: &Path, large_bytes: usize) {
    fs::create_dir_all(at.join("deep/er/empty")).unwrap();
    for number in 0..300usize {
        let content: Vec<u8> = (0..number * 37).map(|byte| (byte * number) as u8).collect();
        fs::write(at.join(format!("deep/{number:03}")), content).unwrap();
    }
    let large: Vec<u8> = (0..large_bytes)
        .map(|byte| ((byte / 7) ^ (byte >> 9)) as u8)
        .collect();
    fs::write(at.join("deep/er/large"), large).unwrap();
    fs::write(at.join("one"), b"1").unwrap();
}

pub fn listing(at: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut folders = vec![at.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(at).unwrap().to_path_buf();
            if path.is_dir() {
                folders.push(path);
                found.push((name, None));
            } else {
                found.push((name, Some(fs::read(&path).unwrap())));
            }
        }
    }
    found.sort();
    found
}

pub fn assert_same(one: &Path, other: &Path) {
    let (one, other) = (listing(one), listing(other));
    let names = |all: &[(PathBuf, _)]| all.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&other));
    for (near, far) in one.iter().zip(&other) {
        assert!(near.1 == far.1, "{} differs", near.0.display());
    }
}

/// Waits until something of the large file is on the server's disk.
pub fn wait_for_partial(far: &Path) {
    let until = Instant::now() + super::PATIENCE;
    let is_partial = |(name, content): &(PathBuf, Option<Vec<u8>>)| {
        name.extension().is_some_and(|end| end == "part")
            && content
                .as_ref()
                .is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0))
    };
    while !listing_of_what_stays(far).iter().any(is_partial) {
        assert!(Instant::now() < until, "nothing came");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// As [`listing`], while names come and go.
pub fn listing_of_what_stays(at: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(at) else {
        return found;
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            found.extend(listing_of_what_stays(&path));
        } else {
            found.push((path.clone(), fs::read(&path).ok()));
        }
    }
    found
}
