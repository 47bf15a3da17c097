//! One open TCP stream.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_spec::{Failure, Granted, ReceiveMode, RunSpec, SendMode};
use farline_sys::byte_stream;
use farline_sys::option::unacknowledged_bytes;
use farline_sys::tcp_info::TcpInfo;
use farline_sys::wake::poll_readable;
use socket2::Socket;

use super::bytes::{self, Intake};
use super::drain::Drain;
use super::feed::Feed;
use super::options;
use crate::failure::{aborted, is_slice, while_moving};
use crate::payload::{MAX_PAYLOAD_BYTES, payload};
use crate::socket::SLICE;
use crate::stream::wrong_end;
use crate::tally::{Count, Tally, as_i64};
use crate::{ByteStream, Counters, PayloadSink, PayloadSource, Probe, Received, Role, StreamEnd};

/// How long to sleep between two looks at a send queue that drains: an eighth of the time it has taken, within these bounds.
const DRAIN_LOOKS: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(20));
/// Most bytes that one call takes from a file: the kernel counts the socket's time-out anew for each of its pieces.
const MOST_FROM_FILE_BYTES: usize = 256 << 10;
/// How long to sleep between two looks at zero-copy sends that complete.
const COMPLETION_LOOK: Duration = Duration::from_millis(1);

/// One open TCP stream, used by one thread.
pub(super) struct TcpStream {
    link: Arc<Link>,
    engine: Engine,
    spec: RunSpec,
    notes: Vec<String>,
    /// Kept from set-up: a socket whose other end has closed no longer tells.
    remote: String,
}

enum Engine {
    Sender(Sender),
    Receiver(Drain),
    /// Files go out: no payload is made for them.
    FileSender {
        /// The thread that sends cannot be ended by a closed stream.
        is_safe: bool,
    },
    FileReceiver(Intake),
}

struct Sender {
    feed: Feed,
    started: bool,
    block: usize,
    payload_bytes: usize,
    /// Where in the payload the next byte lies.
    offset: usize,
}

/// What the thread of a stream and its observers share. The socket is closed when the last of them goes.
struct Link {
    socket: Socket,
    role: Role,
    tally: Tally,
    zerocopy_copied_bytes: Count,
    zerocopy_true_bytes: Count,
}

impl TcpStream {
    /// Takes over a connected socket whose preamble has been sent or read.
    pub(super) fn new(
        socket: Socket,
        spec: &RunSpec,
        role: Role,
        stream: u16,
        notes: Vec<String>,
    ) -> Result<Self, Failure> {
        for set in [Socket::set_read_timeout, Socket::set_write_timeout] {
            set(&socket, Some(SLICE)).map_err(|error| Failure::system("socket time-out", &error))?;
        }
        let block = block_bytes(spec);
        let engine = match role {
            Role::Sender if spec.copy.is_some() => Engine::FileSender { is_safe: false },
            Role::Receiver if spec.copy.is_some() => Engine::FileReceiver(Intake::of(spec)),
            Role::Receiver => {
                let mode = spec
                    .tcp
                    .as_ref()
                    .map_or(ReceiveMode::Read, |tcp| tcp.receive_mode);
                Engine::Receiver(Drain::new(mode, block))
            }
            Role::Sender => {
                let mode = spec.tcp.as_ref().map_or(SendMode::Copy, |tcp| tcp.send_mode);
                let payload = payload(spec.seed, stream, block.min(MAX_PAYLOAD_BYTES));
                let payload_bytes = payload.len();
                let feed = Feed::new(mode, payload, socket.as_fd())?;
                Engine::Sender(Sender {
                    feed,
                    started: false,
                    block,
                    payload_bytes,
                    offset: 0,
                })
            }
        };
        let remote = options::granted(&socket, spec, role, &[]).remote;
        let link = Link {
            socket,
            role,
            tally: Tally::default(),
            zerocopy_copied_bytes: Count::default(),
            zerocopy_true_bytes: Count::default(),
        };
        Ok(Self {
            link: Arc::new(link),
            engine,
            spec: spec.clone(),
            notes,
            remote,
        })
    }
}

impl TcpStream {
    fn check_sends_files(&self) -> Result<(), Failure> {
        match self.engine {
            Engine::FileSender { .. } => Ok(()),
            _ => Err(wrong_end("send files on a stream of blocks or a receiving one")),
        }
    }
}

/// Block size of a resolved spec.
fn block_bytes(spec: &RunSpec) -> usize {
    spec.block_bytes.map_or(131_072, |block| {
        usize::try_from(block.get()).unwrap_or(usize::MAX)
    })
}

impl Sender {
    fn send(&mut self, link: &Link, limit: usize) -> Result<usize, Failure> {
        if !self.started {
            self.feed.start();
            self.started = true;
        }
        // What a time slice cut short is completed first, so that blocks begin where the payload begins.
        let to_end = self.payload_bytes - self.offset;
        let whole = if self.offset == 0 { self.block } else { to_end };
        let given = self.feed.send(link.socket.as_fd(), self.offset, whole.min(limit));
        let sent = link.sent(given)?;
        if sent > 0 {
            self.offset = (self.offset + sent) % self.payload_bytes;
            self.count_completions(link);
        }
        Ok(sent)
    }

