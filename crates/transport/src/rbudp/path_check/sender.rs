//! The sending end: pings, trains, and when each burst went.

use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use farline_proto::rbudp::train::{MAX_TRAINS, RoundTrips, TRAINS, TrainPlan};
use farline_spec::{Failure, PathCheck};
use farline_sys::time;
use farline_sys::wake::{Interest, wait_ready};
use socket2::Socket;

use super::datagram::{Datagram, Inbox};
use super::frame::{Frame, Sent, violated};
use super::outbox::Outbox;
use super::{CheckPlan, clock_ns};
use crate::failure::timed_out;
use crate::socket::time_left;

/// Pings, and the time between two. Others' queues come and go with their bursts: 200 ms see some of them.
pub(super) const PINGS: u32 = 20;
const PING_EVERY: Duration = Duration::from_millis(10);
/// Time that pongs are waited for after the last ping, beside one and a half round-trip times.
const PONG_PATIENCE: Duration = Duration::from_millis(50);
/// Longest round-trip time that is waited for: nothing on Earth takes as long.
const MAX_RTT: Duration = Duration::from_secs(1);
/// Least pause between two trains; half a round-trip time if that is longer.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs the sending end.
pub(super) fn run(
    feedback: &mut TcpStream,
    udp: &Socket,
    plan: &CheckPlan,
    deadline: Instant,
) -> Result<PathCheck, Failure> {
    wait_for_ready(feedback, plan, deadline)?;
    let trips = ping(udp, plan, deadline)?;
    let trains = match plan.train() {
        Some(train) => {
            let failed = |error| Failure::system("path check", &error);
            let blocks = !udp.nonblocking().map_err(failed)?;
            udp.set_nonblocking(true).map_err(failed)?;
            let trains = send_trains(udp, plan, &train, trips, deadline);
            udp.set_nonblocking(!blocks).map_err(failed)?;
            trains?
        }
        None => Vec::new(),
    };
    Frame::Sent(Sent { trips, trains }).send(feedback, deadline)?;
    match Frame::receive(feedback, deadline)? {
        Frame::Result(check) if check.rate_bps == plan.rate_bps => Ok(check),
        _ => Err(violated("the other end gave no result for this rate")),
    }
}

fn wait_for_ready(feedback: &mut TcpStream, plan: &CheckPlan, deadline: Instant) -> Result<(), Failure> {
    let Frame::Ready {
        rate_bps,
        packet_bytes,
    } = Frame::receive(feedback, deadline)?
    else {
        return Err(violated("the other end did not start with READY"));
    };
    if (rate_bps, packet_bytes) != (plan.rate_bps, plan.packet_bytes as u64) {
        let what = format!(
            "the other end expects {rate_bps} bit/s in packets of {packet_bytes} bytes, here it is {} bit/s in packets of {} \
             bytes",
            plan.rate_bps, plan.packet_bytes
        );
        return Err(violated(&what));
    }
    Ok(())
}

/// Pings and what came back of them.
struct Pings {
    sent_ns: Vec<u64>,
    trips_us: Vec<Option<u64>>,
}

impl Pings {
    fn note(&mut self, datagram: Datagram, arrived_ns: Option<u64>) {
        let Datagram::Pong { index, kept_ns } = datagram else {
            return;
        };
        let Some(&sent_ns) = self.sent_ns.get(index as usize) else {
            return;
        };
        let took_ns = arrived_ns.unwrap_or_else(clock_ns).checked_sub(sent_ns);
        // Less than nothing: a clock was set, or the other end tells tales.
        let Some(trip_ns) = took_ns.and_then(|took_ns| took_ns.checked_sub(kept_ns)) else {
            return;
        };
        self.trips_us[index as usize].get_or_insert(trip_ns / 1_000);
    }

    /// The round trips there are so far.
    fn trips_us(&self) -> Vec<u64> {
        self.trips_us.iter().flatten().copied().collect()
    }
}

/// Sends pings and waits for pongs; what is known without them if none comes.
fn ping(udp: &Socket, plan: &CheckPlan, deadline: Instant) -> Result<RoundTrips, Failure> {
    let mut inbox = Inbox::new(plan.token);
    let mut pings = Pings {
        sent_ns: Vec::new(),
        trips_us: vec![None; PINGS as usize],
    };
    for index in 0..PINGS {
        pings.sent_ns.push(clock_ns());
        Datagram::Ping { index }.send(udp, plan.token);
        take_until(
            udp,
            &mut inbox,
            &mut pings,
            (Instant::now() + PING_EVERY).min(deadline),
        )?;
    }
    let last = Instant::now();
    loop {
        let trips_us = pings.trips_us();
        let longest_us = trips_us.iter().copied().max().unwrap_or(0).max(plan.rtt_hint_us);
        let rtt = Duration::from_micros(longest_us).min(MAX_RTT);
        let until = (last + rtt.mul_f64(1.5) + PONG_PATIENCE).min(deadline);
        if trips_us.len() == PINGS as usize || Instant::now() >= until {
            let hint_us = plan.rtt_hint_us;
            return Ok(RoundTrips::of(&trips_us).unwrap_or(RoundTrips {
                min_us: hint_us,
                median_us: hint_us,
                count: 0,
            }));
        }
        take_until(
            udp,
            &mut inbox,
            &mut pings,
            until.min(Instant::now() + PING_EVERY),
        )?;
    }
}

/// Takes pongs until `until`, or until all have come.
fn take_until(udp: &Socket, inbox: &mut Inbox, pings: &mut Pings, until: Instant) -> Result<(), Failure> {
    while let Some(left) = time_left(until) {
        wait_ready([(udp.as_fd(), Interest::Readable)], left)
            .map_err(|error| Failure::system("path check", &error))?;
        inbox.take(udp, &mut |datagram, arrived_ns| pings.note(datagram, arrived_ns))?;
        if pings.trips_us.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(())
}

/// Sends trains until enough of them went in time; gives the times of the bursts of each.
fn send_trains(
    udp: &Socket,
    plan: &CheckPlan,
    train: &TrainPlan,
    trips: RoundTrips,
    deadline: Instant,
) -> Result<Vec<Vec<u64>>, Failure> {
    let rtt = Duration::from_micros(trips.median_us).min(MAX_RTT);
    let mut outbox = Outbox::new(udp, plan, train);
    let mut trains: Vec<Vec<u64>> = Vec::new();
    for number in 0..MAX_TRAINS as u32 {
        if time_left(deadline).is_none() {
            return Err(timed_out("path check"));
        }
        if trains.iter().filter(|sent_ns| !train.is_late(sent_ns)).count() == TRAINS {
            break;
        }
        if number > 0 {
            // What the last train left in a queue must not be found by the next.
            let pause = PAUSE.max(rtt / 2).as_nanos() as u64;
            time::sleep_until(time::now_ns() + pause, 0);
        }
        trains.push(outbox.send_train(number)?);
    }
    Ok(trains)
}
