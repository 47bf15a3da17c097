//! What datagrams do to a connection.
//!
//! Nothing a datagram says is believed beyond what was sent: an ACK past the last packet sent, a NAK of what was
//! never sent, data outside the window are counted and ignored, where the reference library breaks the connection.

use super::{Closed, Connection, Reader, State};
use crate::udt::congestion::{AckEvent, LossEvent};
use crate::udt::receive_buffer::Inserted;
use crate::udt::wire::{
    Ack, AckDetail, Control as ControlMessage, DataHeader, HEADER_BYTES, LossRanges, SocketKind,
    destination_of, expand, is_control, read_control,
};

/// Kind of the user-defined control packet by which farline ends know each other: "FA".
pub(super) const GREETING_KIND: u16 = 0x4641;
/// Most ranges of one NAK that are looked at: more do not fit into a datagram of 64 KiB.
const NAK_RANGES: usize = 16_384;
/// ACK2s to a peer that also reports what it received need not follow every ACK.
const ACK2_NS: u64 = 5_000_000;

/// What one call brought, added up.
#[derive(Debug, Default)]
struct Tally {
    fresh: u64,
    duplicates: u64,
    first_index: Option<u64>,
}

impl Connection {
    /// Takes what one receive call brought: datagrams of `segment_bytes` each, the last of which may be shorter.
    /// Those for other sockets and those that make no sense are ignored.
    ///
    /// Payload that is next in order goes straight to `reader` as long as it has room, the rest to the receive buffer.
    pub fn handle_datagrams(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        segment_bytes: usize,
        reader: &mut Reader<'_>,
    ) {
        let mut tally = Tally::default();
        let mut is_ours = false;
        for datagram in bytes.chunks(segment_bytes.max(1)) {
            if destination_of(datagram) != Some(self.socket) {
                continue;
            }
            is_ours = true;
            if is_control(datagram) {
                self.handle_control(now_ns, datagram);
            } else {
                self.handle_data(now_ns, datagram, reader, &mut tally);
            }
        }
        if is_ours && !matches!(self.state, State::Closed(_)) {
            self.expiry.heard(now_ns, &self.rtt);
            self.settle_arrivals(now_ns, &tally);
            self.part(now_ns);
        }
    }

    fn handle_data(&mut self, now_ns: u64, datagram: &[u8], reader: &mut Reader<'_>, tally: &mut Tally) {
        let Some(header) = DataHeader::read(datagram) else {
            self.counted.invalid_datagrams += 1;
            return;
        };
        let payload = &datagram[HEADER_BYTES..];
        let next = self.receive.next();
        let index = expand(self.receive_isn, header.sequence, next);
        let Some(index) = index.filter(|_| payload.len() <= self.payload_bytes()) else {
            self.counted.invalid_datagrams += 1;
            return;
        };
        self.counted.received_packets += 1;
        let is_bypass = self.kind == SocketKind::Stream
            && payload.len() <= reader.room()
            && self.receive.can_bypass(index);
        if !is_bypass {
            self.store(now_ns, index, &header, payload, tally);
            return;
        }
        let highest = self.receive.highest();
        reader.put(payload);
        self.counted.delivered_bytes += payload.len() as u64;
        self.receive.bypass(1);
        if index < highest {
            self.fill_gap(index);
        }
        tally.fresh += 1;
        tally.first_index.get_or_insert(index);
    }

    fn store(&mut self, now_ns: u64, index: u64, header: &DataHeader, payload: &[u8], tally: &mut Tally) {
        let highest = self.receive.highest();
        match self.receive.insert(index, header.message, payload) {
            Inserted::Fresh => {
                tally.fresh += 1;
                tally.first_index.get_or_insert(index);
                if index > highest {
                    self.gaps.open(highest, index - 1, now_ns);
                    self.counted.receive_lost_packets += index - highest;
                } else if index < highest {
                    self.fill_gap(index);
                }
            }
            Inserted::Duplicate => tally.duplicates += 1,
            Inserted::TooFar => self.counted.invalid_datagrams += 1,
        }
    }

    fn fill_gap(&mut self, index: u64) {
        if self.gaps.fill(index) {
            self.counted.reordered_packets += 1;
        }
    }

    /// After a batch: estimates, reports of what is missing, an ACK in its time.
    fn settle_arrivals(&mut self, now_ns: u64, tally: &Tally) {
        if tally.duplicates > 0 {
            self.counted.duplicate_packets += tally.duplicates;
            self.acks.missed(now_ns, self.rtt.smoothed_ns());
        }
        if tally.fresh == 0 {
            return;
        }
        self.arrival.observe(now_ns, tally.fresh);
        if let Some(first) = tally.first_index {
            self.capacity.observe(now_ns, first, tally.fresh);
        }
        self.acks.arrived(now_ns, tally.fresh, self.rtt.smoothed_ns());
        self.report_gaps(now_ns);
    }

