//! A program that speaks UDT4 through farline's sockets: the other end in tests and benches.
//!
//! ```text
//! udt_peer srv --port 0 --bytes 1000000            prints {"listening": PORT}, then its result
//! udt_peer cli --port PORT --bytes 1000000 --seed 7
//! udt_peer rdv --local-port 9001 --port 9002 ...   the end with the smaller local port sends
//! ```
//!
//! Its twin over libudt is `tests/interop/libudt_peer`; both have the same command line (here [`options`], with some
//! more) and print the same one line of JSON. Each connection has a thread. `cli` sends `--bytes` words made from
//! `--seed` plus the connection's number (zeros with `--pattern constant`) in calls of `--block` bytes, waits until
//! they are acknowledged and closes; `srv` receives until the end. With `--receive-back` `srv` then sends as much,
//! from seeds that begin at seed + 1000000. With `--bytes 0` sending stops after `--seconds`. In message mode a block
//! is a message. Error codes are libudt's: 1001 no answer, 1002 refused, 2001 broken off, 6003 out of time. Exit code
//! 0 if there were none, 1 if one, 2 if the command line was wrong.

mod connection;
mod options;
mod pattern;
mod result;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind};
use farline_transport::udt::{Listener, Socket};

use crate::connection::Connection;
use crate::options::Options;
use crate::result::{BROKEN, NO_ANSWER, REFUSED, Result, print};

/// How long a caller asks, as in libudt, and one end of a rendezvous.
const CALL_TIME: Duration = Duration::from_secs(3);
const RENDEZVOUS_TIME: Duration = Duration::from_secs(30);

fn main() {
    let options: &'static Options = match Options::parse() {
        Ok(options) => Box::leak(Box::new(options)),
        Err(reason) => {
            eprintln!("udt_peer srv|cli|rdv [--name value]...: {reason}");
            std::process::exit(2);
        }
    };
    let begun = Instant::now();
    let results = if options.role == "srv" {
        run_listener(options)
    } else {
        run_callers(options)
    };
    std::process::exit(print(options, &results, begun.elapsed().as_secs_f64()));
}

/// A connection that could not be opened.
fn unopened(failure: &Failure) -> Result {
    let code = match failure.kind {
        FailureKind::Timeout | FailureKind::Unreachable => NO_ANSWER,
        FailureKind::Protocol => REFUSED,
        _ => BROKEN,
    };
    Result::failed(code, failure.message.clone())
}

fn call(options: &'static Options, number: u64) -> Result {
    let begun = Instant::now();
    let is_rendezvous = options.role == "rdv";
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), options.local_port);
    let remote = SocketAddr::new(options.host, options.port);
    let socket = if is_rendezvous {
        Socket::rendezvous(local, remote, &options.socket(), begun + RENDEZVOUS_TIME)
    } else {
        let local = (options.local_port > 0).then_some(local);
        Socket::connect(local, remote, &options.socket(), begun + CALL_TIME)
    };
    match socket {
        Ok(socket) => {
            let is_receiver = is_rendezvous && options.local_port > options.port;
            Connection::new(options, number, socket, begun).run(!is_receiver)
        }
        Err(failure) => unopened(&failure),
    }
}

fn run_callers(options: &'static Options) -> Vec<Result> {
    let threads: Vec<_> = (0..options.connections)
        .map(|number| std::thread::spawn(move || call(options, number)))
        .collect();
    joined(threads)
}

fn run_listener(options: &'static Options) -> Vec<Result> {
    let local = SocketAddr::new(options.host, options.port);
    let mut listener = match Listener::bind(local, &options.socket()) {
        Ok(listener) => listener,
        Err(failure) => return vec![Result::failed(BROKEN, failure.message)],
    };
    println!("{{\"listening\": {}}}", listener.local_addr().port());
    let mut threads = Vec::new();
    for number in 0..options.connections {
        // As its twin, it waits for callers as long as it takes.
        let socket = loop {
            match listener.accept(Instant::now() + Duration::from_secs(3600)) {
                Ok(socket) => break socket,
                Err(failure) if failure.kind == FailureKind::Timeout => {}
                Err(failure) => return vec![unopened(&failure)],
            }
        };
        let begun = Instant::now();
        threads.push(std::thread::spawn(move || {
            Connection::new(options, number, socket, begun).run(false)
        }));
    }
    // What still comes to the port while the connections are open is answered.
    let results = std::thread::spawn(move || joined(threads));
    while !results.is_finished() {
        let _ = listener.accept(Instant::now() + Duration::from_millis(20));
    }
    results
        .join()
        .unwrap_or_else(|_| vec![Result::failed(BROKEN, "a thread panicked".to_owned())])
}

fn joined(threads: Vec<JoinHandle<Result>>) -> Vec<Result> {
    let failed = |_| Result::failed(BROKEN, "a connection's thread panicked".to_owned());
    threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(failed))
        .collect()
}
