//! The receiving end: answers pings, notes when trains come, and says what it came to.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_proto::rbudp::train::{Arrivals, MAX_TRAINS, Passage, TRAINS, TrainPlan, judge};
use farline_spec::{Failure, PathCheck};
use farline_sys::wake::{Interest, wait_ready};
use socket2::Socket;

use super::datagram::{Datagram, Inbox};
use super::frame::{Frame, Reader, Sent, violated};
use super::sender::PINGS;
use super::{CheckPlan, clock_ns};
use crate::failure::timed_out;
use crate::socket::time_left;

/// Time for the end of the last train after the sender said that it was sent: an eighth of the round-trip time, within
/// these. SENT takes the way of the trains and comes behind them.
const SETTLE: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(50)];
/// A ping that seems to have been kept longer came while a clock was set.
const MAX_KEPT_NS: u64 = 1_000_000_000;

/// Runs the receiving end.
pub(super) fn run(
    feedback: &mut TcpStream,
    udp: &Socket,
    plan: &CheckPlan,
    deadline: Instant,
) -> Result<PathCheck, Failure> {
    let ready = Frame::Ready {
        rate_bps: plan.rate_bps,
        packet_bytes: plan.packet_bytes as u64,
    };
    ready.send(feedback, deadline)?;
    let train = plan.train();
    let mut log = Log::new(udp, plan.token, train.as_ref());
    let sent = log.listen(feedback, deadline)?;
    log.expect(sent.trains.len())?;
    log.settle(sent.trips.median_us, deadline)?;
    let check = log.conclude(plan, train.as_ref(), &sent);
    Frame::Result(check).send(feedback, deadline)?;
    Ok(check)
}

/// What came.
struct Log<'a> {
    udp: &'a Socket,
    token: u32,
    inbox: Inbox,
    trains: Vec<Arrivals>,
    answers: u32,
}

impl<'a> Log<'a> {
    fn new(udp: &'a Socket, token: u32, train: Option<&TrainPlan>) -> Self {
        let trains = train.map_or_else(Vec::new, |plan| vec![Arrivals::new(plan); MAX_TRAINS]);
        Self {
            udp,
            token,
            inbox: Inbox::new(token),
            trains,
            answers: 0,
        }
    }

    /// Answers and notes until the sender says that all is sent.
    fn listen(&mut self, feedback: &mut TcpStream, deadline: Instant) -> Result<Sent, Failure> {
        let mut reader = Reader::default();
        loop {
            let left = time_left(deadline).ok_or_else(|| timed_out("path check"))?;
            let fds = [feedback.as_fd(), self.udp.as_fd()].map(|fd| (fd, Interest::Readable));
            let [is_told, has_come] =
                wait_ready(fds, left).map_err(|error| Failure::system("path check", &error))?;
            if has_come {
                self.take()?;
            }
            if is_told {
                match reader.read(feedback)? {
                    Some(Frame::Sent(sent)) => return Ok(sent),
                    Some(_) => return Err(violated("the other end does not say what it sent")),
                    None => {}
                }
            }
        }
    }

    /// The sender says that it sent `count` trains.
    fn expect(&mut self, count: usize) -> Result<(), Failure> {
        let allowed = if self.trains.is_empty() {
            0..=0
        } else {
            TRAINS..=MAX_TRAINS
        };
        if !allowed.contains(&count) {
            let what = format!("the other end sent {count} trains; allowed: {allowed:?}");
            return Err(violated(&what));
        }
        self.trains.truncate(count);
        Ok(())
    }

    /// Waits a moment for what is still on its way.
    fn settle(&mut self, rtt_us: u64, deadline: Instant) -> Result<(), Failure> {
        let [least, most] = SETTLE;
        let until = Instant::now() + Duration::from_micros(rtt_us / 8).clamp(least, most);
        while !self.trains.iter().all(Arrivals::is_whole) {
            let Some(left) = time_left(until.min(deadline)) else {
                break;
            };
            wait_ready([(self.udp.as_fd(), Interest::Readable)], left)
                .map_err(|error| Failure::system("path check", &error))?;
            self.take()?;
        }
        Ok(())
    }

    fn take(&mut self) -> Result<(), Failure> {
        let (udp, token, trains, answers) = (self.udp, self.token, &mut self.trains, &mut self.answers);
        self.inbox.take(udp, &mut |datagram, arrived_ns| match datagram {
            Datagram::Train { train, index } => {
                if let Some(arrivals) = trains.get_mut(train as usize) {
                    arrivals.note(index, arrived_ns);
                }
            }
            // Twice as many as there are, for the network may double some: no reflector for strangers.
            Datagram::Ping { index } if *answers < 2 * PINGS => {
                let kept_ns = arrived_ns.and_then(|at_ns| clock_ns().checked_sub(at_ns));
                let kept_ns = kept_ns.filter(|&kept_ns| kept_ns <= MAX_KEPT_NS).unwrap_or(0);
                Datagram::Pong { index, kept_ns }.send(udp, token);
                *answers += 1;
            }
            Datagram::Ping { .. } | Datagram::Pong { .. } => {}
        })
    }

    fn conclude(&self, plan: &CheckPlan, train: Option<&TrainPlan>, sent: &Sent) -> PathCheck {
        let passages = train.map_or_else(Vec::new, |plan| Passage::read(plan, &sent.trains, &self.trains));
        let packets = train.map_or(0, |train| u64::from(train.packets())) * self.trains.len() as u64;
        let came = self
            .trains
            .iter()
            .map(|arrivals| u64::from(arrivals.count()))
            .sum();
        judge(plan.rate_bps, &passages, sent.trips, packets, came)
    }
}
