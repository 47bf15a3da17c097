//! Real kernels at both ends: what a splitter, a marker, a line's noise and a router's answer do to their streams.

mod forwarder;

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use farline_sys::namespace::HostNamespaces;
use farline_sys::{datagram, option};
use forwarder::{ADDRESSES, Forwarder, Way, may_make_hosts};

const PATIENCE: Duration = Duration::from_secs(60);
const DATAGRAM_BYTES: usize = 1_000;

/// A stream without a pattern that could hide bytes out of place.
struct Stream(u64);

impl Stream {
    fn next(&mut self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            chunk.copy_from_slice(&(self.0 ^ (self.0 >> 29)).to_le_bytes()[..chunk.len()]);
        }
    }
}

/// A connection between the hosts, opened through the forwarder.
fn connect(hosts: &[HostNamespaces; 2], family: usize) -> [TcpStream; 2] {
    let address: IpAddr = ADDRESSES[family][1].parse().unwrap();
    let listener = hosts[1].run(|| TcpListener::bind((address, 0))).unwrap();
    let to = listener.local_addr().unwrap();
    let near = hosts[0]
        .run(|| TcpStream::connect_timeout(&to, PATIENCE))
        .unwrap();
    let (far, _) = listener.accept().unwrap();
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
    }
    [near, far]
}

/// Sends `blocks` of 64 KiB from the one host to the other and compares every byte.
fn carry([mut near, mut far]: [TcpStream; 2], blocks: usize) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, mut block) = (Stream(1), vec![0; 65_536]);
            for _ in 0..blocks {
                stream.next(&mut block);
                near.write_all(&block).unwrap();
            }
        });
        let (mut stream, mut expected, mut block) = (Stream(1), vec![0; 65_536], vec![0; 65_536]);
        for number in 0..blocks {
            stream.next(&mut expected);
            far.read_exact(&mut block).unwrap();
            assert!(block == expected, "block {number}");
        }
        assert_eq!(far.read(&mut block).unwrap(), 0);
    });
}

/// Sockets of the two hosts: a connected sender, and a receiver with room for everything.
fn sockets(hosts: &[HostNamespaces; 2], family: usize) -> [UdpSocket; 2] {
    let bind = |host: usize| {
        let address: IpAddr = ADDRESSES[family][host].parse().unwrap();
        hosts[host].run(|| UdpSocket::bind((address, 0))).unwrap()
    };
    let (near, far) = (bind(0), bind(1));
    near.connect(far.local_addr().unwrap()).unwrap();
    option::force_receive_buffer(far.as_fd(), 64 << 20).unwrap();
    far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    [near, far]
}

/// Sends batches of 40 datagrams; gives them all.
fn send_batches(near: &UdpSocket, batches: usize) -> Vec<u8> {
    datagram::set_segment_size(near.as_fd(), DATAGRAM_BYTES as u16).unwrap();
    let mut bytes = vec![0; batches * 40 * DATAGRAM_BYTES];
    Stream(2).next(&mut bytes);
    for batch in bytes.chunks(40 * DATAGRAM_BYTES) {
        assert_eq!(near.send(batch).unwrap(), batch.len());
    }
    bytes
}

fn receive(far: &UdpSocket) -> Option<Vec<u8>> {
    let mut buffer = vec![0; 65_536];
    let length = far.recv(&mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

#[test]
fn a_hundred_megabytes_arrive_whole_however_their_packets_are_cut() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::Cut, 1_500);
        carry(connect(&forwarder.hosts, family), 1_600);
        let done = forwarder.stop();
        assert!(done.cuts > 1_000, "{done:?}");
        assert_eq!(done.refused, 0, "{done:?}");
        done.check_stacks(0);
    }
}

#[test]
fn segments_with_checksums_done_pass_the_receivers_check() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::Segments, 9_000);
        carry(connect(&forwarder.hosts, family), 320);
        let [near, far] = sockets(&forwarder.hosts, family);
        let sent = send_batches(&near, 5);
        let received: Vec<u8> = (0..200)
            .flat_map(|_| receive(&far).expect("a datagram"))
            .collect();
        assert!(received == sent);
        forwarder.stop().check_stacks(0);
    }
}

#[test]
fn batches_of_datagrams_arrive_whole_and_in_order_however_they_are_cut() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::Cut, 1_500);
        let [near, far] = sockets(&forwarder.hosts, family);
        let sent = send_batches(&near, 50);
        for (number, datagram) in sent.chunks(DATAGRAM_BYTES).enumerate() {
            assert!(receive(&far).as_deref() == Some(datagram), "datagram {number}");
        }
        let done = forwarder.stop();
        assert!(done.cuts > 20, "{done:?}");
        done.check_stacks(0);
    }
}

#[test]
fn visible_corruption_is_dropped_and_counted_by_the_receiver() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::Noise, 1_500);
        let [near, far] = sockets(&forwarder.hosts, family);
        far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        send_batches(&near, 2);
        assert_eq!(receive(&far), None);
        forwarder.stop().check_stacks(80);
    }
}

#[test]
fn hidden_corruption_arrives_as_if_nothing_were_wrong() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::HiddenNoise, 1_500);
        let [near, far] = sockets(&forwarder.hosts, family);
        let sent = send_batches(&near, 2);
        for datagram in sent.chunks(DATAGRAM_BYTES) {
            let got = receive(&far).expect("a datagram");
            let apart = got
                .iter()
                .zip(datagram)
                .map(|(one, other)| (one ^ other).count_ones());
            assert_eq!((got.len(), apart.sum::<u32>()), (DATAGRAM_BYTES, 1));
        }
        forwarder.stop().check_stacks(0);
    }
}

#[test]
fn marks_reach_the_receiver_as_congestion_experienced() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::Mark, 1_500);
        let [near, far] = sockets(&forwarder.hosts, family);
        let sent = send_batches(&near, 3);
        let received: Vec<u8> = (0..120)
            .flat_map(|_| receive(&far).expect("a datagram"))
            .collect();
        assert!(received == sent);
        let marked = forwarder.hosts[1].run(|| marked_packets(family)).unwrap();
        assert!(marked >= 3, "{marked} marked");
        forwarder.stop().check_stacks(0);
    }
}

/// Super-packets that the host's stack found marked.
fn marked_packets(family: usize) -> std::io::Result<u64> {
    let (file, name) = [("netstat", "InCEPkts"), ("snmp6", "Ip6InCEPkts")][family];
    let text = std::fs::read_to_string(format!("/proc/thread-self/net/{file}"))?;
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_ascii_whitespace().collect())
        .collect();
    let found = match family {
        0 => lines.windows(2).find_map(|pair| {
            let at = pair[0].iter().position(|word| *word == name)?;
            pair[1].get(at).copied()
        }),
        _ => lines.iter().find(|line| line[0] == name).map(|line| line[1]),
    };
    Ok(found
        .and_then(|value| value.parse().ok())
        .expect("the kernel counts marks"))
}

#[test]
fn a_sender_heeds_the_answer_to_a_packet_that_is_too_big() {
    if !may_make_hosts() {
        return;
    }
    for family in 0..2 {
        let forwarder = Forwarder::start(Way::Narrow(1_400), 9_000);
        carry(connect(&forwarder.hosts, family), 80);
        let done = forwarder.stop();
        assert!((1..100).contains(&done.answers), "{done:?}");
        done.check_stacks(0);
    }
}
