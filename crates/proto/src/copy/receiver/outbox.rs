//! What the sending end is to be told, in the order in which it is told.

use std::collections::VecDeque;

use super::super::message::{Feedback, Wants};

/// Answers that go into one message, unless they are long.
const MOST_ANSWERS: usize = 512;
/// Parts in the answers of one message.
const MOST_PARTS: usize = 2_000;

/// Messages that wait: the first before all others, answers before what is said of files, since data depend on them, the last
/// behind everything.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub first: Option<Feedback>,
    pub answers: VecDeque<(u64, Wants)>,
    pub messages: VecDeque<Feedback>,
    pub last: Option<Feedback>,
}

impl Outbox {
    /// Answers and messages that wait.
    pub fn len(&self) -> usize {
        self.answers.len() + self.messages.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.first.is_none() && self.last.is_none() && self.len() == 0
    }

    /// The next message.
    pub fn next(&mut self) -> Option<Feedback> {
        let first = self.first.take().or_else(|| next_answers(&mut self.answers));
        first
            .or_else(|| self.messages.pop_front())
            .or_else(|| self.last.take())
    }
}

/// The answers at the front that are for entries in a row.
fn next_answers(waiting: &mut VecDeque<(u64, Wants)>) -> Option<Feedback> {
    let (first, answer) = waiting.pop_front()?;
    let mut parts = length_of(&answer);
    let mut wants = vec![answer];
    while let Some((number, next)) = waiting.front() {
        parts += length_of(next);
        let is_next = *number == first + wants.len() as u64;
        if !is_next || wants.len() >= MOST_ANSWERS || parts > MOST_PARTS {
            break;
        }
        wants.extend(waiting.pop_front().map(|(_, wants)| wants));
    }
    Some(Feedback::Answers { first, wants })
}

/// Length of an answer, in parts of about fifty bytes.
fn length_of(answer: &Wants) -> usize {
    match answer {
        Wants::Rest(parts) => parts.len(),
        Wants::Refused(reason) | Wants::LeftOut(reason) => reason.len() / 50 + 1,
        Wants::All | Wants::Present(_) | Wants::Updated(_) | Wants::Made => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_is_first_and_the_last_is_last_whatever_waited() {
        let mut outbox = Outbox {
            last: Some(Feedback::Finished { problems: Vec::new() }),
            ..Outbox::default()
        };
        outbox.messages.push_back(Feedback::Done { file: 3, hash: None });
        outbox
            .answers
            .extend([(0, Wants::All), (1, Wants::Made), (5, Wants::All)]);
        outbox.first = Some(Feedback::Ready { fresh: true });
        let said: Vec<Feedback> = std::iter::from_fn(|| outbox.next()).collect();
        let answers = |first, wants| Feedback::Answers { first, wants };
        assert_eq!(said[0], Feedback::Ready { fresh: true });
        assert_eq!(said[1], answers(0, vec![Wants::All, Wants::Made]));
        assert_eq!(said[2], answers(5, vec![Wants::All]));
        assert_eq!(said[3], Feedback::Done { file: 3, hash: None });
        assert!(matches!(said[4], Feedback::Finished { .. }));
        assert_eq!(said.len(), 5);
    }
}
