//! The words of the command line: those of `farline serve --copy-session`, and no others.

use std::ffi::OsString;
use std::net::IpAddr;

use tracing::level_filters::LevelFilter;

/// What the words ask for.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// Name and version.
    Version,
    /// One copy, and what is to be logged.
    Serve(Session, Option<Log>),
}

/// What may be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum May {
    /// They are read.
    Read,
    /// They are written.
    Write,
}

/// A server for one copy.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// What it lets its client do.
    pub may: May,
    /// Where it listens; everywhere if empty.
    pub listen: Vec<IpAddr>,
    /// First and last port for data streams; zeros let the kernel choose.
    pub data_ports: (u16, u16),
    /// Data streams come to the control port too.
    pub is_single_port: bool,
    /// It connects to its client, as lines of standard input say.
    pub connects_back: bool,
    /// What makes the mark of its line; without one the line has none.
    pub nonce: Option<String>,
}

/// What is logged to standard error.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// Level of rooms that are not named.
    pub level: LevelFilter,
    /// Levels of rooms by name.
    pub rooms: Vec<(String, LevelFilter)>,
}

/// Hexadecimal digits of a nonce.
const NONCE_DIGITS: usize = 32;

/// Reads the words behind the program's name.
///
/// # Errors
/// A line that names the word that is wrong, and what is allowed.
pub fn read(words: &[OsString]) -> Result<Wanted, String> {
    let words: Vec<&str> = words
        .iter()
        .map(|word| word.to_str().ok_or_else(|| format!("{word:?} is not UTF-8")))
        .collect::<Result<_, _>>()?;
    match words.as_slice() {
        ["--version"] => Ok(Wanted::Version),
        ["serve", "--copy-session", may, rest @ ..] => serve(may, rest),
        _ => Err(
            "this program serves one copy over ssh: serve --copy-session read|write; for anything else \
             install farline on this host"
                .to_owned(),
        ),
    }
}

fn serve(may: &str, rest: &[&str]) -> Result<Wanted, String> {
    let mut session = Session {
        may: match may {
            "read" => May::Read,
            "write" => May::Write,
            other => return Err(format!("--copy-session: {other:?}; allowed: read and write")),
        },
        listen: Vec::new(),
        data_ports: (0, 0),
        is_single_port: false,
        connects_back: false,
        nonce: None,
    };
    let mut log = None;
    let mut rest = rest.iter().copied();
    while let Some(word) = rest.next() {
        let (name, mut joined) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        let mut value = || {
            joined
                .take()
                .or_else(|| rest.next())
                .ok_or_else(|| format!("{name}: a value is missing"))
        };
        match name {
            "--data-ports" => session.data_ports = ports(value()?)?,
            "-B" | "--listen" => session.listen.push(address(value()?)?),
            "--mark" => session.nonce = Some(nonce(value()?)?),
            "--log-level" => log = Some(levels(value()?)?),
            "--log-format" => json(value()?)?,
            "--single-port" => session.is_single_port = true,
            "--connect-back" => session.connects_back = true,
            _ => return Err(format!("No such option: {name}")),
        }
    }
    Ok(Wanted::Serve(session, log))
}

fn ports(text: &str) -> Result<(u16, u16), String> {
    let parsed = text
        .split_once('-')
        .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    match parsed {
        Some((first, last)) if 0 < first && first <= last => Ok((first, last)),
        _ => Err(format!(
            "--data-ports: {text:?} is not FIRST-LAST, two ports from 1 to 65535"
        )),
    }
}

fn address(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("--listen: {text:?} is not an IP address"))
}

fn nonce(text: &str) -> Result<String, String> {
    let is_digit = |letter: u8| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter);
    match text.len() == NONCE_DIGITS && text.bytes().all(is_digit) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "--mark: {text:?} is not {NONCE_DIGITS} hexadecimal digits"
        )),
    }
}

