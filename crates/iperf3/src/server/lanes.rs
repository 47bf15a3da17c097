//! The streams of one session as they are measured: socket options before, counts without the omitted time after.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use farline_proto::iperf3::parameters::Parameters;
use farline_proto::iperf3::results::{Results, StreamResult};
use farline_proto::iperf3::stream_id;
use farline_proto::iperf3::word::ErrorCode;
use farline_spec::{Failure, FailureKind, kernel_words};
use farline_sys::option::{Family, forbid_fragments, set_max_pacing_rate};
use farline_sys::process::CpuTime;
use farline_transport::SharedRate;
use socket2::Socket;

use super::register::Arrival;
use crate::stream::{Count, Lane, Lanes};

/// What iperf3 adds to a datagram's length when a socket's buffer is too small for it.
const BUFFER_EXTRA: usize = 1024;
/// Time over which a rate is held against its limit.
const RATE_WINDOW: Duration = Duration::from_secs(5);
/// Shortest time after which it is.
const RATE_FROM: Duration = Duration::from_secs(1);
/// What bursts and clocks may add to a rate.
const RATE_SLACK: f64 = 1.1;

/// Why a session's streams cannot be used: for the client, and for this server's owner.
pub type Refusal = (ErrorCode, Failure);

/// The streams of a session.
#[derive(Debug)]
pub struct Measurement {
    lanes: Lanes,
    wanted: Arc<Parameters>,
    began: Instant,
    /// Since when bytes count.
    counts_since: Instant,
    is_omitting: bool,
    /// What had moved by then, stream by stream.
    before: Vec<Mark>,
    /// Bytes received by some moments of the last seconds.
    received: Vec<(Instant, u64)>,
    notes: Vec<String>,
    congestion: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    count: Count,
    retransmits: Option<u64>,
}

/// One stream, as far as it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// Number of the stream.
    pub id: i64,
    /// Whether this end sends.
    pub is_sender: bool,
    /// What has moved and counts.
    pub count: Count,
    /// Segments sent again.
    pub retransmits: Option<u64>,
    /// The congestion window of a sender.
    pub cwnd_bytes: Option<u64>,
}

impl Measurement {
    /// Makes streams of `arrivals`, the client's sending ones first, with their threads at the ready.
    ///
    /// # Errors
    /// What could not be honoured.
    pub fn open(
        mut arrivals: Vec<Arrival>,
        wanted: &Arc<Parameters>,
        rate: Option<&Arc<SharedRate>>,
    ) -> Result<Self, Refusal> {
        arrivals.sort_unstable_by_key(|arrival| arrival.order);
        let mut notes = Vec::new();
        let mut lanes = Vec::with_capacity(arrivals.len());
        for (index, arrival) in arrivals.into_iter().enumerate() {
            set_options(&arrival.socket, wanted, &mut notes)?;
            lanes.push(Lane::new(
                stream_id(index),
                index >= wanted.forward(),
                arrival.socket,
            ));
        }
        notes.dedup();
        let congestion = lanes.first().and_then(|lane| congestion_of(lane.socket()));
        let lanes = Lanes::start(lanes, wanted, rate).map_err(|failure| (start_code(wanted), failure))?;
        let (now, streams) = (Instant::now(), lanes.lanes.len());
        Ok(Self {
            lanes,
            wanted: Arc::clone(wanted),
            began: now,
            counts_since: now,
            is_omitting: wanted.omit_s > 0,
            before: vec![Mark::default(); streams],
            received: Vec::new(),
            notes,
            congestion,
        })
    }

    /// What was changed about the client's wish.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Both ends of every stream.
    pub fn endpoints(&self) -> impl Iterator<Item = (i64, Option<(SocketAddr, SocketAddr)>)> {
        self.lanes.lanes.iter().map(|lane| {
            let address = |found: io::Result<socket2::SockAddr>| found.ok()?.as_socket();
            let ends = address(lane.socket().local_addr()).zip(address(lane.socket().peer_addr()));
            (lane.id, ends)
        })
    }

    /// Lets data flow.
    pub fn release(&mut self) {
        self.began = Instant::now();
        self.counts_since = self.began;
        self.lanes.release();
    }

    /// When the omitted time ends, while it lasts.
    pub fn omit_ends(&self) -> Option<Instant> {
        self.is_omitting
            .then(|| self.began + Duration::from_secs(self.wanted.omit_s.into()))
    }

    /// Ends the omitted time once it is over; true if it just was.
    pub fn end_omitting(&mut self, now: Instant) -> bool {
        let is_due = self.omit_ends().is_some_and(|end| now >= end);
        if is_due {
            self.before = self.lanes.lanes.iter().map(Mark::of).collect();
            self.lanes
                .lanes
                .iter()
                .for_each(|lane| lane.tally.forget_jitter());
            (self.is_omitting, self.counts_since) = (false, now);
        }
        is_due
    }

