//! Moves blocks from sender threads to receiver threads over loopback and prints what that cost.
//!
//! For profiling the byte path without a control session, and for comparing it with other tools:
//!
//! ```text
//! cargo run --release -p farline-transport --example pump -- transport=tcp seconds=5 streams=1
//! ```
//!
//! Options are `name=value` (see [`Options`]). With `end=server` or `end=client` the two ends run in two
//! processes, on a fixed port each stream, as other tools do; otherwise both run in one.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{RunSpec, from_json};
use farline_sys::process;
use farline_transport::{
    Connect, Counters, Listener, Received, Role, Stream, StreamKey, Transport, transport_for,
};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What the command line says.
struct Options {
    spec: RunSpec,
    seconds: f64,
    host: IpAddr,
    port: u16,
    end: String,
}

impl Options {
    fn parse() -> Outcome<Self> {
        let mut given = std::collections::HashMap::new();
        for argument in std::env::args().skip(1) {
            let (name, value) = argument.split_once('=').ok_or("options are name=value")?;
            given.insert(name.to_owned(), value.to_owned());
        }
        let mut take = |name: &str, default: &str| given.remove(name).unwrap_or_else(|| default.to_owned());
        let transport = take("transport", "tcp");
        let block = take("block", if transport == "udp" { "65507" } else { "131072" });
        let (streams, rate, seconds) = (take("streams", "1"), take("rate", "0"), take("seconds", "3"));
        let own = if transport == "null" {
            String::new()
        } else {
            let fields = take("options", "");
            format!(r#","{transport}":{{{fields}}}"#)
        };
        let text = format!(
            r#"{{"transport":"{transport}","block_bytes":{block},"streams":{streams},"rate_bps":{rate},
                "duration_s":{seconds}{own}}}"#
        );
        let options = Self {
            spec: from_json::<RunSpec>(&text)?.resolved()?,
            seconds: seconds.parse()?,
            host: take("host", &Ipv4Addr::LOCALHOST.to_string()).parse()?,
            port: take("port", "0").parse()?,
            end: take("end", "both"),
        };
        match given.keys().next() {
            Some(unknown) => Err(format!("{unknown}: unknown option").into()),
            None => Ok(options),
        }
    }
}

fn key(stream: u16) -> StreamKey {
    StreamKey {
        stream,
        session: [1; 16],
        proof: [2; 32],
    }
}

fn receive(stream: &mut Stream) -> Outcome<()> {
    while stream.sink()?.receive_block()? != Received::End {}
    Ok(())
}

fn send(stream: &mut Stream, stop: &AtomicBool) -> Outcome<()> {
    while !stop.load(Ordering::Relaxed) {
        stream.source()?.send_block(usize::MAX)?;
    }
    Ok(stream.finish_sending(Instant::now() + Duration::from_secs(5))?)
}

fn accept_all(listener: &mut dyn Listener, spec: &RunSpec) -> Outcome<Vec<Stream>> {
    let mut expected: Vec<_> = (0..spec.streams.get()).map(key).collect();
    let mut streams = Vec::new();
    while !expected.is_empty() {
        let deadline = Instant::now() + Duration::from_secs(30);
        let (number, stream) = listener.accept(spec, &expected, &|_| Role::Receiver, deadline)?;
        expected.retain(|key| key.stream != number);
        streams.push(stream);
    }
    Ok(streams)
}

fn connect_all(transport: &dyn Transport, spec: &RunSpec, remote: SocketAddr) -> Outcome<Vec<Stream>> {
    let connect = |number| {
        let key = key(number);
        let deadline = Instant::now() + Duration::from_secs(5);
        let (source, source_device) = (None, None);
        let request = Connect {
            spec,
            role: Role::Sender,
            source,
            source_device,
            remote,
            key: &key,
            deadline,
        };
        Ok(transport.connect(&request)?)
    };
    (0..spec.streams.get()).map(connect).collect()
}

