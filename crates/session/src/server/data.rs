//! The server's data ports: one listener per destination address of a session.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::time::{Duration, Instant};

use farline_spec::{Failure, FailureKind, RunSpec, ServerConfig};
use farline_transport::{
    Listener, StreamKey, Transport, handoff_listener, needs_own_listener, transport_for,
};
use tracing::{Span, debug};

use super::one_port::Handed;
use crate::message::{ListenerAddress, Listeners};
use crate::run::OpenStream;
use crate::run_controller::LateSink;
use crate::streams::{End, Part, cpu, data_total, destinations, messages_spec, pair, part, role};

/// How often a wait for streams looks whether the session still wants them.
const SLICE: Duration = Duration::from_millis(100);

/// Ports that data streams may come in on.
#[derive(Debug)]
pub struct PortRange {
    first: u16,
    last: u16,
    next: AtomicU16,
}

impl PortRange {
    /// The range of `config`.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for a range that ends before it begins.
    pub fn new(config: &ServerConfig) -> Result<Self, Failure> {
        let (first, last) = (config.data_port_first.get(), config.data_port_last.get());
        if last < first || (first == 0 && last != 0) {
            let line = format!(
                "data_port_last: {last}; allowed: data_port_first ({first}) or more, or 0 and 0 for any"
            );
            return Err(Failure::new(FailureKind::Spec, line));
        }
        Ok(Self {
            first,
            last,
            next: AtomicU16::new(0),
        })
    }

    /// The port `port` alone.
    const fn of_one(port: u16) -> Self {
        Self {
            first: port,
            last: port,
            next: AtomicU16::new(0),
        }
    }

    /// Ports to try, beginning behind the one that was tried first last time.
    fn candidates(&self) -> impl Iterator<Item = u16> {
        let count = self.last - self.first + 1;
        let start = self.next.fetch_add(1, Ordering::Relaxed) % count;
        let first = self.first;
        (0..count).map(move |step| first + ((u32::from(start) + u32::from(step)) % u32::from(count)) as u16)
    }
}

/// Listeners of one session.
pub struct DataListeners {
    doors: Vec<Door>,
    end: End,
    /// Kept until all streams are accepted: without it nothing is handed over any more.
    handed: Option<Handed>,
}

struct Door {
    /// Where its streams go to.
    destinations: Vec<Option<IpAddr>>,
    carries: Carries,
    listener: Box<dyn Listener>,
}

/// What comes in by a door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carries {
    Data,
    Messages,
}

impl Carries {
    fn of(part: Part) -> Self {
        match part {
            Part::Data => Self::Data,
            Part::Catalogue | Part::Feedback => Self::Messages,
        }
    }
}

impl DataListeners {
    /// Listens on every destination of `spec`; `local` is where the control channel came in. Streams over TCP that come in
    /// there too are `handed` over; a transport that shares ports has the same one.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for a destination that is no address of this server, and for an option that needs a port of
    /// its own where there is none; [`FailureKind::Busy`] when no port of the range is free, and the transport's own.
    pub fn open(
        spec: &RunSpec,
        local: SocketAddr,
        ports: &PortRange,
        handed: Option<Handed>,
    ) -> Result<Self, Failure> {
        let mut all = Self::open_data(spec, local, ports, handed)?;
        if spec.copy.is_some() {
            let destination = pair(spec, data_total(spec)).destination;
            all.doors.push(match &all.handed {
                Some(handed) => Door::of_messages(spec, local, handed),
                None => Door::own(&messages_spec(spec), destination, Carries::Messages, local, ports)?,
            });
        }
        Ok(all)
    }

