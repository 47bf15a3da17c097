//! The server: says what the other end has to know, and serves until standard input ends or a signal comes.

use std::io::{BufRead, Read, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, unbounded};
use farline_mover::path_text;
use farline_session::{DEFAULT_PORT, Server, mint_ticket};
use farline_spec::{Failure, FailureKind, Limits, Scope, ServerConfig, from_json};
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::folder::OwnFolder;
use crate::words::{May, Session};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(250);
/// Sessions at once: one that hangs does not keep the next attempt of the same copy out.
const SESSIONS: u32 = 16;
/// The ticket dies with its server; this bounds it where the server lives on for long.
const TICKET: Duration = Duration::from_secs(7 * 86_400);
/// Version of the line with a mark and without one: `farline.tools.ssh`.
const READY_SCHEMA: (u32, u32) = (2, 1);
/// Most bytes of a line of standard input.
const LINE_BYTES: u64 = 1024;
/// What the kernel gives a TCP stream at most where it cannot be read: its defaults.
const USUAL_BUFFERS: (u64, u64) = (4 << 20, 6 << 20);

/// Serves one copy.
///
/// # Errors
/// When it cannot listen, has no folder for its key, or is told an address that is none.
pub fn serve(session: &Session) -> Result<(), Failure> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_stopped))
            .map_err(|error| Failure::system("watching for signals", &error))?;
    }
    let state = OwnFolder::make()?;
    let config = config(session, state.path())?;
    match session.connects_back {
        false => listen(session, config, state.path(), &is_stopped),
        true => connect_back(session, &config, state.path(), &is_stopped),
    }
}

fn config(session: &Session, state: &Path) -> Result<ServerConfig, Failure> {
    let state = state
        .to_str()
        .ok_or_else(|| Failure::new(FailureKind::Usage, "TMPDIR is not UTF-8 on that host"))?;
    let document = json!({
        "listen": session.listen,
        "port": 0,
        "data_port_first": session.data_ports.0,
        "data_port_last": session.data_ports.1,
        "state_dir": state,
        "max_sessions": SESSIONS,
        // Whoever started it is the user whose rights it has.
        "keep_owners": true,
        "single_port": session.is_single_port,
    });
    from_json(&document.to_string())
}

fn listen(
    session: &Session,
    config: ServerConfig,
    state: &Path,
    is_stopped: &AtomicBool,
) -> Result<(), Failure> {
    let server = Server::start(config)?;
    let told = announce(session, state, server.addresses()[0].port());
    if told.is_ok() {
        let input = until_closed();
        while !is_stopped.load(Ordering::Relaxed) && input.recv_timeout(Duration::ZERO) != GONE {
            // What it says is for its log; whoever has the ticket hears how a session went.
            let _ = server.poll_event(LOOK);
        }
    }
    end([server]);
    told
}

