//! What a connection has to send.

use super::acks::AckInput;
use super::incoming::GREETING_KIND;
use super::limits::SendLimit;
use super::{Connection, State, Transmit};
use crate::udt::send_buffer::Dropped;
use crate::udt::wire::{
    Ack, AckDetail, Control as ControlMessage, HEADER_BYTES, Rates, write_control, write_nak,
};

/// How long bytes wait for company, so that small writes leave in full packets and full bursts.
const COMPANY_NS: u64 = 50_000;

/// How much may go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Allowance {
    /// Most packets of the burst.
    packets: usize,
    /// New packets below this index.
    new_limit: u64,
}

impl Connection {
    /// The next datagrams to hand to the kernel in one call, if there are any now. Call until there are none.
    pub fn poll_transmit(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        if self.poll_control(now_ns) {
            return Some(Transmit {
                bytes: &self.scratch,
                segment_bytes: self.scratch.len(),
                packets: 1,
            });
        }
        if matches!(self.state, State::Closed(_)) {
            return None;
        }
        self.poll_data(now_ns)
    }

    /// Writes the next control packet to `scratch`; false if there is none.
    fn poll_control(&mut self, now_ns: u64) -> bool {
        self.poll_parting(now_ns)
            || (!matches!(self.state, State::Closed(_))
                && (self.poll_greeting(now_ns)
                    || self.poll_ack2(now_ns)
                    || self.poll_ack(now_ns)
                    || self.poll_nak(now_ns)
                    || self.poll_drop(now_ns)
                    || self.poll_keep_alive(now_ns)))
    }

    /// Microseconds since the opening; wraps.
    fn timestamp_us(&self, now_ns: u64) -> u32 {
        (now_ns.saturating_sub(self.opened_ns) / 1_000) as u32
    }

    fn compose(&mut self, now_ns: u64, control: &ControlMessage<'_>) {
        let timestamp_us = self.timestamp_us(now_ns);
        write_control(control, timestamp_us, self.peer_socket, &mut self.scratch);
    }

    fn poll_parting(&mut self, now_ns: u64) -> bool {
        let again_ns = self.parting_again_ns();
        let Some(is_whole) = self.parting.take(now_ns, again_ns) else {
            return false;
        };
        let token = self.greeting.peer_token().unwrap_or(0);
        // To others these words are padding, and 0.
        let token = if is_whole || !self.greeting.is_known() {
            token
        } else {
            !token
        };
        self.compose(now_ns, &ControlMessage::Shutdown { token });
        true
    }

    fn poll_greeting(&mut self, now_ns: u64) -> bool {
        if !self.greeting.take(now_ns) {
            return false;
        }
        let mut body = [0; 12];
        body[..4].copy_from_slice(&self.token.to_be_bytes());
        body[4..8].copy_from_slice(&1u32.to_be_bytes());
        body[8..].copy_from_slice(&u32::from(self.is_peer_farline()).to_be_bytes());
        let kind = GREETING_KIND;
        self.compose(now_ns, &ControlMessage::Custom { kind, body: &body });
        true
    }

    fn poll_ack2(&mut self, now_ns: u64) -> bool {
        let Some(number) = self.pending_ack2.take() else {
            return false;
        };
        self.compose(now_ns, &ControlMessage::Ack2 { number });
        true
    }

    fn poll_ack(&mut self, now_ns: u64) -> bool {
        let news = AckInput {
            next: self.receive.next(),
            received: self.acks.received(),
            window: self.window_packets(),
        };
        let Some(plan) = self.acks.take(now_ns, news, self.rtt.overdue_ns()) else {
            return false;
        };
        // Some that are not farline fail at an ACK without rates, though libudt sends them.
        let rates = (plan.has_rates || !self.greeting.is_known()).then(|| Rates {
            arrival_pps: pps_word(self.arrival.pps()),
            capacity_pps: pps_word(self.capacity.pps()),
        });
        let detail = AckDetail {
            rtt_us: word(self.rtt.smoothed_ns() / 1_000),
            rtt_variance_us: word(self.rtt.variance_ns() / 1_000),
            window_packets: word(news.window),
            rates,
            received: self.is_peer_farline().then_some(news.received as u32),
        };
        let ack = Ack {
            number: plan.number,
            next: self.receive_isn.plus(news.next),
            detail: Some(detail),
        };
        self.counted.sent_acks += 1;
        self.compose(now_ns, &ControlMessage::Ack(ack));
        true
    }

