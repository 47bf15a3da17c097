//! A server that keeps to the protocol until its one lie, over real sockets and a real cipher; and what a client does about it.
//!
//! Each lie is a script of a [`Session`]: what it says and hears, step by step. The client is the one that users have.

mod control;
mod pulls;
mod pushes;
mod stage;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use farline_mover::frame::{FrameKind, Header, PREFIX_BYTES, TRAILER_BYTES};
use farline_mover::message::{self, Catalogue, Entry, EntryKind, Feedback, Wants};
use farline_mover::sum::content_sum;
use farline_mover::{Frame, pack};
use farline_spec::{Failure, RunSpec, ServerConfig, SumKind};
use farline_transport::Received;
use serde::de::DeserializeOwned;

use crate::channel::{Channel, Interrupt};
use crate::copy::{Seal, SealKeys};
use crate::message::{
    ClientMessage, Established, Grant, Listeners, ProfilingEnd, ServerMessage, ServerProfile, SessionId, Task,
};
use crate::run::OpenStream;
use crate::server::data::{DataListeners, PortRange};
use crate::state_dir::StateDir;
use crate::streams::{data_total, numbers};
use crate::tls::{ServerIdentity, StreamKeys, seal_keys};

/// Longest that the liar waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);
const CHUNK: u64 = 64 * 1024;
const ID: SessionId = SessionId([7; 16]);

/// One stream with its seal.
struct Lane {
    open: OpenStream,
    seal: Seal,
    pending: Vec<u8>,
}

/// One session of the liar's.
pub struct Session {
    channel: Channel<ClientMessage>,
    local: SocketAddr,
    /// What the client asked for.
    pub spec: RunSpec,
    doors: Option<DataListeners>,
    lanes: Vec<Lane>,
    heard: Vec<ClientMessage>,
    /// The client has closed the control channel.
    closed: bool,
    next: u64,
}

/// A wait that ended without what was waited for: the client has gone, as it should.
#[derive(Debug)]
pub struct Gone;

/// What a step of a script gives.
pub type Step<T = ()> = Result<T, Gone>;

impl From<Failure> for Gone {
    fn from(_: Failure) -> Self {
        Self
    }
}

impl Session {
    /// Accepts one client.
    fn accept(listener: &TcpListener, identity: &ServerIdentity) -> Step<Self> {
        let (socket, _) = listener.accept().map_err(|_| Gone)?;
        let local = socket.local_addr().map_err(|_| Gone)?;
        let tls = rustls::ServerConnection::new(Arc::clone(&identity.config)).map_err(|_| Gone)?;
        let deadline = Instant::now() + PATIENCE;
        Ok(Self {
            channel: Channel::open(socket, tls.into(), Interrupt::new()?, deadline)?,
            local,
            spec: RunSpec::default(),
            doors: None,
            lanes: Vec::new(),
            heard: Vec::new(),
            closed: false,
            next: 0,
        })
    }

    /// Says something on the control channel.
    pub fn tell(&mut self, message: &ServerMessage) -> Step {
        Ok(self.channel.send(message)?)
    }

    /// The next that the client says on the control channel.
    pub fn hear(&mut self) -> Step<ClientMessage> {
        let until = Instant::now() + PATIENCE;
        while self.heard.is_empty() {
            if self.closed || Instant::now() > until {
                return Err(Gone);
            }
            let arrival = self.channel.wait(Some(Duration::from_millis(100)))?;
            self.closed |= arrival.closed || arrival.failure.is_some();
            self.heard.extend(arrival.messages);
        }
        Ok(self.heard.remove(0))
    }

    pub fn greet(&mut self) -> Step {
        self.tell(&ServerMessage::CtrlChanEst(Established {
            min_version: 1,
            max_version: 1,
            session: ID,
        }))
    }

    /// Grants what is asked for, changed by `lie`.
    pub fn grant(&mut self, lie: impl FnOnce(&mut Grant)) -> Step {
        let ClientMessage::Handshake(asked) = self.hear()? else {
            panic!("a client begins with its task");
        };
        let Task::Profile(spec) = asked.task else {
            panic!("a run begins with its spec");
        };
        self.spec = spec.clone();
        let mut grant = Grant {
            spec,
            notes: Vec::new(),
        };
        lie(&mut grant);
        self.tell(&ServerMessage::Handshake(Box::new(grant)))
    }

    /// Listens, and says where, changed by `lie`.
    pub fn listen(&mut self, lie: impl FnOnce(&mut Listeners)) -> Step {
        assert_eq!(self.hear()?, ClientMessage::CreateStreams);
        let ports = PortRange::new(&ServerConfig::default())?;
        let doors = DataListeners::open(&self.spec, self.local, &ports, None)?;
        let mut addresses = doors.addresses();
        self.doors = Some(doors);
        lie(&mut addresses);
        self.tell(&ServerMessage::CreateStreams(addresses))
    }

