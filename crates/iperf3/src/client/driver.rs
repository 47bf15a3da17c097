//! Does what the client's machine says.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crossbeam_channel::{Receiver, Sender, unbounded};
use farline_proto::iperf3::client::{ClientAction, ClientMachine, Ending as Goodbye};
use farline_proto::iperf3::parameters::Parameters;
use farline_proto::iperf3::{COOKIE_BYTES, Cookie, cookie};
use farline_session::client::record::Ending;
use farline_session::machine::watchdog;
use farline_session::run::{End, OpenStream, Run, RunEvent, RunOutcome, RunRequest, RunTurn};
use farline_session::{Contact, Event, RunControl, Target};
use farline_spec::{Direction, Failure, FailureKind, RunSpec};
use farline_sys::wake::{Interest, poll_readable, poll_ready};
use farline_transport::Probe;
use ring::rand::{SecureRandom, SystemRandom};
use socket2::SockRef;
use tracing::debug;

use super::open::Opening;
use super::report::{failure_of, own_results, server_part};
use super::wishes::parameters;

/// Longest that the server may take to take what is sent to it.
const SEND_MOST: Duration = Duration::from_secs(10);
/// Longest that streams may take to end once the server was told.
const DRAIN: Duration = Duration::from_secs(5);
/// How often bytes are counted where they end the run.
const COUNT_EVERY: Duration = Duration::from_millis(5);
/// Bytes of a datagram where the path does not say what fits.
const USUAL_SEGMENT: u32 = 1460;
const READ_BYTES: usize = 16_384;

/// One run from the connection to the record.
pub fn run(target: &Target, spec: RunSpec, events: &Sender<Event>, control: RunControl, run_id: String) {
    let began = Instant::now();
    control.refuse_wishes();
    let mut ending = Ending {
        run_id,
        ..Ending::new(target.address(), spec.clone())
    };
    match Driver::connect(target, spec, events, control, began) {
        Ok(driver) => driver.drive(&mut ending),
        Err(failure) => ending.failure = Some(failure),
    }
    ending.session = began.elapsed();
    // Whoever dropped the handle hears nothing any more.
    let _ = events.send(Event::Done(Box::new(ending.into_record())));
}

struct Driver<'a> {
    machine: ClientMachine,
    spec: RunSpec,
    wanted: Parameters,
    cookie: Cookie,
    control: TcpStream,
    server: SocketAddr,
    address: String,
    events: &'a Sender<Event>,
    orders: RunControl,
    /// What machine time counts from.
    began: Instant,
    streams: Vec<OpenStream>,
    run: Option<Run>,
    run_events: Receiver<RunEvent>,
    to_run: Sender<RunEvent>,
    /// Streams as they are counted where bytes end the run.
    probes: Vec<Arc<dyn Probe>>,
    /// When the run has lasted long enough, where this end only receives.
    ends_at: Option<Instant>,
    run_began: Option<SystemTime>,
    outcome: RunOutcome,
    was_stopped: bool,
    is_closed: bool,
    failure: Option<Failure>,
}

