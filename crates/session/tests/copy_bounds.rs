//! What a copy must not do, whoever asks: leave its folder, end another, take more than there is, wait for strangers.

mod common;

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use common::follow;
use common::proxy::{Fate, Proxy};
use common::site::{Site, assert_same, make_tree, merge, spec, wait_for_partial};
use farline_session::{Event, Local, Server, Target, start_run, start_run_with};
use farline_spec::{FailureKind, RunStatus, Scope, from_json};
use serde_json::json;

#[test]
fn a_reader_takes_nothing_from_outside_its_folder() {
    let site = Site::new("");
    make_tree(&site.near().join("secret"), 1000);
    fs::write(site.far().join("mine"), b"mine").unwrap();
    fs::create_dir(site.far().join("inner")).unwrap();
    symlink(site.near(), site.far().join("link")).unwrap();
    symlink(site.near().join("secret/one"), site.far().join("inner/way-out")).unwrap();
    let pulled = site.near().join("pulled");
    let pull = |source: &str, links: &str| {
        let more = json!({"direction": "reverse", "copy": {"sources": [source], "links": links}});
        let run = site.run(site.reader(), &spec(Path::new("/x"), &pulled, &more));
        (run.record.error, run.record.copy)
    };
    let absolute = site.near().join("secret/one").display().to_string();
    for source in [
        "../near/secret/one",
        "/../near/secret/one",
        "link/secret/one",
        absolute.as_str(),
    ] {
        let (error, copy) = pull(source, "keep");
        let failed = copy.is_some_and(|copy| copy.failed.files > 0 && copy.copied.files == 0);
        assert!(error.is_some() || failed, "{source}");
        assert!(
            !pulled.exists() || fs::read_dir(&pulled).is_ok_and(|mut all| all.next().is_none()),
            "{source}"
        );
    }
    let (_, copy) = pull("inner", "follow");
    assert_eq!(
        copy.unwrap().copied.files,
        0,
        "what a link leads to outside is not copied"
    );
    assert!(!pulled.join("way-out").exists() && !pulled.join("inner/way-out").exists());
    let (error, copy) = pull("/mine", "keep");
    assert_eq!((error, copy.unwrap().copied.files), (None, 1));
}

#[test]
fn a_ticket_to_write_does_not_read() {
    let site = Site::new("");
    fs::write(site.far().join("mine"), b"mine").unwrap();
    let pull = spec(
        Path::new("/"),
        &site.near().join("pulled"),
        &json!({"direction": "reverse"}),
    );
    let error = site.run(site.writer(), &pull).record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Auth);
    assert!(!site.near().join("pulled").exists());
}

#[test]
fn copies_from_two_places_do_not_end_each_other() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 8_000_000);
    let slow = |origin: &str| {
        let more = json!({"copy": {"origin": origin, "total_rate_bps": 40_000_000, "chunk_bytes": 65_536}});
        start_run(site.writer(), from_json(&site.push(&more).to_string()).unwrap())
    };
    let first = slow("one");
    wait_for_partial(&site.far());
    let second = slow("two");
    assert_eq!(follow(&first).record.error, None, "nobody took its place");
    // What the first has named by then is there already, and the same.
    assert_eq!(follow(&second).record.error, None);
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn a_stop_is_a_stop_however_late_the_word_comes() {
    for direction in ["forward", "reverse"] {
        let site = Site::new("");
        make_tree(&site.near().join("data"), 20_000_000);
        make_tree(&site.far().join("data"), 20_000_000);
        // After the set-up every record of the control channel takes longer than streams take to end.
        let proxy = Proxy::start(site.server.address(), 24, Fate::Late(Duration::from_millis(300)));
        let to = |target: Target| Target {
            host: proxy.address.ip().to_string(),
            port: proxy.address.port(),
            ..target
        };
        let mut slow =
            json!({"direction": direction, "copy": {"total_rate_bps": 40_000_000, "chunk_bytes": 65_536}});
        let (target, into) = match direction {
            "forward" => (to(site.writer()), site.far()),
            _ => {
                let pull = json!({"copy": {"sources": ["/data/"], "destination": site.near().join("copy")}});
                merge(&mut slow, &pull);
                (to(site.reader()), site.near())
            }
        };
        let run = start_run(target, from_json(&site.push(&slow).to_string()).unwrap());
        wait_for_partial(&into);
        run.stop();
        let record = follow(&run).record;
        assert_eq!(
            record.status,
            RunStatus::Partial,
            "{direction}: {:?}",
            record.error
        );
        let far = site.server.session_end();
        assert_eq!(far.status, RunStatus::Partial, "{direction}: {:?}", far.error);
    }
}

#[test]
fn what_needs_more_memory_than_is_allowed_is_refused_at_once() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 1000);
    for more in [
        json!({"streams": 256, "copy": {"chunk_bytes": 16_777_216}}),
        json!({"streams": 2, "copy": {"writers": 256, "chunk_bytes": 16_777_216}}),
        json!({"streams": 2, "copy": {"readers": 256, "chunk_bytes": 8_388_608}}),
    ] {
        let error = site.run(site.writer(), &site.push(&more)).record.error.unwrap();
        assert_eq!(error.kind, FailureKind::Spec);
        assert!(error.message.contains("copy.chunk_bytes"), "{error}");
    }
}

#[test]
fn silent_strangers_keep_neither_the_server_nor_its_streams_out() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 1_000_000);
    let local = Local {
        listen: "127.0.0.1:0".parse().ok(),
        ..Local::default()
    };
    let run = start_run_with(
        site.writer(),
        from_json(&site.push(&json!({})).to_string()).unwrap(),
        local,
    );
    let client = loop {
        if let Some(Event::Listening(address)) = run.poll(common::PATIENCE) {
            break address;
        }
    };
    let strangers: Vec<_> = (0..5).map(|_| TcpStream::connect(client).unwrap()).collect();
    let began = Instant::now();
    let config = json!({"state_dir": site.server.state_dir()}).to_string();
    let server = Server::connect_back(&from_json(&config).unwrap(), client).unwrap();
    let done = follow(&run);
    assert_eq!(done.record.error, None);
    // One after the other they would take five seconds each.
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(done.keys.len(), 1, "the server's alone");
    drop(strangers);
    server.join();
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn messages_of_a_copy_are_held_to_its_ticket_too() {
    let site = Site::new("");
    let names = site.near().join("data");
    fs::create_dir(&names).unwrap();
    // Names without a byte of content: all that moves are messages, and each end may send 5 Mbit/s of them.
    for number in 0..6_000 {
        fs::write(names.join(format!("{number:0>200}")), b"").unwrap();
    }
    let ticket = site.ticket(Scope::Write { root: site.root() }, r#"{"rate_bps":1000000}"#);
    let run = site.run(ticket, &site.push(&json!({"copy": {"fsync": false}})));
    assert_eq!(run.record.error, None);
    assert!(run.record.run_s > 1.5, "1.4 MB at 5 Mbit/s: {}", run.record.run_s);
}
