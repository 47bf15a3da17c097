//! How fast one machine copies from itself to itself, through both ends of a whole session, and what CPU time that takes.
//!
//! ```text
//! cargo run --release -p farline-session --example copy_speed -- SOURCE FOLDER [JSON of more RunSpec]...
//! ```
//! Pushes SOURCE into a new folder below FOLDER once for each JSON and prints a line for each. Both ends are this process, so
//! the CPU seconds are those of both. Put FOLDER on tmpfs to leave the disk out, and write its memory before (freed memory may be cold).

use std::path::Path;
use std::time::Duration;

use farline_session::{Event, Server, Target, mint_ticket, start_run};
use farline_spec::{Limits, RunRecord, Scope, from_json};
use serde_json::{Value, json};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(source), Some(folder)) = (arguments.next(), arguments.next()) else {
        return eprintln!("usage: copy_speed SOURCE FOLDER [JSON]...");
    };
    let more: Vec<String> = arguments.collect();
    let more = if more.is_empty() {
        vec!["{}".to_owned()]
    } else {
        more
    };
    println!(
        "  GB/s  Gbit/s  CPU s/GB  files/s   file  hash cipher stream starved (CPU or waiting ms, both ends)  spec"
    );
    for text in more {
        match copy(&source, &folder, &text) {
            Ok(record) => println!("{}  {text}", line(&record)),
            Err(failure) => println!("{failure}  {text}"),
        }
    }
}

fn copy(source: &str, folder: &str, more: &str) -> Result<RunRecord, String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let state = tempfile::tempdir().map_err(|error| told(&error))?;
    let config = json!({"listen": ["127.0.0.1"], "port": 0, "state_dir": state.path()}).to_string();
    let config = from_json(&config).map_err(|error| told(&error))?;
    let server = Server::start(config).map_err(|error| told(&error))?;
    let root = tempfile::tempdir_in(folder).map_err(|error| told(&error))?;
    let scope = Scope::Write {
        root: root.path().display().to_string(),
    };
    let address = server.addresses()[0].to_string();
    let url = mint_ticket(
        state.path(),
        &address,
        scope,
        Limits::default(),
        Duration::from_secs(60),
    );
    let target = url
        .and_then(|url| Target::parse(&url))
        .map_err(|error| told(&error))?;
    let mut spec = json!({"copy": {"sources": [source], "destination": "/copy", "fsync": false}});
    merge(
        &mut spec,
        &serde_json::from_str(more).map_err(|error| told(&error))?,
    );
    let spec = from_json(&spec.to_string()).map_err(|error| told(&error))?;
    let run = start_run(target, spec);
    loop {
        if let Some(Event::Done(record)) = run.poll(Duration::from_secs(1)) {
            let whole = Path::new(&root.path()).join("copy").exists();
            return match &record.error {
                None if whole => Ok(*record),
                None => Err("nothing came".to_owned()),
                Some(error) => Err(error.to_string()),
            };
        }
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            more.iter()
                .for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, more) => *into = more.clone(),
    }
}

fn line(record: &RunRecord) -> String {
    let copy = record.copy.clone().unwrap_or_default();
    let cpu = record
        .client
        .as_ref()
        .map(|client| client.cpu)
        .unwrap_or_default();
    let gigabytes = copy.copied.bytes as f64 / 1e9;
    let rate = gigabytes / record.run_s;
    let both = |of: fn(&farline_spec::CopyEnd) -> u64| (of(&copy.sender) + of(&copy.receiver)) as f64 / 1e3;
    format!(
        "{rate:6.2} {:7.1} {:9.2} {:8.0} {:6.0} {:5.0} {:6.0} {:6.0} {:7.0}",
        rate * 8.0,
        (cpu.user_s + cpu.system_s) / gigabytes,
        copy.copied.files as f64 / record.run_s,
        both(|end| end.file_us),
        both(|end| end.hash_us),
        both(|end| end.cipher_us),
        both(|end| end.stream_us),
        both(|end| end.starved_us),
    )
}
