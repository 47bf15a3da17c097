//! Hosts of their own: what is inside, what stays outside, and the devices that join them to a program.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use farline_sys::arena::Arena;
use farline_sys::interface;
use farline_sys::namespace::{HostNamespaces, read_sysctl, write_sysctl};
use farline_sys::stack_counters::StackCounters;
use farline_sys::tun::{HEADER_BYTES, Tun};
use farline_sys::wake::poll_readable;

const HERE: [&str; 2] = ["10.77.0.1", "fd77::1"];
const THERE: [&str; 2] = ["10.77.0.2", "fd77::2"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// False, and says so, where this user may not make hosts.
fn may_make_hosts() -> bool {
    match HostNamespaces::create("probe", None, || Tun::open("eth0", 1)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("not run: {error}");
            false
        }
        _ => true,
    }
}

/// A host with a device that knows the way to THERE.
fn host(queue_packets: u32) -> (HostNamespaces, (Tun, StackCounters)) {
    let set_up = || {
        interface::bring_up("lo")?;
        let tun = Tun::open("eth0", queue_packets)?;
        interface::keep_quiet("eth0")?;
        interface::set_mtu("eth0", 9000)?;
        interface::bring_up("eth0")?;
        for text in HERE {
            interface::add_address("eth0", address(text))?;
        }
        for text in THERE {
            interface::add_route("eth0", address(text))?;
        }
        Ok((tun, StackCounters::open()?))
    };
    HostNamespaces::create("paris", None, set_up).unwrap()
}

/// A socket of `host` towards THERE, and where it says it sends from.
fn socket(host: &HostNamespaces, family: usize) -> (UdpSocket, IpAddr) {
    let open = || {
        let any = ["0.0.0.0:0", "[::]:0"][family];
        let socket = UdpSocket::bind(any)?;
        socket.connect((address(THERE[family]), 9))?;
        let from = socket.local_addr()?.ip();
        Ok((socket, from))
    };
    host.run(open).unwrap()
}

