//! Files over whole sessions on loopback: real TLS, real streams, real folders.

mod common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::follow;
use common::site::{Site, assert_same, make_tree, spec, wait_for_partial};
use farline_session::message::VersionRange;
use farline_session::{AuditEvent, Event, Local, RunHandle, Server, Target, start_run, start_run_with};
use farline_spec::{FailureKind, RunStatus, Scope, from_json};
use serde_json::{Value, json};

#[test]
fn a_tree_is_pushed_and_pulled_whole_over_every_transport_and_cipher() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 3_000_000);
    let ways = [
        json!({"transport": "tcp"}),
        json!({"transport": "tcp", "copy": {"cipher": "aes256-gcm"}}),
        json!({"transport": "tcp", "streams": 4, "copy": {"cipher": "none", "readers": 2, "writers": 2}}),
        json!({"transport": "udt"}),
        json!({"transport": "rbudp", "rate_bps": 400_000_000}),
    ];
    for (number, way) in ways.iter().enumerate() {
        let far = format!("/pushed-{number}");
        let pushed = site.run(
            site.writer(),
            &spec(&site.near().join("data"), Path::new(&far), way),
        );
        assert_eq!(pushed.record.error, None, "{way}");
        assert_same(&site.near().join("data"), &site.far().join(&far[1..]));
        let near = site.near().join(format!("pulled-{number}"));
        let mut way = way.clone();
        way["direction"] = "reverse".into();
        let pulled = site.run(site.reader(), &spec(Path::new(&far), &near, &way));
        assert_eq!(pulled.record.error, None, "{way}");
        assert_same(&site.near().join("data"), &near);
    }
}

#[test]
fn a_copy_is_proved_as_asked_for_in_both_directions_and_with_every_engine() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 3_000_000);
    make_tree(&site.far().join("data"), 3_000_000);
    let mut number = 0;
    const ALL: &[&str] = &["buffered", "direct", "uring"];
    const CHOSEN: &[&str] = &["auto"];
    let asked = [
        (json!({"hash": "xxh3"}), "xxh3", ALL),
        (json!({"hash": "blake3"}), "blake3", ALL),
        (json!({"hash": "none"}), "none", ALL),
        (json!({}), "xxh3", CHOSEN),
        (json!({"cipher": "none"}), "blake3", CHOSEN),
        (json!({"hash": "xxh3", "cipher": "none"}), "xxh3", CHOSEN),
        (json!({"sync_level": "checksum"}), "blake3", CHOSEN),
        (json!({"verify": "none"}), "none", CHOSEN),
        (json!({"verify": "read-back"}), "xxh3", CHOSEN),
    ];
    for (more, hash, engines) in asked {
        for engine in engines {
            number += 1;
            let mut way = json!({"copy": {"read_engine": engine, "write_engine": engine}});
            common::site::merge(&mut way["copy"], &more);
            let far = format!("/pushed-{number}");
            let pushed = spec(&site.near().join("data"), Path::new(&far), &way);
            let near = site.near().join(format!("pulled-{number}"));
            way["direction"] = "reverse".into();
            let pulled = spec(Path::new("/data"), &near, &way);
            for (target, spec) in [(site.writer(), pushed), (site.reader(), pulled)] {
                let record = site.run(target, &spec).record;
                assert_eq!(record.error, None, "{way}");
                assert_eq!(record.copy.unwrap().hash, hash, "{way}");
            }
            assert_same(&site.near().join("data"), &site.far().join(&far[1..]));
            assert_same(&site.far().join("data"), &near);
        }
    }
}