    fn poll_nak(&mut self, now_ns: u64) -> bool {
        let next = self.receive.next();
        self.naks.retain(|&(_, last)| last >= next);
        if self.naks.is_empty() {
            return false;
        }
        let isn = self.receive_isn;
        let wire: Vec<_> = self
            .naks
            .iter()
            .take(self.packet_bytes / 4)
            .map(|&(first, last)| (isn.plus(first), isn.plus(last)))
            .collect();
        let timestamp_us = self.timestamp_us(now_ns);
        let written = write_nak(
            &wire,
            self.packet_bytes,
            timestamp_us,
            self.peer_socket,
            &mut self.scratch,
        );
        self.naks.drain(..written.max(1));
        self.counted.sent_naks += 1;
        true
    }

    fn poll_drop(&mut self, now_ns: u64) -> bool {
        let Some(Dropped { message, first, last }) = self.send.take_dropped(now_ns) else {
            return false;
        };
        let isn = self.send_isn;
        let control = ControlMessage::DropRequest {
            message,
            first: isn.plus(first),
            last: isn.plus(last),
        };
        self.compose(now_ns, &control);
        true
    }

    fn poll_keep_alive(&mut self, now_ns: u64) -> bool {
        let is_due = std::mem::take(&mut self.keep_alive_due);
        if is_due {
            self.compose(now_ns, &ControlMessage::KeepAlive);
        }
        is_due
    }

    fn poll_data(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let allowance = match self.allowance(now_ns) {
            Ok(allowance) => allowance,
            Err(holdup) => {
                self.limits.note(now_ns, holdup);
                self.note_application(holdup);
                if matches!(holdup, SendLimit::Window | SendLimit::Congestion) {
                    self.pacing.forgo(now_ns);
                }
                return None;
            }
        };
        let timestamp_us = self.timestamp_us(now_ns);
        let rate_pps = self.paced_pps();
        let is_idle = self.flight_span() == 0;
        let (in_flight, end) = (self.flight_packets(), self.send.end());
        let (packet_bytes, is_app_limited) = (self.packet_bytes, self.is_app_limited);
        let burst = self
            .send
            .next_burst(now_ns, timestamp_us, allowance.packets, allowance.new_limit)?;
        let payload_bytes = burst.bytes.len() - burst.packets * HEADER_BYTES;
        self.pacing.sent(now_ns, rate_pps, burst.packets, payload_bytes);
        self.counted.sent_packets += burst.packets as u64;
        self.delivery
            .on_sent(now_ns, burst.packets as u64, in_flight, is_app_limited);
        if burst.is_repeat {
            self.counted.repeated_packets += burst.packets as u64;
        } else {
            let has_rest = burst.first + (burst.packets as u64) < end;
            self.waiting_since_ns = has_rest.then_some(now_ns);
        }
        if is_idle {
            self.expiry.resumed(now_ns, &self.rtt);
            self.rtt.resumed();
        }
        self.limits.note(now_ns, SendLimit::Sending);
        Some(Transmit {
            bytes: burst.bytes,
            segment_bytes: packet_bytes,
            packets: burst.packets,
        })
    }

    /// The congestion control's rate where it is the lower one. The stated rate is held by a schedule of its own, which
    /// makes up for lateness.
    fn paced_pps(&self) -> Option<f64> {
        let stated_pps = self.stated_pps.unwrap_or(f64::INFINITY);
        self.control.rate_pps().filter(|&rate_pps| rate_pps < stated_pps)
    }

    /// The lower of the congestion control's rate and the stated one.
    pub(super) fn rate_pps(&self) -> Option<f64> {
        self.paced_pps().or(self.stated_pps)
    }

    /// Packets that should go together.
    fn quantum_packets(&self) -> usize {
        self.pacing.quantum_packets(self.rate_pps(), self.burst_packets)
    }

