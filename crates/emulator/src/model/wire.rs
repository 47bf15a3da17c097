//! The wire of a pipe: takes trains from the queue piece by piece, sends them, and lets every packet meet its fate.

use super::codel::{Head, Verdict};
use super::fate::Fate;
use super::outbox::Outbox;
use super::pipe::{Pipe, Service};
use super::train::Corruption;
use super::transit::Transit;

/// The wire sends about so long of a train at once, so that a long train at a low rate does not arrive as one.
const PIECE_NS: u64 = 100_000;

impl<P: Clone> Pipe<P> {
    /// Starts to send, if the wire is free and something waits; without a rate everything is sent at once.
    pub(super) fn serve(&mut self, now_ns: u64, outbox: &mut Outbox<P>) {
        while self.up && self.service.is_none() {
            let Some(mut piece) = self.next_piece() else {
                return;
            };
            if self.line.rate_bps() == 0 {
                if piece.at_ns < now_ns {
                    piece.put(now_ns, now_ns);
                }
                self.leave(now_ns, piece, outbox);
                continue;
            }
            let end_ns = self.start(piece);
            // The first part of a train that came to an idle wire may be out before the last part has come.
            if end_ns <= now_ns {
                self.finish(now_ns, outbox);
            }
        }
    }

    /// Takes from the queue what is sent next.
    fn next_piece(&mut self) -> Option<Transit<P>> {
        if self.codel.is_some() {
            return self.next_piece_controlled();
        }
        let count = self.piece_of_head()?;
        self.queue.take(count)
    }

    /// When the first segment at the head of the queue can start: a train that came while the wire was idle could before
    /// its last segment was there.
    fn start_of_head(&self) -> Option<u64> {
        let head = self.queue.head()?;
        Some(head.first_ns().max(self.line.free_at_ns()))
    }

    /// How many segments of the train at the head go in one piece.
    fn piece_of_head(&self) -> Option<u16> {
        let train = &self.queue.head()?.train;
        Some(self.line.piece(train, self.settings.framing_bytes, PIECE_NS))
    }

    /// The same with CoDel, which judges each segment when it would start. A drop or a mark ends the piece before it.
    fn next_piece_controlled(&mut self) -> Option<Transit<P>> {
        let mut taken = 0;
        loop {
            let (Some(most), Some(start_ns)) = (self.piece_of_head(), self.start_of_head()) else {
                self.codel.as_mut()?.found_empty();
                return None;
            };
            match self.judge_head(start_ns, taken)? {
                Verdict::Send if taken + 1 < most => taken += 1,
                Verdict::Send => return self.queue.take(taken + 1),
                Verdict::Mark if taken > 0 => {
                    self.codel.as_mut()?.owe_mark();
                    return self.queue.take(taken);
                }
                Verdict::Mark => return self.queue.take(1).map(|one| self.mark(one)),
                Verdict::Drop => {
                    let piece = if taken > 0 { self.queue.take(taken) } else { None };
                    self.queue.take(1);
                    self.counters.codel_drop_packets += 1;
                    if piece.is_some() {
                        return piece;
                    }
                }
            }
        }
    }

    /// CoDel's word on the segment behind `taken` others at the head.
    fn judge_head(&mut self, start_ns: u64, taken: u16) -> Option<Verdict> {
        let codel = self.codel.as_mut()?;
        let head = self.queue.head()?;
        let segment_bytes = u64::from(head.train.segment_bytes) + self.settings.framing_bytes;
        let ahead_bytes = u64::from(taken) * segment_bytes;
        let own_bytes = u64::from(head.train.bytes_at(taken)) + self.settings.framing_bytes;
        let now_ns = start_ns + self.line.duration_ns(ahead_bytes);
        Some(codel.judge(Head {
            now_ns,
            sojourn_ns: now_ns.saturating_sub(head.segment_ns(taken)),
            bytes_behind: self.queue.bytes() - ahead_bytes - own_bytes,
            markable: self.settings.codel_marks && head.train.ecn_capable,
        }))
    }

