//! Sources that change at any step of a copy. What a name at the destination holds in the end is one state that its source had,
//! with that state's time, or what was there before; then the report says why. The session never breaks for it.

mod common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use common::pair::{Ended, copy};
use common::{Weather, spec, straight, tree, with_chunk};
use farline_spec::unit::ThreadCount;
use farline_spec::{CopySpec, FileEngine, Overwrite, Verify};
use proptest::prelude::*;

const NAME: &str = "file";
const CHUNK: u64 = 65_536;

/// What may happen to a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Cut to a part of its length.
    Shorter,
    /// Nothing is left in it.
    Emptied,
    /// Emptied and written anew, shorter than before.
    Rewritten,
    /// The same with as many bytes as before.
    RewrittenAsLong,
    /// Something is written behind its end.
    Longer,
    /// One byte becomes another, and the time is put back.
    EditedTimePutBack,
    /// Two edits right behind one another: in the same tick of the clock, as a rule.
    EditedTwice,
    /// A part of it becomes a hole.
    Punched,
    /// Another file of the same length and time takes its name.
    Replaced,
    /// Its name goes.
    Removed,
    /// A folder takes its name.
    Folder,
    /// A symbolic link takes its name.
    Link,
    /// A named pipe takes its name.
    Pipe,
    /// Only its mode changes.
    Mode,
}

const CHANGES: [Change; 14] = [
    Change::Shorter,
    Change::Emptied,
    Change::Rewritten,
    Change::RewrittenAsLong,
    Change::Longer,
    Change::EditedTimePutBack,
    Change::EditedTwice,
    Change::Punched,
    Change::Replaced,
    Change::Removed,
    Change::Folder,
    Change::Link,
    Change::Pipe,
    Change::Mode,
];

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Nothing,
    File(Vec<u8>, SystemTime),
    Folder,
    Link,
    Pipe,
}

fn state_of(path: &Path) -> State {
    let Ok(facts) = fs::symlink_metadata(path) else {
        return State::Nothing;
    };
    let kind = facts.file_type();
    if kind.is_file() {
        State::File(fs::read(path).unwrap(), facts.modified().unwrap())
    } else if kind.is_dir() {
        State::Folder
    } else if kind.is_symlink() {
        State::Link
    } else {
        State::Pipe
    }
}

/// A source and all that it has been.
struct Source {
    path: PathBuf,
    states: Mutex<Vec<State>>,
    /// One change at a time.
    turn: Mutex<()>,
}

impl Source {
    fn new(path: PathBuf) -> Arc<Self> {
        let states = Mutex::new(vec![state_of(&path)]);
        Arc::new(Self {
            path,
            states,
            turn: Mutex::default(),
        })
    }

    fn note(&self) {
        self.states.lock().unwrap().push(state_of(&self.path));
    }

    /// Does it; every state between is noted. What is no longer a file stays what it is.
    fn change(&self, change: Change, seed: u64) {
        let _turn = self.turn.lock().unwrap();
        let Ok(facts) = fs::symlink_metadata(&self.path) else {
            return;
        };
        if !facts.is_file() {
            return;
        }
        let (bytes, mtime) = (facts.len(), facts.modified().unwrap());
        let file = fs::OpenOptions::new().write(true).open(&self.path).unwrap();
        match change {
            Change::Shorter => file.set_len(bytes / 3).unwrap(),
            Change::Emptied => file.set_len(0).unwrap(),
            Change::Rewritten => self.rewrite(&file, bytes / 2 + 1, seed),
            Change::RewrittenAsLong => self.rewrite(&file, bytes, seed),
            Change::Longer => file.write_all_at(&tree::content(70_000, seed), bytes).unwrap(),
            Change::EditedTimePutBack => {
                self.edit(&file, bytes, seed);
                file.set_modified(mtime).unwrap();
            }
            Change::EditedTwice => {
                self.edit(&file, bytes, seed);
                self.edit(&file, bytes, seed + 1);
            }
            Change::Punched => {
                let zeros = vec![0; bytes.min(CHUNK) as usize];
                file.write_all_at(&zeros, 0).unwrap();
            }
            Change::Replaced => self.replace(bytes, mtime, seed),
            Change::Mode => tree::dress(
                &self.path,
                0o600 | (seed as u32 & 0o77),
                1_000_000_000,
                seed as u32,
            ),
            Change::Removed | Change::Folder | Change::Link | Change::Pipe => self.unmake(change),
        }
        self.note();
    }

    fn rewrite(&self, file: &fs::File, bytes: u64, seed: u64) {
        file.set_len(0).unwrap();
        self.note();
        let content = tree::content(bytes as usize, seed);
        let (first, second) = content.split_at(content.len() / 2);
        file.write_all_at(first, 0).unwrap();
        self.note();
        file.write_all_at(second, first.len() as u64).unwrap();
    }

    fn edit(&self, file: &fs::File, bytes: u64, seed: u64) {
        file.write_all_at(&[seed as u8], seed % bytes.max(1)).unwrap();
        self.note();
    }