    /// Time that counts so far.
    pub fn elapsed(&self) -> Duration {
        self.counts_since.elapsed()
    }

    /// Bytes sent and received in all, the omitted ones too.
    pub fn moved(&self) -> (u64, u64) {
        let total = |is_sender: bool| {
            let lanes = self.lanes.lanes.iter().filter(|lane| lane.is_sender == is_sender);
            lanes.map(|lane| lane.tally.count().bytes).sum()
        };
        (total(true), total(false))
    }

    /// Whether more comes than `limit_bps` allows: of datagrams, which nothing here can slow down.
    pub fn receives_too_much(&mut self, limit_bps: u64, now: Instant) -> bool {
        let bytes = self.moved().1;
        self.received
            .retain(|(at, _)| now.saturating_duration_since(*at) <= RATE_WINDOW);
        self.received.push((now, bytes));
        let (since, before) = self.received.first().copied().unwrap_or((now, bytes));
        let elapsed = now.saturating_duration_since(since);
        let rate_bps = (bytes - before) as f64 * 8.0 / elapsed.as_secs_f64().max(1e-9);
        elapsed >= RATE_FROM && rate_bps > limit_bps as f64 * RATE_SLACK
    }

    /// All streams as they were in the omitted time that just ended, and how long it was.
    pub fn omitted(&self) -> (Duration, Vec<Standing>) {
        let lanes = self.lanes.lanes.iter().zip(&self.before);
        let standings = lanes.map(|(lane, before)| Standing {
            count: before.count,
            retransmits: before.retransmits,
            ..standing(lane, &Mark::default())
        });
        (self.counts_since - self.began, standings.collect())
    }

    /// All streams, as far as they are.
    pub fn standings(&self) -> Vec<Standing> {
        let lanes = self.lanes.lanes.iter().zip(&self.before);
        lanes.map(|(lane, before)| standing(lane, before)).collect()
    }

    /// What ended streams before their time.
    pub fn errors(&self) -> Vec<String> {
        let error = |lane: &Lane| Some(format!("stream {}: {}", lane.id, lane.error()?));
        self.lanes.lanes.iter().filter_map(error).collect()
    }

    /// Ends the data and gives what was measured. Of a test of bytes or blocks all that was sent counts, of one of a time what had
    /// come when it was over.
    pub fn finish(&mut self) -> Results {
        let (now, receives) = (Instant::now(), self.wanted.forward() > 0);
        let last = self.lanes.finish(receives && self.wanted.is_counted());
        let end = if last > now { last } else { now };
        let elapsed = end.saturating_duration_since(self.counts_since);
        let wall = end.saturating_duration_since(self.began);
        let streams = self.lanes.lanes.iter().zip(&self.before);
        Results {
            cpu_percent: self.cpu_percent(wall),
            sender_has_retransmits: self.has_retransmits(),
            congestion: self.congestion.clone(),
            output: None,
            streams: streams
                .map(|(lane, before)| result(lane, before, elapsed))
                .collect(),
        }
    }

    /// Ends the data of a test that nobody wants the figures of.
    pub fn abandon(&mut self) {
        self.lanes.stop();
    }

    fn cpu_percent(&self, wall: Duration) -> [f64; 3] {
        let add = |total: CpuTime, lane: &Lane| CpuTime {
            user: total.user + lane.cpu().user,
            system: total.system + lane.cpu().system,
        };
        let cpu = self.lanes.lanes.iter().fold(CpuTime::default(), add);
        let percent = |time: Duration| time.as_secs_f64() * 100.0 / wall.as_secs_f64().max(1e-9);
        [
            percent(cpu.user + cpu.system),
            percent(cpu.user),
            percent(cpu.system),
        ]
    }

    fn has_retransmits(&self) -> i64 {
        match self.wanted.backward() {
            0 => -1,
            _ => i64::from(!self.wanted.is_udp()),
        }
    }
}

impl Mark {
    fn of(lane: &Lane) -> Self {
        Self {
            count: lane.tally.count(),
            retransmits: lane.retransmits().filter(|_| lane.is_sender),
        }
    }
}

fn standing(lane: &Lane, before: &Mark) -> Standing {
    let now = Mark::of(lane);
    Standing {
        id: lane.id,
        is_sender: lane.is_sender,
        count: Count {
            bytes: now.count.bytes - before.count.bytes,
            packets: now.count.packets.saturating_sub(before.count.packets),
            errors: now.count.errors.saturating_sub(before.count.errors),
            out_of_order: now.count.out_of_order.saturating_sub(before.count.out_of_order),
            jitter_us: now.count.jitter_us,
        },
        retransmits: now
            .retransmits
            .map(|count| count.saturating_sub(before.retransmits.unwrap_or(0))),
        cwnd_bytes: lane.cwnd_bytes().filter(|_| lane.is_sender),
    }
}