fn json(text: &str) -> Result<(), String> {
    match text {
        "json" => Ok(()),
        other => Err(format!("--log-format: {other:?}; allowed here: json")),
    }
}

/// `info`, `session=debug,mover=trace`, or both; where rooms alone are named, all others have `warn`.
fn levels(text: &str) -> Result<Log, String> {
    let parsed = |word: &str| -> Result<LevelFilter, String> {
        word.parse().map_err(|_| {
            format!("--log-level: {word:?}; allowed: off, error, warn, info, debug, trace, or ROOM=LEVEL")
        })
    };
    let (mut level, mut rooms) = (None, Vec::new());
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((room, word)) => rooms.push((room.to_owned(), parsed(word)?)),
            None => level = Some(parsed(part)?),
        }
    }
    let otherwise = match rooms.is_empty() {
        true => LevelFilter::INFO,
        false => LevelFilter::WARN,
    };
    Ok(Log {
        level: level.unwrap_or(otherwise),
        rooms,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "0123456789abcdef0123456789abcdef";

    fn said(words: &[&str]) -> Result<Wanted, String> {
        read(&words.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn the_words_that_farline_starts_a_server_with_are_known() {
        let words = [
            "serve",
            "--copy-session",
            "write",
            "--data-ports",
            "5000-5010",
            "--single-port",
            "-B",
            "127.0.0.1",
            "--log-level",
            "info,mover=debug",
            "--log-format",
            "json",
            "--mark",
            NONCE,
        ];
        let Ok(Wanted::Serve(session, Some(log))) = said(&words) else {
            panic!("{:?}", said(&words));
        };
        assert_eq!(session.may, May::Write);
        assert_eq!(session.data_ports, (5000, 5010));
        assert!(session.is_single_port && !session.connects_back);
        assert_eq!(session.listen, [IpAddr::from([127, 0, 0, 1])]);
        assert_eq!(session.nonce.as_deref(), Some(NONCE));
        assert_eq!(log.level, LevelFilter::INFO);
        assert_eq!(log.rooms, [("mover".to_owned(), LevelFilter::DEBUG)]);
    }

    #[test]
    fn a_value_may_be_joined_to_its_option() {
        let mark = format!("--mark={NONCE}");
        let words = ["serve", "--copy-session", "read", "--connect-back", &mark];
        let Ok(Wanted::Serve(session, None)) = said(&words) else {
            panic!("{:?}", said(&words));
        };
        assert!(session.connects_back);
        assert_eq!(session.may, May::Read);
        assert_eq!(session.nonce.as_deref(), Some(NONCE));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (words, part) in [
            (&["serve"][..], "install farline"),
            (&["probe", "host"], "install farline"),
            (&["serve", "--copy-session", "both"], "\"both\""),
            (
                &["serve", "--copy-session", "read", "--write", "/"],
                "No such option: --write",
            ),
            (
                &["serve", "--copy-session", "read", "--mark"],
                "--mark: a value is missing",
            ),
            (
                &["serve", "--copy-session", "read", "--mark", "xyz"],
                "hexadecimal",
            ),
            (
                &["serve", "--copy-session", "read", "--data-ports", "9-1"],
                "FIRST-LAST",
            ),
            (
                &["serve", "--copy-session", "read", "--data-ports", "0-1"],
                "FIRST-LAST",
            ),
            (
                &["serve", "--copy-session", "read", "-B", "host"],
                "not an IP address",
            ),
            (
                &["serve", "--copy-session", "read", "--log-level", "loud"],
                "\"loud\"",
            ),
            (
                &["serve", "--copy-session", "read", "--log-format", "text"],
                "json",
            ),
        ] {
            let complaint = said(words).unwrap_err();
            assert!(complaint.contains(part), "{words:?}: {complaint}");
        }
    }

    #[test]
    fn it_says_its_version() {
        assert_eq!(said(&["--version"]), Ok(Wanted::Version));
    }
}