    fn count_completions(&self, link: &Link) {
        if let Some((copied, uncopied)) = self.feed.zerocopy_bytes() {
            link.zerocopy_copied_bytes.set(as_i64(copied));
            link.zerocopy_true_bytes.set(as_i64(uncopied));
        }
    }

    /// Whether the kernel has nothing left to send and nothing left to complete.
    fn is_drained(&mut self, link: &Link) -> Result<bool, Failure> {
        let failed = |error| while_moving("finishing", &error);
        let completing = self.feed.settle(link.socket.as_fd()).map_err(failed)?;
        self.count_completions(link);
        Ok(completing == 0 && link.is_acknowledged()?)
    }
}

impl Link {
    /// Counts what a call gave the kernel; nothing if its time was over.
    fn sent(&self, given: io::Result<usize>) -> Result<usize, Failure> {
        match given {
            Ok(sent) => {
                self.tally.count_block(sent);
                Ok(sent)
            }
            Err(_) if self.tally.is_aborted() => Err(aborted()),
            Err(error) if is_slice(&error) => Ok(0),
            Err(error) => Err(while_moving("sending", &error)),
        }
    }

    /// Counts what a call took from the kernel; nothing if its time was over.
    fn received(&self, taken: io::Result<usize>) -> Result<Received, Failure> {
        match taken {
            Ok(0) if self.tally.is_aborted() => Err(aborted()),
            Ok(0) => Ok(Received::End),
            Ok(received) => {
                self.tally.count_block(received);
                Ok(Received::Bytes(received))
            }
            Err(_) if self.tally.is_aborted() => Err(aborted()),
            Err(error) if is_slice(&error) => Ok(Received::Bytes(0)),
            Err(error) => Err(while_moving("receiving", &error)),
        }
    }

    fn say_end(&self) {
        // Refused by a connection that is gone already, which is found out otherwise.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Says the end and waits until `is_drained`, at most until `deadline`: what a run measured stands, whether its last
    /// bytes arrived or not.
    fn finish(
        &self,
        deadline: Instant,
        mut is_drained: impl FnMut() -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.say_end();
        let began = Instant::now();
        while !is_drained()? && Instant::now() < deadline {
            if self.tally.is_aborted() {
                return Err(aborted());
            }
            if let Ok(Some(error)) = self.socket.take_error() {
                return Err(while_moving("finishing", &error));
            }
            std::thread::sleep((began.elapsed() / 8).clamp(DRAIN_LOOKS.0, DRAIN_LOOKS.1));
        }
        Ok(())
    }

    /// Whether the other end has acknowledged all.
    fn is_acknowledged(&self) -> Result<bool, Failure> {
        let left = unacknowledged_bytes(self.socket.as_fd());
        left.map(|left| left == 0)
            .map_err(|error| while_moving("finishing", &error))
    }
}

impl PayloadSource for TcpStream {
    fn send_block(&mut self, limit: usize) -> Result<usize, Failure> {
        match &mut self.engine {
            Engine::Sender(sender) => sender.send(&self.link, limit),
            Engine::FileSender { .. } => Err(wrong_end("send a block among files")),
            Engine::Receiver(_) | Engine::FileReceiver(_) => Err(wrong_end("send on a receiving stream")),
        }
    }
}

impl PayloadSink for TcpStream {
    fn receive_block(&mut self) -> Result<Received, Failure> {
        let Engine::Receiver(drain) = &mut self.engine else {
            return Err(wrong_end("receive on a sending stream"));
        };
        self.link.received(drain.receive(self.link.socket.as_fd()))
    }

    fn visit_received(&self, visit: &mut dyn FnMut(&[u8])) {
        if let Engine::Receiver(drain) = &self.engine {
            visit(drain.last());
        }
    }
}

impl ByteStream for TcpStream {
    fn send(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.check_sends_files()?;
        self.link.sent(bytes::send(self.link.socket.as_fd(), bytes))
    }

    fn send_ahead(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        self.check_sends_files()?;
        self.link
            .sent(byte_stream::send_ahead(self.link.socket.as_fd(), bytes))
    }

    fn send_file(
        &mut self,
        file: BorrowedFd<'_>,
        offset: u64,
        most: usize,
    ) -> Result<Option<usize>, Failure> {
        self.check_sends_files()?;
        if let Engine::FileSender {
            is_safe: is_safe @ false,
        } = &mut self.engine
        {
            byte_stream::block_pipe_signal();
            *is_safe = true;
        }
        let most = most.min(MOST_FROM_FILE_BYTES);
        match byte_stream::send_file(self.link.socket.as_fd(), file, offset, most) {
            Ok(0) => Ok(None),
            Err(error) if !bytes::is_of_socket(&error) => Ok(None),
            given => self.link.sent(given).map(Some),
        }
    }