fn result(lane: &Lane, before: &Mark, elapsed: Duration) -> StreamResult {
    let (total, counted) = (lane.tally.count(), standing(lane, before));
    let retransmits = counted.retransmits.and_then(|count| i64::try_from(count).ok());
    StreamResult {
        id: lane.id,
        bytes: counted.count.bytes,
        retransmits: retransmits.unwrap_or(-1),
        jitter_s: total.jitter_us / 1e6,
        errors: total.errors,
        omitted_errors: before.count.errors,
        packets: total.packets,
        omitted_packets: before.count.packets,
        elapsed_s: elapsed.as_secs_f64(),
    }
}

/// What a client hears whose streams' threads could not be started.
fn start_code(wanted: &Parameters) -> ErrorCode {
    if wanted.server_cpu.is_some() {
        ErrorCode::AFFINITY
    } else {
        ErrorCode::STREAM
    }
}

fn set_options(socket: &Socket, wanted: &Parameters, notes: &mut Vec<String>) -> Result<(), Refusal> {
    let failed =
        |code: ErrorCode, what: &'static str| move |error: io::Error| (code, Failure::system(what, &error));
    set_tos(socket, wanted).map_err(failed(ErrorCode::TOS, "type of service"))?;
    set_buffers(socket, wanted)?;
    if wanted.pacing_rate_bps > 0 {
        let rate = set_max_pacing_rate(socket.as_fd(), wanted.pacing_rate_bps.div_ceil(8));
        // iperf3 goes on without it, too.
        notes.extend(
            rate.err()
                .map(|error| format!("pacing rate: {}", kernel_words(&error))),
        );
    }
    if wanted.is_udp() {
        if wanted.dont_fragment {
            let forbidden = forbid_fragments(socket.as_fd(), family(socket));
            forbidden.map_err(failed(ErrorCode::STREAM, "forbidding fragments"))?;
        }
        return Ok(());
    }
    socket
        .set_tcp_nodelay(wanted.no_delay)
        .map_err(failed(ErrorCode::STREAM, "no delay"))?;
    // The MSS is the client's: what it announced holds for both directions of its connections.
    match wanted
        .congestion
        .as_ref()
        .map(|name| (name, socket.set_tcp_congestion(name.as_bytes())))
    {
        Some((name, Err(error))) if error.kind() == io::ErrorKind::NotFound => {
            notes.push(format!("congestion control {name} is not available here"));
        }
        Some((_, Err(error))) => {
            return Err((
                ErrorCode::CONGESTION,
                Failure::system("congestion control", &error),
            ));
        }
        Some((_, Ok(()))) | None => {}
    }
    Ok(())
}

fn family(socket: &Socket) -> Family {
    let is_v6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
    if is_v6 { Family::V6 } else { Family::V4 }
}

fn set_tos(socket: &Socket, wanted: &Parameters) -> io::Result<()> {
    match (u32::from(wanted.tos), family(socket)) {
        (0, _) => Ok(()),
        (tos, Family::V4) => socket.set_tos_v4(tos),
        (tos, Family::V6) => {
            socket.set_tclass_v6(tos)?;
            // For a connection of IPv4 that came to a socket of IPv6; of no meaning to others.
            let _ = socket.set_tos_v4(tos);
            Ok(())
        }
    }
}

/// Sets what the client asked for, or what a datagram needs, and holds the kernel's answer against it.
fn set_buffers(socket: &Socket, wanted: &Parameters) -> Result<(), Refusal> {
    let failed = |error: &io::Error| {
        (
            ErrorCode::BUFFER_GRANTED,
            Failure::system("socket buffers", error),
        )
    };
    let granted = || Ok::<_, io::Error>((socket.send_buffer_size()?, socket.recv_buffer_size()?));
    let set = |bytes: usize| {
        socket
            .set_recv_buffer_size(bytes)
            .and_then(|()| socket.set_send_buffer_size(bytes))
    };
    let (asked, datagram) = (wanted.window_bytes as usize, wanted.block_bytes as usize);
    if asked > 0 {
        set(asked).map_err(|error| failed(&error))?;
        let (send, receive) = granted().map_err(|error| failed(&error))?;
        if send.min(receive) < asked {
            let line = format!(
                "socket buffers: {asked} bytes requested, {} granted",
                send.min(receive)
            );
            return Err((ErrorCode::BUFFER_GRANTED, Failure::new(FailureKind::Limit, line)));
        }
    } else if wanted.is_udp() {
        let (send, receive) = granted().map_err(|error| failed(&error))?;
        if datagram > send.min(receive) {
            set(datagram + BUFFER_EXTRA).map_err(|error| failed(&error))?;
        }
    }
    Ok(())
}

/// The kernel pads the name with zeros.
fn congestion_of(socket: &Socket) -> Option<String> {
    let name = socket.tcp_congestion().ok()?;
    Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned())
}