    /// Accepts all streams.
    pub fn open(&mut self) -> Step {
        let keys = StreamKeys::new(self.channel.tls(), ID)?;
        let keys: Vec<_> = numbers(&self.spec).map(|stream| keys.key(stream)).collect();
        let doors = self.doors.take().expect("a liar that listens");
        let streams = doors.accept(
            &self.spec,
            &keys,
            Instant::now() + PATIENCE,
            &AtomicBool::new(false),
        )?;
        let copy = self.spec.copy.as_ref().expect("a copy");
        let seals: SealKeys = seal_keys(self.channel.tls(), ID, copy.cipher)?;
        for open in streams {
            self.lanes.push(Lane {
                seal: seals.seal(open.stream)?,
                open,
                pending: Vec::new(),
            });
        }
        Ok(())
    }

    /// All steps up to the start of the run.
    pub fn prepare(&mut self) -> Step {
        self.greet()?;
        self.grant(|_| ())?;
        self.listen(|_| ())?;
        self.open()?;
        assert_eq!(self.hear()?, ClientMessage::ProfilingStart);
        self.tell(&ServerMessage::ProfilingStart)
    }

    fn lane(&mut self, stream: u16) -> &mut Lane {
        &mut self.lanes[usize::from(stream)]
    }

    /// The stream on which this end says messages.
    fn own_messages(&self) -> u16 {
        data_total(&self.spec) + u16::from(!self.sends())
    }

    /// Whether this end has the files.
    fn sends(&self) -> bool {
        self.spec.direction == farline_spec::Direction::Reverse
    }

    /// Sends a frame on a stream.
    pub fn frame(&mut self, stream: u16, header: Header, payload: &[u8]) -> Step {
        let mut frame = Frame::new(payload.len());
        frame.room()[..payload.len()].copy_from_slice(payload);
        frame.set(&Header {
            payload_bytes: payload.len() as u32,
            ..header
        });
        let lane = self.lane(stream);
        let wire = lane.seal.close(frame.wire())?.to_vec();
        lane.raw(&wire)
    }

    /// Sends bytes on a stream as they are.
    pub fn raw(&mut self, stream: u16, bytes: &[u8]) -> Step {
        self.lane(stream).raw(bytes)
    }

    /// Says bytes as messages of this end.
    pub fn say_bytes(&mut self, payload: &[u8]) -> Step {
        let kind = if self.sends() {
            FrameKind::Catalogue
        } else {
            FrameKind::Feedback
        };
        let stream = self.own_messages();
        self.frame(stream, Header::of_messages(kind), payload)
    }

    /// Says messages of this end, all in one frame.
    pub fn say_all<M: serde::Serialize>(&mut self, messages: &[M]) -> Step {
        let mut payload = Vec::new();
        for message in messages {
            message::append(&mut payload, message)?;
        }
        self.say_bytes(&payload)
    }

    /// The next frame on a stream.
    fn receive(&mut self, stream: u16) -> Step<(Header, Vec<u8>)> {
        self.lane(stream).receive()
    }