fn list(directory: &str) -> io::Result<Vec<String>> {
    let names =
        std::fs::read_dir(directory)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

#[test]
fn a_host_sees_its_own_name_devices_and_hosts_file_and_the_machine_keeps_its_own() {
    if !may_make_hosts() {
        return;
    }
    let outside = || {
        let hosts = std::fs::read_to_string("/etc/hosts").unwrap();
        (
            std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap(),
            hosts,
            list("/sys/class/net").unwrap(),
        )
    };
    let (before, groups) = (outside(), list("/sys/fs/cgroup").unwrap());
    let file = std::env::temp_dir().join(format!("farline-sys-hosts-{}", std::process::id()));
    std::fs::write(&file, "10.77.0.2 rome\n").unwrap();
    let (host, _tun) = HostNamespaces::create("paris", Some(&file), || Tun::open("eth0", 500)).unwrap();
    std::fs::remove_file(&file).unwrap();
    let inside = || {
        assert_eq!(std::fs::read_to_string("/proc/sys/kernel/hostname")?, "paris\n");
        assert_eq!(std::fs::read_to_string("/etc/hosts")?, "10.77.0.2 rome\n");
        assert_eq!(list("/sys/fs/cgroup")?, groups);
        list("/sys/class/net")
    };
    let devices = host.run(inside).unwrap();
    match &host.sys_refusal {
        None => assert_eq!(
            devices
                .iter()
                .filter(|name| *name == "eth0" || *name == "lo")
                .count(),
            2
        ),
        Some(reason) => println!("/sys is the machine's: {reason}"),
    }
    assert_eq!(outside(), before);
}

#[test]
fn packets_leave_by_the_device_with_its_address_and_nothing_else_does() {
    if !may_make_hosts() {
        return;
    }
    let (host, (tun, _)) = host(500);
    let mut arena = Arena::new(1, 1).unwrap();
    assert!(
        !poll_readable(&[tun.as_fd()], Some(Duration::from_millis(300))).unwrap()[0],
        "a quiet device"
    );
    for family in 0..2 {
        let (socket, from) = socket(&host, family);
        assert_eq!(from, address(HERE[family]));
        socket.send(b"farline").unwrap();
        let frame = arena.read(&tun).unwrap().expect("a packet");
        assert_eq!(frame[HEADER_BYTES] >> 4, [4, 6][family]);
        assert!(frame.ends_with(b"farline"));
        assert!(arena.read(&tun).unwrap().is_none());
    }
}

#[test]
fn what_is_written_arrives() {
    if !may_make_hosts() {
        return;
    }
    let (host, (tun, counters)) = host(500);
    let (socket, _) = socket(&host, 0);
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send(b"there and back").unwrap();
    let mut packet = Arena::new(1, 1).unwrap().read(&tun).unwrap().unwrap().to_vec();
    // The way back: addresses and ports change places, which no sum notices. The checksum stays undone.
    let ip = &mut packet[HEADER_BYTES..];
    ip[12..20].rotate_left(4);
    ip[20..24].rotate_left(2);
    let (header, rest) = packet.split_at(HEADER_BYTES);
    tun.write(&[io::IoSlice::new(header), io::IoSlice::new(rest)])
        .unwrap();
    let mut answer = [0; 100];
    let length = socket.recv(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"there and back");
    assert_eq!(counters.read().unwrap().devices["eth0"].rx_packets, 1);
    assert!(tun.write(&[io::IoSlice::new(&packet[..5])]).is_err());
}

#[test]
fn a_full_ring_is_counted_from_outside() {
    if !may_make_hosts() {
        return;
    }
    let (host, (tun, counters)) = host(5);
    let (socket, _) = socket(&host, 0);
    for _ in 0..20 {
        // The stack tells the sender of a full ring, or not; it counts in any case.
        let _ = socket.send(b"x");
    }
    let arena = Arena::new(1, 1).unwrap();
    let taken = (0..20).filter(|_| arena.discard(&tun).unwrap()).count();
    assert_eq!(taken, 5);
    let device = std::thread::spawn(move || counters.read().unwrap().devices["eth0"]);
    let device = device.join().unwrap();
    assert_eq!((device.tx_packets, device.tx_dropped), (5, 15));
}

#[test]
fn a_batch_of_datagrams_leaves_as_one_packet_where_the_kernel_can() {
    if !may_make_hosts() {
        return;
    }
    let (host, (tun, _)) = host(500);
    for family in 0..2 {
        let (socket, _) = socket(&host, family);
        farline_sys::datagram::set_segment_size(socket.as_fd(), 1_000).unwrap();
        socket.send(&[7; 30_000]).unwrap();
        let frame = Arena::new(1, 1).unwrap().read(&tun).unwrap().unwrap();
        assert_eq!(tun.segments_udp(), frame.len() > 30_000, "{} bytes", frame.len());
        assert!(
            !tun.segments_udp() || frame[1] == 5,
            "kind of the super-packet: {}",
            frame[1]
        );
    }
}

#[test]
fn settings_of_a_host_are_its_own() {
    if !may_make_hosts() {
        return;
    }
    let key = "net.ipv4.tcp_rmem";
    let before = read_sysctl(key).unwrap();
    let (host, _) =
        HostNamespaces::create("paris", None, || write_sysctl(key, "4096 131072 1073741824")).unwrap();
    assert_eq!(host.run(|| read_sysctl(key)).unwrap(), "4096\t131072\t1073741824");
    assert_eq!(read_sysctl(key).unwrap(), before);
    let error = host
        .run(|| write_sysctl("net.ipv4.tcp_mem", "1 2 3"))
        .unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("net.ipv4.tcp_mem"), "{error}");
    let error = host
        .run(|| write_sysctl("net.ipv4.tcp_rmem", "many"))
        .unwrap_err();
    assert!(error.to_string().contains("many"), "{error}");
}

#[test]
fn a_failed_set_up_is_the_callers_error() {
    if !may_make_hosts() {
        return;
    }
    let error = HostNamespaces::create("paris", None, || Err::<(), _>(io::Error::other("no"))).unwrap_err();
    assert_eq!(error.to_string(), "no");
    let missing = HostNamespaces::create("paris", Some(Path::new("/no/such/file")), || Ok(())).unwrap_err();
    assert!(missing.to_string().contains("/no/such/file"), "{missing}");
    let long = "x".repeat(65);
    assert!(
        HostNamespaces::create(&long, None, || Ok(()))
            .unwrap_err()
            .to_string()
            .contains("64 bytes")
    );
    let twice = HostNamespaces::create("paris", None, || {
        let _first = Tun::open("eth0", 500)?;
        Tun::open("eth0", 500)
    });
    assert!(twice.unwrap_err().to_string().contains("eth0"));
}