    /// What may go now, or why nothing may.
    fn allowance(&mut self, now_ns: u64) -> Result<Allowance, SendLimit> {
        let (sent, lost) = (self.send.sent(), self.send.lost_packets());
        let ready = self.ready_below(now_ns);
        if lost == 0 && ready <= sent {
            return Err(self.starved());
        }
        if self.pacing.ready_ns() > now_ns {
            return Err(SendLimit::Pacing);
        }
        let quantum = self.quantum_packets();
        if lost > 0 {
            // What is lost was counted by the windows when it was first sent.
            let room = self.control.window_packets() - self.flight_packets() as f64;
            return Ok(Allowance {
                packets: quantum.min(room.max(1.0) as usize),
                new_limit: sent,
            });
        }
        let room = self.window_room(quantum);
        if room == 0 {
            return Err(SendLimit::Congestion);
        }
        let new_limit = ready.min(self.window_edge).min(sent.saturating_add(room));
        if new_limit <= sent {
            return Err(SendLimit::Window);
        }
        Ok(Allowance {
            packets: quantum,
            new_limit,
        })
    }

    /// New packets that the congestion window allows; 0 as well when it is too few to be worth a call.
    fn window_room(&self, quantum: usize) -> u64 {
        let (window, in_flight) = (self.control.window_packets(), self.flight_packets());
        let room = (window - in_flight as f64).max(0.0) as u64;
        let least = (quantum as u64).min((window / 4.0) as u64);
        if in_flight > 0 && room < least { 0 } else { room }
    }

    /// Why there is nothing to send.
    fn starved(&self) -> SendLimit {
        if self.flight_span() == 0 && self.send.unsent_bytes() == 0 {
            SendLimit::Idle
        } else if self.send.free_bytes() == 0 {
            SendLimit::SendBuffer
        } else {
            SendLimit::Application
        }
    }

    /// Rates measured while the application gave too little say nothing about the path.
    fn note_application(&mut self, holdup: SendLimit) {
        self.is_app_limited = match holdup {
            SendLimit::Idle | SendLimit::Application | SendLimit::SendBuffer => {
                (self.flight_packets() as f64) < self.control.window_packets()
            }
            // The stated rate is the application's.
            SendLimit::Pacing => self.paced_pps().is_none(),
            SendLimit::Window | SendLimit::Congestion | SendLimit::Sending => false,
        };
    }

    /// New packets below this index are ready to go: whole bursts at once, the rest when it was flushed or has waited
    /// long enough for company.
    fn ready_below(&self, now_ns: u64) -> u64 {
        let (sent, end) = (self.send.sent(), self.send.end());
        let has_waited = self
            .waiting_since_ns
            .is_none_or(|since_ns| now_ns >= since_ns + COMPANY_NS);
        if has_waited || self.flush_below >= end || self.send.free_bytes() < self.payload_bytes() as u64 {
            return end;
        }
        let whole = self.send.unsent_bytes() / self.payload_bytes() as u64;
        let burst = self.quantum_packets() as u64;
        let ready = sent + whole / burst * burst;
        ready.max(self.flush_below.min(end))
    }

    /// When data that are there may go though nothing comes: their rate, or the end of their wait for company.
    pub(super) fn next_data_ns(&self) -> Option<u64> {
        let has_new = self.send.end() > self.send.sent();
        let has_lost = self.send.lost_packets() > 0;
        if !has_new && !has_lost {
            return None;
        }
        let quantum = self.quantum_packets();
        let is_blocked =
            !has_lost && (self.window_room(quantum) == 0 || self.window_edge <= self.send.sent());
        if is_blocked {
            return None;
        }
        let company_ns = self.waiting_since_ns.filter(|_| !has_lost).map_or(0, |since_ns| {
            let is_ready = self.ready_below(since_ns) > self.send.sent();
            if is_ready { 0 } else { since_ns + COMPANY_NS }
        });
        let wake_ns = self.pacing.wake_ns(self.paced_pps(), self.burst_packets);
        Some(wake_ns.max(company_ns))
    }
}

fn word(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A rate as an ACK carries it: a positive `i32`, 0 for unknown.
fn pps_word(pps: Option<f64>) -> u32 {
    pps.map_or(0, |pps| pps.clamp(0.0, f64::from(i32::MAX)) as u32)
}