    /// As [`Self::open`], for data streams alone.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_data(
        spec: &RunSpec,
        local: SocketAddr,
        ports: &PortRange,
        handed: Option<Handed>,
    ) -> Result<Self, Failure> {
        let destinations = destinations(spec);
        destinations
            .iter()
            .flatten()
            .try_for_each(|&destination| check_local(destination))?;
        let doors = match &handed {
            Some(handed) if spec.transport == farline_spec::Transport::Tcp => {
                vec![Door::of_data(spec, local, handed)?]
            }
            // A server of one port has it for what shares it, too.
            Some(_) if transport_for(spec).capabilities().shares_port => {
                let one = PortRange::of_one(local.port());
                let own = |destination| Door::own(spec, destination, Carries::Data, local, &one);
                destinations.into_iter().map(own).collect::<Result<_, _>>()?
            }
            _ => {
                let own = |destination| Door::own(spec, destination, Carries::Data, local, ports);
                destinations.into_iter().map(own).collect::<Result<_, _>>()?
            }
        };
        Ok(Self {
            doors,
            end: End::Server,
            handed,
        })
    }

    /// Doors of `end` for streams that are all handed over, by whoever listens on `local`.
    ///
    /// # Errors
    /// [`FailureKind::Spec`] for an option that needs a port of its own.
    pub fn handed(spec: &RunSpec, end: End, local: SocketAddr, handed: Handed) -> Result<Self, Failure> {
        let mut doors = vec![Door::of_data(spec, local, &handed)?];
        doors.extend(
            spec.copy
                .as_ref()
                .map(|_| Door::of_messages(spec, local, &handed)),
        );
        Ok(Self {
            doors,
            end,
            handed: Some(handed),
        })
    }

    /// Where they are.
    pub fn addresses(&self) -> Listeners {
        let mut all = Listeners {
            listeners: Vec::new(),
            messages_port: None,
            is_vacant: false,
        };
        for door in &self.doors {
            let port = door.listener.local_addr().port();
            let address = |&destination: &Option<IpAddr>| ListenerAddress { destination, port };
            match door.carries {
                Carries::Data => all.listeners.extend(door.destinations.iter().map(address)),
                Carries::Messages => all.messages_port = Some(port),
            }
        }
        all
    }

    /// Accepts the streams of `keys`, each at its own door; all doors at once, since an opener
    /// may wait for its answer before it opens the next.
    ///
    /// # Errors
    /// [`FailureKind::Timeout`] at `deadline`, [`FailureKind::Interrupted`] once `cancelled`, and the transport's own.
    pub fn accept(
        self,
        spec: &RunSpec,
        keys: &[StreamKey],
        deadline: Instant,
        cancelled: &AtomicBool,
    ) -> Result<Vec<OpenStream>, Failure> {
        let accepted = Mutex::new(Ok(Vec::with_capacity(keys.len())));
        let end = self.end;
        let session = &Span::current();
        std::thread::scope(|scope| {
            for mut door in self.doors {
                let mut expected = door.own_keys(spec, keys);
                let accepted = &accepted;
                scope.spawn(move || {
                    let _within = session.enter();
                    let mut streams = Vec::with_capacity(expected.len());
                    let is_gone = || gone(cancelled, accepted);
                    let mut put = |open| streams.push(open);
                    let done = door.accept((spec, end), &mut expected, deadline, &is_gone, &mut put);
                    merge(accepted, done.map(|()| streams));
                });
            }
        });
        let mut streams = accepted.into_inner().unwrap_or_else(PoisonError::into_inner)?;
        streams.sort_by_key(|open: &OpenStream| open.stream);
        Ok(streams)
    }
}

impl DataListeners {
    /// Accepts data streams of `keys` that come while a copy runs; each is put into `sink` at once. Those that have not come by
    /// `deadline`, or once `cancelled`, do not count.
    pub fn accept_late(
        self,
        spec: &RunSpec,
        keys: &[StreamKey],
        deadline: Instant,
        cancelled: &AtomicBool,
        sink: &LateSink,
    ) {
        let end = self.end;
        let session = &Span::current();
        let is_gone = || cancelled.load(Ordering::Acquire);
        std::thread::scope(|scope| {
            for mut door in self.doors {
                let mut expected = door.own_keys(spec, keys);
                if expected.is_empty() {
                    continue;
                }
                let is_gone = &is_gone;
                scope.spawn(move || {
                    let _within = session.enter();
                    let mut put = |open| sink.put(Ok(open));
                    let done = door.accept((spec, end), &mut expected, deadline, is_gone, &mut put);
                    done.unwrap_or_else(|failure| sink.put(Err(failure)));
                });
            }
        });
    }
}

