//! Runs a topology from a JSON document until its standard input ends: a hand tool for measurements.
//!
//! ```text
//! cargo run --release -p farline-emulator --example relay -- topology.json hosts
//! ```
//!
//! Prints one line for each host with the command that runs programs in it, then takes commands on standard input:
//! `mark` starts an interval, `stamp` prints the stamp since then, `counters` what was counted since the start.

use std::error::Error;
use std::io::BufRead;
use std::path::PathBuf;

use farline_emulator::relay::{Emulator, RelayOptions};
use farline_spec::{Topology, from_json};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(topology), Some(hosts_file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: relay TOPOLOGY.json HOSTS_FILE".into());
    };
    let topology: Topology = from_json(&std::fs::read_to_string(topology)?)?;
    let hosts_file = std::path::absolute(PathBuf::from(hosts_file))?;
    let emulator = Emulator::start(topology, RelayOptions { hosts_file })?;
    print_hosts(&emulator)?;
    let mut mark = emulator.mark()?;
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            "mark" => mark = emulator.mark()?,
            "stamp" => println!("{:#?}", emulator.stamp(mark)?),
            "counters" => print_counters(&emulator)?,
            other => println!("{other:?} is not a command; allowed: mark, stamp, counters"),
        }
    }
    Ok(())
}

fn print_hosts(emulator: &Emulator) -> Result<(), Box<dyn Error>> {
    for host in &emulator.layout().hosts {
        let paths = emulator.namespace_paths(&host.name)?;
        let address = host.ports.first().map(|&port| emulator.layout().ports[port].v4);
        println!(
            "{} {} nsenter --net={} --mount={} --uts={}",
            host.name,
            address.map_or_else(|| "-".to_owned(), |address| address.to_string()),
            paths.net,
            paths.mount,
            paths.uts,
        );
    }
    Ok(())
}

fn print_counters(emulator: &Emulator) -> Result<(), Box<dyn Error>> {
    let (report, totals) = emulator.counters()?;
    for (number, pipe) in report.pipes.iter().enumerate() {
        println!("pipe {number}: {:?} {:?}", pipe.counters, pipe.state);
    }
    println!("{:?}\n{totals:?}\n{:?}", report.traffic, report.ports);
    Ok(())
}