    fn receive(&mut self, into: &mut [u8]) -> Result<Received, Failure> {
        let Engine::FileReceiver(intake) = &mut self.engine else {
            return Err(wrong_end("receive files on a stream of blocks or a sending one"));
        };
        if into.is_empty() {
            return Ok(Received::Bytes(0));
        }
        self.link.received(intake.receive(self.link.socket.as_fd(), into))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Engine::FileSender { .. } = &self.engine else {
            return Ok(());
        };
        let failed = |error| while_moving("sending", &error);
        let is_prompt = self.spec.tcp.as_ref().is_some_and(|tcp| tcp.no_delay);
        // What is queued goes at once even when the option is taken back (tcp(7)).
        for no_delay in [true, false].into_iter().filter(|_| !is_prompt) {
            self.link.socket.set_tcp_nodelay(no_delay).map_err(failed)?;
        }
        Ok(())
    }
}

impl StreamEnd for TcpStream {
    fn finish_sending(&mut self, deadline: Instant) -> Result<(), Failure> {
        match &mut self.engine {
            Engine::Sender(sender) => {
                let link = &self.link;
                link.finish(deadline, || sender.is_drained(link))
            }
            Engine::FileSender { .. } => {
                self.link.say_end();
                Ok(())
            }
            Engine::Receiver(_) | Engine::FileReceiver(_) => {
                Err(wrong_end("finish sending on a receiving stream"))
            }
        }
    }

    fn probe(&self) -> Arc<dyn Probe> {
        Arc::<Link>::clone(&self.link)
    }

    fn granted(&self) -> Granted {
        let now = options::granted(&self.link.socket, &self.spec, self.link.role, &self.notes);
        Granted {
            remote: self.remote.clone(),
            ..now
        }
    }
}

impl Drop for TcpStream {
    /// Ends the connection even while an observer still holds the socket, and gives zero-copy sends the
    /// chance to complete, so that their memory need not be leaked.
    fn drop(&mut self) {
        let _ = self.link.socket.shutdown(Shutdown::Both);
        let Engine::Sender(sender) = &mut self.engine else {
            return;
        };
        let deadline = Instant::now() + SLICE;
        while Instant::now() < deadline
            && sender
                .feed
                .settle(self.link.socket.as_fd())
                .is_ok_and(|left| left > 0)
        {
            let _ = poll_readable(&[self.link.socket.as_fd()], Some(COMPLETION_LOOK));
            std::thread::sleep(COMPLETION_LOOK);
        }
    }
}

impl Probe for Link {
    fn sample(&self) -> Counters {
        let counted = Counters {
            bytes: self.tally.bytes.get(),
            blocks: self.tally.blocks.get(),
            zerocopy_copied_bytes: self.zerocopy_copied_bytes.get(),
            zerocopy_true_bytes: self.zerocopy_true_bytes.get(),
            ..Counters::UNKNOWN
        };
        let left = unacknowledged_bytes(self.socket.as_fd());
        let counted = Counters {
            unacknowledged_bytes: left.map_or(-1, as_i64),
            ..counted
        };
        match TcpInfo::of(self.socket.as_fd()) {
            Ok(info) => with_kernel_facts(counted, &info, self.role),
            Err(_) => counted,
        }
    }

    fn abort(&self) {
        self.tally.abort();
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    fn end_receiving(&self) {
        // Refused by a connection that is gone already.
        let _ = self.socket.shutdown(Shutdown::Read);
    }
}

/// Adds what the kernel knows. Round-trip time, congestion window and the times limited are the sender's:
/// at a receiver they would describe its acknowledgements.
fn with_kernel_facts(counted: Counters, info: &TcpInfo, role: Role) -> Counters {
    let raw = info.raw();
    let window = match role {
        Role::Sender => info.peer_window_bytes(),
        Role::Receiver => info.own_window_bytes(),
    };
    let both = Counters {
        receive_window_bytes: window.map_or(-1, i64::from),
        min_rtt_us: if raw.min_rtt == u32::MAX {
            -1
        } else {
            raw.min_rtt.into()
        },
        path_mtu_bytes: raw.pmtu.into(),
        ..counted
    };
    if role == Role::Receiver {
        return both;
    }
    Counters {
        retransmits: raw.total_retrans.into(),
        rtt_us: raw.rtt.into(),
        rttvar_us: raw.rttvar.into(),
        cwnd_bytes: i64::from(raw.snd_cwnd) * i64::from(raw.snd_mss),
        pacing_rate_bps: bits(raw.pacing_rate),
        delivery_rate_bps: bits(raw.delivery_rate),
        busy_us: as_i64(raw.busy_time),
        receive_window_limited_us: as_i64(raw.rwnd_limited),
        send_buffer_limited_us: as_i64(raw.sndbuf_limited),
        ..both
    }
}

/// Bits of a rate in bytes; the kernel's "no limit" is unknown here.
fn bits(bytes_per_s: u64) -> i64 {
    if bytes_per_s == u64::MAX {
        -1
    } else {
        as_i64(bytes_per_s.saturating_mul(8))
    }
}
