//! What the sender says, and the reports that answer it.

use super::incoming::{End, Incoming};
use super::waiting::{Road, Waiting};
use super::{Receiver, ReceiverOptions};
use crate::rbudp::wire::{Done, Message, Missing, Total};
use crate::rbudp::{PacketSet, Violation};

/// Statements of a blast that wait to be answered; when more come, the newest takes the place of the one before it.
const MOST_WAITING: usize = 16;

impl Receiver {
    /// Takes a DONE that came as a datagram.
    ///
    /// # Errors
    /// If it cannot be. The stream is of no use after that.
    pub fn handle_done(&mut self, now_ns: u64, done: Done) -> Result<(), Violation> {
        self.statistics.received_marks += 1;
        self.take_done(now_ns, done, Road::Datagram)
    }

    /// Takes a message of the other end's.
    ///
    /// # Errors
    /// If it cannot be, or says that the other end failed. The stream is of no use after that.
    pub fn handle_message(&mut self, now_ns: u64, message: Message) -> Result<(), Violation> {
        match message {
            Message::Done(done) => self.take_done(now_ns, done, Road::Tcp),
            Message::End { blasts } => self.take_end(blasts),
            Message::Failed(reason) => Err(Violation(format!("the other end failed: {reason}"))),
            Message::Missing(_) | Message::Whole { .. } | Message::EndSeen => Err(Violation(
                "the sender sent a message of a receiver; allowed: DONE, END".to_owned(),
            )),
        }
    }

    /// A message for the TCP connection. Call until `None` after each message, DONE, time-out and release.
    pub fn poll_message(&mut self, now_ns: u64) -> Option<Message> {
        if let Some(message) = self.messages.pop_front() {
            return Some(message);
        }
        let max_packets = self.max_packets;
        let number = self.window().find(|&number| {
            let blast = self.slot(number);
            blast.is_some_and(|blast| self.answer_ns(blast).is_some_and(|due_ns| due_ns <= now_ns))
        })?;
        let quiet_ns = self.fresh_ns.saturating_add(self.options.settle_ns);
        let blast = self.slot_mut(number).as_mut()?;
        let missing = blast.answer(number, now_ns, quiet_ns, max_packets)?;
        self.statistics.sent_reports += 1;
        self.statistics.first_pass_lost_packets += missing.1;
        Some(Message::Missing(missing.0))
    }

    /// When `poll_message` has an answer; `None` if only what comes changes anything.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.window()
            .filter_map(|number| self.answer_ns(self.slot(number)?))
            .min()
    }

    /// When a blast's oldest statement is to be answered.
    fn answer_ns(&self, blast: &Incoming) -> Option<u64> {
        let oldest = blast.waiting.front().filter(|_| !blast.is_released)?;
        Some(oldest.due_ns(self.fresh_ns.saturating_add(self.options.settle_ns)))
    }

    fn take_done(&mut self, now_ns: u64, done: Done, road: Road) -> Result<(), Violation> {
        if done.blast < self.base {
            return Ok(());
        }
        if !self.is_in_window(done.blast) {
            let (first, count) = (self.base, self.window);
            let reason = format!("is not one of the {count} from {first} on that can be in flight");
            return Err(wrong_done(&done, &reason));
        }
        let options = self.options;
        let max_packets = self.max_packets;
        let due_ns = now_ns.saturating_add(options.settle_ns);
        let blast = self
            .slot_mut(done.blast)
            .get_or_insert_with(|| Incoming::new(max_packets));
        let statement = Waiting { done, due_ns, road };
        if blast.is_released || !blast.is_news(&done)? {
            blast.confirm(statement);
            return Ok(());
        }
        blast.check(&done, max_packets, &options)?;
        blast.take(statement, &options);
        blast.complete(now_ns);
        Ok(())
    }

    fn take_end(&mut self, blasts: u32) -> Result<(), Violation> {
        if blasts != self.base || self.slots.iter().any(Option::is_some) || self.is_ended {
            return Err(Violation(format!(
                "END after {blasts} blasts, of which {} are complete and {} in flight",
                self.base,
                self.slots.iter().flatten().count()
            )));
        }
        self.is_ended = true;
        self.window = 0;
        self.messages.push_back(Message::EndSeen);
        Ok(())
    }
}