impl<'a> Driver<'a> {
    fn connect(
        target: &Target,
        spec: RunSpec,
        events: &'a Sender<Event>,
        orders: RunControl,
        began: Instant,
    ) -> Result<Self, Failure> {
        let spec = spec.resolved()?;
        // What cannot be asked is refused before anybody is called.
        parameters(&spec, USUAL_SEGMENT)?;
        let allowed = Duration::from_millis(spec.connect_timeout_ms.get().into());
        let unwanted = || orders.is_stopped() || orders.is_aborted();
        let control = Contact::make_unless(target, spec.ip_version, allowed, &unwanted)?.into_socket();
        let failed = |error: io::Error| Failure::system("control socket", &error);
        let server = control.peer_addr().map_err(failed)?;
        control.set_nonblocking(true).map_err(failed)?;
        control.set_nodelay(true).map_err(failed)?;
        let segment = SockRef::from(&control).tcp_mss().unwrap_or(USUAL_SEGMENT);
        let wanted = parameters(&spec, segment)?;
        let cookie = new_cookie()?;
        debug!(server = %server, streams = wanted.total(), "iperf3 server connected");
        let (to_run, run_events) = unbounded();
        Ok(Self {
            machine: ClientMachine::new(&cookie, wanted.clone()),
            spec,
            wanted,
            cookie,
            control,
            server,
            address: target.address(),
            events,
            orders,
            began,
            streams: Vec::new(),
            run: None,
            run_events,
            to_run,
            probes: Vec::new(),
            ends_at: None,
            run_began: None,
            outcome: RunOutcome::default(),
            was_stopped: false,
            is_closed: false,
            failure: None,
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn drive(mut self, ending: &mut Ending) {
        self.act();
        while !self.is_closed {
            if let Err(error) = self.turn() {
                debug!(%error, "the control connection failed");
                self.machine.handle_closed();
            }
            self.act();
        }
        self.close(ending);
    }

    /// Waits for the server, for the run, for a time that is due, and deals with what there is.
    fn turn(&mut self) -> io::Result<()> {
        let waker = Arc::clone(self.orders.waker());
        let ready = poll_readable(&[self.control.as_fd(), waker.as_fd()], self.patience())?;
        waker.drain();
        self.obey();
        self.look_at_run();
        if ready[0] {
            self.read()?;
        }
        self.look_at_clock(Instant::now());
        self.machine.handle_timeout(self.now());
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        let machine = self
            .machine
            .poll_timeout()
            .map(|at| at.saturating_sub(self.now()));
        let end = self
            .ends_at
            .map(|at| at.saturating_duration_since(Instant::now()));
        let count = (!self.probes.is_empty()).then_some(COUNT_EVERY);
        [machine, end, count].into_iter().flatten().min()
    }

    fn obey(&mut self) {
        if self.orders.is_aborted() {
            self.machine.handle_stop();
        }
        if self.orders.is_stopped() && !std::mem::replace(&mut self.was_stopped, true) {
            self.failure = Some(Failure::new(
                FailureKind::Interrupted,
                "the run was stopped before its end",
            ));
            match &self.run {
                Some(run) if self.wanted.forward() > 0 => run.stop(),
                Some(_) => self.ends_at = Some(Instant::now()),
                None => self.machine.handle_stop(),
            }
        }
    }

    fn look_at_run(&mut self) {
        while let Ok(event) = self.run_events.try_recv() {
            match event {
                RunEvent::Samples(samples) => emit(self.events, Event::Samples(samples)),
                // Of a run both ways the senders' end is everybody's.
                RunEvent::Turn(RunTurn::SendersDone) => self.machine.handle_enough(self.now()),
                RunEvent::Turn(RunTurn::AllDone) if self.wanted.backward() > 0 => {
                    self.machine.handle_enough(self.now())
                }
                RunEvent::Turn(RunTurn::Failed(failure)) => {
                    self.failure.get_or_insert(failure);
                    self.machine.handle_stop();
                }
                // An iperf3 run has neither files nor streams that come later, and its streams are open before it begins.
                RunEvent::Turn(RunTurn::AllDone | RunTurn::StreamsOpen | RunTurn::NotOpen(_))
                | RunEvent::LateStreams { .. }
                | RunEvent::MoverSamples(_)
                | RunEvent::Progress(_)
                | RunEvent::Stages(_) => {}
            }
        }
    }

    /// Ends a run in which the server alone sends: nobody else looks at the clock.
    fn look_at_clock(&mut self, now: Instant) {
        let received: i64 = self.probes.iter().map(|probe| probe.sample().bytes.max(0)).sum();
        let has_all = !self.probes.is_empty() && received.unsigned_abs() >= self.wanted.bytes;
        if has_all || self.ends_at.is_some_and(|at| now >= at) {
            (self.ends_at, self.probes) = (None, Vec::new());
            self.machine.handle_enough(self.now());
        }
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        while !self.is_closed {
            match self.control.read(&mut bytes) {
                Ok(0) => {
                    self.machine.handle_closed();
                    return Ok(());
                }
                Ok(length) => {
                    self.machine.handle_bytes(self.now(), &bytes[..length]);
                    self.act();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn act(&mut self) {
        while let Some(action) = self.machine.poll_action() {
            let done = match action {
                ClientAction::Send(bytes) => self.send(&bytes),
                ClientAction::OpenStreams => self.open(),
                ClientAction::Run => self.start(),
                ClientAction::Collect => {
                    self.collect();
                    Ok(())
                }
                ClientAction::Close => {
                    self.is_closed = true;
                    Ok(())
                }
            };
            if let Err(failure) = done {
                self.failure.get_or_insert(failure);
                self.machine.handle_stop();
            }
        }
    }

    fn open(&mut self) -> Result<(), Failure> {
        emit(self.events, Event::Stage("CREATE_STREAMS"));
        let allowed = Duration::from_millis(self.spec.connect_timeout_ms.get().into());
        let opening = Opening {
            spec: &self.spec,
            wanted: &self.wanted,
            server: self.server,
            cookie: &self.cookie,
            deadline: Instant::now() + allowed,
        };
        let orders = self.orders.clone();
        self.streams = opening.streams(&|| orders.is_stopped() || orders.is_aborted())?;
        self.machine.handle_streams_open(self.now());
        Ok(())
    }

    fn start(&mut self) -> Result<(), Failure> {
        emit(self.events, Event::Stage("TEST_RUNNING"));
        let streams = std::mem::take(&mut self.streams);
        let is_reverse = self.spec.direction == Direction::Reverse;
        if is_reverse && self.wanted.bytes > 0 {
            self.probes = streams.iter().map(|stream| stream.io.probe()).collect();
        }
        let request = RunRequest {
            spec: self.spec.clone(),
            end: End::Client,
            streams,
            max_rate_bps: None,
            watchdog: watchdog(&self.spec, None),
            events: self.to_run.clone(),
            wake: Arc::clone(self.orders.waker()),
            copy: None,
            rate: None,
            give_way: None,
        };
        self.run_began = Some(SystemTime::now());
        self.run = Some(Run::start(request)?);
        let duration_s = self
            .spec
            .duration_s
            .map(|duration| duration.get())
            .filter(|_| is_reverse);
        let omit_s = self.spec.omit_s.map_or(0.0, |omit| omit.get());
        self.ends_at =
            duration_s.map(|duration_s| Instant::now() + Duration::from_secs_f64(duration_s + omit_s));
        Ok(())
    }

    fn collect(&mut self) {
        emit(self.events, Event::Stage("EXCHANGE_RESULTS"));
        if let Some(run) = self.run.take() {
            // The server closes TCP's streams once it was told; of datagrams nothing says that they were all.
            let within = if self.wanted.is_udp() {
                Duration::ZERO
            } else {
                DRAIN
            };
            self.outcome = run.finish(Instant::now() + within);
        }
        self.look_at_run();
        if let Some(failure) = self.outcome.failure.clone() {
            self.failure.get_or_insert(failure);
        }
        let results = own_results(&self.outcome, &self.wanted);
        self.machine.handle_results(self.now(), results);
    }

    fn send(&self, mut bytes: &[u8]) -> Result<(), Failure> {
        let deadline = Instant::now() + SEND_MOST;
        let failed =
            |error: &io::Error| Failure::new(FailureKind::Protocol, format!("{}: {error}", self.address));
        while !bytes.is_empty() {
            match (&self.control).write(bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(failed(&ErrorKind::TimedOut.into()));
                    }
                    let fds = [(self.control.as_fd(), Interest::Writable)];
                    poll_ready(&fds, Some(left)).map_err(|error| failed(&error))?;
                }
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(())
    }

    fn close(mut self, ending: &mut Ending) {
        if let Some(run) = self.run.take() {
            run.abort();
            self.outcome = run.finish(Instant::now() + DRAIN);
        }
        let goodbye = self.machine.ending().unwrap_or(Goodbye::ServerGone);
        let said = failure_of(goodbye, &self.address);
        // A failure of this end is why the session was stopped; what the server says is why streams broke.
        let is_servers = matches!(
            goodbye,
            Goodbye::ServerError(..) | Goodbye::ServerStopped | Goodbye::Busy
        );
        ending.failure = if is_servers {
            said.or(self.failure)
        } else {
            self.failure.or(said)
        };
        ending.server = self
            .machine
            .server_results()
            .map(|results| server_part(results, &self.wanted));
        ending.outcome = self.outcome;
        ending.spec = self.spec;
        if let Some(began) = self.run_began {
            ending.started_at = began;
        }
    }
}

fn emit(events: &Sender<Event>, event: Event) {
    // Whoever dropped the handle hears nothing any more.
    let _ = events.send(event);
}

fn new_cookie() -> Result<Cookie, Failure> {
    let mut random = [0; COOKIE_BYTES - 1];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| Failure::new(FailureKind::System, "the kernel has no random bytes"))?;
    Ok(cookie(&random))
}