    fn replace(&self, bytes: u64, mtime: SystemTime, seed: u64) {
        let folder = self.path.parent().unwrap();
        let other = folder.with_extension("new");
        let mut file = fs::File::create(&other).unwrap();
        file.write_all(&tree::content(bytes as usize, seed)).unwrap();
        file.set_modified(mtime).unwrap();
        // Noted before it is one: it is whole as soon as it has the name.
        self.states.lock().unwrap().push(state_of(&other));
        fs::rename(&other, &self.path).unwrap();
    }

    fn unmake(&self, change: Change) {
        self.states.lock().unwrap().push(State::Nothing);
        fs::remove_file(&self.path).unwrap();
        match change {
            Change::Folder => fs::create_dir(&self.path).unwrap(),
            Change::Link => symlink("/somewhere", &self.path).unwrap(),
            Change::Pipe => {
                let made = std::process::Command::new("mkfifo").arg(&self.path).status();
                assert!(made.unwrap().success());
            }
            _ => {}
        }
    }
}

/// One copy of one source that changes.
#[derive(Debug, Clone)]
struct Case {
    bytes: u64,
    has_hole: bool,
    change: Change,
    /// Before which frame of the copy it changes first.
    step: u64,
    /// How often, before each frame from there on.
    times: u64,
    how: How,
    had: bool,
    overwrite: Overwrite,
}

#[derive(Debug, Clone)]
struct How {
    engine: FileEngine,
    is_straight: bool,
    threads: Option<u16>,
    verify: Verify,
    streams: u16,
}

fn hows() -> impl Strategy<Value = How> {
    let engines = [
        FileEngine::Auto,
        FileEngine::Buffered,
        FileEngine::Direct,
        FileEngine::Uring,
    ];
    let threads = [None, Some(0), Some(2)];
    let verify = [Verify::Tree, Verify::None, Verify::ReadBack];
    (0..4_usize, 0..4_u8, 0..3_usize, 0..3_usize, 1..3_u16).prop_map(
        move |(engine, straight, thread, proof, streams)| How {
            engine: engines[engine],
            is_straight: straight == 0,
            threads: threads[thread],
            verify: verify[proof],
            streams,
        },
    )
}

fn cases(most_times: u64) -> impl Strategy<Value = Case> {
    let bytes = prop_oneof![Just(0_u64), Just(1), Just(3_000), Just(300_000), Just(700_001)];
    let overwrite = prop_oneof![
        Just(Overwrite::Never),
        Just(Overwrite::Different),
        Just(Overwrite::Older),
        Just(Overwrite::Always),
    ];
    let times = prop_oneof![Just(1_u64), Just(2), Just(1_000)].prop_map(move |times| times.min(most_times));
    (
        bytes,
        any::<bool>(),
        0..CHANGES.len(),
        0..14_u64,
        times,
        hows(),
        any::<bool>(),
        overwrite,
    )
        .prop_map(
            |(bytes, has_hole, change, step, times, how, had, overwrite)| Case {
                bytes,
                has_hole: has_hole && bytes == 700_001,
                change: CHANGES[change],
                step,
                times,
                how,
                had,
                overwrite,
            },
        )
}

fn spec_of(case: &Case, source: &Path, destination: &Path) -> CopySpec {
    let threads = case.how.threads.map(|threads| ThreadCount::new(threads).unwrap());
    let from = format!("{}/", source.display());
    let spec = CopySpec {
        read_engine: case.how.engine,
        verify: case.how.verify,
        readers: threads,
        writers: threads,
        overwrite: case.overwrite,
        fsync: false,
        ..with_chunk(spec(from, destination), CHUNK)
    };
    if case.how.is_straight {
        straight(spec)
    } else {
        spec
    }
}

/// Copies while the source changes; what its name at the destination was before, what is there, and all that the source was.
fn run(case: &Case) -> (Ended, State, State, Vec<State>) {
    let top = tempfile::tempdir().unwrap();
    let (from, to) = (top.path().join("source"), top.path().join("destination"));
    tree::put(&from, NAME, &tree::content(case.bytes as usize, 1));
    if case.has_hole {
        // Longer than a pack, and most of it is a hole.
        let file = fs::OpenOptions::new().write(true).open(from.join(NAME)).unwrap();
        file.set_len(3 << 20).unwrap();
        file.write_all_at(b"end", (3 << 20) - 3).unwrap();
    }
    tree::dress(&from.join(NAME), 0o644, 1_500_000_000, 5);
    if case.had {
        tree::put(&to, NAME, b"what was there before");
        tree::dress(&to.join(NAME), 0o644, 1_400_000_000, 7);
    }
    let before = state_of(&to.join(NAME));
    let source = Source::new(from.join(NAME));
    let (watched, frames, change) = (Arc::clone(&source), AtomicU64::new(0), case.change);
    let when = case.step..case.step.saturating_add(case.times);
    let weather = Weather::watched(move || {
        let frame = frames.fetch_add(1, Ordering::Relaxed);
        if when.contains(&frame) {
            watched.change(change, frame + 3);
        }
    });
    let ended = copy(&spec_of(case, &from, &to), case.how.streams, &weather);
    assert!(!to.join(".farline-partial").exists(), "nothing is left");
    let states = source.states.lock().unwrap().clone();
    (ended, before, state_of(&to.join(NAME)), states)
}

