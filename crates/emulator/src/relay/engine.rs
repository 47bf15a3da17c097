//! The engine: one thread that hands over what is due, reads what the hosts send, and sleeps in between.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossbeam_channel::Receiver;
use farline_spec::Failure;
use farline_sys::arena::{Arena, Frame};
use farline_sys::tun::Tun;

use super::outlet::{Outlet, Packet};
use super::request::{PipeReport, Report, Request, WakeSignal};
use super::tap::Tap;
use super::too_big::TooBigAnswers;
use super::traffic::Traffic;
use super::wait::Waits;
use crate::layout::Layout;
use crate::model::{Network, Train};
use crate::packet::{self, Parsed};

/// What is read from one device before the others and what is due have their turn: a few of the largest packets, or
/// so many small ones that the cost of a turn does not count.
const BYTES_PER_TURN: usize = 4 * 65_536;
const READS_PER_TURN: usize = 32;
/// Token of the waker; the others are numbers of ports.
const WOKEN: u64 = u64::MAX;

/// Everything the engine thread owns.
pub struct Engine {
    pub(super) layout: Arc<Layout>,
    pub(super) network: Network<Packet>,
    pub(super) arena: Arena,
    pub(super) waits: Waits,
    pub(super) outlet: Outlet,
    pub(super) too_big: TooBigAnswers,
    pub(super) taps: Vec<Tap>,
    pub(super) requests: Receiver<Request>,
    pub(super) bell: Arc<WakeSignal>,
}

impl Engine {
    /// Carries packets until it is stopped.
    ///
    /// # Errors
    /// "system" when a device or a wait fails.
    pub fn run(mut self) -> Result<(), Failure> {
        let outcome = self.carry();
        self.end_captures();
        outcome
    }

    fn carry(&mut self) -> Result<(), Failure> {
        let mut ready = Vec::with_capacity(self.layout.ports.len() + 1);
        self.watch_devices()?;
        while !self.bell.stop.load(Ordering::Acquire) {
            self.turn(&mut ready)?;
        }
        Ok(())
    }

    /// Hands on what captures have recorded when nobody ended them before.
    fn end_captures(&mut self) {
        self.record_watched();
        for tap in self.taps.drain(..) {
            tap.finish();
        }
    }

    fn watch_devices(&self) -> Result<(), Failure> {
        let wakers = [(self.bell.waker.as_fd(), WOKEN)];
        let devices = self.outlet.devices().iter().map(Tun::as_fd).zip(0..);
        for (descriptor, token) in devices.chain(wakers) {
            self.waits
                .add(descriptor, token)
                .map_err(|error| Failure::system("waiting for a host's device", &error))?;
        }
        Ok(())
    }

    /// One wait and what it brought. Everything in a turn happens at one virtual time, read once: packets that wait
    /// in a device meanwhile come a little later, and never before one that is handed over.
    fn turn(&mut self, ready: &mut Vec<u64>) -> Result<(), Failure> {
        let waited = self
            .waits
            .wait(self.network.next_event_ns(), ready)
            .map_err(|error| Failure::system("waiting for packets", &error))?;
        let now_ns = waited.at_ns;
        let outlet = &mut self.outlet;
        self.network
            .advance(now_ns, &mut |arrival| outlet.hand_over(arrival));
        for &token in &*ready {
            if token == WOKEN {
                self.answer_all(now_ns);
            } else {
                self.waits.expect_packets();
                self.take_in(token as usize, now_ns)?;
            }
        }
        self.send_too_big(now_ns);
        self.record_watched();
        self.outlet.traffic.stalled_ns += waited.stalled_ns + self.waits.end_turn();
        Ok(())
    }

    /// Reads a few packets of a port and sends them on their way.
    fn take_in(&mut self, port: usize, now_ns: u64) -> Result<(), Failure> {
        let mut bytes = 0;
        for _ in 0..READS_PER_TURN {
            match self.arena.read(self.outlet.device(port)) {
                Ok(Some(frame)) => {
                    bytes += frame.len();
                    self.outlet.ports[port].read_packets += 1;
                    self.send(port, now_ns, frame);
                }
                Ok(None) => break,
                Err(error) if error.kind() == std::io::ErrorKind::OutOfMemory => self.discard(port)?,
                Err(error) => return Err(self.device_failure(port, &error)),
            }
            if bytes >= BYTES_PER_TURN {
                break;
            }
        }
        Ok(())
    }

    /// Takes a packet for which there is no memory out of the device.
    fn discard(&mut self, port: usize) -> Result<(), Failure> {
        match self.arena.discard(self.outlet.device(port)) {
            Ok(true) => {
                self.outlet.ports[port].read_packets += 1;
                self.outlet.traffic.arena_drops += 1;
                Ok(())
            }
            Ok(false) => Ok(()),
            Err(error) => Err(self.device_failure(port, &error)),
        }
    }