/// Each line of standard input, `{"connect_to": "ADDRESS:PORT"}`, is a session.
fn connect_back(
    session: &Session,
    config: &ServerConfig,
    state: &Path,
    is_stopped: &AtomicBool,
) -> Result<(), Failure> {
    announce(session, state, DEFAULT_PORT)?;
    let (lines, mut servers) = (lines(), Vec::new());
    let ended = loop {
        if is_stopped.load(Ordering::Relaxed) {
            break Ok(());
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => match client(&line).and_then(|client| Server::connect_back(config, client)) {
                Ok(server) => servers.push(server),
                Err(failure) => break Err(failure),
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break Ok(()),
        }
    };
    end(servers);
    ended
}

fn end(servers: impl IntoIterator<Item = Server>) {
    for server in servers {
        server.stop();
        server.join();
    }
}

/// The address that a line names.
fn client(line: &str) -> Result<SocketAddr, Failure> {
    let document: Map<String, Value> = serde_json::from_str(line).unwrap_or_default();
    let named = document.get("connect_to").and_then(Value::as_str);
    named.and_then(|address| address.parse().ok()).ok_or_else(|| {
        Failure::new(
            FailureKind::Protocol,
            "--connect-back: no address arrived on standard input",
        )
    })
}

/// Prints the ready line, whose ticket reaches whatever the user may reach.
fn announce(session: &Session, state: &Path, port: u16) -> Result<(), Failure> {
    let root = "/".to_owned();
    let scope = match session.may {
        May::Read => Scope::Read { root },
        May::Write => Scope::Write { root },
    };
    // A ticket needs an address; whoever started this server knows the right one.
    let address = format!("127.0.0.1:{port}");
    let ticket = mint_ticket(state, &address, scope, Limits::default(), TICKET)?;
    let (mark, schema) = match &session.nonce {
        Some(nonce) => (mark(nonce), READY_SCHEMA.0),
        None => (String::new(), READY_SCHEMA.1),
    };
    let buffers = (
        largest("/proc/sys/net/ipv4/tcp_wmem").unwrap_or(USUAL_BUFFERS.0),
        largest("/proc/sys/net/ipv4/tcp_rmem").unwrap_or(USUAL_BUFFERS.1),
    );
    // sshd says: client's address and port, own address and port.
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    let client = connection.split(' ').next().filter(|address| !address.is_empty());
    let line = json!({
        "event": "ready",
        "version": env!("CARGO_PKG_VERSION"),
        "port": port,
        "ticket": ticket,
        "home": home()?,
        "tcp_send_bytes": buffers.0,
        "tcp_receive_bytes": buffers.1,
        "client": client,
        "schema": schema,
    });
    let mut output = std::io::stdout().lock();
    writeln!(output, "{mark}{line}")
        .and_then(|()| output.flush())
        .map_err(|error| Failure::system("writing to standard output", &error))
}

/// What begins its line: not the nonce itself, so that an echo of the command line is not taken for it.
fn mark(nonce: &str) -> String {
    format!("farline-{}:", nonce.chars().rev().collect::<String>())
}

fn home() -> Result<String, Failure> {
    let home = std::env::var_os("HOME").filter(|home| Path::new(home).is_absolute());
    let home = home.ok_or_else(|| {
        Failure::new(
            FailureKind::Usage,
            "HOME is not set on that host: its shell must say where the home folder is",
        )
    })?;
    Ok(path_text::to_text(home.as_bytes()))
}

/// The third number of a file of `/proc`.
fn largest(path: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().nth(2)?.parse().ok()
}

/// What a channel says whose other end has gone.
const GONE: Result<String, RecvTimeoutError> = Err(RecvTimeoutError::Disconnected);

/// Ends when standard input does. What comes over it before is dropped.
fn until_closed() -> Receiver<String> {
    let (sender, receiver) = unbounded();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while std::io::stdin()
            .lock()
            .read(&mut buffer)
            .is_ok_and(|bytes| bytes > 0)
        {}
        drop(sender);
    });
    receiver
}

/// The lines of standard input, until it ends.
fn lines() -> Receiver<String> {
    let (sender, receiver) = unbounded();
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = String::new();
            let read = input.by_ref().take(LINE_BYTES).read_line(&mut line);
            if !read.is_ok_and(|bytes| bytes > 0) || sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_the_nonce_backwards() {
        assert_eq!(mark("0123456789abcdef"), "farline-fedcba9876543210:");
    }

    #[test]
    fn a_line_names_its_client_or_is_refused() {
        let address = client("{\"connect_to\": \"[::1]:5470\"}\n").unwrap();
        assert_eq!(address.to_string(), "[::1]:5470");
        for line in [
            "",
            "{}",
            "{\"connect_to\": 5}",
            "{\"connect_to\": \"host:1\"}",
            "connect",
        ] {
            assert_eq!(client(line).unwrap_err().kind, FailureKind::Protocol, "{line}");
        }
    }

    #[test]
    fn the_kernels_largest_buffer_is_the_third_number() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "4096\t131072\t33554432\n").unwrap();
        assert_eq!(largest(file.path().to_str().unwrap()), Some(33_554_432));
        assert_eq!(largest("/dev/null"), None);
    }
}