impl Incoming {
    /// A statement came again. If it came as a datagram this time, the packets it is about are not behind it any more.
    fn confirm(&mut self, statement: Waiting) {
        let waits = |waiting: &&mut Waiting| waiting.done == statement.done && waiting.road == Road::Tcp;
        if let (Road::Datagram, Some(waiting)) = (statement.road, self.waiting.iter_mut().find(waits)) {
            *waiting = statement;
        }
    }

    /// Whether a statement says more than the newest. What is neither more nor less is a lie.
    fn is_news(&self, done: &Done) -> Result<bool, Violation> {
        let (upto, served) = self.stated;
        if (done.upto > upto && done.served < served) || (done.upto < upto && done.served > served) {
            let reason = format!("takes back a part of what was stated, {upto} packets and report {served}");
            return Err(wrong_done(done, &reason));
        }
        let is_more = done.upto > upto || done.served > served;
        Ok(is_more || (self.total.is_none() && done.total.is_some()))
    }

    /// Whether a statement that says more can be.
    fn check(&self, done: &Done, max_packets: u32, options: &ReceiverOptions) -> Result<(), Violation> {
        if done.served > self.reports {
            let reason = format!(
                "answers report {}, but there are only {}",
                done.served, self.reports
            );
            return Err(wrong_done(done, &reason));
        }
        let most = self.end.map_or(max_packets, |end| end.packets);
        if done.upto > most {
            return Err(wrong_done(
                done,
                &format!("states {} packets, the blast has {most}", done.upto),
            ));
        }
        match done.total {
            Some(total) => self.check_total(done, total, options),
            None => Ok(()),
        }
    }

    fn check_total(&self, done: &Done, total: Total, options: &ReceiverOptions) -> Result<(), Violation> {
        let most = options.payload_bytes;
        if total.bytes == 0 || total.bytes > most {
            let reason = format!("states a blast of {} bytes; allowed: 1 to {most}", total.bytes);
            return Err(wrong_done(done, &reason));
        }
        let end = End::of(total.bytes, options.packet_bytes);
        let is_same = self.total.is_none_or(|known| known == total);
        let holds = done.upto == end.packets && self.seen <= end.packets && self.stated.0 <= end.packets;
        if !is_same || !holds || self.end.is_some_and(|known| known != end) {
            let reason = format!(
                "states a blast of {} bytes after {} packets, which is not what came before",
                total.bytes, done.upto
            );
            return Err(wrong_done(done, &reason));
        }
        Ok(())
    }

    /// Takes a statement that says more.
    fn take(&mut self, statement: Waiting, options: &ReceiverOptions) {
        let done = statement.done;
        self.stated = (done.upto, done.served);
        if let Some(total) = done.total {
            self.total = Some(total);
            self.end = Some(End::of(total.bytes, options.packet_bytes));
        }
        if self.waiting.len() == MOST_WAITING {
            self.waiting.pop_back();
        }
        self.waiting.push_back(statement);
    }

    /// The report that answers the newest statement that has waited until `now_ns`, and how many packets of it had been
    /// sent once only.
    fn answer(&mut self, blast: u32, now_ns: u64, quiet_ns: u64, max_packets: u32) -> Option<(Missing, u64)> {
        let mut newest = None;
        while self
            .waiting
            .front()
            .is_some_and(|waiting| waiting.due_ns(quiet_ns) <= now_ns)
        {
            newest = self.waiting.pop_front();
        }
        let done = newest?.done;
        let packets = self.missing_of(&done);
        let lost = self.generations.note(&packets, max_packets);
        self.answered_upto = done.upto;
        self.reports += 1;
        if !packets.is_empty() {
            self.asked.push_back((self.reports, packets.clone()));
        }
        let missing = Missing {
            blast,
            upto: done.upto,
            served: done.served,
            report: self.reports,
            packets,
        };
        Some((missing, lost))
    }

    /// What is missing of what a statement says that no report has been about: new packets, and those of served reports.
    fn missing_of(&mut self, done: &Done) -> PacketSet {
        let mut runs = Vec::new();
        let served = self.asked.partition_point(|&(report, _)| report <= done.served);
        for (_, packets) in self.asked.drain(..served) {
            for &(first, count) in packets.runs() {
                runs.extend(self.received.absent_runs(first, first + count));
            }
        }
        runs.extend(self.received.absent_runs(self.answered_upto, done.upto));
        PacketSet::from_unsorted(runs)
    }
}

fn wrong_done(done: &Done, reason: &str) -> Violation {
    Violation(format!("DONE of blast {} {reason}", done.blast))
}
