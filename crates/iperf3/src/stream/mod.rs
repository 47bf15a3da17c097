//! The data of a session: one thread per stream, all let go at once.
//!
//! What the threads share with the session is a [`Course`] (may they go on?) and a [`Tally`] each (what has moved). They take no
//! lock per block. A stream that fails ends by itself; the session learns of it from [`Lane::error`] and goes on, for the client
//! decides when a test is over.

mod pace;
mod quota;
mod tally;
mod tcp;
mod udp;

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use farline_proto::iperf3::parameters::Parameters;
use farline_spec::Failure;
use farline_sys::process::{CpuTime, cpu_time_of_thread};
use farline_sys::tcp_info::TcpInfo;
use farline_sys::thread::pin_to_cpu;
use farline_transport::SharedRate;
use socket2::Socket;

pub use tally::{Count, Tally};

use quota::Quota;

/// Longest time inside one blocking call, so that a thread can look at its course.
pub const SLICE: Duration = Duration::from_millis(100);
/// Longest that a receiver may go on with what has come, once the test is over.
const DRAIN: Duration = Duration::from_secs(1);
/// Longest that it may go on with what is still under way, and without a byte, where all that was sent is to be counted.
const REST: Duration = Duration::from_secs(2);
const QUIET: Duration = Duration::from_millis(60);

const WAITING: u8 = 0;
const FLOWING: u8 = 1;
const ENDING: u8 = 2;
const DRAINING: u8 = 3;
const OVER: u8 = 4;

/// How far a session's data are.
#[derive(Debug, Default)]
pub struct Course(AtomicU8);

impl Course {
    fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Release);
    }

    fn phase(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }

    /// Whether senders may go on.
    fn may_send(&self) -> bool {
        self.phase() == FLOWING
    }

    /// Whether receivers take what has come and nothing more.
    fn is_draining(&self) -> bool {
        self.phase() == DRAINING
    }

    /// Whether receivers have to stop.
    fn is_over(&self) -> bool {
        self.phase() >= OVER
    }
}

/// What a stream's thread works with.
struct Job {
    wanted: Arc<Parameters>,
    socket: Arc<Socket>,
    tally: Arc<Tally>,
    course: Arc<Course>,
    /// What all sessions of the client's address may move together.
    rate: Option<Arc<SharedRate>>,
    /// What all senders of the session may send together.
    quota: Option<Arc<Quota>>,
    /// Number of the stream, for its payload.
    index: u16,
}

/// One stream of a session.
#[derive(Debug)]
pub struct Lane {
    /// Its number, as both ends know it.
    pub id: i64,
    /// Whether this end sends.
    pub is_sender: bool,
    /// What has moved.
    pub tally: Arc<Tally>,
    socket: Arc<Socket>,
    thread: Option<JoinHandle<Done>>,
    cpu: CpuTime,
    error: Option<String>,
}

/// What a thread leaves.
#[derive(Debug, Default)]
struct Done {
    cpu: CpuTime,
    error: Option<io::Error>,
}

