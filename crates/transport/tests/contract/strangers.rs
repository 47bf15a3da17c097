//! Those who open without the right to, or do not open at all.

use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use farline_spec::RunSpec;
use farline_transport::{Role, StreamKey};

use crate::harness::{PATIENCE, Subject, V4, accept, key, transfer};

/// Opens with `wrong` keys first, then rightly, while one accept waits; the stream must be the right one.
fn only_the_right_key_opens(subject: &Subject, wrong: &[StreamKey]) {
    if !subject.promises("carries_data", subject.capabilities().carries_data) {
        return;
    }
    let spec = subject.spec(10_000);
    let mut listener = subject.listen(V4, &spec).unwrap();
    let remote = listener.local_addr();
    let (mut near, mut far) = std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener.as_mut(), &spec, &[0], Role::Receiver, PATIENCE));
        for key in wrong {
            // A transport may refuse already here, or only drop the stream later.
            let opened = open_briefly(subject, &spec, remote, key);
            assert!(
                opened.is_none_or(|sent| sent < 1_000_000_000),
                "a stream without the right key took data"
            );
        }
        assert!(!accepting.is_finished(), "a wrong key has ended the wait");
        let near = subject.connect(&spec, remote, Role::Sender, 0).unwrap();
        (near, accepting.join().unwrap().unwrap().1)
    });
    assert_eq!(
        far.granted().remote,
        near.granted().local,
        "the stream is with someone else"
    );
    assert_eq!(transfer(&mut near, &mut far, 10_000, &mut |_| {}), 10_000);
}

/// Opens with a short deadline and sends until it is refused; gives the bytes that were taken.
fn open_briefly(subject: &Subject, spec: &RunSpec, remote: SocketAddr, key: &StreamKey) -> Option<u64> {
    let (source, source_device) = (None, None);
    let deadline = Instant::now() + Duration::from_millis(200);
    let request = farline_transport::Connect {
        spec,
        role: Role::Sender,
        source,
        source_device,
        remote,
        key,
        deadline,
    };
    let mut stream = subject.transport().connect(&request).ok()?;
    let mut total = 0;
    while Instant::now() < deadline {
        match stream.source().unwrap().send_block(1_000) {
            Ok(sent) => total += sent as u64,
            Err(_) => break,
        }
    }
    Some(total)
}

pub fn a_wrong_proof_neither_opens_nor_ends_the_wait(subject: &Subject) {
    only_the_right_key_opens(
        subject,
        &[
            StreamKey {
                proof: [0; 32],
                ..key(0)
            },
            key(7),
        ],
    );
}

pub fn the_proof_of_another_stream_opens_nothing(subject: &Subject) {
    let other_session = StreamKey {
        session: [8; 16],
        ..key(0)
    };
    only_the_right_key_opens(subject, &[StreamKey { stream: 0, ..key(1) }, other_session]);
}

/// Connects without a word, or sends what is no preamble, by whatever the transport is carried by.
struct Strangers {
    connections: Vec<TcpStream>,
    datagrams: UdpSocket,
}

impl Strangers {
    fn come(remote: SocketAddr, count: usize) -> Self {
        let connections: Vec<_> = (0..count)
            .filter_map(|_| TcpStream::connect(remote).ok())
            .collect();
        for (index, mut connection) in connections.iter().enumerate() {
            // Some are silent, some send half a preamble, some noise.
            let _ = connection.write_all(&[b'f'; 200][..[0, 32, 200][index % 3]]);
        }
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        for length in [0, 1, 32, 64, 1_472] {
            let _ = datagrams.send_to(&vec![b'f'; length], remote);
        }
        Self {
            connections,
            datagrams,
        }
    }
}

fn strangers_do_not_matter(subject: &Subject, count: usize) {
    if !subject.promises("carries_data", subject.capabilities().carries_data) {
        return;
    }
    let spec = subject.spec(10_000);
    let mut listener = subject.listen(V4, &spec).unwrap();
    let remote = listener.local_addr();
    std::thread::scope(|scope| {
        let accepting = scope.spawn(|| accept(listener.as_mut(), &spec, &[0], Role::Receiver, PATIENCE));
        let strangers = Strangers::come(remote, count);
        let start = Instant::now();
        let mut near = subject.connect(&spec, remote, Role::Sender, 0).unwrap();
        let (_, mut far) = accepting.join().unwrap().unwrap();
        assert!(
            start.elapsed() < Duration::from_secs(4),
            "strangers held the stream up: {:?}",
            start.elapsed()
        );
        assert_eq!(transfer(&mut near, &mut far, 10_000, &mut |_| {}), 10_000);
        drop((strangers.connections, strangers.datagrams));
    });
}

pub fn the_silent_and_the_noisy_do_not_hold_up_the_rest(subject: &Subject) {
    strangers_do_not_matter(subject, 6);
}

pub fn a_crowd_of_the_silent_is_bounded(subject: &Subject) {
    strangers_do_not_matter(subject, 200);
}