#[test]
fn ends_of_versions_that_know_blake3_alone_use_it_and_refuse_what_they_do_not_know() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 300_000);
    make_tree(&site.far().join("data"), 300_000);
    for version in 1..=4 {
        for (hash, used) in [
            ("auto", "blake3"),
            ("blake3", "blake3"),
            ("none", "none"),
            ("xxh3", ""),
        ] {
            for direction in ["forward", "reverse"] {
                let (source, destination, target) = match direction {
                    "forward" => (site.near().join("data"), "/copy".into(), site.writer()),
                    _ => ("/data".into(), site.near().join("copy"), site.reader()),
                };
                let way = json!({"direction": direction, "copy": {"hash": hash}});
                let asked = spec(&source, &destination, &way).to_string();
                let versions = VersionRange { min: 1, max: version };
                let local = Local {
                    versions,
                    ..Local::default()
                };
                let record = follow(&start_run_with(target, from_json(&asked).unwrap(), local)).record;
                if hash == "xxh3" {
                    let error = record.error.unwrap();
                    assert_eq!(error.kind, FailureKind::Version, "{error}");
                    assert!(error.message.contains("knows no xxh3"), "{error}");
                    continue;
                }
                assert_eq!(record.error, None, "{version} {hash}");
                assert_eq!(record.copy.unwrap().hash, used, "{version} {hash}");
            }
        }
        for copy in [site.far().join("copy"), site.near().join("copy")] {
            assert_same(&site.near().join("data"), &copy);
            fs::remove_dir_all(copy).unwrap();
        }
    }
}

#[test]
fn the_record_says_what_came_of_it_and_how() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 3_000_000);
    let receipt = site.folder.path().join("receipt.jsonl");
    let local = Local {
        receipt: Some(receipt.clone()),
        ..Local::default()
    };
    let asked = from_json(&site.push(&json!({})).to_string()).unwrap();
    let run = follow(&start_run_with(site.writer(), asked, local));
    let record = &run.record;
    assert_eq!((record.status, &record.error), (RunStatus::Complete, &None));
    let copy = record.copy.as_ref().unwrap();
    let files_bytes: u64 = (0..300u64).map(|number| number * 37).sum::<u64>() + 3_000_001;
    assert_eq!((copy.copied.files, copy.copied.bytes), (302, files_bytes));
    assert_eq!((copy.failed.files, copy.cipher.as_str()), (0, "aes128-gcm"));
    assert!(copy.sender.cipher_us > 0 && copy.receiver.cipher_us > 0);
    assert!(copy.sender.peak_memory_bytes > 1 << 20 && copy.receiver.peak_memory_bytes > 1 << 20);
    assert!(!copy.sender.engine.is_empty() && !copy.receiver.file_system.is_empty());
    assert!(
        run.notices.iter().any(|line| line.contains("aes128-gcm")),
        "{:?}",
        run.notices
    );
    assert_eq!(
        record.streams.len(),
        8,
        "two of data and two of messages, at both ends"
    );
    let moved: i64 = run.mover_samples.moved_bytes.iter().sum();
    assert_eq!(
        moved as u64,
        2 * files_bytes,
        "the rows of both ends have every byte"
    );
    assert!(run.mover_samples.is_rectangular());
    let last = run.progress.last().unwrap();
    assert!(last.all_found && last.settled_bytes == files_bytes, "{last:?}");
    let lines = fs::read_to_string(receipt).unwrap();
    let large = lines.lines().find(|line| line.contains("deep/er/large")).unwrap();
    let line: Value = serde_json::from_str(large).unwrap();
    assert_eq!(
        (&line["status"], line["xxh3_tree"].as_str().unwrap().len()),
        (&json!("copied"), 32)
    );
    let end = site.server.session_end();
    assert_eq!(end.copy.unwrap().copied.files, 302);
}

