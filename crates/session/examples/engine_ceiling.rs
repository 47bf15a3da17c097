//! What the run engine itself can bear: blocks per second and CPU time per block.
//!
//! ```text
//! cargo run --release -p farline-session --example engine_ceiling -- [STREAMS] [SECONDS] [TRANSPORT] [BLOCK]
//! ```
//!
//! Both ends run in this process, each with an engine of its own. With `null` (the default)
//! nothing is moved, so what is left is the loop; with `tcp` or `udp` the loopback is below it.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_session::run::{End, OpenStream, Run, RunOutcome, RunRequest};
use farline_spec::{RunSpec, from_json};
use farline_sys::wake::Waker;
use farline_transport::{Connect, Role, StreamKey, transport_for};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let spec = spec()?;
    let (near, far) = open(&spec)?;
    let near = start(&spec, End::Client, near)?;
    let far = start(&spec, End::Server, far)?;
    let deadline = Instant::now() + Duration::from_secs(120);
    report("sender", &near.finish(deadline))?;
    report("receiver", &far.finish(deadline))
}

fn spec() -> Outcome<RunSpec> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |default: &str| arguments.next().unwrap_or_else(|| default.to_owned());
    let (streams, seconds, transport, block) = (next("1"), next("1"), next("null"), next("131072"));
    let json = format!(
        r#"{{"streams":{streams},"duration_s":{seconds},"transport":"{transport}","block_bytes":{block},
            "rate_bps":0,"interval_s":0.1}}"#
    );
    Ok(from_json::<RunSpec>(&json)?.resolved()?)
}

/// Every stream of the run: the ends that send, and the ends that receive.
fn open(spec: &RunSpec) -> Outcome<(Vec<OpenStream>, Vec<OpenStream>)> {
    let transport = transport_for(spec);
    let mut listener = transport.listen("127.0.0.1:0".parse()?, spec)?;
    let remote = listener.local_addr();
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut ends = (Vec::new(), Vec::new());
    for stream in 0..spec.streams.get() {
        let key = StreamKey {
            stream,
            session: [7; 16],
            proof: [stream as u8; 32],
        };
        let request = Connect {
            spec,
            role: Role::Sender,
            source: None,
            source_device: None,
            remote,
            key: &key,
            deadline,
        };
        let (sender, receiver) = std::thread::scope(|scope| {
            let connecting = scope.spawn(|| transport.connect(&request));
            let accepted = listener.accept(spec, std::slice::from_ref(&key), &|_| Role::Receiver, deadline);
            (connecting.join(), accepted)
        });
        let sender = sender.map_err(|_| "connecting panicked")??;
        ends.0.push(OpenStream {
            stream,
            role: Role::Sender,
            cpu: None,
            io: sender,
        });
        ends.1.push(OpenStream {
            stream,
            role: Role::Receiver,
            cpu: None,
            io: receiver?.1,
        });
    }
    Ok(ends)
}

fn start(spec: &RunSpec, end: End, streams: Vec<OpenStream>) -> Outcome<Run> {
    let (events, _) = crossbeam_channel::unbounded();
    let request = RunRequest {
        spec: spec.clone(),
        end,
        streams,
        max_rate_bps: None,
        watchdog: Duration::from_secs(110),
        events,
        wake: Arc::new(Waker::new()?),
        copy: None,
        rate: None,
        give_way: None,
    };
    Ok(Run::start(request)?)
}

fn report(what: &str, outcome: &RunOutcome) -> Outcome<()> {
    if let Some(failure) = &outcome.failure {
        return Err(failure.message.clone().into());
    }
    println!("stream  end       Mblocks/s   ns CPU/block   Gbit/s");
    for record in &outcome.streams {
        let (elapsed_s, blocks) = (record.elapsed_us as f64 / 1e6, record.blocks as f64);
        println!(
            "{:>6}  {what:<8}  {:>9.3}   {:>12.1}   {:>6.2}",
            record.stream,
            blocks / elapsed_s / 1e6,
            record.thread_cpu_us as f64 * 1e3 / blocks,
            record.bytes as f64 * 8.0 / elapsed_s / 1e9,
        );
    }
    let cpu = &outcome.cpu;
    println!(
        "{what}: {:.2} s, process CPU {:.2} s user {:.2} s system",
        outcome.run_s, cpu.user_s, cpu.system_s
    );
    Ok(())
}