    /// Takes messages of the client's until `pick` takes one.
    pub fn until<M: DeserializeOwned, T>(&mut self, mut pick: impl FnMut(M) -> Option<T>) -> Step<T> {
        let stream = data_total(&self.spec) + u16::from(self.sends());
        loop {
            let (_, payload) = self.receive(stream)?;
            let mut found = None;
            for message in message::messages(&payload)? {
                found = found.or(pick(message));
            }
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// Waits until the client has gone, and takes whatever comes meanwhile.
    pub fn hold(&mut self) -> Step {
        let until = Instant::now() + PATIENCE;
        while !self.closed && Instant::now() < until {
            self.hear()?;
        }
        Ok(())
    }

    // As a server that has the files.

    pub fn begin(&mut self) -> Step {
        self.say_all(&[Catalogue::Begin {
            chunk_bytes: CHUNK,
            top: None,
            asks_whole: false,
        }])
    }

    /// Announces a name.
    pub fn entry(&mut self, path: &str, kind: EntryKind) -> Step<u64> {
        self.announce(Entry {
            path: path.as_bytes().to_vec(),
            kind,
            mode: 0o6777,
            mtime_ns: 1_600_000_000_000_000_000,
            ctime_ns: 1,
            xattrs: Vec::new(),
        })
    }

    pub fn announce(&mut self, entry: Entry) -> Step<u64> {
        self.say_all(&[Catalogue::Entry(entry)])?;
        self.next += 1;
        Ok(self.next - 1)
    }

    pub fn file(&mut self, path: &str, bytes: u64) -> Step<u64> {
        self.entry(path, EntryKind::File { bytes, hash: None })
    }

    /// Sends a whole small file.
    pub fn pack(&mut self, file: u64, content: &[u8]) -> Step {
        let hash = content_sum(SumKind::Blake3, content);
        let mut payload = vec![0; pack::ITEM_HEADER_BYTES];
        pack::write_item_header(&mut payload, file, content.len() as u32, Some(hash));
        payload.extend_from_slice(content);
        self.frame(0, Header::of_messages(FrameKind::Pack), &payload)
    }

    /// The file `x` with three bytes, as it was asked for.
    pub fn honest_file(&mut self) -> Step<u64> {
        let file = self.file("x", 3)?;
        self.pack(file, b"abc")?;
        Ok(file)
    }

    pub fn end(&mut self) -> Step {
        let entries = self.next;
        self.say_all(&[Catalogue::AllAnnounced, Catalogue::End { entries, whole: true }])
    }

    /// The client has all and says so.
    pub fn finished(&mut self) -> Step {
        self.until(|said: Feedback| matches!(said, Feedback::Finished { .. }).then_some(()))
    }

    /// Ends as an honest server does.
    pub fn close(&mut self) -> Step {
        for lane in &mut self.lanes {
            if lane.open.role == farline_transport::Role::Sender {
                lane.open.io.finish_sending(Instant::now() + PATIENCE)?;
            }
        }
        self.tell(&ServerMessage::ProfilingEnd(ProfilingEnd { stopped: false }))?;
        for part in ServerProfile::default().into_parts() {
            self.tell(&ServerMessage::ExchangeProfile(part))?;
        }
        self.hold()
    }

    // As a server that gets the files.

    pub fn ready(&mut self) -> Step {
        self.say_all(&[Feedback::Ready { fresh: false }])
    }

    /// The number of the entry of this path, once it was announced.
    pub fn announced(&mut self, path: &str) -> Step<u64> {
        let mut next = 0;
        self.until(|said: Catalogue| match said {
            Catalogue::Entry(entry) => {
                next += 1;
                (entry.path == path.as_bytes()).then_some(next - 1)
            }
            _ => None,
        })
    }

    pub fn wants(&mut self, first: u64, wants: Wants) -> Step {
        self.say_all(&[Feedback::Answers {
            first,
            wants: vec![wants],
        }])
    }
}

impl Lane {
    fn raw(&mut self, bytes: &[u8]) -> Step {
        let until = Instant::now() + PATIENCE;
        let mut rest = bytes;
        while !rest.is_empty() {
            let taken = self.open.io.bytes()?.send(rest)?;
            rest = &rest[taken..];
            if Instant::now() > until {
                return Err(Gone);
            }
        }
        Ok(self.open.io.bytes()?.flush()?)
    }

    fn receive(&mut self) -> Step<(Header, Vec<u8>)> {
        self.gather(PREFIX_BYTES)?;
        let mut prefix = [0; PREFIX_BYTES];
        prefix.copy_from_slice(&self.pending[..PREFIX_BYTES]);
        let mut frame = Frame::new(1 << 22);
        let payload_bytes = self.seal.payload_bytes(&prefix)?;
        let trailer = self.seal.trailer_bytes(&prefix);
        let wire = frame.expect(payload_bytes)?;
        let end = wire.len() - TRAILER_BYTES + trailer;
        self.gather(end)?;
        wire[..end].copy_from_slice(&self.pending[..end]);
        self.pending.drain(..end);
        self.seal.open(wire)?;
        Ok((frame.header()?, frame.payload().to_vec()))
    }

    fn gather(&mut self, bytes: usize) -> Step {
        let until = Instant::now() + PATIENCE;
        let mut buffer = [0; 16 * 1024];
        while self.pending.len() < bytes {
            match self.open.io.bytes()?.receive(&mut buffer)? {
                Received::Bytes(count) => self.pending.extend_from_slice(&buffer[..count]),
                Received::End => return Err(Gone),
            }
            if Instant::now() > until {
                return Err(Gone);
            }
        }
        Ok(())
    }
}

/// Serves one client with `script`; gives where, and what became of it.
fn serve(
    script: impl FnOnce(&mut Session) -> Step + Send + 'static,
) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let thread = std::thread::spawn(move || {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDir::open(folder.path()).expect("a state folder");
        let identity = ServerIdentity::load(&state).expect("a key");
        // A client that has gone before the end of the script has heard enough.
        let Ok(mut session) = Session::accept(&listener, &identity) else {
            return;
        };
        let _ = script(&mut session).and_then(|()| session.hold());
    });
    (address, thread)
}