#[test]
fn a_ticket_opens_one_folder_in_one_direction() {
    let site = Site::new(r#","anonymous":true"#);
    make_tree(&site.near().join("data"), 1000);
    let refused = |target: Target, spec: &Value| site.run(target, spec).record.error.unwrap();
    let push = site.push(&json!({}));
    let anonymous = refused(site.server.target(), &push);
    assert_eq!(anonymous.kind, FailureKind::Auth);
    assert_eq!(refused(site.reader(), &push).kind, FailureKind::Auth);
    assert_eq!(
        refused(site.ticket(Scope::Profile, "{}"), &push).kind,
        FailureKind::Auth
    );
    let run = json!({"total_bytes": 1000});
    assert_eq!(refused(site.writer(), &run).kind, FailureKind::Auth);
    for way_out in ["/../near/gone", "../../gone"] {
        refused(
            site.writer(),
            &spec(&site.near().join("data"), Path::new(way_out), &json!({})),
        );
        assert!(!site.near().join("gone").exists() && !site.folder.path().join("gone").exists());
    }
    std::os::unix::fs::symlink(site.near(), site.far().join("link")).unwrap();
    refused(
        site.writer(),
        &spec(&site.near().join("data"), Path::new("/link/gone"), &json!({})),
    );
    assert!(!site.near().join("gone").exists());
}

#[test]
fn limits_of_a_ticket_hold() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 2_000_000);
    let scope = || Scope::Write { root: site.root() };
    let few = site.run(
        site.ticket(scope(), r#"{"total_bytes":500000}"#),
        &site.push(&json!({})),
    );
    assert_eq!(few.record.error.unwrap().kind, FailureKind::Limit);
    let slow = site.ticket(scope(), r#"{"rate_bps":16000000}"#);
    let too_fast = site.run(
        slow.clone(),
        &site.push(&json!({"copy": {"total_rate_bps": 32_000_000}})),
    );
    assert_eq!(too_fast.record.error.unwrap().kind, FailureKind::Limit);
    let held = site.run(slow, &site.push(&json!({})));
    assert_eq!(held.record.error, None);
    assert!(
        held.notices.iter().any(|line| line.contains("16 Mbit/s")),
        "{:?}",
        held.notices
    );
    assert!(
        held.record.run_s > 0.8,
        "3.6 MB at 16 Mbit/s, what is left of them: {}",
        held.record.run_s
    );
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn a_server_that_asks_for_a_cipher_takes_no_clear_text() {
    let site = Site::new(r#","require_cipher":true"#);
    make_tree(&site.near().join("data"), 1000);
    let clear = site.run(site.writer(), &site.push(&json!({"copy": {"cipher": "none"}})));
    let error = clear.record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Auth);
    assert!(error.message.contains("requires encryption"), "{error}");
    assert_eq!(site.run(site.writer(), &site.push(&json!({}))).record.error, None);
}

#[test]
fn a_stop_in_the_middle_keeps_what_was_proved_and_the_next_session_goes_on() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 20_000_000);
    let slow = site.push(&json!({"copy": {"total_rate_bps": 40_000_000, "chunk_bytes": 65_536}}));
    let handle = start_run(site.writer(), from_json(&slow.to_string()).unwrap());
    site.server
        .event(|what| matches!(what, AuditEvent::SessionStarted(_)).then_some(()));
    wait_for_partial(&site.far());
    handle.stop();
    let stopped = follow(&handle).record;
    assert_eq!(stopped.status, RunStatus::Partial, "{:?}", stopped.error);
    assert!(stopped.server.is_some(), "both ends' profiles are there");
    assert!(
        !site.far().join("copy/deep/er/large").exists(),
        "no name before all is there"
    );
    let again = site.run(
        site.writer(),
        &site.push(&json!({"copy": {"chunk_bytes": 65_536}})),
    );
    assert_eq!(again.record.error, None);
    let copy = again.record.copy.unwrap();
    assert!(copy.resumed_bytes > 0 || copy.present.files > 0, "{copy:?}");
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn an_aborted_session_is_gone_on_with_by_the_next_even_while_the_server_has_not_noticed() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 20_000_000);
    let slow = site.push(&json!({"copy": {"total_rate_bps": 40_000_000, "chunk_bytes": 65_536}}));
    let first = start_run(site.writer(), from_json(&slow.to_string()).unwrap());
    wait_for_partial(&site.far());
    // The older session still runs: the newer one takes its place.
    let second = site.run(
        site.writer(),
        &site.push(&json!({"copy": {"chunk_bytes": 65_536}})),
    );
    assert_eq!(second.record.error, None);
    let error = follow(&first).record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Limit, "{error}");
    assert!(error.message.contains("newer session"), "{error}");
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn what_an_aborted_session_proved_is_not_sent_again() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 20_000_000);
    let slow = site.push(&json!({"copy": {"total_rate_bps": 40_000_000, "chunk_bytes": 65_536}}));
    let first = start_run(site.writer(), from_json(&slow.to_string()).unwrap());
    wait_for_partial(&site.far());
    first.abort();
    assert_eq!(follow(&first).record.status, RunStatus::Partial);
    assert_eq!(site.server.session_end().status, RunStatus::Partial);
    let again = site.run(
        site.writer(),
        &site.push(&json!({"copy": {"chunk_bytes": 65_536}})),
    );
    assert_eq!(again.record.error, None);
    let copy = again.record.copy.unwrap();
    assert!(copy.resumed_bytes > 0, "{copy:?}");
    let moved = again.mover_samples.moved_bytes.iter().sum::<i64>() as u64;
    assert!(
        moved <= 2 * (20_000_001 + 300 * 299 / 2 * 37 - copy.resumed_bytes),
        "{moved}"
    );
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn a_copy_that_gives_way_says_what_it_holds_itself_to() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 2_000_000);
    let more = json!({"interval_s": 0.05, "copy": {"give_way": true, "total_rate_bps": 80_000_000}});
    let run = site.run(site.writer(), &site.push(&more));
    assert_eq!(run.record.error, None);
    let rows = &run.mover_samples;
    let held = |end| {
        rows.end
            .iter()
            .zip(&rows.held_rate_bps)
            .filter(move |(of, _)| **of == end)
    };
    assert!(
        held(0).all(|(_, &bps)| bps > 0 && bps <= 80_000_000),
        "{:?}",
        rows.held_rate_bps
    );
    assert!(
        held(1).all(|(_, &bps)| bps == -1),
        "the receiving end holds nothing back"
    );
    assert_same(&site.near().join("data"), &site.far().join("copy"));
}

