//! Two hosts, and a thread between them that does one thing to every packet.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use farline_emulator::packet::{Corruption, Form, Run, append_segment, corrupt, parse, too_big};
use farline_sys::arena::{Arena, Frame};
use farline_sys::interface;
use farline_sys::namespace::HostNamespaces;
use farline_sys::poller::Poller;
use farline_sys::stack_counters::StackCounters;
use farline_sys::tun::Tun;
use farline_sys::wake::Waker;

/// Addresses of the two hosts, by family.
pub const ADDRESSES: [[&str; 2]; 2] = [["10.77.0.1", "10.77.0.2"], ["fd77::1", "fd77::2"]];

/// False, and says so, where this user may not make hosts.
pub fn may_make_hosts() -> bool {
    match HostNamespaces::create("probe", None, || Tun::open("eth0", 1)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            println!("not run: {error}");
            false
        }
        _ => true,
    }
}

/// What becomes of packets.
#[derive(Debug, Clone, Copy)]
pub enum Way {
    /// Super-packets are cut at places that look random.
    Cut,
    /// Every segment on its own, with its checksum.
    Segments,
    /// Every segment with a bit turned over.
    Noise,
    /// The same, with its checksum mended.
    HiddenNoise,
    /// Marked as having met congestion.
    Mark,
    /// Segments longer than this are answered instead.
    Narrow(u32),
}

/// What happened.
#[derive(Debug)]
pub struct Done {
    pub cuts: u64,
    pub refused: u64,
    pub answers: u64,
    counters: Vec<StackCounters>,
    /// A device that is gone counts no more.
    _devices: [Tun; 2],
}

impl Done {
    /// No packet was refused or dropped by a host, and as many had wrong checksums as stated.
    pub fn check_stacks(&self, checksum_errors: u64) {
        let counts = self.counters.iter().map(|counters| counters.read().unwrap());
        let mut wrong = 0;
        for counts in counts {
            let device = counts.devices["eth0"];
            assert_eq!(
                (device.rx_errors, device.rx_dropped, device.tx_dropped),
                (0, 0, 0)
            );
            assert_eq!(counts.receive_buffer_errors, 0);
            wrong += counts.checksum_errors;
        }
        assert_eq!(wrong, checksum_errors);
    }
}

/// The hosts and the thread.
pub struct Forwarder {
    pub hosts: [HostNamespaces; 2],
    thread: JoinHandle<Done>,
    waker: Arc<Waker>,
    is_over: Arc<AtomicBool>,
}

impl Forwarder {
    pub fn start(way: Way, mtu_bytes: u32) -> Self {
        let [(one, first, a), (other, second, b)] = [0, 1].map(|host| make_host(host, mtu_bytes));
        let (waker, is_over) = (Arc::new(Waker::new().unwrap()), Arc::new(AtomicBool::new(false)));
        let (wake, over) = (Arc::clone(&waker), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let mut engine = Engine::new(way, [first, second]);
            engine.run(&wake, &over);
            Done {
                cuts: engine.cuts,
                refused: engine.refused,
                answers: engine.answers,
                counters: vec![a, b],
                _devices: engine.devices,
            }
        });
        Self {
            hosts: [one, other],
            thread,
            waker,
            is_over,
        }
    }

    pub fn stop(self) -> Done {
        self.is_over.store(true, Ordering::Relaxed);
        self.waker.wake();
        self.thread.join().unwrap()
    }
}

fn make_host(host: usize, mtu_bytes: u32) -> (HostNamespaces, Tun, StackCounters) {
    let set_up = || {
        let tun = Tun::open("eth0", 10_000)?;
        interface::keep_quiet("eth0")?;
        interface::set_mtu("eth0", mtu_bytes)?;
        interface::bring_up("eth0")?;
        for addresses in ADDRESSES {
            let parsed = |host: usize| -> IpAddr { addresses[host].parse().unwrap() };
            interface::add_address("eth0", parsed(host))?;
            interface::add_route("eth0", parsed(1 - host))?;
        }
        Ok((tun, StackCounters::open()?))
    };
    let (namespaces, (tun, counters)) = HostNamespaces::create(["near", "far"][host], None, set_up).unwrap();
    (namespaces, tun, counters)
}