    fn mark(&mut self, mut one: Transit<P>) -> Transit<P> {
        self.counters.ecn_marked_packets += u64::from(!one.train.marked);
        one.train.marked = true;
        one
    }

    /// Gives a piece to the wire; says when it is out.
    fn start(&mut self, piece: Transit<P>) -> u64 {
        let framing_bytes = self.settings.framing_bytes;
        let wire_bytes = piece.train.wire_bytes(framing_bytes);
        let start_ns = piece.first_ns().max(self.line.free_at_ns());
        let mut end_ns = self.line.send(start_ns, wire_bytes);
        let mut first_out_ns = end_ns;
        if piece.segments() > 1 {
            let first_bytes = u64::from(piece.train.segment_bytes) + framing_bytes;
            let last_bytes = u64::from(piece.train.last_bytes) + framing_bytes;
            first_out_ns = start_ns + self.line.duration_ns(first_bytes);
            // A wire faster than the segments come is done one packet after the last has come.
            end_ns = end_ns.max(piece.at_ns + self.line.duration_ns(last_bytes));
        }
        self.line.free_from(end_ns);
        self.service = Some(Service {
            transit: piece,
            end_ns,
            first_out_ns,
            wire_bytes,
        });
        end_ns
    }

    /// The wire has sent what it was given.
    pub(super) fn finish(&mut self, now_ns: u64, outbox: &mut Outbox<P>) {
        if let Some(mut service) = self.service.take() {
            let first_out_ns = service.first_out_ns.min(service.end_ns);
            service.transit.put(first_out_ns, service.end_ns);
            self.leave(now_ns, service.transit, outbox);
        }
    }

    /// Lets the packets of a piece, of which the last is out at `now_ns` or has been before, meet their fates.
    fn leave(&mut self, now_ns: u64, mut rest: Transit<P>, outbox: &mut Outbox<P>) {
        let mut clean = 0;
        if self.fates.is_idle() {
            clean = rest.segments();
            self.fates.skip(clean);
        }
        while clean < rest.segments() {
            let fate = self.fates.next();
            if fate == Fate::default() {
                clean += 1;
                continue;
            }
            let number = self.fates.number();
            let (before, one, after) = rest.isolate(clean);
            if let Some(before) = before {
                self.set_out(now_ns, before, number - u64::from(clean), outbox);
            }
            self.meet(now_ns, one, fate, outbox);
            match after {
                Some(after) => (rest, clean) = (after, 0),
                None => return,
            }
        }
        let first_number = self.fates.number() + 1 - u64::from(clean);
        self.set_out(now_ns, rest, first_number, outbox);
    }

    /// A single packet to which something happens.
    fn meet(&mut self, now_ns: u64, mut one: Transit<P>, fate: Fate, outbox: &mut Outbox<P>) {
        let number = self.fates.number();
        if fate.lost {
            self.counters.loss_packets += 1;
            return;
        }
        if let Some(corruption) = fate.corrupt {
            self.counters.corrupted_packets += 1;
            one.train.corrupt = Some(combine(one.train.corrupt, corruption));
        }
        self.counters.reordered_packets += u64::from(fate.late);
        self.counters.duplicated_packets += u64::from(fate.twice);
        let copy = fate.twice.then(|| one.clone());
        for packet in copy.into_iter().chain([one]) {
            if fate.late {
                outbox.watch(self.number, self.watched, &packet);
                self.distance.push_late(packet, number, now_ns);
            } else {
                self.set_out(now_ns, packet, number, outbox);
            }
        }
    }

    fn set_out(&mut self, now_ns: u64, run: Transit<P>, number: u64, outbox: &mut Outbox<P>) {
        outbox.watch(self.number, self.watched, &run);
        self.distance.push(run, number, now_ns);
    }
}

/// A packet corrupted on two links still has one bit turned over, hidden only if both links hide it.
fn combine(before: Option<Corruption>, corruption: Corruption) -> Corruption {
    before.map_or(corruption, |before| Corruption {
        entropy: before.entropy.rotate_left(1) ^ corruption.entropy,
        hidden: before.hidden && corruption.hidden,
    })
}
