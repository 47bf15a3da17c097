//! The program itself: its line, its end, and that it leaves nothing.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const NONCE: &str = "00112233445566778899aabbccddeeff";

fn start(place: &Path, words: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_farline-carried"))
        .args(words)
        .env_remove("XDG_RUNTIME_DIR")
        .env("TMPDIR", place)
        .env("HOME", "/home/some\\one")
        .env("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.8 22")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn line_of(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

fn ended(mut child: Child) -> Option<i32> {
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(Instant::now() < until, "it does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_empty(place: &Path) -> bool {
    std::fs::read_dir(place).unwrap().next().is_none()
}

#[test]
fn it_says_where_it_is_and_ends_with_its_input() {
    let place = tempfile::tempdir().unwrap();
    let words = [
        "serve",
        "--copy-session",
        "write",
        "-B",
        "127.0.0.1",
        "--mark",
        NONCE,
    ];
    let mut child = start(place.path(), &words);
    let line = line_of(&mut child);
    let mark = format!("farline-{}:", NONCE.chars().rev().collect::<String>());
    let ready: serde_json::Value = serde_json::from_str(line.strip_prefix(&mark).unwrap()).unwrap();
    assert_eq!(ready["event"], "ready");
    assert_eq!(ready["schema"], 2);
    assert_eq!(ready["home"], "/home/some\\\\one");
    assert_eq!(ready["client"], "192.0.2.7");
    assert!(
        ready["ticket"]
            .as_str()
            .unwrap()
            .starts_with("farline://127.0.0.1:")
    );
    assert!(!is_empty(place.path()), "its key is somewhere");
    drop(child.stdin.take());
    assert_eq!(ended(child), Some(0));
    assert!(is_empty(place.path()));
}

#[test]
fn a_signal_ends_it_in_order() {
    let place = tempfile::tempdir().unwrap();
    let mut child = start(
        place.path(),
        &["serve", "--copy-session", "read", "--connect-back"],
    );
    assert!(line_of(&mut child).contains("\"schema\":1"));
    let killed = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(killed.success());
    assert_eq!(ended(child), Some(0));
    assert!(is_empty(place.path()));
}

#[test]
fn what_it_cannot_do_is_one_line_and_a_code() {
    let place = tempfile::tempdir().unwrap();
    let child = start(place.path(), &["probe", "host"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1);
    assert!(said.starts_with("farline: ") && said.contains("install farline"));
}