type Accepted = Mutex<Result<Vec<OpenStream>, Failure>>;

fn gone(cancelled: &AtomicBool, accepted: &Accepted) -> bool {
    cancelled.load(Ordering::Acquire) || accepted.lock().unwrap_or_else(PoisonError::into_inner).is_err()
}

fn merge(accepted: &Accepted, streams: Result<Vec<OpenStream>, Failure>) {
    let mut all = accepted.lock().unwrap_or_else(PoisonError::into_inner);
    match (&mut *all, streams) {
        (Ok(all), Ok(streams)) => all.extend(streams),
        (Ok(_), Err(failure)) => *all = Err(failure),
        // The first failure is the one that counts.
        (Err(_), _) => {}
    }
}

impl Door {
    /// A door on a port of its own.
    fn own(
        spec: &RunSpec,
        destination: Option<IpAddr>,
        carries: Carries,
        local: SocketAddr,
        ports: &PortRange,
    ) -> Result<Self, Failure> {
        let address = destination.map_or(local, |destination| SocketAddr::new(destination, 0));
        let listener = listen(&*transport_for(spec), address, spec, ports)?;
        Ok(Self {
            destinations: vec![destination],
            carries,
            listener,
        })
    }

    /// The door of all data streams that are handed over.
    fn of_data(spec: &RunSpec, local: SocketAddr, handed: &Handed) -> Result<Self, Failure> {
        if let Some(option) = needs_own_listener(spec) {
            let line = format!("{option}: needs a separate data port, but the server uses a single port");
            return Err(Failure::new(FailureKind::Spec, line));
        }
        Ok(Self {
            destinations: destinations(spec),
            carries: Carries::Data,
            listener: handoff_listener(handed.data.clone(), local),
        })
    }

    /// The door of a copy's message streams that are handed over.
    fn of_messages(spec: &RunSpec, local: SocketAddr, handed: &Handed) -> Self {
        Self {
            destinations: vec![pair(spec, data_total(spec)).destination],
            carries: Carries::Messages,
            listener: handoff_listener(handed.messages.clone(), local),
        }
    }

    fn own_keys(&self, spec: &RunSpec, keys: &[StreamKey]) -> Vec<StreamKey> {
        let is_own = |key: &&StreamKey| {
            Carries::of(part(spec, key.stream)) == self.carries
                && self.destinations.contains(&pair(spec, key.stream).destination)
        };
        keys.iter().filter(is_own).cloned().collect()
    }

    fn accept(
        &mut self,
        (spec, end): (&RunSpec, End),
        expected: &mut Vec<StreamKey>,
        deadline: Instant,
        gone: &dyn Fn() -> bool,
        put: &mut dyn FnMut(OpenStream),
    ) -> Result<(), Failure> {
        let role_of = |stream| role(spec, end, stream);
        let own_spec = match self.carries {
            Carries::Data => Cow::Borrowed(spec),
            Carries::Messages => Cow::Owned(messages_spec(spec)),
        };
        while !expected.is_empty() {
            if gone() {
                return Err(Failure::new(
                    FailureKind::Interrupted,
                    "the session ended before its data streams were open",
                ));
            }
            let slice = deadline.min(Instant::now() + SLICE);
            let (stream, io) = match self.listener.accept(&own_spec, expected, &role_of, slice) {
                Err(failure) if failure.kind == FailureKind::Timeout && slice < deadline => continue,
                Err(failure) if failure.kind == FailureKind::Timeout => return Err(missing(expected.len())),
                accepted => accepted?,
            };
            debug!(stream, role = ?role_of(stream), "stream opened");
            expected.retain(|key| key.stream != stream);
            put(OpenStream {
                stream,
                role: role_of(stream),
                cpu: cpu(spec, end, stream),
                io,
            });
        }
        Ok(())
    }
}