    /// Collects what is to be reported missing now.
    pub(super) fn report_gaps(&mut self, now_ns: u64) {
        if self.gaps.packets() > 0 && self.naks.is_empty() {
            self.gaps.due(now_ns, self.renak_ns(), &mut self.naks);
        }
    }

    fn handle_control(&mut self, now_ns: u64, datagram: &[u8]) {
        let Some(packet) = read_control(datagram) else {
            self.counted.invalid_datagrams += 1;
            return;
        };
        if matches!(self.state, State::Closed(_)) {
            // A peer that missed our last word repeats its own.
            let is_answering = matches!(self.state, State::Closed(Closed::ByPeer | Closed::Aborted));
            let is_theirs =
                matches!(packet.control, ControlMessage::Shutdown { token } if token == self.token);
            if is_theirs && is_answering && !self.parting.has_begun() {
                self.parting.say(now_ns, true);
            }
            return;
        }
        match packet.control {
            ControlMessage::Ack(ack) => self.handle_ack(now_ns, &ack),
            ControlMessage::Nak(ranges) => self.handle_nak(now_ns, ranges),
            ControlMessage::Ack2 { number } => {
                if let Some(rtt_ns) = self.acks.confirm(now_ns, number) {
                    self.rtt.sample(rtt_ns);
                }
            }
            ControlMessage::Shutdown { token } => self.handle_shutdown(now_ns, token),
            ControlMessage::DropRequest { first, last, .. } if self.kind == SocketKind::Message => {
                let next = self.receive.next();
                if let (Some(first), Some(last)) = (
                    expand(self.receive_isn, first, next),
                    expand(self.receive_isn, last, next),
                ) {
                    self.handle_drop(now_ns, first, last);
                }
            }
            ControlMessage::PeerError { code } if !self.is_peer_farline() => {
                self.state = State::Closed(Closed::PeerError(code));
            }
            ControlMessage::DelayWarning => self.control.on_delay_warning(now_ns),
            ControlMessage::Custom { kind, body } if kind == GREETING_KIND => self.handle_greeting(body),
            _ => {}
        }
    }