#[test]
fn a_copy_that_gives_way_takes_a_path_that_nobody_else_uses() {
    let site = Site::new("");
    fs::create_dir(site.near().join("data")).unwrap();
    fs::write(site.near().join("data/large"), vec![1; 100_000_000]).unwrap();
    let run = site.run(
        site.writer(),
        &site.push(&json!({"streams": 1, "copy": {"give_way": true}})),
    );
    assert_eq!(run.record.error, None);
    // At the rate it begins with it would take 80 s. Acknowledgements that are kept back look like a queue, and here
    // segments are so long that most of them would be.
    assert!(run.record.run_s < 15.0, "{}", run.record.run_s);
}

#[test]
fn a_copy_that_stands_still_ends_with_the_time_it_stood() {
    let site = Site::new("");
    fs::create_dir(site.near().join("data")).unwrap();
    fs::write(site.near().join("data/large"), vec![1; 4_000_000]).unwrap();
    // So slow that a chunk takes longer than the copy may stand still.
    let more = json!({"streams": 1, "copy": {"total_rate_bps": 1000, "stall_timeout_s": 1.0, "chunk_bytes": 1_048_576}});
    let error = site.run(site.writer(), &site.push(&more)).record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Timeout, "{error}");
    assert!(error.message.contains("no data moved for 1 s"), "{error}");
}