fn missing(count: usize) -> Failure {
    let line = format!(
        "{count} data streams did not reach the server in time: check that its data ports are open in the firewall"
    );
    Failure::new(FailureKind::Timeout, line)
}

/// Refuses a destination that is not one of this machine's own addresses: whoever asks must not
/// make the server listen for strangers.
fn check_local(destination: IpAddr) -> Result<(), Failure> {
    let broadcast = destination == IpAddr::V4(Ipv4Addr::BROADCAST);
    let special = broadcast || destination.is_unspecified() || destination.is_multicast();
    if special || TcpListener::bind((destination, 0)).is_err() {
        let line = format!("pairs.destination: {destination} is not an address of the server");
        return Err(Failure::new(FailureKind::Spec, line));
    }
    Ok(())
}

fn listen(
    transport: &dyn Transport,
    address: SocketAddr,
    spec: &RunSpec,
    ports: &PortRange,
) -> Result<Box<dyn Listener>, Failure> {
    let mut last = None;
    for port in ports.candidates() {
        let mut address = address;
        address.set_port(port);
        match transport.listen(address, spec) {
            Err(failure) if failure.kind == FailureKind::Busy && port != 0 => last = Some(failure),
            listening => return listening,
        }
    }
    let last = last.map(|failure| failure.message).unwrap_or_default();
    let line = format!(
        "no data port from {} to {} is free on {}: {last}",
        ports.first,
        ports.last,
        address.ip()
    );
    Err(Failure::new(FailureKind::Busy, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farline_spec::from_json;

    fn range(first: u16, last: u16) -> Result<PortRange, Failure> {
        let config = format!(r#"{{"data_port_first":{first},"data_port_last":{last}}}"#);
        PortRange::new(&from_json(&config).unwrap())
    }

    #[test]
    fn ports_are_tried_in_turn_and_each_once() {
        let range = range(7, 9).unwrap();
        assert_eq!(range.candidates().collect::<Vec<_>>(), [7, 8, 9]);
        assert_eq!(range.candidates().collect::<Vec<_>>(), [8, 9, 7]);
        assert_eq!(
            super::tests::range(0, 0)
                .unwrap()
                .candidates()
                .collect::<Vec<_>>(),
            [0]
        );
        assert_eq!(
            super::tests::range(65_535, 65_535)
                .unwrap()
                .candidates()
                .collect::<Vec<_>>(),
            [65_535]
        );
    }

    #[test]
    fn a_range_that_is_none_is_refused() {
        for (first, last) in [(9, 7), (0, 7), (7, 0)] {
            assert_eq!(self::range(first, last).unwrap_err().kind, FailureKind::Spec);
        }
    }

    #[test]
    fn only_own_addresses_are_listened_on() {
        assert!(check_local("127.0.0.1".parse().unwrap()).is_ok());
        for other in ["192.0.2.1", "0.0.0.0", "::", "224.0.0.1", "255.255.255.255"] {
            let refusal = check_local(other.parse().unwrap()).unwrap_err();
            assert_eq!(refusal.kind, FailureKind::Spec, "{other}");
        }
    }

    #[test]
    fn a_full_range_is_busy() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let spec = RunSpec::default().resolved().unwrap();
        let refusal = DataListeners::open(
            &spec,
            taken.local_addr().unwrap(),
            &range(port, port).unwrap(),
            None,
        )
        .err()
        .unwrap();
        assert_eq!(refusal.kind, FailureKind::Busy);
        assert!(
            refusal.message.contains(&format!("from {port} to {port}")),
            "{refusal}"
        );
    }
}