    fn handle_ack(&mut self, now_ns: u64, ack: &Ack) {
        let next = expand(self.send_isn, ack.next, self.send.acked());
        let Some(next) = next.filter(|&next| next <= self.send.sent()) else {
            self.counted.invalid_datagrams += 1;
            return;
        };
        let before = self.send.acked();
        if next < before && ack.detail.is_none() {
            return;
        }
        let acked = self.send.acknowledge(next.max(before));
        if acked.packets > 0 {
            self.expiry.progressed(now_ns);
        }
        let rtt_ns = acked.sent_ns.map(|sent_ns| now_ns.saturating_sub(sent_ns));
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.sample(rtt_ns);
            self.pacing.set_round_trip(self.rtt.min_ns());
        }
        if let Some(detail) = &ack.detail {
            self.counted.received_acks += 1;
            self.take_detail(now_ns, next, ack.number, detail);
        }
        let delivered = self.send.acked().max(self.peer_received);
        let sample = self.delivery.on_ack(
            now_ns,
            delivered,
            self.counted.send_lost_packets,
            rtt_ns,
            self.rtt.min_ns(),
        );
        if let Some(rtt_ns) = sample.and_then(|sample| sample.rtt_ns) {
            self.rtt.resolved(rtt_ns);
        }
        let event = AckEvent {
            now_ns,
            acked_packets: acked.packets,
            next: self.send.acked(),
            largest_sent: self.send.sent().saturating_sub(1),
            in_flight: self.flight_packets(),
            delivered,
            sample,
            smoothed_rtt_ns: self.rtt.smoothed_ns(),
            min_rtt_ns: self.rtt.min_ns(),
            flow_window_packets: self.window_edge.saturating_sub(self.send.acked()),
            arrival_pps: self.peer_arrival_pps,
            capacity_pps: self.peer_capacity_pps,
        };
        self.control.on_ack(&event);
    }

    /// What a full ACK says beyond its number. Only a full one moves the window (libudt 4.11).
    fn take_detail(&mut self, now_ns: u64, next: u64, number: u32, detail: &AckDetail) {
        if next >= self.send.acked() {
            let window = u64::from(detail.window_packets).clamp(2, self.flow_window_packets);
            if next + window > self.window_edge && self.window_edge == self.send.sent() {
                // The window was the reason to wait; what waits behind it is not overdue.
                self.expiry.progressed(now_ns);
            }
            self.window_edge = next + window;
        }
        if let Some(received) = detail.received.filter(|_| self.is_peer_farline()) {
            self.take_received(received);
        }
        if let Some(rates) = detail.rates {
            smooth(&mut self.peer_arrival_pps, rates.arrival_pps);
            smooth(&mut self.peer_capacity_pps, rates.capacity_pps);
        }
        let is_time = self
            .last_ack2_ns
            .is_none_or(|last_ns| now_ns >= last_ns + ACK2_NS);
        if number > 0 && (is_time || !self.is_peer_farline()) {
            self.pending_ack2 = Some(number);
            self.last_ack2_ns = Some(now_ns);
        }
    }

    /// Extends a count of 32 bits; one that cannot be is ignored.
    fn take_received(&mut self, received: u32) {
        let known = self.peer_received;
        let ahead = received.wrapping_sub(known as u32);
        let now = known + u64::from(ahead);
        if ahead < 1 << 31 && now <= self.send.sent() {
            self.peer_received = now;
        }
    }

    fn handle_nak(&mut self, now_ns: u64, ranges: LossRanges<'_>) {
        self.counted.received_naks += 1;
        let (acked, sent) = (self.send.acked(), self.send.sent());
        // libudt reports a loss once only.
        let min_age_ns = if self.is_peer_farline() {
            self.rtt.report_age_ns()
        } else {
            0
        };
        let (mut lost, mut first_lost, mut last_lost) = (0, None, 0);
        // Ranges that overlap again and again would cost more than they can tell.
        let mut looked_at = 0;
        for (first, last) in ranges.take(NAK_RANGES) {
            if looked_at > 2 * (sent - acked) {
                self.counted.invalid_datagrams += 1;
                break;
            }
            let place = expand(self.send_isn, first, acked).zip(expand(self.send_isn, last, acked));
            let Some((first, last)) = place.filter(|&(first, last)| first <= last && last < sent) else {
                self.counted.invalid_datagrams += 1;
                continue;
            };
            if last < acked {
                continue;
            }
            let first = first.max(acked);
            looked_at += last - first + 1;
            let newly = self.send.mark_lost(first, last, now_ns, min_age_ns);
            if newly > 0 {
                lost += newly;
                first_lost = Some(first_lost.map_or(first, |earlier: u64| earlier.min(first)));
                last_lost = last_lost.max(last);
            }
        }
        let Some(first) = first_lost else { return };
        self.counted.send_lost_packets += lost;
        let event = LossEvent {
            now_ns,
            first,
            last: last_lost,
            packets: lost,
            largest_sent: sent - 1,
            in_flight: self.flight_packets(),
        };
        self.control.on_loss(&event);
    }

    fn handle_drop(&mut self, now_ns: u64, first: u64, last: u64) {
        if first > last || last < self.receive.next() {
            // One that comes again: the sender has missed the ACK.
            self.acks.missed(now_ns, self.rtt.smoothed_ns());
            return;
        }
        let highest = self.receive.highest();
        let dropped = if self.is_peer_farline() {
            self.receive.drop_packets(first, last)
        } else {
            self.receive.drop_message(first, last)
        };
        let Some((first, last)) = dropped else { return };
        if first > highest {
            self.gaps.open(highest, first - 1, now_ns);
        }
        self.gaps.fill_range(first, last);
        self.acks.arrived(now_ns, 0, self.rtt.smoothed_ns());
    }

    fn handle_greeting(&mut self, body: &[u8]) {
        let word = |at: usize| {
            let bytes = body.get(4 * at..4 * at + 4)?;
            Some(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        if let (Some(token), Some(is_seen)) = (word(0), word(2)) {
            self.greeting.heard(token, is_seen != 0);
            self.acks.be_eager();
            self.send.pass_unbegun();
        }
    }

    /// A farline peer proves that a shutdown is its own by our token, its complement if it gave up in the middle.
    fn handle_shutdown(&mut self, now_ns: u64, token: u32) {
        // A peer that has not heard our greeting, lost on the way, cannot know the token and says 0.
        let knows_us = self.greeting.is_seen();
        let has_holes = self.kind == SocketKind::Stream && self.gaps.packets() > 0;
        let is_abort =
            token == !self.token || (!knows_us && token == !0) || (!self.is_peer_farline() && has_holes);
        let is_whole = token == self.token || !self.is_peer_farline() || (!knows_us && token == 0);
        if !is_whole && !is_abort {
            self.counted.invalid_datagrams += 1;
            return;
        }
        // libudt closes without a last ACK: one that ends well has what was sent to it.
        let all_sent = self.send.sent() == self.send.end() && self.send.lost_packets() == 0;
        let all_arrived = self.is_delivered() || (!self.is_peer_farline() && all_sent);
        self.state = State::Closed(match (is_abort, self.state) {
            (true, _) => Closed::Aborted,
            (false, State::Finishing) if all_arrived => Closed::ByUs,
            (false, _) => Closed::ByPeer,
        });
        if self.is_peer_farline() {
            // One more word either way: our own may have been lost.
            self.parting.say(now_ns, all_arrived);
        }
    }
}

/// The reference library's smoothing of what an ACK reports; nothing known is reported as 0 or less.
fn smooth(known: &mut Option<f64>, reported: u32) {
    if reported == 0 || reported > i32::MAX as u32 {
        return;
    }
    let reported = f64::from(reported);
    *known = Some(known.map_or(reported, |known| (7.0 * known + reported) / 8.0));
}