/// What one end did.
struct Report {
    elapsed_s: f64,
    cpu_s: f64,
    totals: Vec<Counters>,
}

fn cpu_s() -> Outcome<f64> {
    let used = process::cpu_time()?;
    Ok((used.user + used.system).as_secs_f64())
}

/// Runs all streams in threads of their own; senders stop after `seconds`.
fn run(streams: Vec<(Role, Stream)>, seconds: f64) -> Outcome<Report> {
    let stop = AtomicBool::new(false);
    let probes: Vec<_> = streams
        .iter()
        .map(|(role, stream)| (*role, stream.probe()))
        .collect();
    let (start, cpu_before_s) = (Instant::now(), cpu_s()?);
    std::thread::scope(|scope| {
        let work = |(role, mut stream): (Role, Stream)| {
            let stop = &stop;
            scope.spawn(move || {
                let result = match role {
                    Role::Sender => send(&mut stream, stop),
                    Role::Receiver => receive(&mut stream),
                };
                (result, stream.granted())
            })
        };
        let threads: Vec<_> = streams.into_iter().map(work).collect();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let (result, granted) = thread.join().map_err(|_| "a stream's thread panicked")?;
            result?;
            granted.notes.iter().for_each(|note| eprintln!("note: {note}"));
        }
        Outcome::Ok(())
    })?;
    let totals = |role| {
        probes
            .iter()
            .filter(move |(of, _)| *of == role)
            .map(|(_, probe)| probe.sample())
    };
    let receivers: Vec<_> = totals(Role::Receiver).collect();
    let totals = if receivers.is_empty() {
        totals(Role::Sender).collect()
    } else {
        receivers
    };
    Ok(Report {
        elapsed_s: start.elapsed().as_secs_f64(),
        cpu_s: cpu_s()? - cpu_before_s,
        totals,
    })
}

fn print(report: &Report) {
    let sum = |pick: fn(&Counters) -> i64| report.totals.iter().map(pick).filter(|&it| it > 0).sum::<i64>();
    let (bytes, packets) = (sum(|it| it.bytes) as f64, sum(|it| it.packets) as f64);
    println!(
        "{:.2} Gbit/s  {:.0} packets/s  lost {}  blocks {}  {:.3} CPU s/GB  CPU {:.2}",
        bytes * 8e-9 / report.elapsed_s,
        packets / report.elapsed_s,
        sum(|it| it.lost_packets),
        sum(|it| it.blocks),
        report.cpu_s / (bytes * 1e-9),
        report.cpu_s / report.elapsed_s,
    );
}

fn main() -> Outcome<()> {
    let Options {
        spec,
        seconds,
        host,
        port,
        end,
    } = Options::parse()?;
    let transport = transport_for(&spec);
    let with = |role: Role| move |stream: Stream| (role, stream);
    let streams: Vec<_> = match end.as_str() {
        "client" => {
            let remote = SocketAddr::new(host, port);
            connect_all(transport.as_ref(), &spec, remote)?
                .into_iter()
                .map(with(Role::Sender))
                .collect()
        }
        "server" => {
            let mut listener = transport.listen(SocketAddr::new(host, port), &spec)?;
            accept_all(listener.as_mut(), &spec)?
                .into_iter()
                .map(with(Role::Receiver))
                .collect()
        }
        "both" => {
            let mut listener = transport.listen(SocketAddr::new(host, port), &spec)?;
            let remote = listener.local_addr();
            let (accepted, connected) = std::thread::scope(|scope| {
                let accepting = scope.spawn(|| accept_all(listener.as_mut(), &spec));
                let connected = connect_all(transport.as_ref(), &spec, remote);
                (accepting.join().map_err(|_| "accepting panicked"), connected)
            });
            let receivers = accepted??.into_iter().map(with(Role::Receiver));
            receivers
                .chain(connected?.into_iter().map(with(Role::Sender)))
                .collect()
        }
        _ => return Err("end: allowed: both, client, server".into()),
    };
    print(&run(streams, seconds)?);
    Ok(())
}