/// What may be said of a source that changed, or of a file that may not be replaced.
fn is_true_reason(reason: &str) -> bool {
    const REASONS: [&str; 4] = [
        "changed while it was read",
        "disappeared while it was copied",
        "is no longer a file",
        "no such file or folder",
    ];
    REASONS.contains(&reason) || reason.contains("--overwrite different") || reason.ends_with("is newer")
}

fn check(case: &Case) {
    let (ended, before, found, states) = run(case);
    ended
        .sent
        .outcome
        .as_ref()
        .expect("a session that does not break");
    ended.outcome.as_ref().expect("a session that does not break");
    let report = &ended.sent.report;
    assert_eq!(report.failed, ended.received.failed, "both ends say the same");
    for failure in &report.failures {
        let reason = failure.reason.as_deref().unwrap_or_default();
        assert!(is_true_reason(reason), "{failure:?}");
    }
    if report.copied.files == 1 {
        assert!(report.failures.is_empty());
        let brief = |state: &State| match state {
            State::File(content, time) => format!("{} bytes, {time:?}", content.len()),
            other => format!("{other:?}"),
        };
        assert!(
            states.contains(&found),
            "{} was never: {:?}",
            brief(&found),
            states.iter().map(brief).collect::<Vec<_>>()
        );
    } else if found != before {
        // It was a folder or a link by the time it was found.
        assert!(matches!(found, State::Folder | State::Link) && states.contains(&found));
    } else {
        let is_left_out = states
            .iter()
            .any(|state| matches!(state, State::Pipe | State::Nothing));
        assert!(!report.failures.is_empty() || is_left_out, "{report:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        max_shrink_iters: 20,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_name_holds_a_state_that_its_source_had_or_what_was_there_before(case in cases(1)) {
        check(&case);
    }

    #[test]
    fn a_name_holds_a_state_that_its_restless_source_had_or_what_was_there_before(case in cases(1_000)) {
        check(&case);
    }
}

#[test]
fn a_pipe_that_takes_the_name_is_told_alike_by_every_engine() {
    let engines = [FileEngine::Buffered, FileEngine::Direct, FileEngine::Uring];
    for engine in engines {
        for (bytes, step) in [(3_000, 0), (300_000, 0), (300_000, 1), (300_000, 2), (300_000, 3)] {
            check(&Case {
                bytes,
                has_hole: false,
                change: Change::Pipe,
                step,
                times: 1,
                how: How {
                    engine,
                    is_straight: false,
                    threads: None,
                    verify: Verify::Tree,
                    streams: 1,
                },
                had: true,
                overwrite: Overwrite::Different,
            });
        }
    }
}

#[test]
fn a_source_that_never_rests_fails_by_name_and_what_was_there_stays() {
    for (bytes, is_straight) in [(3_000, false), (300_000, false), (300_000, true)] {
        for change in [Change::Longer, Change::EditedTimePutBack] {
            let case = Case {
                bytes,
                has_hole: false,
                change,
                step: 0,
                times: u64::MAX,
                how: How {
                    engine: FileEngine::Buffered,
                    is_straight,
                    threads: Some(0),
                    verify: Verify::Tree,
                    streams: 1,
                },
                had: true,
                overwrite: Overwrite::Different,
            };
            check(&case);
        }
    }
}

#[test]
fn an_empty_file_that_is_about_to_be_one_no_more_is_never_named_with_an_old_time() {
    // What is emptied has its new length before its new time: the kernel frees its pages in between.
    let top = tempfile::tempdir().unwrap();
    let (from, to) = (top.path().join("source"), top.path().join("destination"));
    fs::create_dir_all(&from).unwrap();
    let path = from.join(NAME);
    for round in 0..8 {
        fs::write(&path, vec![7; 48 << 20]).unwrap();
        let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + round);
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|file| file.set_modified(old))
            .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(fs::File::create(&path).unwrap()));
            let ended = copy(&spec(format!("{}/", from.display()), &to), 1, &Weather::fair());
            assert_eq!(ended.sent.outcome, Ok(()));
            assert_eq!(ended.outcome, Ok(()));
        });
        let facts = fs::symlink_metadata(to.join(NAME)).expect("one change does not make it fail");
        let is_old = facts.modified().unwrap() == old;
        assert_eq!(
            facts.size() == 0,
            !is_old,
            "{} bytes, old time: {is_old}",
            facts.size()
        );
        fs::remove_dir_all(&to).unwrap();
    }
}