#[test]
fn a_server_that_cannot_be_reached_connects_to_its_client() {
    let site = Site::new("");
    make_tree(&site.near().join("data"), 1_000_000);
    let address = || Some("127.0.0.1:0".parse().unwrap());
    for (direction, target) in [("forward", site.writer()), ("reverse", site.reader())] {
        let back = site.near().join("back");
        let spec = match direction {
            "forward" => site.push(&json!({"streams": 3})),
            _ => spec(Path::new("/copy"), &back, &json!({"direction": direction})),
        };
        let local = Local {
            listen: address(),
            ..Local::default()
        };
        let run = start_run_with(target, from_json(&spec.to_string()).unwrap(), local);
        let client = wait_for(&run, |event| match event {
            Event::Listening(address) => Some(address),
            _ => None,
        });
        // A stranger who comes first neither takes the server's place nor ends the wait.
        drop(std::net::TcpStream::connect(client).unwrap());
        let config = json!({"state_dir": site.server.state_dir()}).to_string();
        let server = Server::connect_back(&from_json(&config).unwrap(), client).unwrap();
        let record = follow(&run).record;
        assert_eq!(record.error, None, "{direction}");
        server.join();
    }
    assert_same(&site.near().join("data"), &site.far().join("copy"));
    assert_same(&site.near().join("data"), &site.near().join("back"));
}

#[test]
fn a_server_that_is_waited_for_must_be_known_and_come_over_tcp() {
    let site = Site::new("");
    let refused = |target: Target, more: &Value| {
        let local = Local {
            listen: "127.0.0.1:0".parse().ok(),
            ..Local::default()
        };
        let spec = from_json(&site.push(more).to_string()).unwrap();
        follow(&start_run_with(target, spec, local))
            .record
            .error
            .unwrap()
            .kind
    };
    assert_eq!(refused(site.server.target(), &json!({})), FailureKind::Usage);
    assert_eq!(
        refused(site.writer(), &json!({"transport": "udt"})),
        FailureKind::Spec
    );
    assert_eq!(
        refused(site.writer(), &json!({"connect_timeout_ms": 100})),
        FailureKind::Timeout
    );
}

fn wait_for<T>(run: &RunHandle, mut pick: impl FnMut(Event) -> Option<T>) -> T {
    let until = Instant::now() + common::PATIENCE;
    while Instant::now() < until {
        if let Some(picked) = run.poll(Duration::from_millis(100)).and_then(&mut pick) {
            return picked;
        }
    }
    panic!("the run did not say what was waited for");
}

#[test]
fn one_port_serves_sessions_and_their_streams_several_at_once() {
    let site = Site::new(r#","single_port":true,"anonymous":true"#);
    make_tree(&site.near().join("data"), 1_000_000);
    let copies: Vec<_> = (0..3)
        .map(|number| {
            let to = format!("/copy-{number}");
            let spec = spec(&site.near().join("data"), Path::new(&to), &json!({}));
            start_run(site.writer(), from_json(&spec.to_string()).unwrap())
        })
        .collect();
    let profile = start_run(
        site.server.target(),
        common::spec(r#"{"streams":3,"total_bytes":1000000}"#),
    );
    assert_eq!(follow(&profile).record.error, None);
    for (number, copy) in copies.iter().enumerate() {
        let record = follow(copy).record;
        assert_eq!(record.error, None);
        let port = format!(":{}", site.server.address().port());
        let far = record.streams.iter().filter(|stream| stream.end == 1);
        assert!(
            far.into_iter()
                .all(|stream| stream.granted.local.ends_with(&port))
        );
        assert_same(
            &site.near().join("data"),
            &site.far().join(format!("copy-{number}")),
        );
    }
    let udt = site.push(&json!({"transport": "udt"}));
    assert_eq!(
        site.run(site.writer(), &udt).record.error,
        None,
        "the data on a port of their own"
    );
    let buffers = common::complete(site.server.target(), r#"{"tcp":{"receive_buffer_bytes":100000}}"#);
    let error = buffers.record.error.unwrap();
    assert_eq!(error.kind, FailureKind::Spec);
    assert!(error.message.contains("tcp.receive_buffer_bytes"), "{error}");
}
