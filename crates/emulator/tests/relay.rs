//! Real hosts over emulated links: what arrives, when, what is counted, and that nothing is left behind.

mod common;

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use common::{A, B, Bed, pair, remove_folder, start, turn};
use farline_spec::{FailureKind, LinkChange, LinkDirection, LinkSamples, from_json};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Bytes whose place can be told from their value.
fn pattern(start: u64, room: &mut [u8]) {
    for (at, words) in room.chunks_mut(8).enumerate() {
        let word = (start / 8 + at as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_le_bytes();
        words.copy_from_slice(&word[..words.len()]);
    }
}

/// Sends the pattern from `a` to `b` over TCP; every byte must be there, in its place.
fn transfer(bed: &Bed, bytes: u64) {
    const PART: usize = 1 << 16;
    let listener = bed.inside("b", || TcpListener::bind(SocketAddr::new(B, 0)));
    let to = listener.local_addr().unwrap();
    let sender = bed.inside("a", move || TcpStream::connect(to));
    let mut receiver = listener.accept().unwrap().0;
    let sending = std::thread::spawn(move || {
        let (mut sender, mut part) = (sender, vec![0; PART]);
        for start in (0..bytes).step_by(PART) {
            pattern(start, &mut part);
            sender.write_all(&part).unwrap();
        }
    });
    let (mut part, mut wanted, mut got) = (vec![0; PART], vec![0; PART], 0);
    receiver.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    while got < bytes {
        receiver.read_exact(&mut part).unwrap();
        pattern(got, &mut wanted);
        assert!(part == wanted, "the part at {got} is not what was sent");
        got += PART as u64;
    }
    assert_eq!(receiver.read(&mut part).unwrap(), 0);
    sending.join().unwrap();
}

fn change(bed: &Bed, text: &str) {
    let text = format!(r#"{{"link":"wan","change":{text}}}"#);
    bed.emulator
        .change(from_json::<LinkChange>(&text).unwrap())
        .unwrap();
}

#[test]
fn every_byte_survives_loss_reordering_duplicates_and_corruption() {
    let pipe = r#"{"rate_bps":1000000000,"delay_s":0.001,"loss":{"random":0.002},"reorder":0.01,
        "reorder_delay_s":0.0005,"duplicate":0.005,"corrupt":0.001}"#;
    let Some(bed) = Bed::of(&pair(pipe)) else { return };
    let mark = bed.emulator.mark().unwrap();
    transfer(&bed, 50 << 20);
    let forward = bed.pipe(0).counters;
    assert!(forward.in_packets > 36_000, "{forward:?}");
    let chosen = [
        forward.loss_packets,
        forward.reordered_packets,
        forward.duplicated_packets,
        forward.corrupted_packets,
    ];
    assert!(chosen.iter().all(|&count| count > 10), "{forward:?}");
    let stamp = bed.emulator.stamp(mark).unwrap();
    assert_eq!(
        (stamp.unexplained_packets, stamp.ring_drops, stamp.emulator_drops),
        (0, 0, 0)
    );
    assert!(stamp.deliveries > 1000 && stamp.wall_s > 0.4, "{stamp:?}");
    let (report, totals) = bed.emulator.counters().unwrap();
    assert_eq!(
        (report.traffic.ignored_packets, report.traffic.write_drops),
        (0, 0)
    );
    // Some hits are on duplicates and on packets that came too late to be looked at.
    assert!(totals.checksum_errors > 0 && totals.checksum_errors <= 2 * forward.corrupted_packets);
}

#[test]
fn a_round_trip_takes_its_time_over_both_families() {
    let Some(bed) = Bed::of(&pair(r#"{"delay_s":0.01}"#)) else {
        return;
    };
    let v6 = |end| Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, end).into();
    for (near, far) in [(A, B), (v6(1), v6(2))] {
        let took = bed.echo(near, far).shortest_until(23 * MILLISECOND);
        assert!(
            took >= 20 * MILLISECOND && took < 23 * MILLISECOND,
            "{took:?} to {far}"
        );
    }
    let path = bed.emulator.path("a", "b").unwrap();
    assert_eq!((path.rtt_s, path.rate_bps), (0.02, None));
}

#[test]
fn hosts_know_each_others_names_and_their_own() {
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    let table = bed.inside("a", || std::fs::read_to_string("/etc/hosts"));
    assert!(
        table.contains("10.77.0.2 b b-eth0\n") && table.contains("fd77::1 a a-eth0\n"),
        "{table}"
    );
    let name = bed.inside("b", || std::fs::read_to_string("/proc/sys/kernel/hostname"));
    assert_eq!(name, "b\n");
}

#[test]
fn a_link_changes_while_it_is_used() {
    let Some(bed) = Bed::of(&pair(r#"{"rate_bps":1000000000}"#)) else {
        return;
    };
    let echo = bed.echo(A, B);
    assert!(echo.shortest_until(10 * MILLISECOND) < 10 * MILLISECOND);
    change(&bed, r#"{"delay_s":0.015}"#);
    assert!(echo.shortest() >= 30 * MILLISECOND);
    assert_eq!(bed.emulator.path("a", "b").unwrap().rtt_s, 0.03);
    change(&bed, r#"{"up":false}"#);
    assert_eq!(echo.round_trip(200 * MILLISECOND), None);
    assert_eq!(bed.pipe(0).counters.cut_packets, 1);
    change(&bed, r#"{"up":true,"rate_bps":5000000}"#);
    assert!(echo.shortest() >= 30 * MILLISECOND);
    assert_eq!(bed.emulator.path("b", "a").unwrap().rate_bps, Some(5_000_000));
    let unknown = from_json(r#"{"link":"lan","change":{}}"#).unwrap();
    assert!(bed.emulator.change(unknown).unwrap_err().message.contains("lan"));
}

#[test]
fn samples_add_up_to_the_counters() {
    let Some(bed) = Bed::of(&pair(r#"{"rate_bps":1000000000,"delay_s":0.001}"#)) else {
        return;
    };
    transfer(&bed, 8 << 20);
    let of_forward = |rows: &LinkSamples, column: &[i64]| -> i64 {
        let rows = column.iter().zip(&rows.direction);
        rows.filter(|(_, direction)| **direction == 0)
            .map(|(value, _)| value)
            .sum()
    };
    let (mut rows, patience) = (
        bed.emulator.poll_samples(),
        Instant::now() + Duration::from_secs(10),
    );
    // The last acknowledgements may still be on their way, and a sample is up to an interval behind.
    let forward = loop {
        let forward = bed.pipe(0).counters;
        rows.append(&mut bed.emulator.poll_samples());
        if of_forward(&rows, &rows.in_packets) == forward.in_packets as i64 {
            break forward;
        }
        assert!(Instant::now() < patience, "{forward:?}");
        std::thread::sleep(MILLISECOND);
    };
    assert!(forward.in_packets > 5_000);
    assert_eq!(of_forward(&rows, &rows.in_bytes), forward.in_bytes as i64);
    assert_eq!(rows.start_us[0], 0);
    assert!(rows.backlog_max_bytes.iter().any(|&bytes| bytes > 1500));
    assert!(
        rows.start_us
            .iter()
            .zip(&rows.end_us)
            .all(|(start, end)| start < end)
    );
}

#[test]
fn a_capture_has_a_record_for_every_packet_on_the_wire() {
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    let file = bed.folder.join("wan.pcap");
    bed.emulator
        .capture("wan", LinkDirection::Forward, &file, 96)
        .unwrap();
    let twice = bed
        .emulator
        .capture("wan", LinkDirection::Both, &file, 96)
        .unwrap_err();
    assert!(
        twice.kind == FailureKind::Usage && twice.message.contains("already"),
        "{twice}"
    );
    let before = bed.pipe(0).counters;
    transfer(&bed, 4 << 20);
    std::thread::sleep(Duration::from_millis(50));
    let after = bed.pipe(0).counters;
    let end = bed.emulator.stop_capture("wan").unwrap();
    assert_eq!(end.missed_packets, 0, "{end:?}");
    assert_eq!(end.written_packets, after.out_packets - before.out_packets);
    let bytes = std::fs::read(&file).unwrap();
    let lengths = record_lengths(&bytes[24..]);
    assert_eq!(lengths.len() as u64, end.written_packets);
    assert!(
        lengths
            .iter()
            .all(|&(kept, whole)| kept == whole.min(96) && whole <= 1500)
    );
    assert!(bed.emulator.stop_capture("wan").is_err());
}

#[test]
fn a_capture_that_nobody_ended_is_whole_when_the_bed_goes_down() {
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    let file = bed.folder.join("open.pcap");
    bed.emulator
        .capture("wan", LinkDirection::Forward, &file, 96)
        .unwrap();
    let before = bed.pipe(0).counters;
    transfer(&bed, 4 << 20);
    let after = bed.pipe(0).counters;
    bed.emulator.stop();
    let records = record_lengths(&std::fs::read(&file).unwrap()[24..]).len() as u64;
    assert!(
        records >= after.out_packets - before.out_packets,
        "{records} records of {after:?}"
    );
}

#[test]
fn a_link_too_small_for_ipv6_carries_the_rest() {
    let Some(bed) = Bed::of(&pair(r#"{"mtu_bytes":1000}"#)) else {
        return;
    };
    let notices = bed.emulator.notices();
    assert!(
        notices.iter().any(|line| line.contains("eth0 has no IPv6")),
        "{notices:?}"
    );
    transfer(&bed, 1 << 20);
}

#[test]
fn hosts_take_what_comes_over_another_link_than_the_answer_would() {
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    for device in ["all", "eth0"] {
        let file = format!("/proc/sys/net/ipv4/conf/{device}/rp_filter");
        assert_eq!(bed.inside("a", || std::fs::read_to_string(&file)), "0\n");
    }
}

/// Bytes kept and bytes on the wire of every record.
fn record_lengths(mut records: &[u8]) -> Vec<(u32, u32)> {
    let mut lengths = Vec::new();
    while let Some((header, rest)) = records.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().unwrap());
        lengths.push((word(8), word(12)));
        records = &rest[word(8) as usize..];
    }
    lengths
}

#[test]
fn a_sender_learns_what_a_later_link_can_carry() {
    let topology = r#"{"name":"test","hosts":[{"name":"a"},{"name":"b"}],"routers":["r"],"links":[
        {"name":"one","a":"a","b":"r","forward":{"mtu_bytes":9000}},
        {"name":"two","a":"r","b":"b","forward":{"mtu_bytes":1400},"reverse":{"mtu_bytes":9000}}]}"#;
    let Some(bed) = Bed::of(topology) else { return };
    let far = bed.emulator.layout().ports[1].v4;
    assert_eq!(bed.emulator.layout().ports[1].host, 1);
    let listener = bed.inside("b", move || TcpListener::bind((far, 0)));
    let to = listener.local_addr().unwrap();
    let mut sender = bed.inside("a", move || TcpStream::connect(to));
    let mut receiver = listener.accept().unwrap().0;
    let sending = std::thread::spawn(move || sender.write_all(&vec![5; 2 << 20]));
    let mut got = Vec::new();
    receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    receiver.read_to_end(&mut got).unwrap();
    sending.join().unwrap().unwrap();
    assert_eq!(got.len(), 2 << 20);
    let traffic = bed.emulator.counters().unwrap().0.traffic;
    assert!(traffic.too_big_sent > 0 && bed.pipe(2).counters.mtu_drop_packets > 0);
}

/// Descriptors of this process that keep a host alive, and the emulator's threads.
fn held() -> (usize, usize) {
    let entries = |path: &str| {
        std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    let names = entries("/proc/self/task").filter_map(|task| std::fs::read_to_string(task.join("comm")).ok());
    let threads = names.filter(|name| name.starts_with("farline-")).count();
    let targets = entries("/proc/self/fd").filter_map(|entry| std::fs::read_link(entry).ok());
    let of_hosts = targets.filter(|target| {
        let text = target.to_string_lossy();
        let kinds = ["net:", "mnt:", "uts:", "/dev/net/tun"];
        kinds.iter().any(|kind| text.starts_with(kind)) || text.contains("/net/")
    });
    (of_hosts.count(), threads)
}

/// Whether what is held becomes as wanted: a thread takes its name after it was started, and leaves the kernel's list
/// after it was waited for.
fn soon_held(wanted: impl Fn((usize, usize)) -> bool) -> bool {
    let patience = Instant::now() + Duration::from_secs(5);
    while !wanted(held()) && Instant::now() < patience {
        std::thread::sleep(MILLISECOND);
    }
    wanted(held())
}

#[test]
fn stopping_leaves_no_namespace_thread_or_device() {
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    assert!(soon_held(
        |(descriptors, threads)| descriptors >= 8 && threads == 2
    ));
    let inside = bed.namespaces("a");
    let devices = || {
        inside
            .run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))
            .unwrap()
    };
    assert!(devices().contains("eth0"));
    bed.emulator.stop();
    assert!(!devices().contains("eth0"));
    drop(inside);
    assert!(soon_held(|held| held == (0, 0)), "{:?}", held());
    for failure in [
        bed.emulator.topology().unwrap_err(),
        bed.emulator.mark().unwrap_err(),
    ] {
        assert_eq!(failure.message, "the emulator was stopped");
    }
    assert_eq!(bed.emulator.failure(), None);
    bed.emulator.stop();
}

#[test]
fn a_start_that_fails_says_why_in_one_line_and_leaves_nothing() {
    let topology = pair("{}").replace(
        r#"{"name":"b"}"#,
        r#"{"name":"b","sysctls":{"net.ipv4.tcp_no_such_setting":"1"}}"#,
    );
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    drop(bed);
    let _turn = turn();
    let before = held();
    let failure = start(&topology).err().expect("refused");
    remove_folder();
    assert_eq!(failure.kind, FailureKind::Spec);
    assert!(failure.message.contains("hosts.b.sysctls") && failure.message.contains("tcp_no_such_setting"));
    assert!(!failure.message.contains('\n'));
    assert!(soon_held(|held| held == before), "{:?}, not {before:?}", held());
}

#[test]
fn when_the_engine_ends_every_later_call_says_why() {
    let Some(bed) = Bed::of(&pair("{}")) else { return };
    let paths = bed.emulator.namespace_paths("a").unwrap();
    let removed = Command::new("nsenter")
        .args([&format!("--net={}", paths.net), "ip", "link", "delete", "eth0"])
        .status();
    if !removed.is_ok_and(|status| status.success()) {
        println!("not run: no nsenter or ip to remove a device with");
        return;
    }
    let patience = Instant::now() + Duration::from_secs(10);
    while bed.emulator.failure().is_none() {
        assert!(Instant::now() < patience, "the engine still runs");
        std::thread::sleep(MILLISECOND);
    }
    let failure = bed.emulator.topology().unwrap_err();
    assert!(failure.message.contains("device eth0 of host a"), "{failure}");
    assert_eq!(failure.kind, FailureKind::System);
    assert_eq!(bed.emulator.mark().unwrap_err(), failure);
}

#[test]
fn hosts_work_in_a_user_namespace() {
    const TESTS: [&str; 2] = [
        "a_round_trip_takes_its_time_over_both_families",
        "every_byte_survives_loss_reordering_duplicates_and_corruption",
    ];
    if std::env::var_os("FARLINE_INNER").is_some() {
        return;
    }
    let may = Command::new("unshare").args(["-Ur", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("not run: no user namespaces for this user, or no unshare");
        return;
    }
    let _turn = turn();
    let this = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .arg("-Ur")
        .arg(this)
        .args(["--exact", "--nocapture"])
        .args(TESTS)
        .env("FARLINE_INNER", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("2 passed") && !text.contains("not run"),
        "{text}"
    );
}
