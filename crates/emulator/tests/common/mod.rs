//! An emulator for one test, and sockets inside its hosts.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use farline_emulator::relay::{Emulator, PipeReport, RelayOptions};
use farline_spec::{Failure, FailureKind, from_json};
use farline_sys::namespace::HostNamespaces;

/// Real time on a machine with few CPUs is for one test at a time.
static TURN: Mutex<()> = Mutex::new(());
pub const A: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 1));
pub const B: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 77, 0, 2));

pub fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running emulator, for as long as it is this test's turn.
pub struct Bed {
    pub emulator: Emulator,
    pub folder: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

/// Two hosts `a` and `b` and the link `wan`, whose both directions are `pipe`.
pub fn pair(pipe: &str) -> String {
    format!(
        r#"{{"name":"test","seed":7,"interval_s":0.05,"hosts":[{{"name":"a"}},{{"name":"b"}}],
            "links":[{{"name":"wan","a":"a","b":"b","forward":{pipe}}}]}}"#
    )
}

pub fn folder() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("farline-relay-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

pub fn start(topology: &str) -> Result<Emulator, Failure> {
    let hosts_file = folder().join("hosts");
    Emulator::start(from_json(topology)?, RelayOptions { hosts_file })
}

impl Bed {
    /// None, with a word about it, where this user may not make network namespaces.
    pub fn of(topology: &str) -> Option<Self> {
        let turn = turn();
        match start(topology) {
            Ok(emulator) => Some(Self {
                emulator,
                folder: folder(),
                _turn: turn,
            }),
            Err(failure) if failure.kind == FailureKind::System && !may_make_namespaces() => {
                println!("not run: {failure}");
                None
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    /// Runs `work` on a thread inside a host; sockets it opens stay there.
    pub fn inside<T: Send>(&self, host: &str, work: impl FnOnce() -> io::Result<T> + Send) -> T {
        self.namespaces(host).run(work).unwrap()
    }

    pub fn namespaces(&self, host: &str) -> HostNamespaces {
        let paths = self.emulator.namespace_paths(host).unwrap();
        let open = |path: &str| OwnedFd::from(File::open(path).unwrap());
        HostNamespaces {
            network: open(&paths.net),
            mount: open(&paths.mount),
            names: open(&paths.uts),
            sys_refusal: None,
        }
    }

    pub fn pipe(&self, number: usize) -> PipeReport {
        self.emulator.counters().unwrap().0.pipes[number].clone()
    }

    /// A socket in each host; the one in `b` sends back what it gets until the other end is told to stop.
    pub fn echo(&self, near: IpAddr, far: IpAddr) -> Echo {
        let bind = |address: IpAddr| move || UdpSocket::bind(SocketAddr::new(address, 0));
        let (here, there) = (self.inside("a", bind(near)), self.inside("b", bind(far)));
        here.connect(there.local_addr().unwrap()).unwrap();
        let answering = std::thread::spawn(move || {
            let mut bytes = [0; 2048];
            loop {
                let (length, from) = there.recv_from(&mut bytes).unwrap();
                if length == 0 {
                    return;
                }
                there.send_to(&bytes[..length], from).unwrap();
            }
        });
        Echo {
            here,
            answering: Some(answering),
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        remove_folder();
    }
}

/// The files of a test; hosts keep what they have mounted.
pub fn remove_folder() {
    // What cannot be removed is in nobody's way.
    let _ = std::fs::remove_dir_all(
        std::env::temp_dir().join(format!("farline-relay-test-{}", std::process::id())),
    );
}

fn may_make_namespaces() -> bool {
    HostNamespaces::create("probe", None, || Ok(())).is_ok()
}

/// Datagrams there and back.
pub struct Echo {
    here: UdpSocket,
    answering: Option<std::thread::JoinHandle<()>>,
}

impl Echo {
    /// Round trip of one datagram; none if there is no answer in time.
    pub fn round_trip(&self, patience: Duration) -> Option<Duration> {
        let mut bytes = [0; 64];
        self.here.set_read_timeout(Some(patience)).unwrap();
        let before = Instant::now();
        self.here.send(b"ping").unwrap();
        self.here.recv(&mut bytes).ok().map(|_| before.elapsed())
    }

    /// The shortest of a few round trips.
    pub fn shortest(&self) -> Duration {
        self.shortest_until(Duration::MAX)
    }

    /// The same, and of more if none is shorter than `enough`: what other programs on the machine add is not the path's.
    pub fn shortest_until(&self, enough: Duration) -> Duration {
        let patience = Instant::now() + Duration::from_secs(30);
        let mut shortest = None;
        for number in 1.. {
            let one = self.round_trip(Duration::from_secs(5));
            shortest = shortest.into_iter().chain(one).min();
            let is_short = shortest.is_some_and(|time| time < enough);
            if number >= 10 && (is_short || Instant::now() > patience) {
                break;
            }
        }
        shortest.expect("an answer")
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // Nothing more comes back when the emulator is gone, and then nobody waits for the thread.
        let told = self.here.send(&[]).is_ok() && !std::thread::panicking();
        if let Some(thread) = self.answering.take().filter(|_| told) {
            thread.join().unwrap();
        }
    }
}