struct Engine {
    way: Way,
    devices: [Tun; 2],
    arena: Arena,
    state: u64,
    cuts: u64,
    refused: u64,
    answers: u64,
}

impl Engine {
    fn new(way: Way, devices: [Tun; 2]) -> Self {
        Self {
            way,
            devices,
            arena: Arena::new(8 << 20, 64 << 20).unwrap(),
            state: 88_172_645_463_325_252,
            cuts: 0,
            refused: 0,
            answers: 0,
        }
    }

    fn run(&mut self, waker: &Waker, is_over: &AtomicBool) {
        let mut poller = Poller::new().unwrap();
        for device in &self.devices {
            poller.add(device.as_fd(), 0).unwrap();
        }
        poller.add(waker.as_fd(), 1).unwrap();
        while !is_over.load(Ordering::Relaxed) {
            poller.wait(None).unwrap();
            for from in 0..2 {
                while let Some(frame) = self.arena.read(&self.devices[from]).unwrap() {
                    self.pass(from, &frame);
                }
            }
        }
    }

    fn pass(&mut self, from: usize, frame: &Frame) {
        let form = parse(frame).unwrap().form;
        match self.way {
            Way::Cut => self.cut(from, frame, &form),
            Way::Segments => self.each(from, &form, |out, segment| {
                append_segment(out, frame, &form, segment, false);
            }),
            Way::Noise => self.break_all(from, frame, &form, Corruption::Visible),
            Way::HiddenNoise => self.break_all(from, frame, &form, Corruption::Hidden),
            Way::Mark => self.send(from, frame, &form, (0, form.segments()), true),
            Way::Narrow(mtu_bytes) => self.narrow(from, frame, &form, mtu_bytes),
        }
    }

    fn cut(&mut self, from: usize, frame: &Frame, form: &Form) {
        let mut first = 0;
        while first < form.segments() {
            let left = form.segments() - first;
            let count = 1 + (self.random() % u64::from(left)) as u16;
            self.cuts += u64::from(count < left);
            self.send(from, frame, form, (first, count), false);
            first += count;
        }
    }

    fn send(&mut self, from: usize, frame: &Frame, form: &Form, (first, count): (u16, u16), marked: bool) {
        let piece = form.piece(frame, Run { first, count, marked });
        let parts = [IoSlice::new(&piece.header), IoSlice::new(&frame[piece.payload])];
        self.write(1 - from, &parts);
    }

    fn each(&mut self, from: usize, form: &Form, make: impl Fn(&mut Vec<u8>, u16)) {
        for segment in 0..form.segments() {
            let mut out = Vec::new();
            make(&mut out, segment);
            self.write(1 - from, &[IoSlice::new(&out)]);
        }
    }

    fn break_all(&mut self, from: usize, frame: &Frame, form: &Form, corruption: Corruption) {
        let entropy = self.random();
        self.each(from, form, |out, segment| {
            assert!(corrupt(
                out,
                frame,
                form,
                (segment, false),
                entropy + u64::from(segment),
                corruption
            ));
        });
    }

    fn narrow(&mut self, from: usize, frame: &Frame, form: &Form, mtu_bytes: u32) {
        if form.segment_bytes() <= mtu_bytes {
            return self.send(from, frame, form, (0, form.segments()), false);
        }
        let router = parse(frame).unwrap().destination;
        let answer = too_big(frame, form, 0, mtu_bytes, router).unwrap();
        self.answers += 1;
        self.write(from, &[IoSlice::new(&answer)]);
    }

    fn write(&mut self, to: usize, parts: &[IoSlice<'_>]) {
        if self.devices[to].write(parts).is_err() {
            self.refused += 1;
        }
    }

    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state >> 8
    }
}