    fn send(&mut self, port: usize, now_ns: u64, frame: Frame) {
        let traffic = &mut self.outlet.traffic;
        let Ok(parsed) = packet::parse(&frame) else {
            traffic.malformed_packets += 1;
            return;
        };
        let Some(to) = self.layout.port_of(parsed.destination) else {
            traffic.ignored_packets += 1;
            return;
        };
        let segments = u64::from(parsed.form.segments());
        if self.network.send(now_ns, port, to, train(frame, &parsed)) {
            traffic.sent_packets += 1;
            traffic.sent_segments += segments;
        } else {
            traffic.pathless_packets += 1;
        }
    }

    fn send_too_big(&mut self, now_ns: u64) {
        for packet in self.network.take_too_big() {
            self.too_big.answer(now_ns, &packet, &mut self.outlet);
        }
    }

    fn record_watched(&mut self) {
        if self.taps.is_empty() {
            return;
        }
        for watched in self.network.take_watched() {
            let of_pipe = |tap: &&mut Tap| tap.pipes.contains(&watched.pipe);
            if let Some(tap) = self.taps.iter_mut().find(of_pipe) {
                let rate_bps = self.network.state(watched.pipe, watched.at_ns).rate_bps;
                tap.record(&watched, rate_bps, &self.outlet.clock);
            }
        }
    }

    fn answer_all(&mut self, now_ns: u64) {
        self.bell.waker.drain();
        while let Ok(request) = self.requests.try_recv() {
            self.answer(request, now_ns);
        }
    }

    /// Whoever asked may have given up waiting, so that an answer nobody takes is no failure.
    fn answer(&mut self, request: Request, now_ns: u64) {
        match request {
            Request::Change { change, spare, reply } => {
                self.arena.adopt(spare);
                let _ = reply.send(self.network.change(now_ns, &change));
            }
            Request::Topology { reply } => {
                let _ = reply.send(self.network.topology());
            }
            Request::Report {
                take_backlog_max,
                reply,
            } => {
                let _ = reply.send(self.report(now_ns, take_backlog_max));
            }
            Request::Watch { tap, reply } => {
                tap.pipes.iter().for_each(|&pipe| self.network.watch(pipe, true));
                self.taps.push(tap);
                let _ = reply.send(());
            }
            Request::Unwatch { link, reply } => {
                let _ = reply.send(self.unwatch(link));
            }
        }
    }

    fn unwatch(&mut self, link: usize) -> u64 {
        self.record_watched();
        let Some(place) = self.taps.iter().position(|tap| tap.link == link) else {
            return 0;
        };
        let tap = self.taps.swap_remove(place);
        tap.pipes.iter().for_each(|&pipe| self.network.watch(pipe, false));
        tap.finish()
    }

    fn report(&mut self, now_ns: u64, take_backlog_max: bool) -> Report {
        let pipe_count = self.layout.pipes.len();
        let pipes = (0..pipe_count).map(|pipe| PipeReport {
            counters: self.network.counters(pipe),
            state: self.network.state(pipe, now_ns),
            backlog_max_bytes: match take_backlog_max {
                true => self.network.take_backlog_max(pipe),
                false => 0,
            },
        });
        let pipes = pipes.collect();
        if take_backlog_max {
            self.taps.iter_mut().for_each(Tap::flush);
        }
        Report {
            at_ns: now_ns,
            pipes,
            lateness: self.outlet.lateness.clone(),
            wait_lateness: self.waits.lateness().clone(),
            traffic: Traffic {
                lead_ns: self.waits.lead_ns(),
                ..self.outlet.traffic
            },
            ports: self.outlet.ports.clone(),
            arena: self.arena.usage(),
        }
    }

    fn device_failure(&self, port: usize, error: &std::io::Error) -> Failure {
        let port = &self.layout.ports[port];
        let host = &self.layout.hosts[port.host].name;
        Failure::system(&format!("device {} of host {host}", port.device), error)
    }
}

/// A packet as the model knows it; what came with a mark keeps it.
pub(super) fn train(frame: Frame, parsed: &Parsed) -> Train<Packet> {
    let (form, marked) = (parsed.form, parsed.marked);
    Train {
        segments: form.segments(),
        segment_bytes: form.segment_bytes(),
        last_bytes: form.last_bytes(),
        ecn_capable: parsed.ecn_capable,
        marked,
        ..Train::single(Packet { frame, form, marked }, 0)
    }
}
