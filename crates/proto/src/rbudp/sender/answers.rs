//! What the receiver says, and what follows from it.

use super::{Sender, outgoing::Outgoing};
use crate::rbudp::Violation;
use crate::rbudp::wire::{Message, Missing};

impl Sender {
    /// Takes a message of the other end's.
    ///
    /// # Errors
    /// If it cannot be, or says that the other end failed. The stream is of no use after that.
    pub fn handle_message(&mut self, now_ns: u64, message: Message) -> Result<(), Violation> {
        match message {
            Message::Missing(missing) => self.handle_missing(now_ns, &missing)?,
            Message::Whole { blast } => self.handle_whole(now_ns, blast)?,
            Message::EndSeen => self.handle_end_seen()?,
            Message::Failed(reason) => return Err(Violation(format!("the other end failed: {reason}"))),
            Message::Done(_) | Message::End { .. } => {
                return Err(Violation(
                    "the receiver sent a message of a sender; allowed: MISSING, WHOLE, END-SEEN".to_owned(),
                ));
            }
        }
        self.owed_since_ns = self.is_owed().then_some(now_ns);
        Ok(())
    }

    fn handle_missing(&mut self, now_ns: u64, missing: &Missing) -> Result<(), Violation> {
        let limit = self.packets_per_blast();
        let blast = self.find(missing.blast, "a report")?;
        check_report(blast, missing)?;
        let covered = blast.covered_packets(missing);
        let lost = missing.packets.len();
        if lost > covered {
            let reason = format!("says that {lost} packets are missing, the statement was about {covered}");
            return Err(wrong_report(missing, &reason));
        }
        blast.take_report(missing, limit);
        self.statistics.received_reports += 1;
        self.statistics.reported_lost_packets += lost;
        if let Some(adapt) = &mut self.adapt {
            adapt.take_report(now_ns, missing, covered);
        }
        Ok(())
    }

    fn handle_whole(&mut self, now_ns: u64, number: u32) -> Result<(), Violation> {
        let options = self.options;
        let blast = self.find(number, "WHOLE")?;
        if blast.stated.is_none_or(|done| done.total.is_none()) {
            return Err(Violation(format!(
                "WHOLE for blast {number}, whose end has not been stated yet"
            )));
        }
        blast.whole_ns = Some(now_ns);
        while let Some(blast) = self.blasts.front().filter(|blast| blast.whole_ns.is_some()) {
            self.whole.push_back(blast.record(&options));
            self.blasts.pop_front();
        }
        self.end_if_done(now_ns);
        Ok(())
    }

    fn handle_end_seen(&mut self) -> Result<(), Violation> {
        if !self.has_ended || self.is_finished {
            return Err(Violation(
                "END-SEEN, although no END was sent or it came before".to_owned(),
            ));
        }
        self.is_finished = true;
        Ok(())
    }

    /// The blast that a message is about, unless it is not under way.
    fn find(&mut self, number: u32, what: &str) -> Result<&mut Outgoing, Violation> {
        let allowed = match (self.blasts.front(), self.blasts.back()) {
            (Some(first), Some(last)) => format!("blasts {} to {}", first.number, last.number),
            _ => "none".to_owned(),
        };
        self.blasts
            .iter_mut()
            .find(|blast| blast.number == number && blast.whole_ns.is_none())
            .ok_or_else(|| Violation(format!("{what} for blast {number}; in flight: {allowed}")))
    }

    fn is_owed(&self) -> bool {
        self.blasts.iter().any(Outgoing::is_owed) || (self.has_ended && !self.is_finished)
    }
}

/// Whether a report answers a statement that was made.
fn check_report(blast: &Outgoing, missing: &Missing) -> Result<(), Violation> {
    let (upto, served) = blast.stated.map_or((0, 0), |done| (done.upto, done.served));
    let (answered_upto, answered_served) = blast.answered;
    if missing.report != blast.reports + 1 {
        return Err(wrong_report(
            missing,
            &format!("comes after report {}", blast.reports),
        ));
    }
    if !(answered_upto..=upto).contains(&missing.upto)
        || !(answered_served..=served).contains(&missing.served)
    {
        let reason = format!(
            "answers packets below {} and reports to {}; allowed: {answered_upto} to {upto} and {answered_served} to {served}",
            missing.upto, missing.served
        );
        return Err(wrong_report(missing, &reason));
    }
    if missing.packets.end() > missing.upto {
        let reason = format!(
            "names packet {}, it is about those below {}",
            missing.packets.end() - 1,
            missing.upto
        );
        return Err(wrong_report(missing, &reason));
    }
    Ok(())
}

fn wrong_report(missing: &Missing, reason: &str) -> Violation {
    Violation(format!(
        "report {} of blast {} {reason}",
        missing.report, missing.blast
    ))
}