impl Lane {
    /// A stream that is open and does nothing yet.
    pub fn new(id: i64, is_sender: bool, socket: Socket) -> Self {
        Self {
            id,
            is_sender,
            tally: Arc::default(),
            socket: Arc::new(socket),
            thread: None,
            cpu: CpuTime::default(),
            error: None,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Segments sent again so far; `None` where the kernel does not tell.
    pub fn retransmits(&self) -> Option<u64> {
        TcpInfo::of(self.socket.as_fd())
            .ok()
            .map(|info| info.raw().total_retrans.into())
    }

    /// Congestion window now; `None` where the kernel does not tell.
    pub fn cwnd_bytes(&self) -> Option<u64> {
        let info = TcpInfo::of(self.socket.as_fd()).ok()?;
        Some(u64::from(info.raw().snd_cwnd) * u64::from(info.raw().snd_mss))
    }

    /// CPU time of its thread, once that has ended.
    pub fn cpu(&self) -> CpuTime {
        self.cpu
    }

    /// What ended it before its time.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

/// All streams of a session, and their threads.
#[derive(Debug)]
pub struct Lanes {
    /// The streams, in the order in which they were opened.
    pub lanes: Vec<Lane>,
    course: Arc<Course>,
}

impl Lanes {
    /// Starts a thread per stream; they wait until [`Self::release`].
    ///
    /// # Errors
    /// [`FailureKind::System`](farline_spec::FailureKind::System) when a thread cannot be made or its socket not be set.
    pub fn start(
        lanes: Vec<Lane>,
        wanted: &Arc<Parameters>,
        rate: Option<&Arc<SharedRate>>,
    ) -> Result<Self, Failure> {
        let mut all = Self {
            lanes,
            course: Arc::default(),
        };
        let quota = Quota::of(wanted).map(Arc::new);
        for (index, lane) in (0u16..).zip(&mut all.lanes) {
            let job = Job {
                wanted: Arc::clone(wanted),
                socket: Arc::clone(&lane.socket),
                tally: Arc::clone(&lane.tally),
                course: Arc::clone(&all.course),
                rate: rate.cloned(),
                quota: quota.clone(),
                index,
            };
            lane.thread = Some(job.spawn(lane.is_sender)?);
        }
        Ok(all)
    }

    /// Lets all threads go.
    pub fn release(&self) {
        self.course.set(FLOWING);
        let threads = self.lanes.iter().filter_map(|lane| lane.thread.as_ref());
        threads.for_each(|handle| handle.thread().unpark());
    }

    /// Ends the data: senders stop, receivers take what the kernel has for them already, and what is under way if all of it
    /// `counts`. Then the streams are closed: clients of some versions read whole blocks, and would wait for the rest of one.
    /// Gives when the last byte came that was waited for.
    pub fn finish(&mut self, counts: bool) -> Instant {
        self.course.set(ENDING);
        let now = Instant::now();
        let last = if counts { self.wait_for_rest() } else { now };
        self.course.set(DRAINING);
        for lane in self.lanes.iter().filter(|lane| !lane.is_sender) {
            // Refused by a connection that is gone.
            let _ = lane.socket.shutdown(Shutdown::Read);
        }
        self.wait(DRAIN);
        self.stop();
        for lane in &self.lanes {
            let _ = lane.socket.shutdown(Shutdown::Both);
        }
        last
    }

    fn wait_for_rest(&self) -> Instant {
        let received = || -> u64 {
            let lanes = self.lanes.iter().filter(|lane| !lane.is_sender);
            lanes.map(|lane| lane.tally.count().bytes).sum()
        };
        let (began, mut last, mut before) = (Instant::now(), Instant::now(), received());
        while last.elapsed() < QUIET && began.elapsed() < REST {
            std::thread::sleep(Duration::from_millis(1));
            let now = received();
            if now != before {
                (last, before) = (Instant::now(), now);
            }
        }
        last
    }

    /// Ends all threads now.
    pub fn stop(&mut self) {
        self.course.set(OVER);
        for lane in &mut self.lanes {
            let Some(thread) = lane.thread.take() else {
                continue;
            };
            thread.thread().unpark();
            if !thread.is_finished() {
                let _ = lane.socket.shutdown(Shutdown::Both);
            }
            // A panic was reported by the panic hook.
            let done = thread.join().unwrap_or_default();
            lane.cpu = done.cpu;
            lane.error = done.error.map(|error| error.to_string());
        }
    }

    fn wait(&self, most: Duration) {
        let deadline = Instant::now() + most;
        let is_busy = |lane: &Lane| lane.thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while self.lanes.iter().any(is_busy) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Threads that nobody waits for any more are ended.
impl Drop for Lanes {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Job {
    fn spawn(self, is_sender: bool) -> Result<JoinHandle<Done>, Failure> {
        let failed = |error: &io::Error| Failure::system("starting a stream", error);
        self.socket
            .set_nonblocking(false)
            .map_err(|error| failed(&error))?;
        self.socket
            .set_read_timeout(Some(SLICE))
            .map_err(|error| failed(&error))?;
        self.socket
            .set_write_timeout(Some(SLICE))
            .map_err(|error| failed(&error))?;
        let (said, ready) = crossbeam_channel::bounded(1);
        let cpu = self.wanted.server_cpu;
        let name = format!("fl-iperf3-{}", self.index);
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let pinned = cpu.map_or(Ok(()), |cpu| pin_to_cpu(cpu.into()));
            let is_pinned = pinned.is_ok();
            // Who started it waits for this.
            let _ = said.send(pinned);
            if is_pinned {
                self.run(is_sender)
            } else {
                Done::default()
            }
        });
        let thread = thread.map_err(|error| failed(&error))?;
        match ready.recv() {
            Ok(Ok(())) | Err(_) => Ok(thread),
            Ok(Err(error)) => Err(failed(&error)),
        }
    }

    fn run(self, is_sender: bool) -> Done {
        while self.course.phase() == WAITING {
            std::thread::park_timeout(SLICE);
        }
        let moved = match (self.wanted.is_udp(), is_sender) {
            (false, true) => tcp::send(&self),
            (false, false) => tcp::receive(&self),
            (true, true) => udp::send(&self),
            (true, false) => udp::receive(&self),
        };
        Done {
            cpu: cpu_time_of_thread().unwrap_or_default(),
            error: moved.err(),
        }
    }
}

/// Whether a call gave nothing because its slice of time was over.
fn is_slice(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Payload of a stream: what no device on the path can compress, or iperf3's digits over and over.
fn payload(wanted: &Parameters, index: u16, length: usize) -> Box<[u8]> {
    if wanted.repeating_payload {
        return b"0123456789".iter().copied().cycle().take(length).collect();
    }
    farline_transport::payload(0, index, length)
}

/// Something that several threads may fail to lock; what is inside is whole all the same.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
